import Engine
import PostgresStore
import Testing
import WakeGateTestKit

/// Gateways whose commits wait for a standby that is away, and whose database has weak settings, on servers of their
/// own.
@Suite(.timeLimit(.minutes(15)))
struct WaitingStandbyTests {
    private let server: PostgresServer
    private let address: String

    private static let isWaiting = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

    init() throws {
        self.server = try PostgresServer(PostgresServer.Options(isDurable: false))
        self.address = try self.server.database()
    }

    private func set(_ setting: String, _ value: String) throws {
        try self.server.query("ALTER SYSTEM SET \(setting) = '\(value)'")
        try self.server.reload()
    }

    @Test("A topic and a value that wait for a standby do not end the gateway's number, and are there when it is back")
    func sharing() throws {
        let rig = try StoreRig(self.address)
        try self.set("synchronous_standby_names", "nobody")
        try self.server.wait(for: "nobody", of: "SHOW synchronous_standby_names")
        // Sessions read settings when they like: topics are made until one waits.
        var count = 0
        while try self.server.query(Self.isWaiting) == "f" {
            count += 1
            rig.submit(.addTopics(["topic\(count)"]))
            rig.submit(.keep(name: "name", [UInt8(truncatingIfNeeded: count)]))
        }
        let start = try rig.view().wall
        // Longer than a server may answer nothing on the connection that has the number.
        var wall = start
        while wall < start + 7000 { wall = try rig.view().wall }
        #expect(rig.hasStayed)
        try self.set("synchronous_standby_names", "")
        _ = try rig.wait("topics") { reply -> Bool? in
            if case .topics(let topics) = reply, topics.contains("topic\(count)") { true } else { nil }
        }
        let last = UInt8(truncatingIfNeeded: count)
        _ = try rig.wait("a value") { if case .value("name", [last]) = $0 { true } else { nil } }
        #expect(rig.hasStayed)
        rig.stop()
    }

    @Test("A weak synchronous_commit is overridden and told, also when it is set later", arguments: ["off", "local"])
    func durability(weak: String) throws {
        try self.server.query("ALTER ROLE postgres SET synchronous_commit = \(weak)")
        let rig = try StoreRig(self.address)
        try self.set("synchronous_standby_names", "nobody")
        let warning = try rig.warning()
        #expect(warning.contains("synchronous_commit is \(weak)") && warning.contains("127.0.0.1:\(self.server.port)"))
        // Commits wait for the standby, as they do with the setting that is on.
        var number = try self.commit(rig)
        while try self.server.query(Self.isWaiting) == "f" {
            if rig.isAnswered(number) {
                try rig.committed(number)
                number = try self.commit(rig)
            }
        }
        #expect(!rig.isAnswered(number))
        let other = weak == "off" ? "local" : "off"
        try self.server.query("ALTER ROLE postgres SET synchronous_commit = \(other)")
        #expect(try rig.warning().contains("synchronous_commit is \(other)"))
        try self.set("synchronous_standby_names", "")
        try rig.committed(number)
        rig.stop()
    }

    private func commit(_ rig: StoreRig) throws -> TransactionNumber {
        let (number, loaded) = try rig.load(.tokens([1]))
        var writes = ClusterWrites()
        writes.devices = [.of(1, loaded)]
        rig.submit(.commit(number, writes))
        return number
    }
}
