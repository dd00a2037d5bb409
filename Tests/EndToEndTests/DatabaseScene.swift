import Foundation
import Glibc
import WakeGateTestKit

/// A server of PostgreSQL set up with the files of `deploy/postgresql`, as an article says it; gone with the last
/// reference.
///
/// It differs from those by its own address, its folders, and less memory; the user `postgres` may come over TCP.
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

    /// What stands above the file's own settings, in the order of the names.
    private static func settings(_ node: URL) -> [String: String] {
        [
            "include": "'\(node.path)/wakegate.conf'", "hba_file": "'\(node.path)/pg_hba.conf'",
            "ident_file": "'\(node.path)/pg_ident.conf'", "ssl_ca_file": "'\(node.path)/ca.pem'",
            "ssl_cert_file": "'\(node.path)/node.pem'", "ssl_key_file": "'\(node.path)/node.key'",
            "shared_buffers": "'64MB'", "synchronous_standby_names": "''",
        ]
    }

    static func text(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: Self.files.appendingPathComponent(name)), as: UTF8.self)
    }

    private static func write(_ text: String, to file: URL) throws { try Data(text.utf8).write(to: file) }

    /// Runs a file of SQL as the superuser.
    func run(_ file: String, database: String = "postgres") throws -> ChildProcess.Ended {
        let path = Self.files.appendingPathComponent(file).path
        return try ChildProcess.run("psql", ["-Xq", "-d", self.server.address(database), "-f", path])
    }

    /// Where a role goes to, over TLS with proof of who the server is.
    func address(_ role: String, mode: String = "verify-full", database: String = "wakegate") -> String {
        "\(self.server.address(database, user: role))?sslmode=\(mode)"
    }

    /// What has libpq find a role's certificate, as the unit's drop-in has it.
    func environment(_ role: String) -> [String] {
        let tls = self.folder.appendingPathComponent("tls").path
        return ["env", "PGSSLROOTCERT=\(tls)/ca.pem", "PGSSLCERT=\(tls)/\(role).pem", "PGSSLKEY=\(tls)/\(role).key"]
    }

    /// Carries out SQL as a role that shows its certificate.
    func query(_ sql: String, as role: String, to address: String? = nil) throws -> ChildProcess.Ended {
        let words = self.environment(role) + ["psql", "-XAtq", "-d", address ?? self.address(role), "-c", sql]
        return try ChildProcess.run(words[0], Array(words.dropFirst()))
    }

    /// A gateway on this database.
    func gateway() throws -> RunningGateway {
        try RunningGateway(["--set", "store=\(self.address("wakegate"))"], under: self.environment("wakegate"))
    }
}
