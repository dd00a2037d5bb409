internal import Platform
internal import Synchronization
package import Wire

/// One thread's connections: waits, reads, calls the handler, writes.
///
/// `@unchecked Sendable`: another thread may only call `wake` and `requestStop`, which touch atomics; everything else
/// belongs to the loop's thread once `run` was called.
package final class EventLoop: @unchecked Sendable {
    /// The place in the server's list of loops.
    package let index: Int

    let server: ServerState
    private(set) var limits: TransportLimits
    let memory: LoopMemory
    let library: HTTP2Library
    /// Watches all but the busy connections.
    let poll: Poll
    /// Watches the busy connections, and `poll`.
    let busyPoll: Poll
    let pipe = TLSPipe()
    var handler: any RequestHandler = NoHandler()

    var connections: [Connection?] = []
    var generations: [UInt32] = []
    /// From when on a connection is looked at by the second, so that thousands that are idle need not be touched.
    var looksAt: [Int64] = []
    var freeIndices: [UInt32] = []
    var dirty: [Connection] = []
    var handshakes = HandshakeQueue()
    /// What is read from any socket, and what was decrypted from it.
    let readRoom: ReadRoom
    let plainRoom: ReadRoom
    /// What is about to be written to any socket.
    var produced = ByteBuffer()
    /// Whether connections are accepted, by listener.
    var areListenersWatched: [Bool]
    /// Whether more connections waited than the last turn took, by listener.
    var areListenersCrowded: [Bool]
    /// What each flow has sent of late.
    var shares = FlowShares()
    var turns = TurnOrder()

    /// Set by the handler while it has all it can take: no socket is read, though answers leave; `wake` ends each wait.
    /// Where there are busy connections the others may go on for a while, up to `TurnOrder.bytesPerPauseMax`.
    package var isReadingPaused = false

    /// How many connections are busy; any thread may look.
    let busyConnections = ConnectionCount()

    /// When `alarmRang` is to be called, once, in milliseconds as `now`; `Int64.max` for never.
    package var alarmAt = Int64.max

    /// The monotonic clock at the start of this turn, in milliseconds.
    package var now: Int64 { self.memory.now }

    /// The open connections of this loop.
    package internal(set) var connectionCount = 0

    /// While `streamClosed` is called: whether it is known that the peer has not read all that was sent to it, as of
    /// bytes that did not leave, and of those that a peer left in a socket file's connection.
    package internal(set) var endsUnread = false

    private let wakeEvent: Int32
    private let isWakePending = Atomic<Bool>(false)
    private let isStopRequested = Atomic<Bool>(false)
    private var nextSecond: Int64 = 0

    /// Tokens of what is not a connection have this bit.
    static let specialToken: UInt64 = 1 << 63
    private static let wakeToken = EventLoop.specialToken | 1 << 32
    private static let listenerToken = EventLoop.specialToken | 2 << 32
    /// What `busyPoll` reports `poll` by.
    static let pollToken = EventLoop.specialToken | 3 << 32

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
        self.readRoom = ReadRoom(bytes: server.limits.readBytesPerTurn)
        self.plainRoom = ReadRoom(bytes: server.limits.readBytesPerTurn)
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

    /// Sets the loop's bounds, on its thread, when the handler is `woken`.
    ///
    /// Those that peers were told of in SETTINGS, and those of memory that is there, must be as they were:
    /// `streamsPerConnectionMax`, `headerListBytesMax`, `frameBytesMax`, both windows, `continuationFramesMax` and
    /// `readBytesPerTurn`.
    package func setLimits(_ limits: TransportLimits) {
        self.limits = limits
        self.memory.limits = limits
        self.memory.streams.streamsMax = limits.streamsPerLoopMax
        // When a connection is looked at next was reckoned with the bounds there were.
        for index in self.looksAt.indices { self.looksAt[index] = 0 }
    }

    // MARK: From other threads

    /// Has the handler's `woken` called soon. From any thread; calls before the loop has woken cost no system call.
    package func wake() {
        if !self.isWakePending.exchange(true, ordering: .acquiringAndReleasing) { System.signal(self.wakeEvent) }
    }

    /// Has the handler's `woken` called after `body`, so that what `body` has for this loop needs no system call.
    ///
    /// - Parameter body: called here, on the loop's thread.
    package func takingWakes(_ body: () -> Void) {
        self.isWakePending.store(true, ordering: .releasing)
        body()
        // Cleared before the handler looks: a wake that comes meanwhile makes another turn.
        self.isWakePending.store(false, ordering: .releasing)
        self.handler.woken()
    }

    func requestStop() {
        self.isStopRequested.store(true, ordering: .releasing)
        System.signal(self.wakeEvent)
    }

    // MARK: The loop

    /// Serves until `requestStop`; the body of the loop's thread.
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

    /// Reads no socket, and takes notice of a wake.
    func waitForWake() {
        System.wait(self.wakeEvent, milliseconds: self.millisecondsToWait)
        self.memory.now = SystemClock.monotonic
        self.dispatch(.readable, Self.wakeToken)
    }

    var waitMilliseconds: Int32 {
        if !self.dirty.isEmpty || self.areListenersCrowded.contains(true) { return 0 }
        if self.connectionCount == 0 && self.alarmAt == .max && !self.areListenersWatched.contains(false) { return -1 }
        return self.millisecondsToWait
    }

    var millisecondsToWait: Int32 {
        Int32(clamping: max(0, min(self.nextSecond, self.alarmAt) - self.memory.now))
    }

    func dispatch(_ readiness: Poll.Readiness, _ token: UInt64) {
        if token & Self.specialToken == 0 {
            let id = ConnectionID(index: UInt32(truncatingIfNeeded: token), generation: UInt32(token >> 32))
            guard let connection = self.connection(id) else { return }
            // Since it was reported, something else may be watched for.
            let watched = readiness.intersection(connection.interest.union(.broken))
            if !watched.isEmpty { self.ready(connection, watched) }
            return
        }
        switch token & ~UInt64(UInt32.max) {
        case Self.wakeToken:
            System.clear(self.wakeEvent)
            // Cleared before the handler looks: a wake that comes meanwhile makes another turn.
            if self.isWakePending.exchange(false, ordering: .acquiringAndReleasing) { self.handler.woken() }
        case _:
            self.accept(listener: Int(UInt32(truncatingIfNeeded: token)))
        }
    }

    /// Hands the turn's batch over and writes; again, when writing told the handler something.
    private func endTurn() {
        repeat {
            self.memory.handlerWasTold = false
            self.handler.turnEnded()
            self.flushDirty()
        } while self.memory.handlerWasTold
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

    /// Watches the listeners that are not watched; one for which there is no memory is tried again the next second.
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

/// Stands in until the server has made the loop's handler.
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

/// What the handler may ask of its loop, on the loop's thread.
extension EventLoop {
    /// Answers a stream that waits: a head and, unless it is nil or empty, a body, which is copied.
    ///
    /// - Returns: false when the stream is gone or was answered before.
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

    /// Answers a stream that waits with a head, which leaves at once; `write` and `finish` follow.
    ///
    /// - Returns: false when the stream is gone or was answered before.
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
    /// - Returns: the bytes that wait on the stream, these included; nil when it is gone or finished.
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

    /// A peer that lets its answers pile up loses its connection at the end of the turn.
    private func endIfTooMuchIsQueued(_ connection: Connection, _ bytes: Int) {
        guard bytes > self.limits.queuedBytesPerConnectionMax, !connection.isDoomed else { return }
        self.memory.tally.met(.queuedBytesPerConnectionMax)
        self.close(connection.id)
    }

    /// Ends a streaming response after what was written.
    package func finish(_ stream: StreamID) {
        guard let connection = self.connection(stream.connection) else { return }
        if let session = connection.http2 {
            session.finish(stream.number)
        } else {
            connection.http1?.finish(stream.number)
        }
        self.markDirty(connection)
    }

    /// Sends a PING every so many seconds; one that is not answered in time ends the connection. nil: none.
    /// HTTP/1.1 has nothing of the kind.
    package func setPing(_ connection: ConnectionID, everySeconds: Int?) {
        guard let connection = self.connection(connection), let session = connection.http2 else { return }
        session.setPing(everySeconds: everySeconds)
        self.looksAt[Int(connection.id.index)] = 0
    }

    /// Takes no further request, lets open streams end as `inFlight` says, then closes. `debugData` and `code` go into
    /// HTTP/2's GOAWAY.
    ///
    /// - Returns: the last stream of which the peer may believe that it was taken; nil where nothing says so.
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

    /// Announces another number of streams that the peer may have open at once. A lower one leaves open streams alone,
    /// and holds once the peer has acknowledged it; streams beyond it are refused. HTTP/1.1 has nothing of the kind.
    ///
    /// - `limit`: cut to the range from 0 to `TransportLimits.streamsPerConnectionMax`.
    /// - Returns: false when the connection is gone, or its peer acknowledges nothing.
    @discardableResult
    package func setStreamLimit(_ connection: ConnectionID, to limit: Int) -> Bool {
        guard let connection = self.connection(connection), let session = connection.http2 else { return false }
        self.markDirty(connection)
        return session.setStreamLimit(min(max(0, limit), self.limits.streamsPerConnectionMax))
    }

    /// Announces another window for every stream of a connection, those that are open too: how many bytes its peer may
    /// send on one before it waits for us. HTTP/1.1 has nothing of the kind.
    ///
    /// - `bytes`: less than half of `TransportLimits.streamWindowBytes`; nil for that, so that what waits goes on.
    /// - Returns: false when the connection is gone, or its peer acknowledges nothing.
    @discardableResult
    package func setStreamWindow(_ connection: ConnectionID, to bytes: Int?) -> Bool {
        guard let connection = self.connection(connection), let session = connection.http2 else { return false }
        self.markDirty(connection)
        return session.setStreamWindow(bytes)
    }

    /// Ends a stream that is not answered to its end with an error; HTTP/1.1 can only end the connection.
    package func reset(_ stream: StreamID, code: HTTP2ErrorCode) {
        guard let connection = self.connection(stream.connection) else { return }
        if let session = connection.http2 {
            session.reset(stream.number, code: code)
        } else {
            connection.isDoomed = true
        }
        self.markDirty(connection)
    }

    /// Ends a connection at the end of this turn; its streams are closed.
    package func close(_ connection: ConnectionID) {
        guard let connection = self.connection(connection) else { return }
        connection.isDoomed = true
        self.markDirty(connection)
    }

    /// Where a connection comes from; nil when it is gone, or came to a socket file.
    package func network(of connection: ConnectionID) -> ClientNetwork? { self.connection(connection)?.network }

    /// True if the peer of a connection to a socket file has read all that was written to it.
    package func hasBeenRead(_ connection: ConnectionID) -> Bool {
        guard let connection = self.connection(connection), connection.network == nil else { return false }
        let queued = connection.http2?.queuedBytes ?? connection.http1?.queuedBytes ?? 0
        return queued == 0 && connection.output.isEmpty && System.hasBeenRead(connection.descriptor)
    }

    /// The user whose process connected to a socket file; nil when the connection is gone, or came to a port.
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
