import Engine
import PostgresStore
import Testing
import WakeGateTestKit

@Suite("Connections that are lost, and servers that change")
struct LossTests {
    @Test("A server killed during a commit leaves its outcome unknown")
    func killed() throws {
        let server = try PostgresServer()
        try server.query("CREATE TABLE t (x int)")
        // Commits wait for a standby that does not exist.
        try server.set("synchronous_standby_names", "ANY 1 (nobody)")
        let link = try LinkUnderTest.connected(server.address())
        link.send { link in
            link.query("BEGIN")
            link.query("INSERT INTO t VALUES (1)")
            link.query("COMMIT")
        }
        try server.wait(for: "1", of: "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        server.kill()
        #expect(link.outcome() == nil)
        #expect(link.link.unfinished.results.count < 3)
        #expect(link.link.unfinished.failure?.kind ?? .connectionLost == .connectionLost)
        let failure = try #require(link.link.failure)
        #expect(failure.kind == .connectionLost)
        #expect(failure.server == "127.0.0.1:\(server.port)")
        #expect(link.link.next() == nil)
        try server.start()
        // The commit is durable on this server. It only waited for the standby.
        #expect(try server.query("SELECT count(*) FROM t") == "1")
        #expect(try LinkUnderTest.connected(server.address()).link.phase == .ready)
    }

    @Test("An idle session learns why it ends")
    func idle() throws {
        let server = try PostgresServer.shared()
        let link = try LinkUnderTest.connected(
            server.address(),
            settings: [PostgresSetting("idle_session_timeout", "50")]
        )
        link.waitForLoss()
        #expect(link.link.failure?.kind == .idleTimeout)
        #expect(link.link.failure?.state == "57P05")
        let idle = try LinkUnderTest.connected(
            server.address(),
            settings: [PostgresSetting("idle_in_transaction_session_timeout", "50")]
        )
        _ = idle.run { $0.query("BEGIN") }
        idle.waitForLoss()
        #expect(idle.link.failure?.kind == .idleTimeout)
    }

    @Test("A server that is stopped and started again")
    func restarted() throws {
        let server = try PostgresServer(PostgresServer.Options(isDurable: false))
        let link = try LinkUnderTest.connected(server.address())
        let client = try PostgresClient(PostgresAddress(server.address()), application: "test")
        server.stop()
        link.waitForLoss()
        #expect(link.link.failure?.kind == .adminShutdown)
        let error = try #require(throws: PostgresError.self) { try client.query("SELECT 1") }
        #expect(error.kind == .adminShutdown || error.kind == .connectionLost)
        #expect(throws: PostgresError.self) { try client.query("SELECT 1") }
        try server.start()
        #expect(try PostgresClient(PostgresAddress(server.address()), application: "test").query("SELECT 1").count == 1)
    }

    @Test("The primary is found among several servers, also after a promotion")
    func failover() throws {
        let primary = try PostgresServer(PostgresServer.Options(isDurable: false))
        let standby = try primary.makeStandby()
        let address =
            "postgresql://postgres@127.0.0.1:\(standby.port),127.0.0.1:\(primary.port)/postgres"
            + "?target_session_attrs=read-write"
        let link = try LinkUnderTest.connected(address)
        #expect(link.link.server == "127.0.0.1:\(primary.port)")
        #expect(link.run { $0.query("CREATE TABLE t (x int)") }.failure == nil)
        #expect(link.run { $0.query("INSERT INTO t VALUES (1)") }.failure == nil)
        let reader = try LinkUnderTest.connected(standby.address())
        let refused = reader.run { $0.query("CREATE TABLE other (x int)") }.failure
        #expect(refused?.kind == .readOnly)
        #expect(refused?.remedy.contains("target_session_attrs=read-write") == true)

        primary.kill()
        link.waitForLoss()
        let none = LinkUnderTest(try PostgresAddress(address))
        #expect(none.link.failure?.kind == .unreachable)
        #expect(none.link.failure?.message.contains("127.0.0.1:\(standby.port)") == true)
        try standby.promote()
        let after = try LinkUnderTest.connected(address)
        #expect(after.link.server == "127.0.0.1:\(standby.port)")
        #expect(after.run { $0.query("SELECT count(*) FROM t") }.results.first?.int64(0, 0) == 1)
    }

    @Test("A frozen server is passed over after the given time")
    func frozen() throws {
        let frozen = try PostgresServer(PostgresServer.Options(isDurable: false))
        let server = try PostgresServer.shared()
        let client = try PostgresClient(PostgresAddress(frozen.address()), application: "t", answerMilliseconds: 200)
        frozen.freeze()
        defer { frozen.thaw() }
        let places = "127.0.0.1:\(frozen.port),127.0.0.1:\(server.port)"
        // The link waits this long for the frozen server, and at most this long for the good one.
        let address = try PostgresAddress("postgresql://postgres@\(places)/postgres")
        let link = LinkUnderTest(address, hostMilliseconds: 1500)
        #expect(link.link.server == "127.0.0.1:\(server.port)")
        #expect(link.link.phase == .ready)
        let alone = LinkUnderTest(try PostgresAddress(frozen.address()), hostMilliseconds: 300)
        #expect(alone.link.failure?.kind == .unreachable)
        #expect(alone.link.failure?.message == "no answer within 0.3 s")
        let error = try #require(throws: PostgresError.self) { try client.query("SELECT 1") }
        #expect(error.kind == .connectionLost)
        frozen.thaw()
        #expect(try LinkUnderTest.connected(frozen.address()).link.phase == .ready)
    }
}
