import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("Nothing secret is written", .serialized, .timeLimit(.minutes(15)))
struct SecretTests {
    /// The gateway logs at the lowest level, so that every line is written.
    @Test("No token, key or payload is in any log, in success and failure", arguments: ["text", "json"])
    func logs(format: String) throws {
        let scene = try SecretScene(format: format)
        try scene.ask()
        try scene.work()
        try scene.blunder()
        try scene.end()
        #expect(scene.leaks() == [])
        #expect(try scene.leaksInFiles() == [])
        // Only the journal may contain the payload. It must be found there.
        let holders = try scene.filesWithPayload()
        #expect(!holders.isEmpty && holders.allSatisfy { $0.hasPrefix("journal") }, "\(holders)")
        let log = try #require(scene.output["gateway"])
        for (event, level) in [
            ("ready", "info"), ("clientCertificate", "warning"), ("providerKeys", "warning"),
            ("providerTokenRefused", "warning"),
        ] {
            #expect(log.contains(format == "json" ? "\"event\":\"\(event)\"" : " \(level) \(event)"), "\(event)")
        }
        #expect(scene.output.values.filter { !$0.isEmpty }.count > 5)
    }
}

/// A `wakegate serve` process with recognizable secrets, and the collected output of everything that could leak them.
final class SecretScene {
    static let topic = "com.example.secret"
    static let payloadMark = "planted-payload"
    static let device = String(repeating: "5ec4e7", count: 10)
    private static let badBearer = "wg1.planted-bearer-claims.planted-bearer-signature"
    private static let badJWT = "planted-jwt-head.planted-jwt-claims.planted-jwt-signature"
    private static let strayKey = "planted-stray-key-in-a-wrong-place"

    /// The output of the gateway, its workers and its commands, by name.
    private(set) var output: [String: String] = [:]
    let gateway: ServedGateway
    private let rig: WebhookRig
    private let receiver: WebhookReceiver
    private let authority: TestAuthority
    private let unknownPeer: TestAuthority
    private let keys: URL
    /// The credentials by name. They must not appear anywhere; a payload and a device token may appear in the
    /// databases.
    private var credentials: [String: String] = [:]

    init(format: String) throws {
        self.rig = try WebhookRig()
        self.receiver = try self.rig.receiver()
        self.authority = try TestAuthority()
        self.unknownPeer = try TestAuthority("Unknown")
        self.keys = self.rig.folder.folder.appendingPathComponent("keys")
        try FileManager.default.createDirectory(at: self.keys, withIntermediateDirectories: true)
        let state = self.rig.folder.state.path
        let secret = self.rig.folder.folder.appendingPathComponent("secret").path
        let hook =
            "{url: 'https://localhost:\(self.receiver.port)/', ca: '\(state)/ca.pem', secretFile: '\(secret)', "
            + "allowPrivate: true}"
        let settings = [
            "log.level=debug", "log.format=\(format)", "providerKeys=\(self.keys.path)", "registration=\"open\"",
            "tls.clientCA=\(self.authority.certificate)", "topics.\(WebhookRig.topic).webhook=\(hook)",
            "policy.launchInterval=0.05",
        ]
        self.gateway = try ServedGateway(settings.flatMap { ["--set", $0] })
        self.credentials["webhook secret"] = WebhookRig.secret
        self.credentials["bad bearer token"] = "planted-bearer"
        self.credentials["bad provider token"] = "planted-jwt"
        self.credentials["stray key"] = Self.strayKey
        for name in ["provider.p8", "server.key"] {
            self.credentials[name] = try Self.keyText(self.rig.folder.state.appendingPathComponent(name).path)
        }
    }

    /// Returns a Base64 line of the private key in a PEM file.
    private static func keyText(_ path: String) throws -> String {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let key = try #require(text.components(separatedBy: "PRIVATE KEY-----\n").dropFirst().first)
        return try #require(key.split(separator: "\n").first.map(String.init))
    }

    // MARK: Scenes

    /// Sends pushes and requests with valid and invalid credentials over all protocols.
    func ask() throws {
        try Data(Self.strayKey.utf8).write(to: self.keys.appendingPathComponent("STRAY.pem"))
        let key = self.rig.folder.state.appendingPathComponent("provider.p8").path
        let add = ["key", "add", key, "--team", AskingGateway.team, "--key-id", "KEY0000001", "--keys", self.keys.path]
        try self.run("key add", add)
        let good = try AskingGateway.authorization("KEY0000001", signedBy: key)
        let stale = try AskingGateway.authorization("KEY0000001", signedBy: key, age: 7200)
        for (name, value) in [("provider token", good), ("stale provider token", stale)] {
            let parts = value.dropFirst("Bearer ".count).split(separator: ".").map(String.init)
            self.credentials[name] = parts[2]
        }
        let bodies = [
            #"{"aps":{"content-available":1},"m":"\#(Self.payloadMark)"}"#, #"{"m":"\#(Self.payloadMark)"#,
            #"{"m":"\#(String(repeating: Self.payloadMark, count: 500))"}"#,
        ]
        let proofs = [good, stale, "bearer \(Self.badJWT)", "bearer \(Self.badBearer)", Self.badJWT]
        try self.gateway.eventually("a push") { try self.push(bodies[0], good).status == 200 }
        for listener in [ServedGateway.Listener.edge, .plain] {
            for proof in proofs {
                for body in bodies { _ = try self.push(body, proof, listener) }
            }
        }
        for certificate in [
            try self.issue(self.authority, "client key"), try self.issue(self.unknownPeer, "other key"),
        ] {
            let device = "/3/device/\(String(repeating: "ab", count: 32))"
            _ = try? self.gateway.ask(.edge, "POST", device, body: bodies[0], certificate: certificate)
        }
    }

    /// Runs workers and operators with valid and invalid tokens, a failing webhook, and a failing command.
    func work() throws {
        let (worker, _) = try self.gateway.issue("--role", "worker", "--topic", Self.topic)
        let (revoked, id) = try self.gateway.issue("--role", "worker", "--topic", Self.topic)
        let (operatorToken, _) = try self.gateway.issue("--role", "operator")
        try self.gateway.revoke(id)
        for (name, token) in [("worker", worker), ("revoked", revoked), ("operator", operatorToken)] {
            self.credentials["\(name) token"] = token.split(separator: ".").last.map(String.init)
        }
        for token in [worker, revoked, operatorToken, Self.badBearer] {
            for path in [
                "/v1/topics/\(Self.topic)/wakes?slots=0", "/v1/topics/com.example.other/wakes?slots=0", "/v1/none",
            ] {
                _ = try self.gateway.ask(.edge, "GET", path, token: token)
            }
            _ = try self.gateway.ask(.adminAfar, "GET", "/v1/stats", token: token)
            _ = try self.gateway.ask(.edge, "POST", "/v1/wakes/0", token: token, body: Self.payloadMark)
        }
        let place = try #require(self.gateway.curl(.edge, "").last)
        func command(_ token: String) throws -> ChildProcess {
            let options = ["--gateway", place, "--ca", self.gateway.certificateAuthority, "--token", token]
            let words = ["worker", "--topic", Self.topic] + options + ["--", "sh", "-c", "cat >/dev/null; exit 1"]
            return try ChildProcess(wakegate: words)
        }
        let process = try command(worker)
        try self.gateway.eventually("failed wakes") { try self.gateway.results("failed") > 0 }
        process.send(SIGTERM)
        try self.keep("worker", process.finish())
        for (name, token) in [("worker with a revoked token", revoked), ("worker with a bad token", Self.badBearer)] {
            try self.keep(name, command(token).finish())
        }
        let replies = #"{"aps":{"content-available":1},"replies":["500","garbage","cut"],"m":"\#(Self.payloadMark)"}"#
        let key = self.rig.folder.state.appendingPathComponent("provider.p8").path
        for index in 1...8 {
            let fields = [
                "apns-topic: \(WebhookRig.topic)",
                "authorization: \(try AskingGateway.authorization("KEY0000001", signedBy: key))",
            ]
            let device = "/3/device/\(WebhookRig.token(index))"
            _ = try self.gateway.ask(.edge, "POST", device, body: replies, fields: fields)
        }
        for _ in 1...3 { _ = try self.receiver.next() }
    }

    /// Sends malformed requests, and runs commands with the wrong files.
    func blunder() throws {
        let plain = try #require(self.gateway.curl(.plain, "").last).dropFirst("http://".count)
        let parts = plain.split(separator: ":")
        for request in [
            "GET / HTTP/1.1\\r\\nAuthorization: Bearer \(Self.badBearer)\\r\\n bad\\r\\n\\r\\n",
            "POST /3/device/\(Self.device) HTTP/9.9\\r\\nAuthorization: bearer \(Self.badJWT)\\r\\n\\r\\n",
            "\(Self.payloadMark) \(Self.badJWT)\\r\\n\\r\\n",
        ] {
            let script = "exec 3<>/dev/tcp/\(parts[0])/\(parts[1]); printf '\(request)' >&3; timeout 5 head -c 12 <&3"
            _ = try ChildProcess.run("bash", ["-c", script])
        }
        try self.reload()
        let long = String(repeating: Self.badJWT, count: 300)
        for listener in [ServedGateway.Listener.edge, .plain] {
            let device = "/3/device/\(Self.device)"
            _ = try? self.gateway.ask(listener, "POST", device, body: "{}", fields: ["authorization: bearer \(long)"])
        }
        let wrong = self.rig.folder.folder.appendingPathComponent("wrong.p8").path
        try Data("-----BEGIN \("PRIVATE KEY")-----\n\(Self.strayKey)\n".utf8).write(to: URL(fileURLWithPath: wrong))
        let named = ["--team", "TEAM123456", "--key-id", "KEY0000009"]
        try self.run(
            "push",
            ["push", "ab", "--topic", "t", "--provider-key", wrong, "--gateway", "https://localhost:1"] + named
        )
        try self.run("key add with a wrong file", ["key", "add", wrong, "--keys", self.keys.path] + named)
        let configuration = self.gateway.folder.appendingPathComponent("wakegate.json5").path
        for key in ["tls.key", "tls.certificate", "tls.clientCA", "topics.a.webhook={url:'https://a', secretFile"] {
            let value = key.contains("{") ? "\(key):'\(wrong)'}" : "\(key)=\(wrong)"
            try self.run("check of \(key)", ["serve", "--check", "--config", configuration, "--set", value])
        }
    }

    /// Reloads valid and invalid configurations that contain secrets.
    private func reload() throws {
        let file = self.gateway.configurationFile
        let before = try Data(contentsOf: file)
        var members = try JSONSerialization.jsonObject(with: before) as? [String: Any] ?? [:]
        self.credentials["query of a webhook"] = "planted-query"
        let url = "https://localhost:\(self.receiver.port)/?key=planted-query"
        for (name, others) in [("another", [:]), ("a bad", ["polisy": 1]), ("no", nil)] as [(String, [String: Any]?)] {
            members["topics"] =
                others == nil ? nil : ["com.example.planted": ["webhook": ["url": url, "allowPrivate": true]]]
            members.merge(others ?? [:]) { $1 }
            if others == nil { members["polisy"] = nil }
            try JSONSerialization.data(withJSONObject: members).write(to: file)
            try self.run("reload of \(name) webhook", ["reload", "--gateway", self.gateway.url(.admin)])
        }
        try before.write(to: file)
        #expect(self.output["reload of another webhook"]?.contains("changed: topics.com.example.planted") == true)
        #expect(self.output["reload of a bad webhook"]?.contains("polisy") == true)
    }

    private func push(
        _ body: String,
        _ proof: String,
        _ listener: ServedGateway.Listener = .edge
    ) throws -> Answer {
        let fields = ["apns-topic: \(Self.topic)", "authorization: \(proof)"]
        return try self.gateway.ask(listener, "POST", "/3/device/\(Self.device)", body: body, fields: fields)
    }

    private func issue(_ authority: TestAuthority, _ name: String) throws -> String {
        let file = try authority.issue("/CN=Apple Push Services: \(Self.topic)/UID=\(Self.topic)")
        self.credentials[name] = try Self.keyText(file)
        return file
    }

    private func run(_ name: String, _ arguments: [String]) throws {
        try self.keep(name, ChildProcess.wakegate(arguments))
    }

    private func keep(_ name: String, _ ended: ChildProcess.Ended) {
        self.output[name] = ended.output + ended.errors
    }

    // MARK: What is found

    /// Ends the gateway and keeps its output.
    func end() throws {
        self.gateway.process.send(SIGTERM)
        try self.keep("gateway", self.gateway.process.finish())
        let key = try Data(contentsOf: self.gateway.state.appendingPathComponent("token.key"))
        self.credentials["key of bearer tokens"] = key.base64EncodedString()
        self.credentials["key of bearer tokens, as hexadecimal"] = key.map { String(format: "%02x", $0) }.joined()
        self.credentials["key of bearer tokens, unchanged"] = String(decoding: key, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Returns the secrets that appear in the output, with the name of the output.
    func leaks() -> [String] {
        var secrets = self.credentials
        secrets["payload"] = Self.payloadMark
        secrets["device token"] = Self.device
        return self.output.flatMap { writer, text in
            secrets.filter { text.localizedCaseInsensitiveContains($0.value) }.map { "\(writer): \($0.key)" }
        }
    }

    /// Returns the credentials that appear in the state directory, databases included, outside their own file.
    func leaksInFiles() throws -> [String] {
        try self.files().flatMap { name, content in
            let secrets = name == "token.key" ? [:] : self.credentials
            return secrets.filter { content.range(of: Data($0.value.utf8)) != nil }.map { "\(name): \($0.key)" }
        }
    }

    /// Returns the files of the state directory that contain the payload.
    func filesWithPayload() throws -> [String] {
        try self.files().filter { $0.content.range(of: Data(Self.payloadMark.utf8)) != nil }.map(\.name)
    }

    private func files() throws -> [(name: String, content: Data)] {
        let names = try FileManager.default.subpathsOfDirectory(atPath: self.gateway.state.path)
        return names.compactMap { name in
            FileManager.default.contents(atPath: self.gateway.state.appendingPathComponent(name).path).map {
                (name, $0)
            }
        }
    }
}
