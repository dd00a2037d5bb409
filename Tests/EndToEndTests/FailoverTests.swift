import Foundation
import Testing
import WakeGateTestKit

@Suite("Gateways on a primary with standbys, of which one takes over", .timeLimit(.minutes(15)))
struct FailoverTests {
    private let topic = "com.example.failover"

    private func token(_ number: Int) -> String { String(format: "%064x", number) }

    /// Pushes with an apns-id, again and again until it is answered 200, at one gateway after the other.
    private func push(_ number: Int, to gateways: [RunningGateway]) throws -> String {
        let name = String(format: "00000000-0000-4000-8000-%012x", number)
        var place = number
        try gateways[0].eventually("push \(number)") {
            place += 1
            let gateway = gateways[place % gateways.count]
            let answer = try gateway.edge(
                "/3/device/\(self.token(number))",
                "-H",
                "apns-topic: \(self.topic)",
                "-H",
                "apns-push-type: background",
                "-H",
                "apns-priority: 5",
                "-H",
                "apns-id: \(name)",
                "--data-binary",
                RunningGateway.payload
            )
            #expect(answer.status == 200 || answer.status == 503, "\(answer.body)")
            return answer.status == 200
        }
        return name
    }

    @Test("Three gateways go on with the standby that is promoted, and nothing that was acknowledged is gone")
    func failover() throws {
        let primary = try PostgresServer()
        let standbys = [try primary.makeStandby("one"), try primary.makeStandby("two")]
        let database = try #require(try primary.database().split(separator: "/").last)
        let hosts = ([primary] + standbys).map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
        let store = "postgresql://postgres@\(hosts)/\(database)?target_session_attrs=read-write"
        let gateways = try (0..<3).map { _ in try RunningGateway(["--set", "store=\(store)"]) }
        let worker = try gateways[2].curlWorker(topic: self.topic)
        var acknowledged = try (0..<30).map { try self.push($0, to: gateways) }
        _ = try #require(try worker.next())

        primary.kill()
        let received = "SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::bigint"
        let positions = try standbys.map { Int(try $0.query(received)) ?? 0 }
        let (next, other) = positions[0] >= positions[1] ? (standbys[0], standbys[1]) : (standbys[1], standbys[0])
        try next.query("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
        try next.promote()
        try other.follow(next)
        acknowledged += try (30..<60).map { try self.push($0, to: gateways) }

        for gateway in gateways {
            try gateway.eventually("ready") { try gateway.admin("/readyz").status == 200 }
            #expect(gateway.process.errors.contains("storeDetached"))
            try gateway.eventually("everybody's pushes") {
                try gateway.stats().integer("pushes", "accepted") == acknowledged.count
            }
            for name in acknowledged { #expect(try gateway.admin("/v1/pushes/\(name)").status == 200, "\(name)") }
        }
        // What was in flight at the gateway that has the worker was lost with its number, and launches again.
        _ = try #require(try worker.next())
    }
}
