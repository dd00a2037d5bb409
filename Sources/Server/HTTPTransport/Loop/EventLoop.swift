internal import Platform
internal import Synchronization
package import Wire

/// The connections of one thread. Each turn waits for events, reads, calls the handler, and writes.
///
/// `@unchecked Sendable`: other threads may only call `wake` and `requestStop`, which use atomics. After `run` was
/// called, only the loop's thread uses all other members.
package final class EventLoop: @unchecked Sendable {
    /// The index in the server's list of loops.
    package let index: Int

    let server: ServerState
    let memory: LoopMemory
    let library: HTTP2Library
    /// The poll of all connections except the busy ones.
    let poll: Poll
    /// The poll of the busy connections. It also watches `poll`.
    let busyPoll: Poll
    let pipe = TLSPipe()
    var handler: any RequestHandler = NoHandler()

    var connections: [Connection?] = []
    var generations: [UInt32] = []
    /// The time of each connection's next check. Thousands of idle connections therefore need no work each second.
    var nextCheckTimes: [Int64] = []
    var freeIndices: [UInt32] = []
    var dirty: [Connection] = []
    var handshakes = HandshakeQueue()
    /// The memory for the bytes of the current socket, and for the decrypted bytes.
    let readBuffer: ReadBuffer
    let plaintextBuffer: ReadBuffer
    /// The bytes that will be written to a socket next.
    var produced = ByteBuffer()
    /// For each listener: true if the loop watches for new connections.
    var areListenersWatched: [Bool]
    /// For each listener: true if it had more connections than the last turn accepted.
    var areListenersCrowded: [Bool]
    /// The recent share of each flow in the received bytes.
    var shares = FlowShares()
    var turns = TurnOrder()

    /// True if the handler cannot take more requests; set by the handler. The loop then reads no socket, but sends
    /// answers, and waits for `wake`. If there are busy connections, the loop still reads `TurnOrder.bytesPerPauseMax`
    /// bytes from all others.
    package var isReadingPaused = false

    /// The number of busy connections. Any thread may read it.
    let busyConnections = ConnectionCount()

    /// The time at which `alarmRang` is called once, by the clock of `now`; `Int64.max` for never.
    package var alarmAt = Int64.max

    /// The time of the monotonic clock in this turn, in milliseconds.
    package var now: Int64 { self.memory.now }

    /// The number of open connections of this loop.
    package internal(set) var connectionCount = 0

    /// The number of bytes queued on a streaming answer above which `streamDrained` will be called.
    package var streamingBytesSoftMax: Int { self.memory.limits.streamingBytesSoftMax }

    /// True during `streamClosed` if the peer cannot have read the whole response. Either bytes were unsent, or bytes
    /// in the connection of a socket file were unread.
    package internal(set) var endsUnread = false

    private let wakeEvent: Int32
    private let isWakePending = Atomic<Bool>(false)
    private let isStopRequested = Atomic<Bool>(false)
    private var nextSecond: Int64 = 0

    /// The bit that marks tokens that do not identify a connection.
    static let specialToken: UInt64 = 1 << 63
    private static let wakeToken = EventLoop.specialToken | 1 << 32
    private static let listenerToken = EventLoop.specialToken | 2 << 32
    /// The token with which `busyPoll` reports `poll`.
    private static let pollToken = EventLoop.specialToken | 3 << 32

    init(index: Int, server: ServerState) throws(TransportError) {
        self.index = index
        self.server = server
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

    deinit { Descriptor.close(self.wakeEvent) }

    /// Sets the limits of the loop. Call it on the loop's thread, from the handler's `woken`.
    ///
    /// The following limits must not change, because they were announced to peers or determine the size of allocated
    /// memory: `streamsPerConnectionMax`, `headerListBytesMax`, `frameBytesMax`, both windows, `continuationFramesMax`
    /// and `readBytesPerTurn`.
    package func setLimits(_ limits: TransportLimits) {
        self.memory.limits = limits
        self.memory.streams.streamsMax = limits.streamsPerLoopMax
        // The times of the next checks depend on the previous limits.
        for index in self.nextCheckTimes.indices { self.nextCheckTimes[index] = 0 }
    }

    // MARK: From other threads

    /// Makes the loop call the handler's `woken` soon. Any thread may call it. Only the first call before the loop
    /// wakes up makes a system call.
    package func wake() {
        if !self.isWakePending.exchange(true, ordering: .acquiringAndReleasing) { System.signal(self.wakeEvent) }
    }

    /// Calls `body`, and then the handler's `woken`. Calls of `wake` during `body` therefore need no system call.
    ///
    /// - Parameter body: called on the loop's thread.
    package func takingWakes(_ body: () -> Void) {
        self.isWakePending.store(true, ordering: .releasing)
        body()
        // Clear the flag before the handler runs. A call of `wake` during that time then causes another turn.
        self.isWakePending.store(false, ordering: .releasing)
        self.handler.woken()
    }

    func requestStop() {
        self.isStopRequested.store(true, ordering: .releasing)
        System.signal(self.wakeEvent)
    }

    // MARK: The loop

    /// Serves connections until `requestStop` is called. This function runs on the loop's thread.
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
    /// Connections that send little do not wait for connections that send much. While both `poll` and `busyPoll` have
    /// events, two kinds of turns alternate. One kind reads ready connections that are not busy. The other kind
    /// reads 16 KiB from busy ones, and leaves the remaining events of `busyPoll` for the next turn of this kind. If no
    /// connection is busy, all connections are served in order of arrival, and `busyPoll` costs nothing.
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

    /// True if a listener, a wake, or a connection that is not busy has an event.
    private var haveOthersSomething: Bool {
        if !self.poll.hasEvents { self.poll.wait(milliseconds: 0) }
        return self.poll.hasEvents
    }

    /// Serves all connections except the busy ones.
    ///
    /// - Parameter milliseconds: the maximum wait; -1 for no limit.
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

    /// Serves some busy connections; at least one if any is ready.
    private func serveBusy() {
        self.turns.wasOfOthers = false
        // Do not wait for `busyPoll` while `poll` has events, because they may not be reported again.
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

    /// Serves a loop whose handler has paused reading. If there are busy connections, the others may still send some
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

    /// Waits for a call of `wake` without reading any socket.
    private func waitForWake() {
        Descriptor.wait(for: self.wakeEvent, .readable, milliseconds: self.millisecondsToWait)
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
            // The watched events may have changed since epoll reported these.
            let watched = readiness.intersection(connection.interest.union(.broken))
            if !watched.isEmpty { self.ready(connection, watched) }
            return
        }
        switch token & ~UInt64(UInt32.max) {
        case Self.wakeToken:
            System.clear(self.wakeEvent)
            // Clear the flag before the handler runs. A call of `wake` during that time then causes another turn.
            if self.isWakePending.exchange(false, ordering: .acquiringAndReleasing) { self.handler.woken() }
        case _:
            self.accept(listener: Int(UInt32(truncatingIfNeeded: token)))
        }
    }

    /// Notifies the handler of the end of the turn, and writes. Repeats both if the handler was notified of anything
    /// during the write.
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
        for index in self.nextCheckTimes.indices where self.nextCheckTimes[index] <= now {
            if let connection = self.connections[index] { self.secondPassed(connection) }
        }
        if self.connectionCount > 0 { self.handler.secondPassed(now) }
    }

    private func closeAll() {
        for index in self.areListenersWatched.indices { self.unwatchListener(index) }
        // The last answers of the engine may have arrived after the last turn began.
        self.handler.woken()
        self.flushDirty()
        self.handler.loopEnds()
        self.flushDirty()
        for connection in self.connections {
            if let connection { self.destroy(connection) }
        }
        self.handler.turnEnded()
    }

    // MARK: Listeners

    /// Watches all listeners that are not watched. If this fails because memory is exhausted, it is tried again in the
    /// next second.
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
}

/// The functions that the handler may call, on the loop's thread.
extension EventLoop {
    /// Answers a waiting stream with a head. A body follows unless it is nil or empty; its bytes are copied.
    ///
    /// - Returns: false if the stream no longer exists or has been answered.
    @discardableResult
    package func respond(_ stream: StreamID, _ response: Response, body: ByteView? = nil) -> Bool {
        guard let connection = self.connection(stream.connection) else { return false }
        self.markDirty(connection)
        let isTaken =
            connection.http2?.respond(stream.number, response, body: body)
            ?? connection.http1?.respond(stream.number, response, body: body) ?? false
        if body != nil { self.endIfTooMuchIsQueued(connection) }
        return isTaken
    }

    /// Answers a waiting stream with a head, which is sent immediately. `write` and `finish` add the body.
    ///
    /// - Returns: false if the stream no longer exists or has been answered.
    package func beginStreaming(_ stream: StreamID, _ response: Response) -> Bool {
        guard let connection = self.connection(stream.connection) else { return false }
        self.markDirty(connection)
        return connection.http2?.beginStreaming(stream.number, response)
            ?? connection.http1?.beginStreaming(stream.number, response) ?? false
    }

    /// Appends bytes to a streaming answer.
    ///
    /// - Returns: the number of queued bytes of the stream, including these; nil if the stream no longer exists or is
    ///   finished.
    package func write(_ stream: StreamID, _ bytes: ByteView) -> Int? {
        guard let connection = self.connection(stream.connection) else { return nil }
        self.markDirty(connection)
        let queued = connection.http2?.write(stream.number, bytes) ?? connection.http1?.write(stream.number, bytes)
        self.endIfTooMuchIsQueued(connection)
        return queued
    }

    /// If a peer does not read its answers, ends its connection at the end of the turn.
    private func endIfTooMuchIsQueued(_ connection: Connection) {
        let bytesMax = self.memory.limits.queuedBytesPerConnectionMax
        guard connection.queuedBytes > bytesMax, !connection.isDoomed else { return }
        self.memory.tally.met(.queuedBytesPerConnectionMax)
        self.close(connection.id)
    }

    /// Ends a streaming answer after the bytes written so far.
    package func finish(_ stream: StreamID) {
        guard let connection = self.connection(stream.connection) else { return }
        connection.http2?.finish(stream.number)
        connection.http1?.finish(stream.number)
        self.markDirty(connection)
    }

    /// Sends a PING every `everySeconds`; nil for none. The connection ends if a PING is not answered. Has no effect
    /// with HTTP/1.1.
    package func setPing(_ connection: ConnectionID, everySeconds: Int?) {
        guard let connection = self.connection(connection), let session = connection.http2 else { return }
        session.setPing(everySeconds: everySeconds)
        self.nextCheckTimes[Int(connection.id.index)] = 0
    }

    /// Accepts no further request, treats open streams according to `inFlight`, and then ends the connection. With
    /// HTTP/2, `debugData` and `code` are part of the GOAWAY frame.
    ///
    /// - Returns: the last stream that the peer may consider accepted. Nil with HTTP/1.1 or if the connection no longer
    ///   exists.
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

    /// Announces another limit on the number of open streams. Open streams above a lower limit continue. The limit is
    /// enforced when the peer has acknowledged it; further streams are then refused. Has no effect with HTTP/1.1.
    ///
    /// - `limit`: clamped to the range from 0 to `TransportLimits.streamsPerConnectionMax`.
    /// - Returns: false if the connection no longer exists, or if too many SETTINGS frames are unacknowledged.
    @discardableResult
    package func setStreamLimit(_ connection: ConnectionID, to limit: Int) -> Bool {
        guard let connection = self.connection(connection), let session = connection.http2 else { return false }
        self.markDirty(connection)
        return session.setStreamLimit(min(max(0, limit), self.memory.limits.streamsPerConnectionMax))
    }

    /// Announces another window for all streams of a connection, including open ones. The window is the number of bytes
    /// that the peer may send on a stream before a window update. Has no effect with HTTP/1.1.
    ///
    /// - `bytes`: less than half of `TransportLimits.streamWindowBytes`. Nil for the whole window, which lets waiting
    ///   peers continue.
    /// - Returns: false if the connection no longer exists, or if too many SETTINGS frames are unacknowledged.
    @discardableResult
    package func setStreamWindow(_ connection: ConnectionID, to bytes: Int?) -> Bool {
        guard let connection = self.connection(connection), let session = connection.http2 else { return false }
        self.markDirty(connection)
        return session.setStreamWindow(bytes)
    }

    /// Resets a stream whose answer is not complete. With HTTP/1.1, ends the connection.
    package func reset(_ stream: StreamID, code: HTTP2ErrorCode) {
        guard let connection = self.connection(stream.connection) else { return }
        if let session = connection.http2 {
            session.reset(stream.number, code: code)
        } else {
            connection.isDoomed = true
        }
        self.markDirty(connection)
    }

    /// Closes all streams of a connection, and ends it at the end of this turn.
    package func close(_ connection: ConnectionID) {
        guard let connection = self.connection(connection) else { return }
        connection.isDoomed = true
        self.markDirty(connection)
    }

    /// Returns the client's network; nil if the connection no longer exists or uses a socket file.
    package func network(of connection: ConnectionID) -> ClientNetwork? { self.connection(connection)?.network }

    /// Returns true if the peer of a connection to a socket file has read everything that was written.
    package func hasBeenRead(_ connection: ConnectionID) -> Bool {
        guard let connection = self.connection(connection), connection.network == nil else { return false }
        return connection.queuedBytes == 0 && connection.output.isEmpty && System.hasBeenRead(connection.descriptor)
    }

    /// Returns the user whose process connected to a socket file; nil if the connection no longer exists or uses a
    /// port.
    package func user(of connection: ConnectionID) -> UInt32? {
        guard let connection = self.connection(connection), connection.network == nil else { return nil }
        return System.peerUser(connection.descriptor)
    }

    /// Closes the connections that have not begun HTTP within `milliseconds`.
    package func closeHandshakes(olderThan milliseconds: Int64) {
        for connection in self.connections {
            guard let connection, connection.http2 == nil, connection.http1 == nil, connection.stage != .lingering,
                self.memory.now - connection.acceptedAt > milliseconds
            else { continue }
            self.close(connection.id)
        }
    }

    /// Calls `body` with every connection that has begun HTTP.
    package func forEachConnection(_ body: (ConnectionID) -> Void) {
        for connection in self.connections {
            if let connection, connection.http2 != nil || connection.http1 != nil { body(connection.id) }
        }
    }
}
