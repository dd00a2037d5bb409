import HTTPTransport
import Platform
import Testing
import WakeGateTestKit
import Wire

/// The paths of requests in the order in which they came. The loop's thread writes it, and the test's waits.
final class OrderLog: @unchecked Sendable {  // `monitor` guards it.
    private let monitor = Monitor()
    private var paths: [String] = []

    var all: [String] { self.monitor.withLock { self.paths } }

    func append(_ path: String) {
        self.monitor.withLock {
            self.paths.append(path)
            self.monitor.broadcast()
        }
    }

    func removeAll() { self.monitor.withLock { self.paths = [] } }

    /// Waits until a path was appended so many times.
    func wait(for path: String, times: Int = 1) {
        self.monitor.withLock {
            while self.paths.count(where: { $0 == path }) < times { self.monitor.wait() }
        }
    }
}

/// Takes requests for `/FLOW/NAME`, notes and answers each, and does what some names say.
final class FlowHandler: RequestHandler {
    private unowned let loop: EventLoop
    private let log: OrderLog
    private let faults: SystemFaults
    private let held: Latch
    private let response = Response()
    private var connections: [UInt64: Set<ConnectionID>] = [:]
    private var hasJoined = false

    init(_ loop: EventLoop, _ log: OrderLog, _ held: Latch, _ faults: SystemFaults) {
        self.loop = loop
        self.log = log
        self.held = held
        self.faults = faults
    }

    func bodyBytesMax(for _: Request) -> Int { 4096 }

    func requestReceived(_ request: Request) {
        let path = String(decoding: request.path.array, as: UTF8.self)
        let parts = path.split(separator: "/")
        if let flow = parts.first.flatMap({ UInt64($0) }) {
            self.loop.setFlow(of: request.stream.connection, to: flow)
            self.connections[flow, default: []].insert(request.stream.connection)
        }
        self.log.append(path)
        switch parts.last {
        case "hold": self.held.wait()
        case "pause": self.loop.isReadingPaused = true
        case "judge": self.log.append(self.loop.isQuiet(request.stream.connection) ? "quiet" : "not quiet")
        case "close": for connection in self.connections[FlowScene.noisyFlow] ?? [] { self.loop.close(connection) }
        case _: ()
        }
        self.response.begin(status: 200)
        self.loop.respond(request.stream, self.response)
    }

    func woken() {
        if !self.hasJoined { self.faults.join() }
        self.hasJoined = true
        self.loop.isReadingPaused = false
        self.log.append("woken")
    }

    func streamClosed(_: StreamID) {}
    func connectionClosed(_: ConnectionID) {}
    func streamDrained(_: StreamID) {}
    func turnEnded() {}
    func secondPassed(_: Int64) { self.log.append("second") }
    func alarmRang(_: Int64) {}
}

/// A client of a `FlowScene`: what it has asked, it waits for.
final class FlowPeer {
    private static let body = [UInt8](repeating: 0x61, count: 4096)

    let peer: ScriptedPeer
    private let flow: UInt64
    private var nextStream = 1
    private var unanswered: [Int] = []

    init(_ address: String, flow: UInt64, tls: TLSClient?) throws {
        self.peer = try ScriptedPeer(address, tls: tls)
        self.flow = flow
        self.peer.beginHTTP2()
    }

    /// Sends a request that is small.
    func ask(_ name: String) {
        self.peer.send(ScriptedPeer.request("/\(self.flow)/\(name)", stream: self.stream()))
    }

    /// Sends requests of 4 KiB each.
    func ask(_ name: String, times: Int) {
        var bytes: [UInt8] = []
        for _ in 0..<times {
            let stream = self.stream()
            bytes += ScriptedPeer.request("/\(self.flow)/\(name)", stream: stream, ended: false)
            bytes += ScriptedPeer.frame(0, flags: 1, stream: stream, Self.body)
        }
        self.peer.send(bytes)
    }

    /// Whether all is answered that was asked.
    func isServed() -> Bool {
        defer { self.unanswered = [] }
        return self.unanswered.allSatisfy { self.peer.frame(type: 1, stream: $0) != nil }
    }

    private func stream() -> Int {
        defer { self.nextStream += 2 }
        self.unanswered.append(self.nextStream)
        return self.nextStream
    }
}

/// A server of one loop, a noisy flow on twenty connections, and one that holds the loop so that requests wait in the
/// sockets until the test lets it go on.
final class FlowScene {
    static let noisyFlow: UInt64 = 1
    static let noisyCount = 20

    let faults = SystemFaults()
    let log = OrderLog()
    let server: HTTPServer
    let noisy: [FlowPeer]
    private let holder: FlowPeer
    private let held = Latch()
    private let makeTLS: () -> TLSClient?

    var loop: EventLoop { self.server.loops[0] }

    /// - Parameter tls: what is spoken below HTTP/2; nil for cleartext.
    init(tls: TLSContext? = nil) throws {
        let (log, held, faults) = (self.log, self.held, self.faults)
        let listener = Listener(address: try .parse("127.0.0.1:0"), tls: tls)
        let server = try HTTPServer(listeners: [listener], loopCount: 1) { FlowHandler($0, log, held, faults) }
        self.server = server
        self.makeTLS = { tls == nil ? nil : TLSClient() }
        let (address, makeTLS) = (server.boundAddresses[0], self.makeTLS)
        try server.start()
        // From here on no time passes that a test does not let pass.
        server.loops[0].wake()
        log.wait(for: "woken")
        log.removeAll()
        self.noisy = try (0..<Self.noisyCount).map { _ in
            try FlowPeer(address, flow: Self.noisyFlow, tls: makeTLS())
        }
        self.holder = try FlowPeer(address, flow: 2, tls: makeTLS())
    }

    deinit {
        self.held.open()
        self.server.stop()
    }

    func peer(flow: UInt64) throws -> FlowPeer {
        try FlowPeer(self.server.boundAddresses[0], flow: flow, tls: self.makeTLS())
    }

    /// Has the noisy flow send 2 MiB beside another's few bytes.
    func makeNoise() {
        self.holder.ask("quiet")
        #expect(self.holder.isServed())
        for peer in self.noisy { peer.ask("noise", times: 25) }
        for peer in self.noisy { #expect(peer.isServed()) }
        for peer in self.noisy { peer.ask("noise") }
        for peer in self.noisy { #expect(peer.isServed()) }
        self.log.removeAll()
    }

    /// Has the loop stand still until `goOn`, once.
    func hold() {
        self.holder.ask("hold")
        self.log.wait(for: "/2/hold")
    }

    func goOn() {
        self.held.open()
        #expect(self.holder.isServed())
    }

    /// Has a request from the holder do what its name says.
    func order(_ name: String) {
        self.holder.ask(name)
        #expect(self.holder.isServed())
    }

    /// Has 40 KB wait in the socket of each noisy connection, named by its number.
    func sendBursts() {
        for (number, peer) in self.noisy.enumerated() { peer.ask("\(number)", times: 10) }
        for peer in self.noisy { #expect(peer.peer.isDelivered()) }
    }

    /// The noisy connections that were heard before a request.
    func heard(before path: String) -> Set<String> {
        Set(self.log.all.prefix { $0 != path }.filter { $0.hasPrefix("/\(Self.noisyFlow)/") })
    }
}
