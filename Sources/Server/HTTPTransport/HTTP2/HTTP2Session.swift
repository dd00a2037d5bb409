package import Wire

/// The server's end of one HTTP/2 connection, without its socket. It turns received bytes into calls of the handler,
/// and answers into bytes.
///
/// The type is a class, because libnghttp2 stores a pointer to it. There is one object per connection and none per
/// request.
package final class HTTP2Session {
    let memory: LoopMemory
    let handler: any RequestHandler
    let id: ConnectionID
    let listener: Int
    /// The interface to libnghttp2, which manages the streams and their windows.
    let seam: LibrarySeam

    var open: OpenStreams
    var numbers = StreamNumbers()
    var streamLimit: StreamLimit
    /// The stream windows in unsent SETTINGS frames, in order of sending. The limit on unacknowledged SETTINGS frames
    /// limits their number.
    private var windowsUnsent: [Int] = []
    /// The field block that is being decoded.
    var block = FieldBlock()
    /// The incomplete frame or field block, as in `FrameCutter.unfinishedFrame`, and the time since which it is
    /// incomplete, in monotonic milliseconds.
    private var unfinished = (frame: 0, since: Int64(0))
    var budgets: FrameBudgets
    var held = HeldBytes()
    /// The number of unsent bytes of all answers.
    package internal(set) var queuedBytes = 0
    /// The streams to reset with NO_ERROR, because they are answered and the rest of their requests is not needed.
    private var resetsPending: [Int32] = []
    /// The streams for which the handler's `streamDrained` will be called.
    var drained: [StreamID] = []
    var ping: PingTimer
    var departure = Departure()
    /// The number of streams that were refused before the peer had acknowledged the stream limit.
    var earlyRefusals: Int32 = 0

    /// True if `end` was called. libnghttp2's session then no longer exists.
    private var hasEnded = false
    /// True if the peer has sent a valid frame.
    var hasReceivedFrame = false
    var hasCarriedRequest = false
    /// True if the connection must end when the produced bytes are sent.
    package private(set) var hasFailed = false
    private var isEndedByLimit = false

    /// Creates the session of a new connection. Its SETTINGS frame is ready to be sent.
    ///
    /// - Parameters:
    ///   - memory: the memory of the loop.
    ///   - library: the parts of libnghttp2 that the HTTP/2 sessions of the loop share.
    ///   - handler: the handler of the connection's requests.
    ///   - id: the identifier of the connection on the loop.
    ///   - listener: the index in the server's list of listeners.
    ///   - streamsAtFirst: the stream limit in the first SETTINGS frame; nil for `streamsPerConnectionMax`.
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

    /// True if nothing more will be read or written.
    package var isFinished: Bool { self.seam.isFinished }

    /// True if `produce` may have bytes to write.
    package var wantsToWrite: Bool {
        self.seam.wantsToWrite || !self.resetsPending.isEmpty
            || self.departure.mayLeave(self.open, now: self.memory.now)
    }

    /// The number of queued frames that have not been produced.
    package var framesPending: Int { self.seam.framesPending }

    // MARK: Bytes

    /// Processes bytes from the peer, and answers protocol errors with their error codes. After an error that ends the
    /// connection, `isFinished` or `hasFailed` becomes true.
    package func receive(_ bytes: ByteView) {
        guard !self.hasFailed, bytes.count > 0 else { return }
        self.held.letGoOfBlock()
        self.seam.receive(bytes, for: self)
        let unfinished = self.seam.cutter.unfinishedFrame
        if unfinished != self.unfinished.frame { self.unfinished = (unfinished, self.memory.now) }
        if unfinished != 0, self.seam.cutter.isWithinBlock { self.holdBlock() }
        self.held.tell(self.memory.requestBytes)
    }

    /// Appends frames to send, until all are appended or `output` has `bytesMax` bytes.
    package func produce(into output: inout ByteBuffer, bytesMax: Int) {
        producing: while true {
            guard output.count < bytesMax else {
                self.memory.tally.met(.outputBytesMax)
                break
            }
            switch self.seam.produceFrame(into: &output, for: self) {
            case .frame: ()
            case .nothing:
                guard self.submitResets() || self.submitPendingGoAway() else {
                    self.seam.heads.removeAll()
                    break producing
                }
            case .failed:
                self.hasFailed = true
                self.seam.heads.removeAll()
                break producing
            }
        }
        self.reportDrained()
    }

    /// Announces another limit on the number of open streams. Open streams above a lower limit continue. The limit is
    /// enforced when the peer has acknowledged it; further streams are then refused.
    ///
    /// - Parameter limit: from 0 to `streamsPerConnectionMax`.
    /// - Returns: false if the peer has left too many SETTINGS frames unacknowledged. Nothing is announced in this
    ///   case.
    package func setStreamLimit(_ limit: Int) -> Bool {
        guard !self.hasEnded, self.streamLimit.change(to: limit) else { return false }
        return self.seam.submitStreamLimit()
    }

    /// Announces another window for all streams, including open ones. The window is the number of bytes that the peer
    /// may send before a window update.
    ///
    /// A peer that exceeds a reduced window is not penalized.
    ///
    /// - Parameter bytes: less than half of the usual window, because libnghttp2 would otherwise send window updates.
    ///   Nil for the usual window, which lets waiting peers continue.
    /// - Returns: false if the peer has left too many SETTINGS frames unacknowledged. Nothing is announced in this
    ///   case.
    package func setStreamWindow(_ bytes: Int?) -> Bool {
        let usual = self.memory.limits.streamWindowBytes
        precondition(bytes ?? 0 < usual / 2, "the library would open the window again")
        guard !self.hasEnded, self.streamLimit.repeatNewest() else { return false }
        self.windowsUnsent.append(bytes ?? usual)
        return self.seam.submitStreamWindow(believed: usual)
    }

    /// Removes and returns the window for the SETTINGS frame that is being sent.
    func streamWindowLeaves() -> Int { self.windowsUnsent.removeFirst() }

    private func submitResets() -> Bool {
        guard !self.resetsPending.isEmpty else { return false }
        defer { self.resetsPending.removeAll() }
        var submitted = false
        for number in self.resetsPending where self.slot(number) != nil {
            self.seam.submitReset(number, .noError)
            submitted = true
        }
        return submitted
    }

    /// Resets a stream if its answer is produced completely and its request is not. A stream whose answer waits for the
    /// peer's window is not examined until then.
    func resetIfAnswered(_ slot: StreamSlot) {
        guard slot.state.output.isEmpty, !slot.state.hasRequestEnded, !slot.state.isResetPending else { return }
        slot.state.isResetPending = true
        self.resetsPending.append(slot.state.number)
    }

    // MARK: Answers

    /// Answers a waiting stream with a head. A body follows unless it is nil or empty.
    ///
    /// - Returns: false if the stream no longer exists or has been answered.
    package func respond(_ number: Int32, _ response: Response, body: ByteView?) -> Bool {
        guard let slot = self.slot(number), slot.state.phase == .waiting else { return false }
        self.open.move(slot, to: .sending, now: self.memory.now)
        if let body, !slot.state.hasHeadMethod {
            slot.state.output.append(body)
            self.queuedBytes += body.count
        }
        self.seam.submit(response, for: slot, hasBody: !slot.state.output.isEmpty)
        self.resetIfAnswered(slot)
        return true
    }

    /// Answers a waiting stream with a head. `write` and `finish` add the body, except for HEAD.
    package func beginStreaming(_ number: Int32, _ response: Response) -> Bool {
        guard let slot = self.slot(number), slot.state.phase == .waiting else { return false }
        slot.state.dropRequest(keepingBytesMax: 0)
        self.open.move(slot, to: .streaming, now: self.memory.now)
        self.seam.submit(response, for: slot, hasBody: !slot.state.hasHeadMethod)
        return true
    }

    /// Appends bytes to a streaming answer.
    ///
    /// - Returns: the number of queued bytes of the stream, including these; nil if the stream no longer exists or is
    ///   finished.
    package func write(_ number: Int32, _ bytes: ByteView) -> Int? {
        guard let slot = self.slot(number), slot.state.phase == .streaming else { return nil }
        slot.state.output.append(bytes)
        self.queuedBytes += bytes.count
        self.memory.noteStreaming(slot)
        self.seam.resume(number)
        if self.ping.bytesQueued(now: self.memory.now) { self.seam.submitPing() }
        return slot.state.output.count
    }

    /// Ends a streaming answer after the bytes written so far.
    package func finish(_ number: Int32) {
        guard let slot = self.slot(number), slot.state.phase == .streaming else { return }
        self.open.move(slot, to: .sending, now: self.memory.now)
        self.resetIfAnswered(slot)
        self.seam.resume(number)
    }

    // MARK: The connection

    /// Sends GOAWAY. No further request is accepted, and `inFlight` determines the treatment of open streams. Then
    /// `isFinished` becomes true. Does nothing after `end`.
    ///
    /// - Returns: the last stream that the peer may consider accepted.
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
        self.departure.announced(last: last)
        if inFlight == .dropped { self.hasFailed = true }
        return last
    }

    /// Submits the pending GOAWAY frame if it may be sent. Called when all other frames have been produced.
    private func submitPendingGoAway() -> Bool {
        if self.departure.takeAnnouncement(self.open, now: self.memory.now) {
            self.seam.submitShutdownNotice()
            return true
        }
        guard let pendingGoAway = self.departure.take(self.open, now: self.memory.now) else { return false }
        _ = pendingGoAway.debugData.withByteView { self.goAway(debugData: $0, code: pendingGoAway.code) }
        return true
    }

    /// Resets a stream whose answer the handler has not completed. The reset is not counted as an error of the peer.
    package func reset(_ number: Int32, code: HTTP2ErrorCode) {
        guard let slot = self.slot(number), slot.state.phase == .waiting || slot.state.phase == .streaming else {
            return
        }
        slot.state.isResetByHandler = true
        self.seam.submitReset(number, code)
    }

    /// Ends the connection because of an error after which nothing more is read.
    func fail(_ code: HTTP2ErrorCode) {
        self.hasFailed = true
        self.seam.terminate(code)
    }

    /// Closes every stream, and frees libnghttp2's session. Notifies the handler of streams whose answers it has not
    /// completed. Later calls of the handler have no effect.
    package func end() {
        guard !self.hasEnded else { return }
        self.hasEnded = true
        while let slot = self.open.first { self.close(slot) }
        self.held.letGoOfBlock()
        self.held.tell(self.memory.requestBytes)
        self.seam.end()
    }

    // MARK: Streams

    @inline(__always)
    func slot(_ number: Int32) -> StreamSlot? {
        // The handler may still answer after the connection has ended, until the peer closes it.
        guard !self.hasEnded else { return nil }
        return self.open.find(number) ?? self.seam.slot(number)
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
            self.memory.wasHandlerNotified = true
            self.handler.streamClosed(stream)
        case .receiving, .sending, .free: ()
        }
    }

    private func reportDrained() {
        guard !self.drained.isEmpty else { return }
        let streams = self.drained
        self.drained.removeAll()
        self.memory.wasHandlerNotified = true
        for stream in streams { self.handler.streamDrained(stream) }
    }

    // MARK: Partly received requests

    /// The number of bytes of partly received requests.
    package var heldBytes: Int { self.held.count }

    /// Begins to count the bytes of a request whose body is incomplete.
    func hold(_ slot: StreamSlot) {
        let shortage = self.shortage(for: slot.state.received.count)
        guard shortage == .none else { return self.refuse(slot, shortage) }
        slot.state.isHeld = true
        self.held.hold(slot.state.received.count)
    }

    /// Stops counting the bytes of a request that is complete, refused or closed.
    func letGo(_ slot: StreamSlot) {
        guard slot.state.isHeld else { return }
        slot.state.isHeld = false
        self.held.letGo(slot.state.received.count)
    }

    /// Returns the limit that `bytes` further bytes of partly received requests would exceed.
    func shortage(for bytes: Int) -> RequestShortage {
        let connectionMax = self.memory.limits.requestBytesPerConnectionMax
        return self.held.shortage(for: bytes, connectionMax: connectionMax, all: self.memory.requestBytes)
    }

    /// Delivers the received part of a request that exceeds a limit. The handler answers, and the rest of the request
    /// is discarded.
    func refuse(_ slot: StreamSlot, _ shortage: RequestShortage) {
        self.letGo(slot)
        self.memory.tally.met(shortage == .connection ? .requestBytesPerConnectionMax : .requestBytesMax)
        slot.state.shortage = shortage
        slot.state.bodyStart = slot.state.received.count
        self.deliver(slot)
    }

    /// Counts the bytes of an incomplete block, and handles exceeded limits.
    ///
    /// If the connection exceeds its own limit, it ends. If all connections together exceed theirs, the stream is
    /// refused, and the rest of the block is decoded and dropped. In the second case, the connection ends if its
    /// incomplete field is longer than a header list may be.
    private func holdBlock() {
        var bytes = self.seam.decoder.pendingBytes
        if let slot = self.open.current, slot.state.phase == .receiving, !slot.state.isHeld {
            bytes += slot.state.received.count
        }
        switch self.shortage(for: bytes) {
        case .none: ()
        case .connection: self.endByLimit(.requestBytesPerConnectionMax)
        case .server:
            if self.seam.decoder.pendingBytes > self.memory.limits.headerListBytesMax {
                self.endByLimit(.requestBytesMax)
            } else if let number = self.block.stream {
                self.memory.tally.met(.requestBytesMax)
                self.refuseBlock(of: number, .refusedStream)
            }
        }
        self.held.holdBlock(bytes)
    }

    /// Ends the connection because the peer exceeds a limit.
    func endByLimit(_ limit: TransportLimit, _ code: HTTP2ErrorCode = .enhanceYourCalm) {
        // The function may be called again, because the bytes after the excessive frame are still processed.
        guard !self.isEndedByLimit else { return }
        self.isEndedByLimit = true
        self.memory.tally.met(limit)
        self.seam.terminate(code)
    }

    /// Counts TLS records that have no application data, because they also cost work.
    func controlRecordsReceived(_ count: Int) {
        for _ in 0..<count where !self.isEndedByLimit { self.controlFrameReceived() }
    }

    // MARK: Time

    /// Sets the interval of PING frames.
    ///
    /// - Parameter seconds: the interval; nil to send no PING frames.
    package func setPing(everySeconds seconds: Int?) {
        self.ping.intervalChanged(seconds: seconds, now: self.memory.now)
    }

    /// Runs the timers: ends overdue requests, answers and connections, sends PINGs, and frees spare memory.
    ///
    /// - Returns: false if the peer is gone.
    package func secondPassed() -> Bool {
        let now = self.memory.now
        let limits = self.memory.limits
        self.seam.heads.freeSpareMemory()
        if now >= self.frameDueAt { self.endByLimit(.requestSeconds) }
        if now >= self.acknowledgementDueAt { self.endByLimit(.requestSeconds, .settingsTimeout) }
        // Otherwise the streams end with the connection.
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
            self.seam.submitReset(overdue.state.number, .cancel)
            slot = overdue.state.next
        }
    }

    /// The time at which the connection ends because of an incomplete frame or field block; `Int64.max` if there is
    /// none.
    private var frameDueAt: Int64 {
        self.unfinished.frame == 0 ? .max : self.afterRequestSeconds(from: self.unfinished.since)
    }

    /// The time at which the connection ends because of an unacknowledged SETTINGS frame; `Int64.max` if there is none.
    private var acknowledgementDueAt: Int64 {
        self.streamLimit.owedSince.map { self.afterRequestSeconds(from: $0) } ?? .max
    }

    private func afterRequestSeconds(from start: Int64) -> Int64 {
        start + Int64(self.memory.limits.requestSeconds) * 1000 + 1
    }

    /// The time of the next action of `secondPassed`, unless something is read or written earlier.
    package var isQuietUntil: Int64 {
        guard self.hasReceivedFrame, self.open.receiving.first == nil, self.open.sending.first == nil,
            !self.departure.hasPendingGoAway
        else { return 0 }
        let limits = self.memory.limits
        let idle = self.open.count == 0 ? self.open.idleSince + Int64(limits.idleSeconds) * 1000 + 1 : .max
        let due = min(self.frameDueAt, self.acknowledgementDueAt)
        return min(idle, due, self.ping.dueAt(answerSeconds: limits.pingSeconds))
    }
}
