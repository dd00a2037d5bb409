import Foundation
import Glibc
import Testing

/// A real `wakegate serve` on free ports, with a certificate that `wakegate dev` made; ended with the last reference.
///
/// Its second admin listener stands on every address, where operators are asked who they are.
final class ServedGateway {
    /// Which listener is spoken to.
    enum Listener: String, CaseIterable {
        case edge, plain, admin, adminAfar
    }

    let folder: URL
    let state: URL
    let process: ChildProcess
    private let addresses: [Listener: String]
    private let certificates: String
    /// Made the certificates, and keeps the folder.
    private let development: RestartFolder

    /// - Parameter members: more of the configuration's file; a section adds to the one there is.
    init(_ arguments: [String] = [], members: [String: Any] = [:]) throws {
        // Its certificates stay when it has gone.
        let development = try RestartFolder()
        self.certificates = development.state.path
        try development.end(try development.start(), SIGKILL)
        self.development = development
        self.folder = development.folder
        self.state = development.folder.appendingPathComponent("state")
        var configuration: [String: Any] = [
            "edge": "127.0.0.1:0", "plain": "127.0.0.1:0", "admin": ["127.0.0.1:0", "0.0.0.0:0"], "insecure": true,
            "state": self.state.path, "drainTimeout": 1, "store": "sqlite",
            "tls": ["certificate": "\(self.certificates)/server.pem", "key": "\(self.certificates)/server.key"],
        ]
        configuration.merge(members) { own, more in
            guard let own = own as? [String: Any], let more = more as? [String: Any] else { return more }
            return own.merging(more) { $1 }
        }
        let file = Self.configurationFile(in: self.folder)
        try JSONSerialization.data(withJSONObject: configuration).write(to: file)
        let command = ["serve", "--config", file.path] + arguments
        self.process = try ChildProcess(RunningGateway.program, command, folder: self.folder)
        guard let line = try self.process.line(),
            let ready = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
            let edge = ready["edge"] as? String, let plain = ready["plain"] as? String,
            let admin = ready["admin"] as? [String]
        else { throw ChildProcess.Failure(description: "no ready line; standard error: \(self.process.errors)") }
        let port = admin[1].split(separator: ":").last ?? ""
        self.addresses = [.edge: edge, .plain: plain, .admin: admin[0], .adminAfar: "127.0.0.1:\(port)"]
    }

    var configurationFile: URL { Self.configurationFile(in: self.folder) }

    private static func configurationFile(in folder: URL) -> URL { folder.appendingPathComponent("wakegate.json5") }

    /// Has the authority sign another certificate for the edge, in the files of the one there is.
    func renewCertificate() throws {
        for name in ["server.pem", "server.key"] { unsafe unlink("\(self.certificates)/\(name)") }
        try self.development.end(try self.development.start(), SIGKILL)
    }

    /// The file of the authority that the edge's certificate is from.
    var authority: String { "\(self.certificates)/ca.pem" }

    /// The files of the edge's certificate and of its key, and the authority's key.
    var certificate: String { "\(self.certificates)/server.pem" }
    var key: String { "\(self.certificates)/server.key" }
    var providerKey: String { "\(self.certificates)/provider.p8" }
    var authorityKey: String { "\(self.certificates)/ca.key" }

    /// What tells the examples where the edge is, and what to trust.
    var exampleEnvironment: [String] {
        [
            "NO_PROXY=*", "WAKEGATE_URL=https://\(self.addresses[.edge] ?? "")",
            "WAKEGATE_CA=\(self.certificates)/ca.pem",
        ]
    }

    /// Ends it, and waits until it is gone.
    func end() throws {
        self.process.send(SIGTERM)
        _ = try self.process.finish()
    }

    /// Starts it with the same configuration, where it cannot start, and gives its end.
    func startInVain() throws -> ChildProcess.Ended {
        try ChildProcess.run(RunningGateway.program, ["serve", "--config", self.configurationFile.path])
    }

    /// Where a client finds a listener.
    func url(_ listener: Listener) -> String {
        "\(listener == .edge ? "https" : "http")://\(self.addresses[listener] ?? "")"
    }

    /// The URL of a path, and what makes curl trust it.
    func curl(_ listener: Listener, _ path: String) -> [String] {
        let address = self.addresses[listener] ?? ""
        let common = ["--silent", "--show-error", "--noproxy", "*"]
        switch listener {
        case .edge:
            return common + ["--http2", "--cacert", "\(self.certificates)/ca.pem", "https://\(address)\(path)"]
        case .plain, .admin, .adminAfar: return common + ["http://\(address)\(path)"]
        }
    }

    /// A request with a token or a client certificate, or with neither.
    func ask(
        _ listener: Listener,
        _ method: String,
        _ path: String,
        token: String? = nil,
        body: String? = nil,
        fields: [String] = [],
        certificate: String? = nil
    ) throws -> Answer {
        var options = self.curl(listener, path) + ["--include", "--max-time", "60", "--request", method]
        if let certificate { options += ["--cert", certificate] }
        if let token { options += ["--header", "authorization: Bearer \(token)"] }
        for field in fields { options += ["--header", field] }
        if let body { options += ["--data-binary", body] }
        let ended = try ChildProcess.run("curl", options)
        guard ended.status == 0 else { throw ChildProcess.Failure(description: "curl: \(ended.errors)") }
        return try Answer(curlOutput: ended.output)
    }

    /// A worker that is nothing but `curl -N`; it has been subscribed when this returns.
    func worker(_ topic: String, token: String? = nil, certificate: String? = nil) throws -> EventStream {
        var options = self.curl(.edge, "/v1/topics/\(topic)/wakes?slots=4") + ["--no-buffer"]
        if let certificate { options += ["--cert", certificate] }
        if let token { options += ["--header", "authorization: Bearer \(token)"] }
        let before = try self.workerCount()
        let stream = EventStream(try ChildProcess("curl", options))
        try self.eventually("a worker") { try self.workerCount() == before + 1 }
        return stream
    }

    /// The connected workers, as an operator on this machine sees them.
    func workerCount() throws -> Int {
        try self.ask(.admin, "GET", "/v1/stats").integer("workers", "connected") ?? -1
    }

    /// Makes a token in the gateway's state folder, or in another.
    func issue(_ arguments: String..., state: URL? = nil) throws -> (token: String, id: String) {
        let command = ["token", "issue"] + arguments + ["--state", (state ?? self.state).path]
        let ended = try ChildProcess.run(RunningGateway.program, command)
        let words = ended.errors.split(separator: " ").map(String.init)
        guard ended.status == 0, let index = words.firstIndex(of: "token"), index + 1 < words.count else {
            throw ChildProcess.Failure(description: "token issue: \(ended.status) \(ended.errors)")
        }
        return (ended.output.trimmingCharacters(in: .whitespacesAndNewlines), words[index + 1])
    }

    func revoke(_ id: String) throws {
        let ended = try ChildProcess.run(
            RunningGateway.program,
            ["token", "revoke", id, "--config", self.folder.appendingPathComponent("wakegate.json5").path]
        )
        guard ended.status == 0 else { throw ChildProcess.Failure(description: "token revoke: \(ended.errors)") }
    }

    /// Asks again and again until the answer is as wanted, at most for a minute.
    func eventually(_ what: String, _ ask: () throws -> Bool) throws {
        guard try Polling.isSo(ask) else {
            throw ChildProcess.Failure(description: "not within 60 s: \(what); log: \(self.process.errors)")
        }
    }
}

/// A real `wakegate serve` whose configuration file is written anew while it runs.
final class ReloadingGateway {
    let served: ServedGateway
    private var members: [String: Any]

    /// - Parameters:
    ///   - arguments: options of the command line, which win over the file.
    ///   - members: more of the file.
    init(_ arguments: [String] = [], members: [String: Any] = [:]) throws {
        self.served = try ServedGateway(arguments, members: members)
        let data = try Data(contentsOf: self.served.configurationFile)
        self.members = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
    }

    /// Writes the file with these members instead of the ones of the same name; nil leaves one out.
    func write(_ changes: [String: Any?]) throws {
        for (name, value) in changes { self.members[name] = value }
        try JSONSerialization.data(withJSONObject: self.members).write(to: self.served.configurationFile)
    }

    /// The section `tls` of the file with these members instead of the ones of the same name.
    func tls(_ changes: [String: Any]) -> [String: Any] {
        (self.members["tls"] as? [String: Any] ?? [:]).merging(changes) { $1 }
    }

    /// Has it read the file, as an operator does.
    func reload(_ arguments: String...) throws -> ChildProcess.Ended {
        let place = self.served.url(.admin)
        return try ChildProcess.run(RunningGateway.program, ["reload", "--gateway", place] + arguments)
    }

    /// Has it read the file by a signal, and waits until it has.
    ///
    /// - Parameter event: what it logs then.
    func hangUp(_ event: String = "reloaded") throws {
        func count() -> Int { self.served.process.errors.components(separatedBy: " \(event) ").count }
        let before = count()
        self.served.process.send(SIGHUP)
        try self.served.eventually(event) { count() > before }
    }

    /// What `POST /v1/reload` answers.
    func answer() throws -> Answer { try self.served.ask(.admin, "POST", "/v1/reload") }

    func explain(_ token: String) throws -> Answer { try self.served.ask(.admin, "GET", "/v1/devices/\(token)") }

    /// A push of a background notification.
    func push(_ token: String, topic: String, fields more: [String] = []) throws -> Answer {
        let fields = ["apns-topic: \(topic)", "apns-push-type: background", "apns-priority: 5"] + more
        return try self.served.ask(.edge, "POST", "/3/device/\(token)", body: RunningGateway.payload, fields: fields)
    }
}

extension Answer {
    /// The keys in one of a reload's lists.
    func keys(_ list: String) -> [String] {
        (self.value(list) as? [[String: Any]] ?? []).compactMap { $0["key"] as? String }
    }
}
