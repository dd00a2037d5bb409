import Foundation
import Glibc
import WakeGateTestKit

/// A gateway process, with the questions of tests to it; ended with the last reference.
class GatewayProcess {
    let process: ChildProcess
    /// HOST:PORT of each listener.
    let edge: String
    let plain: String
    let admins: [String]
    /// The path of the certificate of the edge's authority.
    let certificateAuthority: String
    private var workers: [EventStream] = []

    /// - Parameter process: a process that writes its ready line next.
    init(_ process: ChildProcess, certificateAuthority: String) throws {
        func all(_ value: Any?) -> [String] { value as? [String] ?? (value as? String).map { [$0] } ?? [] }
        let ready = try process.object()
        self.admins = all(ready["admin"])
        guard ready["ready"] as? Bool == true, !self.admins.isEmpty, let edge = ready["edge"] as? String,
            let plain = all(ready["plain"]).first
        else { throw ChildProcess.Failure(description: "no ready line; standard error: \(process.errors)") }
        self.process = process
        self.edge = edge
        self.plain = plain
        self.certificateAuthority = certificateAuthority
    }

    var admin: String { self.admins[0] }

    /// Ends it with a signal, and waits until it is gone.
    func end(_ signal: Int32 = SIGTERM) throws { try self.process.end(signal) }

    /// The options with which curl uses HTTP/2 at the edge and trusts its certificate.
    var curlOptions: [String] {
        [
            "--silent", "--show-error", "--noproxy", "*", "--max-time", "60", "--http2", "--cacert",
            self.certificateAuthority,
        ]
    }

    /// Sends a request to the edge, over HTTP/2 and TLS.
    func edge(_ path: String, _ arguments: String...) throws -> Answer {
        try Answer.curl(self.curlOptions + arguments + ["https://\(self.edge)\(path)"])
    }

    /// Sends a request to the admin listener, over HTTP/1.1.
    func admin(_ path: String, _ arguments: String...) throws -> Answer {
        try Answer.curl(
            ["--silent", "--show-error", "--noproxy", "*", "--max-time", "60"] + arguments + [
                "http://\(self.admin)\(path)"
            ]
        )
    }

    /// Sends a push as a provider does, with curl.
    ///
    /// - Parameters:
    ///   - fields: additional header fields.
    ///   - certificate: the file of a client certificate and its key.
    func push(
        _ token: String,
        topic: String,
        payload: String = RunningGateway.payload,
        fields: [String] = [],
        certificate: String? = nil
    ) throws -> Answer {
        let fields = ["apns-topic: \(topic)", "apns-push-type: background", "apns-priority: 5"] + fields
        let proof = certificate.map { ["--cert", $0] } ?? []
        let options = proof + fields.flatMap { ["-H", $0] } + ["--data-binary", payload]
        return try Answer.curl(self.curlOptions + options + ["https://\(self.edge)/3/device/\(token)"])
    }

    func stats() throws -> Answer { try self.admin("/v1/stats") }

    /// Returns the number of connected workers.
    func workerCount() throws -> Int { try self.stats().integer("workers", "connected") ?? -1 }

    /// Returns the number of wakes with this outcome.
    func results(_ outcome: String) throws -> Int { try self.stats().integer("wakes", "results", outcome) ?? -1 }

    /// Starts a worker that is a plain `curl -N`, and waits until it has subscribed. It lives as long as this gateway.
    ///
    /// - Parameters:
    ///   - query: the text after the first parameters of the query.
    ///   - proof: the options of curl for a credential.
    @discardableResult
    func curlWorker(
        topic: String,
        name: String = "curl",
        query: String = "",
        proof: [String] = []
    ) throws -> EventStream {
        let before = try self.workerCount()
        let url = "https://\(self.edge)/v1/topics/\(topic)/wakes?slots=4&name=\(name)\(query)"
        let options = ["--silent", "--show-error", "--noproxy", "*", "--no-buffer", "--http2"] + proof
        let stream = EventStream(try ChildProcess("curl", options + ["--cacert", self.certificateAuthority, url]))
        try self.eventually("a worker") { try self.workerCount() == before + 1 }
        self.workers.append(stream)
        return stream
    }

    /// Starts a client that writes what its connection to the edge receives, as `goaway.py` says.
    ///
    /// - Parameter options: nothing, or the file of a client certificate and a path to push to at once.
    func hearing(_ options: String...) throws -> ChildProcess {
        try ChildProcess(client: "goaway.py", [self.edge, self.certificateAuthority] + options)
    }

    /// Polls until a condition holds, for at most a minute or the given time.
    func eventually(
        _ what: @autoclosure () -> String,
        within seconds: Double = 60,
        _ ask: () throws -> Bool
    ) throws {
        if try Polling.isSo(within: seconds, ask) { return }
        let stats = (try? self.stats().body) ?? "none"
        let state = "stats: \(stats); standard error: \(self.process.errors)"
        throw ChildProcess.Failure(description: "not within \(seconds) s: \(what()); \(state)")
    }
}

/// A `wakegate dev` process on free ports, in its own or a given directory.
final class RunningGateway: GatewayProcess {
    static let payload = #"{"aps":{"content-available":1}}"#

    /// The program that was built with these tests, in the same directory.
    static let program =
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        .map { URL(fileURLWithPath: $0).deletingLastPathComponent().appendingPathComponent("wakegate").path } ?? ""
    /// The directory of the program.
    static let products = URL(fileURLWithPath: RunningGateway.program).deletingLastPathComponent()
    /// The assignment to PATH with which commands find the program.
    static let path =
        "PATH=\(RunningGateway.products.path):\(ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")"
    static let root = Checkout.root
    /// Runs a program of `deploy/lib`, given its module's name.
    static let library = RunningGateway.root.appendingPathComponent("deploy/lib/run").path
    static let python = RunningGateway.root.appendingPathComponent(".build/venv/bin/python").path

    /// Returns the path of a client of these tests.
    static func client(_ name: String) -> String {
        Self.root.appendingPathComponent("Tests/EndToEndTests/Clients/\(name)").path
    }

    let folder: URL
    private let isFolderKept: Bool

    /// - Parameters:
    ///   - kept: an existing directory, which outlives this gateway; nil for a temporary one.
    ///   - edge: HOST:PORT of the edge; a free port by default.
    ///   - admin: HOST:PORT of the admin listener; a free port by default.
    ///   - showsEvents: true to print events on standard error.
    ///   - launcher: a command and its first arguments, which runs the program given by the remaining arguments.
    init(
        _ arguments: [String] = [],
        in kept: URL? = nil,
        edge: String = "127.0.0.1:0",
        admin: String = "127.0.0.1:0",
        showsEvents: Bool = false,
        under launcher: [String] = []
    ) throws {
        self.folder =
            kept ?? FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-\(UUID())")
        self.isFolderKept = kept != nil
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
        let free = ["--edge", edge, "--admin", admin, "--plain", "127.0.0.1:0"] + (showsEvents ? [] : ["--quiet"])
        let command = launcher + [RunningGateway.program, "dev"] + free + arguments
        let process = try ChildProcess(command[0], Array(command.dropFirst()), folder: self.folder)
        let authority = self.folder.appendingPathComponent(".wakegate/ca.pem").path
        try super.init(process, certificateAuthority: authority)
    }

    deinit {
        self.process.send(SIGKILL)
        if !self.isFolderKept { try? FileManager.default.removeItem(at: self.folder) }
    }

    /// Runs `wakegate` in a directory where it finds this gateway automatically.
    func wakegate(_ arguments: String...) throws -> ChildProcess.Ended {
        try ChildProcess.wakegate(arguments, folder: self.folder)
    }

    /// The options of `wakegate` for the edge, if it would find another listener.
    var edgeOptions: [String] { ["--gateway", "https://\(self.edge)", "--ca", self.certificateAuthority] }
}
