import Engine
import PostgresStore
import Testing
import WakeGateTestKit

@Suite("Refusals of a server")
struct RefusalTests {
    private let database: String

    init() throws { self.database = try PostgresServer.shared().database() }

    private func client() throws -> PostgresClient {
        try PostgresClient(PostgresAddress(self.database), application: "test")
    }

    @Test("A duplicate key is refused, without the values of the row")
    func unique() throws {
        let client = try self.client()
        try client.run("CREATE TABLE t (x text PRIMARY KEY); INSERT INTO t VALUES ('confidential')")
        let error = try #require(throws: PostgresError.self) {
            try client.query("INSERT INTO t VALUES ('confidential')")
        }
        #expect(error.kind == .uniqueViolation)
        #expect(error.state == "23505")
        #expect(error.server.hasPrefix("127.0.0.1:"))
        #expect(!error.description.contains("confidential"))
        #expect(error.description.contains("t_pkey"))
        #expect(error.description.hasSuffix(error.remedy))
    }

    @Test(
        "Missing objects and invalid calls have their error kinds",
        arguments: [
            ("SELECT * FROM nothing", PostgresError.Kind.wrongSchema), ("SELECT missing", .wrongSchema),
            ("SELECT nowhere()", .wrongSchema), ("SELECT pg_sleep('x')", .other),
        ]
    )
    func missing(sql: String, kind: PostgresError.Kind) throws {
        let client = try self.client()
        let error = try #require(throws: PostgresError.self) { try client.query(sql) }
        #expect(error.kind == kind)
        #expect(try client.query("SELECT 1::int8").int64(0, 0) == 1)
    }

    @Test("A parameter of a wrong type is refused")
    func wrongParameter() throws {
        let client = try self.client()
        let error = try #require(throws: PostgresError.self) { try client.query("SELECT $1::int8", Int32(1)) }
        #expect(error.state == "22P03" || error.state == "08P01")
    }

    @Test(
        "Each SQLSTATE code maps to its error kind",
        arguments: [
            ("23505", PostgresError.Kind.uniqueViolation), ("40P01", .deadlock), ("40001", .serialization),
            ("55P03", .lockNotAvailable), ("25006", .readOnly), ("57014", .cancelled), ("53100", .diskFull),
            ("53200", .outOfMemory), ("53300", .tooManyConnections),
            ("57P01", .adminShutdown), ("57P02", .adminShutdown), ("57P03", .adminShutdown), ("57P05", .idleTimeout),
            ("25P03", .idleTimeout), ("08006", .connectionLost), ("3D000", .noDatabase), ("28P01", .notAllowed),
            ("42501", .insufficientPrivilege), ("42P01", .wrongSchema), ("XX001", .corrupt), ("22012", .other),
        ]
    )
    func codes(state: String, kind: PostgresError.Kind) {
        let error = PostgresError(state: state, message: "no", server: "db1:5432")
        #expect(error.kind == kind)
        #expect(error.description == "PostgreSQL: db1:5432: no (\(state)). \(kind.remedy)")
    }

    @Test("Every error kind has a remedy that is a full sentence", arguments: PostgresError.Kind.allCases)
    func remedies(kind: PostgresError.Kind) {
        #expect(kind.remedy.hasSuffix("."))
        #expect(kind.remedy.count > 20)
    }
}
