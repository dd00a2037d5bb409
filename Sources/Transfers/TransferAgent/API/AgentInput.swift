import HTTPClient
package import Wire

/// Validates the requests of callers, one member at a time.
package enum AgentInput {
    /// Validates the name of a session. Rejects `.` and `..`, because clients treat them as relative path segments.
    static func session(_ name: String) throws(APIError) -> String {
        let isName =
            (1...255).contains(name.utf8.count) && name != "." && name != ".."
            && name.utf8.allSatisfy { $0.isLetterOrDigit(or: ".-_") }
        guard isName else {
            throw APIError(400, "BadSession", "A session's name has 1 to 255 of A-Z a-z 0-9 . - _; choose another.")
        }
        return name
    }

    static func transfer(_ text: String) throws(APIError) -> TransferID {
        guard let id = TransferID(text) else {
            throw APIError(404, "UnknownTransfer", "\(text.prefix(64)) is not a transfer's id, which has 32 digits.")
        }
        return id
    }

    // MARK: Sessions

    /// Reads the value of a member.
    private static func value<Value>(
        _ member: JSONMember,
        _ remedy: String,
        _ read: (JSONValue) -> Value?
    ) throws(APIError) -> Value {
        guard let value = read(member.value) else {
            let written = member.value.described.prefix(100)
            throw APIError(400, "BadSession", "\(member.name) is \(written); write \(remedy).")
        }
        return value
    }

    /// The maximum timeout, 366 days in milliseconds.
    private static let timeoutMax: Int64 = 366 * 86_400_000
    private static let timeoutRemedy =
        "seconds, above 0 and at most \(timeoutMax / 1000), with three decimals at most"

    package static func change(_ body: JSONValue?) throws(APIError) -> SessionChange {
        guard case .object? = body, let body else {
            throw APIError(400, "BadSession", "The body is not an object; write {} or {\"discretionary\": true}.")
        }
        var session = TransferSession()
        for member in body.members { try self.apply(member, to: &session) }
        // All members are valid here.
        return { session in for member in body.members { try? self.apply(member, to: &session) } }
    }

    private static func apply(_ member: JSONMember, to session: inout TransferSession) throws(APIError) {
        switch member.name {
        case "device":
            let device: String = try self.value(member, "the device's token in hexadecimal digits") { value in
                value.text?.withByteView { DeviceToken(hex: $0) } == nil ? nil : value.text?.lowercased()
            }
            session.device = device
        case "topic":
            let topic: String = try self.value(member, "a text of 1 to 255 bytes") { value in
                value.text.flatMap { (1...255).contains($0.utf8.count) ? $0 : nil }
            }
            session.topic = topic
        case "discretionary": session.isDiscretionary = try self.flag(member)
        case "sendsLaunchEvents": session.sendsLaunchEvents = try self.flag(member)
        case "allowsMetered": session.allowsMetered = try self.flag(member)
        case "allowsConstrained": session.allowsConstrained = try self.flag(member)
        case "continuesAfterForceQuit": session.continuesAfterForceQuit = try self.flag(member)
        case "acceptsEarlyAnswers": session.acceptsEarlyAnswers = try self.flag(member)
        case "requestTimeout": session.requestTimeout = try self.value(member, self.timeoutRemedy, self.timeout)
        case "resourceTimeout": session.resourceTimeout = try self.value(member, self.timeoutRemedy, self.timeout)
        case "connectionsPerHost":
            session.connectionsPerHost = try self.value(member, "a whole number from 1 to 64") { value in
                value.integer.flatMap { (1...64).contains($0) ? Int($0) : nil }
            }
        default:
            throw APIError(400, "BadSession", "The member \(member.name.prefix(64)) does not exist; leave it out.")
        }
    }

    private static func flag(_ member: JSONMember) throws(APIError) -> Bool {
        try self.value(member, "true or false", \.bool)
    }

    /// Converts a timeout from seconds to milliseconds. Returns nil if it is outside the limits.
    private static func timeout(_ value: JSONValue) -> Int64? {
        guard case .number(let number) = value, case .exact(let milliseconds) = number.milliseconds,
            (1...self.timeoutMax).contains(milliseconds)
        else { return nil }
        return milliseconds
    }

    // MARK: Transfers

    private static func badTransfer(_ member: String, _ value: JSONValue?, _ remedy: String) -> APIError {
        let what = value.map { "is \($0.described.prefix(100))" } ?? "is missing"
        return APIError(400, "BadTransfer", "\(member) \(what); write \(remedy).")
    }

    private static let urlBytesMax = 8192
    private static let headersMax = 100
    private static let headerBytesMax = 32_768
    private static let noteBytesMax = 1024
    /// The header fields that only the agent may set.
    private static let ownHeaders: Set<String> = [
        "connection", "content-length", "expect", "host", "if-range", "range", "te", "trailer", "transfer-encoding",
        "upgrade",
    ]

    package static func submission(_ body: JSONValue?) throws(APIError) -> TransferSubmission {
        guard case .object? = body, let body else {
            throw APIError(400, "BadTransfer", "The body is not an object; write {\"kind\": \"download\", ...}.")
        }
        let names = [
            "kind", "url", "method", "headers", "file", "earliestBegin", "sha256", "bytesMax", "note", "requestTimeout",
            "resourceTimeout",
        ]
        for member in body.members where !names.contains(member.name) {
            throw APIError(400, "BadTransfer", "The member \(member.name.prefix(64)) does not exist; leave it out.")
        }
        guard let kind = TransferKind.allCases.first(where: { $0.name == body["kind"]?.text }) else {
            throw self.badTransfer("kind", body["kind"], "download or upload")
        }
        guard let text = body["url"]?.text, text.utf8.count <= self.urlBytesMax, let url = HTTPURL(text) else {
            throw self.badTransfer("url", body["url"], "an http or https URL of at most \(self.urlBytesMax) bytes")
        }
        var spec = TransferSpec(url: text)
        let methods = kind == .download ? ["GET", "POST"] : ["PUT", "POST", "PATCH"]
        spec.method = try self.member(
            "method",
            body,
            methods.joined(separator: " or "),
            \.text,
            where: methods.contains
        )
        spec.headers = try self.headers(body["headers"])
        spec.file = try self.file(body["file"], kind)
        spec.sha256 = try self.member("sha256", body, "64 hexadecimal digits, for a download") { value in
            value.text?.lowercased()
        } where: { digits in
            kind == .download && digits.utf8.count == 64 && digits.utf8.allSatisfy { $0.hexDigitValue != nil }
        }
        spec.bytesMax = try self.member("bytesMax", body, "a whole number above 0", \.integer) { $0 > 0 }
        spec.note = try self.member("note", body, "a text of at most \(self.noteBytesMax) bytes", \.text) { note in
            note.utf8.count <= self.noteBytesMax
        }
        let earliest = try self.member("earliestBegin", body, "milliseconds since 1970", \.integer) { moment in
            moment >= 0 && moment < 1 << 53
        }
        let host = "\(url.scheme)://\(url.host.lowercased()):\(url.port)"
        spec.requestTimeout = try self.member("requestTimeout", body, self.timeoutRemedy, self.timeout)
        var submission = TransferSubmission(kind: kind, spec: spec, host: host, earliestBegin: earliest ?? 0)
        submission.resourceTimeout = try self.member("resourceTimeout", body, self.timeoutRemedy, self.timeout)
        return submission
    }

    /// Reads a member that may be missing or null.
    private static func member<Value>(
        _ name: String,
        _ body: JSONValue,
        _ remedy: String,
        _ read: (JSONValue) -> Value?,
        where isGood: (Value) -> Bool = { _ in true }
    ) throws(APIError) -> Value? {
        guard let member = body[name], member != .null else { return nil }
        guard let value = read(member), isGood(value) else { throw self.badTransfer(name, member, remedy) }
        return value
    }

    private static func headers(_ value: JSONValue?) throws(APIError) -> [TransferSpec.Header] {
        guard let value, value != .null else { return [] }
        guard case .object = value, value.members.count <= self.headersMax else {
            throw self.badTransfer("headers", value, "an object of at most \(self.headersMax) names and texts")
        }
        var bytes = 0
        var headers: [TransferSpec.Header] = []
        for member in value.members {
            let name = member.name.lowercased()
            let isName =
                !name.isEmpty
                && name.utf8.allSatisfy { byte in
                    byte &- 0x61 < 26 || byte &- 0x30 < 10 || "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            guard isName, !self.ownHeaders.contains(name) else {
                throw self.badTransfer("headers", .string(name), "names of fields, and none that the agent writes")
            }
            guard let text = member.value.text, text.utf8.allSatisfy({ $0 >= 32 && $0 != 127 || $0 == 9 }) else {
                let message = "The header \(name.prefix(64)) must be text without line ends; correct it."
                throw APIError(400, "BadTransfer", message)
            }
            bytes += name.utf8.count + text.utf8.count
            headers.append(TransferSpec.Header(name, text))
        }
        guard bytes <= self.headerBytesMax else {
            throw APIError(400, "BadTransfer", "headers have \(bytes) bytes; write at most \(self.headerBytesMax).")
        }
        return headers
    }

    private static func file(_ value: JSONValue?, _ kind: TransferKind) throws(APIError) -> String? {
        switch kind {
        case .download:
            guard value == nil || value == .null else {
                throw self.badTransfer("file", value, "none for a download, which is taken when it has finished")
            }
            return nil
        case .upload:
            guard let path = value?.text, path.hasPrefix("/"), path.utf8.count <= 4096, !path.utf8.contains(0) else {
                throw self.badTransfer("file", value, "the absolute path of the file to send")
            }
            return path
        }
    }

    static func place(_ body: JSONValue?) throws(APIError) -> (path: String, replaces: Bool) {
        guard let path = body?["to"]?.text, path.hasPrefix("/"), path.utf8.count <= 4096, !path.utf8.contains(0) else {
            throw APIError(400, "BadPath", "to is not an absolute path; write {\"to\": \"/...\"}.")
        }
        guard let value = body?["replace"], value != .null else { return (path, false) }
        guard let replaces = value.bool else {
            throw APIError(400, "BadPath", "replace is \(value.described.prefix(100)); write true or false.")
        }
        return (path, replaces)
    }
}
