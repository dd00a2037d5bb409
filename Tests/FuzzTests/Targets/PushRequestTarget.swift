import Wire

/// All checks of a push that do not depend on devices, compared with a simple version of the wire contract.
///
/// An input is a request in HTTP/1.1 format: `METHOD path`, fields, an empty line, and the body.
enum PushRequestTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        var reader = InputReader(input)
        let method = reader.view(until: 0x20)
        let path = reader.line()
        var fields: [(name: ByteView, value: ByteView)] = []
        var expected = ExpectedPush(method: method.array, path: path.array)
        while case let line = reader.line(), !line.isEmpty {
            var field = InputReader(line)
            let name = field.view(until: UInt8(ascii: ":"))
            var value = field.rest
            while !value.isEmpty, value[0] == 0x20 { value = value.dropFirst(1) }
            // Transports provide names in lower case, and never an empty name.
            guard !name.isEmpty, name.array == name.array.map(\.lowercasedASCII) else { continue }
            fields.append((name, value))
            expected.field(name.array, value.array)
        }
        var request = PushRequest(method: method, path: path, body: reader.rest)
        for field in fields { request.field(name: field.name, value: field.value) }
        for isStrict in [false, true] {
            let verdict = expected.verdict(body: request.body, isStrict: isStrict)
            try self.compare(request, verdict, PushRules(strictBackgroundPriority: isStrict))
        }
        try promise(request.hasDuplicates == expected.hasDuplicates, "duplicate fields are seen wrongly")
        try promise(request.isDryRun == expected.isDryRun, "a dry run is seen wrongly")
        try promise(request.authorization?.array == expected["authorization"], "the first authorization counts")
        try promise(request.unverifiedTopic?.array == expected["apns-topic"], "the first topic counts")
    }

    private static func compare(
        _ request: PushRequest,
        _ expected: APNSReason?,
        _ rules: PushRules
    ) throws(BrokenPromise) {
        var push = Push()
        do throws(APNSReason) {
            try request.check(
                into: &push,
                rules: rules,
                authenticate: { _ throws(APNSReason) in },
                authorize: { _ throws(APNSReason) in }
            )
        } catch {
            return try promise(error == expected, "refused with \(error), expected \(String(describing: expected))")
        }
        try promise(expected == nil, "accepted, expected \(String(describing: expected))")
        try promise(
            request.path.string.lowercased() == "/3/device/\(push.token.hex)",
            "the token was read as \(push.token.hex)"
        )
        try promise(push.hasClientID == (request.id != nil), "the sender's apns-id is passed over")
        if push.hasClientID {
            var text = ByteBuffer()
            push.apnsID.write(to: &text)
            try promise(APNsID(text.view) == request.id, "an apns-id changes when it is rewritten")
        }
        try promise(
            push.wakes == (PayloadClassifier.classify(request.body) == .wakes),
            "the payload was judged in two ways"
        )
    }
}

/// The requirements of the wire contract for a push, in the simplest form.
private struct ExpectedPush {
    private static let known: Set<String> = [
        "authorization", "apns-id", "apns-expiration", "apns-priority", "apns-push-type", "apns-topic",
        "apns-collapse-id", "apns-channel-id", "apns-request-id", "apns-unique-id",
    ]

    let method: [UInt8]
    let path: [UInt8]
    private var values: [String: [UInt8]] = [:]
    private var unknown: Set<[UInt8]> = []
    private(set) var hasDuplicates = false
    private(set) var isDryRun = false
    private(set) var isDryRunInvalid = false

    init(method: [UInt8], path: [UInt8]) {
        self.method = method
        self.path = path
    }

    subscript(name: String) -> [UInt8]? { self.values[name] }

    mutating func field(_ nameBytes: [UInt8], _ value: [UInt8]) {
        let name = String(decoding: nameBytes, as: UTF8.self)
        if name == "wakegate-dry-run" {
            self.isDryRunInvalid = self.isDryRunInvalid || self.isDryRun || value != Array("1".utf8)
            self.isDryRun = !self.isDryRunInvalid
        }
        if Self.known.contains(name) {
            if self.values[name] != nil { self.hasDuplicates = true } else { self.values[name] = value }
        } else if nameBytes.starts(with: Array("apns-".utf8)) {
            // Only the first four are remembered.
            if self.unknown.contains(nameBytes) {
                self.hasDuplicates = true
            } else if self.unknown.count < 4 {
                self.unknown.insert(nameBytes)
            }
        }
    }

    /// Returns the reason of the first failed check; nil if all succeed.
    func verdict(body: ByteView, isStrict: Bool) -> APNSReason? {
        guard self.method == Array("POST".utf8) else { return .methodNotAllowed }
        let prefix = Array("/3/device/".utf8)
        guard self.path.starts(with: prefix) else { return .badPath }
        let digits = self.path.dropFirst(prefix.count)
        guard !digits.isEmpty else { return .missingDeviceToken }
        guard !digits.contains(where: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }) else { return .badPath }
        if let reason = self.fieldReason(isStrict: isStrict) { return reason }
        guard !self.isDryRunInvalid else { return .badDryRun }
        guard !body.isEmpty else { return .payloadEmpty }
        let bytesMax = self["apns-push-type"] == Array("voip".utf8) ? 5120 : 4096
        guard body.count <= bytesMax else { return .payloadTooLarge }
        switch PayloadClassifier.classify(body) {
        case .notJSON, .notAnObject: return .payloadEmpty
        case .wakes, .wrongContentAvailable, .doesNotWake: break
        }
        let isToken =
            (32...200).contains(digits.count) && digits.count % 2 == 0 && digits.allSatisfy { $0.hexDigitValue != nil }
        return isToken ? nil : .badDeviceToken
    }

    private func fieldReason(isStrict: Bool) -> APNSReason? {
        if self.hasDuplicates { return .duplicateHeaders }
        if let id = self["apns-id"], !Self.isUUID(id) { return .badMessageId }
        if let seconds = self["apns-expiration"], seconds.isEmpty || !seconds.allSatisfy({ (0x30...0x39).contains($0) })
        {
            return .badExpirationDate
        }
        let priority = self["apns-priority"].map { String(decoding: $0, as: UTF8.self) } ?? "10"
        guard ["10", "5", "1"].contains(priority) else { return .badPriority }
        let type = self["apns-push-type"].map { String(decoding: $0, as: UTF8.self) }
        if isStrict, priority == "10", type == "background" { return .badPriority }
        if let type, !PushType.allCases.contains(where: { ByteView($0.name).string == type }) {
            return .invalidPushType
        }
        let collapseID = self["apns-collapse-id"] ?? []
        if collapseID.count > 64 || String(validating: collapseID, as: UTF8.self) == nil { return .badCollapseId }
        guard let topic = self["apns-topic"] else { return .missingTopic }
        let isTopic =
            (1...255).contains(topic.count)
            && topic.allSatisfy { byte in
                (0x61...0x7A).contains(byte.lowercasedASCII) || (0x30...0x39).contains(byte)
                    || [UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-")].contains(byte)
            }
        return isTopic ? nil : .badTopic
    }

    private static func isUUID(_ text: [UInt8]) -> Bool {
        text.count == 36
            && text.enumerated().allSatisfy { index, byte in
                [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : byte.hexDigitValue != nil
            }
    }
}
