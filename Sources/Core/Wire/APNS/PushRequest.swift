/// A push as it was received, nothing of it checked, and the header fields that mean something, collected one by one in
/// the order they came.
///
/// It keeps views and no copies: it is valid as long as the sender's bytes that were given to it.
package struct PushRequest {
    package let method: ByteView
    /// The path with its query.
    package let path: ByteView
    package let body: ByteView
    /// The body went past `PushPayload.bytesMax`, and is not all there.
    private let isBodyCutShort: Bool

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

    /// A push of which no header field is known yet.
    package init(method: ByteView, path: ByteView, body: ByteView, isBodyCutShort: Bool = false) {
        self.method = method
        self.path = path
        self.body = body
        self.isBodyCutShort = isBodyCutShort
    }

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

    /// Makes every check that needs no knowledge of devices, in the order of the wire contract: method, path,
    /// authentication, fields, the right to the topic, payload, token.
    ///
    /// - `push`: What was received, but for apns-id and trace, which the caller sets where the sender did not; without
    ///   meaning when the push is refused.
    /// - `authenticate`: Called once method and path are right; what it throws is thrown.
    /// - `authorize`: Called with the topic once all fields are right; what it throws is thrown.
    /// - Throws: The reason of the first check that fails.
    package func check(
        into push: inout Push,
        rules: PushRules,
        authenticate: (PushRequest) throws(APNSReason) -> Void,
        authorize: (_ topic: ByteView) throws(APNSReason) -> Void
    ) throws(APNSReason) {
        let isToken = try PushTarget.readToken(method: self.method, path: self.path, into: &push.token)
        try authenticate(self)
        try self.readFields(into: &push, rules)
        try authorize(push.topic)
        push.warnings = []
        push.wakes = try PushPayload.wakes(
            self.body,
            isCutShort: self.isBodyCutShort,
            type: push.type,
            warnings: &push.warnings
        )
        push.payload = self.body
        guard isToken else { throw .badDeviceToken }
        if rules.isForDevelopment, push.priority == .immediate, push.type == .background {
            push.warnings.insert(.backgroundPriority)
        }
    }

    /// Checks everything the fields can show to be wrong, in the order of the wire contract: duplicates, apns-id,
    /// expiration, priority, push type, collapse id, topic, and then our own field.
    private func readFields(into push: inout Push, _ rules: PushRules) throws(APNSReason) {
        guard !self.hasDuplicates else { throw .duplicateHeaders }
        if self.has(.id) {
            guard let id = self.id else { throw .badMessageId }
            push.apnsID = id
            push.isNamedByClient = true
        }
        if self.has(.expiration) {
            guard let expiration = PushExpiration(self.expirationText) else { throw .badExpirationDate }
            push.expiration = expiration
        }
        if self.has(.priority) {
            guard let priority = Priority(self.priorityText) else { throw .badPriority }
            push.priority = priority
        }
        if self.has(.pushType) { push.type = PushType(self.pushTypeText) }
        if rules.strictBackgroundPriority, push.priority == .immediate, push.type == .background { throw .badPriority }
        if self.has(.pushType), push.type == nil { throw .invalidPushType }
        // It becomes a JSON string for workers, which holds nothing but characters.
        guard self.collapseIDText.count <= Push.collapseIDBytesMax, self.collapseIDText.isUTF8 else {
            throw .badCollapseId
        }
        push.collapseID = self.collapseIDText
        guard self.has(.topic) else { throw .missingTopic }
        guard Push.isTopic(self.topicText) else { throw .badTopic }
        push.topic = self.topicText
        guard !self.isDryRunUnclear else { throw .badDryRun }
        push.isDryRun = self.isDryRun
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
        guard self.otherNameCount < Self.otherNamesMax else { return }
        self.otherNames[self.otherNameCount] = name
        self.otherNameCount += 1
    }
}

/// A push that passed every check which needs no knowledge of devices: plain memory, from its request to the engine.
///
/// Its views are the sender's bytes, or those of a copy that lie behind it (`append`).
package struct Push: BitwiseCopyable {
    /// The most bytes of a collapse id.
    package static let collapseIDBytesMax = 64

    /// The most bytes of a topic.
    package static let topicBytesMax = 255

    package var token = DeviceToken()
    /// 1 to 255 bytes, each a letter, a digit, `.`, `_` or `-`.
    package var topic = ByteView()
    package var apnsID = APNsID(first: 0, second: 0, upperCase: 0)
    /// True if the sender chose the apns-id, and may repeat the push with it: a repetition gets the same answer and
    /// is not accepted again.
    package var isNamedByClient = false
    package var expiration = PushExpiration.absent
    package var priority = Priority.immediate
    /// Nil when the sender did not say.
    package var type: PushType?
    /// True if the payload asks to wake the device.
    package var wakes = false
    package var isDryRun = false
    /// The likely mistakes of its provider, which the answer names if it is accepted.
    package var warnings = PushWarnings()
    /// At most 64 bytes; empty when there is none.
    package var collapseID = ByteView()
    package var payload = ByteView()
    /// The trace it belongs to, as `PushTrace` keeps it; empty when there is none.
    package var trace = ByteView()

    /// A push with nothing in it, and of the priority of one that names none.
    package init() {}

    /// Whether `text` may be a topic: 1 to 255 characters out of A-Z, a-z, 0-9, `.`, `_` and `-`.
    package static func isTopic(_ text: ByteView) -> Bool {
        guard !text.isEmpty, text.count <= self.topicBytesMax else { return false }
        // One bit for each ASCII character from 0, and from 64 on: `-`, `.` and digits; letters and `_`.
        let lower: UInt64 = 0x03FF_6000_0000_0000
        let upper: UInt64 = 0x07FF_FFFE_87FF_FFFE
        for index in 0..<text.count {
            let byte = text[index]
            guard byte < 0x80, (byte < 64 ? lower : upper) >> UInt64(byte & 63) & 1 == 1 else { return false }
        }
        return true
    }
}

/// A push in a buffer.
extension Push {
    /// Appends its memory and behind that the bytes of its views, for `init(in:at:)` to read in the same process.
    package func append(to buffer: inout ByteBuffer) {
        let count = self.topic.count + self.collapseID.count + self.payload.count + self.trace.count
        buffer.makeRoom(MemoryLayout<Push>.size + count)
        buffer.append(memoryOf: self)
        buffer.append(self.topic, self.collapseID)
        buffer.append(self.payload, self.trace)
    }

    /// The push that was appended at `offset`, which moves behind it; its views are of `bytes`.
    package init(in bytes: ByteView, at offset: inout Int) {
        self = bytes.load(Push.self, at: offset)
        offset += MemoryLayout<Push>.size
        func next(_ view: inout ByteView) {
            view = bytes.slice(offset, count: view.count)
            offset += view.count
        }
        next(&self.topic)
        next(&self.collapseID)
        next(&self.payload)
        next(&self.trace)
    }
}

/// What an operator may choose about the checks of a push.
package struct PushRules: Hashable, Sendable {
    /// Refuse a push of type background whose priority is 10, which is also the priority of one that names none.
    ///
    /// Apple's documentation calls it an error; APNs accepts it.
    package var strictBackgroundPriority: Bool

    /// True in `wakegate dev`, which warns of such a push, and writes every warning to its log.
    package var isForDevelopment: Bool

    package init(strictBackgroundPriority: Bool = false, isForDevelopment: Bool = false) {
        self.strictBackgroundPriority = strictBackgroundPriority
        self.isForDevelopment = isForDevelopment
    }
}

/// What the request line of a push says: the method, and the path with the device token in it.
package enum PushTarget {
    /// The path of every push, before the token.
    private static let prefix: StaticString = "/3/device/"

    /// Checks method and path, in this order, and reads the token.
    ///
    /// `/3/device` without the last slash is not the path of a push.
    /// - `path`: The path with its query, as received.
    /// - `token`: Where the token is written.
    /// - Returns: Whether there is one: an even number of hexadecimal digits, 32 to 200 of them. That there is none is
    ///   the last thing a push is refused for of those that need no knowledge of devices; `token` is without meaning
    ///   then.
    /// - Throws: `methodNotAllowed`; `missingDeviceToken` for `/3/device/`; `badPath` for every other path that is not
    ///   `/3/device/` and one more segment, and for any query.
    package static func readToken(
        method: ByteView,
        path: ByteView,
        into token: inout DeviceToken
    ) throws(APNSReason) -> Bool {
        guard method == "POST" else { throw .methodNotAllowed }
        guard path.starts(with: self.prefix) else { throw .badPath }
        let digits = path.dropFirst(ByteView(self.prefix).count)
        guard !digits.isEmpty else { throw .missingDeviceToken }
        // Among digits there is no delimiter.
        if DeviceToken.parse(digits, into: &token) { return true }
        guard !self.hasDelimiter(digits) else { throw .badPath }
        return false
    }

    /// Whether a `/` or a `?` is among the characters.
    private static func hasDelimiter(_ text: ByteView) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var index = 0
        while index + 8 <= text.count {
            let word = text.word(at: index)
            // The two characters differ in one bit, and so do no others from both.
            let difference = (word | ones &* 0x10) ^ ones &* UInt64(UInt8(ascii: "?"))
            guard (difference &- ones) & ~difference & (ones &* 0x80) == 0 else { return true }
            index += 8
        }
        while index < text.count {
            guard text[index] | 0x10 != UInt8(ascii: "?") else { return true }
            index += 1
        }
        return false
    }
}

/// What kind of notification a push says it is.
///
/// Whether the topic ends in the suffix that APNs wants for the type is not checked: APNs gives no reason for a
/// mismatch, and a token belongs to one topic anyway.
package enum PushType: UInt8, CaseIterable, BitwiseCopyable, Sendable {
    case alert
    case background
    case location
    case voip
    case complication
    case fileprovider
    case mdm
    case liveactivity
    case pushtotalk
    case widgets
    case controls

    /// The type of that name; nil for any other text, also one that differs in case alone.
    package init?(_ text: ByteView) {
        // The length leaves at most three names to compare.
        switch text.count {
        case 3 where text == "mdm": self = .mdm
        case 4 where text == "voip": self = .voip
        case 5 where text == "alert": self = .alert
        case 7 where text == "widgets": self = .widgets
        case 8 where text == "location": self = .location
        case 8 where text == "controls": self = .controls
        case 10 where text == "background": self = .background
        case 10 where text == "pushtotalk": self = .pushtotalk
        case 12 where text == "complication": self = .complication
        case 12 where text == "fileprovider": self = .fileprovider
        case 12 where text == "liveactivity": self = .liveactivity
        default: return nil
        }
    }

    /// The name in `apns-push-type`.
    package var name: StaticString {
        switch self {
        case .alert: "alert"
        case .background: "background"
        case .location: "location"
        case .voip: "voip"
        case .complication: "complication"
        case .fileprovider: "fileprovider"
        case .mdm: "mdm"
        case .liveactivity: "liveactivity"
        case .pushtotalk: "pushtotalk"
        case .widgets: "widgets"
        case .controls: "controls"
        }
    }

    /// The greatest payload of the type, in bytes.
    package var payloadBytesMax: Int {
        switch self {
        case .voip: 5120
        case .alert, .background, .location, .complication, .fileprovider, .mdm, .liveactivity, .pushtotalk, .widgets,
            .controls:
            4096
        }
    }
}

/// The body of a push.
package enum PushPayload {
    /// The greatest payload of a push of any type, in bytes.
    package static let bytesMax = 5120

    /// The greatest payload of a push of `type`, in bytes: 5120 for voip, else 4096.
    package static func bytesMax(type: PushType?) -> Int {
        type.map(\.payloadBytesMax) ?? 4096
    }

    /// Checks a body, in this order: empty, size, JSON object.
    ///
    /// - `isCutShort`: The body was longer than `bytesMax(type:)` and is therefore not all there.
    /// - `warnings`: Grows by what is wrong with a payload that is accepted nevertheless.
    /// - Returns: Whether the push wakes its device.
    /// - Throws: `payloadEmpty`, `payloadTooLarge`; and `payloadEmpty` for what is not a JSON object, as APNs has no
    ///   reason of its own for that.
    package static func wakes(
        _ body: ByteView,
        isCutShort: Bool,
        type: PushType?,
        warnings: inout PushWarnings
    ) throws(APNSReason) -> Bool {
        guard !isCutShort else { throw .payloadTooLarge }
        guard !body.isEmpty else { throw .payloadEmpty }
        guard body.count <= self.bytesMax(type: type) else { throw .payloadTooLarge }
        switch JSONGate.judge(body) {
        case .notJSON, .notAnObject: throw .payloadEmpty
        case .wakes: return true
        case .wrongContentAvailable:
            warnings.insert(.contentAvailable)
            return false
        case .doesNotWake: return false
        }
    }
}

/// Likely mistakes of the provider in a push that is accepted.
package struct PushWarnings: OptionSet, BitwiseCopyable, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    // The standard library's are not specialized in other modules, and cost a push 300 instructions.
    package init() { self.rawValue = 0 }

    package var isEmpty: Bool { self.rawValue == 0 }

    /// `aps.content-available` has a value other than the number 1, so the push does not wake the device.
    package static let contentAvailable = PushWarnings(rawValue: 1)

    /// The push is of type background and has priority 10, which Apple's documentation calls an error.
    package static let backgroundPriority = PushWarnings(rawValue: 2)

    /// The values of the `wakegate-warning` headers, one for each warning: a name that never changes, a semicolon, the
    /// fault, another semicolon, and the remedy.
    package var texts: [StaticString] {
        var texts: [StaticString] = []
        if self.contains(.contentAvailable) {
            texts.append(
                "content-available; aps.content-available is not the number 1, so the push wakes no device; send 1"
            )
        }
        if self.contains(.backgroundPriority) {
            texts.append(
                "background-priority; Apple calls priority 10 an error for push type background; send apns-priority: 5"
            )
        }
        return texts
    }
}

/// How urgent a push is, to its sender and to the policy; the raw value is the number on the wire.
@frozen
@usableFromInline
package enum Priority: UInt8, CaseIterable, BitwiseCopyable, Sendable {
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
package enum PushExpiration: Hashable, BitwiseCopyable, Sendable {
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
