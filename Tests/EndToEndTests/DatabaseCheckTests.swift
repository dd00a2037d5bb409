import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("Findings of serve --check about a database", .serialized, .timeLimit(.minutes(15)))
struct DatabaseCheckTests {
    /// Runs `serve --check` without an edge, so that no certificate is needed.
    private func check(_ address: String, _ settings: String...) throws -> ChildProcess.Ended {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-\(UUID())").path
        let own = ["serve", "--check", "--edge", "off", "--admin", "127.0.0.1:0", "--state", folder]
        let more = (["store=\(address)"] + settings).flatMap { ["--set", $0] }
        let ended = try ChildProcess.wakegate(own + more)
        #expect(!FileManager.default.fileExists(atPath: folder))
        return ended
    }

    private func expectFault(_ ended: ChildProcess.Ended, _ words: String..., line: Int = #line) {
        #expect(ended.status == EX_CONFIG, "line \(line): \(ended.errors)")
        for word in words + ["store: "] { #expect(ended.errors.contains(word), "line \(line): \(ended.errors)") }
    }

    @Test("A fault of a file names its absolute path")
    func path() throws {
        let folder = try TemporaryFolder()
        let settings = ["tls.certificate=no.pem", "tls.key=no.key", "providerKeys=keys", "state=."]
        let ended = try ChildProcess.wakegate(
            ["serve", "--check", "--edge", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
                + settings.flatMap { ["--set", $0] },
            folder: folder.url
        )
        #expect(ended.status == 78)
        for file in ["no.pem", "no.key", "keys"] {
            #expect(ended.errors.contains(": \(folder.path)/\(file) "), "\(ended.errors)")
        }
    }

    @Test("A usable database passes the check, before its tables are created and after; the check creates nothing")
    func good() throws {
        let server = try PostgresServer()
        let address = try server.database()
        let name = String(address.split(separator: "/").last ?? "")
        let fresh = try self.check(address)
        #expect(fresh.status == 0, "\(fresh.errors)")
        // By default, every role may connect to a new database.
        #expect(fresh.errors.contains("warning: store: ") && fresh.errors.contains("REVOKE CONNECT"))
        try server.query("REVOKE CONNECT ON DATABASE \(name) FROM PUBLIC")
        #expect(try !self.check(address).errors.contains("warning"))
        let tables = "SELECT count(*) FROM pg_namespace WHERE nspname = 'wakegate'"
        #expect(try server.query(tables, database: name).hasPrefix("0"))
        // Also while a gateway is running.
        let gateway = try RunningGateway(["--set", "store=\(address)"])
        let made = try self.check(address)
        #expect(made.status == 0, "\(made.errors)")
        try gateway.process.end()

        // A start also refuses newer tables.
        try server.query("UPDATE wakegate.meta SET version = 99, oldest = 99", database: name)
        self.expectFault(try self.check(address), "version 99", "start the newer WakeGate")
        let start = try RestartFolder().startInVain(["dev", "--set", "store=\(address)"])
        #expect(start.status == 1)
        #expect(start.errors.contains("99"), "\(start.errors)")
    }

    @Test("A service file is followed, and its password is never shown")
    func serviceFile() throws {
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("service")
        let lines = "[far]\nhost=192.0.2.1\npassword=s3cret\nsslmode=disable\n"
        try lines.write(to: file, atomically: true, encoding: .utf8)
        let check = ["serve", "--check", "--edge", "off", "--admin", "127.0.0.1:0", "--state", "\(folder.path)/state"]
        let store = ["--set", "store=postgresql:///?service=far"]
        let ended = try ChildProcess.run("env", ["PGSERVICEFILE=\(file.path)", RunningGateway.program] + check + store)
        self.expectFault(ended, "192.0.2.1")
        #expect(!ended.errors.contains("s3cret"))
    }

    @Test("Missing rights are named, with the statement that grants them")
    func rights() throws {
        let server = try PostgresServer()
        let address = try server.database()
        let name = String(address.split(separator: "/").last ?? "")
        try server.query("CREATE ROLE poor LOGIN", database: name)
        let poor = server.address(name, user: "poor")
        self.expectFault(try self.check(poor), "poor", "GRANT CREATE ON DATABASE \(name) TO poor")
        let gateway = try RunningGateway(["--set", "store=\(address)"])
        try gateway.process.end()
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

    @Test("A server that is read-only, may lose commits, has too few connections or is unreachable is named")
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
}

/// A PostgreSQL server set up with the files in `deploy/postgresql`, as an article describes; ended with the last
/// reference.
///
/// It differs from those files by its address, its directories, and less memory; the user `postgres` may connect over
/// TCP.
final class DatabaseScene {
    static let files = RunningGateway.root.appendingPathComponent("deploy/postgresql")

    let server: PostgresServer
    let folder: URL

    init() throws {
        let name = "wakegate-database-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        self.folder = FileManager.default.temporaryDirectory.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
        _ = try ChildProcess.run("chmod", ["755", self.folder.path])
        let made = try ChildProcess.run(
            Self.files.appendingPathComponent("certificates").path,
            [self.folder.appendingPathComponent("tls").path, "127.0.0.1"]
        )
        guard made.status == 0 else { throw ChildProcess.Failure(description: made.errors) }
        let node = self.folder.appendingPathComponent("node")
        try FileManager.default.createDirectory(at: node, withIntermediateDirectories: false)
        let keys = self.folder.appendingPathComponent("tls")
        func put(_ name: String, as copy: String) throws {
            let source = keys.appendingPathComponent(name)
            try FileManager.default.copyItem(at: source, to: node.appendingPathComponent(copy))
        }
        try put("ca.pem", as: "ca.pem")
        try put("127.0.0.1.pem", as: "node.pem")
        try put("127.0.0.1.key", as: "node.key")
        let access = try Self.text("pg_hba.conf").replacing("192.0.2.0/24", with: "127.0.0.0/8")
        try Self.write(
            "host all postgres 127.0.0.1/32 trust\n\(access)",
            to: node.appendingPathComponent("pg_hba.conf")
        )
        for name in ["pg_ident.conf", "wakegate.conf"] {
            try Self.write(try Self.text(name), to: node.appendingPathComponent(name))
        }
        if geteuid() == 0 {
            _ = try ChildProcess.run("chown", ["-R", "postgres", node.path])
            _ = try ChildProcess.run("chmod", ["700", node.path])
        }
        self.server = try PostgresServer(PostgresServer.Options(settings: Self.settings(node)))
    }

    deinit { try? FileManager.default.removeItem(at: self.folder) }

    /// Returns the settings that precede those of the file, in alphabetical order.
    private static func settings(_ node: URL) -> [String: String] {
        [
            "include": "'\(node.path)/wakegate.conf'", "hba_file": "'\(node.path)/pg_hba.conf'",
            "ident_file": "'\(node.path)/pg_ident.conf'", "ssl_ca_file": "'\(node.path)/ca.pem'",
            "ssl_cert_file": "'\(node.path)/node.pem'", "ssl_key_file": "'\(node.path)/node.key'",
            "shared_buffers": "'64MB'", "synchronous_standby_names": "''",
        ]
    }

    static func text(_ name: String) throws -> String {
        try Checkout.text("deploy/postgresql/\(name)")
    }

    private static func write(_ text: String, to file: URL) throws { try Data(text.utf8).write(to: file) }

    /// Runs an SQL file as the superuser.
    func run(_ file: String, database: String = "postgres") throws -> ChildProcess.Ended {
        let path = Self.files.appendingPathComponent(file).path
        return try ChildProcess.run("psql", ["-Xq", "-d", self.server.address(database), "-f", path])
    }

    /// Returns the address for a role, over TLS with verification of the server.
    func address(_ role: String, mode: String = "verify-full", database: String = "wakegate") -> String {
        "\(self.server.address(database, user: role))?sslmode=\(mode)"
    }

    /// Returns the variables with which libpq finds a role's certificate, as in the unit's drop-in.
    func environment(_ role: String) -> [String] {
        let tls = self.folder.appendingPathComponent("tls").path
        return ["env", "PGSSLROOTCERT=\(tls)/ca.pem", "PGSSLCERT=\(tls)/\(role).pem", "PGSSLKEY=\(tls)/\(role).key"]
    }

    /// Runs SQL as a role that authenticates with its certificate.
    func query(_ sql: String, as role: String, to address: String? = nil) throws -> ChildProcess.Ended {
        let words = self.environment(role) + ["psql", "-XAtq", "-d", address ?? self.address(role), "-c", sql]
        return try ChildProcess.run(words[0], Array(words.dropFirst()))
    }

    /// Starts a gateway on this database.
    func gateway() throws -> RunningGateway {
        try RunningGateway(["--set", "store=\(self.address("wakegate"))"], under: self.environment("wakegate"))
    }
}

@Suite("Gateways on a primary with standbys, with a failover", .timeLimit(.minutes(15)))
struct FailoverTests {
    private let topic = "com.example.failover"

    private func token(_ number: Int) -> String { String(format: "%064x", number) }

    /// Pushes with a fixed apns-id, trying the gateways in turn until one answers 200.
    private func push(_ number: Int, to gateways: [RunningGateway]) throws -> String {
        let name = String(format: "00000000-0000-4000-8000-%012x", number)
        var place = number
        try gateways[0].eventually("push \(number)") {
            place += 1
            let gateway = gateways[place % gateways.count]
            let answer = try gateway.push(self.token(number), topic: self.topic, fields: ["apns-id: \(name)"])
            #expect(answer.status == 200 || answer.status == 503, "\(answer.body)")
            return answer.status == 200
        }
        return name
    }

    @Test("Three gateways continue with the promoted standby, and no acknowledged push is lost")
    func failover() throws {
        let primary = try PostgresServer()
        let standbys = [try primary.makeStandby("one"), try primary.makeStandby("two")]
        let database = try #require(try primary.database().split(separator: "/").last)
        let hosts = ([primary] + standbys).map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
        let store = "postgresql://postgres@\(hosts)/\(database)?target_session_attrs=read-write"
        let gateways = try (0..<3).map { _ in try RunningGateway(["--set", "store=\(store)"]) }
        let worker = try gateways[2].curlWorker(topic: self.topic)
        var acknowledged = try (0..<30).map { try self.push($0, to: gateways) }
        _ = try #require(try worker.next())

        primary.kill()
        for gateway in gateways {
            try gateway.eventually("503") { try gateway.admin("/readyz").status == 503 }
            #expect(try gateway.push(self.token(0), topic: self.topic).status == 503)
            #expect(try gateway.admin("/metrics").body.contains("\nwakegate_cluster_attached 0\n"))
        }
        let received = "SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::bigint"
        let positions = try standbys.map { Int(try $0.query(received)) ?? 0 }
        let (next, other) = positions[0] >= positions[1] ? (standbys[0], standbys[1]) : (standbys[1], standbys[0])
        try next.query("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
        try next.promote()
        try other.follow(next)
        acknowledged += try (30..<60).map { try self.push($0, to: gateways) }

        for gateway in gateways {
            try gateway.eventually("ready") { try gateway.admin("/readyz").status == 200 }
            #expect(gateway.process.errors.contains("storeDetached"))
            try gateway.eventually("the pushes of all gateways") {
                try gateway.stats().integer("pushes", "accepted") == acknowledged.count
            }
            for name in acknowledged { #expect(try gateway.admin("/v1/pushes/\(name)").status == 200, "\(name)") }
        }
        // The wake in flight was lost together with its gateway, and is launched again.
        _ = try #require(try worker.next())
    }
}
