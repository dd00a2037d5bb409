import HTTPTransport
import Wire

/// Parses the part `then` of a rule.
extension FaultRuleReader {
    private static let answerKeys = ["reason", "status", "timestamp", "retryAfter"]
    private static let keys =
        Self.answerKeys + [
            "delay", "reset", "goaway", "streamLimit", "streamWindow", "stuck", "expireToken", "dropReply", "close",
        ]
    /// The keys that can be combined with any outcome.
    private static let companions = ["delay", "streamLimit", "streamWindow"]
    /// The maximum length of a reason in bytes.
    private static let reasonBytesMax = 128
    private static let millisecondsMax = 3_600_000
    private static let statuses = 400...599

    private enum LimitEnd: String, CaseIterable {
        case success
    }

    mutating func readThen(_ value: JSONValue?, _ path: String, into rule: inout FaultRule) {
        guard let value else {
            self.fault(path, "is missing", "say what happens: then: { reason: \"ServiceUnavailable\" }")
            return
        }
        let before = self.faults.count
        let members = self.members(of: value, path, Self.keys)
        let milliseconds = self.whole(members["delay"], Self.join(path, "delay"), 0...Self.millisecondsMax)
        rule.effect.delayMilliseconds = Int64(milliseconds ?? 0)
        rule.effect.streamLimit = self.streamLimit(members["streamLimit"], Self.join(path, "streamLimit"))
        rule.effect.streamWindow = self.streamWindow(members["streamWindow"], Self.join(path, "streamWindow"))
        let outcomes = self.outcomes(members, path)
        if outcomes.count > 1 {
            let names = outcomes.map(\.name).joined(separator: " and ")
            self.fault(path, "has \(names)", "write one of them; delay, streamLimit and streamWindow go with any")
        }
        rule.effect.outcome = outcomes.first?.outcome ?? .passed
        let hasCompanion = Self.companions.contains { members[$0] != nil }
        if outcomes.isEmpty, !hasCompanion, self.faults.count == before {
            self.fault(path, "does nothing", "write one of \(Self.keys.joined(separator: ", "))")
        }
    }

    /// Returns the outcomes of the push, each with the name of its key.
    private mutating func outcomes(
        _ members: [String: JSONValue],
        _ path: String
    ) -> [(name: String, outcome: FaultOutcome)] {
        var outcomes: [(name: String, outcome: FaultOutcome)] = []
        if let name = Self.answerKeys.first(where: { members[$0] != nil }) {
            if let answer = self.answer(members, path) { outcomes.append((name, .refused(answer))) }
        }
        if let code = self.errorCode(members["reset"], Self.join(path, "reset")) {
            outcomes.append(("reset", .reset(code: code)))
        }
        if let value = members["goaway"], let goAway = self.goAway(value, Self.join(path, "goaway")) {
            outcomes.append(("goaway", .goneAway(goAway)))
        }
        if self.isSet(members["stuck"], Self.join(path, "stuck")) { outcomes.append(("stuck", .stuck)) }
        if self.isSet(members["expireToken"], Self.join(path, "expireToken")) {
            outcomes.append(("expireToken", .tokenExpired))
        }
        if let lost = self.choice(members["dropReply"], Self.join(path, "dropReply"), LostReply.self, \.rawValue) {
            outcomes.append(("dropReply", .replyLost(lost)))
        }
        if self.isSet(members["close"], Self.join(path, "close")) { outcomes.append(("close", .closed)) }
        return outcomes
    }

    private mutating func answer(_ members: [String: JSONValue], _ path: String) -> FaultAnswer? {
        let key = Self.join(path, "reason")
        let given = self.whole(members["status"], Self.join(path, "status"), Self.statuses)
        guard members["reason"] != nil else {
            let reasons = APNSReason.allCases.filter { given == nil || $0.status == given }.map(\.rawValue)
            let example = given != nil && reasons.isEmpty ? "any text" : reasons.joined(separator: ", ")
            self.fault(key, "is missing", "write \(example)")
            return nil
        }
        guard let reason = self.reason(members["reason"], key) else { return nil }
        let known = APNSReason(rawValue: reason)
        guard let status = given ?? known?.status else {
            let near = NearestMatch.find(reason, in: APNSReason.allCases.map(\.rawValue))
            let remedy = near.map { "did you mean \($0)?" } ?? "give a status with a reason of your own"
            if members["status"] == nil { self.fault(key, "is \"\(reason)\", which is not a reason of APNs", remedy) }
            return nil
        }
        if known == nil {
            let near = NearestMatch.find(reason, in: APNSReason.allCases.map(\.rawValue))
            let question = near.map { "; did you mean \($0)?" } ?? "; clients may not know it"
            self.warnings.append("\(key): \"\(reason)\" is not a reason of APNs\(question)")
        } else if let usual = known?.status, usual != status {
            self.warnings.append("\(Self.join(path, "status")): APNs answers \(reason) with \(usual), not \(status)")
        }
        var answer = FaultAnswer(status: status, reason: reason)
        switch members["timestamp"] {
        case nil: ()
        case .null?: answer.timestamp = .absent
        case let value?:
            let range = 0...9_007_199_254_740_991
            if let at = self.whole(value, Self.join(path, "timestamp"), range) { answer.timestamp = .at(Int64(at)) }
        }
        answer.retryAfterSeconds = self.whole(members["retryAfter"], Self.join(path, "retryAfter"), 0...86_400)
        return answer
    }

    private mutating func reason(_ value: JSONValue?, _ key: String) -> String? {
        guard let reason = self.text(value, key) else { return nil }
        if reason.utf8.count <= Self.reasonBytesMax { return reason }
        self.fault(key, "has \(reason.utf8.count) bytes", "write at most \(Self.reasonBytesMax)")
        return nil
    }

    private mutating func errorCode(_ value: JSONValue?, _ path: String) -> UInt32? {
        self.choice(value, path, HTTP2ErrorCode.self, \.name)?.rawValue
    }

    /// Parses a GOAWAY, which is a reason or an object.
    private mutating func goAway(_ value: JSONValue, _ path: String) -> FaultGoAway? {
        var members: [String: JSONValue] = ["reason": value]
        if case .string = value {} else { members = self.members(of: value, path, ["reason", "code", "inFlight"]) }
        let key = Self.join(path, "reason")
        guard let reason = self.reason(members["reason"] ?? .string("Shutdown"), key) else { return nil }
        if APNSReason(rawValue: reason) == nil {
            self.warnings.append("\(key): \"\(reason)\" is not a reason of APNs; clients may not know it")
        }
        var goAway = FaultGoAway(reason: reason)
        goAway.code = self.errorCode(members["code"], Self.join(path, "code")) ?? 0
        let place = Self.join(path, "inFlight")
        goAway.inFlight = self.choice(members["inFlight"], place, FaultGoAway.InFlight.self, \.rawValue) ?? .answer
        return goAway
    }

    /// Parses a stream limit, which is a number or an object.
    private mutating func streamLimit(_ value: JSONValue?, _ path: String) -> FaultStreamLimit? {
        guard let value else { return nil }
        var members: [String: JSONValue] = ["limit": value]
        if case .number = value {} else { members = self.members(of: value, path, ["limit", "for", "until"]) }
        let key = Self.join(path, "limit")
        if members["limit"] == nil { self.fault(key, "is missing", "write the number of streams, such as 1") }
        if members["for"] != nil, members["until"] != nil {
            self.fault(path, "has for and until", "write one of them")
        }
        var end = FaultStreamLimit.End.connection
        if let time = self.whole(members["for"], Self.join(path, "for"), 1...Self.millisecondsMax) {
            end = .milliseconds(Int64(time))
        }
        let until = self.choice(members["until"], Self.join(path, "until"), LimitEnd.self, \.rawValue)
        if until == .success { end = .success }
        // With `success`, a limit of 0 would never end, because it prevents every push.
        let minimum = end == .success ? 1 : 0
        guard let limit = self.whole(members["limit"], key, minimum...1_000_000) else { return nil }
        return FaultStreamLimit(limit: limit, end: end)
    }

    /// Parses a stream window, which is a number or an object.
    private mutating func streamWindow(_ value: JSONValue?, _ path: String) -> FaultStreamWindow? {
        guard let value else { return nil }
        var members: [String: JSONValue] = ["bytes": value]
        if case .number = value {} else { members = self.members(of: value, path, ["bytes", "for"]) }
        let key = Self.join(path, "bytes")
        if members["bytes"] == nil { self.fault(key, "is missing", "write the number of bytes, such as 0") }
        let time = self.whole(members["for"], Self.join(path, "for"), 1...Self.millisecondsMax)
        guard let bytes = self.whole(members["bytes"], key, 0...FaultStreamWindow.bytesMax) else { return nil }
        return FaultStreamWindow(bytes: bytes, milliseconds: time.map { Int64($0) })
    }
}
