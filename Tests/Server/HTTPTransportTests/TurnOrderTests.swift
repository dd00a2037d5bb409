import Glibc
import HTTPTransport
import Platform
import Testing
import WakeGateTestKit
import Wire

/// A client that sends little is read before those that send much, and the latter are read, too.
@Suite("The order of connections", .timeLimit(.minutes(15)))
struct TurnOrderTests {
    @Test("A quiet connection is read before most of the earlier busy ones", arguments: [false, true])
    func quietFirst(isTLS: Bool) throws {
        let scene = try FlowScene(tls: isTLS ? try FaultScene.makeContext() : nil)
        let quiet = try scene.servedPeer(flow: 3)
        scene.makeNoise()
        #expect(scene.loop.busyConnectionCount == FlowScene.noisyCount)
        scene.hold()
        scene.sendBursts()
        quiet.ask("x")
        #expect(quiet.peer.isDelivered())
        scene.resume()
        #expect(quiet.isServed())
        for peer in scene.noisy { #expect(peer.isServed()) }
        // Two bursts are more than is read in one turn.
        #expect(scene.heard(before: "/3/x").count <= 3)
        #expect(scene.heard(before: "").count == FlowScene.noisyCount)
    }

    @Test("A flow with few bytes is quiet while others are busy; a busy flow's new connection is not")
    func quietOnes() throws {
        let scene = try FlowScene()
        let quiet = try scene.peer(flow: 3)
        let judge = { (peer: FlowPeer) in
            scene.log.removeAll()
            peer.ask("judge")
            #expect(peer.isServed())
            return scene.log.all.last
        }
        #expect(judge(quiet) == "not quiet")
        scene.makeNoise()
        #expect(judge(quiet) == "quiet")
        #expect(judge(scene.noisy[0]) == "not quiet")
        #expect(judge(try scene.peer(flow: FlowScene.noisyFlow)) == "not quiet")
    }

    @Test("Busy connections get turns while others always have data, after at most sixteen of those")
    func busyGoOn() throws {
        let scene = try FlowScene()
        let others = try (0..<60).map { try scene.servedPeer(flow: UInt64(100 + $0)) }
        scene.makeNoise()
        scene.hold()
        scene.sendBursts()
        for other in others { other.ask("x") }
        for other in others { #expect(other.peer.isDelivered()) }
        scene.resume()
        for peer in others + scene.noisy { #expect(peer.isServed()) }
        let areOthers = scene.log.all.filter { $0 != "/2/hold" }.map { $0.hasSuffix("/x") }
        let runs = areOthers.split(separator: false)
        #expect(runs.map(\.count).reduce(0, +) == others.count)
        #expect(runs.count >= 4 && runs.allSatisfy { $0.count <= 16 })
        let last = try #require(areOthers.lastIndex(of: true))
        #expect(areOthers[..<last].count { !$0 } < 10 * FlowScene.noisyCount)
    }

    @Test("In a pause caused by busy connections 64 KiB of the others are read, and nothing of the busy ones")
    func pause() throws {
        let scene = try FlowScene()
        let others = try (3..<6).map { try scene.servedPeer(flow: $0) }
        scene.makeNoise()
        scene.order("pause")
        scene.sendBursts()
        others[0].ask("x", times: 10)
        #expect(others[0].isServed())
        for other in others[1...] {
            other.ask("x", times: 10)
            #expect(other.peer.isDelivered())
        }
        scene.loop.wake()
        for peer in others + scene.noisy { #expect(peer.isServed()) }
        #expect(scene.loop.busyConnectionCount == FlowScene.noisyCount)
        // The second one's requests may have been read in part.
        let order = scene.log.all.filter { $0 != "/4/x" }
        let expected = ["/2/pause"] + [String](repeating: "/3/x", count: 10) + ["woken"]
        #expect(Array(order.prefix(12)) == expected)
    }

    @Test("In a pause that no large share causes, no socket is read")
    func pauseOfAll() throws {
        let scene = try FlowScene()
        let other = try scene.servedPeer(flow: 3)
        scene.order("pause")
        other.ask("x")
        #expect(other.peer.isDelivered())
        scene.loop.wake()
        #expect(other.isServed())
        let order = scene.log.all
        #expect(try #require(order.firstIndex(of: "woken")) < #require(order.firstIndex(of: "/3/x")))
    }

    @Test("A flow that became quiet is treated like the others again, even without new bytes")
    func quietAgain() throws {
        let scene = try FlowScene()
        scene.makeNoise()
        #expect(scene.loop.busyConnectionCount == FlowScene.noisyCount)
        for second in 1...5 {
            scene.faults.advance(milliseconds: 1000)
            scene.loop.wake()
            scene.log.wait(for: "second", times: second)
        }
        #expect(scene.loop.busyConnectionCount == 0)
        for peer in scene.noisy { peer.ask("x") }
        for peer in scene.noisy { #expect(peer.isServed()) }
        #expect(scene.loop.busyConnectionCount == 0)
    }

    @Test("Busy connections that end before their turn are cleaned up")
    func ended() throws {
        let scene = try FlowScene()
        let quiet = try scene.servedPeer(flow: 3)
        scene.makeNoise()
        scene.hold()
        scene.sendBursts()
        quiet.ask("close")
        #expect(quiet.peer.isDelivered())
        scene.resume()
        #expect(quiet.isServed())
        for peer in scene.noisy { #expect(peer.peer.hasEnded()) }
        #expect(scene.loop.busyConnectionCount == 0)
        // They get the places of the closed connections.
        for number in 0..<FlowScene.noisyCount { _ = try scene.servedPeer(flow: UInt64(100 + number)) }
        #expect(scene.heard(before: "").count <= 3)
    }

    @Test("A connection that cannot be watched as a busy one stays unchanged, and one that is watched twice is ended")
    func watchFails() throws {
        let scene = try FlowScene()
        let peer = scene.noisy[0]
        let quiet = try scene.servedPeer(flow: 3)
        peer.ask("first")
        #expect(peer.isServed())
        for other in scene.noisy[1...] { other.ask("noise", times: 25) }
        for other in scene.noisy[1...] { #expect(other.isServed()) }
        let busy = scene.loop.busyConnectionCount
        scene.faults.fail(.watch, number: 0, error: ENOMEM)
        peer.ask("x")
        #expect(peer.isServed())
        #expect(scene.faults.failureCount == 1 && scene.loop.busyConnectionCount == busy)
        scene.faults.fail(.watch, number: 1, error: ENOMEM)
        peer.ask("x")
        #expect(peer.peer.hasEnded())
        #expect(scene.faults.failureCount == 1 && scene.loop.busyConnectionCount == busy)
        scene.faults.reset()
        quiet.ask("x")
        #expect(quiet.isServed())
    }
}

/// The paths of requests in order of arrival. The loop's thread writes it, and the test's thread waits.
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

    /// Waits until a path was appended this many times.
    func wait(for path: String, times: Int = 1) {
        self.monitor.withLock {
            while self.paths.count(where: { $0 == path }) < times { self.monitor.wait() }
        }
    }
}

/// Records and answers requests for `/FLOW/NAME`, and performs the orders in some names.
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
    func secondPassed(_: Int64) { self.log.append("second") }
}

/// A client of a `FlowScene`, which waits for the answers to its requests.
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

    /// Sends a small request.
    func ask(_ name: String) {
        self.peer.send(ScriptedPeer.request("/\(self.flow)/\(name)", stream: self.stream()))
    }

    /// Sends requests of 4 KiB each.
    func ask(_ name: String, times: Int) {
        var bytes: [UInt8] = []
        for _ in 0..<times {
            let stream = self.stream()
            bytes += ScriptedPeer.request("/\(self.flow)/\(name)", stream: stream, ended: false)
            bytes += ScriptedPeer.frame(.data, flags: .endStream, stream: stream, Self.body)
        }
        self.peer.send(bytes)
    }

    /// Returns true if all its requests were answered.
    func isServed() -> Bool {
        defer { self.unanswered = [] }
        return self.unanswered.allSatisfy { self.peer.frame(type: .headers, stream: $0) != nil }
    }

    private func stream() -> Int {
        defer { self.nextStream += 2 }
        self.unanswered.append(self.nextStream)
        return self.nextStream
    }
}

/// A server of one loop, a noisy flow on twenty connections, and a connection that blocks the loop, so that requests
/// wait in the sockets until the test releases it.
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

    /// - Parameter tls: the TLS context; nil for cleartext.
    init(tls: TLSContext? = nil) throws {
        let (log, held, faults) = (self.log, self.held, self.faults)
        let listener = Listener(address: try .parse("127.0.0.1:0"), tls: tls)
        let server = try HTTPServer(listeners: [listener], loopCount: 1) { FlowHandler($0, log, held, faults) }
        self.server = server
        self.makeTLS = { tls == nil ? nil : TLSClient() }
        let (address, makeTLS) = (server.boundAddresses[0], self.makeTLS)
        try server.start()
        // From here on, time passes only when a test advances it.
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

    /// Returns a peer whose first request was answered.
    func servedPeer(flow: UInt64) throws -> FlowPeer {
        let peer = try self.peer(flow: flow)
        peer.ask("first")
        #expect(peer.isServed())
        return peer
    }

    /// Makes the noisy flow send 2 MiB while another one sends a few bytes.
    func makeNoise() {
        self.holder.ask("quiet")
        #expect(self.holder.isServed())
        for peer in self.noisy { peer.ask("noise", times: 25) }
        for peer in self.noisy { #expect(peer.isServed()) }
        for peer in self.noisy { peer.ask("noise") }
        for peer in self.noisy { #expect(peer.isServed()) }
        self.log.removeAll()
    }

    /// Blocks the loop until `resume`, once.
    func hold() {
        self.holder.ask("hold")
        self.log.wait(for: "/2/hold")
    }

    func resume() {
        self.held.open()
        #expect(self.holder.isServed())
    }

    /// Makes the holder's request perform the order in its name.
    func order(_ name: String) {
        self.holder.ask(name)
        #expect(self.holder.isServed())
    }

    /// Puts 40 KB into the socket of each noisy connection, named by its number.
    func sendBursts() {
        for (number, peer) in self.noisy.enumerated() { peer.ask("\(number)", times: 10) }
        for peer in self.noisy { #expect(peer.peer.isDelivered()) }
    }

    /// Returns the noisy connections that were read before a request.
    func heard(before path: String) -> Set<String> {
        Set(self.log.all.prefix { $0 != path }.filter { $0.hasPrefix("/\(Self.noisyFlow)/") })
    }
}

/// The shares of flows in the bytes that a loop receives.
@Suite("The shares of flows")
struct FlowSharesTests {
    private let noisy = FlowShares.Place(flow: 1)
    private let quiet = FlowShares.Place(flow: 2)

    @Test("A share is large above a 32nd of all bytes, and stays large down to a 64th")
    func parts() {
        var shares = FlowShares()
        shares.received(31 * 320_000, at: self.noisy)
        shares.received(320_000, at: self.quiet)
        #expect(shares.isLarge(self.noisy, wasLarge: false))
        #expect(!shares.isLarge(self.quiet, wasLarge: false))
        #expect(shares.isLarge(self.quiet, wasLarge: true))
        shares.received(33, at: self.quiet)
        #expect(shares.isLarge(self.quiet, wasLarge: false))
        shares.received(32 * 320_100, at: self.noisy)
        #expect(!shares.isLarge(self.quiet, wasLarge: true))
    }

    @Test("A share of few bytes is never large")
    func little() {
        var shares = FlowShares()
        shares.received(1, at: self.quiet)
        shares.received(FlowShares.bytesMin - 2, at: self.noisy)
        #expect(!shares.isLarge(self.noisy, wasLarge: true))
        shares.received(1, at: self.noisy)
        #expect(shares.isLarge(self.noisy, wasLarge: false))
    }

    @Test("A single flow delays no other, and a flow without bytes does not wait")
    func alone() {
        var shares = FlowShares()
        shares.received(100 * FlowShares.bytesMin, at: self.noisy)
        #expect(!shares.isLarge(self.noisy, wasLarge: true))
        shares.received(0, at: self.quiet)
        #expect(!shares.isLarge(self.noisy, wasLarge: true))
        shares.received(1, at: self.quiet)
        #expect(shares.isLarge(self.noisy, wasLarge: false))
        #expect(!shares.isLarge(FlowShares.Place(flow: 3), wasLarge: true))
    }

    @Test("Bytes count half a second later: a flow that became quiet or single is released")
    func seconds() {
        var shares = FlowShares()
        shares.received(64 * FlowShares.bytesMin, at: self.noisy)
        shares.received(100, at: self.quiet)
        for _ in 0..<6 {
            #expect(shares.isLarge(self.noisy, wasLarge: true))
            shares.secondPassed()
        }
        // The quiet flow has one byte left of a hundred.
        #expect(shares.isLarge(self.noisy, wasLarge: true))
        shares.secondPassed()
        #expect(!shares.isLarge(self.noisy, wasLarge: true))
        shares.received(2 * FlowShares.bytesMin, at: self.noisy)
        #expect(!shares.isLarge(self.noisy, wasLarge: true))
        shares.received(100 * FlowShares.bytesMin, at: self.quiet)
        shares.secondPassed()
        #expect(shares.isLarge(self.quiet, wasLarge: false))
        #expect(!shares.isLarge(self.noisy, wasLarge: false))
    }

    @Test("Flows have places by all bits of a number of that many, and small numbers have different ones")
    func places() {
        let count = UInt64(FlowShares.placeCount)
        #expect(Set((0..<count).map { FlowShares.Place(flow: $0) }).count == FlowShares.placeCount)
        #expect(FlowShares.Place(flow: count + 7) == FlowShares.Place(flow: 7))
        #expect(FlowShares.Place(flow: .max) == FlowShares.Place(flow: count - 1))
    }
}
