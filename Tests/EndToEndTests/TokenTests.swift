import Foundation
import Glibc
import Testing

@Suite("The life of a bearer token", .serialized, .timeLimit(.minutes(15)))
struct TokenTests {
    private let topic = "com.example.life"
    /// A path that passes the role check but opens no stream.
    private let path = "/v1/topics/com.example.life/wakes?slots=0"

    private func reason(_ gateway: ServedGateway, _ token: String?) throws -> String? {
        try gateway.ask(.edge, "GET", self.path, token: token).reason
    }

    @Test("The first token makes a running gateway ask; taking the key away ends every token, and opens no door")
    func firstToken() throws {
        let gateway = try ServedGateway()
        let early = try gateway.worker(self.topic)
        #expect(try self.reason(gateway, nil) == "BadQuery")
        let (token, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        #expect(try self.reason(gateway, nil) == "MissingToken")
        #expect(try self.reason(gateway, token) == "BadQuery")
        // A stream that was opened without a token does not remain open.
        #expect(try early.next() == nil)
        try gateway.eventually("no worker") { try gateway.workerCount() == 0 }

        let worker = try gateway.worker(self.topic, token: token)
        try FileManager.default.removeItem(at: gateway.state.appendingPathComponent("token.key"))
        #expect(try self.reason(gateway, nil) == "MissingToken")
        #expect(try self.reason(gateway, token) == "InvalidToken")
        #expect(try worker.next() == nil)
        let (other, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        #expect(try self.reason(gateway, token) == "InvalidToken")
        #expect(try self.reason(gateway, other) == "BadQuery")
    }

    @Test("An edge that other machines reach requires tokens from the start, with a key or without")
    func edgeAfar() throws {
        let keys = try RestartFolder()
        let gateway = try ServedGateway(["--edge", "0.0.0.0:0", "--set", "providerKeys=\(keys.folder.path)"])
        #expect(!FileManager.default.fileExists(atPath: gateway.state.appendingPathComponent("token.key").path))
        #expect(try gateway.ask(.plain, "GET", self.path).reason == "MissingToken")
        #expect(try gateway.ask(.plain, "GET", self.path, token: "wg1.e30.AAAA").reason == "InvalidToken")
        let device = "/3/device/\(String(repeating: "d4", count: 32))"
        let push = try gateway.ask(.plain, "POST", device, body: RunningGateway.payload)
        #expect(push.reason == "MissingProviderToken")
        let (token, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        #expect(try gateway.ask(.plain, "GET", self.path, token: token).reason == "BadQuery")
    }

    @Test("A revocation takes effect at the next request, ends open streams, and leaves other tokens alone")
    func revocation() throws {
        let gateway = try ServedGateway()
        let (token, id) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let (other, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let worker = try gateway.worker(self.topic, token: token)
        let otherWorker = try gateway.worker(self.topic, token: other)
        #expect(try self.reason(gateway, token) == "BadQuery")
        try gateway.revoke(id)
        #expect(try self.reason(gateway, token) == "RevokedToken")
        try gateway.eventually("a line in the log") {
            gateway.process.errors.contains("tokenRefused") && gateway.process.errors.contains("reason=RevokedToken")
        }
        #expect(try worker.next() == nil)
        try gateway.eventually("one worker") { try gateway.workerCount() == 1 }
        #expect(try self.reason(gateway, other) == "BadQuery")
        // The other stream has remained open: a wake arrives on it.
        let registered = try gateway.ask(.admin, "POST", "/v1/topics/\(self.topic)/devices")
        let device = try #require(registered.value("token") as? String)
        #expect(try gateway.ask(.admin, "POST", "/v1/devices/\(device)/simulate-launch").status == 202)
        #expect(try otherWorker.next()?.name == "wake")
        try gateway.revoke(id)
        #expect(try self.reason(gateway, token) == "RevokedToken")
    }

    @Test("The authorization field is accepted as in RFC 6750, and only once")
    func field() throws {
        let gateway = try ServedGateway()
        let (token, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        func reason(_ fields: String...) throws -> String? {
            let named = fields.map { "authorization: \($0)" }
            return try gateway.ask(.edge, "GET", self.path, fields: named).reason
        }
        #expect(try reason("bearer \(token)") == "BadQuery")
        #expect(try reason("BEARER \(token)") == "BadQuery")
        for wrong in [token, "Basic \(token)", "Bearer", "Bearer x", "Bearer \(token)x", "Bearer  \(token)"] {
            #expect(try reason(wrong) == "InvalidToken", "\(wrong)")
        }
        #expect(try reason("Bearer \(token)", "Bearer \(token)") == "InvalidToken")
    }

    @Test("A key or a list of revocations with loose permissions is not trusted, and the log says how to fix it")
    func unreadable() throws {
        let gateway = try ServedGateway()
        let (token, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        try gateway.revoke(try gateway.issue("--role", "worker", "--topic", self.topic).id)
        for name in ["token.key", "token.revoked"] {
            #expect(try self.reason(gateway, token) == "BadQuery")
            let file = gateway.state.appendingPathComponent(name).path
            #expect(unsafe chmod(file, 0o644) == 0)
            #expect(try gateway.ask(.edge, "GET", self.path, token: token).status == 503)
            try gateway.eventually("a line in the log") { gateway.process.errors.contains("chmod 600 \(file)") }
            #expect(unsafe chmod(file, 0o600) == 0)
            #expect(try self.reason(gateway, token) == "BadQuery")
            // The log never contains parts of a token.
            #expect(!gateway.process.errors.contains("wg1."))
        }
    }

    @Test("A token file that is empty while it is rewritten is read again")
    func emptyFile() throws {
        let gateway = try ServedGateway()
        let (token, _) = try gateway.issue("--role", "operator")
        let file = gateway.folder.appendingPathComponent("operator.token")
        try Data().write(to: file)
        let reads = try FileReads(file.path)
        let location = ["--gateway", try #require(gateway.curl(.adminAfar, "").last), "--token-file", file.path]
        let stats = try ChildProcess(wakegate: ["stats"] + location)
        try reads.wait()
        try Data("\(token)\n".utf8).write(to: file)
        #expect(try stats.finish().status == 0, "\(stats.errors)")
        try Data().write(to: file)
        let refused = try ChildProcess.wakegate(["stats"] + location)
        #expect(refused.status == 1)
        #expect(refused.errors.contains("holds 0 words"), "\(refused.errors)")
    }

    @Test("token list shows each token with its state and last use, and only listed tokens can be revoked")
    func list() throws {
        let gateway = try ServedGateway()
        func list(_ words: String...) throws -> String {
            let line = ["token", "list", "--state", gateway.state.path] + words
            let ended = try ChildProcess.wakegate(line)
            #expect(ended.status == 0, "\(ended.errors)")
            return ended.output
        }
        func tokens() throws -> [[String: Any]] {
            let object = try JSONSerialization.jsonObject(with: Data(try list("--json").utf8)) as? [String: Any]
            return object?["tokens"] as? [[String: Any]] ?? []
        }
        #expect(try list() == "no token was issued\n")
        let (used, usedID) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let (_, idleID) = try gateway.issue("--role", "operator")
        #expect(try self.reason(gateway, used) == "BadQuery")
        try gateway.eventually("the use of a token") { try tokens().first?["usedAt"] is Int }
        try gateway.revoke(idleID)
        let rows = try tokens()
        #expect(rows.map { $0["id"] as? String } == [usedID, idleID])
        #expect(rows.map { $0["state"] as? String } == ["good", "revoked"])
        #expect(rows.map { $0["role"] as? String } == ["worker", "operator"])
        #expect(rows.map { $0["topics"] as? [String] } == [[self.topic], []])
        let moment = try #require(rows[0]["usedAt"] as? Int) / 1000
        #expect(abs(Date(timeIntervalSinceNow: 0).timeIntervalSince1970 - Double(moment)) < 120)
        #expect(rows[1]["usedAt"] is NSNull)
        let lines = try list().split(separator: "\n")
        #expect(lines[0].hasPrefix("id ") && lines[0].contains("last used"))
        #expect(
            lines[2].hasPrefix("\(idleID)  revoked  operator") && lines[2].hasSuffix("  every topic")
                && lines[2].contains("never")
        )
        // No credentials are stored.
        for file in ["token.issued", "token.used"] {
            let text = try String(contentsOf: gateway.state.appendingPathComponent(file), encoding: .utf8)
            #expect(text.contains(usedID) && !text.contains("wg1."))
        }
        let never = String(repeating: "0", count: 32)
        let line = ["token", "revoke", never, "--state", gateway.state.path]
        let refused = try ChildProcess.wakegate(line)
        #expect(
            refused.status == 1 && refused.errors.contains("no token \(never) was issued from"),
            "\(refused.errors)"
        )
        #expect(try ChildProcess.wakegate(line + ["--unlisted"]).status == 0)
        // A list that is too large to be read must not prevent a revocation.
        let list = try FileHandle(forWritingTo: gateway.state.appendingPathComponent("token.issued"))
        try list.truncate(atOffset: 17 << 20)
        #expect(try ChildProcess.wakegate(line).status == 1)
        #expect(try ChildProcess.wakegate(line + ["--unlisted"]).status == 0)
    }

    @Test("An emptied list of revocations still revokes the same tokens")
    func emptiedRevocations() throws {
        let gateway = try ServedGateway()
        let (token, id) = try gateway.issue("--role", "worker", "--topic", self.topic)
        try gateway.revoke(id)
        #expect(try self.reason(gateway, token) == "RevokedToken")
        let list = gateway.state.appendingPathComponent("token.revoked")
        let file = try FileHandle(forWritingTo: list)
        try file.truncate(atOffset: 0)
        try file.close()
        #expect(try self.reason(gateway, token) == "RevokedToken")
    }

    /// The state folder of the packaged service, which these commands use without an option.
    private static let service = "/var/lib/wakegate"

    @Test(
        "Without an option no command makes the folder of the service",
        .disabled(if: FileManager.default.fileExists(atPath: Self.service), "a service is installed here")
    )
    func serviceFolder() throws {
        let folder = try RestartFolder()
        let unnamed = try ChildProcess.wakegate(
            ["token", "issue", "--role", "worker", "--topic", "t"],
            folder: folder.folder
        )
        #expect(unnamed.status == 1 && unnamed.errors.contains("the state folder \(Self.service) does not exist"))
        #expect(!FileManager.default.fileExists(atPath: Self.service))
    }
}
