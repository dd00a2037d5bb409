import Foundation
import Testing

@Suite("Authentication of providers", .serialized, .timeLimit(.minutes(15)))
final class ProviderTests {
    private static let token = String(repeating: "a7", count: 32)
    private static let topic = "com.example.auth"
    private static let team = AskingGateway.team

    private let asking: AskingGateway
    private var gateway: RunningGateway { self.asking.gateway }

    init() throws {
        self.asking = try AskingGateway()
    }

    /// Sends a push with `wakegate push`, and returns the first two words of its answer.
    private func push(_ keyID: String, team: String = ProviderTests.team, topic: String = ProviderTests.topic) throws
        -> String
    {
        try self.asking.push(Self.token, topic: topic, keyID: keyID, team: team)
    }

    /// Pushes over one connection with each of `values` as `authorization`. Returns the status and reason of each
    /// answer.
    private func answers(_ values: [String]) throws -> [String] {
        let url = "https://\(self.gateway.edge)/3/device/\(Self.token)"
        let arguments = ["push", url, self.gateway.certificateAuthority, Self.topic, RunningGateway.payload]
        let input = values.map { $0 + "\n" }.joined()
        let ended = try ChildProcess(client: "ask_httpx.py", arguments, input: input).finish()
        #expect(ended.status == 0, "\(ended.errors)")
        return ended.output.split(separator: "\n").map { line in
            let words = line.split(separator: " ").dropFirst()
            return words.first == "200" ? "200" : words.joined(separator: " ")
        }
    }

    @Test("A key is accepted while the gateway runs, and a removed one is refused")
    func keys() throws {
        #expect(try self.push("KEY0000001") == "403 InvalidProviderToken")
        try self.asking.addKey("KEY0000001")
        try self.gateway.eventually("a push with a new key") { try self.push("KEY0000001").hasPrefix("200") }
        #expect(try self.push("KEY0000001", team: "OTHER") == "403 InvalidProviderToken")
        let listed = try self.gateway.wakegate("key", "list", "--keys", "keys")
        #expect(listed.output == "KEY0000001  team \(Self.team)  all topics\n")
        let removed = try self.gateway.wakegate("key", "remove", "KEY0000001", "--keys", "keys")
        #expect(removed.status == 0, "\(removed.errors)")
        try self.gateway.eventually("a refusal") { try self.push("KEY0000001") == "403 InvalidProviderToken" }
        #expect(try self.gateway.wakegate("key", "remove", "KEY0000001", "--keys", "keys").status == 1)
        let good = try self.gateway.stats().integer("pushes", "accepted") ?? 0
        #expect(good >= 1)
    }

    @Test("Without a token a push is refused on the edge and in cleartext, and malformed paths before that")
    func missing() throws {
        try self.asking.addKey("KEY0000001")
        let refused = try self.gateway.push(Self.token, topic: Self.topic)
        #expect(refused.status == 403)
        #expect(refused.reason == "MissingProviderToken")
        #expect(refused.headers["apns-id"] != nil)
        #expect(try self.gateway.edge("/3/device/", "-d", "{}").reason == "MissingDeviceToken")
        #expect(try self.gateway.edge("/3/devices/", "-d", "{}").reason == "BadPath")
        // An unauthenticated client learns nothing else about its push.
        #expect(try self.gateway.edge("/3/device/xyz", "-d", "").reason == "MissingProviderToken")
        let plain = try ChildProcess.run(
            "curl",
            ["--silent", "--noproxy", "*", "http://\(self.gateway.plain)/3/device/\(Self.token)", "-d", "{}"]
        )
        #expect(plain.output == #"{"reason":"MissingProviderToken"}"#)
        #expect(try self.gateway.stats().integer("pushes", "accepted") == 0)
        #expect((try self.gateway.stats().integer("pushes", "rejected", "MissingProviderToken") ?? 0) >= 2)
    }

    @Test("A key with topics pushes only to those")
    func topics() throws {
        try self.asking.addKey("KEY0000001", topics: ["com.example.other", Self.topic])
        try self.gateway.eventually("a push") { try self.push("KEY0000001").hasPrefix("200") }
        #expect(try self.push("KEY0000001", topic: "com.example.strange") == "400 TopicDisallowed")
        #expect(try self.push("KEY0000001", topic: "a b") == "400 BadTopic")
    }

    @Test("An expired token makes only its own connection unusable")
    func expired() throws {
        try self.asking.addKey("KEY0000001")
        try self.gateway.eventually("a push") { try self.push("KEY0000001").hasPrefix("200") }
        let good = try self.asking.authorization("KEY0000001")
        let old = try self.asking.authorization("KEY0000001", age: 3700)
        let answers = try self.answers(["", good, good, old, good])
        #expect(
            answers == [
                "403 MissingProviderToken", "200", "200", "403 ExpiredProviderToken", "403 ExpiredProviderToken",
            ]
        )
        #expect(try self.answers([good]) == ["200"])
    }

    @Test(
        "A client that retries with fresh tokens after its token has expired is served on its next connection",
        arguments: ["pushy", "node-apn"]
    )
    func retries(rule: String) throws {
        try self.asking.useKey("KEY0000001", topic: Self.topic)
        let tokens = try [3700, 0, 10, 20, 30, 40].map { try self.asking.authorization("KEY0000001", age: $0) }
        let parts = self.gateway.edge.split(separator: ":").map(String.init)
        for pushCount in [1, 20] {
            let devices = (1...pushCount).map { String(repeating: "0", count: 62) + "\($0 + 10)" }
            let settings: [String: Any] = [
                "host": parts[0], "port": Int(parts[1]) ?? 0, "ca": self.gateway.certificateAuthority,
                "topic": Self.topic, "tokens": tokens, "devices": devices, "rule": rule,
            ]
            let argument = try ChildProcess.json(settings)
            let ended = try ChildProcess.run("node", [RunningGateway.client("expired_token.mjs"), argument])
            let shown = try JSONSerialization.jsonObject(with: Data(ended.output.utf8)) as? [String: Any]
            #expect(shown?["answers"] as? [String] == devices.map { _ in "200" }, "\(ended.output) \(ended.errors)")
            #expect(shown?["connections"] as? Int == 2)
            // The expired token, a fresh one, and another one from callers that have not read GOAWAY yet.
            #expect(shown?["requests"] as? Int ?? .max <= 4 * pushCount, "\(ended.output)")
        }
    }

    @Test("A connection is limited to one team, to related keys, and to few tokens")
    func connection() throws {
        try self.asking.addKey("KEY0000001")
        try self.asking.addKey("KEY0000002", team: "OTHERTEAM1")
        try self.asking.addKey("KEY0000003", topics: [Self.topic])
        for (key, team) in [("KEY0000001", Self.team), ("KEY0000002", "OTHERTEAM1"), ("KEY0000003", Self.team)] {
            try self.gateway.eventually("a push") { try self.push(key, team: team).hasPrefix("200") }
        }
        let first = try self.asking.authorization("KEY0000001")
        let others = [
            try self.asking.authorization("KEY0000002", team: "OTHERTEAM1"),
            try self.asking.authorization("KEY0000003"),
        ]
        let later = try [60, 120].map { try self.asking.authorization("KEY0000001", age: $0) }
        #expect(
            try self.answers([first] + others + later + [first]) == [
                "200", "403 InvalidProviderToken", "403 UnrelatedKeyIdInToken", "200",
                "429 TooManyProviderTokenUpdates", "200",
            ]
        )
    }
}
