import Foundation
import Testing

@Suite("Streams of a connection, as APNs allows them", .serialized, .timeLimit(.minutes(15)))
struct AppleStreamLimitTests {
    private static let topic = "com.example.app"
    private static let demand = ["--set", "appleStreamLimit=true"]

    /// What the gateway says to rounds of pushes, as `stream_limit.py` has them.
    private func said(
        _ gateway: RunningGateway,
        plain: Bool = false,
        certificate: String = "-",
        _ rounds: String...
    ) throws -> [String] {
        let file = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/stream_limit.py").path
        let place = plain ? [gateway.plain, "-"] : [gateway.edge, gateway.certificateAuthority]
        let ended = try ChildProcess.run(RunningGateway.python, [file] + place + [certificate, Self.topic] + rounds)
        #expect(ended.status == 0, "\(ended.errors)")
        return ended.output.split(separator: "\n").map(String.init)
    }

    @Test("By default a connection may have a thousand from the start")
    func unlimited() throws {
        let gateway = try RunningGateway()
        #expect(
            try self.said(gateway, "1000", "1001") == [
                "limit 1000", "answered 1000 200", "answered 1000 200", "refused 1",
            ]
        )
    }

    @Test("With appleStreamLimit it has one until its first push with a good token, and then a thousand")
    func limited() throws {
        let asking = try AskingGateway(Self.demand)
        try asking.useKey("KEY0000001", topic: Self.topic)
        let good = try asking.authorization("KEY0000001").dropFirst("Bearer ".count)
        let bad = try asking.authorization("KEY0000002").dropFirst("Bearer ".count)
        #expect(
            try self.said(asking.gateway, "3", "2:\(bad)", "3:\(good)", "100:\(good)", "100", "1001:\(good)") == [
                "limit 1", "answered 1 403", "refused 2", "answered 1 403", "refused 1", "limit 1000",
                "answered 1 200", "refused 2", "answered 100 200", "answered 100 403", "answered 1000 200", "refused 1",
            ]
        )
        // Each connection begins anew.
        #expect(
            try self.said(asking.gateway, "1", "2") == [
                "limit 1", "answered 1 403", "answered 1 403", "refused 1",
            ]
        )
    }

    @Test("Who shows a client certificate has a thousand from the start")
    func certificate() throws {
        let gateway = try RunningGateway(Self.demand + ["--set", "tls.clientCA=.wakegate/ca.pem"])
        let certificate = gateway.folder.appendingPathComponent(".wakegate/provider.pem").path
        #expect(try self.said(gateway, certificate: certificate, "9") == ["limit 1000", "answered 9 200"])
        #expect(try self.said(gateway, "2") == ["limit 1", "answered 1 403", "refused 1"])
    }

    @Test("A worker's connection has a thousand as soon as it has subscribed")
    func worker() throws {
        let gateway = try RunningGateway(Self.demand)
        #expect(
            try self.said(gateway, "subscribe", "5") == [
                "limit 1", "limit 1000", "answered 1 200", "answered 5 200",
            ]
        )
    }

    @Test("In cleartext, and where nobody asks for tokens, the first push counts")
    func plain() throws {
        let gateway = try RunningGateway(Self.demand)
        #expect(
            try self.said(gateway, plain: true, "2", "9") == [
                "limit 1", "limit 1000", "answered 1 200", "refused 1", "answered 9 200",
            ]
        )
    }
}
