/// Fault rules in order, and how often each has matched and fired.
///
/// Every rule counts every push that it is about, whatever other rules do with it. Of those whose turn it is, the first
/// that is not spent fires, and no other.
package struct FaultScript: Sendable {
    /// The most rules of a script.
    package static let rulesMax = 1_000
    /// The most devices for each of which one rule counts by itself; it is about no others.
    package static let devicesMax = 10_000

    /// A rule and what became of it.
    package struct Entry: Sendable {
        package let id: String
        package let rule: FaultRule
        /// How many pushes it was about.
        package internal(set) var matched: UInt64 = 0
        package internal(set) var fired: UInt64 = 0
        fileprivate var ordinals: [DeviceToken: UInt64] = [:]

        /// Whether it fires no more.
        package var isSpent: Bool { self.rule.times.map { self.fired >= $0 } ?? false }

        /// Counts a push that the rule is about.
        ///
        /// - Returns: whether it is the push's turn.
        fileprivate mutating func isDue(_ push: FaultCandidate) -> Bool {
            guard self.rule.isPerDevice else {
                self.matched += 1
                return self.rule.occasion.includes(self.matched, lane: 0)
            }
            guard self.ordinals.count < FaultScript.devicesMax || self.ordinals[push.token] != nil else { return false }
            self.matched += 1
            let ordinal = self.ordinals[push.token, default: 0] + 1
            self.ordinals[push.token] = ordinal
            return self.rule.occasion.includes(ordinal, lane: push.token.hash64(seed: 0))
        }
    }

    /// In the order in which they are asked.
    package private(set) var entries: [Entry] = []
    private var lastNumber = 0

    package init() {}

    /// Whether some rule looks at the key of a provider token.
    package var looksAtKeys: Bool { self.entries.contains { !$0.rule.condition.keyIDs.isEmpty } }

    /// A push has passed every check.
    ///
    /// - Returns: what happens to it; nil when it goes on.
    package mutating func pushReceived(_ push: FaultCandidate) -> FaultEffect? {
        var firing: Int?
        for index in self.entries.indices where self.entries[index].rule.condition.admits(push) {
            let isDue = self.entries[index].isDue(push)
            if firing == nil, isDue, !self.entries[index].isSpent { firing = index }
        }
        guard let firing else { return nil }
        self.entries[firing].fired += 1
        return self.entries[firing].rule.effect
    }

    /// Adds a rule behind the others.
    ///
    /// - Returns: its id; nil when another rule has it, or there are `rulesMax`.
    package mutating func append(_ rule: FaultRule) -> String? {
        guard self.entries.count < Self.rulesMax else { return nil }
        let id = rule.id ?? self.newID()
        guard !self.entries.contains(where: { $0.id == id }) else { return nil }
        self.entries.append(Entry(id: id, rule: rule))
        return id
    }

    /// - Returns: false when no rule has this id.
    package mutating func remove(_ id: String) -> Bool {
        guard let index = self.entries.firstIndex(where: { $0.id == id }) else { return false }
        self.entries.remove(at: index)
        return true
    }

    /// Begins every count anew.
    package mutating func resetCounters() {
        self.entries = self.entries.map { Entry(id: $0.id, rule: $0.rule) }
    }

    /// A number that no rule has had, and none has for its name.
    private mutating func newID() -> String {
        repeat { self.lastNumber += 1 } while self.entries.contains { $0.id == String(self.lastNumber) }
        return String(self.lastNumber)
    }
}
