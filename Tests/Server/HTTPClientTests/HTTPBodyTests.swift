import Foundation
import HTTPClient
import Synchronization
import Testing
import Wire

@Suite("Bodies that go to and come from files", .serialized, .timeLimit(.minutes(15)))
struct HTTPBodyTests {
    /// Notes what it is given.
    private final class Sink: HTTPBodySink {
        struct Noted {
            var statuses: [Int] = []
            var bytes = 0
        }

        let noted = Mutex(Noted())
        /// After how many bytes it takes no more.
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
                    Issue.record("an event beside the sink's: \(event)")
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

    @Test("A sink is given the head once and every byte, and no event tells of them")
    func whole() throws {
        let server = try ScriptedServer()
        let sink = Sink()
        let response = try Self.end(HTTPClient(), Self.request("/large", server, sink)).get()
        #expect(response.status == 200 && response.body.isEmpty)
        #expect(sink.noted.withLock { $0.statuses } == [200] && sink.noted.withLock { $0.bytes } == 100_000)
    }

    @Test("A sink that takes no more ends the exchange", arguments: [(10, true), (Int.max, false)])
    func refused(_ bytesMax: Int, _ takesHead: Bool) throws {
        let server = try ScriptedServer()
        let sink = Sink(bytesMax: bytesMax, takesHead: takesHead)
        let result = try Self.end(HTTPClient(), Self.request("/large", server, sink))
        #expect(throws: HTTPClientError.self) { try result.get() }
        #expect(sink.noted.withLock { $0.bytes } < 100_000)
    }

    @Test("A server that is silent for longer than it may is left")
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

    @Test("A file is sent as it is, and one that is shorter than announced ends the exchange", arguments: [0, 1])
    func file(_ missing: Int64) throws {
        let server = try ScriptedServer()
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        let content = String(repeating: "payload ", count: 10_000)
        try Data(content.utf8).write(to: path)
        defer { try? FileManager.default.removeItem(at: path) }
        let handle = try FileHandle(forReadingFrom: path)
        defer { try? handle.close() }
        let count = Int64(content.utf8.count)
        let told = Told()
        let body = HTTPFileBody(descriptor: handle.fileDescriptor, byteCount: count + missing) { told.set($0) }
        var request = HTTPRequest("POST", server.url("/echo"))
        request.file = body
        let result = try Self.end(HTTPClient(), request)
        if missing == 0 {
            let response = try result.get()
            #expect(response.text.contains("\"method\": \"POST\"") && response.text.contains("payload payload"))
            #expect(response.body.count > content.utf8.count && told.value == count)
        } else {
            #expect(throws: HTTPClientError.self) { try result.get() }
            let isCut = body.isCut.load(ordering: .relaxed)
            #expect(isCut)
        }
    }

    /// How far a file was sent.
    private final class Told: Sendable {
        private let bytes = Mutex<Int64>(0)

        var value: Int64 { self.bytes.withLock { $0 } }

        func set(_ bytes: Int64) { self.bytes.withLock { $0 = bytes } }
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
