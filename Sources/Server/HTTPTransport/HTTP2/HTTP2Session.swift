package import Wire

/// The server's end of one HTTP/2 connection, without its socket: bytes in; bytes and calls of the handler out.
///
/// A class because libnghttp2 keeps a pointer to it; one a connection, none a request.
package final class HTTP2Session {
    let memory: LoopMemory
    let handler: any RequestHandler
    let id: ConnectionID
    let listener: Int
    /// What stands between this and libnghttp2, which knows the streams and their windows.
    let seam: LibrarySeam
    /// Whether `end` was called: nothing is asked of the library any more.
    private var hasEnded = false

    var open: OpenStreams
    var numbers = StreamNumbers()
    var streamLimit: StreamLimit
    /// The windows that SETTINGS frames of ours are to announce, the first first; fewer than the numbers of streams
    /// that may wait.
    private var windowsUnsent: [Int] = []
    /// The field block that is being read.
    var block = FieldBlock()
    private var unfinished = UnfinishedFrame()
    var budgets: FrameBudgets
    /// The streams beyond the limit that the peer began before it acknowledged the limit.
    var earlyRefusals: Int32 = 0
    var held = HeldBytes()
    /// The bytes of answers that have not left their streams.
    package internal(set) var queuedBytes = 0
    /// Streams to reset with NO_ERROR after their answer: the rest of their request is not wanted.
    private var resetsPending: [Int32] = []
    /// Streams that the handler is to hear of, since much of what waited on them has left.
    var drained: [StreamID] = []
    var ping: PingTimer
    var departure = Departure()

    /// Whether the peer has said anything valid yet.
    var hasReceivedFrame = false
    var hasCarriedRequest = false
    /// Whether the connection has to end as soon as what is ready has been sent.
    package private(set) var hasFailed = false
    private var isEndedByLimit = false

    /// A connection that begins; our settings are ready to be sent.
    ///
    /// - Parameters:
    ///   - memory: what it shares with the other sessions of its loop.
    ///   - library: what it shares of libnghttp2 with those of HTTP/2.
    ///   - handler: hears of its requests.
    ///   - id: the name of the connection on the loop.
    ///   - listener: the place in the server's list of listeners.
    ///   - streamsAtFirst: what the first SETTINGS frame says; nil for `streamsPerConnectionMax`.
    package init(
        memory: LoopMemory,
        library: HTTP2Library,
        handler: any RequestHandler,
        id: ConnectionID,
        listener: Int,
        streamsAtFirst: Int? = nil
    ) {
        let limits = memory.limits
        self.memory = memory
        self.handler = handler
        self.id = id
        self.listener = listener
        self.open = OpenStreams(now: memory.now)
        self.budgets = FrameBudgets(limits, now: memory.now)
        self.streamLimit = StreamLimit(streamsAtFirst ?? limits.streamsPerConnectionMax)
        self.ping = PingTimer(now: memory.now)
        let literalBytesMax = limits.headerListBytesMax * FieldBlock.overlongListFactor
        self.seam = LibrarySeam(library, limits: limits, literalBytesMax: literalBytesMax)
        self.hasFailed = !self.seam.begin(for: self, limits)
    }

    deinit { self.end() }

    /// Whether both sides are done: nothing to read, nothing to write.
    package var isFinished: Bool { self.seam.isFinished }

    /// Whether `produce` may have something.
    package var wantsToWrite: Bool {
        self.seam.wantsToWrite || !self.resetsPending.isEmpty
            || self.departure.mayLeave(self.open, now: self.memory.now)
    }

    /// Frames made and not yet produced.
    package var framesPending: Int { self.seam.framesPending }

    // MARK: Bytes

    /// Takes what the peer sent. Every fault is answered with the error that the protocol names; after one that ends
    /// the connection `isFinished` or `hasFailed` becomes true.
    package func receive(_ bytes: ByteView) {
        guard !self.hasFailed, bytes.count > 0 else { return }
        self.held.letGoOfBlock()
        self.seam.receive(bytes, for: self)
        let unfinished = self.seam.unfinishedFrame
        self.unfinished.note(unfinished, now: self.memory.now)
        if unfinished != 0, self.seam.isWithinBlock { self.holdBlock() }
        self.held.tell(self.memory.requestBytes)
    }

    /// Appends what is to be sent, until there is nothing more or `output` holds `bytesMax`.
    package func produce(into output: inout ByteBuffer, bytesMax: Int) {
        producing: while true {
            guard output.count < bytesMax else {
                self.memory.tally.met(.outputBytesMax)
                break
            }
            switch self.seam.produceFrame(into: &output, for: self) {
            case .frame: ()
            case .nothing:
                guard self.submitResets() || self.sayFarewell() else {
                    self.seam.forgetHeads()
                    break producing
                }
            case .failed:
                self.hasFailed = true
                self.seam.forgetHeads()
                break producing
            }
        }
        self.reportDrained()
    }

    /// Announces another number of streams that the peer may have open. A lower one leaves those that are open alone,
    /// and holds once the peer has acknowledged it; streams beyond it are refused.
    ///
    /// - Parameter limit: from 0 to `streamsPerConnectionMax`.
    /// - Returns: false when the peer has left so many of them unacknowledged that nothing more is announced.
    package func setStreamLimit(_ limit: Int) -> Bool {
        guard !self.hasEnded, self.streamLimit.change(to: limit) else { return false }
        return self.seam.submitStreamLimit()
    }

    /// Announces another window for every stream, those that are open too: how many bytes the peer may send on one
    /// before it waits for us. The usual one lets all that waits go on.
    ///
    /// Nothing tells a peer off that sends more than a smaller window has.
    ///
    /// - Parameter bytes: less than half of the usual window, so that the peer is given no more as its bytes come;
    ///   nil for the usual.
    /// - Returns: false when the peer has left so many SETTINGS frames unacknowledged that nothing more is announced.
    package func setStreamWindow(_ bytes: Int?) -> Bool {
        let usual = self.memory.limits.streamWindowBytes
        precondition(bytes ?? 0 < usual / 2, "the library would open the window again")
        guard !self.hasEnded, self.streamLimit.repeatNewest() else { return false }
        self.windowsUnsent.append(bytes ?? usual)
        return self.seam.submitStreamWindow(believed: usual)
    }

    /// - Returns: the window that the SETTINGS frame has to announce that leaves.
    func streamWindowLeaves() -> Int { self.windowsUnsent.removeFirst() }

    private func submitResets() -> Bool {
        guard !self.resetsPending.isEmpty else { return false }
        var remaining: [Int32] = []
        var submitted = false
        for number in self.resetsPending {
            guard let slot = self.slot(number) else { continue }
            guard slot.state.phase == .sending, slot.state.output.isEmpty else {
                remaining.append(number)
                continue
            }
            self.seam.submitReset(number, .noError)
            submitted = true
        }
        self.resetsPending = remaining
        return submitted
    }

    // MARK: Answers

    /// Answers a waiting stream with a head and, unless it is nil or empty, one body.
    ///
    /// - Returns: false when the stream is gone or was answered before.
    package func respond(_ number: Int32, _ response: Response, body: ByteView?) -> Bool {
        guard let slot = self.slot(number), slot.state.phase == .waiting else { return false }
        self.open.move(slot, to: .sending, now: self.memory.now)
        if let body, !slot.state.hasHeadMethod {
            slot.state.output.append(body)
            self.queuedBytes += body.count
        }
        self.seam.submit(response, for: slot, hasBody: !slot.state.output.isEmpty)
        if !slot.state.hasRequestEnded { self.resetsPending.append(number) }
        return true
    }

    /// Answers a waiting stream with a head; the body follows through `write` and `finish`, but for HEAD.
    package func beginStreaming(_ number: Int32, _ response: Response) -> Bool {
        guard let slot = self.slot(number), slot.state.phase == .waiting else { return false }
        slot.state.dropRequest(keepingBytesMax: 0)
        self.open.move(slot, to: .streaming, now: self.memory.now)
        self.seam.submit(response, for: slot, hasBody: !slot.state.hasHeadMethod)
        return true
    }

    /// - Returns: the bytes that wait on the stream, these included; nil when it is gone or finished.
    package func write(_ number: Int32, _ bytes: ByteView) -> Int? {
        guard let slot = self.slot(number), slot.state.phase == .streaming else { return nil }
        slot.state.output.append(bytes)
        self.queuedBytes += bytes.count
        self.memory.noteStreaming(slot)
        self.seam.resume(number)
        if self.ping.bytesQueued(now: self.memory.now) { self.seam.submitPing() }
        return slot.state.output.count
    }

    /// Ends a streaming answer after what was written.
    package func finish(_ number: Int32) {
        guard let slot = self.slot(number), slot.state.phase == .streaming else { return }
        self.open.move(slot, to: .sending, now: self.memory.now)
        if !slot.state.hasRequestEnded { self.resetsPending.append(number) }
        self.seam.resume(number)
    }

    // MARK: The connection

    /// Says that no further request is taken, and what becomes of the streams that are open; then `isFinished`. After
    /// `end` nothing happens.
    ///
    /// - Returns: the last stream of which the peer may believe that it was taken.
    @discardableResult
    package func goAway(
        debugData: ByteView,
        code: HTTP2ErrorCode = .noError,
        inFlight: StreamsInFlight = .finished
    ) -> Int32 {
        guard !self.hasEnded else { return 0 }
        let last = self.departure.last(newest: self.seam.lastStream, inFlight)
        guard inFlight != .answeredFirst, inFlight != .announcedFirst else {
            let isAnnounced = inFlight == .announcedFirst
            self.departure.wait(debugData: debugData, code: code, isAnnounced: isAnnounced, now: self.memory.now)
            return last
        }
        self.seam.submitGoAway(last: last, code, debugData)
        self.departure.told(last: last)
        if inFlight == .dropped { self.hasFailed = true }
        return last
    }

    /// Makes the GOAWAY frame that waits, if it may leave; called when all other frames have been made.
    private func sayFarewell() -> Bool {
        if self.departure.takeAnnouncement(self.open, now: self.memory.now) {
            self.seam.submitShutdownNotice()
            return true
        }
        guard let farewell = self.departure.take(self.open, now: self.memory.now) else { return false }
        _ = farewell.debugData.withByteView { self.goAway(debugData: $0, code: farewell.code) }
        return true
    }

    /// Resets a stream that the handler has not answered to its end. The reset does not count against the peer.
    package func reset(_ number: Int32, code: HTTP2ErrorCode) {
        guard let slot = self.slot(number), slot.state.phase == .waiting || slot.state.phase == .streaming else {
            return
        }
        slot.state.isResetByHandler = true
        self.seam.submitReset(number, code)
    }

    /// Ends the connection for a fault of the peer's.
    func terminate(_ code: HTTP2ErrorCode) {
        self.seam.terminate(code)
    }

    /// Ends the connection for a fault after which nothing more is read.
    func fail(_ code: HTTP2ErrorCode) {
        self.hasFailed = true
        self.terminate(code)
    }

    /// Forgets every stream, telling the handler of those it waits for, and frees the session. Whatever the handler
    /// asks of the session from then on comes to nothing.
    package func end() {
        guard !self.hasEnded else { return }
        self.hasEnded = true
        while let slot = self.open.first { self.close(slot) }
        self.held.letGoOfBlock()
        self.held.tell(self.memory.requestBytes)
        self.seam.end()
    }

    // MARK: Streams

    func slot(_ number: Int32) -> StreamSlot? {
        // Answers still come while a connection whose session has ended waits for its peer to end too.
        guard !self.hasEnded else { return nil }
        return self.open.find(number) ?? self.seam.slot(number)
    }

    /// Resets a stream whose request is malformed, or too much to look at; another reset of it does nothing.
    func refuse(_ number: Int32, _ code: HTTP2ErrorCode) {
        self.seam.submitReset(number, code)
    }

    func close(_ slot: StreamSlot) {
        let phase = slot.state.phase
        let stream = StreamID(connection: self.id, number: slot.state.number)
        self.letGo(slot)
        self.queuedBytes -= slot.state.output.count
        self.open.end(slot, now: self.memory.now)
        if !slot.state.hasRequestEnded { self.numbers.cutShort(stream.number) }
        self.memory.streams.giveBack(slot)
        switch phase {
        case .waiting, .streaming:
            self.memory.handlerWasTold = true
            self.handler.streamClosed(stream)
        case .receiving, .sending, .free: ()
        }
    }

    private func reportDrained() {
        guard !self.drained.isEmpty else { return }
        let streams = self.drained
        self.drained.removeAll()
        self.memory.handlerWasTold = true
        for stream in streams { self.handler.streamDrained(stream) }
    }

    // MARK: What is held

    /// The bytes of the requests that have arrived in part.
    package var heldBytes: Int { self.held.count }

    /// The head of a request has arrived, and its body is to come.
    func hold(_ slot: StreamSlot) {
        let shortage = self.shortage(for: slot.state.received.count)
        guard shortage == .none else { return self.refuse(slot, shortage) }
        slot.state.isHeld = true
        self.held.hold(slot.state.received.count)
    }

    /// The request goes to the handler, or is gone.
    func letGo(_ slot: StreamSlot) {
        guard slot.state.isHeld else { return }
        slot.state.isHeld = false
        self.held.letGo(slot.state.received.count)
    }

    /// What there is no room in for so many more bytes of requests.
    func shortage(for bytes: Int) -> RequestShortage {
        let connectionMax = self.memory.limits.requestBytesPerConnectionMax
        return self.held.shortage(for: bytes, connectionMax: connectionMax, all: self.memory.requestBytes)
    }

    /// Hands over what has arrived of a request that there is no room for: it is answered, and the rest thrown away.
    func refuse(_ slot: StreamSlot, _ shortage: RequestShortage) {
        self.letGo(slot)
        self.memory.tally.met(shortage == .connection ? .requestBytesPerConnectionMax : .requestBytesMax)
        slot.state.shortage = shortage
        slot.state.bodyStart = slot.state.received.count
        self.deliver(slot)
    }

    /// Where there is no room for what has come of a block, its stream is refused, and what follows of the block is
    /// read and dropped. The connection ends where that is no help: by the bytes of one connection, or by a field that
    /// is longer than any that is taken.
    private func holdBlock() {
        var bytes = self.seam.pendingFieldBytes
        if let slot = self.open.current, slot.state.phase == .receiving, !slot.state.isHeld {
            bytes += slot.state.received.count
        }
        switch self.shortage(for: bytes) {
        case .none: ()
        case .connection: self.endByLimit(.requestBytesPerConnectionMax)
        case .server:
            if self.seam.pendingFieldBytes > self.memory.limits.headerListBytesMax {
                self.endByLimit(.requestBytesMax)
            } else if let number = self.block.stream {
                self.memory.tally.met(.requestBytesMax)
                self.refuseBlock(of: number, .refusedStream)
            }
        }
        self.held.holdBlock(bytes)
    }

    /// Ends the connection of a peer that makes us work for nothing.
    func endByLimit(_ limit: TransportLimit, _ code: HTTP2ErrorCode = .enhanceYourCalm) {
        // What came with the frame that was too many is still looked at.
        guard !self.isEndedByLimit else { return }
        self.isEndedByLimit = true
        self.memory.tally.met(limit)
        self.terminate(code)
    }

    /// Records of TLS have come that carry nothing for us, but make work.
    func controlRecordsReceived(_ count: Int) {
        for _ in 0..<count where !self.isEndedByLimit { self.controlFrameReceived() }
    }

    // MARK: Time

    /// - Parameter seconds: the time from one PING to the next; nil for none.
    package func setPing(everySeconds seconds: Int?) {
        self.ping.intervalChanged(seconds: seconds, now: self.memory.now)
    }

    /// Lets time pass: refuses what took too long, sends PINGs, and frees what is kept for answers to come, as
    /// thousands of connections have none for minutes.
    ///
    /// - Returns: false when the peer is gone.
    package func secondPassed() -> Bool {
        let now = self.memory.now
        let limits = self.memory.limits
        self.seam.freeSpareMemory()
        if now >= self.frameDueAt { self.endByLimit(.requestSeconds) }
        if now >= self.acknowledgementDueAt { self.endByLimit(.requestSeconds, .settingsTimeout) }
        // With the connection its streams end.
        if !self.isEndedByLimit {
            self.resetOverdue(self.open.receiving, .requestSeconds, seconds: limits.requestSeconds)
            self.resetOverdue(self.open.sending, .responseSeconds, seconds: limits.responseSeconds)
        }
        if self.open.count == 0 && now - self.open.idleSince > Int64(limits.idleSeconds) * 1000 {
            self.open.idleSince = now
            self.memory.tally.met(.idleSeconds)
            self.goAway(debugData: ByteView("{\"reason\":\"IdleTimeout\"}"))
        }
        switch self.ping.timePassed(now: now, answerSeconds: limits.pingSeconds) {
        case .wait: ()
        case .send: self.seam.submitPing()
        case .peerIsGone: return false
        }
        return true
    }

    private func resetOverdue(_ list: StreamList, _ limit: TransportLimit, seconds: Int) {
        var slot = list.first
        while let overdue = slot, self.memory.now - overdue.state.since > Int64(seconds) * 1000 {
            self.memory.tally.met(limit)
            self.refuse(overdue.state.number, .cancel)
            slot = overdue.state.next
        }
    }

    /// When a frame or field block that has begun must have ended; `Int64.max` when none has.
    private var frameDueAt: Int64 {
        self.unfinished.unfinishedSince.map { self.afterRequestSeconds(from: $0) } ?? .max
    }

    /// When the peer must have acknowledged a SETTINGS frame of ours; `Int64.max` when it owes none.
    private var acknowledgementDueAt: Int64 {
        self.streamLimit.owedSince.map { self.afterRequestSeconds(from: $0) } ?? .max
    }

    private func afterRequestSeconds(from start: Int64) -> Int64 {
        start + Int64(self.memory.limits.requestSeconds) * 1000 + 1
    }

    /// When `secondPassed` will next have something to do, if nothing is read or written before.
    package var isQuietUntil: Int64 {
        guard self.hasReceivedFrame, self.open.receiving.first == nil, self.open.sending.first == nil,
            !self.departure.hasFarewell
        else { return 0 }
        let limits = self.memory.limits
        let idle = self.open.count == 0 ? self.open.idleSince + Int64(limits.idleSeconds) * 1000 + 1 : .max
        let due = min(self.frameDueAt, self.acknowledgementDueAt)
        return min(idle, due, self.ping.dueAt(answerSeconds: limits.pingSeconds))
    }
}
