import PostgresStore
import Testing
import WakeGateTestKit
import Wire

@Suite("Runs of statements")
struct PipelineTests {
    private let database: String

    init() throws { self.database = try PostgresServer.shared().database() }

    @Test("Results arrive in the order of the statements")
    func order() throws {
        let link = try LinkUnderTest.connected(self.database)
        let outcome = link.run { link in
            for index in 0..<200 { link.query("SELECT \(index)::int8") }
        }
        #expect(outcome.results.map { $0.int64(0, 0) } == (0..<200).map(Int64.init))
    }

    @Test("After a failure the rest of the run is skipped, and its earlier statements are rolled back")
    func failure() throws {
        let link = try LinkUnderTest.connected(self.database)
        _ = link.run { $0.query("CREATE TABLE t (x int PRIMARY KEY)") }
        let outcome = link.run { link in
            link.query("INSERT INTO t VALUES (1)")
            link.query("SELECT 1/0")
            link.query("INSERT INTO t VALUES (2)")
            link.query("INSERT INTO t VALUES (3)")
        }
        #expect(outcome.results.count == 1)
        #expect(outcome.failure?.state == "22012")
        let after = link.run { $0.query("SELECT count(*) FROM t") }
        #expect(after.results.first?.int64(0, 0) == 0)
        #expect(link.link.failure == nil)
    }

    @Test("Consecutive runs fail separately")
    func runs() throws {
        let link = try LinkUnderTest.connected(self.database)
        link.send { $0.query("SELECT 1::int8") }
        link.send { link in
            link.query("nonsense")
            link.query("SELECT 2::int8")
        }
        link.send { $0.query("SELECT 3::int8") }
        let outcomes = try (0..<3).map { _ in try #require(link.outcome()) }
        #expect(outcomes.map(\.results.count) == [1, 0, 1])
        #expect(outcomes[1].failure?.kind == .wrongSchema)
        #expect(outcomes[2].results.first?.int64(0, 0) == 3)
    }

    @Test("Output beyond the socket's buffer is sent piece by piece")
    func large() throws {
        let link = try LinkUnderTest.connected(self.database)
        let large = [UInt8](repeating: 7, count: 8_000_000)
        let outcome = link.run { link in
            for _ in 0..<4 { link.query("SELECT $1::bytea", PostgresParameters(large)) }
        }
        #expect(outcome.results.count == 4)
        #expect(outcome.results.allSatisfy { $0.bytes(0, 0).count == large.count })
    }

    @Test("Session settings apply from the first query and override those of the user")
    func settings() throws {
        let server = try PostgresServer.shared()
        try server.query("CREATE USER hasty; ALTER USER hasty SET statement_timeout = 1234")
        let address = self.database.replacing("postgres@", with: "hasty@")
        let plain = try LinkUnderTest.connected(address)
        #expect(plain.run { $0.query("SHOW statement_timeout") }.results.first?.text(0, 0) == "1234ms")
        let link = try LinkUnderTest.connected(
            address + "?options=-c%20lock_timeout%3D77",
            settings: [PostgresSetting("statement_timeout", "0"), PostgresSetting("search_path", "a, \"b c\"")]
        )
        #expect(link.run { $0.query("SHOW statement_timeout") }.results.first?.text(0, 0) == "0")
        #expect(link.run { $0.query("SHOW lock_timeout") }.results.first?.text(0, 0) == "77ms")
        #expect(link.run { $0.query("SHOW search_path") }.results.first?.text(0, 0) == "a, \"b c\"")
        #expect(link.run { $0.query("SHOW application_name") }.results.first?.text(0, 0) == "test")
    }

    @Test("The outcome of a run has its notices, up to a limit")
    func notices() throws {
        let link = try LinkUnderTest.connected(self.database)
        let notices = link.run { $0.query("DROP TABLE IF EXISTS nothing") }.notices
        #expect(notices.map(\.severity) == ["NOTICE"])
        #expect(notices.map(\.state) == ["00000"])
        #expect(link.run { $0.query("SELECT 1") }.notices.isEmpty)
        let many = link.run {
            $0.query("DO $$ BEGIN FOR i IN 1..5000 LOOP RAISE NOTICE '%', i; END LOOP; END $$")
        }.notices
        #expect(many.count == 256)
        #expect(many.first?.message == "1")
    }
}
