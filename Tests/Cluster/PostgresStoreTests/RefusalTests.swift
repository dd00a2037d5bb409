import Engine
import PostgresStore
import Testing
import WakeGateTestKit

@Suite(.timeLimit(.minutes(15)))
struct RefusalTests {
    private let database: TestDatabase
    private var server: PostgresServer { self.database.server }
    private var address: String { self.database.address }

    init() throws { self.database = try TestDatabase() }

    /// Returns the error message of a store that cannot be attached.
    private func refusal(_ address: String) throws -> String {
        let settings = StoreSettings(address: try PostgresAddress(address))
        let error = #expect(throws: StoreError.self) { try PostgresStore(settings) {} }
        return error?.message ?? ""
    }

    @Test("A newer schema is refused by name with both versions")
    func newer() throws {
        try StoreRig(self.address).stop()
        try self.database.query("UPDATE wakegate.meta SET version = 9, oldest = 8")
        let message = try self.refusal(self.address)
        #expect(message.contains("version 9"))
        #expect(message.contains("version 7"))
        #expect(message.contains("127.0.0.1:\(self.server.port)"))
    }

    @Test("A schema with additions of a newer version works until the last older gateway has left")
    func oneVersionBack() throws {
        try StoreRig(self.address).stop()
        try self.database.query("UPDATE wakegate.meta SET version = 8, oldest = 7")
        try StoreRig(self.address).stop()
    }

    @Test("A read-only database is refused with the remedy")
    func readOnly() throws {
        try self.server.query("ALTER DATABASE \(self.database.name) SET default_transaction_read_only = on")
        #expect(try self.refusal(self.address).contains("target_session_attrs=read-write"))
    }

    @Test("A server that waits for a missing standby is refused, and no session stays waiting")
    func noStandby() throws {
        let server = try PostgresServer()
        let address = try server.database()
        try server.set("synchronous_standby_names", "ANY 1 (nobody)")
        let message = try self.refusal(address)
        #expect(message.contains("127.0.0.1:\(server.port)") && message.contains("pg_stat_replication"))
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        #expect(try server.query(waiting) == "0")
    }

    @Test("A role without rights gets an error that names the missing grant, before and after the schema exists")
    func rights() throws {
        let role = "limited_\(self.database.name)"
        try self.database.query("CREATE ROLE \(role) LOGIN")
        let address = self.server.address(self.database.name, user: role)
        #expect(try self.refusal(address).contains("rant"))
        try StoreRig(self.address).stop()
        try self.database.query("GRANT USAGE ON SCHEMA wakegate TO \(role)")
        try self.database.query("GRANT SELECT ON ALL TABLES IN SCHEMA wakegate TO \(role)")
        let message = try self.refusal(address)
        #expect(message.contains(role))
        #expect(message.contains("GRANT"))
        try self.database.query(
            """
            GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA wakegate TO \(role);
            GRANT USAGE ON ALL SEQUENCES IN SCHEMA wakegate TO \(role)
            """
        )
        let rig = try StoreRig(address)
        try rig.write([1]) { .of($0, $1) }
        rig.stop()
    }

    @Test("A gateway that cannot attach itself again reports each new cause")
    func newCauses() throws {
        let role = "moody_\(self.database.name)"
        try self.server.query("CREATE ROLE \(role) LOGIN; GRANT CREATE ON DATABASE \(self.database.name) TO \(role)")
        let rig = try StoreRig(self.server.address(self.database.name, user: role))
        try self.server.query("ALTER ROLE \(role) NOLOGIN")
        try self.server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '\(role)'")
        #expect(try rig.detached().message.contains("administrator"))
        #expect(try rig.detached().message.contains("not permitted to log in"))
        try self.server.query("ALTER ROLE \(role) LOGIN CONNECTION LIMIT 0")
        #expect(try rig.detached().message.contains("too many connections"))
        try self.server.query("ALTER ROLE \(role) CONNECTION LIMIT -1")
        try rig.attached()
        rig.stop()
    }

    @Test("A connection pool is refused by name with the remedy, also one that ignores session settings")
    func pool() throws {
        for ignored in ["extra_float_digits", "options,extra_float_digits"] {
            let pool = try PoolServer(self.server, ignoring: ignored)
            let address = pool.address(self.database.name)
            let message = try self.refusal(address)
            #expect(message.contains("pgbouncer") && message.contains("5432"), "\(message)")
            #expect(message.contains("127.0.0.1:\(pool.port)"), "\(message)")
            let report = DatabaseCheck.report(StoreSettings(address: try PostgresAddress(address)))
            #expect(report.faults.count == 1 && report.faults.first?.problem.contains("pgbouncer") == true)
        }
    }
}
