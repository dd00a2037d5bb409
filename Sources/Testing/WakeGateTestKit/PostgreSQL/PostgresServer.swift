import Foundation
import Glibc
import Platform

/// A private PostgreSQL server for a test, on loopback and on a socket in a private folder. The server ends when the
/// last reference is released or the test's process ends.
///
/// Only the user `secured`, whom a test may create, needs a password, and only on loopback.
///
/// `@unchecked Sendable`: `monitor` guards all fields that change.
package final class PostgresServer: @unchecked Sendable {
    /// The options of a server.
    package struct Options: Sendable {
        /// True if commits are synced to the disk. False is faster, and even `kill` loses no commit.
        package var isDurable = true
        /// The additional settings for `postgresql.conf`, by name. Values are written unchanged.
        package var settings: [String: String] = [:]

        /// The path of a file with a certificate and its key, for TLS connections; nil for cleartext only.
        package var certificate: String?

        package init(isDurable: Bool = true, settings: [String: String] = [:], certificate: String? = nil) {
            self.isDurable = isDurable
            self.settings = settings
            self.certificate = certificate
        }
    }

    /// The port on 127.0.0.1.
    package let port: UInt16
    private let installation: PostgresInstallation
    private let options: Options
    private let folder: PostgresFolder
    private let monitor = Monitor()
    private var run: PostgresRun?
    private var databaseCount = 0

    /// Creates a server and starts it.
    ///
    /// - Throws: `PostgresFailure` with the remedy if PostgreSQL is missing on this machine.
    package convenience init(_ options: Options = Options()) throws {
        let installation = try PostgresInstallation.found()
        let template = try PostgresTemplate.shared()
        let folder = try PostgresFolder()
        try PostgresProgram.run(["/bin/cp", "--archive", "--reflink=auto", template.data, folder.data])
        try self.init(installation, folder, options)
    }

    /// Starts a server in a folder that contains its data.
    private init(_ installation: PostgresInstallation, _ folder: PostgresFolder, _ options: Options) throws {
        self.installation = installation
        self.folder = folder
        self.options = options
        var failure: (any Error)?
        var bits = RandomBits()
        for _ in 0..<Self.attemptsMax {
            let port = Self.ports.lowerBound + UInt16(bits.next() % UInt64(Self.ports.count))
            try Self.configure(installation, folder, options, port)
            do {
                self.run = try PostgresRun(installation, data: folder.data)
                self.port = port
                return
            } catch let error as PostgresFailure where error.description.contains(Self.portInUse) {
                failure = error
            }
        }
        throw failure ?? PostgresFailure(description: "no port of 127.0.0.1 is free")
    }

    /// The ports for servers. They are below the system's ephemeral ports, which a client could take while a server
    /// restarts.
    private static let ports: ClosedRange<UInt16> = 20_000...32_000
    private static let attemptsMax = 20
    private static let portInUse = "could not create any TCP/IP sockets"

    deinit {
        // End the server here, before the folder's guardian has to.
        self.run?.sendToAll(SIGCONT)
        self.run?.send(SIGQUIT)
        self.run?.waitForEnd()
    }

    // MARK: Addresses and state

    /// Returns the address for clients, as a URI of libpq.
    ///
    /// - Parameters:
    ///   - database: the name of the database.
    ///   - user: the name of the user.
    package func address(_ database: String = "postgres", user: String = "postgres") -> String {
        "postgresql://\(user)@127.0.0.1:\(self.port)/\(database)"
    }

    /// Returns the address of the socket in the server's folder, for clients.
    package func socketAddress(_ database: String = "postgres") -> String {
        let folder = self.folder.path.replacing("/", with: "%2F")
        return "postgresql://postgres@/\(database)?host=\(folder)&port=\(self.port)"
    }

    /// Creates a separate database.
    ///
    /// - Returns: the database's address for clients.
    package func database() throws -> String {
        let name = self.monitor.withLock {
            self.databaseCount += 1
            return "test\(self.databaseCount)"
        }
        try self.query("CREATE DATABASE \(name) TEMPLATE template0")
        return self.address(name)
    }

    /// The server's log since its last start.
    package var log: String { self.monitor.withLock { self.run?.log.text ?? "" } }

    /// The process id of the server's first process; nil if the server does not run.
    package var processIdentifier: Int32? { self.monitor.withLock { self.run?.identifier } }

    package var isRunning: Bool { self.processIdentifier != nil }

    /// Executes SQL as the superuser.
    ///
    /// - Returns: the rows, as lines of values separated by `|`.
    @discardableResult
    package func query(_ sql: String, database: String = "postgres") throws -> String {
        try self.installation.run(
            "psql",
            ["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.address(database), "-c", sql]
        )
    }

    /// Repeats a query until it returns the expected answer.
    ///
    /// - Throws: `PostgresFailure` if the query fails, or does not return this answer within a minute.
    package func wait(for answer: String, of sql: String, database: String = "postgres") throws {
        let deadline = SystemClock.monotonic + PostgresLog.waitMax
        while SystemClock.monotonic < deadline {
            if try self.query(sql, database: database) == answer { return }
        }
        throw PostgresFailure(description: "\"\(sql)\" does not become \(answer)")
    }

    // MARK: Starting and stopping

    /// Starts the server, which must be stopped, and waits until it accepts clients.
    package func start() throws {
        precondition(!self.isRunning, "the server runs")
        let run = try PostgresRun(self.installation, data: self.folder.data)
        self.monitor.withLock { self.run = run }
    }

    /// Shuts the server down fast (SIGINT), and waits for its end. Clients are disconnected with error 57P01.
    package func stop() { self.end { $0.send(SIGINT) } }

    /// Kills all processes of the server without a shutdown (SIGKILL), and waits for their end.
    package func kill() { self.end { $0.sendToAll(SIGKILL) } }

    /// Shuts the server down fast, and starts it again.
    package func restart() throws {
        self.stop()
        try self.start()
    }

    /// Suspends all processes of the server. The kernel still accepts connections to the server's sockets.
    package func freeze() { self.monitor.withLock { self.run }?.sendToAll(SIGSTOP) }

    /// Resumes a frozen server.
    package func thaw() { self.monitor.withLock { self.run }?.sendToAll(SIGCONT) }

    /// Changes a setting, and waits until new sessions have it. Others may read it with a delay.
    package func set(_ setting: String, _ value: String) throws {
        try self.query("ALTER SYSTEM SET \(setting) = '\(value)'")
        try self.query("SELECT pg_reload_conf()")
        try self.wait(for: value, of: "SHOW \(setting)")
    }

    private func end(_ order: (PostgresRun) -> Void) {
        guard let run = self.monitor.withLock({ self.run.take() }) else { return }
        order(run)
        run.waitForEnd()
    }

    // MARK: Standbys

    /// Creates a standby of this running server, and waits until the standby streams from it.
    ///
    /// - Parameters:
    ///   - name: the standby's name at the primary.
    ///   - isSynchronous: true if commits on the primary must wait for one of the standbys from now on.
    package func makeStandby(_ name: String = "standby", isSynchronous: Bool = true) throws -> PostgresServer {
        let folder = try PostgresFolder()
        try self.installation.run(
            "pg_basebackup",
            [
                "-d", "\(self.address())?application_name=\(name)", "-D", folder.data, "-X", "stream", "-c", "fast",
                "-R",
                "--no-sync",
            ]
        )
        let standby = try PostgresServer(self.installation, folder, self.options)
        if isSynchronous { try self.set("synchronous_standby_names", "ANY 1 (*)") }
        try self.waitForStandby(name, isSynchronous: isSynchronous)
        return standby
    }

    /// Promotes a standby to primary, and waits for the promotion.
    package func promote() throws {
        try self.installation.run("pg_ctl", ["promote", "-w", "-D", self.folder.data])
    }

    /// Makes this standby follow another primary, and waits until it streams from that primary.
    package func follow(_ primary: PostgresServer, as name: String = "standby") throws {
        let address = "host=127.0.0.1 port=\(primary.port) user=postgres application_name=\(name)"
        try self.set("primary_conninfo", address)
        try primary.waitForStandby(name, isSynchronous: false)
    }

    private func waitForStandby(_ name: String, isSynchronous: Bool) throws {
        let isGood = isSynchronous ? "sync_state = 'quorum'" : "true"
        try self.wait(
            for: "1",
            of: """
                SELECT count(*) FROM pg_stat_replication
                WHERE application_name = '\(name)' AND state = 'streaming' AND \(isGood)
                """
        )
    }

    // MARK: Settings

    private static func configure(
        _ installation: PostgresInstallation,
        _ folder: PostgresFolder,
        _ options: Options,
        _ port: UInt16
    ) throws {
        var settings = self.settings
        settings["port"] = "\(port)"
        settings["unix_socket_directories"] = "'\(folder.path)'"
        if !options.isDurable { settings.merge(["fsync": "off", "full_page_writes": "off"]) { _, new in new } }
        if let certificate = options.certificate {
            let copy = "\(folder.path)/server.pem"
            try installation.copy(certificate, to: copy)
            settings.merge(["ssl": "on", "ssl_cert_file": "'\(copy)'", "ssl_key_file": "'\(copy)'"]) { _, new in new }
        }
        settings.merge(options.settings) { _, new in new }
        // Append the settings, because the last line for a setting takes effect.
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(folder.data)/postgresql.conf"))
        try file.seekToEnd()
        try file.write(contentsOf: Data(settings.map { "\($0.key) = \($0.value)\n" }.sorted().joined().utf8))
        try file.close()
    }

    private static let settings = [
        "listen_addresses": "'127.0.0.1'", "max_connections": "200", "shared_buffers": "'64MB'", "jit": "off",
        "max_wal_senders": "10", "wal_keep_size": "'256MB'", "timezone": "'UTC'", "log_timezone": "'UTC'",
        "lc_messages": "'C'", "cluster_name": "'wakegate-test'", "wal_retrieve_retry_interval": "'100ms'",
        "superuser_reserved_connections": "3",
    ]
}

extension PostgresServer {
    /// Returns the server that all tests of a process share, each with a separate database (`database()`). The server
    /// does not sync commits, and ends when the process ends.
    ///
    /// - Throws: `PostgresFailure` with the remedy if PostgreSQL is missing on this machine.
    package static func shared() throws -> PostgresServer { try self.sharedResult.get() }

    private static let sharedResult = Result { try PostgresServer(Options(isDurable: false)) }
}

/// The data folder of a server that has never run. It is created once per process, which takes a second, and copied for
/// each server.
enum PostgresTemplate {
    /// Returns the folder of the template, kept until the process ends.
    static func shared() throws -> PostgresFolder { try self.result.get() }

    private static let result = Result { try Self.make() }

    /// The rules of `pg_hba.conf`. The first rule that matches a client applies.
    private static let access = """
        host all secured 127.0.0.1/32 scram-sha-256
        local all all trust
        host all all 127.0.0.1/32 trust
        local replication all trust
        host replication all 127.0.0.1/32 trust

        """

    private static func make() throws -> PostgresFolder {
        let installation = try PostgresInstallation.found()
        let folder = try PostgresFolder()
        try installation.run(
            "initdb",
            [
                "-D", folder.data, "-U", "postgres", "-E", "UTF8", "--locale=C", "--auth=trust", "--no-sync",
                "--no-instructions",
            ]
        )
        try Data(self.access.utf8).write(to: URL(fileURLWithPath: "\(folder.data)/pg_hba.conf"))
        return folder
    }
}
