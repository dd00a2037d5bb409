import Foundation
import Glibc
import Synchronization
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
        edge: String? = nil,
        admin: String? = nil,
        under launcher: [String] = []
    ) throws -> RunningGateway {
        let settings = ["--set", "drainTimeout=1"] + arguments
        let edge = try edge ?? "127.0.0.1:\(FreePort.take())"
        let admin = try admin ?? "127.0.0.1:\(FreePort.take())"
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

/// Ports of this machine on which nothing listens.
///
/// They are below the range from which the system gives ports to others, so that no connection or listener takes the
/// port of a gateway until it starts again.
enum FreePort {
    private static let ports = 10_000..<20_000
    private static let count = Atomic(Int.random(in: Self.ports))

    static func take() throws -> Int {
        for _ in Self.ports {
            let number = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
            let port = Self.ports.lowerBound + number % Self.ports.count
            if Self.isFree(port) { return port }
        }
        throw ChildProcess.Failure(description: "no port is free")
    }

    private static func isFree(_ port: Int) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        return unsafe withUnsafePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
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
