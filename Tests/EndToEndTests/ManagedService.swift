import Foundation
import Testing

/// A service under a service manager that behaves like systemd and prints the service's notifications.
struct ManagedService {
    private static let script = RunningGateway.root.appendingPathComponent(
        "Tests/EndToEndTests/Clients/service_manager.py"
    ).path
    private let manager: ChildProcess

    /// - Parameters:
    ///   - options: the options of the manager.
    ///   - command: the command line of the service.
    init(_ options: [String] = [], _ command: [String]) throws {
        self.manager = try ChildProcess("python3", [Self.script] + options + ["--"] + command, isInputOpen: true)
    }

    var errors: String { self.manager.errors }

    /// Returns the next line that begins with one of `beginnings`. Other lines are skipped.
    func next(_ beginnings: String...) throws -> String {
        while let line = try self.manager.line() {
            if beginnings.contains(where: { line.hasPrefix($0) }) { return line }
        }
        throw ChildProcess.Failure(description: "no \(beginnings); standard error: \(self.errors)")
    }

    /// Sends a command to the manager.
    func write(_ command: String) throws { try self.manager.write(command) }

    /// Waits for the service's end.
    func finish() throws -> ChildProcess.Ended { try self.manager.finish() }

    /// Makes the manager end the service.
    func end() throws -> ChildProcess.Ended {
        try self.write("end")
        return try self.finish()
    }

    /// Expects that the service stops its watchdog notifications while one of its threads is stopped, and resumes them
    /// afterwards.
    func expectStarvation(withStopped thread: String) throws {
        _ = try self.next("told: WATCHDOG=1")
        try self.write("stop \(thread)")
        _ = try self.next("stopped")
        // The answer to the last check may still have been pending.
        let first = try self.next("told: WATCHDOG=1", "silent")
        if first != "silent" { #expect(try self.next("told: WATCHDOG=1", "silent") == "silent") }
        try self.write("continue")
        _ = try self.next("told: WATCHDOG=1")
    }
}
