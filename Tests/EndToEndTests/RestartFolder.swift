import Foundation
import Glibc
import WakeGateTestKit

/// A directory in which gateways run one after another; removed with the last reference.
final class RestartFolder {
    private let temporary: TemporaryFolder

    init() throws { self.temporary = try TemporaryFolder() }

    var folder: URL { self.temporary.url }

    /// Returns a path in the directory.
    func path(_ name: String) -> String { self.folder.appendingPathComponent(name).path }

    /// The state directory of the gateways.
    var state: URL { self.folder.appendingPathComponent(".wakegate") }
    var journal: URL { self.state.appendingPathComponent("journal.sqlite") }
    var history: URL { self.state.appendingPathComponent("history.sqlite") }

    /// Starts the next gateway. The previous one must have ended.
    func start(
        _ arguments: [String] = [],
        edge: String = "127.0.0.1:0",
        admin: String = "127.0.0.1:0",
        under launcher: [String] = []
    ) throws -> RunningGateway {
        let settings = ["--set", "drainTimeout=1"] + arguments
        return try RunningGateway(settings, in: self.folder, edge: edge, admin: admin, under: launcher)
    }

    /// Starts a gateway that must fail to start, and returns its end.
    func startInVain(_ command: [String] = ["dev"]) throws -> ChildProcess.Ended {
        let free = ["--edge", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--state", self.state.path]
        return try ChildProcess.wakegate(command + free, folder: self.folder)
    }

    /// Executes statements on the journal, as another SQLite program would. No process may have it open.
    func changeJournal(_ statements: String) throws {
        let script = """
            import sqlite3, sys
            database = sqlite3.connect(sys.argv[1])
            database.executescript(sys.argv[2])
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            """
        let ended = try ChildProcess.run("python3", ["-c", script, self.journal.path, statements])
        guard ended.status == 0 else { throw ChildProcess.Failure(description: ended.errors) }
    }
}

extension RestartFolder {
    /// Puts a development gateway's keys and certificates into the state directory. They are made once per process.
    func putCertificates() throws {
        let mode = [FileAttributeKey.posixPermissions: 0o700]
        try FileManager.default.createDirectory(at: self.state, withIntermediateDirectories: true, attributes: mode)
        for (name, content) in try Self.certificates.get() {
            let file = self.state.appendingPathComponent(name)
            try content.write(to: file)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
        }
    }

    private static let certificates = Result { try RestartFolder.makeCertificates() }

    /// Returns the files that a development gateway has made, by name.
    private static func makeCertificates() throws -> [String: Data] {
        let made = try RestartFolder()
        try made.start().end(SIGKILL)
        var files: [String: Data] = [:]
        for name in ["ca.pem", "ca.key", "server.pem", "server.key", "provider.p8", "provider.pem", "worker.pem"] {
            files[name] = try Data(contentsOf: made.state.appendingPathComponent(name))
        }
        return files
    }
}

extension Answer {
    /// The recent events of an explanation, newest first, as event, apns-id and detail.
    var recent: [[String]] {
        let events = self.value("recent") as? [[String: Any]] ?? []
        return events.map { event in
            ["event", "apnsID", "detail"].map { event[$0] as? String ?? "" }
        }
    }
}
