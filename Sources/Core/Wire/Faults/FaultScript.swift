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

/// What fault rules may look at of a push that has passed every check.
package struct FaultCandidate {
    package let token: DeviceToken
    /// Valid as long as the push's bytes.
    package let topic: ByteView
    /// The key that its provider token names, verified or not; nil when it shows none.
    package let keyID: String?
    /// Nil when the push does not say.
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

/// Which of the pushes that a rule is about it is for, by their ordinals, from 1.
package struct FaultOccasion: Hashable, Sendable {
    /// The first ordinal and, unless nil, the last.
    package var from: UInt64 = 1
    package var to: UInt64?
    /// The number of whose multiples the ordinals are.
    package var every: UInt64 = 1
    /// How likely each of these ordinals is, from 0 to 1.
    package var probability = 1.0
    /// What chance is drawn from: with the same seed the same ordinals are chosen.
    package var seed: UInt64 = 0

    package init() {}

    /// - Parameters:
    ///   - ordinal: from 1.
    ///   - lane: names the count that the ordinal is of, where there are several.
    package func includes(_ ordinal: UInt64, lane: UInt64) -> Bool {
        guard ordinal >= self.from, ordinal <= self.to ?? .max, ordinal % self.every == 0 else { return false }
        return self.probability >= 1 || self.chance(ordinal, lane) < self.probability
    }

    /// A number from 0 to less than 1, the same for the same seed, lane and ordinal: what other devices do, or other
    /// threads, has no part in it.
    private func chance(_ ordinal: UInt64, _ lane: UInt64) -> Double {
        let mixed = Self.mixed(Self.mixed(self.seed ^ Self.mixed(lane)) &+ ordinal &* SplitMix64.step)
        return Double(mixed >> 11) / Double(1 << 53 as UInt64)
    }

    /// The first number that `value` seeds.
    private static func mixed(_ value: UInt64) -> UInt64 { SplitMix64.scattered(value &+ SplitMix64.step) }
}

/// What a rule does with a push, in this order.
package struct FaultEffect: Hashable, Sendable {
    /// How long everything else waits.
    package var delayMilliseconds: Int64 = 0
    /// What the connection's peer is told of the streams that it may have open; nil for nothing.
    package var streamLimit: FaultStreamLimit?
    /// What the connection's peer is told of how much it may send on a stream; nil for nothing.
    package var streamWindow: FaultStreamWindow?
    package var outcome = FaultOutcome.passed

    package init() {}
}

/// Another number of streams that a connection may have open.
package struct FaultStreamLimit: Hashable, Sendable {
    package enum End: Hashable, Sendable {
        /// The limit ends with the connection.
        case connection
        case milliseconds(Int64)
        /// The limit ends when a push that came under it is accepted.
        case success
    }

    package let limit: Int
    package let end: End

    package init(limit: Int, end: End) {
        self.limit = limit
        self.end = end
    }
}

/// Another window for the streams of a connection: with less than a push has, its client is stalled.
package struct FaultStreamWindow: Hashable, Sendable {
    /// The most bytes: one less than a push of any type may have.
    package static let bytesMax = 4_095

    package let bytes: Int
    /// How long it holds; nil when it ends with the connection.
    package let milliseconds: Int64?

    package init(bytes: Int, milliseconds: Int64?) {
        self.bytes = bytes
        self.milliseconds = milliseconds
    }
}

/// What becomes of a push that a rule has caught.
package enum FaultOutcome: Hashable, Sendable {
    /// The push goes on as if there were no rule.
    case passed
    /// The push is refused.
    case refused(FaultAnswer)
    /// The push's stream is reset with this error code.
    case reset(code: UInt32)
    /// The push's connection is told to go away.
    case goneAway(FaultGoAway)
    /// The push is never answered; its stream ends with the connection.
    case stuck
    /// The provider token it shows counts as expired from now on, and its connection takes no push any more.
    case tokenExpired
    /// The push is handed to the engine, and its answer is lost.
    case replyLost(LostReply)
    /// The push's connection is closed without a word.
    case closed
}

/// An answer that refuses a push.
package struct FaultAnswer: Hashable, Sendable {
    package enum Timestamp: Hashable, Sendable {
        /// As APNs does it: with 410 the moment of the answer, with others none.
        case usual
        case absent
        /// Milliseconds since 1970.
        case at(Int64)
    }

    /// From 400 to 599.
    package let status: Int
    /// One of APNs' reasons, or any other text.
    package let reason: String
    package var timestamp = Timestamp.usual
    package var retryAfterSeconds: Int?

    package init(status: Int, reason: String) {
        self.status = status
        self.reason = reason
    }
}

/// How a connection is told to go away.
package struct FaultGoAway: Hashable, Sendable {
    /// What becomes of the streams in flight.
    package enum InFlight: String, CaseIterable, Sendable {
        /// The streams in flight are answered first, this push too.
        case answer
        /// This one and later ones were never looked at, which GOAWAY says: their client may send them again.
        case refuse
        /// Nothing more comes, and their client cannot know what became of them. This push is not taken.
        case drop
    }

    package let reason: String
    package var code: UInt32 = 0
    package var inFlight = InFlight.answer

    package init(reason: String) {
        self.reason = reason
    }
}

/// What its client sees in place of an answer that is lost.
package enum LostReply: String, CaseIterable, Sendable {
    /// The connection is closed without a word.
    case close
    /// The stream is reset with INTERNAL_ERROR.
    case reset
    /// Nothing.
    case stuck
}
