internal import Platform
internal import Synchronization
package import Wire

/// The connections of one thread: waits, reads, calls the handler, writes.
///
/// `@unchecked Sendable`: other threads may only call `wake` and `requestStop`, which use atomics. Everything else
/// belongs to the loop's thread once `run` was called.
package final class EventLoop: @unchecked Sendable {
    /// The index in the server's list of loops.
    package let index: Int

    let server: ServerState
    private(set) var limits: TransportLimits
    let memory: LoopMemory
    let library: HTTP2Library
    /// The poll of all connections except the busy ones.
    let poll: Poll
    /// The poll of the busy connections and of `poll`.
    let busyPoll: Poll
    let pipe = TLSPipe()
    var handler: any RequestHandler = NoHandler()

    var connections: [Connection?] = []
    var generations: [UInt32] = []
    /// The time before which each connection needs no check, so that thousands of idle ones are not touched every
    /// second.
    var looksAt: [Int64] = []
    var freeIndices: [UInt32] = []
    var dirty: [Connection] = []
    var handshakes = HandshakeQueue()
    /// The memory for bytes from any socket, and for their decrypted form.
    let readBuffer: ReadBuffer
    let plaintextBuffer: ReadBuffer
    /// The bytes to write to a socket next.
    var produced = ByteBuffer()
    /// True for each listener whose new connections are watched for.
    var areListenersWatched: [Bool]
    /// True for each listener that had more connections than the last turn accepted.
    var areListenersCrowded: [Bool]
    /// The recent part of each flow in the received bytes.
    var shares = FlowShares()
    var turns = TurnOrder()

    /// Set by the handler while it cannot take more requests. The loop then reads no socket, but sends answers, and
    /// waits for `wake`. If there are busy connections, it still reads `TurnOrder.bytesPerPauseMax` bytes from the
    /// others.
    package var isReadingPaused = false

    /// The number of busy connections; any thread may read it.
    let busyConnections = ConnectionCount()

    /// The time at which to call `alarmRang` once, by the clock of `now`; `Int64.max` for never.
    package var alarmAt = Int64.max

    /// The monotonic clock at the start of this turn, in milliseconds.
    package var now: Int64 { self.memory.now }

    /// The number of open connections of this loop.
    package internal(set) var connectionCount = 0

    /// During `streamClosed`: true if the peer certainly did not read the whole response, because bytes remained
    /// unsent, or unread in the connection of a socket file.
    package internal(set) var endsUnread = false

    private let wakeEvent: Int32
    private let isWakePending = Atomic<Bool>(false)
    private let isStopRequested = Atomic<Bool>(false)
    private var nextSecond: Int64 = 0

    /// The bit of tokens that do not stand for a connection.
    static let specialToken: UInt64 = 1 << 63
    private static let wakeToken = EventLoop.specialToken | 1 << 32
    private static let listenerToken = EventLoop.specialToken | 2 << 32
    /// The token by which `busyPoll` reports `poll`.
    private static let pollToken = EventLoop.specialToken | 3 << 32

    init(index: Int, server: ServerState) throws(TransportError) {
        self.index = index
        self.server = server
        self.limits = server.limits
        self.areListenersWatched = server.listeners.map { _ in false }
        self.areListenersCrowded = self.areListenersWatched
        self.memory = LoopMemory(
            limits: server.limits,
            streams: StreamPool(streamsMax: server.limits.streamsPerLoopMax),
            requestBytes: server.requestBytes,
            now: SystemClock.monotonic
        )
        self.library = HTTP2Library(limits: server.limits)
        self.poll = try Poll()
        self.busyPoll = try Poll()
        self.wakeEvent = try System.makeEvent()
        self.readBuffer = ReadBuffer(bytes: server.limits.readBytesPerTurn)
        self.plaintextBuffer = ReadBuffer(bytes: server.limits.readBytesPerTurn)
        guard self.poll.add(self.wakeEvent, .readable, token: Self.wakeToken),
            self.busyPoll.add(self.poll, token: Self.pollToken)
        else {
            throw TransportError(.system, "epoll: a loop could not be woken: out of memory.")
        }
    }

    deinit { System.close(self.wakeEvent) }

    func setHandler(_ handler: any RequestHandler) {
        self.handler = handler
    }

    /// Sets the loop's limits, on its thread, when the handler is `woken`.
    ///
    /// These limits must not change, because they were announced to peers or memory of their size is allocated:
    /// `streamsPerConnectionMax`, `headerListBytesMax`, `frameBytesMax`, both windows, `continuationFramesMax` and
    /// `readBytesPerTurn`.
    package func setLimits(_ limits: TransportLimits) {
        self.limits = limits
        self.memory.limits = limits
        self.memory.streams.streamsMax = limits.streamsPerLoopMax
        // The times of the next checks were computed from the previous limits.
        for index in self.looksAt.indices { self.looksAt[index] = 0 }
    }

    // MARK: From other threads

    /// Makes the loop call the handler's `woken` soon. May be called from any thread. Only the first call before the
    /// loop wakes makes a system call.
    package func wake() {
        if !self.isWakePending.exchange(true, ordering: .acquiringAndReleasing) { System.signal(self.wakeEvent) }
    }

    /// Calls `body` and then the handler's `woken`, so that wakes within `body` need no system call.
    ///
    /// - Parameter body: called on the loop's thread.
    package func takingWakes(_ body: () -> Void) {
        self.isWakePending.store(true, ordering: .releasing)
        body()
        // Cleared before the handler runs: a wake during its call causes another turn.
        self.isWakePending.store(false, ordering: .releasing)
        self.handler.woken()
    }

    func requestStop() {
        self.isStopRequested.store(true, ordering: .releasing)
        System.signal(self.wakeEvent)
    }

    // MARK: The loop

    /// Serves connections until `requestStop`; the body of the loop's thread.
    func run() {
        self.watchListeners()
        self.memory.now = SystemClock.monotonic
        self.nextSecond = self.memory.now + 1000
        while !self.isStopRequested.load(ordering: .acquiring) {
            self.serveSockets()
            self.timePassed()
            self.endTurn()
        }
        self.closeAll()
    }

    /// Waits for events, and reads.
    ///
    /// Connections that send little do not wait for those that send much. While both `poll` and `busyPoll` have events,
    /// turns alternate: one reads all ready connections that are not busy, the next reads 16 KiB of the busy ones.
    /// Events of `busyPoll` that are left are handled in the next such turn. If no connection is busy, all are served
    /// in order of arrival, and `busyPoll` costs nothing.
    private func serveSockets() {
        guard !self.isReadingPaused else { return self.serveWhilePaused() }
        self.turns.pauseEndsAt = nil
        guard self.busyConnectionCount > 0 else {
            return self.serveOthers(waiting: self.waitMilliseconds)
        }
        if !self.turns.wasOfOthers, self.haveOthersSomething {
            self.serveOthers(waiting: 0)
        } else {
            self.serveBusy()
        }
    }

    /// True if a connection that is not busy, a listener or a wake has an event.
    private var haveOthersSomething: Bool {
        if !self.poll.hasEvents { self.poll.wait(milliseconds: 0) }
        return self.poll.hasEvents
    }

    /// Serves all connections except the busy ones.
    ///
    /// - Parameter milliseconds: the longest wait; -1 for no limit.
    private func serveOthers(waiting milliseconds: Int32) {
        self.turns.wasOfOthers = true
        if !self.poll.hasEvents { self.poll.wait(milliseconds: milliseconds) }
        self.memory.now = SystemClock.monotonic
        if !self.isReadingPaused { self.acceptCrowds() }
        while let event = self.poll.next() {
            self.dispatch(event.readiness, event.token)
            if let end = self.turns.pauseEndsAt, self.turns.bytesRead >= end { return }
        }
    }

    /// Serves some busy connections, at least one if any is ready.
    private func serveBusy() {
        self.turns.wasOfOthers = false
        // Pending events of `poll` may not be reported again, so this must not wait for `busyPoll`.
        let wait = self.poll.hasEvents ? 0 : self.waitMilliseconds
        if !self.busyPoll.hasEvents { self.busyPoll.wait(milliseconds: wait) }
        self.memory.now = SystemClock.monotonic
        self.acceptCrowds()
        let end = self.turns.bytesRead + TurnOrder.busyBytesPerTurnMax
        while self.turns.bytesRead < end, let event = self.busyPoll.next() {
            // The next turn serves `poll`.
            guard event.token != Self.pollToken else { continue }
            self.dispatch(event.readiness, event.token)
        }
    }

    /// Serves a loop whose handler has paused reading. If busy connections caused that, the others may still send some
    /// bytes.
    private func serveWhilePaused() {
        let end = self.turns.pauseEndsAt ?? self.turns.bytesRead + TurnOrder.bytesPerPauseMax
        self.turns.pauseEndsAt = end
        if self.busyConnectionCount > 0, self.turns.bytesRead < end {
            self.serveOthers(waiting: self.millisecondsToWait)
        } else {
            self.waitForWake()
        }
    }

    /// Waits for a wake without reading any socket.
    private func waitForWake() {
        System.wait(self.wakeEvent, milliseconds: self.millisecondsToWait)
        self.memory.now = SystemClock.monotonic
        self.dispatch(.readable, Self.wakeToken)
    }

    private var waitMilliseconds: Int32 {
        if !self.dirty.isEmpty || self.areListenersCrowded.contains(true) { return 0 }
        if self.connectionCount == 0 && self.alarmAt == .max && !self.areListenersWatched.contains(false) { return -1 }
        return self.millisecondsToWait
    }

    private var millisecondsToWait: Int32 {
        Int32(clamping: max(0, min(self.nextSecond, self.alarmAt) - self.memory.now))
    }

    private func dispatch(_ readiness: Poll.Readiness, _ token: UInt64) {
        if token & Self.specialToken == 0 {
            let id = ConnectionID(index: UInt32(truncatingIfNeeded: token), generation: UInt32(token >> 32))
            guard let connection = self.connection(id) else { return }
            // The watched events may have changed since the report.
            let watched = readiness.intersection(connection.interest.union(.broken))
            if !watched.isEmpty { self.ready(connection, watched) }
            return
        }
        switch token & ~UInt64(UInt32.max) {
        case Self.wakeToken:
            System.clear(self.wakeEvent)
            // Cleared before the handler runs: a wake during its call causes another turn.
            if self.isWakePending.exchange(false, ordering: .acquiringAndReleasing) { self.handler.woken() }
        case _:
            self.accept(listener: Int(UInt32(truncatingIfNeeded: token)))
        }
    }

    /// Tells the handler that the turn ends, and writes; repeats both if writing notified the handler.
    private func endTurn() {
        repeat {
            self.memory.wasHandlerNotified = false
            self.handler.turnEnded()
            self.flushDirty()
        } while self.memory.wasHandlerNotified
    }

    private func timePassed() {
        if self.memory.now >= self.nextSecond { self.secondPassed() }
        guard self.memory.now >= self.alarmAt else { return }
        self.alarmAt = .max
        self.handler.alarmRang(self.memory.now)
    }

    private func secondPassed() {
        let now = self.memory.now
        self.memory.wallSeconds = SystemClock.wall / 1000
        self.nextSecond = now + 1000
        self.shares.secondPassed()
        self.releaseQuiet()
        self.watchListeners()
        for index in self.looksAt.indices where self.looksAt[index] <= now {
            if let connection = self.connections[index] { self.secondPassed(connection) }
        }
        if self.connectionCount > 0 { self.handler.secondPassed(now) }
    }

    private func closeAll() {
        for index in self.areListenersWatched.indices { self.unwatchListener(index) }
        self.handler.loopEnds()
        self.flushDirty()
        for connection in self.connections {
            if let connection { self.destroy(connection) }
        }
        self.handler.turnEnded()
    }

    // MARK: Listeners

    /// Watches the listeners that are not watched; one that fails for lack of memory is tried again the next second.
    func watchListeners() {
        for (index, listener) in self.server.listeners.enumerated() where !self.areListenersWatched[index] {
            let token = Self.listenerToken | UInt64(index)
            self.areListenersWatched[index] =
                self.poll.add(listener.descriptor, [.readable, .exclusive], token: token)
        }
    }

    func unwatchListener(_ index: Int) {
        guard self.areListenersWatched[index] else { return }
        self.areListenersCrowded[index] = false
        self.areListenersWatched[index] = !self.poll.remove(self.server.listeners[index].descriptor)
    }
}

/// A placeholder until the server has created the loop's handler.
private final class NoHandler: RequestHandler {
    func bodyBytesMax(for _: Request) -> Int { 0 }
    func requestReceived(_: Request) {}
    func streamClosed(_: StreamID) {}
    func connectionClosed(_: ConnectionID) {}
    func streamDrained(_: StreamID) {}
    func turnEnded() {}
    func woken() {}
    func secondPassed(_: Int64) {}
    func alarmRang(_: Int64) {}
}

/// The calls that the handler may make, on the loop's thread.
extension EventLoop {
    /// Answers a waiting stream with a head and, unless it is nil or empty, a body, which is copied.
    ///
    /// - Returns: false if the stream is gone or has been answered.
    @discardableResult
    package func respond(_ stream: StreamID, _ response: Response, body: ByteView? = nil) -> Bool {
        guard let connection = self.connection(stream.connection) else { return false }
        if let session = connection.http2 {
            self.markDirty(connection)
            let isTaken = session.respond(stream.number, response, body: body)
            if body != nil { self.endIfTooMuchIsQueued(connection, session.queuedBytes) }
            return isTaken
        }
        guard let session = connection.http1 else { return false }
        self.markDirty(connection)
        let isTaken = session.respond(stream.number, response, body: body)
        if body != nil { self.endIfTooMuchIsQueued(connection, session.queuedBytes) }
        return isTaken
    }

    /// Answers a waiting stream with a head that is sent at once; `write` and `finish` follow.
    ///
    /// - Returns: false if the stream is gone or has been answered.
    package func beginStreaming(_ stream: StreamID, _ response: Response) -> Bool {
        guard let connection = self.connection(stream.connection) else { return false }
        if let session = connection.http2 {
            self.markDirty(connection)
            return session.beginStreaming(stream.number, response)
        }
        self.markDirty(connection)
        return connection.http1?.beginStreaming(stream.number, response) ?? false
    }

    /// Queues bytes on a streaming response.
    ///
    /// - Returns: the number of queued bytes of the stream, including these; nil if it is gone or finished.
    package func write(_ stream: StreamID, _ bytes: ByteView) -> Int? {
        guard let connection = self.connection(stream.connection) else { return nil }
        if let session = connection.http2 {
            self.markDirty(connection)
            let queued = session.write(stream.number, bytes)
            self.endIfTooMuchIsQueued(connection, session.queuedBytes)
            return queued
        }
        self.markDirty(connection)
        guard let queued = connection.http1?.write(stream.number, bytes) else { return nil }
        self.endIfTooMuchIsQueued(connection, queued)
        return queued
    }

    /// Ends the connection of a peer that does not read its answers, at the end of the turn.
    private func endIfTooMuchIsQueued(_ connection: Connection, _ bytes: Int) {
        guard bytes > self.limits.queuedBytesPerConnectionMax, !connection.isDoomed else { return }
        self.memory.tally.met(.queuedBytesPerConnectionMax)
        self.close(connection.id)
    }

    /// Ends a streaming response after the bytes written so far.
    package func finish(_ stream: StreamID) {
        guard let connection = self.connection(stream.connection) else { return }
        if let session = connection.http2 {
            session.finish(stream.number)
        } else {
            connection.http1?.finish(stream.number)
        }
        self.markDirty(connection)
    }

    /// Sends a PING every `everySeconds`, or none if nil. An unanswered PING ends the connection. Has no effect with
    /// HTTP/1.1.
    package func setPing(_ connection: ConnectionID, everySeconds: Int?) {
        guard let connection = self.connection(connection), let session = connection.http2 else { return }
        session.setPing(everySeconds: everySeconds)
        self.looksAt[Int(connection.id.index)] = 0
    }

    /// Accepts no further request, treats open streams as `inFlight` says, then closes. `debugData` and `code` are sent
    /// in HTTP/2's GOAWAY.
    ///
    /// - Returns: the last stream that the peer may consider accepted; nil with HTTP/1.1 or if the connection is gone.
    @discardableResult
    package func goAway(
        _ connection: ConnectionID,
        debugData: ByteView,
        code: HTTP2ErrorCode = .noError,
        inFlight: StreamsInFlight = .finished
    ) -> Int32? {
        guard let connection = self.connection(connection) else { return nil }
        connection.isGoingAway = true
        self.markDirty(connection)
        if let session = connection.http2 {
            return session.goAway(debugData: debugData, code: code, inFlight: inFlight)
        }
        if let http1 = connection.http1, [.finished, .answeredFirst, .announcedFirst].contains(inFlight) {
            http1.closeAfterAnswer()
        } else {
            connection.isDoomed = true
        }
        return nil
    }

    /// Announces another number of streams that the peer may have open at once. A lower number does not affect open
    /// streams. It is enforced once the peer has acknowledged it; streams beyond it are then refused. Has no effect
    /// with HTTP/1.1.
    ///
    /// - `limit`: clamped to the range from 0 to `TransportLimits.streamsPerConnectionMax`.
    /// - Returns: false if the connection is gone, or its peer acknowledges nothing.
    @discardableResult
    package func setStreamLimit(_ connection: ConnectionID, to limit: Int) -> Bool {
        guard let connection = self.connection(connection), let session = connection.http2 else { return false }
        self.markDirty(connection)
        return session.setStreamLimit(min(max(0, limit), self.limits.streamsPerConnectionMax))
    }

    /// Announces another window for every stream of a connection, including open ones: the number of bytes its peer may
    /// send on one before it waits for a window update. Has no effect with HTTP/1.1.
    ///
    /// - `bytes`: less than half of `TransportLimits.streamWindowBytes`; nil for all of it, which lets waiting peers
    ///   continue.
    /// - Returns: false if the connection is gone, or its peer acknowledges nothing.
    @discardableResult
    package func setStreamWindow(_ connection: ConnectionID, to bytes: Int?) -> Bool {
        guard let connection = self.connection(connection), let session = connection.http2 else { return false }
        self.markDirty(connection)
        return session.setStreamWindow(bytes)
    }

    /// Resets a stream that is not completely answered; with HTTP/1.1 this ends the connection.
    package func reset(_ stream: StreamID, code: HTTP2ErrorCode) {
        guard let connection = self.connection(stream.connection) else { return }
        if let session = connection.http2 {
            session.reset(stream.number, code: code)
        } else {
            connection.isDoomed = true
        }
        self.markDirty(connection)
    }

    /// Ends a connection at the end of this turn and closes its streams.
    package func close(_ connection: ConnectionID) {
        guard let connection = self.connection(connection) else { return }
        connection.isDoomed = true
        self.markDirty(connection)
    }

    /// Returns the client's network; nil if the connection is gone or uses a socket file.
    package func network(of connection: ConnectionID) -> ClientNetwork? { self.connection(connection)?.network }

    /// True if the peer of a connection to a socket file has read all that was written to it.
    package func hasBeenRead(_ connection: ConnectionID) -> Bool {
        guard let connection = self.connection(connection), connection.network == nil else { return false }
        let queued = connection.http2?.queuedBytes ?? connection.http1?.queuedBytes ?? 0
        return queued == 0 && connection.output.isEmpty && System.hasBeenRead(connection.descriptor)
    }

    /// Returns the user whose process connected to a socket file; nil if the connection is gone or uses a port.
    package func user(of connection: ConnectionID) -> UInt32? {
        guard let connection = self.connection(connection), connection.network == nil else { return nil }
        return System.peerUser(connection.descriptor)
    }

    /// Calls `body` with every connection that has spoken HTTP.
    package func forEachConnection(_ body: (ConnectionID) -> Void) {
        for connection in self.connections {
            if let connection, connection.http2 != nil || connection.http1 != nil { body(connection.id) }
        }
    }
}
