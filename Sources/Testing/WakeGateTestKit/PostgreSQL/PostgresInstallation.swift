import Foundation
import Glibc
import Platform

/// PostgreSQL's programs on this machine. If the tests run as root, the programs run as another user, because servers
/// refuse to run as root.
struct PostgresInstallation: Sendable {
    /// The user who runs servers if the tests run as root. Debian's package creates this user.
    private static let user = "postgres"
    private static let folders = ["/usr/lib/postgresql/15/bin", "/usr/pgsql-15/bin", "/usr/local/pgsql/bin"]

    /// The folder of `initdb` and `postgres`.
    private let programs: String
    private let isRoot = geteuid() == 0

    /// Returns the installation, searched once per process.
    ///
    /// - Throws: `PostgresFailure` with the remedy if PostgreSQL is missing.
    static func found() throws -> PostgresInstallation { try self.result.get() }

    private static let result = Result { try PostgresInstallation() }

    private init() throws {
        let files = FileManager.default
        guard let programs = Self.folders.first(where: { files.isExecutableFile(atPath: "\($0)/initdb") }) else {
            throw PostgresFailure(description: "PostgreSQL 15 is missing on this machine; run deploy/setup")
        }
        self.programs = programs
    }

    /// Returns the complete command line of a program with its arguments.
    func command(_ program: String, _ arguments: [String]) -> [String] {
        self.asUser(["\(self.programs)/\(program)"] + arguments)
    }

    /// Returns a command line that runs `command` as the user who runs servers.
    func asUser(_ command: [String]) -> [String] {
        let prefix = ["/usr/bin/setpriv", "--reuid=\(Self.user)", "--regid=\(Self.user)", "--clear-groups", "--"]
        return (self.isRoot ? prefix : []) + command
    }

    /// Runs a program of PostgreSQL to its end.
    ///
    /// - Returns: the program's standard output without the last newline.
    /// - Throws: `PostgresFailure` with the program's standard error if the program failed.
    @discardableResult
    func run(_ program: String, _ arguments: [String]) throws -> String {
        try PostgresProgram.run(self.command(program, arguments))
    }

    /// Creates a folder to which servers may write.
    func makeFolder(_ path: String) throws {
        try PostgresProgram.run(["/usr/bin/install", "--directory", "--mode=755"] + self.ownership + [path])
    }

    /// Copies a file so that only servers may read it.
    func copy(_ file: String, to path: String) throws {
        try PostgresProgram.run(["/usr/bin/install", "--mode=600"] + self.ownership + [file, path])
    }

    private var ownership: [String] { self.isRoot ? ["--owner=\(Self.user)", "--group=\(Self.user)"] : [] }
}

/// The error of a server or program that a test uses, with its cause.
package struct PostgresFailure: Error, CustomStringConvertible {
    package let description: String
}

/// Functions that run programs to their end.
enum PostgresProgram {
    /// - Returns: the program's standard output without the last newline.
    /// - Throws: `PostgresFailure` with the program's standard error if the program failed.
    @discardableResult
    static func run(_ command: [String]) throws -> String {
        let ended = try Children.run(command[0], Array(command.dropFirst()), environment: Self.environment)
        guard ended.status == 0 else {
            let name = command.first { $0.hasPrefix("/usr/lib/postgresql") } ?? command[0]
            throw PostgresFailure(description: "\(name): \(ended.errors)")
        }
        return ended.output.hasSuffix("\n") ? String(ended.output.dropLast()) : ended.output
    }

    /// Returns a process that is ready to run a command.
    ///
    /// - `ended`: is opened when the process ends.
    static func process(_ command: [String], input: Any, errors: Any, ended: Latch) -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: command[0])
        process.arguments = Array(command.dropFirst())
        process.environment = self.environment
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = input
        process.standardOutput = FileHandle.nullDevice
        process.standardError = errors
        process.terminationHandler = { _ in ended.open() }
        return process
    }

    /// A fixed environment, because libpq's variables in the caller's environment would change the programs' behavior.
    static let environment = ["PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8", "TZ": "UTC"]
}

/// A shell that waits for the end of its standard input, which is when this process ends for any reason or the last
/// reference is released.
final class GuardianShell: @unchecked Sendable {
    private let process: Process
    private let line = Pipe.toChild()
    private let ended = Latch()

    init(_ command: [String]) throws {
        let errors = FileHandle.nullDevice
        self.process = PostgresProgram.process(command, input: self.line, errors: errors, ended: self.ended)
        try self.process.start()
    }

    /// Waits until the shell has done its work.
    deinit {
        try? self.line.fileHandleForWriting.close()
        self.ended.wait()
    }

    var isRunning: Bool { self.process.isRunning }
}

/// The folder of a server, watched by a guardian shell. When this process ends for any reason, or releases the folder,
/// the shell ends the server and deletes the folder.
final class PostgresFolder: Sendable {
    let path: String
    private let guardian: GuardianShell

    /// The script of the guardian shell. When the script's standard input ends, it resumes the server if it is
    /// suspended, shuts it down immediately (SIGQUIT), kills it if it still runs after 20 seconds, and deletes the
    /// folder.
    private static let script = """
        trap '' INT TERM HUP
        cat >/dev/null
        pid="$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)"
        if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd")" = "$1/data" ]; then
            kill -CONT $(cat "/proc/$pid/task/$pid/children") "$pid" 2>/dev/null
            kill -QUIT "$pid" 2>/dev/null
            timeout --signal=KILL 20 tail --pid="$pid" -f /dev/null || kill -KILL "$pid"
        fi
        rm -rf "$1"
        """

    init() throws {
        let temporary = FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path
        var bits = RandomBits()
        let random = UInt32(truncatingIfNeeded: bits.next())
        self.path = "\(temporary)/wakegate-pg-\(String(random, radix: 36))"
        try PostgresInstallation.found().makeFolder(self.path)
        self.guardian = try GuardianShell(
            ["/usr/bin/setsid", "/bin/sh", "-c", Self.script, "postgres-guardian", self.path]
        )
    }

    /// The path of the data folder. The folder may not exist yet.
    var data: String { "\(self.path)/data" }
}

/// The log of a server, read continuously by a thread.
///
/// `@unchecked Sendable`: `monitor` guards all fields that change.
final class PostgresLog: @unchecked Sendable {
    /// The default of the longest wait for a text in the log or for the server's end, in milliseconds.
    static let waitMax: Int64 = 60_000

    private let monitor = Monitor()
    private var bytes: [UInt8] = []
    private var hasEnded = false

    /// Starts to read from a pipe, until all processes that write to the pipe have ended.
    init(_ pipe: Pipe) throws {
        let reader = pipe.fileHandleForReading
        try NamedThread("postgres-log", signals: .blocked) { [self] in
            while true {
                let more = reader.availableData
                self.monitor.withLock {
                    self.bytes += more
                    self.hasEnded = more.isEmpty
                    self.monitor.broadcast()
                }
                if more.isEmpty { break }
            }
            try? reader.close()
        }
    }

    /// The log so far.
    var text: String { self.monitor.withLock { String(decoding: self.bytes, as: UTF8.self) } }

    /// Waits until the log contains one of the texts.
    ///
    /// - Returns: false if the server ends or the time passes first.
    func wait(for texts: [String], milliseconds: Int64 = waitMax) -> Bool {
        let deadline = SystemClock.monotonic + milliseconds
        return self.monitor.withLock {
            while true {
                let log = String(decoding: self.bytes, as: UTF8.self)
                if texts.contains(where: log.contains) { return true }
                guard !self.hasEnded, self.monitor.wait(until: deadline) else { return false }
            }
        }
    }

    /// Waits until all processes of the server have ended.
    ///
    /// - Returns: false if the time passes first.
    func waitForEnd(milliseconds: Int64 = waitMax) -> Bool {
        let deadline = SystemClock.monotonic + milliseconds
        return self.monitor.withLock {
            while !self.hasEnded {
                guard self.monitor.wait(until: deadline) else { return false }
            }
            return true
        }
    }
}

/// One run of a server: its process, its child processes, and its log.
final class PostgresRun {
    let log: PostgresLog
    private let process: Process
    private let ended = Latch()

    /// Starts a server and waits until it accepts clients.
    ///
    /// - Throws: `PostgresFailure` with the server's log if the server is not ready within a minute.
    init(_ installation: PostgresInstallation, data: String) throws {
        let errors = Pipe.toChild()
        let command = installation.command("postgres", ["-D", data])
        let input = FileHandle.nullDevice
        self.process = PostgresProgram.process(command, input: input, errors: errors, ended: self.ended)
        self.log = try PostgresLog(errors)
        try self.process.start()
        let isReady = self.log.wait(for: [
            "database system is ready to accept connections",
            "database system is ready to accept read-only connections",
        ])
        guard isReady else {
            self.send(SIGKILL)
            self.waitForEnd()
            throw PostgresFailure(description: "PostgreSQL did not start: \(self.log.text)")
        }
    }

    var identifier: Int32 { self.process.processIdentifier }

    /// Sends a signal to the server's first process.
    func send(_ signal: Int32) { kill(self.identifier, signal) }

    /// Sends a signal to every process of the server, beginning with the first process.
    func sendToAll(_ signal: Int32) {
        // Suspend the first process before SIGKILL, so that it starts no child process after its children were listed.
        if signal == SIGKILL { kill(self.identifier, SIGSTOP) }
        let others = self.others
        kill(self.identifier, signal)
        for other in Set(others + self.others) { kill(other, signal) }
    }

    /// Waits until all processes of the server have ended.
    func waitForEnd() {
        self.ended.wait()
        _ = self.log.waitForEnd()
    }

    /// The child processes of the first process.
    private var others: [Int32] {
        let list = "/proc/\(self.identifier)/task/\(self.identifier)/children"
        let text = (try? String(contentsOfFile: list, encoding: .utf8)) ?? ""
        return text.split(whereSeparator: \.isWhitespace).compactMap { Int32($0) }
    }
}
