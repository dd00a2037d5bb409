import Foundation
import Glibc
import HTTPTransport
import Platform
import Testing
import WakeGateTestKit
import Wire

/// Every call of the transport to the system and to OpenSSL fails at every place.
@Suite("The transport with failures in each step", .timeLimit(.minutes(15)))
struct TransportFaultTests {
    private typealias Step = SystemFaults.Step
    private typealias Language = FaultScene.Language

    /// An error of a step, and the number of consecutive times it occurs.
    private struct Fault {
        let step: Step
        let error: Int32
        var times = 1
    }

    private static let always = 1_000_000

    private static func faults(_ step: Step, once: [Int32], lasting: [Int32] = [], times: Int = always) -> [Fault] {
        once.map { Fault(step: step, error: $0) } + lasting.map { Fault(step: step, error: $0, times: times) }
    }

    /// The errors of a loop's steps. An exhausted resource becomes available again after a while.
    private static let all =
        faults(
            .accept,
            once: [EAGAIN, EINTR, ECONNABORTED, EPROTO, ENETDOWN],
            lasting: [EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM],
            times: 2
        )
        + faults(.receive, once: [EAGAIN, EINTR, SystemFaults.oneByte], lasting: [ECONNRESET, ETIMEDOUT, ENOMEM])
        + faults(.receive, once: [ENOBUFS], lasting: [SystemFaults.oneByte])
        + faults(.send, once: [EAGAIN, EINTR, SystemFaults.oneByte, ENOBUFS], lasting: [EPIPE, ECONNRESET, ENOMEM])
        + faults(.send, once: [], lasting: [EAGAIN, SystemFaults.oneByte], times: 40)
        + faults(.watch, once: [ENOMEM, ENOSPC], lasting: [ENOMEM])
        + faults(.wait, once: [EINTR], lasting: [EINTR], times: 5)
        + faults(.close, once: [EINTR, EIO], lasting: [EIO])
        + faults(.shutdown, once: [ENOTCONN]) + faults(.option, once: [EINVAL])
        + faults(.clear, once: [EAGAIN], lasting: [EAGAIN], times: 3)

    private static let ofTLS: [Fault] = [Step.tlsBegin, .tlsHandshake, .tlsRead, .tlsWrite].flatMap {
        faults($0, once: [ENOMEM])
    }

    @Test(
        "If any step fails, once or permanently, each request is answered or closed once, and the loop keeps serving",
        arguments: FaultScene.Language.allCases,
        [0, 700]
    )
    func everyStep(language: FaultScene.Language, bytesAtOnce: Int) throws {
        let tls = try FaultScene.makeContext()
        let faults = Self.all + (language == .http2OverTLS ? Self.ofTLS : [])
        try self.expectEveryStepIsTaken(language, tls, bytesAtOnce, Set(faults.map(\.step)))
        for fault in faults {
            var number = 0
            while try self.run(language, tls, bytesAtOnce, fault, number) { number += 1 }
            #expect(number > 0, "\(fault.step) was never failed")
        }
    }

    /// Checks that the conversation without a fault uses every step that can fail.
    private func expectEveryStepIsTaken(
        _ language: FaultScene.Language,
        _ tls: TLSContext,
        _ bytesAtOnce: Int,
        _ steps: Set<SystemFaults.Step>
    ) throws {
        let scene = try FaultScene(language, tls: tls)
        scene.faults.limitSocketTransfers(bytes: bytesAtOnce)
        scene.faults.reset()
        #expect(scene.talk(try scene.peer()))
        #expect(scene.ledger.count == (language == .http1 ? 6 : 7))
        for step in steps where step != .close {
            #expect(scene.faults.calls(step) > 0, "\(step)")
        }
        #expect(try scene.verdict() == [])
    }

    /// Performs one run in which a call fails, and checks its result.
    ///
    /// - Returns: true if the call was reached.
    private func run(
        _ language: FaultScene.Language,
        _ tls: TLSContext,
        _ bytesAtOnce: Int,
        _ fault: Fault,
        _ number: Int
    ) throws -> Bool {
        let scene = try FaultScene(language, tls: tls)
        scene.faults.limitSocketTransfers(bytes: bytesAtOnce)
        scene.faults.fail(fault.step, number: number, error: fault.error, times: fault.times)
        do {
            let peer = try scene.peer()
            _ = scene.talk(peer)
        }
        let violations = try scene.verdict()
        #expect(violations == [], "\(language) \(fault.step) \(number) fails with \(fault.error), \(fault.times) times")
        try #require(number < 2000, "\(fault.step) has no end")
        return scene.faultsMet > 0
    }

    @Test("A listener that cannot be watched again at first is watched again a second later", arguments: [1, 2, 3])
    func listenerIsWatchedAgain(times: Int) throws {
        let scene = try FaultScene(.http2, tls: nil)
        scene.faults.fail(.accept, number: 0, error: EMFILE)
        let peer = try scene.peer()
        let tally = scene.server.tallies[0]
        while tally.times(.openFiles) == 0 { sched_yield() }
        scene.faults.fail(.watch, number: 0, error: ENOMEM, times: times)
        #expect(scene.talk(peer))
        #expect(scene.faults.failureCount == times)
        #expect(try scene.verdict() == [])
    }

    @Test(
        "A listener rests for a second after an error of accept that may persist, and not after another",
        arguments: [(EMFILE, 1), (EPERM, 1), (EHOSTUNREACH, 0)]
    )
    func acceptRests(error: Int32, rests: Int) throws {
        let scene = try FaultScene(.http2, tls: nil)
        scene.faults.fail(.accept, number: 0, error: error)
        #expect(scene.talk(try scene.peer()))
        #expect(scene.server.tallies[0].times(.openFiles) == rests)
        #expect(try scene.verdict() == [])
    }

    @Test("A server that cannot start reports it and leaves nothing open, and one that can serves")
    func start() throws {
        for step in [SystemFaults.Step.open, .bind, .listen, .option, .watch, .thread] {
            for error in [EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN] {
                var number = 0
                while try self.startMeets(step, error, number) { number += 1 }
                #expect(number > 1, "\(step)")
            }
        }
    }

    private func startMeets(_ step: SystemFaults.Step, _ error: Int32, _ number: Int) throws -> Bool {
        let faults = SystemFaults()
        faults.fail(step, number: number, error: error)
        do {
            faults.join()
            defer { SystemFaults.leave() }
            let listener = Listener(address: try .parse("127.0.0.1:0"), tls: nil)
            let log = EventLog()
            let server = try HTTPServer(listeners: [listener, listener], loopCount: 2) { ScriptedHandler($0, log) }
            defer { server.stop() }
            try server.start()
            SystemFaults.leave()
            for address in server.boundAddresses {
                TestServer.expectServed(try ScriptedPeer(address), begins: true)
            }
            faults.join()
        } catch let error as TransportError {
            #expect(!error.message.isEmpty && faults.failureCount > 0, "\(error)")
        }
        #expect(faults.openDescriptors == 0, "\(step) \(number) fails with \(error)")
        #expect(faults.invalidCloseCount == 0, "\(step) \(number) fails with \(error)")
        return faults.failureCount > 0
    }
}

/// A server whose only loop meets faults, and the actions of a client.
final class FaultScene {
    enum Language: CaseIterable {
        case http2, http2OverTLS, http1
    }

    static let bigBytes = 24_000

    let faults = SystemFaults()
    let ledger = RequestLedger()
    let server: HTTPServer
    private let language: Language
    /// The number of calls that had failed when the faults ended.
    private(set) var faultsMet = 0

    init(_ language: Language, tls: TLSContext?) throws {
        let (faults, ledger) = (self.faults, self.ledger)
        self.language = language
        self.server = try HTTPServer(
            listeners: [Listener(address: try .parse("127.0.0.1:0"), tls: language == .http2OverTLS ? tls : nil)],
            loopCount: 1
        ) { LedgerHandler($0, ledger, faults) }
        try self.server.start()
        self.server.loops[0].wake()
        self.ledger.waitForJoin()
    }

    deinit { self.server.stop() }

    /// Returns a context that every client of a test accepts.
    static func makeContext() throws -> TLSContext {
        let folder = try TemporaryFolder()
        try DevelopmentCertificates.make(in: folder.path)
        let (certificate, key) = ("\(folder.path)/server.pem", "\(folder.path)/server.key")
        return try TLSContext(certificateChainFile: certificate, privateKeyFile: key)
    }

    /// Passes a second on the loop's clock.
    func passTime() {
        self.faults.advance(milliseconds: 1000)
        self.server.loops[0].wake()
    }

    /// Returns a client. If nothing arrives for a while, it passes time, as long as that may change anything. The next
    /// second passes once the loop has noticed the last one, or cannot be woken. On a busy machine a client must not
    /// time out because its server had no turn.
    func peer() throws -> ScriptedPeer {
        var (seconds, quiet, seen) = (0, 0, -1)
        let tls = self.language == .http2OverTLS ? TLSClient() : nil
        return try ScriptedPeer(self.server.boundAddresses[0], tls: tls) { [unowned self] in
            quiet += 1
            let wakes = self.ledger.wakes
            guard wakes > seen || quiet >= Self.quietMax else { return true }
            (quiet, seen) = (0, wakes)
            seconds += 1
            self.passTime()
            return seconds < 400
        }
    }

    /// The number of checks without a turn of the loop after which the loop is assumed to be blocked.
    private static let quietMax = 40

    // MARK: What the client does

    /// Performs the client's whole conversation with the server, or until the connection has ended.
    ///
    /// - Returns: true if everything was sent and answered correctly.
    func talk(_ peer: ScriptedPeer) -> Bool {
        self.language == .http1 ? self.talkHTTP1(peer) : self.talkHTTP2(peer)
    }

    private func talkHTTP2(_ peer: ScriptedPeer) -> Bool {
        peer.beginHTTP2()
        guard peer.frame(type: .settings) != nil, self.echo(peer, stream: 1) else { return false }
        for (stream, path) in [(3, "/stream"), (5, "/wait"), (7, "/hold")] {
            peer.send(ScriptedPeer.request(path, stream: stream))
        }
        let bodies = peer.bodies(streams: [3, 5])
        guard bodies == [3: [UInt8]("first last".utf8), 5: [UInt8]("waited".utf8)] else { return false }
        peer.send(ScriptedPeer.frame(.reset, stream: 7, ScriptedPeer.bytes(.cancel)))
        peer.send(ScriptedPeer.request("/big", stream: 9))
        guard peer.body(stream: 9)?.count == Self.bigBytes else { return false }
        for (stream, path) in [(11, "/pause"), (13, "/last")] {
            peer.send(ScriptedPeer.request(path, stream: stream))
            guard peer.body(stream: stream) == [] else { return false }
        }
        return peer.hasEnded()
    }

    private func echo(_ peer: ScriptedPeer, stream: Int) -> Bool {
        peer.send(ScriptedPeer.request("/echo", stream: stream, ended: false))
        peer.send(ScriptedPeer.frame(.data, flags: .endStream, stream: stream, [UInt8]("alive".utf8)))
        return peer.body(stream: stream) == [UInt8]("alive".utf8)
    }

    private func talkHTTP1(_ peer: ScriptedPeer) -> Bool {
        guard self.echoHTTP1(peer) else { return false }
        for (path, end) in [("/stream", "\r\n0\r\n\r\n"), ("/wait", "waited")] {
            peer.send("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n")
            guard peer.text(through: end)?.hasPrefix("HTTP/1.1 200 ") == true else { return false }
        }
        peer.send("GET /big HTTP/1.1\r\nHost: h\r\n\r\n")
        guard peer.text(through: "\r\n\r\n" + String(repeating: "a", count: Self.bigBytes)) != nil else { return false }
        for path in ["/pause", "/last"] {
            peer.send("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n")
            guard peer.text(through: "\r\n\r\n")?.hasPrefix("HTTP/1.1 200 ") == true else { return false }
        }
        return peer.hasEnded()
    }

    private func echoHTTP1(_ peer: ScriptedPeer) -> Bool {
        peer.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n")
        peer.send("alive")
        return peer.text(through: "\r\n\r\nalive")?.hasPrefix("HTTP/1.1 200 ") == true
    }

    /// Returns true if a new client is served.
    private func serves() throws -> Bool {
        let peer = try self.peer()
        if self.language == .http1 { return self.echoHTTP1(peer) }
        peer.beginHTTP2()
        return self.echo(peer, stream: 1)
    }

    // MARK: What must hold

    /// Ends the faults, and checks all conditions.
    ///
    /// - Returns: the violated ones.
    func verdict() throws -> [String] {
        var violations: [String] = []
        func expectNoConnection(_ when: String) {
            if !self.ledger.waitForNoConnection(passTime: self.passTime) { violations.append("a connection \(when)") }
            if self.server.connectionCounts != [0] { violations.append("a counted connection \(when)") }
            if self.faults.openDescriptors != 0 { violations.append("an open descriptor \(when)") }
        }
        // Connections end while the faults are active.
        expectNoConnection("after the client's end")
        self.faultsMet = self.faults.failureCount
        self.faults.reset()
        if try !self.serves() { violations.append("new connections are not served") }
        expectNoConnection("after that")
        self.server.stop()
        violations += self.ledger.faults
        if self.faults.invalidCloseCount != 0 { violations.append("a descriptor of another was closed") }
        return violations
    }
}

/// The end of every request that reached a handler and of every connection; violations are recorded. The loop's thread
/// writes it, and the test's thread waits.
final class RequestLedger: @unchecked Sendable {  // `monitor` guards it.
    private enum Account {
        case open
        case answered, closed
    }

    private let monitor = Monitor()
    private var accounts: [StreamID: Account] = [:]
    private var endedConnections: Set<ConnectionID> = []
    private var broken: [String] = []
    private var hasJoined = false
    private var connectionCount = 0
    private var requestCount = 0
    private var wakeCount = 0
    /// The order for the loop's thread at its next wakeup.
    private var order: (@Sendable (EventLoop) -> Void)?

    /// The number of wakeups of the loop.
    var wakes: Int { self.monitor.withLock { self.wakeCount } }

    // MARK: The loop's thread

    func joined() { self.change { self.hasJoined = true } }

    func turnEnded(connectionCount: Int) { self.change { self.connectionCount = connectionCount } }

    func woken(_ loop: EventLoop) {
        self.monitor.withLock {
            defer { self.order = nil }
            return self.order
        }?(loop)
        self.change { self.wakeCount += 1 }
    }

    func received(_ stream: StreamID) {
        self.change {
            self.requestCount += 1
            if self.accounts.updateValue(.open, forKey: stream) != nil { self.broken.append("\(stream) came twice") }
            if self.endedConnections.contains(stream.connection) { self.broken.append("\(stream) came behind the end") }
        }
    }

    /// - Parameter isTaken: the result of the transport for the answer.
    func answered(_ stream: StreamID, isTaken: Bool) {
        self.change {
            switch (self.accounts[stream], isTaken) {
            case (.open, true): self.accounts[stream] = .answered
            case (.closed, false): ()
            case (let account, _): self.broken.append("\(stream), \(account as Any), was answered: \(isTaken)")
            }
        }
    }

    func closed(_ stream: StreamID) {
        self.change {
            let account = self.accounts.updateValue(.closed, forKey: stream)
            if case .open? = account { return }
            self.broken.append("\(stream), \(account as Any), was closed")
        }
    }

    func connectionClosed(_ connection: ConnectionID) {
        self.change {
            if !self.endedConnections.insert(connection).inserted { self.broken.append("\(connection) ended twice") }
            for (stream, account) in self.accounts where stream.connection == connection && account == .open {
                self.broken.append("\(stream) was open when its connection ended")
            }
        }
    }

    private func change(_ body: () -> Void) {
        self.monitor.withLock(body)
        self.monitor.broadcast()
    }

    // MARK: The test's thread

    /// The violations, including open requests.
    var faults: [String] {
        self.monitor.withLock {
            self.broken + self.accounts.filter { $0.value == .open }.map { "\($0.key) was never answered nor closed" }
        }
    }

    /// The number of requests.
    var count: Int { self.monitor.withLock { self.requestCount } }

    /// Runs a function on the loop's thread, and waits until it has returned, and until earlier bytes were read and
    /// written.
    func settle(_ loop: EventLoop, order: (@Sendable (EventLoop) -> Void)? = nil) {
        self.monitor.withLock { self.order = order }
        // A wakeup may be reported before the sockets of its turn, and a turn writes at its end.
        for _ in 0..<3 {
            let count = self.monitor.withLock { self.wakeCount }
            loop.wake()
            self.monitor.withLock { while self.wakeCount == count { self.monitor.wait() } }
        }
    }

    func waitForJoin() { self.monitor.withLock { while !self.hasJoined { self.monitor.wait() } } }

    /// Waits until every connection has ended, and passes time in the meantime.
    ///
    /// - Returns: false if one is left after hours.
    func waitForNoConnection(passTime: () -> Void) -> Bool {
        for _ in 0..<400 {
            let isIdle = self.monitor.withLock {
                if self.connectionCount == 0 { return true }
                _ = self.monitor.wait(until: SystemClock.monotonic + 50)
                return self.connectionCount == 0
            }
            if isIdle { return true }
            passTime()
        }
        return false
    }
}

/// Answers by path, and records requests and answers.
final class LedgerHandler: RequestHandler {
    private unowned let loop: EventLoop
    private let ledger: RequestLedger
    private let faults: SystemFaults
    private let response = Response()
    private var hasJoined = false
    private var waiting: [StreamID] = []
    private var streaming: [StreamID] = []

    init(_ loop: EventLoop, _ ledger: RequestLedger, _ faults: SystemFaults) {
        self.loop = loop
        self.ledger = ledger
        self.faults = faults
    }

    func bodyBytesMax(for _: Request) -> Int { 4096 }

    func requestReceived(_ request: Request) {
        let stream = request.stream
        self.ledger.received(stream)
        self.response.begin(status: 200)
        if request.path == "/wait" {
            self.waiting.append(stream)
            self.loop.alarmAt = self.loop.now
        } else if request.path == "/stream" || request.path == "/hold" {
            guard self.loop.beginStreaming(stream, self.response) else {
                return self.ledger.answered(stream, isTaken: false)
            }
            guard request.path == "/stream" else { return }
            _ = self.loop.write(stream, ByteView("first "))
            self.streaming.append(stream)
            self.loop.alarmAt = self.loop.now
        } else if request.path == "/big" {
            let bytes = [UInt8](repeating: 0x61, count: FaultScene.bigBytes)
            bytes.withByteView {
                self.ledger.answered(stream, isTaken: self.loop.respond(stream, self.response, body: $0))
            }
        } else {
            if request.path == "/pause" { self.loop.isReadingPaused = true }
            if request.path == "/last" { self.loop.goAway(stream.connection, debugData: ByteView()) }
            self.ledger.answered(stream, isTaken: self.loop.respond(stream, self.response, body: request.body))
        }
    }

    func streamClosed(_ stream: StreamID) {
        self.waiting.removeAll { $0 == stream }
        self.streaming.removeAll { $0 == stream }
        self.ledger.closed(stream)
    }

    func connectionClosed(_ connection: ConnectionID) { self.ledger.connectionClosed(connection) }

    func turnEnded() {
        self.ledger.turnEnded(connectionCount: self.loop.connectionCount)
        if self.loop.isReadingPaused { self.loop.wake() }
    }

    func woken() {
        self.loop.isReadingPaused = false
        defer { self.ledger.woken(self.loop) }
        guard !self.hasJoined else { return }
        self.hasJoined = true
        self.faults.join()
        self.ledger.joined()
    }

    func alarmRang(_: Int64) {
        for stream in self.waiting {
            self.response.begin(status: 200)
            self.ledger.answered(stream, isTaken: self.loop.respond(stream, self.response, body: ByteView("waited")))
        }
        for stream in self.streaming {
            let isThere = self.loop.write(stream, ByteView("last")) != nil
            self.loop.finish(stream)
            self.ledger.answered(stream, isTaken: isThere)
        }
        (self.waiting, self.streaming) = ([], [])
    }
}
