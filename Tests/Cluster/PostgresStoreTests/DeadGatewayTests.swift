import Engine
import Glibc
import Policy
import Testing
import WakeGateTestKit

@Suite(.timeLimit(.minutes(15)))
struct DeadGatewayTests {
    private let database: TestDatabase

    init() throws { self.database = try TestDatabase() }

    /// Ends the session that holds the number of a gateway.
    private func cut(_ number: GatewayNumber) throws {
        try self.database.query(
            """
            SELECT pg_terminate_backend(pid) FROM pg_locks
            WHERE locktype = 'advisory' AND objid = \(number.rawValue)
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """
        )
    }

    @Test("A dead gateway is found, its wakes are returned, and its counts stay")
    func gone() throws {
        let survivor = try StoreRig(self.database.address)
        let dying = try StoreRig(self.database.address)
        let dead = dying.number
        try dying.write([1, 2, 3]) { .of($0, $1, launched: [(.numbered(UInt64($0)), $1.now + 1000)]) }
        try survivor.write([4]) { .of($0, $1, launched: [(.numbered(4), $1.now + 1000)]) }
        #expect(try survivor.view().members.map(\.number) == [survivor.number, dead])
        dying.stop()
        _ = try survivor.view { $0.dead == [dead] }
        // Too early, because there are still wakes.
        survivor.submit(.retire(dead))
        let (first, found) = try survivor.load(.selection(.wakes(of: dead, countMax: 2)))
        #expect(found.devices.map(\.token) == [.numbered(1), .numbered(2)])
        #expect(Set(found.heldWakes) == [.numbered(1), .numbered(2)])
        #expect(found.hasMore)
        survivor.commit(first, [1, 2].map { .of($0, found, ended: [.numbered(UInt64($0))]) })
        try survivor.committed(first)
        #expect(try survivor.view().dead == [dead])
        let (second, rest) = try survivor.load(.selection(.wakes(of: dead, countMax: 2)))
        #expect(rest.heldWakes == [.numbered(3)])
        #expect(!rest.hasMore)
        survivor.commit(second, [.of(3, rest, ended: [.numbered(3)])])
        try survivor.committed(second)
        #expect(try survivor.find(.selection(.wakes(of: dead, countMax: 2))).devices.isEmpty)
        survivor.submit(.retire(dead))
        _ = try survivor.view { $0.dead.isEmpty }
        #expect(try survivor.counts().total.accepted == 4)
        let rows = try self.database.query("SELECT count(*) FROM wakegate.books WHERE gateway = \(dead.rawValue)")
        #expect(rows == "0")
    }

    @Test("A load of named devices finds their wakes of dead gateways")
    func lostWakes() throws {
        let survivor = try StoreRig(self.database.address)
        let dying = try StoreRig(self.database.address)
        try dying.write([1, 2, 3]) { .of($0, $1, launched: [(.numbered(UInt64($0)), $1.now + 1000)]) }
        try survivor.write([4]) { .of($0, $1, launched: [(.numbered(4), $1.now + 1000)]) }
        var plan = LoadPlan.tokens([1, 4])
        plan.wakes = [.numbered(2)]
        plan.findsLostWakes = true
        #expect(try survivor.find(3, plan).heldWakes.isEmpty)
        dying.stop()
        _ = try survivor.view { $0.dead == [dying.number] }
        #expect(Set(try survivor.find(3, plan).heldWakes) == [.numbered(1), .numbered(2)])
        plan.passesOverLocked = true
        #expect(Set(try survivor.find(3, plan).heldWakes) == [.numbered(1), .numbered(2)])
        plan.findsLostWakes = false
        #expect(try survivor.find(3, plan).heldWakes.isEmpty)
    }

    @Test("A gateway that attaches again adds the topics that the database has lost, under their numbers")
    func lostTopics() throws {
        let rig = try StoreRig(self.database.address)
        rig.submit(.addTopics(["com.example.second", "com.example.third"]))
        let topics = try rig.wait("topics") { reply in
            if case .topics(let topics) = reply, topics.count == 3 { topics } else { nil }
        }
        try self.database.query("DELETE FROM wakegate.topic WHERE id > 0")
        try self.cut(rig.number)
        try rig.attached()
        #expect(rig.attachment.topics == topics)
        let rows = "SELECT string_agg(name, ' ' ORDER BY id) FROM wakegate.topic WHERE id < 3"
        #expect(try self.database.query(rows) == topics.joined(separator: " "))
    }

    /// Returns refused pushes with one reason, in the format that gateways write.
    private func refused(_ count: UInt8) -> [UInt8] { [3] + Array("Why".utf8) + [count, 0, 0, 0, 0, 0, 0, 0] }

    @Test("Refused pushes of dead gateways are counted once, in one common row")
    func refusals() throws {
        let survivor = try StoreRig(self.database.address)
        for count: UInt8 in [2, 3] {
            let dying = try StoreRig(self.database.address)
            // Of the rows that one gateway has written, the last one counts, no matter which connection wrote it.
            for written in [1, count] {
                let (number, _) = try dying.load(.tokens([]))
                var writes = ClusterWrites()
                writes.rejections = [(topic: 0, content: self.refused(written))]
                dying.submit(.commit(number, writes))
                try dying.committed(number)
            }
            dying.stop()
            _ = try survivor.view { $0.dead == [dying.number] }
            survivor.submit(.retire(dying.number))
            _ = try survivor.view { $0.dead.isEmpty }
        }
        #expect(try survivor.counts().rejections.map(\.content) == [self.refused(5)])
        let rows = try self.database.query("SELECT count(*) FROM wakegate.rejection")
        #expect(rows == "1")
    }

    @Test("A gateway that lost its number attaches under a new one, and its open commit did not happen")
    func cutOff() throws {
        let rig = try StoreRig(self.database.address)
        let before = rig.number
        let (open, loaded) = try rig.load(.tokens([1]))
        try self.cut(before)
        _ = try rig.detached()
        let failure = #expect(throws: ClusterFailure.self) { try rig.committed(open) }
        #expect(failure?.refusal != nil)
        rig.commit(open, [.of(1, loaded)])
        try rig.attached()
        #expect(rig.number > before)
        #expect(rig.attachment.topics == ["com.example.app"])
        #expect(try rig.find(.tokens([1])).devices.isEmpty)
        _ = try rig.view { $0.dead == [before] }
    }

    @Test("A frozen gateway commits nothing after it resumes, even before it learns that it was declared dead")
    func frozen() throws {
        let survivor = try StoreRig(self.database.address)
        let frozen = try StoreRig(self.database.address)
        let dead = frozen.number
        let (open, loaded) = try frozen.load(.tokens([1]))
        frozen.hold()
        // The next view stops the store's thread before the thread receives anything else.
        frozen.submit(.report(GatewayReport(name: "frozen", version: "1")))
        _ = try frozen.wait("view") { if case .view(let view) = $0 { view } else { nil } }
        frozen.commit(open, [.of(1, loaded, launched: [(.numbered(1), loaded.now + 1000)])])
        _ = try survivor.view { $0.dead == [dead] }
        #expect(try survivor.view().members.map(\.number) == [survivor.number])
        frozen.letGo()
        #expect(throws: ClusterFailure.self) { try frozen.committed(open) }
        try frozen.attached()
        #expect(frozen.number > dead)
        #expect(try survivor.find(.tokens([1])).devices.isEmpty)
    }

    @Test("A fenced connection's commit is refused by the database itself")
    func fenced() throws {
        let rig = try StoreRig(self.database.address)
        let before = rig.number
        let (open, loaded) = try rig.load(.tokens([1]))
        try self.database.query("SELECT wakegate.leave(\(before.rawValue))")
        rig.commit(open, [.of(1, loaded)])
        #expect(throws: ClusterFailure.self) { try rig.committed(open) }
        try rig.attached()
        #expect(rig.number > before)
        #expect(try rig.find(.tokens([1])).devices.isEmpty)
    }

    /// Returns true if the session that holds the number of a gateway is connected through the server's socket file.
    private func isLocal(_ number: GatewayNumber) throws -> Bool {
        let sql = """
            SELECT a.client_addr IS NULL FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
            WHERE l.locktype = 'advisory' AND l.objid = \(number.rawValue) AND a.datname = current_database()
            """
        return try self.database.query(sql) == "t"
    }

    @Test("A gateway declared dead reconnects to the same server; after a lost connection it tries another one first")
    func whichServer() throws {
        let folder = try self.database.server.query("SHOW unix_socket_directories").replacing("/", with: "%2F")
        let host = "@127.0.0.1:\(self.database.server.port)"
        let both = self.database.address.replacing(host, with: "\(host),\(folder):\(self.database.server.port)")
        let rig = try StoreRig(both)
        #expect(try !self.isLocal(rig.number))
        let before = rig.number
        try self.database.query("SELECT wakegate.leave(\(before.rawValue))")
        rig.submit(.report(GatewayReport(name: "gateway", version: "1")))
        try rig.attached()
        #expect(rig.number > before)
        #expect(try !self.isLocal(rig.number))
        try self.cut(rig.number)
        try rig.attached()
        #expect(try self.isLocal(rig.number))
    }
}

@Suite("A gateway that stops", .timeLimit(.minutes(15)))
struct StoppingGatewayTests {
    /// Returns the number of connections that the server has received, including the connection of this query.
    private func received(_ server: PostgresServer, _ mark: String) throws -> Int {
        try server.query("DO $$ BEGIN RAISE LOG '\(mark)'; END $$")
        while !server.log.contains("LOG:  \(mark)") { sched_yield() }
        return server.log.ranges(of: "connection received").count
    }

    @Test("A gateway that stops opens none of its closed connections again")
    func connections() throws {
        let options = PostgresServer.Options(isDurable: false, settings: ["log_connections": "on"])
        let server = try PostgresServer(options)
        let rig = try StoreRig(try server.database())
        // The connections for queries and topics are open when these are answered.
        _ = try rig.counts()
        let before = try self.received(server, "before")
        rig.stop()
        #expect(try self.received(server, "after") == before + 1)
    }
}
