import Foundation
import Glibc

/// A `wakegate worker` that runs a bash script for each wake, and what a test asks of it.
final class WorkerProcess {
    let process: ChildProcess
    private let gateway: RunningGateway

    /// - Parameters:
    ///   - options: of `wakegate worker`.
    ///   - script: runs in the gateway's folder.
    ///   - launcher: a command and its first arguments, which runs the program that the rest of its arguments name.
    /// It has been subscribed when this returns.
    convenience init(
        _ gateway: RunningGateway,
        topic: String,
        _ options: [String] = [],
        script: String,
        under launcher: [String] = []
    ) throws {
        try self.init(gateway, topic: topic, options, command: ["bash", "-c", script], under: launcher)
    }

    /// - Parameter command: runs in the gateway's folder, with its arguments.
    init(
        _ gateway: RunningGateway,
        topic: String,
        _ options: [String] = [],
        command: [String],
        under launcher: [String] = []
    ) throws {
        self.gateway = gateway
        let worker = [RunningGateway.program, "worker", "--topic", topic] + options + ["--"] + command
        let command = launcher + worker
        let before = try gateway.stats().integer("workers", "connected") ?? 0
        self.process = try ChildProcess(command[0], Array(command.dropFirst()), folder: gateway.folder)
        try gateway.eventually("a worker; its errors: \(self.process.errors)") {
            try gateway.stats().integer("workers", "connected") == before + 1
        }
    }

    /// The next line that a command wrote, without the wake's id.
    func line() throws -> String? { try self.process.line().map { String($0.dropFirst(33)) } }

    /// Waits for standard error to hold a text.
    func says(_ text: String) throws {
        try self.gateway.eventually("\"\(text)\" in: \(self.process.errors)") { self.process.errors.contains(text) }
    }

    /// Whether any process is left in the group.
    static func isGroupThere(_ group: Int32) -> Bool {
        // Those that have ended and that nobody reaped do no harm, and are not counted.
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.contains { name in
            guard Int32(name) != nil, let stat = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
                let end = stat.lastIndex(of: ")")
            else { return false }
            // After the name: state, parent, group.
            let fields = stat[stat.index(after: end)...].split(separator: " ")
            return fields.count > 2 && fields[0] != "Z" && Int32(fields[2]) == group
        }
    }
}
