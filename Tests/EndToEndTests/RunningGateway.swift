import Foundation
import Glibc
import WakeGateTestKit

/// A real `wakegate dev` on free ports, in a folder of its own or one that is given; ended with the last reference.
final class RunningGateway {
    static let payload = #"{"aps":{"content-available":1}}"#

    /// The program that was built with these tests; it lies beside them.
    static let program =
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        .map { URL(fileURLWithPath: $0).deletingLastPathComponent().appendingPathComponent("wakegate").path } ?? ""
    static let root = Checkout.root
    /// Runs a program of `deploy/lib` by its module's name.
    static let library = RunningGateway.root.appendingPathComponent("deploy/lib/run").path
    static let python = RunningGateway.root.appendingPathComponent(".build/venv/bin/python").path

    /// The path of a client of these tests.
    static func client(_ name: String) -> String {
        Self.root.appendingPathComponent("Tests/EndToEndTests/Clients/\(name)").path
    }

    let folder: URL
    let process: ChildProcess
    /// HOST:PORT of each listener.
    let edge: String
    let admin: String
    let plain: String
    private let isFolderKept: Bool

    /// - Parameters:
    ///   - kept: a folder that is there, and outlives this gateway; nil for one of its own.
    ///   - edge: HOST:PORT of the edge; a free port by default.
    ///   - admin: HOST:PORT of the admin listener; a free port by default.
    ///   - showsEvents: whether it shows on standard error what happens.
    ///   - launcher: a command and its first arguments, which runs the program that the rest of its arguments name.
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
        let command = launcher + [Self.program, "dev"] + free + arguments
        self.process = try ChildProcess(command[0], Array(command.dropFirst()), folder: self.folder)
        func first(_ value: Any?) -> String? { value as? String ?? (value as? [String])?.first }
        guard let line = try self.process.line(),
            let ready = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
            ready["ready"] as? Bool == true, let edge = ready["edge"] as? String,
            let admin = ready["admin"] as? String, let plain = first(ready["plain"])
        else { throw ChildProcess.Failure(description: "no ready line; standard error: \(self.process.errors)") }
        self.edge = edge
        self.admin = admin
        self.plain = plain
    }

    deinit {
        self.process.send(SIGKILL)
        if !self.isFolderKept { try? FileManager.default.removeItem(at: self.folder) }
    }

    var certificateAuthority: String { self.folder.appendingPathComponent(".wakegate/ca.pem").path }

    /// What makes curl speak HTTP/2 to the edge, and trust it.
    var curlOptions: [String] {
        [
            "--silent", "--show-error", "--noproxy", "*", "--max-time", "60", "--http2", "--cacert",
            self.certificateAuthority,
        ]
    }

    /// A request to the edge, over HTTP/2 and TLS.
    func edge(_ path: String, _ arguments: String...) throws -> Answer {
        try self.curl(self.curlOptions + arguments + ["https://\(self.edge)\(path)"])
    }

    /// A request to the admin listener, over HTTP/1.1.
    func admin(_ path: String, _ arguments: String...) throws -> Answer {
        try self.curl(
            ["--silent", "--show-error", "--noproxy", "*", "--max-time", "60"] + arguments + [
                "http://\(self.admin)\(path)"
            ]
        )
    }

    /// A push as a provider sends it, with curl.
    func push(_ token: String, topic: String, payload: String = RunningGateway.payload) throws -> Answer {
        try self.edge(
            "/3/device/\(token)",
            "-H",
            "apns-topic: \(topic)",
            "-H",
            "apns-push-type: background",
            "-H",
            "apns-priority: 5",
            "--data-binary",
            payload
        )
    }

    func stats() throws -> Answer { try self.admin("/v1/stats") }

    /// Runs `wakegate` where it finds this gateway by itself.
    func wakegate(_ arguments: String..., input: String = "") throws -> ChildProcess.Ended {
        try ChildProcess.run(Self.program, arguments, input: input, folder: self.folder)
    }

    /// A worker that is nothing but `curl -N`; it has been subscribed when this returns.
    ///
    /// - Parameter query: what stands behind the query's first parameters.
    func curlWorker(topic: String, plain: Bool = false, query: String = "") throws -> EventStream {
        let url = plain ? "http://\(self.plain)" : "https://\(self.edge)"
        var options = ["--silent", "--show-error", "--noproxy", "*", "--no-buffer"]
        if !plain { options += ["--http2", "--cacert", self.certificateAuthority] }
        let before = try self.stats().integer("workers", "connected") ?? 0
        let path = "/v1/topics/\(topic)/wakes?slots=4&name=curl\(query)"
        let stream = EventStream(try ChildProcess("curl", options + ["\(url)\(path)"]))
        try self.eventually("a worker") { try self.stats().integer("workers", "connected") == before + 1 }
        return stream
    }

    /// Asks again and again until the answer is as wanted, at most for a minute, or as long as is given.
    func eventually(
        _ what: @autoclosure () -> String,
        within seconds: Double = 60,
        _ ask: () throws -> Bool
    ) throws {
        if try Polling.isSo(within: seconds, ask) { return }
        let stats = try self.stats().body
        throw ChildProcess.Failure(description: "not within \(seconds) s: \(what()); stats: \(stats)")
    }

    private func curl(_ arguments: [String]) throws -> Answer {
        let ended = try ChildProcess.run("curl", ["--include"] + arguments)
        guard ended.status == 0 else { throw ChildProcess.Failure(description: "curl: \(ended.errors)") }
        return try Answer(curlOutput: ended.output)
    }
}
