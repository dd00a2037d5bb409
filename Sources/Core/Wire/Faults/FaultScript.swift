/// Fault rules in the order in which they are checked, with the numbers of their matches and firings.
///
/// Every rule counts every push that matches its condition, regardless of other rules. If several rules are due for a
/// push, the first one that is not spent fires.
package struct FaultScript: Sendable {
    /// The maximum number of rules in a script.
    package static let rulesMax = 1_000
    /// The maximum number of devices that one rule counts separately. The rule ignores further devices.
    package static let devicesMax = 10_000

    /// A rule with its counters.
    package struct Entry: Sendable {
        package let id: String
        package let rule: FaultRule
        /// The number of pushes that matched the condition.
        package internal(set) var matched: UInt64 = 0
        package internal(set) var fired: UInt64 = 0
        fileprivate var ordinals: [DeviceToken: UInt64] = [:]

        /// True if the rule has fired as often as it may.
        package var isSpent: Bool { self.rule.times.map { self.fired >= $0 } ?? false }

        /// Counts a push that matches the rule.
        ///
        /// - Returns: true if the rule is due for this push.
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

    /// The rules, in the order in which they are checked.
    package private(set) var entries: [Entry] = []
    private var lastNumber = 0

    package init() {}

    /// True if the condition of some rule names keys of provider tokens.
    package var usesProviderKeys: Bool { self.entries.contains { !$0.rule.condition.keyIDs.isEmpty } }

    /// Applies the rules to a push that has passed every check.
    ///
    /// - Returns: the effect on the push; nil if no rule fires.
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

    /// Appends a rule.
    ///
    /// - Returns: the rule's id; nil if another rule has the same id, or there are `rulesMax` rules.
    package mutating func append(_ rule: FaultRule) -> String? {
        guard self.entries.count < Self.rulesMax else { return nil }
        let id = rule.id ?? self.newID()
        guard !self.entries.contains(where: { $0.id == id }) else { return nil }
        self.entries.append(Entry(id: id, rule: rule))
        return id
    }

    /// Removes a rule.
    ///
    /// - Returns: false if no rule has this id.
    package mutating func remove(_ id: String) -> Bool {
        guard let index = self.entries.firstIndex(where: { $0.id == id }) else { return false }
        self.entries.remove(at: index)
        return true
    }

    /// Resets all counters.
    package mutating func resetCounters() {
        self.entries = self.entries.map { Entry(id: $0.id, rule: $0.rule) }
    }

    /// Returns a new number that is not the id of any rule.
    private mutating func newID() -> String {
        repeat { self.lastNumber += 1 } while self.entries.contains { $0.id == String(self.lastNumber) }
        return String(self.lastNumber)
    }
}

/// One rule of a fault script: a condition, the occasions on which it fires, and an effect.
package struct FaultRule: Hashable, Sendable {
    /// The id; nil to let the script choose one.
    package var id: String?
    package var condition = FaultCondition()
    package var occasion = FaultOccasion()
    /// True if matching pushes are counted separately for each device.
    package var isPerDevice = false
    /// The maximum number of firings; nil for no limit.
    package var times: UInt64?
    package var effect = FaultEffect()
    /// The rule's original JSON text.
    package var text = ""

    package init() {}
}

/// The condition of a rule. For each nonempty set, the push must have one of the set's values.
package struct FaultCondition: Hashable, Sendable {
    package var tokens: Set<DeviceToken> = []
    package var topics: Set<String> = []
    package var keyIDs: Set<String> = []
    package var types: Set<PushType> = []
    package var priorities: Set<Priority> = []

    package init() {}

    package func admits(_ push: FaultCandidate) -> Bool {
        if !self.tokens.isEmpty, !self.tokens.contains(push.token) { return false }
        if !self.topics.isEmpty, !self.topics.contains(push.topic.string) { return false }
        if !self.keyIDs.isEmpty, !self.keyIDs.contains(push.keyID ?? "") { return false }
        if !self.types.isEmpty, push.type.map({ self.types.contains($0) }) != true { return false }
        return self.priorities.isEmpty || self.priorities.contains(push.priority)
    }
}

/// The properties of a checked push that fault rules can use.
package struct FaultCandidate {
    package let token: DeviceToken
    /// The topic; valid as long as the push's bytes.
    package let topic: ByteView
    /// The key id in the push's provider token, verified or not; nil without a token.
    package let keyID: String?
    /// The type; nil if the push does not have one.
    package let type: PushType?
    package let priority: Priority

    package init(token: DeviceToken, topic: ByteView, keyID: String?, type: PushType?, priority: Priority) {
        self.token = token
        self.topic = topic
        self.keyID = keyID
        self.type = type
        self.priority = priority
    }
}

/// The occasions on which a rule fires. The pushes that match the rule have ordinals, counted from 1.
package struct FaultOccasion: Hashable, Sendable {
    /// The first ordinal on which the rule fires.
    package var from: UInt64 = 1
    package var to: UInt64?
    /// The divisor: the rule fires only if the ordinal is a multiple of it.
    package var every: UInt64 = 1
    /// The probability, from 0 to 1, that the rule fires for such an ordinal.
    package var probability = 1.0
    /// The seed of the random choice. The same seed chooses the same ordinals.
    package var seed: UInt64 = 0

    package init() {}

    /// - Parameters:
    ///   - ordinal: the ordinal, from 1.
    ///   - lane: a number derived from the device if pushes are counted separately for each device; otherwise 0.
    package func includes(_ ordinal: UInt64, lane: UInt64) -> Bool {
        guard ordinal >= self.from, ordinal <= self.to ?? .max, ordinal % self.every == 0 else { return false }
        return self.probability >= 1 || self.chance(ordinal, lane) < self.probability
    }

    /// Returns a number in 0..<1 that depends only on seed, lane and ordinal.
    private func chance(_ ordinal: UInt64, _ lane: UInt64) -> Double {
        let mixed = Self.mixed(Self.mixed(self.seed ^ Self.mixed(lane)) &+ ordinal &* SplitMix64.step)
        return Double(mixed >> 11) / Double(1 << 53 as UInt64)
    }

    /// Returns the first number of the generator with the seed `value`.
    private static func mixed(_ value: UInt64) -> UInt64 { SplitMix64.scattered(value &+ SplitMix64.step) }
}

/// The effect of a rule on a push. The parts apply in the order of the properties.
package struct FaultEffect: Hashable, Sendable {
    /// The delay before everything else, in milliseconds.
    package var delayMilliseconds: Int64 = 0
    /// The new limit of open streams, which is announced to the client; nil for no change.
    package var streamLimit: FaultStreamLimit?
    /// The new stream window, which is announced to the client; nil for no change.
    package var streamWindow: FaultStreamWindow?
    package var outcome = FaultOutcome.passed
}

/// A temporary limit of a connection's open streams.
package struct FaultStreamLimit: Hashable, Sendable {
    package enum End: Hashable, Sendable {
        /// The limit ends with the connection.
        case connection
        case milliseconds(Int64)
        /// The limit ends when a push that arrived under it is accepted.
        case success
    }

    package let limit: Int
    package let end: End

    package init(limit: Int, end: End) {
        self.limit = limit
        self.end = end
    }
}

/// A temporary window for a connection's streams. If it is smaller than a push, the client stalls.
package struct FaultStreamWindow: Hashable, Sendable {
    /// The maximum size in bytes. It is less than the maximum payload of every push type.
    package static let bytesMax = 4_095

    package let bytes: Int
    /// The duration in milliseconds; nil to last until the connection ends.
    package let milliseconds: Int64?

    package init(bytes: Int, milliseconds: Int64?) {
        self.bytes = bytes
        self.milliseconds = milliseconds
    }
}

/// The outcome of a push for which a rule fired.
package enum FaultOutcome: Hashable, Sendable {
    /// The push is processed normally.
    case passed
    /// The push is refused.
    case refused(FaultAnswer)
    /// The push's stream is reset with this error code.
    case reset(code: UInt32)
    /// The gateway sends GOAWAY on the push's connection.
    case goneAway(FaultGoAway)
    /// The push is never answered. Its stream ends with the connection.
    case stuck
    /// From now on, the push's provider token counts as expired, and its connection accepts no more pushes.
    case tokenExpired
    /// The engine processes the push, but its answer is lost.
    case replyLost(LostReply)
    /// The push's connection is closed silently.
    case closed
}

/// An answer that refuses a push.
package struct FaultAnswer: Hashable, Sendable {
    package enum Timestamp: Hashable, Sendable {
        /// The timestamp that APNs would send: the time of the answer for status 410, and none for any other status.
        case usual
        case absent
        /// Milliseconds since 1970.
        case at(Int64)
    }

    /// The status, from 400 to 599.
    package let status: Int
    /// The reason: one of APNs' reasons, or any other text.
    package let reason: String
    package var timestamp = Timestamp.usual
    package var retryAfterSeconds: Int?

    package init(status: Int, reason: String) {
        self.status = status
        self.reason = reason
    }
}

/// The GOAWAY frame, and its effect on the connection's streams.
package struct FaultGoAway: Hashable, Sendable {
    /// The effect on streams in flight.
    package enum InFlight: String, CaseIterable, Sendable {
        /// The gateway first answers the streams in flight, including this push.
        case answer
        /// The gateway does not process this stream or later streams. GOAWAY reports this to the client, which may
        /// retry them.
        case refuse
        /// The gateway sends no more answers, so the client cannot know the outcomes. This push is not accepted.
        case drop
    }

    package let reason: String
    package var code: UInt32 = 0
    package var inFlight = InFlight.answer

    package init(reason: String) {
        self.reason = reason
    }
}

/// The event that the client observes instead of an answer.
package enum LostReply: String, CaseIterable, Sendable {
    /// The connection is closed silently.
    case close
    /// The stream is reset with INTERNAL_ERROR.
    case reset
    /// The stream stays open without an answer.
    case stuck
}
