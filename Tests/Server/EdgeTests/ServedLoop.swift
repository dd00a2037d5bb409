import Engine
import Foundation
import Gateway
import HTTPClient
import HTTPTransport
import Platform
import ServiceManager
import Storage
import Synchronization
import Testing
import Wire

/// One loop with its handler on real sockets. The engine stores nothing. The test's thread is also the client, and
/// performs the engine's steps.
final class ServedLoop {
    /// A listener of the server.
    enum Door: Int, CaseIterable {
        case plain, admin

        var role: ListenerRole { self == .plain ? .plain : .admin }
    }

    /// The answer to a request, as far as received.
    struct Answer {
        var head: HTTPResponse?
        var body: [UInt8] = []
        /// The end of the answer; nil while more may arrive.
        var end: Result<HTTPResponse, HTTPClientError>?

        var text: String { String(decoding: self.body, as: UTF8.self) }
    }

    private final class NoHistory: HistoryOutput {
        func open() throws(StoreError) {}

        func waitUntilOpened() -> OpenedHistory? { nil }

        func submit(_ batch: inout HistoryBatch) { batch.removeAll() }
    }

    /// Keeps the lines of the log, as text without their time.
    private final class RecordingLog: LogSink {
        let lines = Mutex<[String]>([])

        func write(_ line: LogLine, _: LogFormat) -> Bool {
            self.lines.withLock { $0.append("\(line.event.level.rawValue) \(line.message)") }
            return true
        }
    }

    static let topic = "com.example.mine"
    static let device = String(repeating: "ab", count: 32)
    /// The body of a background push.
    static let body = #"{"aps":{"content-available":1}}"#

    let shared: SharedParts
    private let server: HTTPServer
    private let engine: LocalEngine
    private let client: HTTPClient
    private let log = RecordingLog()
    private var batch = CommandBatch()
    private(set) var answers: [HTTPRequestID: Answer] = [:]

    /// - Parameter change: changes a configuration that requires no proof and has open registration.
    init(_ change: (inout GatewayConfiguration) -> Void = { _ in }) throws {
        var configuration = GatewayConfiguration()
        configuration.store = .memory
        configuration.checksTokens = false
        configuration.registration = .open
        change(&configuration)
        let shared = SharedParts(
            configuration: configuration,
            roles: Door.allCases.map(\.role),
            areLocal: Door.allCases.map { $0 == .admin },
            tokens: configuration.tokenCheck { _ in },
            loopCount: 1,
            providerKeys: nil,
            clientTrusts: nil,
            reload: { _ throws(APIError) in throw .nothingToReload },
            log: GatewayLog(level: .info, format: .text, sink: self.log),
            onIdle: {}
        )
        self.shared = shared
        let listeners = try Door.allCases.map { _ in Listener(address: try .parse("127.0.0.1:0"), tls: nil) }
        self.server = try HTTPServer(listeners: listeners, limits: configuration.limits.transport, loopCount: 1) {
            LoopHandler(loop: $0, shared: shared)
        }
        self.engine = try LocalEngine(
            configuration: configuration.engine,
            historyKey: HashKey((1, 2)),
            store: nil,
            output: GroupOutput(
                mailboxes: shared.mailboxes,
                history: NoHistory(),
                events: shared.services.events
            ),
            signal: {},
            onFailure: { _ in }
        )
        var settings = HTTPClientSettings()
        settings.cleartextHTTP2 = true
        settings.usesProxies = false
        self.client = try HTTPClient(settings)
        try self.server.start()
    }

    deinit {
        self.engine.finish()
        self.server.stop()
    }

    /// The number of connections whose topics send a large part of all bytes.
    var busyConnectionCount: Int { self.server.loops[0].busyConnectionCount }

    /// Returns the lines of the log about an event.
    func logged(_ event: GatewayEvent) -> [String] {
        self.shared.log.flush()
        return self.log.lines.withLock { $0.filter { $0.contains(" \(event.rawValue) ") } }
    }

    // MARK: Requests

    /// Begins a request; `run` sends it.
    ///
    /// - Parameter host: the name of the machine. Each name uses a separate connection.
    func begin(
        _ request: String,
        at door: Door = .plain,
        host: String = "127.0.0.1",
        headers: [(name: String, value: String)] = [],
        body: [UInt8]? = nil,
        isStreaming: Bool = false
    ) throws -> HTTPRequestID {
        let words = request.split(separator: " ")
        let request = HTTPRequest(
            String(words[0]),
            "http://\(host):\(self.server.boundAddresses[door.rawValue].split(separator: ":").last ?? "")\(words[1])",
            headers: headers,
            body: body,
            timeoutMilliseconds: nil,
            isStreaming: isStreaming
        )
        let id = try self.client.start(request)
        self.answers[id] = Answer()
        return id
    }

    /// Sends a request and waits for its answer.
    func ask(
        _ request: String,
        at door: Door = .plain,
        headers: [(name: String, value: String)] = [],
        body: String? = nil
    ) throws -> HTTPResponse {
        try self.answer(self.begin(request, at: door, headers: headers, body: body.map { Array($0.utf8) }), to: request)
    }

    private func answer(_ id: HTTPRequestID, to request: String) throws -> HTTPResponse {
        try self.run("an answer to \(request)") { self.answers[id]?.end != nil }
        return try #require(self.answers[id]?.end).get()
    }

    /// Opens a stream of events and waits for its head.
    func open(_ path: String, at door: Door = .plain) throws -> HTTPRequestID {
        let id = try self.begin("GET \(path)", at: door, isStreaming: true)
        try self.run("the head of \(path)") { self.answers[id]?.head != nil || self.answers[id]?.end != nil }
        return id
    }

    /// Sends a background push and waits for its answer.
    func push(
        _ headers: [(name: String, value: String)] = [],
        host: String = "127.0.0.1",
        body: String = ServedLoop.body
    ) throws -> HTTPResponse {
        try self.answer(self.beginPush(headers, host: host, body: body), to: "a push")
    }

    /// Begins a background push; `run` sends it.
    func beginPush(
        _ headers: [(name: String, value: String)] = [],
        host: String = "127.0.0.1",
        body: String = ServedLoop.body
    ) throws -> HTTPRequestID {
        let own = [
            (name: "apns-topic", value: Self.topic), (name: "apns-push-type", value: "background"),
            (name: "apns-priority", value: "10"),
        ]
        let names = Set(headers.map(\.name))
        let all = own.filter { !names.contains($0.name) } + headers
        return try self.begin("POST /3/device/\(Self.device)", host: host, headers: all, body: Array(body.utf8))
    }

    func cancel(_ id: HTTPRequestID) { self.client.cancel(id) }

    // MARK: Turns

    /// Runs client and engine until `isDone` returns true.
    ///
    /// - Throws: if it does not within a minute.
    func run(_ what: String, until isDone: () -> Bool) throws {
        let limit = SystemClock.monotonic + 60_000
        while !isDone() {
            try #require(SystemClock.monotonic < limit, "not within a minute: \(what); there are \(self.answers)")
            self.turn()
        }
    }

    private func turn() {
        self.exchange()
        _ = self.shared.engine.take(into: &self.batch, waitingAtMost: 0)
        guard !self.batch.isEmpty else { return }
        _ = self.engine.step(self.batch)
        self.batch.removeAll()
    }

    /// Runs the client, but not the engine.
    func exchange() {
        for event in self.client.poll(timeoutMilliseconds: 5) {
            switch event {
            case .head(let id, let head): self.answers[id]?.head = head
            case .body(let id, let bytes): self.answers[id]?.body += bytes
            case .ended(let id, let result): self.answers[id]?.end = result
            }
        }
    }
}
