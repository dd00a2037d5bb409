import Foundation
import Glibc
import HTTPClient
import Platform
import Synchronization
import Testing
import WakeGateTestKit
import Wire

@Suite("The HTTP client against a real server", .serialized, .timeLimit(.minutes(15)))
struct HTTPClientTests {
    private struct Echo: Decodable {
        let method: String
        let path: String
        let body: String
        let headers: [String: String]
    }

    @Test(
        "Method, path, headers and body arrive unchanged",
        arguments: [
            ("GET", nil), ("POST", "payload"), ("POST", ""), ("PATCH", "{}"), ("DELETE", nil),
        ]
    )
    func echo(method: String, body: String?) throws {
        let server = try ScriptedServer()
        let client = try HTTPClient()
        let headers = [(name: "apns-topic", value: "t"), (name: "x-empty", value: "")]
        let request = HTTPRequest(method, server.url("/a?b=c"), headers: headers, body: body.map { Array($0.utf8) })
        let response = try client.perform(request)
        let echo = try JSONDecoder().decode(Echo.self, from: Data(response.body))
        #expect(response.status == 200)
        #expect(echo.method == method)
        #expect(echo.path == "/a?b=c")
        #expect(echo.body == body ?? "")
        #expect(echo.headers["apns-topic"] == "t")
        #expect(echo.headers["x-empty"]?.isEmpty == true)
        #expect(echo.headers["expect"] == nil)
    }

    @Test("A streaming answer consists of head, bytes and end, in this order")
    func streaming() throws {
        let server = try ScriptedServer()
        let client = try HTTPClient()
        let id = try client.start(HTTPRequest("GET", server.url("/stream"), isStreaming: true))
        var text = ""
        var order: [String] = []
        while client.activeCount > 0 || order.last != "end" {
            for event in client.poll(timeoutMilliseconds: 1000) {
                switch event {
                case .head(id, let head):
                    order.append("head")
                    #expect(head.header("x-mixed-case") == "yes")
                case .body(id, let bytes):
                    if order.last != "body" { order.append("body") }
                    text += String(decoding: bytes, as: UTF8.self)
                case .ended(id, let result):
                    order.append("end")
                    #expect(throws: Never.self) { try result.get() }
                default: Issue.record("an event of another request")
                }
            }
        }
        #expect(order == ["head", "body", "end"])
        #expect(text == "data: a\n\ndata: b\n\n")
    }

    @Test("A cancelled request reports nothing more")
    func cancel() throws {
        let server = try ScriptedServer()
        let client = try HTTPClient()
        let silent = try client.start(HTTPRequest("GET", server.url("/silent"), isStreaming: true))
        _ = client.poll(timeoutMilliseconds: 10)
        client.cancel(silent)
        client.cancel(silent)
        #expect(client.activeCount == 0)
        #expect(try client.perform(HTTPRequest("GET", server.url("/"))).status == 200)
    }

    @Test("Each failure has its own error code")
    func errors() throws {
        let server = try ScriptedServer()
        var settings = HTTPClientSettings()
        settings.bodyBytesMax = 99_999
        let client = try HTTPClient(settings)
        func code(_ request: HTTPRequest) -> HTTPClientError.Code? {
            do throws(HTTPClientError) {
                _ = try client.perform(request)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(code(HTTPRequest("GET", server.url("/silent"), timeoutMilliseconds: 50)) == .timedOut)
        #expect(code(HTTPRequest("GET", server.url("/large"))) == .tooLarge)
        // One field that libcurl does not read, and many that it does.
        for fields in ["/fields/1/400000", "/fields/400/1000"] {
            #expect(code(HTTPRequest("GET", server.url(fields))) == .headTooLarge, "\(fields)")
        }
        #expect(code(HTTPRequest("GET", "ftp://127.0.0.1/")) == .badRequest)
        #expect(code(HTTPRequest("GET", "https://127.0.0.1:\(server.port)/")) == .untrusted)
    }

    @Test(
        "A server that disappears during a TLS handshake is broken, not untrusted",
        arguments: [ScriptedServer.Handshake.end, .reset]
    )
    func handshake(_ handshake: ScriptedServer.Handshake) throws {
        let server = try ScriptedServer(handshake)
        let error = try #require(throws: HTTPClientError.self) {
            try HTTPClient().perform(HTTPRequest("GET", "https://127.0.0.1:\(server.port)/"))
        }
        #expect(error.code == .broken && !error.mayHaveArrived, "\(error.detail)")
    }

    @Test("A file for TLS that cannot be read is named before anything is sent")
    func badFile() throws {
        var settings = HTTPClientSettings()
        settings.certificateAuthorityFile = "/nonexistent.pem"
        let client = try HTTPClient(settings)
        #expect(throws: HTTPClientError(.badCredentials, "/nonexistent.pem cannot be read (no such file)")) {
            try client.start(HTTPRequest("GET", "https://127.0.0.1:1/"))
        }
    }

    @Test("A descriptor that is ready ends the wait")
    func descriptor() throws {
        let pipe = Pipe()
        let client = try HTTPClient()
        try pipe.fileHandleForWriting.write(contentsOf: Data([1]))
        let ready = Descriptor.Wait(pipe.fileHandleForReading.fileDescriptor, .readable)
        let start = ContinuousClock.now
        _ = client.poll(timeoutMilliseconds: 50_000, descriptors: [ready])
        #expect(ContinuousClock.now - start < .seconds(25))
    }

    @Test("A name that resolves to a private address is refused before anything is sent")
    func refusedAddress() throws {
        let server = try ScriptedServer()
        var settings = HTTPClientSettings()
        settings.reach = .global
        settings.usesProxies = false
        settings.resolutions = ["rebound.example:\(server.port):127.0.0.1"]
        let client = try HTTPClient()
        for host in ["rebound.example", "localhost", "127.0.0.1", "0x7f.1", "[::ffff:127.0.0.1]"] {
            var request = HTTPRequest("GET", "http://\(host):\(server.port)/")
            request.settings = settings
            let error = try #require(throws: HTTPClientError.self) { try client.perform(request) }
            #expect(error.code == .refusedAddress, "\(host): \(error)")
            #expect(error.message.hasSuffix("(loopback) may not be reached"))
            #expect(!error.mayHaveArrived)
        }
        settings.reach = .loopback
        var request = HTTPRequest("GET", "http://rebound.example:\(server.port)/")
        request.settings = settings
        #expect(try client.perform(request).status == 200)
    }

    @Test("The address of a reused connection is checked again")
    func refusedConnection() throws {
        let server = try ScriptedServer()
        let client = try HTTPClient()
        var settings = HTTPClientSettings()
        settings.usesProxies = false
        var request = HTTPRequest("GET", server.url("/"))
        request.settings = settings
        #expect(try client.perform(request).status == 200)
        settings.reach = .global
        request.settings = settings
        let error = try #require(throws: HTTPClientError.self) { try client.perform(request) }
        #expect(error.code == .refusedAddress)
        #expect(!error.mayHaveArrived)
    }

    @Test("The error says whether the request may have arrived, and contains the system's message")
    func arrival() throws {
        let server = try ScriptedServer()
        let client = try HTTPClient()
        let cut = try #require(throws: HTTPClientError.self) {
            try client.perform(HTTPRequest("GET", server.url("/cut")))
        }
        #expect(cut.code == .broken && cut.mayHaveArrived)
        let nobody = try #require(throws: HTTPClientError.self) {
            try client.perform(HTTPRequest("GET", "http://127.0.0.1:1/"))
        }
        #expect(nobody.code == .unreachable && !nobody.mayHaveArrived)
        #expect(nobody.detail == "Connection refused")
    }

    @Test(
        "retry-after is read in both forms, and a past time counts as 0 seconds",
        arguments: [
            (["7"], 7), (["0"], 0), (["99999999999999999999"], .max), (["-1"], nil), (["1.5"], nil), ([""], nil),
            (["soon"], nil), ([], nil), (["Fri, 27 Nov 2026 08:00:30 GMT"], 30), (["Fri, 27 Nov 2026 07:00:00 GMT"], 0),
            (["Friday, 27-Nov-26 08:00:30 GMT"], 30),
        ] as [([String], Int?)]
    )
    func rests(_ fields: [String], _ seconds: Int?) {
        var response = HTTPResponse(status: 503, headers: [(name: "date", value: "Fri, 27 Nov 2026 08:00:00 GMT")])
        response.headers += fields.map { (name: "retry-after", value: $0) }
        response.readRetryAfter()
        #expect(response.retryAfterSeconds == seconds)
    }

    @Test("A waker ends a wait that has begun, or the next one")
    func waker() throws {
        let client = try HTTPClient()
        let start = ContinuousClock.now
        client.waker.wake()
        _ = client.poll(timeoutMilliseconds: 50_000)
        let waker = client.waker
        Thread.detachNewThread { waker.wake() }
        _ = client.poll(timeoutMilliseconds: 50_000)
        #expect(ContinuousClock.now - start < .seconds(25))
    }
}

@Suite("Request and response bodies in files", .serialized, .timeLimit(.minutes(15)))
struct HTTPBodyTests {
    /// Records the bytes it receives.
    private final class Sink: HTTPBodySink {
        struct Noted {
            var statuses: [Int] = []
            var bytes = 0
        }

        let noted = Mutex(Noted())
        /// The number of bytes after which it accepts no more.
        let bytesMax: Int
        let takesHead: Bool

        init(bytesMax: Int = .max, takesHead: Bool = true) {
            self.bytesMax = bytesMax
            self.takesHead = takesHead
        }

        func headReceived(_ response: HTTPResponse) -> Bool {
            self.noted.withLock { $0.statuses.append(response.status) }
            return self.takesHead
        }

        func bodyReceived(_ bytes: ByteView) -> Bool {
            let count = bytes.count
            return self.noted.withLock { noted in
                noted.bytes += count
                return noted.bytes <= self.bytesMax
            }
        }
    }

    private static func end(_ client: HTTPClient, _ request: HTTPRequest) throws -> Result<
        HTTPResponse, HTTPClientError
    > {
        let id = try client.start(request)
        while true {
            for event in client.poll(timeoutMilliseconds: 1000) {
                guard case .ended(id, let result) = event else {
                    Issue.record("an unexpected event: \(event)")
                    continue
                }
                return result
            }
        }
    }

    private static func request(_ path: String, _ server: ScriptedServer, _ sink: Sink) -> HTTPRequest {
        var request = HTTPRequest("GET", server.url(path), timeoutMilliseconds: nil, isStreaming: true)
        request.sink = sink
        return request
    }

    @Test("A sink receives the head once and every byte, and no events are created for them")
    func whole() throws {
        let server = try ScriptedServer()
        let sink = Sink()
        let response = try Self.end(HTTPClient(), Self.request("/large", server, sink)).get()
        #expect(response.status == 200 && response.body.isEmpty)
        #expect(sink.noted.withLock { $0.statuses } == [200] && sink.noted.withLock { $0.bytes } == 100_000)
    }

    @Test("A sink that refuses bytes ends the exchange", arguments: [(10, true), (Int.max, false)])
    func refused(_ bytesMax: Int, _ takesHead: Bool) throws {
        let server = try ScriptedServer()
        let sink = Sink(bytesMax: bytesMax, takesHead: takesHead)
        let result = try Self.end(HTTPClient(), Self.request("/large", server, sink))
        #expect(throws: HTTPClientError.self) { try result.get() }
        #expect(sink.noted.withLock { $0.bytes } < 100_000)
    }

    @Test("A server that is silent for too long is given up")
    func silence() throws {
        let server = try ScriptedServer()
        var request = Self.request("/silent", server, Sink())
        request.silenceSecondsMax = 1
        guard case .failure(let error) = try Self.end(HTTPClient(), request) else {
            Issue.record("a silent server has answered")
            return
        }
        #expect(error.code == .timedOut)
    }

    @Test("A file is sent unchanged, and one that is shorter than announced ends the exchange", arguments: [0, 1])
    func file(_ missing: Int64) throws {
        let server = try ScriptedServer()
        let content = Array(String(repeating: "payload ", count: 10_000).utf8)
        let count = Int64(content.count)
        let needed = Mutex<[Int64]>([])
        let reported = Atomic<Int64>(0)
        var request = HTTPRequest("POST", server.url("/echo"))
        request.file = HTTPFileBody(byteCount: count + missing) { offset in
            needed.withLock { $0.append(offset) }
        } onProgress: { sent in
            reported.store(sent, ordering: .relaxed)
        }
        let client = try HTTPClient()
        let id = try client.start(request)
        var offsets: [Int64] = []
        var ended: Result<HTTPResponse, HTTPClientError>?
        while ended == nil {
            for case .ended(id, let result) in client.poll(timeoutMilliseconds: 100) { ended = result }
            guard let offset = needed.withLock({ $0.popLast() }) else { continue }
            offsets.append(offset)
            // A file whose bytes do not come delays no other request.
            #expect(try client.perform(HTTPRequest("GET", server.url("/"))).status == 200)
            // Bytes of another place in the file are ignored.
            client.supply([0], at: offset + 1, to: id)
            client.supply(Array(content.dropFirst(Int(offset)).prefix(50_000)), at: offset, to: id)
        }
        #expect(offsets == [0, 50_000] + (missing == 0 ? [] : [count]))
        let result = try #require(ended)
        guard missing == 0 else {
            #expect(throws: HTTPClientError.self) { try result.get() }
            return
        }
        let response = try result.get()
        let sent = reported.load(ordering: .relaxed)
        #expect(response.text.contains("\"method\": \"POST\"") && response.text.contains("payload payload"))
        #expect(response.body.count > content.count && sent == count)
    }

    @Test(
        "A reference is resolved as RFC 3986 says",
        arguments: [
            ("/c?d", "http://a:8/b", "http://a:8/c?d"), ("c", "https://a/b/x?y", "https://a/b/c"),
            ("//o/p", "https://a/b", "https://o/p"), ("http://z/", "https://a/b", "http://z/"),
            ("file:///etc/passwd", "http://a/", "file:///etc/passwd"),
            ("my file?q r", "http://a/b", "http://a/my%20file?q+r"),
        ]
    )
    func resolved(_ reference: String, _ base: String, _ url: String) {
        #expect(HTTPURL.resolved(reference, at: base) == url)
        #expect((HTTPURL(url) == nil) == url.hasPrefix("file"))
    }
}

/// A real HTTP/1.1 server on a free loopback port, in a separate process.
///
/// `GET /stream` sends two pieces and ends, `GET /cut` ends in the middle of its body, `GET /silent` never answers,
/// `GET /large` sends 100,000 bytes, `GET /fields/A/B` sends A header fields of B bytes, everything else echoes method,
/// path, headers and body as JSON.
final class ScriptedServer {
    enum Handshake: String {
        /// The server does not support TLS, and answers in HTTP/1.1.
        case plain
        /// The server ends each connection after its first bytes.
        case end
        /// The server resets each connection after its first bytes.
        case reset
    }

    let port: Int
    private let process = Process()
    private let input = Pipe.toChild()

    private static let script = """
        import http.server, json, os, sys, threading
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *arguments): pass
            def handle(self):
                if sys.argv[1] == "plain":
                    super().handle()
                elif sys.argv[1] == "end":
                    self.connection.recv(65536)
                else:
                    # What is closed with bytes that nobody has read is reset.
                    self.connection.recv(1)
            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if self.path == "/stream":
                    self.send_response(200); self.send_header("X-Mixed-Case", "yes"); self.end_headers()
                    self.wfile.write(b"data: a\\n\\n"); self.wfile.flush()
                    self.wfile.write(b"data: b\\n\\n"); self.close_connection = True
                    return
                if self.path == "/cut":
                    self.send_response(200); self.send_header("content-length", "10"); self.end_headers()
                    self.wfile.write(b"half"); self.close_connection = True
                    return
                if self.path == "/silent":
                    self.rfile.read(1); self.close_connection = True
                    return
                text = b"x" * 100000 if self.path == "/large" else json.dumps({
                    "method": self.command, "path": self.path, "body": body.decode("latin-1"),
                    "headers": {k.lower(): v for k, v in self.headers.items()}}).encode()
                self.send_response(418 if self.path == "/teapot" else 200)
                if self.path.startswith("/fields/"):
                    count, length = map(int, self.path.split("/")[2:])
                    for number in range(count): self.send_header(f"x-{number}", "v" * length)
                self.send_header("content-length", str(len(text))); self.end_headers()
                self.wfile.write(text)
            do_GET = do_POST = do_PATCH = do_DELETE = answer
        http.server.ThreadingHTTPServer.request_queue_size = 128
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print(server.server_port, flush=True)
        def end_with_tests():
            sys.stdin.buffer.read()
            os._exit(0)
        threading.Thread(target=end_with_tests, daemon=True).start()
        server.serve_forever()
        """

    init(_ handshake: Handshake = .plain) throws {
        let output = Pipe.toChild()
        self.process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        self.process.arguments = ["python3", "-c", Self.script, handshake.rawValue]
        self.process.standardInput = self.input
        self.process.standardOutput = output
        // The test runner waits until every process has closed its output.
        self.process.standardError = FileHandle.nullDevice
        try self.process.start()
        var line = Data()
        while let byte = try output.fileHandleForReading.read(upToCount: 1), byte != Data([0x0A]) { line += byte }
        try? output.fileHandleForReading.close()
        self.port = try #require(Int(String(decoding: line, as: UTF8.self)))
    }

    deinit {
        if self.process.isRunning { kill(self.process.processIdentifier, SIGKILL) }
        // Foundation never releases a process or its pipes.
        try? self.input.fileHandleForWriting.close()
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(self.port)\(path)" }
}
