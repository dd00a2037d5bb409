import Foundation
import Testing

/// A service under a service manager, as systemd is one, which says what the service tells it.
struct ManagedService {
    private static let script = RunningGateway.root.appendingPathComponent(
        "Tests/EndToEndTests/Clients/service_manager.py"
    ).path
    private let manager: ChildProcess

    /// - Parameters:
    ///   - options: the manager's.
    ///   - command: the service's command line.
    init(_ options: [String] = [], _ command: [String]) throws {
        self.manager = try ChildProcess("python3", [Self.script] + options + ["--"] + command, isInputOpen: true)
    }

    var errors: String { self.manager.errors }

    /// The next line that begins with one of `beginnings`; others are skipped.
    func next(_ beginnings: String...) throws -> String {
        while let line = try self.manager.line() {
            if beginnings.contains(where: { line.hasPrefix($0) }) { return line }
        }
        throw ChildProcess.Failure(description: "no \(beginnings); standard error: \(self.errors)")
    }

    /// Gives the manager a command.
    func write(_ command: String) throws { try self.manager.write(command) }

    /// Waits for the service's end.
    func finish() throws -> ChildProcess.Ended { try self.manager.finish() }

    /// Has the manager end the service.
    func end() throws -> ChildProcess.Ended {
        try self.write("end")
        return try self.finish()
    }

    /// The service tells that it is alive, does not while one of its threads stands still, and does again.
    func expectStarvation(withStopped thread: String) throws {
        _ = try self.next("told: WATCHDOG=1")
        try self.write("stop \(thread)")
        _ = try self.next("stopped")
        // The answer to what it was last asked may still have been there.
        let first = try self.next("told: WATCHDOG=1", "silent")
        if first != "silent" { #expect(try self.next("told: WATCHDOG=1", "silent") == "silent") }
        try self.write("continue")
        _ = try self.next("told: WATCHDOG=1")
    }
}
