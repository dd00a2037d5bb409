import Foundation
import HTTPClient
import Testing

@Suite("The HTTP client against a real server", .serialized, .timeLimit(.minutes(15)))
struct HTTPClientTests {
    private struct Echo: Decodable {
        let method: String
        let path: String
        let body: String
        let headers: [String: String]
    }

    @Test(
        "Method, path, headers and body arrive as they were given",
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

    @Test("An answer that is an error is an answer")
    func status() throws {
        let server = try ScriptedServer()
        let response = try HTTPClient().perform(HTTPRequest("GET", server.url("/teapot")))
        #expect(response.status == 418)
        #expect(!response.isSuccess)
    }

    @Test("A streaming answer comes as head, bytes and end, in this order")
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

    @Test("Many requests run at once and each gets its own answer")
    func many() throws {
        let server = try ScriptedServer()
        let client = try HTTPClient()
        var paths: [HTTPRequestID: String] = [:]
        for number in 0..<50 { paths[try client.start(HTTPRequest("GET", server.url("/\(number)")))] = "/\(number)" }
        while !paths.isEmpty {
            for case .ended(let id, let result) in client.poll(timeoutMilliseconds: 1000) {
                let echo = try JSONDecoder().decode(Echo.self, from: Data(try result.get().body))
                #expect(paths.removeValue(forKey: id) == echo.path)
            }
        }
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

    @Test("What goes wrong is told apart")
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
        #expect(code(HTTPRequest("GET", "http://127.0.0.1:1/")) == .unreachable)
        #expect(code(HTTPRequest("GET", server.url("/cut"))) == .broken)
        #expect(code(HTTPRequest("GET", server.url("/silent"), timeoutMilliseconds: 50)) == .timedOut)
        #expect(code(HTTPRequest("GET", server.url("/large"))) == .tooLarge)
        #expect(code(HTTPRequest("GET", "ftp://127.0.0.1/")) == .badRequest)
        #expect(code(HTTPRequest("GET", "https://127.0.0.1:\(server.port)/")) == .untrusted)
    }

    @Test(
        "A server that goes away in the middle of a TLS handshake is no server that is not trusted",
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
        let ready = PollDescriptor(pipe.fileHandleForReading.fileDescriptor, .readable)
        let start = ContinuousClock.now
        _ = client.poll(timeoutMilliseconds: 50_000, descriptors: [ready])
        #expect(ContinuousClock.now - start < .seconds(25))
    }

    @Test("A name that stands for a private address is refused before anything is sent, however it got its address")
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

    @Test("A connection that another request made is judged again before it is used")
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

    @Test("Whether a request may have arrived is told with the error, and what the system says")
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
        "A rest that a server asks for is read in both forms, and one that is over is a rest of 0 seconds",
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
