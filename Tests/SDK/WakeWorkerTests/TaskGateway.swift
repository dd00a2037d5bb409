import Foundation
import Testing
import WakeGateTestKit

/// A peer on a free loopback port that takes workers as a gateway does, sends what a test writes, and answers as it is
/// told, with 204 otherwise.
final class TaskGateway {
    struct Request {
        let method: String
        let path: String
        let body: String
    }

    let url: String
    let certificateAuthority: String
    private let authority: TestAuthority
    private let process = Process()
    private let input = Pipe()
    private let lines: AsyncStream<String>
    /// What it told and nobody has waited for yet.
    private var unclaimed: [String] = []

    init() async throws {
        self.authority = try TestAuthority()
        let extensions = "subjectAltName = IP:127.0.0.1\nextendedKeyUsage = serverAuth"
        let certificate = try self.authority.issue("/CN=127.0.0.1", extensions: extensions)
        self.certificateAuthority = self.authority.certificate
        let output = Pipe()
        self.process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        self.process.arguments = ["python3", "-c", Self.script, certificate]
        self.process.standardInput = self.input
        self.process.standardOutput = output
        let (lines, source) = AsyncStream<String>.makeStream()
        self.lines = lines
        try self.process.run()
        let reader = Thread {
            var rest = Data()
            while case let data = output.fileHandleForReading.availableData, !data.isEmpty {
                rest += data
                while let end = rest.firstIndex(of: 0x0A) {
                    source.yield(String(decoding: rest[rest.startIndex..<end], as: UTF8.self))
                    rest = Data(rest[(end + 1)...])
                }
            }
            source.finish()
        }
        reader.start()
        let port = await lines.first { _ in true }
        self.url = "https://127.0.0.1:\(try #require(port))"
    }

    deinit { self.process.terminate() }

    /// Sends an event on the stream that is open.
    func send(_ event: String, _ data: String) async throws {
        try await self.command(["do": "event", "name": event, "data": data])
    }

    /// Sends the wake of a task, or of whatever `kind` is; `members` are added to those that every wake has.
    func wake(_ id: String, _ kind: String, _ members: String, timeLeft: Int = 30_000) async throws {
        let device = String(repeating: "ab", count: 16)
        let start = #"{"wake":"\#(id)","kind":"\#(kind)","device":"\#(device)","topic":"t","attempt":2,"#
        let time = #""submittedAt":7,"deadline":99,"timeLeft":\#(timeLeft)"#
        try await self.send("wake", start + time + ",\(members)}")
    }

    /// Answers the next request of this method whose path ends like this, once.
    func answer(
        _ method: String,
        _ end: String,
        _ status: Int,
        _ body: String = "",
        headers: [String: String] = [:]
    ) async throws {
        try await self.command(
            ["do": "answer", "method": method, "end": end, "status": status, "body": body, "headers": headers]
        )
    }

    /// Ends the stream that is open.
    func endStream() async throws { try await self.command(["do": "end"]) }

    /// The next request whose path without its query ends like this.
    @discardableResult
    func request(_ end: String) async throws -> Request {
        let line = try await self.line { line in
            let words = line.split(separator: " ", maxSplits: 2)
            return words.count > 1 && words[1].split(separator: "?")[0].hasSuffix(end)
        }
        let words = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        return Request(method: words[0], path: words[1], body: words[2])
    }

    private func command(_ command: [String: Any]) async throws {
        let data = try JSONSerialization.data(withJSONObject: command)
        try self.input.fileHandleForWriting.write(contentsOf: data + Data("\n".utf8))
        _ = try await self.line { $0 == "done" }
    }

    private func line(_ isWanted: (String) -> Bool) async throws -> String {
        if let index = self.unclaimed.firstIndex(where: isWanted) { return self.unclaimed.remove(at: index) }
        for await line in self.lines {
            if isWanted(line) { return line }
            self.unclaimed.append(line)
        }
        throw Ended(unclaimed: self.unclaimed)
    }

    struct Ended: Error {
        let unclaimed: [String]
    }

    private static let script = #"""
        import http.server, json, ssl, sys, threading
        streams, answers, writing = [], [], threading.Lock()
        def show(line):
            with writing:
                sys.stdout.write(line + "\n"); sys.stdout.flush()
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *arguments): pass
            def setup(self):
                self.request.settimeout(None)
                super().setup()
            def stream(self):
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("wakegate-stream", "a-stream")
                self.send_header("connection", "close")
                self.end_headers()
                self.wfile.write(b": hello\n\n")
                ended = threading.Event()
                streams.append((self, ended))
                show(f"GET {self.path} ")
                while not ended.wait(5):
                    with writing: self.wfile.write(b": alive\n\n")
                self.close_connection = True
            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
                path = self.path.split("?")[0]
                if path.endswith("/wakes"): return self.stream()
                found = next((a for a in answers if a["method"] == self.command and path.endswith(a["end"])), None)
                if found: answers.remove(found)
                show(f"{self.command} {self.path} {body}")
                text = found["body"].encode() if found else b""
                self.send_response(found["status"] if found else 204)
                for name, value in (found["headers"] if found else {}).items(): self.send_header(name, value)
                if found: self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
            do_GET = do_POST = do_PATCH = do_DELETE = answer
        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, request, client_address): pass
        server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1])
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        show(str(server.server_port))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for line in sys.stdin:
            command = json.loads(line)
            if command["do"] == "answer": answers.append(command)
            if command["do"] == "end": streams[-1][1].set()
            if command["do"] == "event":
                with writing:
                    streams[-1][0].wfile.write(f"event: {command['name']}\ndata: {command['data']}\n\n".encode())
            show("done")
        """#
}
