/// The header fields of a push that mean something, collected one by one in the order they came.
///
/// It keeps views and no copies: it is valid as long as the bytes of the fields that were given to it.
package struct PushHeaders {
    /// The fields that may come once.
    private enum Field: UInt16 {
        case authorization = 1
        case id = 2
        case expiration = 4
        case priority = 8
        case pushType = 16
        case topic = 32
        case collapseID = 64
        case channelID = 128
        case requestID = 256
        case uniqueID = 512
        case traceParent = 1024
        case dryRun = 2048
    }

    /// How many other names that begin with `apns-` are remembered; repetitions of further ones are not noticed.
    private static let otherNamesMax = 4

    private var seen: UInt16 = 0
    private var otherNameCount = 0
    private var otherNames: InlineArray<4, ByteView> = InlineArray(repeating: ByteView())
    private var authorizationText = ByteView()
    private var expirationText = ByteView()
    private var priorityText = ByteView()
    private var pushTypeText = ByteView()
    private var topicText = ByteView()
    private var collapseIDText = ByteView()

    /// The identifier of `apns-id`; nil when the field is absent or is not a canonical UUID.
    ///
    /// An answer to any push, accepted or refused at whatever check, carries it; or a new one where it is nil.
    package private(set) var id: APNsID?

    /// Whether `wakegate-dry-run: 1` asks for an answer that changes nothing.
    package private(set) var isDryRun = false

    /// Whether `wakegate-dry-run` came with another value, or more than once: its sender may not want what a push does.
    private var isDryRunUnclear = false

    /// Whether `authorization`, or a field whose name begins with `apns-`, came more than once.
    package private(set) var hasDuplicates = false

    package init() {}

    /// Whether there is a `traceparent`, well-formed or not: nothing of a trace can make a push wrong.
    package var hasTraceParent: Bool { self.has(.traceParent) }

    /// The value of `authorization`, the first one if there are several; nil when it is absent.
    package var authorization: ByteView? { self.has(.authorization) ? self.authorizationText : nil }

    /// The value of `apns-topic` before any check, for authentication; nil when it is absent.
    package var unverifiedTopic: ByteView? { self.has(.topic) ? self.topicText : nil }

    /// Whether the push is of a type that APNs takes with a provider token alone, whatever certificate is shown.
    package var needsProviderToken: Bool {
        self.has(.pushType) && (self.pushTypeText == "location" || self.pushTypeText == "liveactivity")
    }

    /// The greatest payload this push may have, in bytes; known before anything has been checked.
    package var payloadBytesMax: Int {
        PushPayload.bytesMax(type: self.has(.pushType) ? PushType(self.pushTypeText) : nil)
    }

    /// Takes one field; the name is in lower case. Names that mean nothing to a push are skipped.
    package mutating func field(name: ByteView, value: ByteView) {
        switch name.count {
        case 7 where name == "apns-id":
            if self.isFirst(.id) { self.id = APNsID(value) }
        case 10 where name == "apns-topic":
            if self.isFirst(.topic) { self.topicText = value }
        case 11 where name == "traceparent":
            self.seen |= Field.traceParent.rawValue
        case 13 where name == "apns-priority":
            if self.isFirst(.priority) { self.priorityText = value }
        case 13 where name == "authorization":
            if self.isFirst(.authorization) { self.authorizationText = value }
        case 14 where name == "apns-push-type":
            if self.isFirst(.pushType) { self.pushTypeText = value }
        case 14 where name == "apns-unique-id":
            _ = self.isFirst(.uniqueID)
        case 15 where name == "apns-expiration":
            if self.isFirst(.expiration) { self.expirationText = value }
        case 15 where name == "apns-channel-id":
            _ = self.isFirst(.channelID)
        case 15 where name == "apns-request-id":
            _ = self.isFirst(.requestID)
        case 16 where name == "apns-collapse-id":
            if self.isFirst(.collapseID) { self.collapseIDText = value }
        case 16 where name == "wakegate-dry-run":
            if self.has(.dryRun) || !(value == "1") { self.isDryRunUnclear = true }
            self.seen |= Field.dryRun.rawValue
            self.isDryRun = !self.isDryRunUnclear
        default:
            if name.starts(with: "apns-") { self.otherField(name: name) }
        }
    }

    /// Takes `topic` for a push that names none; it must live as long as the fields.
    package mutating func takeDefaultTopic(_ topic: ByteView) {
        guard !self.has(.topic) else { return }
        self.seen |= Field.topic.rawValue
        self.topicText = topic
    }

    /// Checks everything the fields can show to be wrong, in the order of the wire contract: duplicates, apns-id,
    /// expiration, priority, push type, collapse id, topic, and then our own field.
    ///
    /// Authentication comes before it, the payload after it.
    /// - Throws: The reason of the first check that fails.
    package func validated(rules: PushRules) throws(APNSReason) -> PushHead {
        guard !self.hasDuplicates else { throw .duplicateHeaders }
        if self.has(.id), self.id == nil { throw .badMessageId }
        let expiration = self.has(.expiration) ? PushExpiration(self.expirationText) : .absent
        guard let expiration else { throw .badExpirationDate }
        let priority = self.has(.priority) ? Priority(self.priorityText) : .immediate
        guard let priority else { throw .badPriority }
        let type = self.has(.pushType) ? PushType(self.pushTypeText) : nil
        if rules.strictBackgroundPriority, priority == .immediate, type == .background { throw .badPriority }
        if self.has(.pushType), type == nil { throw .invalidPushType }
        // It becomes a JSON string for workers, which holds nothing but characters.
        guard self.collapseIDText.count <= PushHead.collapseIDBytesMax, self.collapseIDText.isUTF8 else {
            throw .badCollapseId
        }
        guard self.has(.topic) else { throw .missingTopic }
        guard PushHead.isTopic(self.topicText) else { throw .badTopic }
        guard !self.isDryRunUnclear else { throw .badDryRun }
        return PushHead(
            id: self.id,
            expiration: expiration,
            priority: priority,
            type: type,
            collapseID: self.collapseIDText,
            topic: self.topicText,
            isDryRun: self.isDryRun
        )
    }

    private func has(_ field: Field) -> Bool {
        self.seen & field.rawValue != 0
    }

    /// Notes that the field came, and tells whether for the first time.
    private mutating func isFirst(_ field: Field) -> Bool {
        guard !self.has(field) else {
            self.hasDuplicates = true
            return false
        }
        self.seen |= field.rawValue
        return true
    }

    private mutating func otherField(name: ByteView) {
        for index in 0..<self.otherNameCount where self.otherNames[index] == name {
            self.hasDuplicates = true
            return
        }
        guard self.otherNameCount < PushHeaders.otherNamesMax else { return }
        self.otherNames[self.otherNameCount] = name
        self.otherNameCount += 1
    }
}

/// How urgent a push is, to its sender and to the policy; the raw value is the number on the wire.
@frozen
@usableFromInline
package enum Priority: UInt8, CaseIterable, Sendable {
    /// Never wakes a device by itself.
    case passive = 1
    /// Waits its turn.
    case considerate = 5
    /// May jump the interval while the device's allowance lasts; what a push without the header has.
    case immediate = 10

    /// The priority that `text` spells: exactly `10`, `5` or `1`; nil for anything else.
    package init?(_ text: ByteView) {
        switch text.count {
        case 1 where text[0] == UInt8(ascii: "5"): self = .considerate
        case 1 where text[0] == UInt8(ascii: "1"): self = .passive
        case 2 where text == "10": self = .immediate
        default: return nil
        }
    }
}

extension Priority: Comparable {
    @inlinable
    package static func < (left: Priority, right: Priority) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// Until when a push that cannot be delivered is kept.
package enum PushExpiration: Hashable, Sendable {
    /// The header is absent: as long as the gateway keeps any push.
    case absent
    /// One attempt; nothing is kept.
    case zero
    /// Seconds since 1970, 1 to `secondsMax`; they may lie in the past.
    case seconds(Int64)

    /// Later instants count as this one, some 31,700 years on: its milliseconds still leave room for sums in `Int64`.
    package static let secondsMax: Int64 = 1_000_000_000_000

    /// The expiration that `text` spells in decimal digits, however many; nil when there is none, or anything else.
    package init?(_ text: ByteView) {
        guard !text.isEmpty else { return nil }
        var seconds: Int64 = 0
        for index in 0..<text.count {
            let digit = text[index] &- 0x30
            guard digit <= 9 else { return nil }
            seconds = min(seconds * 10 + Int64(digit), PushExpiration.secondsMax)
        }
        self = seconds == 0 ? .zero : .seconds(seconds)
    }
}
