import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("A credential that is shown on too many connections", .serialized, .timeLimit(.minutes(15)))
struct CredentialBoundTests {
    private static let one = ["--set", "limits.connectionsPerCredentialMax=1"]
    private let topic = "com.example.credentials"
    private let devices = ["01", "02", "03"].map { String(repeating: $0, count: 32) }

    /// Expects that one more request with this token is answered with 429 and the name of the exceeded limit.
    private func expectRefused(_ path: String, of gateway: ServedGateway, _ token: String, _ limit: String) throws {
        let refused = try gateway.ask(.edge, "GET", path, token: token)
        #expect(refused.status == 429)
        #expect(refused.reason == "TooManyRequests")
        #expect(refused.headers["retry-after"] == "60")
        #expect((refused.value("message") as? String)?.contains(limit) == true)
    }

    @Test("A bearer token's excess connection is answered 429 and ends; others, and the next one, are accepted")
    func bearerToken() throws {
        let gateway = try ServedGateway(Self.one)
        let path = "/v1/topics/\(self.topic)/wakes?slots=0"
        let (token, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let (other, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let worker = try gateway.worker(self.topic, token: token)
        try self.expectRefused(path, of: gateway, token, "limits.connectionsPerCredentialMax")
        #expect(try gateway.ask(.plain, "GET", path, token: token).status == 429)
        #expect(try gateway.ask(.edge, "GET", path, token: other).reason == "BadQuery")
        let stats = try gateway.stats()
        #expect(stats.integer("limits", "connectionsPerCredentialMax") == 2)
        worker.process.send(SIGKILL)
        try gateway.eventually("a free place for another connection") {
            try gateway.ask(.edge, "GET", path, token: token).reason == "BadQuery"
        }
    }

    @Test("An excess stream that names a device is answered 429, and one that names another device is not")
    func streamsOfDevice() throws {
        let gateway = try RunningGateway(["--set", "limits.streamsPerDeviceMax=1"])
        let topic = "\(self.topic)/wakes?device=\(self.devices[0])"
        let path = "/v1/topics/\(topic)"
        let options = gateway.curlOptions.filter { $0 != "--max-time" && $0 != "60" } + ["--no-buffer"]
        let worker = try ChildProcess("curl", options + ["https://\(gateway.edge)\(path)"])
        try gateway.eventually("a worker") { try gateway.workerCount() == 1 }
        let refused = try gateway.edge("\(path)&device=\(self.devices[1])")
        #expect(refused.status == 429)
        #expect(refused.reason == "TooManyRequests")
        #expect((refused.value("message") as? String)?.contains("limits.streamsPerDeviceMax") == true)
        #expect(try gateway.stats().integer("limits", "streamsPerDeviceMax") == 1)
        worker.send(SIGKILL)
        try gateway.eventually("the end of the stream") { try gateway.workerCount() == 0 }
        let url = "https://\(gateway.edge)\(path)&device=\(self.devices[1])"
        let next = try ChildProcess("curl", options + [url])
        defer { next.send(SIGKILL) }
        try gateway.eventually("a worker") { try gateway.workerCount() == 1 }
    }

    @Test("A client certificate's excess connection gets a GOAWAY with the reason, and the log names the certificate")
    func certificate() throws {
        let authority = try TestAuthority()
        let gateway = try RunningGateway(Self.one + ["--set", "tls.clientCA=\(authority.certificate)"])
        let certificate = try authority.issue("/CN=crowd/UID=\(self.topic)")
        let other = try authority.issue("/CN=other/UID=\(self.topic)")
        func connection(_ certificate: String, _ device: String) throws -> ChildProcess {
            try gateway.hearing(certificate, "/3/device/\(device)")
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
        try gateway.eventually("a free place for another connection") {
            let next = try connection(certificate, self.devices[0])
            #expect(try next.line() == "settings")
            return try next.line() == "answer 200"
        }
    }

    @Test("A provider key's connection too many is answered 429 and ends, and its pushes are counted as rejected")
    func providerKey() throws {
        let asking = try AskingGateway(Self.one)
        // Once the second key is known, so is the first, although no connection has used it.
        try asking.addKey("KEY0000001")
        try asking.useKey("KEY0000002", topic: self.topic)
        let gateway = asking.gateway
        func client(_ device: String, _ proof: String) throws -> ChildProcess {
            let settings: [String: Any] = [
                "topic": self.topic, "batches": [[device]], "proof": proof, "until": "end",
            ]
            return try FaultyGateway.client(settings, of: gateway)
        }
        let proof = try asking.authorization("KEY0000001")
        let accepted = try #require(try gateway.stats().integer("pushes", "accepted"))
        let first = try client(self.devices[0], proof)
        defer { first.send(SIGKILL) }
        try gateway.eventually("a push with K1") { try gateway.stats().integer("pushes", "accepted") == accepted + 1 }
        let texts = try client(self.devices[1], proof).finish().output
        #expect(texts.contains("429 1 TooManyRequests"), "\(texts)")
        #expect(texts.contains("goaway NO_ERROR 1"), "\(texts)")
        let stats = try gateway.stats()
        #expect((stats.integer("pushes", "rejected", "TooManyRequests") ?? 0) >= 1)
        #expect((stats.integer("limits", "connectionsPerCredentialMax") ?? 0) >= 1)
    }
}
