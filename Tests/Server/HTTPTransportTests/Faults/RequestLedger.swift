import HTTPTransport
import Platform
import WakeGateTestKit
import Wire

/// What became of every request that reached a handler, and of every connection: a promise that was broken is noted.
/// The loop's thread writes it, and the test's waits.
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
    /// What the loop's thread is to do when it is woken.
    private var order: (@Sendable (EventLoop) -> Void)?

    /// How often the loop was woken.
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

    /// - Parameter isTaken: what the transport said to the answer.
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

    /// What was broken; what is still open too.
    var faults: [String] {
        self.monitor.withLock {
            self.broken + self.accounts.filter { $0.value == .open }.map { "\($0.key) was never answered nor closed" }
        }
    }

    /// How many requests there were.
    var count: Int { self.monitor.withLock { self.requestCount } }

    /// Has the loop do something on its thread, and waits until it has, and until what it had to read and to write
    /// before is read and written.
    func settle(_ loop: EventLoop, order: (@Sendable (EventLoop) -> Void)? = nil) {
        self.monitor.withLock { self.order = order }
        // A wake may be told before the sockets of its turn, and a turn writes behind all that.
        for _ in 0..<3 {
            let count = self.monitor.withLock { self.wakeCount }
            loop.wake()
            self.monitor.withLock { while self.wakeCount == count { self.monitor.wait() } }
        }
    }

    func waitForJoin() { self.monitor.withLock { while !self.hasJoined { self.monitor.wait() } } }

    /// Waits until there is no connection, and has time pass while there is one.
    ///
    /// - Returns: false when there is one after hours.
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

/// Answers by path, and keeps account.
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
    func streamDrained(_: StreamID) {}

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

    func secondPassed(_: Int64) {}

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
