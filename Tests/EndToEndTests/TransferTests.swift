import BackgroundTransfers
import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("Transfers, their agent and its clients", .serialized, .timeLimit(.minutes(15)))
final class TransferTests: TransferScene {
    private static let topic = "com.example.transfers"
    private static let session = "com.example.transfers.downloads"
    private let device = String(repeating: "7f", count: 32)

    // MARK: Crashes

    @Test("A download survives kill -9 of worker and agent, and its wake takes the file")
    func survives() throws {
        let content = TransferServer.content(2_000_000)
        let sum = try self.server.put("film", content)
        let gateway = try RunningGateway()
        let agent = try self.agent(gateway)
        try self.server.hold(after: 700_000)
        let place = self.path("film")
        let id = try agent.add(Self.session, "http://\(self.server.plain)/files/film", "--sha256", sum, "--note", place)
        let first = try self.worker(gateway, agent)
        try agent.eventually("a third is there", Self.session, id) { $0["bytes"] as? Int ?? 0 >= 500_000 }
        first.send(SIGKILL)
        try agent.kill()
        try self.server.release()
        try agent.start()
        let end = try agent.eventually("the end", Self.session, id) { $0["state"] as? String == "finished" }
        // The end of the agent does not count as an attempt.
        #expect(end["sha256"] as? String == sum && end["attempts"] as? Int == 1, "\(end)")
        let next = try self.worker(gateway, agent)
        #expect(try next.line() == "urlSession of 1 transfers in \(Self.session)", "\(next.errors)")
        try gateway.eventually("a success: \(next.errors)") {
            try gateway.stats().integer("sessions", "results", "success") == 1
        }
        #expect(self.content(at: place) == content)
        let requests = try self.server.requests()
        #expect(requests.count == 2)
        #expect(requests.last?.range.hasPrefix("bytes=") == true && requests.last?.status == 206, "\(requests)")
        #expect(requests.last?.ifRange.hasPrefix("\"") == true, "\(requests)")
    }

    @Test("A gateway's kill -9 during a download loses nothing: it finishes, and its wake is sent once")
    func gatewayKilled() throws {
        let content = TransferServer.content(1_000_000, seed: 11)
        let sum = try self.server.put("film", content)
        let place = try RestartFolder()
        let killed = try place.start()
        let agent = try self.agent(killed, ["--set", "retry.first=0.05", "--set", "retry.last=0.2"])
        try self.server.hold(after: 400_000)
        let (film, url) = (self.path("film"), "http://\(self.server.plain)/files/film")
        let id = try agent.add(Self.session, url, "--sha256", sum, "--note", film)
        try agent.eventually("a third is there", Self.session, id) { $0["bytes"] as? Int ?? 0 >= 300_000 }
        try killed.process.end(SIGKILL)
        try self.server.release()
        try agent.eventually("the end", Self.session, id) { $0["state"] as? String == "finished" }
        func outbox() throws -> [Int?] {
            let outbox = try agent.status()["outbox"] as? [String: Any]
            return [outbox?["waiting"] as? Int, outbox?["delivered"] as? Int]
        }
        #expect(try outbox() == [1, 0])
        // The agent is also killed while the gateway is not running and cannot receive its report.
        try agent.kill()
        try agent.start()
        let gateway = try place.start(edge: killed.edge)
        let worker = try self.worker(gateway, agent)
        #expect(try worker.line() == "urlSession of 1 transfers in \(Self.session)", "\(worker.errors)")
        try gateway.eventually("a success: \(worker.errors)") {
            try gateway.stats().integer("sessions", "results", "success") == 1
        }
        #expect(self.content(at: film) == content)
        #expect(try gateway.stats().integer("sessions", "finished") == 1)
        #expect(try outbox() == [0, 1])
    }

    @Test("A force-quit of the app holds a download, and a session may continue all the same")
    func forceQuit() throws {
        try self.server.put("film", TransferServer.content(100_000))
        let gateway = try RunningGateway()
        #expect(try gateway.wakegate("device", "register", self.device, "--topic", Self.topic).status == 0)
        #expect(try gateway.wakegate("device", "conditions", self.device, "appState=forceQuit").status == 0)
        let read = try gateway.edge("/v1/devices/\(self.device)/conditions")
        #expect(read.status == 200 && read.value("appState") as? String == "forceQuit")
        let agent = try self.agent(gateway)
        try self.server.hold(after: 50_000)
        let url = "http://\(self.server.plain)/files/film"
        let id = try agent.add(Self.session, url)
        let held = try agent.eventually("a hold", Self.session, id) { $0["held"] as? String == "forceQuit" }
        #expect(held["state"] as? String == "waiting")
        let listed = try agent.transfer("list", Self.session)
        #expect(listed.output.contains("The app was force-quit on the device"), "\(listed.output)")
        try self.server.release()
        let change = try agent.transfer("session", Self.session, "--after-force-quit", "yes")
        #expect(change.output.contains("continuesAfterForceQuit  yes"), "\(change.output)")
        try agent.eventually("the end", Self.session, id) { $0["state"] as? String == "finished" }
    }

    /// Starts an agent with a session of a device, which is registered at the gateway.
    private func agent(_ gateway: RunningGateway, _ options: [String] = []) throws -> RunningTransferAgent {
        #expect(try gateway.wakegate("device", "register", self.device, "--topic", Self.topic).status == 0)
        let agent = try RunningTransferAgent(gateway, options)
        let made = try agent.transfer("session", Self.session, "--device", self.device, "--topic", Self.topic)
        #expect(made.status == 0, "\(made.errors)")
        return agent
    }

    /// Starts a worker whose command moves finished files to the paths in their notes.
    private func worker(_ gateway: RunningGateway, _ agent: RunningTransferAgent) throws -> ChildProcess {
        let script = """
            wakegate transfer take "$WAKEGATE_SESSION" --noted || exit 1
            echo "$WAKEGATE_KIND of $WAKEGATE_COUNT transfers in $WAKEGATE_SESSION"
            """
        let options = ["--topic", Self.topic, "--session", Self.session, "--output", "inherit"]
        let command = [RunningGateway.program, "worker"] + options + ["--", "bash", "-c", script]
        let variables = [RunningGateway.path, "WAKEGATE_TRANSFERS=\(agent.address)"]
        let before = try gateway.workerCount()
        let worker = try ChildProcess("env", variables + command, folder: gateway.folder)
        try gateway.eventually("a worker: \(worker.errors)") { try gateway.workerCount() > 0 || before > 0 }
        return worker
    }

    @Test("The library waits through the agent's kill -9, and takes the complete file")
    func library() async throws {
        let content = TransferServer.content(1_000_000, seed: 2)
        let sum = try self.server.put("film", content)
        let agent = try RunningTransferAgent()
        let session = try BackgroundSession(Self.session, agent: agent.address)
        try self.server.hold(after: 300_000)
        let (url, place) = ("http://\(self.server.plain)/files/film", self.path("film"))
        let download = Task { () throws(BackgroundTransferError) in
            try await session.download(from: url, to: place, sha256: sum)
        }
        var events = session.events.makeAsyncIterator()
        while case .progress(let progress)? = try await events.next(), progress.bytes < 200_000 {}
        try agent.kill()
        try self.server.release()
        try agent.start()
        #expect(try await download.value.isTaken)
        #expect(self.content(at: place) == content)
        var isTold = false
        while let event = try await events.next(), event != .idle {
            if case .finished(let transfer) = event { isTold = transfer.sha256 == sum }
        }
        #expect(isTold)
        let again = await #expect(throws: BackgroundTransferError.self) {
            _ = try await session.take(try #require(try await session.transfers().first?.id), to: self.path("other"))
        }
        #expect(again?.code == .alreadyTaken)
    }

    // MARK: Network faults

    @Test("Corrupted bytes are detected with a SHA-256, and no file is created")
    func corrupted() throws {
        let sum = try self.server.put("film", TransferServer.content(300_000, seed: 7))
        let agent = try RunningTransferAgent()
        try self.server.corrupt(at: 200_000)
        let place = self.path("film")
        let url = "http://\(self.server.plain)/files/film"
        let ended = try agent.transfer("add", Self.session, url, "--sha256", sum, "--to", place)
        #expect(ended.status == 1)
        #expect(ended.errors.contains(" failed: BadChecksum"), "\(ended.errors)")
        #expect(self.content(at: place) == nil)
        let again = try agent.transfer("add", Self.session, url, "--sha256", sum, "--to", place)
        #expect(again.status == 0, "\(again.errors)")
    }

    @Test("Redirects are followed, at most ten, only to HTTP, and authorization goes to no other host")
    func redirects() throws {
        let content = TransferServer.content(1000)
        try self.server.put("film", content)
        let agent = try RunningTransferAgent()
        let base = "http://\(self.server.plain)"
        let header = ["--header", "authorization: Bearer s3cret"]
        func add(_ path: String, _ name: String) throws -> ChildProcess.Ended {
            try agent.run(["add", Self.session, "\(base)\(path)", "--to", self.path(name)] + header)
        }
        #expect(try add("/moved/film", "moved").status == 0)
        #expect(self.content(at: self.path("moved")) == content)
        let port = self.server.plain.split(separator: ":").last ?? ""
        #expect(try add("/away?port=\(port)&name=film", "away").status == 0)
        let shown = try self.server.requests().filter { $0.status == 200 }.map(\.authorization)
        #expect(shown == ["Bearer s3cret", "-"])
        #expect(try add("/loop", "loop").errors.contains("TooManyRedirects"))
        #expect(try add("/local", "local").errors.contains("ForbiddenProtocol"))
        let forbidden = try add("/forbidden", "forbidden")
        #expect(forbidden.status == 1 && forbidden.errors.contains("HTTPStatus"), "\(forbidden.errors)")
        let listed = try agent.transfer("list", Self.session, "--json")
        #expect(!listed.output.contains("s3cret") && listed.output.contains("TooManyRedirects"))
    }

    @Test("Over TLS only the named authority is trusted")
    func certificates() throws {
        let content = TransferServer.content(100_000, seed: 8)
        try self.server.put("film", content)
        let url = "https://\(self.server.tls)/files/film"
        let trusting = try RunningTransferAgent(nil, ["--trust", self.server.authority.certificate])
        let place = self.path("film")
        let ended = try trusting.transfer("add", Self.session, url, "--to", place)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(self.content(at: place) == content)
        let other = try RunningTransferAgent()
        let refused = try other.transfer("add", Self.session, url, "--wait")
        #expect(refused.status == 1 && refused.errors.contains(" failed: Certificate"), "\(refused.errors)")
    }

    @Test("A server that answers before it has read an upload fails it, unless the session accepts that")
    func early() throws {
        let file = self.path("log")
        try TransferServer.content(20_000_000, seed: 34).write(to: URL(fileURLWithPath: file))
        let agent = try RunningTransferAgent(nil, ["--trust", self.server.authority.certificate])
        let servers = ["http://\(self.server.plain)", "https://\(self.server.http2)"]
        func end(_ server: String) throws -> [String: Any] {
            let id = try agent.add(Self.session, "\(server)/answered/log", "--upload", file)
            return try agent.eventually("an end", Self.session, id) { $0["endedAt"] is Int }
        }
        for server in servers {
            let end = try end(server)
            #expect(end["state"] as? String == "failed" && end["attempts"] as? Int == 1, "\(end)")
            let reason = (end["error"] as? [String: Any])?["reason"] as? String
            #expect(reason == "ServerStoppedReading" && end["status"] as? Int == 201, "\(end)")
        }
        #expect(try agent.transfer("session", Self.session, "--early-answers", "yes").status == 0)
        for server in servers {
            let end = try end(server)
            #expect(end["state"] as? String == "finished" && end["attempts"] as? Int == 1, "\(end)")
            #expect(end["bytes"] as? Int ?? .max < 20_000_000, "\(end)")
        }
    }

    @Test("A file is uploaded whole")
    func upload() async throws {
        let content = TransferServer.content(400_000, seed: 9)
        let file = self.path("log")
        try content.write(to: URL(fileURLWithPath: file))
        let agent = try RunningTransferAgent()
        let session = try BackgroundSession(Self.session, agent: agent.address)
        let transfer = try await session.upload(file, to: "http://\(self.server.plain)/files/log")
        #expect(transfer.httpStatus == 201)
        #expect(self.server.content("log") == content)
    }
}

/// `Clients/faulty_server.py`, with files of 60,000 bytes.
final class FaultyServer {
    /// The contents of the first and the second version of each file.
    static let first = Data(String(repeating: "1234567890", count: 6000).utf8)
    static let second = Data(String(repeating: "abcdefghij", count: 6000).utf8)

    let base: String
    let http2: String
    let tls: String
    /// The authority of the certificate of `http2` and `tls`.
    let authority: TestAuthority
    let process: ChildProcess

    init() throws {
        self.authority = try TestAuthority()
        let extensions = "subjectAltName = IP:127.0.0.1\nextendedKeyUsage = serverAuth"
        let certificate = try self.authority.issue("/CN=127.0.0.1", extensions: extensions)
        let path = RunningGateway.client("faulty_server.py")
        self.process = try ChildProcess("python3", [path, certificate], isInputOpen: true)
        let ports = try self.process.line()?.split(separator: " ") ?? []
        guard ports.count == 3 else {
            throw ChildProcess.Failure(description: "the server did not start: \(self.process.errors)")
        }
        (self.base, self.http2) = ("http://127.0.0.1:\(ports[0])", "https://127.0.0.1:\(ports[1])")
        self.tls = "https://127.0.0.1:\(ports[2])"
    }

    private func get(_ path: String) throws -> String {
        try ChildProcess.run("curl", ["--silent", "--fail", "--max-time", "60", self.base + path]).output
    }

    /// Returns one field of each request for a path: `range`, `accept-encoding`, `cookie` or `content-length`; "-" if
    /// it is missing.
    func requests(_ path: String, _ field: String) throws -> [String] {
        let place = ["range": 1, "accept-encoding": 2, "cookie": 3, "content-length": 4][field] ?? 0
        let log = try JSONSerialization.jsonObject(with: Data(try self.get("/log").utf8)) as? [[Any]] ?? []
        return log.filter { $0.first as? String == path }.map { $0[place] as? String ?? "-" }
    }

    /// Returns the SHA-256 of the last slow upload.
    func sum() throws -> String { try self.get("/sum") }
}

@Suite("Transfers from and to servers with faults", .serialized, .timeLimit(.minutes(15)))
struct TransferFaultTests {
    private static let session = "com.example.faults"
    private let faulty: FaultyServer
    private let agent: RunningTransferAgent
    private let folder: RestartFolder

    init() throws {
        self.faulty = try FaultyServer()
        let quick = ["--set", "retry.first=0.02", "--set", "retry.last=0.05"]
        self.agent = try RunningTransferAgent(nil, quick + ["--trust", self.faulty.authority.certificate])
        self.folder = try RestartFolder()
    }

    private func end(_ id: String) throws -> [String: Any] {
        try self.agent.eventually("an end", Self.session, id) { $0["endedAt"] is Int }
    }

    private func reason(_ transfer: [String: Any]) -> String? {
        (transfer["error"] as? [String: Any])?["reason"] as? String
    }

    private func taken(_ id: String) throws -> Data {
        let place = self.folder.path(id)
        #expect(try self.agent.transfer("take", Self.session, id, place).status == 0)
        return try Data(contentsOf: URL(fileURLWithPath: place))
    }

    /// Returns the path of a file to upload.
    private func file(seed: UInt64) throws -> String {
        let path = self.folder.path("log")
        try TransferServer.content(20_000_000, seed: seed).write(to: URL(fileURLWithPath: path))
        return path
    }

    // MARK: Downloads

    /// Downloads files of a server with faults, and expects this content, and these ranges in the requests for each.
    private func expect(_ content: Data, attempts: Int? = nil, _ files: [(String, [String])]) throws {
        for (path, ranges) in files {
            let id = try self.agent.add(Self.session, "\(self.faulty.base)/\(path)")
            let end = try self.end(id)
            #expect(end["state"] as? String == "finished", "\(end)")
            #expect(end["attempts"] as? Int == attempts ?? ranges.count, "\(end)")
            #expect(try self.taken(id) == content, "\(path)")
            #expect(try self.faulty.requests("/\(path)", "range") == ranges, "\(path)")
        }
    }

    @Test("A part is joined to the bytes before it only if a strong validator says that both are of one version")
    func versions() throws {
        let again = ["-", "bytes=40000-", "-"]
        let files = [("weak", ["-", "-"]), ("tagged", again), ("untagged", again), ("overlong", again)]
        try self.expect(FaultyServer.second, attempts: 2, files)
    }

    @Test("A download is finished only when the server has said how long the file is, and is then not repeated")
    func lengths() throws {
        let short = ["-", "bytes=40000-", "bytes=40200-"]
        let files = [("dated", ["-", "bytes=40000-"]), ("short", short), ("complete", ["-", "bytes=60000-"])]
        try self.expect(FaultyServer.first, files)
    }

    @Test("A cut answer is downloaded again, however it was cut; an answer may end with its connection")
    func endings() throws {
        let size = 400_000
        let whole = Data((0..<size).map { UInt8(ascii: "0") + UInt8($0 % 10) })
        // There is too little space for both a first half that cannot be continued and the whole file.
        let limits = ["--set", "retry.first=0.05", "--set", "limits.stateBytes=500000"]
        let agent = try RunningTransferAgent(nil, ["--trust", self.faulty.authority.certificate] + limits)
        let ways = [
            ("http", "close", 1), ("http", "chunked", 2), ("http", "length", 2), ("https", "close", 1),
            ("https", "chunked", 2), ("https", "length", 2), ("https", "abrupt", 2),
        ]
        for (scheme, way, attempts) in ways {
            let url = "\(scheme == "http" ? self.faulty.base : self.faulty.tls)/\(way)/\(size)"
            let id = try agent.add(Self.session, url)
            let end = try agent.eventually("an end of \(url)", Self.session, id) { $0["endedAt"] is Int }
            #expect(end["state"] as? String == "finished", "\(end)")
            #expect(end["attempts"] as? Int == attempts, "\(url): \(end)")
            let place = self.folder.path("\(scheme)-\(way)")
            #expect(try agent.transfer("take", Self.session, id, place).status == 0)
            #expect(try Data(contentsOf: URL(fileURLWithPath: place)) == whole, "\(url)")
        }
    }

    @Test("An HTTP/2 stream that is reset with NO_ERROR before its end is a cut")
    func reset() throws {
        let id = try self.agent.add(Self.session, "\(self.faulty.http2)/film")
        let end = try self.end(id)
        #expect(end["state"] as? String == "finished" && end["attempts"] as? Int == 2, "\(end)")
        #expect(try self.taken(id) == FaultyServer.first)
    }

    @Test("A server with endless answers is retried ever more rarely, and the transfer names the server's fault")
    func endless() throws {
        let agent = try RunningTransferAgent(nil, ["--set", "retry.first=0.02", "--set", "retry.last=100"])
        let id = try agent.add(Self.session, "\(self.faulty.base)/endless")
        let held = try agent.eventually("a long wait", Self.session, id) { transfer in
            (transfer["why"] as? String)?.contains("ended its answer after the same 60000 bytes 3 times") == true
        }
        #expect(held["held"] as? String == "backoff" && held["attempts"] as? Int == 3, "\(held)")
        let next = Double(try #require(held["nextAttemptAt"] as? Int)) / 1000
        #expect(next - Date(timeIntervalSinceNow: 0).timeIntervalSince1970 > 40)
        #expect(self.reason(held) == "ConnectionFailed")
    }

    @Test("Cookies of a redirect are sent only within the same transfer")
    func cookies() throws {
        for options in [[], [], ["--header", "cookie: own=2"]] {
            let ended = try self.agent.run(["add", Self.session, "\(self.faulty.base)/cookie", "--wait"] + options)
            #expect(ended.status == 0, "\(ended.errors)")
        }
        let cookies = ["-", "seen=1", "-", "seen=1", "own=2", "seen=1; own=2"]
        #expect(try self.faulty.requests("/cookie", "cookie") == cookies)
    }

    @Test("A content coding is refused unless it was requested")
    func codings() throws {
        let refused = try self.agent.transfer("add", Self.session, "\(self.faulty.base)/coded", "--wait")
        #expect(refused.status == 1 && refused.errors.contains("UnrequestedCoding"), "\(refused.errors)")
        let place = self.folder.path("coded.gz")
        let header = ["--header", "accept-encoding: gzip"]
        let ended = try self.agent.run(["add", Self.session, "\(self.faulty.base)/coded", "--to", place] + header)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: place)).prefix(2) == Data([0x1F, 0x8B]))
        #expect(try self.faulty.requests("/coded", "accept-encoding") == ["identity", "gzip"])
    }

    @Test("A download with POST states a length, which many servers require")
    func post() throws {
        let url = "\(self.faulty.base)/posted"
        let ended = try self.agent.transfer("add", Self.session, url, "--method", "POST", "--wait")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try self.faulty.requests("/posted", "content-length") == ["0"])
    }

    // MARK: Uploads

    @Test("A whole answer counts even if the server resets the connection afterwards")
    func resetAfterAnswer() throws {
        let file = try self.file(seed: 35)
        let id = try self.agent.add(Self.session, "\(self.faulty.base)/reset", "--upload", file)
        try self.agent.eventually("the answer", Self.session, id) { $0["status"] as? Int == 201 }
        try self.faulty.process.write("")
        let end = try self.end(id)
        #expect(self.reason(end) == "ServerStoppedReading" && end["attempts"] as? Int == 1, "\(end)")
    }

    @Test("An upload whose file is overwritten during the transfer is sent again from the start")
    func overwritten() throws {
        let file = try self.file(seed: 36)
        let id = try self.agent.add(Self.session, "\(self.faulty.base)/slow", "--upload", file)
        #expect(try self.faulty.process.line() == "half")
        let other = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
        try other.write(contentsOf: TransferServer.content(20_000_000, seed: 37))
        try other.close()
        try self.faulty.process.write("")
        let end = try self.end(id)
        #expect(end["state"] as? String == "finished" && end["attempts"] as? Int == 2, "\(end)")
        #expect(try self.faulty.sum() == TransferServer.sha256(file))
    }
}
