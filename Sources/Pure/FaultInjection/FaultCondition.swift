package import APNSProtocol
package import Bytes

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
