import Foundation
import Glibc
import Testing

/// A `wakegate serve` process on free ports, with a certificate made by `wakegate dev`; ended with the last reference.
///
/// Its second admin listener is open to all addresses, so operators must authenticate there.
final class ServedGateway: GatewayProcess {
    /// The listener of a request.
    enum Listener: String, CaseIterable {
        case edge, plain, admin, adminAfar
    }

    let folder: URL
    let state: URL
    private let certificates: String
    /// The directory with the certificates.
    private let development: RestartFolder
    /// The members of the configuration file.
    private var members: [String: Any]

    /// - Parameters:
    ///   - arguments: command-line options, which override the file.
    ///   - members: additional members of the configuration file; a section is merged with the existing one.
    init(_ arguments: [String] = [], members: [String: Any] = [:]) throws {
        let development = try RestartFolder()
        self.certificates = development.state.path
        try development.putCertificates()
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
        self.members = configuration
        let file = ServedGateway.configurationFile(in: self.folder)
        try JSONSerialization.data(withJSONObject: configuration).write(to: file)
        let command = ["serve", "--config", file.path] + arguments
        let process = try ChildProcess(wakegate: command, folder: self.folder)
        try super.init(process, certificateAuthority: "\(self.certificates)/ca.pem")
    }

    deinit { self.process.send(SIGKILL) }

    var configurationFile: URL { Self.configurationFile(in: self.folder) }

    private static func configurationFile(in folder: URL) -> URL { folder.appendingPathComponent("wakegate.json5") }

    /// Makes the authority sign another certificate for the edge, in the same files.
    func renewCertificate() throws {
        for name in ["server.pem", "server.key"] { unsafe unlink("\(self.certificates)/\(name)") }
        try self.development.start().end(SIGKILL)
    }

    /// The paths of the edge's certificate and key.
    var certificate: String { "\(self.certificates)/server.pem" }
    var key: String { "\(self.certificates)/server.key" }
    var providerKey: String { "\(self.certificates)/provider.p8" }

    /// The environment that gives the examples the address of the edge and the authority to trust.
    var exampleEnvironment: [String] {
        ["NO_PROXY=*", "WAKEGATE_URL=https://\(self.edge)", "WAKEGATE_CA=\(self.certificateAuthority)"]
    }

    /// Starts a gateway with the same configuration, which must fail to start, and returns its end.
    func startInVain() throws -> ChildProcess.Ended {
        try ChildProcess.wakegate(["serve", "--config", self.configurationFile.path])
    }

    /// Returns the URL of a listener.
    func url(_ listener: Listener) -> String {
        switch listener {
        case .edge: "https://\(self.edge)"
        case .plain: "http://\(self.plain)"
        case .admin: "http://\(self.admin)"
        case .adminAfar: "http://127.0.0.1:\(self.admins[1].split(separator: ":").last ?? "")"
        }
    }

    /// Returns the URL of a path and the options with which curl trusts it.
    func curl(_ listener: Listener, _ path: String) -> [String] {
        let tls = listener == .edge ? ["--http2", "--cacert", self.certificateAuthority] : []
        return ["--silent", "--show-error", "--noproxy", "*"] + tls + ["\(self.url(listener))\(path)"]
    }

    /// Sends a request with a token, a client certificate, or neither.
    func ask(
        _ listener: Listener,
        _ method: String,
        _ path: String,
        token: String? = nil,
        body: String? = nil,
        fields: [String] = [],
        certificate: String? = nil
    ) throws -> Answer {
        var options = self.curl(listener, path) + ["--max-time", "60", "--request", method]
        if let certificate { options += ["--cert", certificate] }
        if let token { options += ["--header", "authorization: Bearer \(token)"] }
        for field in fields { options += ["--header", field] }
        if let body { options += ["--data-binary", body] }
        return try Answer.curl(options)
    }

    /// Starts a worker that is a plain `curl -N`, and waits until it has subscribed.
    func worker(_ topic: String, token: String? = nil, certificate: String? = nil) throws -> EventStream {
        let bearer = token.map { ["--header", "authorization: Bearer \($0)"] } ?? []
        return try self.curlWorker(topic: topic, proof: bearer + (certificate.map { ["--cert", $0] } ?? []))
    }

    /// Issues a token in the state directory of the gateway, or in another one.
    func issue(_ arguments: String..., state: URL? = nil) throws -> (token: String, id: String) {
        let command = ["token", "issue"] + arguments + ["--state", (state ?? self.state).path]
        let ended = try ChildProcess.wakegate(command)
        let words = ended.errors.split(separator: " ").map(String.init)
        guard ended.status == 0, let index = words.firstIndex(of: "token"), index + 1 < words.count else {
            throw ChildProcess.Failure(description: "token issue: \(ended.status) \(ended.errors)")
        }
        return (ended.output.trimmingCharacters(in: .whitespacesAndNewlines), words[index + 1])
    }

    func revoke(_ id: String) throws {
        let ended = try ChildProcess.wakegate(
            ["token", "revoke", id, "--config", self.configurationFile.path]
        )
        guard ended.status == 0 else { throw ChildProcess.Failure(description: "token revoke: \(ended.errors)") }
    }
}

extension ServedGateway {
    /// Writes the configuration file with these members replaced; nil removes a member.
    func write(_ changes: [String: Any?]) throws {
        for (name, value) in changes { self.members[name] = value }
        try JSONSerialization.data(withJSONObject: self.members).write(to: self.configurationFile)
    }

    /// Returns the section `tls` of the file with these members replaced.
    func tls(_ changes: [String: Any]) -> [String: Any] {
        (self.members["tls"] as? [String: Any] ?? [:]).merging(changes) { $1 }
    }

    /// Reloads the configuration, as an operator does.
    func reload() throws -> ChildProcess.Ended {
        try ChildProcess.wakegate(["reload", "--gateway", self.url(.admin)])
    }

    /// Writes the file with these members replaced, if any, and returns the answer of `POST /v1/reload`.
    func postReload(_ changes: [String: Any?] = [:]) throws -> Answer {
        if !changes.isEmpty { try self.write(changes) }
        return try self.ask(.admin, "POST", "/v1/reload")
    }

    /// Returns the explanation of a device.
    func explain(_ token: String) throws -> Answer { try self.ask(.admin, "GET", "/v1/devices/\(token)") }

    /// Reloads the configuration with a signal, and waits until that is complete.
    ///
    /// - Parameter event: the log event to wait for.
    func hangUp(_ event: String = "reloaded") throws {
        func count() -> Int { self.process.errors.components(separatedBy: " \(event) ").count }
        let before = count()
        self.process.send(SIGHUP)
        try self.eventually(event) { count() > before }
    }
}

extension Answer {
    /// Returns the keys in one of the lists of a reload's answer.
    func keys(_ list: String) -> [String] {
        (self.value(list) as? [[String: Any]] ?? []).compactMap { $0["key"] as? String }
    }
}
