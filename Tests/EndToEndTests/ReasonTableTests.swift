import Foundation
import Testing

/// Which test produces each reason that APNs documents: every one of them stands in exactly one of the lists.
@Suite(
    "Every reason of APNs has a test that produces it, or is named as one we have no cause for",
    .serialized,
    .timeLimit(.minutes(2))
)
struct ReasonTableTests {
    /// What a request is answered that a malformed push is not: each is produced below.
    private static let produced: [String: Int] = [
        "DeviceTokenNotForTopic": 400, "Forbidden": 403, "Unregistered": 410, "TooManyRequests": 429,
    ]
    /// What is said in GOAWAY and is no answer.
    private static let inGoAway: Set<String> = ["IdleTimeout"]
    /// What only a gateway shows that ends or whose disk fails; `DrainTests.drain` and `FailingDiskTests.fullDisk`
    /// produce them, each with its status 503.
    private static let inTrouble: Set<String> = ["ServiceUnavailable", "Shutdown"]
    /// What a provider is told whose token is not taken; `ProviderTests` produces them, each with its status.
    private static let ofProviderTokens: Set<String> = [
        "ExpiredProviderToken", "InvalidProviderToken", "MissingProviderToken", "TooManyProviderTokenUpdates",
        "TopicDisallowed", "UnrelatedKeyIdInToken",
    ]
    /// What nothing can cause yet.
    private static let impossible: Set<String> = [
        // A provider's key has no environment of its own.
        "BadEnvironmentKeyIdInToken",
        // Client certificates are taken and prove nothing.
        "BadCertificate", "BadCertificateEnvironment",
        // A device token has no date of its own.
        "ExpiredToken",
        // No fault of the gateway is answered: it refuses with ServiceUnavailable, or ends.
        "InternalServerError",
    ]

    private let topic = "com.example.reasons"
    private let token = String(repeating: "4ea5", count: 16)

    @Test("Each reason that the gateway counts stands in one list, and a malformed push produces the rest")
    func complete() throws {
        let counted = try #require(RunningGateway().stats().value("pushes", "rejected") as? [String: Any])
        let malformed = Set(MalformedPushTests.cases.map(\.reason))
        let elsewhere = Self.inGoAway.union(Self.inTrouble).union(Self.ofProviderTokens).union(Self.produced.keys)
        #expect(malformed.isDisjoint(with: elsewhere))
        #expect(malformed.union(elsewhere).isDisjoint(with: Self.impossible))
        #expect(malformed.union(elsewhere).union(Self.impossible) == Set(counted.keys))
    }

    @Test("Each answer comes with its status and reason, and is counted", arguments: Self.produced.keys.sorted())
    func answer(reason: String) throws {
        let gateway = try RunningGateway(reason == "TooManyRequests" ? ["--set", "limits.devicesMax=1"] : [])
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let refused = try self.produce(reason, gateway)
        #expect(refused.reason == reason)
        #expect(refused.status == Self.produced[reason])
        #expect(try gateway.stats().integer("pushes", "rejected", reason) == 1)
    }

    @Test("A connection that is idle for too long is told so by GOAWAY as APNs words it")
    func idle() throws {
        let gateway = try RunningGateway(["--set", "limits.idleSeconds=1"])
        let file = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/goaway.py").path
        let ended = try ChildProcess.run(RunningGateway.python, [file, gateway.edge, gateway.certificateAuthority])
        #expect(ended.output == "connected\n0 {\"reason\":\"IdleTimeout\"}\n", "\(ended.errors)")
    }

    /// Causes a reason on a gateway that knows one device.
    private func produce(_ reason: String, _ gateway: RunningGateway) throws -> Answer {
        switch reason {
        case "DeviceTokenNotForTopic":
            return try gateway.push(self.token, topic: "com.example.other")
        case "Forbidden":
            let url = "http://\(gateway.plain)/3/device/\(self.token)"
            let options = ["--silent", "--noproxy", "*", "--include", "-H", "Host: attacker.example", "-d", "{}", url]
            return try Answer(curlOutput: ChildProcess.run("curl", options).output)
        case "TooManyRequests":
            return try gateway.push(String(repeating: "5c", count: 32), topic: self.topic)
        case "Unregistered":
            #expect(try gateway.edge("/v1/devices/\(self.token)", "-X", "DELETE").status == 204)
            let refused = try gateway.push(self.token, topic: self.topic)
            #expect(try #require(refused.integer("timestamp")) > 1_700_000_000_000)
            return refused
        default:
            throw ChildProcess.Failure(description: "nothing here produces \(reason)")
        }
    }
}
