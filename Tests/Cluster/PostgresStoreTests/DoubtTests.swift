import Engine
import Platform
import Policy
import PostgresStore
import Testing
import WakeGateTestKit

/// Commits whose answers are lost, each suite on its own server, because the setting they wait for applies to the whole
/// server.
@Suite(.timeLimit(.minutes(15)))
struct DoubtTests {
    private let server: PostgresServer
    private let rig: StoreRig
    private let address: String

    init() throws {
        self.server = try PostgresServer(PostgresServer.Options(isDurable: false))
        self.address = try self.server.database()
        self.rig = try StoreRig(self.address)
        try self.rig.write([1]) { .of($0, $1) }
    }

    /// Commits until a commit waits for a standby. Sessions may read new settings with a delay.
    ///
    /// - Returns: the commit that waits, and the number of commits, including this one.
    /// - Throws: an error if no commit waits within a minute.
    private func commit(_ record: UInt8) throws -> (number: TransactionNumber, count: Int64) {
        var count: Int64 = 0
        let limit = SystemClock.monotonic + StoreRig.waitSeconds * 1000
        while true {
            let (number, loaded) = try self.rig.load(.tokens([1]))
            self.rig.commit(number, [.of(1, loaded, record: record)], accepted: 1)
            count += 1
            while !self.rig.isAnswered(number) {
                let waiting = "SELECT count(*) FROM pg_stat_activity WHERE \(Self.isWaiting)"
                if try self.server.query(waiting) == "1" { return (number, count) }
                try #require(SystemClock.monotonic < limit, "no commit waits for a standby")
            }
            try self.rig.committed(number)
        }
    }

    private static let isWaiting = "wait_event = 'SyncRep' AND query LIKE '%COMMIT%'"

    @Test("A commit that happened but whose answer was lost is reported as committed")
    func happened() throws {
        try self.server.set("synchronous_standby_names", "nobody")
        let (number, count) = try self.commit(2)
        try self.server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE \(Self.isWaiting)")
        try self.server.set("synchronous_standby_names", "")
        try self.rig.committed(number)
        #expect(try self.rig.find(.tokens([1])).devices.first?.record == [2])
        try self.rig.write([2]) { .of($0, $1) }
        #expect(try self.rig.counts().total.accepted == 2 + count)
        self.rig.stop()
    }

    @Test("A commit whose connection is lost before it happened is refused, and did not happen")
    func didNotHappen() throws {
        let (number, loaded) = try self.rig.load(.tokens([1]))
        // Another session holds a lock on the mark's row, so the transaction cannot end.
        let blocker = try PostgresClient(PostgresAddress(self.address), application: "blocker")
        try blocker.query("BEGIN")
        try blocker.query("SELECT FROM wakegate.connection WHERE gateway = \(self.rig.number.rawValue) FOR UPDATE")
        self.rig.commit(number, [.of(1, loaded, record: 3)], accepted: 1)
        let isBlocked = "wait_event_type = 'Lock' AND query LIKE '%mark%'"
        try self.server.wait(for: "1", of: "SELECT count(*) FROM pg_stat_activity WHERE \(isBlocked)")
        try self.server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE \(isBlocked)")
        try blocker.query("ROLLBACK")
        let failure = #expect(throws: ClusterFailure.self) { try self.rig.committed(number) }
        #expect(failure?.refusal != nil)
        #expect(try self.rig.find(.tokens([1])).devices.first?.record == [1])
        #expect(try self.rig.counts().total.accepted == 1)
        self.rig.stop()
    }

    @Test("A commit that the server reports as not replicated is refused, and its counts stay balanced")
    func unreplicated() throws {
        try self.server.set("synchronous_standby_names", "nobody")
        let (number, count) = try self.commit(4)
        try self.server.query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE \(Self.isWaiting)")
        let failure = #expect(throws: ClusterFailure.self) { try self.rig.committed(number) }
        #expect(failure?.refusal != nil)
        try self.server.set("synchronous_standby_names", "")
        // The row was written on this server, together with its counts.
        try self.rig.write([2]) { .of($0, $1) }
        #expect(try self.rig.counts().total.accepted == 2 + count)
        self.rig.stop()
    }
}

/// Gateways whose commits wait for an absent standby, and whose database has weak settings. They run on their own
/// servers.
@Suite(.timeLimit(.minutes(15)))
struct WaitingStandbyTests {
    private let server: PostgresServer
    private let address: String

    private static let isWaiting = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

    init() throws {
        self.server = try PostgresServer(PostgresServer.Options(isDurable: false))
        self.address = try self.server.database()
    }

    @Test("A topic and a value that wait for a standby do not detach the gateway, and are stored when it is back")
    func sharing() throws {
        let rig = try StoreRig(self.address)
        try self.server.set("synchronous_standby_names", "nobody")
        // Sessions may read new settings with a delay, so the test creates topics until one waits.
        var count = 0
        while try self.server.query(Self.isWaiting) == "f" {
            count += 1
            rig.submit(.addTopics(["topic\(count)"]))
            rig.submit(.storeValue(name: "name", [UInt8(truncatingIfNeeded: count)]))
        }
        let start = try rig.view().wall
        // Longer than the server may stay silent on the connection that holds the number.
        var wall = start
        while wall < start + 7000 { wall = try rig.view().wall }
        #expect(rig.hasStayed)
        try self.server.set("synchronous_standby_names", "")
        _ = try rig.wait("topics") { reply -> Bool? in
            if case .topics(let topics) = reply, topics.contains("topic\(count)") { true } else { nil }
        }
        let last = UInt8(truncatingIfNeeded: count)
        _ = try rig.wait("a value") { if case .value("name", [last]) = $0 { true } else { nil } }
        #expect(rig.hasStayed)
        rig.stop()
    }

    @Test("A weak synchronous_commit is overridden with a warning, even when set later", arguments: ["off", "local"])
    func durability(weak: String) throws {
        try self.server.query("ALTER ROLE postgres SET synchronous_commit = \(weak)")
        let rig = try StoreRig(self.address)
        try self.server.set("synchronous_standby_names", "nobody")
        let warning = try rig.warning()
        #expect(warning.contains("synchronous_commit is \(weak)") && warning.contains("127.0.0.1:\(self.server.port)"))
        // Commits wait for the standby, as they do with the setting turned on.
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
        try self.server.set("synchronous_standby_names", "")
        try rig.committed(number)
        rig.stop()
    }

    private func commit(_ rig: StoreRig) throws -> TransactionNumber {
        let (number, loaded) = try rig.load(.tokens([1]))
        rig.commit(number, [.of(1, loaded)])
        return number
    }
}
