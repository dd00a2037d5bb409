/// A push as it was received, nothing of it checked. Its views are the sender's bytes, and valid as long as those.
package struct PushRequest {
    package var method: ByteView
    /// The path with its query.
    package var path: ByteView
    package var headers: PushHeaders
    package var body: ByteView
    /// The body went past `PushHeaders.payloadBytesMax`, and is not all there.
    package var isBodyCutShort: Bool

    package init(method: ByteView, path: ByteView, headers: PushHeaders, body: ByteView, isBodyCutShort: Bool = false) {
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.isBodyCutShort = isBodyCutShort
    }

    /// Makes every check that needs no knowledge of devices, in the order of the wire contract: method, path,
    /// authentication, fields, the right to the topic, payload, token.
    ///
    /// - `token`: Where the device token is written; without meaning when the push is refused.
    /// - `authenticate`: Called once method and path are right; what it throws is thrown.
    /// - `authorize`: Called with the topic once all fields are right; what it throws is thrown.
    /// - Throws: The reason of the first check that fails.
    package func checked(
        rules: PushRules,
        token: inout DeviceToken,
        authenticate: (PushHeaders) throws(APNSReason) -> Void,
        authorize: (_ topic: ByteView) throws(APNSReason) -> Void
    ) throws(APNSReason) -> CheckedPush {
        let isToken = try PushTarget.readToken(method: self.method, path: self.path, into: &token)
        try authenticate(self.headers)
        let head = try self.headers.validated(rules: rules)
        try authorize(head.topic)
        var warnings: PushWarnings = []
        let wakes = try PushPayload.wakes(
            self.body,
            isCutShort: self.isBodyCutShort,
            type: head.type,
            warnings: &warnings
        )
        guard isToken else { throw .badDeviceToken }
        if rules.isForDevelopment, head.priority == .immediate, head.type == .background {
            warnings.insert(.backgroundPriority)
        }
        return CheckedPush(head: head, wakes: wakes, warnings: warnings)
    }
}

/// A push that passed every check which needs no knowledge of devices.
package struct CheckedPush {
    package let head: PushHead
    /// Whether the payload asks for the device to be woken.
    package let wakes: Bool
    /// The likely mistakes of its provider.
    package let warnings: PushWarnings
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

/// What the header fields of a push say, checked. The views are those `PushHeaders` was given.
package struct PushHead {
    /// The most bytes of a collapse id.
    package static let collapseIDBytesMax = 64

    /// The most bytes of a topic.
    package static let topicBytesMax = 255

    /// The identifier the sender chose; nil asks for a new one.
    package let id: APNsID?
    package let expiration: PushExpiration
    package let priority: Priority
    /// Nil when the sender did not say.
    package let type: PushType?
    /// At most 64 bytes; an empty one counts as absent.
    package let collapseID: ByteView
    /// 1 to 255 bytes, each a letter, a digit, `.`, `_` or `-`.
    package let topic: ByteView
    package let isDryRun: Bool

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
package enum PushType: UInt8, CaseIterable, Sendable {
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
