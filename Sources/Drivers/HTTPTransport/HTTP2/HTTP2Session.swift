package import Bytes

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

    var open = OpenStreams()
    /// The stream whose header block is being read, or whose data came last.
    var current: StreamSlot?
    var numbers = StreamNumbers()
    /// Streams to reset with NO_ERROR after their answer: the rest of their request is not wanted.
    private var resetsPending: [Int32] = []
    var drained: [StreamID] = []
    private(set) var streamLimit: StreamLimit
    /// The field block that is being read.
    var block = FieldBlock()
    /// What has begun to arrive and not ended.
    var unfinished = UnfinishedFrame()
    var budget: ControlFrameBudget
    /// For WINDOW_UPDATE alone, of which peers send one a stream, and two for each few KiB of DATA.
    var updateBudget: ControlFrameBudget
    /// The CONTINUATION frames of the present header block.
    var continuations = 0
    /// The bytes of the requests that have arrived in part, and what of them is counted with all others'.
    package internal(set) var heldBytes = 0
    var countedBytes = 0
    /// The bytes of answers that have not left their streams.
    package internal(set) var queuedBytes = 0
    var idleSince: Int64
    /// The frames that waited when the SETTINGS frame that is being read began, or went on.
    private var pendingBeforeSettings = 0

    var ping: PingTimer
    /// The newest stream that a GOAWAY frame lets the peer believe in. The library takes further ones until that frame
    /// has left.
    private var lastTaken = Int32.max
    /// The GOAWAY that leaves once the streams are answered.
    var farewell: Farewell?

    /// Whether the peer has said anything valid yet.
    private(set) var hasReceivedFrame = false
    var hasCarriedRequest = false
    /// Whether the connection has to end as soon as what is ready has been sent.
    package private(set) var hasFailed = false
    var isEndedByLimit = false

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
        self.budget = ControlFrameBudget(
            burst: limits.controlFramesBurst,
            perSecond: limits.controlFramesPerSecond,
            now: memory.now
        )
        self.updateBudget = self.budget
        self.streamLimit = StreamLimit(streamsAtFirst ?? limits.streamsPerConnectionMax)
        self.idleSince = memory.now
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
            || self.farewell.map { $0.mayLeave(self.open, now: self.memory.now) } ?? false
    }

    /// Frames made and not yet produced.
    package var framesPending: Int { self.seam.framesPending }

    // MARK: Bytes

    /// Takes what the peer sent. Every fault is answered with the error that the protocol names; after one that ends
    /// the connection `isFinished` or `hasFailed` becomes true.
    package func receive(_ bytes: ByteView) {
        guard !self.hasFailed, bytes.count > 0 else { return }
        // A SETTINGS frame may have begun in bytes that came before.
        self.pendingBeforeSettings = self.framesPending
        self.letGoOfBlock()
        self.seam.receive(bytes, for: self)
        self.noteUnfinishedFrame()
        self.countHeldBytes()
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
        if self.ping.otherBytesLeave(now: self.memory.now) { self.seam.submitPing() }
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
        var last = min(self.lastTaken, self.seam.lastStream)
        if inFlight == .answeredFirst {
            // The frame is made when it leaves: a request that is read before that is among those it answers for.
            self.farewell = self.farewell ?? Farewell(debugData: debugData.array, code: code, since: self.memory.now)
            return last
        }
        if case .refused(let first) = inFlight { last = max(0, min(last, first - 2)) }
        self.seam.submitGoAway(last: last, code, debugData)
        self.lastTaken = last
        if inFlight == .dropped { self.hasFailed = true }
        return last
    }

    /// Resets a stream that the handler has not answered to its end.
    package func reset(_ number: Int32, code: HTTP2ErrorCode) {
        guard let slot = self.slot(number), slot.state.phase == .waiting || slot.state.phase == .streaming else {
            return
        }
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
        self.letGoOfBlock()
        self.countHeldBytes()
        self.seam.end()
    }

    // MARK: Streams

    func slot(_ number: Int32) -> StreamSlot? {
        // Answers still come while a connection whose session has ended waits for its peer to end too.
        guard !self.hasEnded else { return nil }
        if let current = self.current, current.state.number == number { return current }
        // Answers mostly come, and leave, in the order of the requests: the library need not search.
        if let oldest = self.open.waiting.first, oldest.state.number == number { return oldest }
        if let oldest = self.open.sending.first, oldest.state.number == number { return oldest }
        return self.seam.slot(number)
    }

    /// Resets a stream whose request is malformed, or too much to look at; another reset of it does nothing.
    func refuse(_ number: Int32, _ code: HTTP2ErrorCode) {
        self.seam.submitReset(number, code)
    }

    // MARK: What the library reports

    /// A frame has come whole.
    func frameReceived() {
        self.hasReceivedFrame = true
    }

    /// A block has begun that the library has taken: its fields follow.
    func headersBegan(_ number: Int32, isRequest: Bool) {
        self.block.taken(for: number, isRequest: isRequest)
        guard isRequest else {
            self.current = nil
            return
        }
        self.numbers.opened(number)
        guard number <= self.lastTaken else { return self.refuseToBegin(number) }
        let isRoom = self.open.count < self.streamLimit.enforced
        guard isRoom, let slot = self.memory.streams.take(number: number, now: self.memory.now) else {
            self.memory.tally.met(isRoom ? .streamsPerLoopMax : .streamsPerConnectionMax)
            return self.refuseToBegin(number)
        }
        slot.state.exchangeRequestMemory(with: &self.memory.spare)
        self.open.append(slot)
        self.current = slot
        self.updateBudget.earned()
        self.seam.keep(slot, with: number)
    }

    /// Resets a stream that was never looked at, so that its request may be sent again elsewhere.
    private func refuseToBegin(_ number: Int32) {
        self.current = nil
        self.numbers.cutShort(number)
        self.seam.submitReset(number, .refusedStream)
    }

    /// A block has ended.
    func headersReceived(_ number: Int32, isRequest: Bool, hasEnded: Bool) {
        guard self.block.stream != nil else { return }
        let rules = self.block.rules
        guard isRequest ? rules.isWholeHead : hasEnded else { return self.refuse(number, .protocolError) }
        if isRequest, let slot = self.slot(number) {
            slot.state.bodyStart = slot.state.received.count
            slot.state.bodyBytesMissing = rules.contentLength
            slot.state.hasHeadMethod = rules.hasHeadMethod
            if slot.state.isHeaderListTooLarge {
                slot.state.hasRequestEnded = hasEnded
                self.deliver(slot)
            } else if !hasEnded {
                slot.state.bodyBytesMax = self.handler.bodyBytesMax(for: self.request(slot))
                self.hold(slot)
            }
        }
        if hasEnded { self.requestEnded(number) }
    }

    func pingReceived(isAnswer: Bool) {
        if isAnswer { self.ping.answered() } else { self.controlFrameReceived() }
    }

    func settingsAnnounced() {
        self.pendingBeforeSettings = self.framesPending
    }

    /// libnghttp2 resets a stream whose window grows too large by settings of the peer's, where RFC 9113 §6.9.2 has the
    /// connection end: then it has queued more than its own answer.
    func settingsReceived(isAnswer: Bool) {
        guard !isAnswer else { return self.streamLimit.acknowledged(now: self.memory.now) }
        if self.framesPending > self.pendingBeforeSettings + 1 { self.terminate(.flowControlError) }
        self.controlFrameReceived()
    }

    /// - Returns: how many streams the SETTINGS frame has to announce that leaves; nil when it is about something else.
    func streamLimitLeaves() -> Int? { self.streamLimit.sent(now: self.memory.now) }

    func resetReceived(_ number: Int32) {
        self.numbers.resetByPeer(number)
        self.controlFrameReceived()
    }
}
