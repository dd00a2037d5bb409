/// One event of a `text/event-stream`.
package struct ServerSentEvent: Hashable, Sendable {
    /// The event's type; `message` when the stream named none.
    package var name: String
    /// The id of the latest event that had one; empty before the first.
    package var id: String
    /// The data lines, joined with line feeds.
    package var data: [UInt8]

    package init(name: String, id: String, data: [UInt8]) {
        self.name = name
        self.id = id
        self.data = data
    }
}
