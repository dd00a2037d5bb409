import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("What serve --check finds of a database", .serialized, .timeLimit(.minutes(15)))
struct DatabaseCheckTests {
    /// The faults of `serve --check`; the certificate is no matter of it.
    private func check(_ address: String, _ settings: String...) throws -> ChildProcess.Ended {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-\(UUID())").path
        let own = ["serve", "--check", "--edge", "off", "--admin", "127.0.0.1:0", "--state", folder]
        let more = (["store=\(address)"] + settings).flatMap { ["--set", $0] }
        let ended = try ChildProcess.run(RunningGateway.program, own + more)
        #expect(!FileManager.default.fileExists(atPath: folder))
        return ended
    }

    private func expectFault(_ ended: ChildProcess.Ended, _ words: String..., line: Int = #line) {
        #expect(ended.status == 78, "line \(line): \(ended.errors)")
        for word in words + ["store: "] { #expect(ended.errors.contains(word), "line \(line): \(ended.errors)") }
    }

    @Test("A database that a gateway can use is good, before its tables are made and after; nothing is made by looking")
    func good() throws {
        let server = try PostgresServer()
        let address = try server.database()
        let name = String(address.split(separator: "/").last ?? "")
        let fresh = try self.check(address)
        #expect(fresh.status == 0, "\(fresh.errors)")
        // Every role may connect to a new database.
        #expect(fresh.errors.contains("warning: store: ") && fresh.errors.contains("REVOKE CONNECT"))
        try server.query("REVOKE CONNECT ON DATABASE \(name) FROM PUBLIC")
        #expect(try !self.check(address).errors.contains("warning"))
        let tables = "SELECT count(*) FROM pg_namespace WHERE nspname = 'wakegate'"
        #expect(try server.query(tables, database: name).hasPrefix("0"))
        // Beside a gateway, too.
        let gateway = try RunningGateway(["--set", "store=\(address)"])
        let made = try self.check(address)
        #expect(made.status == 0, "\(made.errors)")
        gateway.process.send(SIGTERM)
        _ = try gateway.process.finish()

        // Newer tables are refused by a start as well.
        try server.query("UPDATE wakegate.meta SET version = 99, oldest = 99", database: name)
        self.expectFault(try self.check(address), "version 99", "start the newer WakeGate")
        let start = try RestartFolder().startInVain(["dev", "--set", "store=\(address)"])
        #expect(start.status == 1)
        #expect(start.errors.contains("99"), "\(start.errors)")
    }

    @Test("A service file is followed, and its password is never shown")
    func serviceFile() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-service-\(UUID())")
        defer { try? FileManager.default.removeItem(at: file) }
        let lines = "[far]\nhost=192.0.2.1\npassword=s3cret\nsslmode=disable\n"
        try lines.write(to: file, atomically: true, encoding: .utf8)
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-\(UUID())").path
        let check = ["serve", "--check", "--edge", "off", "--admin", "127.0.0.1:0", "--state", folder]
        let store = ["--set", "store=postgresql:///?service=far"]
        let ended = try ChildProcess.run("env", ["PGSERVICEFILE=\(file.path)", RunningGateway.program] + check + store)
        self.expectFault(ended, "192.0.2.1")
        #expect(!ended.errors.contains("s3cret"))
    }

    @Test("Rights that are missing are named, with what grants them")
    func rights() throws {
        let server = try PostgresServer()
        let address = try server.database()
        let name = String(address.split(separator: "/").last ?? "")
        try server.query("CREATE ROLE poor LOGIN", database: name)
        let poor = server.address(name, user: "poor")
        self.expectFault(try self.check(poor), "poor", "GRANT CREATE ON DATABASE \(name) TO poor")
        let gateway = try RunningGateway(["--set", "store=\(address)"])
        gateway.process.send(SIGTERM)
        _ = try gateway.process.finish()
        self.expectFault(try self.check(poor), "GRANT USAGE ON SCHEMA wakegate TO poor")
        try server.query("GRANT USAGE ON SCHEMA wakegate TO poor", database: name)
        self.expectFault(try self.check(poor), "device", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES")
        try server.query(
            """
            GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA wakegate TO poor;
            GRANT USAGE ON ALL SEQUENCES IN SCHEMA wakegate TO poor;
            """,
            database: name
        )
        let rich = try self.check(poor)
        #expect(rich.status == 0, "\(rich.errors)")
    }

    @Test("A server that takes no writes, that loses commits, that has too few connections or is not there is named")
    func servers() throws {
        let server = try PostgresServer(PostgresServer.Options(settings: ["max_connections": "80"]))
        let address = try server.database()
        self.expectFault(try self.check(address, "databaseConnections=100"), "max_connections", "databaseConnections")
        try server.query("ALTER ROLE postgres SET synchronous_commit = off")
        self.expectFault(try self.check(address), "synchronous_commit")
        try server.query("ALTER ROLE postgres RESET synchronous_commit")
        try server.query("ALTER ROLE postgres SET default_transaction_read_only = on")
        self.expectFault(try self.check(address), "127.0.0.1:\(server.port)")
        server.stop()
        self.expectFault(try self.check(address), "127.0.0.1:\(server.port)")
        let shared = try PostgresServer.shared()
        self.expectFault(try self.check(try shared.database()), "fsync")
    }

    @Test("A password in the address is refused, and shown nowhere")
    func password() throws {
        let ended = try self.check("postgresql://me:hunter2@127.0.0.1/w")
        self.expectFault(ended, "holds a password", "passfile")
        #expect(!(ended.errors + ended.output).contains("hunter2"))
    }
}
