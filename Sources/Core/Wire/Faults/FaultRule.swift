/// One line of a fault script: which pushes, which of them, and what happens to those.
package struct FaultRule: Hashable, Sendable {
    /// What it is known by; nil when the script is to choose.
    package var id: String?
    package var condition = FaultCondition()
    package var occasion = FaultOccasion()
    /// Whether ordinals are counted for each device by itself.
    package var isPerDevice = false
    /// How often it fires in all; nil for any number of times.
    package var times: UInt64?
    package var effect = FaultEffect()
    /// The rule as it was written, as JSON.
    package var text = ""

    package init() {}
}

/// Which pushes a rule is about: each list that is not empty names what the push must have one of.
package struct FaultCondition: Hashable, Sendable {
    package var tokens: Set<DeviceToken> = []
    package var topics: Set<String> = []
    package var keyIDs: Set<String> = []
    package var types: Set<PushType> = []
    package var priorities: Set<PushPriority> = []

    package init() {}

    package func admits(_ push: FaultCandidate) -> Bool {
        if !self.tokens.isEmpty, !self.tokens.contains(push.token) { return false }
        if !self.topics.isEmpty, !self.topics.contains(push.topic.string) { return false }
        if !self.keyIDs.isEmpty, !self.keyIDs.contains(push.keyID ?? "") { return false }
        if !self.types.isEmpty, push.type.map({ self.types.contains($0) }) != true { return false }
        return self.priorities.isEmpty || self.priorities.contains(push.priority)
    }
}

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
