/// A received push request before any checks. Header fields are added one by one, in order of arrival.
///
/// The views are valid as long as the bytes of the request.
package struct PushRequest {
    package let method: ByteView
    /// The path, including its query.
    package let path: ByteView
    package let body: ByteView
    /// True if the body exceeded `PushPayload.bytesMax` and is incomplete.
    private let isBodyCutShort: Bool

    /// The fields that may occur once.
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

    /// The maximum number of stored names of `apns-` fields that are not in `Field`. Repetitions of further fields are
    /// not detected.
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

    /// The identifier in `apns-id`; nil if the field is absent or not a canonical UUID.
    ///
    /// Every answer to the push contains this identifier, or a new identifier if it is nil.
    package private(set) var id: APNsID?

    /// True if the field `wakegate-dry-run: 1` requests a dry run.
    package private(set) var isDryRun = false

    /// True if `wakegate-dry-run` has another value or is repeated. The push is then refused, because the client may
    /// want a dry run.
    private var isDryRunInvalid = false

    /// True if `authorization`, or a field whose name starts with `apns-`, is repeated.
    package private(set) var hasDuplicates = false

    /// Creates a request without header fields.
    package init(method: ByteView, path: ByteView, body: ByteView, isBodyCutShort: Bool = false) {
        self.method = method
        self.path = path
        self.body = body
        self.isBodyCutShort = isBodyCutShort
    }

    /// True if the request has a `traceparent`, well-formed or not. An invalid trace does not make a push invalid.
    package var hasTraceParent: Bool { self.has(.traceParent) }

    /// The value of the first `authorization`; nil if it is absent.
    package var authorization: ByteView? { self.has(.authorization) ? self.authorizationText : nil }

    /// The unchecked value of `apns-topic`, for authentication; nil if it is absent.
    package var unverifiedTopic: ByteView? { self.has(.topic) ? self.topicText : nil }

    /// True if APNs accepts this type of push only with a provider token, even if the client presents a certificate.
    package var needsProviderToken: Bool {
        self.has(.pushType) && (self.pushTypeText == "location" || self.pushTypeText == "liveactivity")
    }

    /// Adds one field; the name is in lower case. Irrelevant fields are ignored.
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
            if self.has(.dryRun) || !(value == "1") { self.isDryRunInvalid = true }
            self.seen |= Field.dryRun.rawValue
            self.isDryRun = !self.isDryRunInvalid
        default:
            if name.starts(with: "apns-") { self.noteOtherField(name: name) }
        }
    }

    /// Sets the topic of a push that names no topic. `topic` must live as long as the fields.
    package mutating func setDefaultTopic(_ topic: ByteView) {
        guard !self.has(.topic) else { return }
        self.seen |= Field.topic.rawValue
        self.topicText = topic
    }

    /// Performs every check that does not depend on devices. The wire contract specifies the order: method, path,
    /// authentication, fields, access to the topic, payload, token.
    ///
    /// - `push`: receives the push, without an apns-id or trace if the client did not send one; undefined if the push
    ///   is refused.
    /// - `authenticate`: called when method and path are valid. Its errors are rethrown.
    /// - `authorize`: called with the topic when all fields are valid. Its errors are rethrown.
    /// - Throws: the reason of the first check that fails.
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

    /// Checks the fields in the order of the wire contract: duplicates, apns-id, expiration, priority, push type,
    /// collapse id, topic, `wakegate-dry-run`.
    private func readFields(into push: inout Push, _ rules: PushRules) throws(APNSReason) {
        guard !self.hasDuplicates else { throw .duplicateHeaders }
        if self.has(.id) {
            guard let id = self.id else { throw .badMessageId }
            push.apnsID = id
            push.hasClientID = true
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
        // Workers receive the collapse id as a JSON string, so it must be valid UTF-8.
        guard self.collapseIDText.count <= Push.collapseIDBytesMax, self.collapseIDText.isUTF8 else {
            throw .badCollapseId
        }
        push.collapseID = self.collapseIDText
        guard self.has(.topic) else { throw .missingTopic }
        guard Push.isTopic(self.topicText) else { throw .badTopic }
        push.topic = self.topicText
        guard !self.isDryRunInvalid else { throw .badDryRun }
        push.isDryRun = self.isDryRun
    }

    private func has(_ field: Field) -> Bool {
        self.seen & field.rawValue != 0
    }

    /// Records a field. Returns false if the field is repeated.
    private mutating func isFirst(_ field: Field) -> Bool {
        guard !self.has(field) else {
            self.hasDuplicates = true
            return false
        }
        self.seen |= field.rawValue
        return true
    }

    private mutating func noteOtherField(name: ByteView) {
        for index in 0..<self.otherNameCount where self.otherNames[index] == name {
            self.hasDuplicates = true
            return
        }
        guard self.otherNameCount < Self.otherNamesMax else { return }
        self.otherNames[self.otherNameCount] = name
        self.otherNameCount += 1
    }
}

/// A validated push, before the checks that depend on its device. Its memory can be copied bytewise to the engine's
/// thread.
///
/// Its views refer to the bytes of the request or, after `init(in:at:)`, to the buffer.
package struct Push: BitwiseCopyable {
    /// The maximum size of a collapse id in bytes.
    package static let collapseIDBytesMax = 64

    /// The maximum size of a topic in bytes.
    package static let topicBytesMax = 255

    package var token = DeviceToken()
    /// The topic: 1 to 255 bytes, each a letter, a digit, `.`, `_` or `-`.
    package var topic = ByteView()
    package var apnsID = APNsID(first: 0, second: 0, upperCase: 0)
    /// True if the client chose the apns-id. A repeated push with this id gets the same answer and is not accepted
    /// again.
    package var hasClientID = false
    package var expiration = PushExpiration.absent
    package var priority = Priority.immediate
    /// The type; nil if the client did not send one.
    package var type: PushType?
    /// True if the payload asks to wake the device.
    package var wakes = false
    package var isDryRun = false
    /// The likely mistakes of the provider, which the answer reports if the push is accepted.
    package var warnings = PushWarnings()
    /// The collapse id, at most 64 bytes; empty if there is none.
    package var collapseID = ByteView()
    package var payload = ByteView()
    /// The serialized `PushTrace`; empty if there is none.
    package var trace = ByteView()

    /// Creates an empty push with the default priority.
    package init() {}

    /// Returns true if `text` is a valid topic: 1 to 255 characters of A-Z, a-z, 0-9, `.`, `_` and `-`.
    package static func isTopic(_ text: ByteView) -> Bool {
        guard !text.isEmpty, text.count <= self.topicBytesMax else { return false }
        // One bit per ASCII character: `lower` has `-`, `.` and digits (0 to 63), `upper` has letters and `_` (64 to
        // 127).
        let lower: UInt64 = 0x03FF_6000_0000_0000
        let upper: UInt64 = 0x07FF_FFFE_87FF_FFFE
        for index in 0..<text.count {
            let byte = text[index]
            guard byte < 0x80, (byte < 64 ? lower : upper) >> UInt64(byte & 63) & 1 == 1 else { return false }
        }
        return true
    }
}

/// Serialization within the process.
extension Push {
    /// Appends the memory of the push, then the bytes of its views. Only `init(in:at:)` in the same process can read
    /// it.
    package func append(to buffer: inout ByteBuffer) {
        let count = self.topic.count + self.collapseID.count + self.payload.count + self.trace.count
        buffer.makeRoom(MemoryLayout<Push>.size + count)
        buffer.append(memoryOf: self)
        buffer.append(self.topic, self.collapseID)
        buffer.append(self.payload, self.trace)
    }

    /// Reads the push appended at `offset`, and moves `offset` to its end. The views refer to `bytes`.
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

/// The operator's choices for the checks of a push.
package struct PushRules: Hashable, Sendable {
    /// True to refuse a background push with priority 10, which is also the default priority.
    ///
    /// Apple's documentation calls such a push an error, but APNs accepts it.
    package var strictBackgroundPriority: Bool

    /// True in `wakegate dev`: background pushes with priority 10 get a warning, and every warning is logged.
    package var isForDevelopment: Bool

    package init(strictBackgroundPriority: Bool = false, isForDevelopment: Bool = false) {
        self.strictBackgroundPriority = strictBackgroundPriority
        self.isForDevelopment = isForDevelopment
    }
}

/// The request line of a push: the method, and the path with the device token.
package enum PushTarget {
    /// The path of every push, up to the token.
    private static let prefix: StaticString = "/3/device/"

    /// Checks method and path, in this order, and reads the token.
    ///
    /// `/3/device` without the last slash is a bad path.
    /// - `path`: the received path, including its query.
    /// - Returns: true if the path has a valid token: an even number of hexadecimal digits, from 32 to 200. If false,
    ///   `token` is undefined. The caller must report the bad token after all other checks that do not depend on
    ///   devices.
    /// - Throws: `methodNotAllowed`; `missingDeviceToken` for `/3/device/`; `badPath` if the path has a query, or is
    ///   not `/3/device/` with one more segment.
    package static func readToken(
        method: ByteView,
        path: ByteView,
        into token: inout DeviceToken
    ) throws(APNSReason) -> Bool {
        guard method == "POST" else { throw .methodNotAllowed }
        guard path.starts(with: self.prefix) else { throw .badPath }
        let digits = path.dropFirst(ByteView(self.prefix).count)
        guard !digits.isEmpty else { throw .missingDeviceToken }
        // Digits are not delimiters, so the path of a valid token needs no further check.
        if DeviceToken.parse(digits, into: &token) { return true }
        guard !self.hasDelimiter(digits) else { throw .badPath }
        return false
    }

    /// Returns true if the text contains `/` or `?`.
    private static func hasDelimiter(_ text: ByteView) -> Bool {
        for index in 0..<text.count where text[index] == UInt8(ascii: "/") || text[index] == UInt8(ascii: "?") {
            return true
        }
        return false
    }
}

/// The type of notification that a push declares.
///
/// APNs requires a topic suffix for some types. The gateway does not: APNs has no reason code for a mismatch, and a
/// token belongs to one topic.
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

    /// Creates the type with this name; nil for any other text. Names are case-sensitive.
    package init?(_ text: ByteView) {
        // At most three names have the same length.
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
}

/// The checks of a push's body.
package enum PushPayload {
    /// The maximum size of a payload of any type, in bytes.
    package static let bytesMax = 5120

    /// Returns the maximum size of a payload of `type`, in bytes: 5120 for voip, otherwise 4096.
    package static func bytesMax(type: PushType?) -> Int { type == .voip ? self.bytesMax : 4096 }

    /// Checks that a body is not empty, then its size, then that it is a JSON object.
    ///
    /// - `isCutShort`: true if the body was longer than `bytesMax` and is incomplete.
    /// - `warnings`: receives the problems of a payload that is accepted.
    /// - Returns: true if the push wakes its device.
    /// - Throws: `payloadTooLarge`; `payloadEmpty` if the body is empty or is not a JSON object. APNs has no separate
    ///   reason code for the latter.
    package static func wakes(
        _ body: ByteView,
        isCutShort: Bool,
        type: PushType?,
        warnings: inout PushWarnings
    ) throws(APNSReason) -> Bool {
        guard !isCutShort else { throw .payloadTooLarge }
        guard !body.isEmpty else { throw .payloadEmpty }
        guard body.count <= self.bytesMax(type: type) else { throw .payloadTooLarge }
        switch PayloadClassifier.classify(body) {
        case .notJSON, .notAnObject: throw .payloadEmpty
        case .wakes: return true
        case .wrongContentAvailable:
            warnings.insert(.contentAvailable)
            return false
        case .doesNotWake: return false
        }
    }
}

/// Likely mistakes of the provider in an accepted push.
package struct PushWarnings: OptionSet, BitwiseCopyable, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    // These members replace the members of `OptionSet`, which are not specialized in other modules and cost 300
    // instructions per push.
    package init() { self.rawValue = 0 }

    package var isEmpty: Bool { self.rawValue == 0 }

    /// The value of `aps.content-available` is not the number 1, so the push does not wake the device.
    package static let contentAvailable = PushWarnings(rawValue: 1)

    /// The push is of type background and has priority 10, which Apple's documentation calls an error.
    package static let backgroundPriority = PushWarnings(rawValue: 2)

    /// The values of the `wakegate-warning` headers, one per warning: a fixed name, a semicolon, the fault, a
    /// semicolon, and the remedy.
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

/// The urgency of a push; the raw value is the number on the wire.
@frozen
@usableFromInline
package enum Priority: UInt8, CaseIterable, BitwiseCopyable, Sendable {
    /// The push never wakes a device on its own.
    case passive = 1
    /// The push waits for the launch interval.
    case considerate = 5
    /// The push may skip the launch interval, up to `policy.immediateBurst` times in a row. A push without the header
    /// has this priority.
    case immediate = 10

    /// Creates the priority with the text `10`, `5` or `1`; nil for any other text.
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

/// The time until which an undelivered push is retained.
package enum PushExpiration: Hashable, BitwiseCopyable, Sendable {
    /// The header is absent: the push is retained for the policy's `defaultTTL`.
    case absent
    /// The push gets one attempt and is not retained.
    case zero
    /// Seconds since 1970, 1 to `secondsMax`; may be in the past.
    case seconds(Int64)

    /// The maximum, about 31,700 years. Later times are clamped to it. Sums of milliseconds therefore fit in `Int64`.
    package static let secondsMax: Int64 = 1_000_000_000_000

    /// Parses an expiration: any number of decimal digits; nil for any other text.
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
