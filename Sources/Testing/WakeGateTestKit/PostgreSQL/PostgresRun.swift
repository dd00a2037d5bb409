import Foundation
import Glibc
import Platform

/// One run of a server: its process, the processes that it made, and its log.
final class PostgresRun {
    let log: PostgresLog
    private let process = Process()
    private let ended = Latch()

    /// Starts a server and waits until it lets clients in.
    ///
    /// - Throws: what it logged when it ended instead.
    init(_ installation: PostgresInstallation, data: String) throws {
        let errors = Pipe.toChild()
        let command = installation.command("postgres", ["-D", data])
        self.process.executableURL = URL(fileURLWithPath: command[0])
        self.process.arguments = Array(command.dropFirst())
        self.process.environment = PostgresProgram.environment
        self.process.currentDirectoryURL = URL(fileURLWithPath: "/")
        self.process.standardInput = FileHandle.nullDevice
        self.process.standardOutput = FileHandle.nullDevice
        self.process.standardError = errors
        let ended = self.ended
        self.process.terminationHandler = { _ in ended.open() }
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

    /// Sends a signal to every process of the server, the first one first.
    func sendToAll(_ signal: Int32) {
        // What it makes after it was asked what it has made, nobody would end.
        if signal == SIGKILL { kill(self.identifier, SIGSTOP) }
        let others = self.others
        kill(self.identifier, signal)
        for other in Set(others + self.others) { kill(other, signal) }
    }

    /// Waits until every process of the server is gone.
    func waitForEnd() {
        self.ended.wait()
        _ = self.log.waitForEnd()
    }

    /// The processes that the first one made.
    private var others: [Int32] {
        let list = "/proc/\(self.identifier)/task/\(self.identifier)/children"
        let text = (try? String(contentsOfFile: list, encoding: .utf8)) ?? ""
        return text.split(whereSeparator: \.isWhitespace).compactMap { Int32($0) }
    }
}
