/// What somebody sent with NOTIFY to a channel that this session listens on.
package struct PostgresNotification: Hashable, Sendable {
    package let channel: String
    package let payload: String
    /// The server's process of the sender's session, to know one's own by `PostgresLink.backend`.
    package let sender: Int32

    package init(channel: String, payload: String, sender: Int32) {
        self.channel = channel
        self.payload = payload
        self.sender = sender
    }
}
