import Foundation
import Platform

/// A connection pool for a server: pgbouncer on loopback, from Debian's package. The pool ends when the last reference
/// is released or the test's process ends.
package final class PoolServer {
    /// The port on 127.0.0.1.
    package let port: UInt16
    // The pool ends before its folder is deleted, because it is released first.
    private let shell: GuardianShell
    private let folder: PostgresFolder

    private static let program = "/usr/sbin/pgbouncer"

    /// A script that runs the pool, and kills it when the script's standard input ends.
    private static let script = """
        trap '' INT TERM HUP
        "$0" -q "$1" </dev/null &
        cat >/dev/null
        kill -KILL $!
        """

    /// Starts a pool and waits until it accepts clients.
    ///
    /// - Parameters:
    ///   - server: the server behind the pool.
    ///   - ignored: the startup parameters that the pool accepts from clients but does not pass on.
    /// - Throws: `PostgresFailure` with the remedy if pgbouncer is not installed.
    package init(_ server: PostgresServer, ignoring ignored: String) throws {
        guard FileManager.default.isExecutableFile(atPath: Self.program) else {
            throw PostgresFailure(description: "pgbouncer is not installed on this machine; run deploy/setup")
        }
        let installation = try PostgresInstallation.found()
        self.folder = try PostgresFolder()
        var bits = RandomBits()
        self.port = 20_000 + UInt16(bits.next() % 12_000)
        let settings = """
            [databases]
            * = host=127.0.0.1 port=\(server.port)
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = \(self.port)
            unix_socket_dir =
            auth_type = trust
            auth_file = \(self.folder.path)/users
            pool_mode = session
            ignore_startup_parameters = \(ignored)
            logfile = \(self.folder.path)/log
            """
        for (name, text) in [("pool", settings), ("users", "\"postgres\" \"\"\n")] {
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-pool-\(UUID())")
            defer { try? FileManager.default.removeItem(at: file) }
            try Data(text.utf8).write(to: file)
            try installation.copy(file.path, to: "\(self.folder.path)/\(name)")
        }
        self.shell = try GuardianShell(
            installation.asUser(["/bin/sh", "-c", Self.script, Self.program, "\(self.folder.path)/pool"])
        )
        try self.waitUntilReady()
    }

    private func waitUntilReady() throws {
        let deadline = SystemClock.monotonic + PostgresLog.waitMax
        let command = ["/usr/bin/psql", "-XAtq", "-d", self.address("postgres"), "-c", "SELECT"]
        while (try? PostgresProgram.run(command)) == nil {
            guard self.shell.isRunning, SystemClock.monotonic < deadline else {
                throw PostgresFailure(description: "pgbouncer accepts no client connection on port \(self.port)")
            }
        }
    }

    /// Returns the URI by which clients reach a database of the server through the pool.
    package func address(_ database: String) -> String {
        "postgresql://postgres@127.0.0.1:\(self.port)/\(database)"
    }
}
