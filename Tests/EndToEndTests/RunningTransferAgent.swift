import Foundation
import Glibc

/// A real `wakegate transfers` on a socket in a folder of its own, which outlives it; ended with the last reference.
final class RunningTransferAgent {
    /// Where it keeps its state, and its socket.
    let folder: URL
    /// What `wakegate transfer --agent` and `WAKEGATE_TRANSFERS` take.
    var address: String { "unix:\(self.folder.path)/agent.sock" }
    private(set) var process: ChildProcess
    private let command: [String]

    /// - Parameters:
    ///   - gateway: who is asked for wakes; nil for a place where nobody is.
    ///   - options: more of its command line.
    ///   - metered: whether the network costs by the byte.
    ///   - environment: variables besides the test's own, `NAME=VALUE` each.
    init(
        _ gateway: RunningGateway? = nil,
        _ options: [String] = [],
        metered: String = "no",
        environment: [String] = []
    ) throws {
        self.folder = FileManager.default.temporaryDirectory.appendingPathComponent("wg-\(UUID())")
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
        var all = ["--state", self.folder.appendingPathComponent("state").path]
        all += ["--listen", "unix:\(self.folder.path)/agent.sock", "--metered", metered]
        all += ["--gateway", gateway.map { "https://\($0.edge)" } ?? "http://127.0.0.1:9"]
        if let gateway { all += ["--ca", gateway.certificateAuthority] }
        self.command = environment + [RunningGateway.program, "transfers"] + all + options
        self.process = try ChildProcess("env", self.command)
        try self.awaitReady()
    }

    deinit {
        self.process.send(SIGKILL)
        try? FileManager.default.removeItem(at: self.folder)
    }

    /// Kills it, as `kill -9` does, and waits until it is gone.
    func kill() throws {
        self.process.send(SIGKILL)
        _ = try self.process.finish()
    }

    /// Starts it once more.
    func start() throws {
        self.process = try ChildProcess("env", self.command)
        try self.awaitReady()
    }

    private func awaitReady() throws {
        guard let line = try self.process.line(), line.contains("\"ready\": true") else {
            throw ChildProcess.Failure(description: "the agent did not start: \(self.process.errors)")
        }
    }

    private func curl(_ path: String, _ options: [String] = []) throws -> ChildProcess.Ended {
        let socket = ["--silent", "--fail", "--max-time", "10", "--unix-socket", "\(self.folder.path)/agent.sock"]
        return try ChildProcess.run("curl", socket + options + ["http://localhost\(path)"])
    }

    /// Posts JSON, and returns the answer's body.
    func post(_ path: String, _ body: String) throws -> String {
        let socket = ["--silent", "--max-time", "10", "--unix-socket", "\(self.folder.path)/agent.sock"]
        return try ChildProcess.run("curl", socket + ["--data", body, "http://localhost\(path)"]).output
    }

    /// Runs `wakegate transfer` with this agent.
    func transfer(_ arguments: String...) throws -> ChildProcess.Ended { try self.run(arguments) }

    /// Runs `wakegate transfer` with this agent.
    func run(_ arguments: [String]) throws -> ChildProcess.Ended {
        try ChildProcess.run(RunningGateway.program, ["transfer"] + arguments + ["--agent", self.address])
    }

    /// Starts `wakegate transfer` with this agent.
    func begin(_ arguments: String...) throws -> ChildProcess {
        try ChildProcess(RunningGateway.program, ["transfer"] + arguments + ["--agent", self.address])
    }

    /// Adds a transfer, and gives its name.
    func add(_ arguments: String...) throws -> String {
        let line = ["transfer", "add"] + arguments + ["--agent", self.address]
        let ended = try ChildProcess.run(RunningGateway.program, line)
        guard ended.status == 0 else { throw ChildProcess.Failure(description: ended.errors) }
        return ended.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// A transfer, as it is now.
    func state(_ session: String, _ transfer: String) throws -> [String: Any] {
        let ended = try self.curl("/v1/sessions/\(session)/transfers/\(transfer)")
        guard ended.status == 0 else { throw ChildProcess.Failure(description: ended.output + ended.errors) }
        return try JSONSerialization.jsonObject(with: Data(ended.output.utf8)) as? [String: Any] ?? [:]
    }

    /// What it says of itself.
    func status() throws -> [String: Any] {
        let ended = try self.curl("/v1/status")
        return try JSONSerialization.jsonObject(with: Data(ended.output.utf8)) as? [String: Any] ?? [:]
    }

    private func list(_ session: String) throws -> [[String: Any]] {
        let ended = try self.curl("/v1/sessions/\(session)/transfers")
        let object = try? JSONSerialization.jsonObject(with: Data(ended.output.utf8)) as? [String: Any]
        return object?["transfers"] as? [[String: Any]] ?? []
    }

    /// How many transfers a session has.
    func count(of session: String) throws -> Int { try self.list(session).count }

    /// The name of a session's first transfer, as soon as it has one; it is waited for a minute.
    func first(of session: String) throws -> String {
        var id: String?
        let isThere = try Polling.isSo {
            id = try self.list(session).first?["transfer"] as? String
            return id != nil
        }
        guard isThere, let id else { throw ChildProcess.Failure(description: "no transfer within a minute") }
        return id
    }

    /// Waits until somebody follows a session's events, at most for a minute.
    func awaitListener() throws {
        let isFollowed = try Polling.isSo {
            try self.curl("/metrics").output.contains(#/(?m)^wakegate_transfers_listeners [1-9]/#)
        }
        guard isFollowed else {
            throw ChildProcess.Failure(description: "nobody follows any session within a minute")
        }
    }

    /// Looks at a transfer again and again until it is as wanted, at most for a minute.
    @discardableResult
    func eventually(
        _ what: String,
        _ session: String,
        _ transfer: String,
        _ isWanted: ([String: Any]) -> Bool
    ) throws -> [String: Any] {
        var state: [String: Any] = [:]
        let isSo = try Polling.isSo {
            state = try self.state(session, transfer)
            return isWanted(state)
        }
        guard isSo else { throw ChildProcess.Failure(description: "not within a minute: \(what); \(state)") }
        return state
    }
}
