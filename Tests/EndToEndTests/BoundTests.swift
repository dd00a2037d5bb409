import Foundation
import Glibc
import Testing
import WakeGateTestKit

/// The bounds that a provider or a worker is told of: what it is answered, and what the statistics say of it.
@Suite("Who passes a bound is told so", .serialized, .timeLimit(.minutes(15)))
struct BoundTests {
    private let topic = "com.example.bounds"

    struct Bound: CustomTestStringConvertible, Sendable {
        let name: String
        let value: Int
        let status: Int
        let reason: String
        let retryAfter: String
        /// Whether the push that is one too many is of another topic.
        var isOtherTopic = false
        var settings: [String] = []

        var testDescription: String { self.name }
    }

    /// A push that waits takes up 59 bytes, its payload and what belongs to it: two keep to a bound, a third does not.
    static let bounds = [
        Bound(name: "devicesMax", value: 2, status: 429, reason: "TooManyRequests", retryAfter: "300"),
        Bound(name: "devicesPerTopicMax", value: 2, status: 429, reason: "TooManyRequests", retryAfter: "300"),
        Bound(
            name: "topicsMax",
            value: 1,
            status: 429,
            reason: "TooManyRequests",
            retryAfter: "300",
            isOtherTopic: true
        ),
        Bound(
            name: "pendingBytesMax",
            value: 118,
            status: 503,
            reason: "ServiceUnavailable",
            retryAfter: "30",
            isOtherTopic: true,
            settings: ["limits.pendingTopicPercentMax=100"]
        ),
        Bound(
            name: "pendingTopicPercentMax",
            value: 50,
            status: 429,
            reason: "TooManyRequests",
            retryAfter: "30",
            settings: ["limits.pendingBytesMax=236"]
        ),
    ]

    private func token(_ number: Int) -> String { String(repeating: String(format: "%04x", number), count: 16) }

    @Test("A push past a bound is refused with the time to wait, as is a dry run, and counted", arguments: Self.bounds)
    func push(bound: Bound) throws {
        let settings = ["limits.\(bound.name)=\(bound.value)"] + bound.settings
        let gateway = try RunningGateway(settings.flatMap { ["--set", $0] })
        for number in 1...2 { #expect(try gateway.push(self.token(number), topic: self.topic).status == 200) }
        #expect(try gateway.stats().value("limits") is [String: Any])
        #expect(try gateway.stats().integer("limits", bound.name) == nil)
        let topic = bound.isOtherTopic ? "com.example.other" : self.topic
        for number in 1...2 {
            let refused = try gateway.push(self.token(3), topic: topic)
            #expect(refused.status == bound.status)
            #expect(refused.reason == bound.reason)
            #expect(refused.headers["retry-after"] == bound.retryAfter)
            let stats = try gateway.stats()
            #expect(stats.integer("limits", bound.name) == number)
            #expect(stats.integer("pushes", "rejected", bound.reason) == number)
        }
        let dryRun = try gateway.edge(
            "/3/device/\(self.token(3))",
            "-H",
            "apns-topic: \(topic)",
            "-H",
            "wakegate-dry-run: 1",
            "--data-binary",
            RunningGateway.payload
        )
        #expect(dryRun.status == bound.status)
        #expect(dryRun.headers["retry-after"] == bound.retryAfter)
        #expect(try gateway.stats().integer("limits", bound.name) == 2)
        // Who is there is served as before.
        #expect(try gateway.push(self.token(1), topic: self.topic).status == 200)
    }
}

@Suite("A credential that is shown on too many connections", .serialized, .timeLimit(.minutes(15)))
struct CredentialBoundTests {
    private static let one = ["--set", "limits.connectionsPerCredentialMax=1"]
    private let topic = "com.example.credentials"
    private let devices = ["01", "02", "03"].map { String(repeating: $0, count: 32) }

    /// One more with this token is answered 429, with the limit that it is past.
    private func expectRefused(_ path: String, of gateway: ServedGateway, _ token: String, _ limit: String) throws {
        let refused = try gateway.ask(.edge, "GET", path, token: token)
        #expect(refused.status == 429)
        #expect(refused.reason == "TooManyRequests")
        #expect(refused.headers["retry-after"] == "60")
        #expect((refused.value("message") as? String)?.contains(limit) == true)
    }

    @Test("A bearer token's connection too many is answered 429 and ends; other tokens, and the next, are good")
    func bearerToken() throws {
        let gateway = try ServedGateway(Self.one)
        let path = "/v1/topics/\(self.topic)/wakes?slots=0"
        let (token, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let (other, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let worker = try gateway.worker(self.topic, token: token)
        try self.expectRefused(path, of: gateway, token, "limits.connectionsPerCredentialMax")
        #expect(try gateway.ask(.plain, "GET", path, token: token).status == 429)
        #expect(try gateway.ask(.edge, "GET", path, token: other).reason == "BadQuery")
        let stats = try gateway.ask(.admin, "GET", "/v1/stats")
        #expect(stats.integer("limits", "connectionsPerCredentialMax") == 2)
        worker.process.send(SIGKILL)
        try gateway.eventually("room for another connection") {
            try gateway.ask(.edge, "GET", path, token: token).reason == "BadQuery"
        }
    }

    @Test("A bearer token's stream too many is answered 429; other tokens are good, and so is the next stream")
    func streamsOfToken() throws {
        let gateway = try ServedGateway(["--set", "limits.streamsPerCredentialMax=1"])
        let path = "/v1/topics/\(self.topic)/wakes"
        let (token, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let (other, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let worker = try gateway.worker(self.topic, token: token)
        try self.expectRefused(path, of: gateway, token, "limits.streamsPerCredentialMax")
        let another = try gateway.worker(self.topic, token: other)
        defer { another.process.send(SIGKILL) }
        #expect(try gateway.ask(.admin, "GET", "/v1/stats").integer("limits", "streamsPerCredentialMax") == 1)
        worker.process.send(SIGKILL)
        try gateway.eventually("the end of the stream") { try gateway.workerCount() == 1 }
        let next = try gateway.worker(self.topic, token: token)
        next.process.send(SIGKILL)
    }

    @Test("A bearer token's submission too many of a minute is answered 429, and another token's is not")
    func submissions() throws {
        let gateway = try ServedGateway(["--set", "limits.submissionsPerCredentialMax=1"])
        let path = "/v1/devices/\(self.devices[0])/tasks"
        let body = #"{"identifier":"com.example.credentials.refresh","kind":"appRefresh"}"#
        let (token, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let (other, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        func submit(_ token: String) throws -> Answer {
            try gateway.ask(.edge, "POST", path, token: token, body: body)
        }
        let registrations = "/v1/topics/\(self.topic)/devices"
        let registration = #"{"token":"\#(self.devices[0])"}"#
        #expect(try gateway.ask(.edge, "POST", registrations, token: token, body: registration).status == 201)
        // No task is permitted unless the configuration names it: what is refused is counted as well.
        #expect(try submit(token).reason == "NotPermitted")
        var refused = try submit(token)
        // The minute may have ended in between.
        if refused.status != 429 { refused = try submit(token) }
        #expect(refused.status == 429 && refused.reason == "TooManyRequests")
        #expect(refused.headers["retry-after"] == "60")
        #expect((refused.value("message") as? String)?.contains("limits.submissionsPerCredentialMax") == true)
        #expect(try submit(other).reason == "NotPermitted")
        let stats = try gateway.ask(.admin, "GET", "/v1/stats")
        #expect((stats.integer("limits", "submissionsPerCredentialMax") ?? 0) >= 1)
    }

    @Test("A stream too many that names a device is answered 429, and one that names another device is not")
    func streamsOfDevice() throws {
        let gateway = try RunningGateway(["--set", "limits.streamsPerDeviceMax=1"])
        let topic = "\(self.topic)/wakes?device=\(self.devices[0])"
        let path = "/v1/topics/\(topic)"
        let options = gateway.curlOptions.filter { $0 != "--max-time" && $0 != "60" } + ["--no-buffer"]
        let worker = try ChildProcess("curl", options + ["https://\(gateway.edge)\(path)"])
        try gateway.eventually("a worker") { try gateway.stats().integer("workers", "connected") == 1 }
        let refused = try gateway.edge("\(path)&device=\(self.devices[1])")
        #expect(refused.status == 429)
        #expect(refused.reason == "TooManyRequests")
        #expect((refused.value("message") as? String)?.contains("limits.streamsPerDeviceMax") == true)
        #expect(try gateway.stats().integer("limits", "streamsPerDeviceMax") == 1)
        worker.send(SIGKILL)
        try gateway.eventually("the end of the stream") { try gateway.stats().integer("workers", "connected") == 0 }
        let url = "https://\(gateway.edge)\(path)&device=\(self.devices[1])"
        let next = try ChildProcess("curl", options + [url])
        defer { next.send(SIGKILL) }
        try gateway.eventually("a worker") { try gateway.stats().integer("workers", "connected") == 1 }
    }

    @Test("A client certificate's connection too many is told so by GOAWAY, and the log says whose it is")
    func certificate() throws {
        let authority = try TestAuthority()
        let gateway = try RunningGateway(Self.one + ["--set", "tls.clientCA=\(authority.certificate)"])
        let certificate = try authority.issue("/CN=crowd/UID=\(self.topic)")
        let other = try authority.issue("/CN=other/UID=\(self.topic)")
        func connection(_ certificate: String, _ device: String) throws -> ChildProcess {
            let file = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/goaway.py").path
            let arguments = [file, gateway.edge, gateway.certificateAuthority, certificate, "/3/device/\(device)"]
            return try ChildProcess(RunningGateway.python, arguments)
        }
        let first = try connection(certificate, self.devices[0])
        #expect(try first.line() == "settings")
        #expect(try first.line() == "answer 200")
        let second = try connection(certificate, self.devices[1]).finish()
        #expect(second.output == "settings\ngoaway 0 0 {\"reason\":\"TooManyRequests\"}\n", "\(second.errors)")
        try gateway.eventually("a line in the log") {
            gateway.process.errors.contains("limits.connectionsPerCredentialMax")
        }
        try gateway.eventually("a line in the log") { gateway.process.errors.contains("CN=crowd") }
        let third = try connection(other, self.devices[2])
        #expect(try third.line() == "settings")
        #expect(try third.line() == "answer 200")
        #expect(try gateway.stats().integer("limits", "connectionsPerCredentialMax") == 1)
        first.send(SIGKILL)
        try gateway.eventually("room for another connection") {
            let next = try connection(certificate, self.devices[0])
            #expect(try next.line() == "settings")
            return try next.line() == "answer 200"
        }
    }

    @Test("A provider key's connection too many is answered 429 and ends, and its pushes are counted as rejected")
    func providerKey() throws {
        let asking = try AskingGateway(Self.one)
        // Once the second key is known, so is the first, and no connection has shown it.
        try asking.addKey("KEY0000001")
        try asking.useKey("KEY0000002", topic: self.topic)
        let gateway = asking.gateway
        func client(_ device: String, _ proof: String) throws -> ChildProcess {
            let file = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/push_frames.py").path
            let settings: [String: Any] = [
                "topic": self.topic, "batches": [[device]], "proof": proof, "until": "end",
            ]
            let json = String(decoding: try JSONSerialization.data(withJSONObject: settings), as: UTF8.self)
            return try ChildProcess(RunningGateway.python, [file, gateway.edge, gateway.certificateAuthority, json])
        }
        let proof = try asking.authorization("KEY0000001")
        let accepted = try #require(try gateway.stats().integer("pushes", "accepted"))
        let first = try client(self.devices[0], proof)
        defer { first.send(SIGKILL) }
        try gateway.eventually("a push with K1") {
            try gateway.stats().integer("pushes", "accepted") == accepted + 1
        }
        let texts = try client(self.devices[1], proof).finish().output
        #expect(texts.contains("429 1 TooManyRequests"), "\(texts)")
        #expect(texts.contains("goaway NO_ERROR 1"), "\(texts)")
        let stats = try gateway.stats()
        #expect((stats.integer("pushes", "rejected", "TooManyRequests") ?? 0) >= 1)
        #expect((stats.integer("limits", "connectionsPerCredentialMax") ?? 0) >= 1)
    }
}
