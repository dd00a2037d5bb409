import Engine
import PostgresStore
import Testing
import WakeGateTestKit

/// Gateways under attack by a role that may only connect to their database.
@Suite(.timeLimit(.minutes(15)))
struct IntruderTests {
    private let database: TestDatabase
    private let role: String

    /// "wake" in ASCII, and the class of all other locks.
    private static let gatewayLocks = 0x7761_6B65
    private static let otherLocks = 0x7761_6B66

    init() throws {
        self.database = try TestDatabase()
        self.role = "intruder_\(self.database.name)"
        try self.database.query("CREATE ROLE \(self.role) LOGIN")
    }

    private func intruder() throws -> PostgresClient {
        let address = try PostgresAddress(self.database.server.address(self.database.name, user: self.role))
        return try PostgresClient(address, application: "intruder")
    }

    @Test("A lock on the topics does not keep gateways from creating topics")
    func topics() throws {
        let rig = try StoreRig(self.database.address)
        let intruder = try self.intruder()
        try intruder.query("SELECT pg_advisory_lock(\(Self.otherLocks), 2)")
        rig.submit(.addTopics(["new"]))
        let expected = ["com.example.app", "new"]
        _ = try rig.wait("topics") { if case .topics(expected) = $0 { true } else { nil } }
        #expect(rig.hasStayed)
        withExtendedLifetime(intruder) {}
    }

    @Test("A lock on the tables allows a start on existing tables, and is named if they are missing")
    func tables() throws {
        let intruder = try self.intruder()
        try intruder.query("SELECT pg_advisory_lock(\(Self.otherLocks), 1)")
        var settings = StoreSettings(address: try PostgresAddress(self.database.address))
        settings.schemaLockMilliseconds = 300
        let error = #expect(throws: StoreError.self) { try PostgresStore(settings) {} }
        let message = error?.message ?? ""
        #expect(message.contains(self.role) && message.contains("pid \(intruder.backend)"), "\(message)")
        try intruder.query("SELECT pg_advisory_unlock_all()")
        try StoreRig(self.database.address).stop()
        try intruder.query("SELECT pg_advisory_lock(\(Self.otherLocks), 1)")
        try StoreRig(self.database.address).stop()
    }

    @Test("Locks on the numbers of future gateways are skipped")
    func numbers() throws {
        let first = try StoreRig(self.database.address)
        let next = first.number.rawValue + 1
        let intruder = try self.intruder()
        try intruder.query(
            "SELECT pg_advisory_lock(\(Self.gatewayLocks), n) FROM generate_series(\(next), \(next + 49)) n"
        )
        let second = try StoreRig(self.database.address)
        #expect(second.number.rawValue == next + 50)
    }

    @Test("A gateway whose lock is taken after its death is still found dead")
    func masked() throws {
        let survivor = try StoreRig(self.database.address)
        let intruder = try self.intruder()
        try intruder.query("SELECT pg_advisory_lock(\(Self.gatewayLocks), 999)")
        try self.database.query(
            """
            INSERT INTO wakegate.gateway (number, schema, since, reported_at, report, alive)
            VALUES (999, 3, 0, 0, '', true);
            INSERT INTO wakegate.connection (gateway, connection, alive) VALUES (999, 1, true)
            """
        )
        let dead = GatewayNumber(rawValue: 999)
        _ = try survivor.view { $0.dead == [dead] }
        #expect(try survivor.view().members.map(\.number) == [survivor.number])
        // A running gateway holds its own lock.
        let other = try StoreRig(self.database.address)
        try self.database.query("UPDATE wakegate.gateway SET reported_at = 0 WHERE number = \(other.number.rawValue)")
        _ = try survivor.view()
        #expect(try other.view().members.map(\.number) == [survivor.number, other.number])
    }

    @Test("A lock on burials delays a burial, and occupies no connection")
    func retirement() throws {
        let survivor = try StoreRig(self.database.address)
        let dying = try StoreRig(self.database.address)
        let dead = dying.number
        dying.stop()
        _ = try survivor.view { $0.dead == [dead] }
        let intruder = try self.intruder()
        try intruder.query("SELECT pg_advisory_lock(\(Self.otherLocks), 3)")
        for device in 1...4 {
            survivor.submit(.retire(dead))
            try survivor.write([device]) { .of($0, $1) }
        }
        #expect(try survivor.view().dead == [dead])
        try intruder.query("SELECT pg_advisory_unlock_all()")
        survivor.submit(.retire(dead))
        _ = try survivor.view { $0.dead.isEmpty }
    }

    @Test("Gateways drop notices that no gateway has sent, even a flood of them, and stay attached")
    func notices() throws {
        let rig = try StoreRig(self.database.address)
        let intruder = try self.intruder()
        let wake = "00000000-0000-4000-8000-000000000001"
        try intruder.query("SELECT pg_notify('wakegate', E'99\\ne \(rig.number.rawValue) \(wake) deadline')")
        try intruder.query("SELECT pg_notify('wakegate', E'99\\na \(wake)')")
        try intruder.query("SELECT pg_notify('wakegate', i || E'\\nr 0') FROM generate_series(1, 20000) i")
        // Notices of the role that owns the tables are handled, before and after the flood.
        let deadline = 200
        var isHeard = false
        for _ in 0..<deadline where !isHeard {
            try self.database.query("SELECT pg_notify('wakegate', E'98\\nc \(String(repeating: "ab", count: 32)) 0')")
            _ = try rig.view()
            isHeard = rig.takeNotices().contains { notice in
                switch notice {
                case .conditions: return true
                case .ready, .ended, .answeredLate:
                    Issue.record("\(notice) is received")
                    return false
                }
            }
        }
        #expect(isHeard)
        rig.submit(.addTopics(["new"]))
        let expected = ["com.example.app", "new"]
        _ = try rig.wait("topics") { if case .topics(expected) = $0 { true } else { nil } }
        #expect(rig.hasStayed)
    }
}

@Suite
struct NoticeSendersTests {
    private func notice(_ sender: Int32, _ payload: String = "") -> PostgresNotification {
        PostgresNotification(channel: "wakegate", payload: payload, sender: sender)
    }

    @Test("Notices wait until their session is checked, and are delivered in order if it is a gateway's")
    func checked() {
        var senders = NoticeSenders()
        #expect(senders.mayHear(self.notice(1, "a")) == false)
        #expect(senders.mayHear(self.notice(2, "b")) == false)
        #expect(senders.takeUnchecked() == [1, 2])
        #expect(senders.mayHear(self.notice(1, "c")) == false)
        #expect(senders.mayHear(self.notice(3, "d")) == false)
        #expect(senders.takeUnchecked() == nil, "one question at a time")
        let checked = senders.checked(trusted: [1])
        #expect(checked.map(\.payload) == ["a", "c"])
        #expect(senders.mayHear(self.notice(1)) == true)
        #expect(senders.mayHear(self.notice(2)) == false)
        #expect(senders.takeUnchecked() == [3])
        #expect(senders.checked(trusted: []) == [])
    }

    @Test("A session is checked again after a while, because its number may be reused")
    func again() {
        var senders = NoticeSenders()
        senders.timePassed(0)
        _ = senders.mayHear(self.notice(1))
        _ = senders.takeUnchecked()
        _ = senders.checked(trusted: [1])
        senders.timePassed(1)
        senders.timePassed(1 + NoticeSenders.checkMilliseconds)
        #expect(senders.takeUnchecked() == [1])
        _ = senders.checked(trusted: [])
        #expect(senders.mayHear(self.notice(1)) == false)
    }

    @Test("More dropped notices per second than the limit are a flood, and the kept senders are limited")
    func flood() {
        var senders = NoticeSenders()
        senders.timePassed(0)
        for sender in 0..<Int32(NoticeSenders.countMax + NoticeSenders.droppedMax) {
            _ = senders.mayHear(self.notice(sender))
        }
        #expect(!senders.isFlooded)
        _ = senders.mayHear(self.notice(-1))
        #expect(senders.isFlooded)
        let unchecked = senders.takeUnchecked()
        #expect(unchecked?.count == NoticeSenders.countMax)
        senders.timePassed(1000)
        #expect(!senders.isFlooded)
    }
}
