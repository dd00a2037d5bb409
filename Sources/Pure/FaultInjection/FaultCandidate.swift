package import APNSProtocol
package import Bytes

/// What fault rules may look at of a push that has passed every check.
package struct FaultCandidate {
    package let token: DeviceToken
    /// Valid as long as the push's bytes.
    package let topic: ByteView
    /// The key that its provider token names, verified or not; nil when it shows none.
    package let keyID: String?
    /// Nil when the push does not say.
    package let type: PushType?
    package let priority: PushPriority

    package init(token: DeviceToken, topic: ByteView, keyID: String?, type: PushType?, priority: PushPriority) {
        self.token = token
        self.topic = topic
        self.keyID = keyID
        self.type = type
        self.priority = priority
    }
}
