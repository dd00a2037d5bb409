package import Bytes
// The one file that knows libnghttp2.
internal import CNghttp2

/// What the sessions of one loop share: libnghttp2's callbacks, options and memory, and the stream states.
@safe
package final class HTTP2Core {
    /// Those that a peer is told of, or that libnghttp2 knows, never change.
    package var limits: TransportLimits
    /// The states of the loop's streams.
    package let streams: StreamPool
    /// What has arrived in part on all loops.
    package let requestBytes: RequestBytes
    /// How often the bounds were met on this loop.
    package let tally = LimitTally<TransportLimit>()
    let response = Response()
    var fieldMemory = FieldDecoderMemory()
    /// The head of a frame as the library is to see it.
    var frameHead = ByteBuffer()
    /// Monotonic milliseconds; the driver sets it once a turn.
    package var now: Int64
    /// Seconds since 1970; the driver sets it once a second.
    package var wallSeconds: Int64 = 0
    /// The `date` of HTTP/1's answers.
    var date = HTTPDate()
    /// Memory for the request that comes next. A request is over for us once the handler has had it, while its stream
    /// waits for the answer: so that thousands that wait share what the last one left in the cache.
    var spare = StreamState()
    /// Set whenever the handler was told something outside of a request, or a connection ended.
    var handlerWasTold = false

    fileprivate let callbacks: OpaquePointer
    fileprivate let options: OpaquePointer
    fileprivate let memory: UnsafeMutablePointer<nghttp2_mem>
    fileprivate let pool = MemoryPool()

    /// What the sessions of a loop that begins share.
    ///
    /// - `requestBytes`: what has arrived in part on all loops; nil for a loop that is alone.
    /// - `now`: monotonic milliseconds.
    package init(limits: TransportLimits, streams: StreamPool, requestBytes: RequestBytes? = nil, now: Int64) {
        self.limits = limits
        self.streams = streams
        self.requestBytes = requestBytes ?? RequestBytes(bytesMax: limits.requestBytesMax)
        self.now = now
        var callbacks: OpaquePointer?
        var options: OpaquePointer?
        let failed = unsafe nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&options) != 0
        guard !failed, let callbacks = unsafe callbacks, let options = unsafe options else {
            preconditionFailure("out of memory")
        }
        unsafe self.callbacks = unsafe callbacks
        unsafe self.options = unsafe options
        unsafe nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, beginFrame)
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, beginHeaders)
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, receiveData)
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, receiveFrame)
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, closeStream)
        // What fields a request may have, and how long it is, is judged by `FieldRules`.
        unsafe nghttp2_option_set_no_http_messaging(options, 1)
        // Closed streams are only kept for priorities, which nobody uses any more.
        unsafe nghttp2_option_set_no_closed_streams(options, 1)
        // We count them ourselves, and may add one to each block.
        unsafe nghttp2_option_set_max_continuations(options, limits.continuationFramesMax + 2)
        // Little comes again in our answers; a table of it would cost 2 KB a connection.
        unsafe nghttp2_option_set_max_deflate_dynamic_table_size(options, 0)
        // Our own budget ends a peer that resets too much, with the right error code.
        unsafe nghttp2_option_set_stream_reset_rate_limit(options, 1_000_000, 1_000_000)
        unsafe self.memory = .allocate(capacity: 1)
        let pool = unsafe Unmanaged.passUnretained(self.pool).toOpaque()
        unsafe self.memory.initialize(
            to: nghttp2_mem(
                mem_user_data: pool,
                malloc: poolMalloc,
                free: poolFree,
                calloc: poolCalloc,
                realloc: poolRealloc
            )
        )
    }

    deinit {
        unsafe nghttp2_session_callbacks_del(self.callbacks)
        unsafe nghttp2_option_del(self.options)
        unsafe self.memory.deallocate()
    }
}

/// The server's end of one HTTP/2 connection, without its socket: bytes in; bytes and calls of the handler out.
///
/// A class because libnghttp2 keeps a pointer to it; one a connection, none a request.
@safe
package final class HTTP2Session {
    let core: HTTP2Core
    let handler: any RequestHandler
    let id: ConnectionID
    let listener: Int
    private var session: OpaquePointer?

    var open = OpenStreams()
    /// The stream whose header block is being read, or whose data came last.
    var current: StreamSlot?
    var numbers = StreamNumbers()
    /// Streams to reset with NO_ERROR after their answer: the rest of their request is not wanted.
    private var resetsPending: [Int32] = []
    var drained: [StreamID] = []
    var streamLimit: StreamLimit
    private var heads = AnswerHeads()
    private(set) var cutter: FrameCutter
    /// The piece of a field block that has come and is not read yet.
    var piece: FrameCutter.Piece?
    var decoder: FieldDecoder
    /// The stream whose block is being read; nil when its fields are not wanted: the library has not taken its first
    /// frame, or there was a fault in them.
    var blockStream: Int32?
    /// Whether the library is given a CONTINUATION of our own, which ends a block and is not the peer's.
    var isEndingBlock = false
    /// Bytes of the header list that is being read, as HTTP/2 counts them.
    var fieldBytes = 0
    /// What has begun to arrive and not ended.
    var unfinished = UnfinishedFrame()
    /// What is known of the header list that is being read.
    var rules = FieldRules.head
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
    var pendingBeforeSettings = 0

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
    /// - `listener`: the place in the server's list of listeners.
    /// - `streamsAtFirst`: what the first SETTINGS frame says; nil for `streamsPerConnectionMax`.
    package init(
        core: HTTP2Core,
        handler: any RequestHandler,
        id: ConnectionID,
        listener: Int,
        streamsAtFirst: Int? = nil
    ) {
        self.core = core
        self.handler = handler
        self.id = id
        self.listener = listener
        self.budget = ControlFrameBudget(
            burst: core.limits.controlFramesBurst,
            perSecond: core.limits.controlFramesPerSecond,
            now: core.now
        )
        self.updateBudget = self.budget
        self.streamLimit = StreamLimit(streamsAtFirst ?? core.limits.streamsPerConnectionMax)
        self.idleSince = core.now
        self.ping = PingTimer(now: core.now)
        self.cutter = FrameCutter(frameBytesMax: core.limits.frameBytesMax)
        self.decoder = FieldDecoder(literalBytesMax: core.limits.headerListBytesMax * Self.overlongListFactor)
        let this = unsafe Unmanaged.passUnretained(self).toOpaque()
        let made = core.pool.lendingFrameBuffer {
            unsafe nghttp2_session_server_new3(&self.session, core.callbacks, this, core.options, core.memory)
        }
        self.hasFailed = made != 0 || !self.submitSettings()
    }

    deinit { self.end() }

    /// The settings as APNs announces them.
    private func submitSettings() -> Bool {
        let limits = self.core.limits
        let settings = [
            (NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 4096),
            (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, self.streamsToldToLibrary),
            (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.streamWindowBytes),
            (NGHTTP2_SETTINGS_MAX_FRAME_SIZE, limits.frameBytesMax),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.headerListBytesMax),
        ].map { nghttp2_settings_entry(settings_id: Int32($0.0.rawValue), value: UInt32($0.1)) }
        let window = Int32(limits.connectionWindowBytes)
        return unsafe nghttp2_submit_settings(self.session, 0, settings, settings.count) == 0
            && nghttp2_session_set_local_window_size(self.session, 0, 0, window) == 0
    }

    /// Whether both sides are done: nothing to read, nothing to write.
    package var isFinished: Bool {
        unsafe nghttp2_session_want_read(self.session) == 0 && nghttp2_session_want_write(self.session) == 0
    }

    /// Whether `produce` may have something.
    package var wantsToWrite: Bool {
        unsafe nghttp2_session_want_write(self.session) != 0 || !self.resetsPending.isEmpty
            || self.farewell.map { $0.mayLeave(self.open, now: self.core.now) } ?? false
    }

    /// Frames made and not yet produced.
    package var framesPending: Int {
        unsafe nghttp2_session_get_outbound_queue_size(self.session)
    }

    // MARK: Bytes

    /// Takes what the peer sent. Every fault is answered with the error that the protocol names; after one that ends
    /// the connection `isFinished` or `hasFailed` becomes true.
    package func receive(_ bytes: ByteView) {
        guard !self.hasFailed, bytes.count > 0 else { return }
        // A SETTINGS frame may have begun in bytes that came before.
        self.pendingBeforeSettings = self.framesPending
        self.letGoOfBlock()
        var rest = bytes
        while !self.hasFailed, let part = self.cutter.next(&rest) {
            switch part {
            case .other(let bytes): self.feed(bytes)
            case .block(let piece): self.receive(piece)
            case .begun(let head, let bytes):
                self.frameBegan(head)
                self.feed(bytes)
            }
        }
        self.noteUnfinishedFrame()
        self.countHeldBytes()
    }

    /// Gives the library bytes to take.
    func feed(_ bytes: ByteView) {
        let taken = unsafe nghttp2_session_mem_recv(
            self.session,
            bytes.buffer.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self),
            bytes.count
        )
        guard taken < 0 else { return }
        self.hasFailed = true
        let isBadPreface = taken == Int(NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue)
        self.terminate(isBadPreface ? .protocolError : .enhanceYourCalm)
    }

    /// Appends what is to be sent, until there is nothing more or `output` holds `bytesMax`.
    package func produce(into output: inout ByteBuffer, bytesMax: Int) {
        while true {
            guard output.count < bytesMax else {
                self.core.tally.met(.outputBytesMax)
                break
            }
            var bytes: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(self.session, &bytes)
            guard count > 0, let bytes = unsafe bytes else {
                self.hasFailed = self.hasFailed || count < 0
                guard count == 0, self.submitResets() || self.sayFarewell() else {
                    self.heads.removeAll()
                    break
                }
                continue
            }
            let frame = unsafe UnsafeRawBufferPointer(start: bytes, count: count)
            // HEADERS.
            if unsafe frame[3] == 1 {
                self.heads.move(into: unsafe ByteView(frame), to: &output)
                continue
            }
            // Few frames say that something is wrong: RST_STREAM is 3, GOAWAY 7.
            if unsafe frame[3] & 0xFB == 3 { unsafe self.countError(frame) }
            if self.streamLimit.isUnsent {
                unsafe self.appendSettings(frame, to: &output)
            } else {
                unsafe output.append(ByteView(frame))
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
        guard unsafe self.session != nil, self.streamLimit.change(to: limit) else { return false }
        let name = Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue)
        let setting = nghttp2_settings_entry(settings_id: name, value: UInt32(self.streamsToldToLibrary))
        return unsafe nghttp2_submit_settings(self.session, 0, [setting], 1) == 0
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
            unsafe nghttp2_submit_rst_stream(self.session, 0, number, NGHTTP2_NO_ERROR.rawValue)
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
        self.open.move(slot, to: .sending, now: self.core.now)
        if let body, !slot.state.hasHeadMethod {
            slot.state.output.append(body)
            self.queuedBytes += body.count
        }
        self.submit(response, slot, hasBody: !slot.state.output.isEmpty)
        if !slot.state.hasRequestEnded { self.resetsPending.append(number) }
        return true
    }

    /// Answers a waiting stream with a head; the body follows through `write` and `finish`, but for HEAD.
    package func beginStreaming(_ number: Int32, _ response: Response) -> Bool {
        guard let slot = self.slot(number), slot.state.phase == .waiting else { return false }
        slot.state.dropRequest(keepingBytesMax: 0)
        self.open.move(slot, to: .streaming, now: self.core.now)
        self.submit(response, slot, hasBody: !slot.state.hasHeadMethod)
        return true
    }

    /// - Returns: the bytes that wait on the stream, these included; nil when it is gone or finished.
    package func write(_ number: Int32, _ bytes: ByteView) -> Int? {
        guard let slot = self.slot(number), slot.state.phase == .streaming else { return nil }
        slot.state.output.append(bytes)
        self.queuedBytes += bytes.count
        self.core.noteStreaming(slot)
        unsafe nghttp2_session_resume_data(self.session, number)
        if self.ping.otherBytesLeave(now: self.core.now) { self.sendPing() }
        return slot.state.output.count
    }

    /// Ends a streaming answer after what was written.
    package func finish(_ number: Int32) {
        guard let slot = self.slot(number), slot.state.phase == .streaming else { return }
        self.open.move(slot, to: .sending, now: self.core.now)
        if !slot.state.hasRequestEnded { self.resetsPending.append(number) }
        unsafe nghttp2_session_resume_data(self.session, number)
    }

    private func submit(_ response: Response, _ slot: StreamSlot, hasBody: Bool) {
        let number = slot.state.number
        self.heads.append(response, for: number)
        guard hasBody else {
            unsafe nghttp2_submit_response(self.session, number, nil, 0, nil)
            return
        }
        var provider = unsafe nghttp2_data_provider(
            source: nghttp2_data_source(ptr: UnsafeMutableRawPointer(slot.pointer)),
            read_callback: readBody
        )
        unsafe nghttp2_submit_response(self.session, number, nil, 0, &provider)
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
        guard unsafe self.session != nil else { return 0 }
        var last = unsafe min(self.lastTaken, nghttp2_session_get_last_proc_stream_id(self.session))
        if inFlight == .answeredFirst {
            // The frame is made when it leaves: a request that is read before that is among those it answers for.
            self.farewell = self.farewell ?? Farewell(debugData: debugData.array, code: code, since: self.core.now)
            return last
        }
        if case .refused(let first) = inFlight { last = max(0, min(last, first - 2)) }
        let data = unsafe debugData.buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
        unsafe nghttp2_submit_goaway(self.session, 0, last, code.number, data, debugData.count)
        self.lastTaken = last
        if inFlight == .dropped { self.hasFailed = true }
        return last
    }

    /// Resets a stream that the handler has not answered to its end.
    package func reset(_ number: Int32, code: HTTP2ErrorCode) {
        guard let slot = self.slot(number), slot.state.phase == .waiting || slot.state.phase == .streaming else {
            return
        }
        unsafe nghttp2_submit_rst_stream(self.session, 0, number, code.number)
    }

    /// Ends the connection for a fault of the peer's.
    func terminate(_ code: HTTP2ErrorCode) {
        unsafe nghttp2_session_terminate_session(self.session, code.number)
    }

    func sendPing() {
        unsafe nghttp2_submit_ping(self.session, 0, nil)
    }

    /// Forgets every stream, telling the handler of those it waits for, and frees the session. Whatever the handler
    /// asks of the session from then on comes to nothing.
    package func end() {
        guard let session = unsafe self.session else { return }
        unsafe self.session = nil
        while let slot = self.open.first { self.close(slot) }
        self.letGoOfBlock()
        self.countHeldBytes()
        unsafe nghttp2_session_del(session)
    }

    // MARK: Streams

    func slot(_ number: Int32) -> StreamSlot? {
        // Answers still come while a connection whose session has ended waits for its peer to end too.
        guard unsafe self.session != nil else { return nil }
        if let current = self.current, current.state.number == number { return current }
        // Answers mostly come, and leave, in the order of the requests: the library need not search.
        if let oldest = self.open.waiting.first, oldest.state.number == number { return oldest }
        if let oldest = self.open.sending.first, oldest.state.number == number { return oldest }
        guard let data = unsafe nghttp2_session_get_stream_user_data(self.session, number) else { return nil }
        return unsafe StreamSlot(pointer: data.assumingMemoryBound(to: StreamState.self))
    }

    // MARK: What libnghttp2 reports

    fileprivate func headersBegan(_ frame: UnsafePointer<nghttp2_frame>) {
        self.blockStream = unsafe frame.pointee.hd.stream_id
        self.fieldBytes = 0
        unsafe self.streamBegan(frame)
        self.readPiece()
    }

    private func streamBegan(_ frame: UnsafePointer<nghttp2_frame>) {
        guard unsafe frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST else {
            self.rules = .trailers
            self.current = nil
            return
        }
        self.rules = .head
        let number = unsafe frame.pointee.hd.stream_id
        self.numbers.opened(number)
        guard number <= self.lastTaken else { return self.refuseToBegin(number) }
        let isRoom = self.open.count < self.streamLimit.enforced
        guard isRoom, let slot = self.core.streams.take(number: number, now: self.core.now) else {
            self.core.tally.met(isRoom ? .streamsPerLoopMax : .streamsPerConnectionMax)
            return self.refuseToBegin(number)
        }
        slot.state.exchangeRequestMemory(with: &self.core.spare)
        self.open.append(slot)
        self.current = slot
        self.updateBudget.earned()
        unsafe nghttp2_session_set_stream_user_data(self.session, number, UnsafeMutableRawPointer(slot.pointer))
    }

    /// Resets a stream that was never looked at, so that its request may be sent again elsewhere.
    private func refuseToBegin(_ number: Int32) {
        self.current = nil
        self.numbers.cutShort(number)
        unsafe nghttp2_submit_rst_stream(self.session, 0, number, NGHTTP2_REFUSED_STREAM.rawValue)
    }

    /// Resets a stream whose request is malformed, or too much to look at; another reset of it does nothing.
    func refuse(_ number: Int32, _ code: HTTP2ErrorCode) {
        unsafe nghttp2_submit_rst_stream(self.session, 0, number, code.number)
    }

    fileprivate func frameReceived(_ frame: UnsafePointer<nghttp2_frame>) {
        self.hasReceivedFrame = true
        let hasEndFlag = unsafe UInt32(frame.pointee.hd.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
        switch unsafe UInt32(frame.pointee.hd.type) {
        case NGHTTP2_HEADERS.rawValue:
            unsafe self.headersReceived(frame, hasEnded: hasEndFlag)
        case NGHTTP2_DATA.rawValue:
            if hasEndFlag { self.requestEnded(unsafe frame.pointee.hd.stream_id) }
        // ACK has the same bit as END_STREAM.
        case NGHTTP2_PING.rawValue:
            if hasEndFlag { self.ping.answered() } else { self.controlFrameReceived() }
        case NGHTTP2_SETTINGS.rawValue:
            if hasEndFlag { self.streamLimit.acknowledged(now: self.core.now) } else { self.settingsReceived() }
        case NGHTTP2_RST_STREAM.rawValue:
            self.numbers.resetByPeer(unsafe frame.pointee.hd.stream_id)
            self.controlFrameReceived()
        case NGHTTP2_PRIORITY.rawValue, NGHTTP2_GOAWAY.rawValue:
            self.controlFrameReceived()
        case NGHTTP2_WINDOW_UPDATE.rawValue:
            self.windowUpdateReceived()
        default: ()
        }
    }

    private func headersReceived(_ frame: UnsafePointer<nghttp2_frame>, hasEnded: Bool) {
        guard self.blockStream != nil else { return }
        let number = unsafe frame.pointee.hd.stream_id
        let isHead = unsafe frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST
        guard isHead ? self.rules.isWholeHead : hasEnded else { return self.refuse(number, .protocolError) }
        if isHead, let slot = self.slot(number) {
            slot.state.bodyStart = slot.state.received.count
            slot.state.bodyBytesMissing = self.rules.contentLength
            slot.state.hasHeadMethod = self.rules.hasHeadMethod
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
}

private typealias User = UnsafeMutableRawPointer

/// Recovers the session from libnghttp2's user data, which outlives every call into the library.
@inline(__always)
private func withSession<Result>(_ user: User?, _ body: (HTTP2Session) -> Result) -> Result {
    unsafe Unmanaged<HTTP2Session>.fromOpaque(user.unsafelyUnwrapped)._withUnsafeGuaranteedRef { body($0) }
}

private func beginFrame(_: OpaquePointer?, _ head: UnsafePointer<nghttp2_frame_hd>?, _ user: User?) -> Int32 {
    let head = unsafe head.unsafelyUnwrapped
    switch unsafe UInt32(head.pointee.type) {
    case NGHTTP2_HEADERS.rawValue:
        unsafe withSession(user) { unsafe $0.headersAnnounced(head.pointee.stream_id) }
    case NGHTTP2_SETTINGS.rawValue:
        unsafe withSession(user) { $0.pendingBeforeSettings = $0.framesPending }
    case NGHTTP2_CONTINUATION.rawValue:
        unsafe withSession(user) { $0.continuationAnnounced() }
    default: ()
    }
    return 0
}

private func beginHeaders(_: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ user: User?) -> Int32 {
    unsafe withSession(user) { unsafe $0.headersBegan(frame.unsafelyUnwrapped) }
    return 0
}

private func receiveData(
    _: OpaquePointer?,
    _: UInt8,
    _ number: Int32,
    _ bytes: UnsafePointer<UInt8>?,
    _ count: Int,
    _ user: UnsafeMutableRawPointer?
) -> Int32 {
    let bytes = unsafe ByteView(UnsafeRawBufferPointer(start: bytes, count: count))
    unsafe withSession(user) { $0.dataReceived(number, bytes) }
    return 0
}

private func receiveFrame(_: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ user: User?) -> Int32 {
    unsafe withSession(user) { unsafe $0.frameReceived(frame.unsafelyUnwrapped) }
    return 0
}

private func closeStream(_: OpaquePointer?, _ number: Int32, _ errorCode: UInt32, _ user: User?) -> Int32 {
    unsafe withSession(user) { $0.streamClosed(number, errorCode: errorCode) }
    return 0
}

private func readBody(
    _: OpaquePointer?,
    _: Int32,
    _ room: UnsafeMutablePointer<UInt8>?,
    _ count: Int,
    _ flags: UnsafeMutablePointer<UInt32>?,
    _ source: UnsafeMutablePointer<nghttp2_data_source>?,
    _ user: UnsafeMutableRawPointer?
) -> Int {
    let state = unsafe source.unsafelyUnwrapped.pointee.ptr.assumingMemoryBound(to: StreamState.self)
    let slot = unsafe StreamSlot(pointer: state)
    let room = unsafe UnsafeMutableRawBufferPointer(start: room, count: count)
    let body = unsafe withSession(user) { unsafe $0.bodyWanted(slot, room) }
    guard body.count > 0 || body.isEnd else { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
    if body.isEnd { unsafe flags.unsafelyUnwrapped.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    return body.count
}
