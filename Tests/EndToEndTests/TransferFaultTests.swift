import Foundation
import Testing
import WakeGateTestKit

/// `Clients/faulty_server.py`, for files of 60,000 bytes.
private final class FaultyServer {
    /// The content of the first version of each file, and of the second.
    static let first = Data(String(repeating: "1234567890", count: 6000).utf8)
    static let second = Data(String(repeating: "abcdefghij", count: 6000).utf8)

    let base: String
    let http2: String
    let process: ChildProcess

    init(_ authority: TestAuthority) throws {
        let extensions = "subjectAltName = IP:127.0.0.1\nextendedKeyUsage = serverAuth"
        let certificate = try authority.issue("/CN=127.0.0.1", extensions: extensions)
        let path = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/Clients/faulty_server.py").path
        self.process = try ChildProcess("python3", [path, certificate], isInputOpen: true)
        let ports = try self.process.line()?.split(separator: " ") ?? []
        guard ports.count == 2 else {
            throw ChildProcess.Failure(description: "the server did not start: \(self.process.errors)")
        }
        (self.base, self.http2) = ("http://127.0.0.1:\(ports[0])", "https://127.0.0.1:\(ports[1])")
    }

    private func get(_ path: String) throws -> String {
        try ChildProcess.run("curl", ["--silent", "--fail", "--max-time", "10", self.base + path]).output
    }

    /// One field of each request for a path: `range`, `accept-encoding` or `cookie`; "-" if a request lacks it.
    func requests(_ path: String, _ field: String) throws -> [String] {
        let place = ["range": 1, "accept-encoding": 2, "cookie": 3][field] ?? 0
        let log = try JSONSerialization.jsonObject(with: Data(try self.get("/log").utf8)) as? [[Any]] ?? []
        return log.filter { $0.first as? String == path }.map { $0[place] as? String ?? "-" }
    }

    /// The SHA-256 of the last slow upload.
    func sum() throws -> String { try self.get("/sum") }
}

@Suite("Transfers from and to servers with faults", .serialized, .timeLimit(.minutes(15)))
final class TransferFaultTests: TransferScene {
    private static let session = "com.example.faults"
    private static let quick = ["--set", "retry.first=0.02", "--set", "retry.last=0.05"]

    private func end(_ agent: RunningTransferAgent, _ id: String) throws -> [String: Any] {
        try agent.eventually("an end", Self.session, id) { $0["endedAt"] is Int }
    }

    private func reason(_ transfer: [String: Any]) -> String? {
        (transfer["error"] as? [String: Any])?["reason"] as? String
    }

    private func taken(_ agent: RunningTransferAgent, _ id: String) throws -> Data? {
        let place = self.path(id)
        #expect(try agent.transfer("take", Self.session, id, place).status == 0)
        return self.content(at: place)
    }

    private func file(_ name: String, _ content: Data) throws -> String {
        try content.write(to: URL(fileURLWithPath: self.path(name)))
        return self.path(name)
    }

    // MARK: Downloads

    @Test("A download never joins two versions of a file that changed within one second")
    func sameSecond() throws {
        let now = Date(timeIntervalSinceNow: 0)
        let (first, second) = (TransferServer.content(1_000_000, seed: 31), TransferServer.content(1_000_000, seed: 32))
        try self.server.put("film", first, modified: now)
        let agent = try RunningTransferAgent(nil, ["--set", "retry.first=2"])
        try self.server.cut(after: 400_000)
        let id = try agent.add(Self.session, "http://\(self.server.plain)/dated/film")
        try agent.eventually("the cut", Self.session, id) { $0["attempts"] as? Int == 1 }
        try self.server.put("film", second, modified: now)
        let end = try self.end(agent, id)
        #expect(end["state"] as? String == "finished" && end["attempts"] as? Int == 2, "\(end)")
        #expect(try self.taken(agent, id) == second)
        #expect(try self.server.requests().map(\.range) == ["-", "-"])
    }

    @Test("A date of the last change that is older than the answer resumes a download")
    func oldDate() throws {
        let content = TransferServer.content(1_000_000, seed: 33)
        try self.server.put("film", content, modified: Date(timeIntervalSinceNow: -3600))
        let agent = try RunningTransferAgent(nil, Self.quick)
        try self.server.cut(after: 400_000)
        let id = try agent.add(Self.session, "http://\(self.server.plain)/dated/film")
        #expect(try self.end(agent, id)["state"] as? String == "finished")
        #expect(try self.taken(agent, id) == content)
        #expect(try self.server.requests().map(\.status) == [200, 206])
    }

    @Test(
        "A part is joined to the bytes before it only if a strong validator says that both are of one version",
        arguments: [
            ("weak", ["-", "-"]), ("tagged", ["-", "bytes=40000-", "-"]), ("untagged", ["-", "bytes=40000-", "-"]),
            ("overlong", ["-", "bytes=40000-", "-"]),
        ]
    )
    func versions(_ path: String, _ ranges: [String]) throws {
        let faulty = try FaultyServer(self.server.authority)
        let agent = try RunningTransferAgent(nil, Self.quick)
        let id = try agent.add(Self.session, "\(faulty.base)/\(path)")
        let end = try self.end(agent, id)
        #expect(end["state"] as? String == "finished" && end["attempts"] as? Int == 2, "\(end)")
        #expect(try self.taken(agent, id) == FaultyServer.second)
        #expect(try faulty.requests("/\(path)", "range") == ranges)
    }

    @Test(
        "A download is finished only when the server has said how long the file is, and is then not repeated",
        arguments: [
            ("dated", ["-", "bytes=40000-"]), ("short", ["-", "bytes=40000-", "bytes=40200-"]),
            ("complete", ["-", "bytes=60000-"]),
        ]
    )
    func lengths(_ path: String, _ ranges: [String]) throws {
        let faulty = try FaultyServer(self.server.authority)
        let agent = try RunningTransferAgent(nil, Self.quick)
        let id = try agent.add(Self.session, "\(faulty.base)/\(path)")
        let end = try self.end(agent, id)
        #expect(end["state"] as? String == "finished" && end["attempts"] as? Int == ranges.count, "\(end)")
        #expect(try self.taken(agent, id) == FaultyServer.first)
        #expect(try faulty.requests("/\(path)", "range") == ranges)
    }

    @Test("An HTTP/2 stream that is reset with NO_ERROR before its end is a cut")
    func reset() throws {
        let faulty = try FaultyServer(self.server.authority)
        let agent = try RunningTransferAgent(nil, Self.quick + ["--trust", self.server.authority.certificate])
        let id = try agent.add(Self.session, "\(faulty.http2)/film")
        let end = try self.end(agent, id)
        #expect(end["state"] as? String == "finished" && end["attempts"] as? Int == 2, "\(end)")
        #expect(try self.taken(agent, id) == FaultyServer.first)
    }

    @Test("A server that never ends its answer is asked ever more rarely, and the transfer names the server's fault")
    func endless() throws {
        let faulty = try FaultyServer(self.server.authority)
        let agent = try RunningTransferAgent(nil, ["--set", "retry.first=0.02", "--set", "retry.last=100"])
        let id = try agent.add(Self.session, "\(faulty.base)/endless")
        let held = try agent.eventually("a long wait", Self.session, id) { transfer in
            (transfer["why"] as? String)?.contains("ended its answer after the same 60000 bytes 3 times") == true
        }
        #expect(held["held"] as? String == "backoff" && held["attempts"] as? Int == 3, "\(held)")
        let next = Double(try #require(held["nextAttemptAt"] as? Int)) / 1000
        #expect(next - Date(timeIntervalSinceNow: 0).timeIntervalSince1970 > 40)
        #expect(self.reason(held) == "ConnectionFailed")
    }

    @Test("Cookies of a redirect are sent back within the transfer, and never in another one")
    func cookies() throws {
        let faulty = try FaultyServer(self.server.authority)
        let agent = try RunningTransferAgent(nil, Self.quick)
        for options in [[], [], ["--header", "cookie: own=2"]] {
            let ended = try agent.run(["add", Self.session, "\(faulty.base)/cookie", "--wait"] + options)
            #expect(ended.status == 0, "\(ended.errors)")
        }
        let cookies = ["-", "seen=1", "-", "seen=1", "own=2", "seen=1; own=2"]
        #expect(try faulty.requests("/cookie", "cookie") == cookies)
    }

    @Test("A content coding is refused unless it was requested")
    func codings() throws {
        let faulty = try FaultyServer(self.server.authority)
        let agent = try RunningTransferAgent(nil, Self.quick)
        let refused = try agent.transfer("add", Self.session, "\(faulty.base)/coded", "--wait")
        #expect(refused.status == 1 && refused.errors.contains("UnrequestedCoding"), "\(refused.errors)")
        let place = self.path("coded.gz")
        let header = ["--header", "accept-encoding: gzip"]
        let ended = try agent.run(["add", Self.session, "\(faulty.base)/coded", "--to", place] + header)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(self.content(at: place)?.prefix(2) == Data([0x1F, 0x8B]))
        #expect(try faulty.requests("/coded", "accept-encoding") == ["identity", "gzip"])
    }

    @Test("A SHA-256 of digits outside ASCII is refused")
    func digits() throws {
        let agent = try RunningTransferAgent()
        let sum = String(repeating: "\u{FF11}", count: 21) + "1"
        #expect(sum.utf8.count == 64)
        let body = #"{"kind":"download","url":"http://127.0.0.1:9/","sha256":"\#(sum)"}"#
        #expect(try agent.transfer("session", Self.session).status == 0)
        let answer = try agent.post("/v1/sessions/\(Self.session)/transfers", body)
        #expect(answer.contains("BadTransfer") && answer.contains("64 hexadecimal digits"), "\(answer)")
    }

    // MARK: Uploads

    @Test("A server that answers before it has read an upload fails it, unless the session accepts that")
    func early() throws {
        let file = try self.file("log", TransferServer.content(20_000_000, seed: 34))
        let agent = try RunningTransferAgent(nil, Self.quick + ["--trust", self.server.authority.certificate])
        for server in ["http://\(self.server.plain)", "https://\(self.server.http2)"] {
            let url = "\(server)/answered/log"
            let end = try self.end(agent, try agent.add(Self.session, url, "--upload", file))
            #expect(end["state"] as? String == "failed" && end["attempts"] as? Int == 1, "\(end)")
            #expect(self.reason(end) == "ServerStoppedReading" && end["status"] as? Int == 201, "\(end)")
        }
        #expect(try agent.transfer("session", Self.session, "--early-answers", "yes").status == 0)
        for server in ["http://\(self.server.plain)", "https://\(self.server.http2)"] {
            let url = "\(server)/answered/log"
            let end = try self.end(agent, try agent.add(Self.session, url, "--upload", file))
            #expect(end["state"] as? String == "finished" && end["attempts"] as? Int == 1, "\(end)")
            #expect(end["bytes"] as? Int ?? .max < 20_000_000, "\(end)")
        }
    }

    @Test("A whole answer counts even if the server resets the connection afterwards")
    func resetAfterAnswer() throws {
        let faulty = try FaultyServer(self.server.authority)
        let agent = try RunningTransferAgent(nil, Self.quick)
        let file = try self.file("log", TransferServer.content(20_000_000, seed: 35))
        let id = try agent.add(Self.session, "\(faulty.base)/reset", "--upload", file)
        try agent.eventually("the answer", Self.session, id) { $0["status"] as? Int == 201 }
        try faulty.process.write("")
        let end = try self.end(agent, id)
        #expect(self.reason(end) == "ServerStoppedReading" && end["attempts"] as? Int == 1, "\(end)")
    }

    @Test("An upload whose file is overwritten in place meanwhile is sent again from the start")
    func overwritten() throws {
        let faulty = try FaultyServer(self.server.authority)
        let agent = try RunningTransferAgent(nil, Self.quick)
        let file = try self.file("log", TransferServer.content(20_000_000, seed: 36))
        let id = try agent.add(Self.session, "\(faulty.base)/slow", "--upload", file)
        #expect(try faulty.process.line() == "half")
        let other = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
        try other.write(contentsOf: TransferServer.content(20_000_000, seed: 37))
        try other.close()
        try faulty.process.write("")
        let end = try self.end(agent, id)
        #expect(end["state"] as? String == "finished" && end["attempts"] as? Int == 2, "\(end)")
        #expect(try faulty.sum() == TransferServer.sha256(file))
    }
}
