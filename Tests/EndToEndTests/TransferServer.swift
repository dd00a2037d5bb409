import Foundation
import Glibc
import WakeGateTestKit

/// An nginx server with files to transfer, behind a proxy that cuts, holds and corrupts answers; both end with the last
/// reference.
///
/// nginx listens on sockets in its own directory, and the proxy on free ports. Paths: `/files/NAME` supports ranges and
/// accepts uploads, `/private/NAME` requires a client certificate over TLS, `/moved/NAME` leads to `/files/NAME` with
/// two redirects, and `/loop` redirects to itself. `/answered/NAME` answers an upload with 201 without reading it.
final class TransferServer {
    /// A request, as logged by nginx.
    struct Request: Equatable {
        let line: String
        let range: String
        let ifRange: String
        let status: Int
        let authorization: String
    }

    /// HOST:PORT of the proxy for cleartext, for TLS, and for TLS with HTTP/2.
    let plain: String
    let tls: String
    let http2: String
    /// The authority of the certificate of `tls`, which is for `127.0.0.1` and `localhost`.
    let authority: TestAuthority
    private let folder: URL
    private let server: ChildProcess
    private let proxy: ChildProcess
    // Released last, when both have ended.
    private let temporary: TemporaryFolder

    init() throws {
        self.temporary = try TemporaryFolder()
        self.folder = self.temporary.url
        self.authority = try TestAuthority()
        let extensions = "subjectAltName = IP:127.0.0.1, DNS:localhost\nextendedKeyUsage = serverAuth"
        let certificate = try self.authority.issue("/CN=127.0.0.1", extensions: extensions)
        for name in ["files", "temporary"] {
            let place = self.folder.appendingPathComponent(name)
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
        }
        let configuration = Self.configuration(self.folder.path, certificate, self.authority.certificate)
        let path = self.folder.appendingPathComponent("nginx.conf").path
        try configuration.write(toFile: path, atomically: true, encoding: .utf8)
        let program = FileManager.default.isExecutableFile(atPath: "/usr/sbin/nginx") ? "/usr/sbin/nginx" : "nginx"
        let server = try ChildProcess(program, ["-e", "stderr", "-p", self.folder.path, "-c", path])
        self.server = server
        let folder = self.folder
        let sockets = ["plain.sock", "tls.sock", "http2.sock"].map { folder.appendingPathComponent($0).path }
        func listens() -> Bool { sockets.allSatisfy { FileManager.default.fileExists(atPath: $0) } }
        guard Polling.isSo({ listens() || !server.isRunning }), listens() else {
            throw ChildProcess.Failure(description: "nginx did not start: \(server.errors)")
        }
        let script = RunningGateway.client("transfer_proxy.py")
        self.proxy = try ChildProcess("python3", [script] + sockets, isInputOpen: true)
        let ports = try self.proxy.line()?.split(separator: " ") ?? []
        guard ports.count == sockets.count else {
            throw ChildProcess.Failure(description: "the proxy did not start: \(self.proxy.errors)")
        }
        (self.plain, self.tls) = ("127.0.0.1:\(ports[0])", "127.0.0.1:\(ports[1])")
        self.http2 = "127.0.0.1:\(ports[2])"
    }

    private static func configuration(_ folder: String, _ certificate: String, _ authority: String) -> String {
        """
        daemon off;
        master_process off;
        pid \(folder)/nginx.pid;
        events { worker_connections 512; }
        http {
            log_format requests '$request|$http_range|$http_if_range|$status|$http_authorization';
            access_log \(folder)/access.log requests;
            client_body_temp_path \(folder)/temporary; proxy_temp_path \(folder)/temporary;
            fastcgi_temp_path \(folder)/temporary; uwsgi_temp_path \(folder)/temporary;
            scgi_temp_path \(folder)/temporary;
            client_max_body_size 1g;
            keepalive_timeout 0;
            port_in_redirect off; absolute_redirect off;
            server {
                listen unix:\(folder)/plain.sock;
                listen unix:\(folder)/tls.sock ssl;
                listen unix:\(folder)/http2.sock ssl http2;
                ssl_certificate \(certificate);
                ssl_certificate_key \(certificate);
                ssl_verify_client optional;
                ssl_client_certificate \(authority);
                location /files/ { alias \(folder)/files/; dav_methods PUT; }
                location /private/ {
                    if ($ssl_client_verify != SUCCESS) { return 403; }
                    alias \(folder)/files/;
                }
                location /moved/ { rewrite ^/moved/(.*)$ /further/$1 redirect; }
                location /further/ { rewrite ^/further/(.*)$ /files/$1 permanent; }
                location = /loop { return 302 /loop; }
                location = /local { return 302 file:///etc/passwd; }
                location = /away { return 302 http://localhost:$arg_port/files/$arg_name; }
                location = /forbidden { return 403; }
                location /answered/ { return 201; }
            }
        }
        """
    }

    // MARK: Files

    /// Puts a file on the server and replaces an existing one atomically.
    ///
    /// - Returns: the SHA-256 of the file.
    @discardableResult
    func put(_ name: String, _ content: Data) throws -> String {
        let file = self.folder.appendingPathComponent("files/\(name)")
        try content.write(to: file, options: .atomic)
        return try Self.sha256(file.path)
    }

    /// Returns the content of a file on the server, such as an upload; nil if it does not exist.
    func content(_ name: String) -> Data? { try? Data(contentsOf: self.folder.appendingPathComponent("files/\(name)")) }

    /// Returns this many pseudorandom bytes, which depend on the seed.
    static func content(_ count: Int, seed: UInt64 = 1) -> Data {
        var generator = SeededGenerator(seed: seed)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 8)
        while bytes.count < count {
            let word = generator.next()
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        return Data(bytes.prefix(count))
    }

    static func sha256(_ path: String) throws -> String {
        let ended = try ChildProcess.run("sha256sum", [path])
        guard ended.status == 0 else { throw ChildProcess.Failure(description: ended.errors) }
        return String(ended.output.prefix(64))
    }

    // MARK: What happens

    /// Returns the requests that nginx has answered or whose connection has ended.
    func requests() throws -> [Request] {
        let text = try String(contentsOf: self.folder.appendingPathComponent("access.log"), encoding: .utf8)
        return text.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
            guard fields.count == 5, let status = Int(fields[3]) else { return nil }
            return Request(
                line: fields[0],
                range: fields[1],
                // nginx writes quotation marks as \x22.
                ifRange: fields[2].replacingOccurrences(of: "\\x22", with: "\""),
                status: status,
                authorization: fields[4]
            )
        }
    }

    /// Makes every connection pass this many bytes of answers, and no more until `release`.
    func hold(after bytes: Int) throws { try self.tell(["do": "hold", "after": bytes]) }

    func release() throws { try self.tell(["do": "release"]) }

    /// Resets the next connection after this many bytes of answers.
    func cut(after bytes: Int) throws { try self.tell(["do": "cut", "after": bytes]) }

    /// Changes a byte in the answers of the next connection.
    func corrupt(at byte: Int) throws { try self.tell(["do": "corrupt", "at": byte]) }

    private func tell(_ command: [String: Any]) throws {
        try self.proxy.write(try ChildProcess.json(command))
        guard try self.proxy.line() == "done" else {
            throw ChildProcess.Failure(description: "the proxy has ended: \(self.proxy.errors)")
        }
    }
}

/// The base of tests of transfers: a server, and a directory for files.
class TransferScene {
    let server: TransferServer
    private let folder: RestartFolder

    init() throws {
        self.server = try TransferServer()
        self.folder = try RestartFolder()
    }

    /// Returns a path in the directory.
    func path(_ name: String) -> String { self.folder.path(name) }

    /// Returns the content of a file; nil if it does not exist.
    func content(at path: String) -> Data? { try? Data(contentsOf: URL(fileURLWithPath: path)) }
}

/// A `wakegate transfers` process on a socket in its own directory, which outlives it; ended with the last reference.
final class RunningTransferAgent {
    /// The directory of its state and its socket.
    let folder: URL
    /// The address for `wakegate transfer --agent` and `WAKEGATE_TRANSFERS`.
    var address: String { "unix:\(self.folder.path)/agent.sock" }
    private(set) var process: ChildProcess
    private let command: [String]
    // Released last, when the process has ended.
    private let temporary: TemporaryFolder

    /// - Parameters:
    ///   - gateway: the gateway that receives the agent's reports; nil for an address where nothing listens.
    ///   - options: additional command-line options.
    ///   - metered: the value of the setting for a metered network.
    ///   - environment: additional variables, each as `NAME=VALUE`.
    init(
        _ gateway: RunningGateway? = nil,
        _ options: [String] = [],
        metered: String = "no",
        environment: [String] = []
    ) throws {
        self.temporary = try TemporaryFolder()
        self.folder = self.temporary.url
        var all = ["--state", self.folder.appendingPathComponent("state").path]
        all += ["--listen", "unix:\(self.folder.path)/agent.sock", "--metered", metered]
        all += ["--gateway", gateway.map { "https://\($0.edge)" } ?? "http://127.0.0.1:9"]
        if let gateway { all += ["--ca", gateway.certificateAuthority] }
        self.command = environment + [RunningGateway.program, "transfers"] + all + options
        self.process = try ChildProcess("env", self.command)
        try self.awaitReady()
    }

    /// Kills the agent with SIGKILL and waits for its end.
    func kill() throws {
        try self.process.end(SIGKILL)
    }

    /// Starts the agent again.
    func start() throws {
        self.process = try ChildProcess("env", self.command)
        try self.awaitReady()
    }

    private func awaitReady() throws {
        guard let line = try self.process.line(), line.contains("\"ready\": true") else {
            throw ChildProcess.Failure(description: "the agent did not start: \(self.process.errors)")
        }
    }

    private func curl(_ path: String) throws -> ChildProcess.Ended {
        let socket = ["--silent", "--fail", "--max-time", "60", "--unix-socket", "\(self.folder.path)/agent.sock"]
        return try ChildProcess.run("curl", socket + ["http://localhost\(path)"])
    }

    private func object(_ path: String) throws -> [String: Any] {
        let ended = try self.curl(path)
        guard ended.status == 0 else { throw ChildProcess.Failure(description: ended.output + ended.errors) }
        return try JSONSerialization.jsonObject(with: Data(ended.output.utf8)) as? [String: Any] ?? [:]
    }

    /// Runs `wakegate transfer` with this agent.
    func transfer(_ arguments: String...) throws -> ChildProcess.Ended { try self.run(arguments) }

    /// Runs `wakegate transfer` with this agent.
    func run(_ arguments: [String]) throws -> ChildProcess.Ended {
        try ChildProcess.wakegate(["transfer"] + arguments + ["--agent", self.address])
    }

    /// Starts `wakegate transfer` with this agent.
    func begin(_ arguments: String...) throws -> ChildProcess {
        try ChildProcess(wakegate: ["transfer"] + arguments + ["--agent", self.address])
    }

    /// Adds a transfer and returns its identifier.
    func add(_ arguments: String...) throws -> String {
        let ended = try self.run(["add"] + arguments)
        guard ended.status == 0 else { throw ChildProcess.Failure(description: ended.errors) }
        return ended.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Returns the current state of a transfer.
    func state(_ session: String, _ transfer: String) throws -> [String: Any] {
        try self.object("/v1/sessions/\(session)/transfers/\(transfer)")
    }

    /// Returns the status of the agent.
    func status() throws -> [String: Any] { try self.object("/v1/status") }

    /// Returns the transfers of a session; none if it does not exist yet.
    private func list(_ session: String) -> [[String: Any]] {
        (try? self.object("/v1/sessions/\(session)/transfers"))?["transfers"] as? [[String: Any]] ?? []
    }

    /// Returns the number of transfers of a session.
    func count(of session: String) -> Int { self.list(session).count }

    /// Waits for the first transfer of a session, at most for a minute, and returns its identifier.
    func first(of session: String) throws -> String {
        var id: String?
        let isThere = Polling.isSo {
            id = self.list(session).first?["transfer"] as? String
            return id != nil
        }
        guard isThere, let id else { throw ChildProcess.Failure(description: "no transfer within a minute") }
        return id
    }

    /// Waits until a client follows a session's events, at most for a minute.
    func awaitListener() throws {
        let isFollowed = try Polling.isSo {
            try self.curl("/metrics").output.contains(#/(?m)^wakegate_transfers_listeners [1-9]/#)
        }
        guard isFollowed else {
            throw ChildProcess.Failure(description: "no client followed a session within a minute")
        }
    }

    /// Polls a transfer until a condition holds, for at most a minute.
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
