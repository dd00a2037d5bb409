// Only this file uses libnghttp2.
internal import CNghttp2
internal import Wire

/// The parts of libnghttp2 that the sessions of one loop share: callbacks, options, memory, and the state of the
/// current call. Only one session uses them at a time.
@safe
package final class HTTP2Library {
    /// The memory that the decoders of the loop's sessions share.
    fileprivate var fieldMemory = FieldDecoderMemory()
    /// A frame that is composed for libnghttp2.
    fileprivate var frame = ByteBuffer()
    /// The received part of a field block that has not been decoded.
    fileprivate var piece: FrameCutter.Piece?
    /// True while libnghttp2 processes a CONTINUATION frame that was added to end a block. The peer did not send this
    /// frame.
    fileprivate var isEndingBlock = false
    /// The number of queued frames before the current SETTINGS frame arrived, or before its latest part arrived.
    fileprivate var pendingBeforeSettings = 0

    fileprivate let callbacks: OpaquePointer
    fileprivate let options: OpaquePointer
    fileprivate let memory: UnsafeMutablePointer<nghttp2_mem>
    fileprivate let pool = MemoryPool()

    /// Creates the library for the sessions of a new loop.
    package init(limits: TransportLimits) {
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
        // `FieldRules` checks the fields and the length of a request.
        unsafe nghttp2_option_set_no_http_messaging(options, 1)
        // libnghttp2 would keep closed streams only for priorities, which are obsolete.
        unsafe nghttp2_option_set_no_closed_streams(options, 1)
        // The session counts the peer's CONTINUATION frames. `LibrarySeam` may add one to each block.
        unsafe nghttp2_option_set_max_continuations(options, limits.continuationFramesMax + 2)
        // A table would cost 2 KB per connection, and few fields of answers repeat.
        unsafe nghttp2_option_set_max_deflate_dynamic_table_size(options, 0)
        // This disables libnghttp2's limit. The budget of control frames ends a connection with too many resets, with
        // the correct error code.
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

/// The libnghttp2 session of one connection. Some frames that libnghttp2 gets or produces differ from the frames on the
/// wire. All these differences are made in this type; the page `LibrarySeam` describes them.
///
/// The HTTP/2 session passes in received bytes and answers. This type calls it with frames and fields, and returns the
/// bytes to send.
///
/// The type is a class, because libnghttp2 calls back during its methods. Methods that may call the HTTP/2 session get
/// it as an argument, so no reference is stored.
@safe
final class LibrarySeam {
    private let library: HTTP2Library
    private var session: OpaquePointer?

    // MARK: From the peer

    private(set) var cutter: FrameCutter
    private(set) var decoder: FieldDecoder
    private var repeated = RepeatedFields()

    // MARK: To the peer

    var heads = AnswerHeads()
    /// The stream limit that libnghttp2 uses: twice the maximum limit that is sent to peers.
    ///
    /// libnghttp2 would end the connection at the first stream above its limit. RFC 9113 §5.1.2 also allows the server
    /// to refuse the stream, which clients then retry.
    private let streamsBelieved: Int

    /// - `literalBytesMax`: the maximum number of bytes of a literal name and its coded value.
    init(_ library: HTTP2Library, limits: TransportLimits, literalBytesMax: Int) {
        self.library = library
        self.streamsBelieved = limits.streamsPerConnectionMax * 2
        self.cutter = FrameCutter(frameBytesMax: limits.frameBytesMax)
        self.decoder = FieldDecoder(literalBytesMax: literalBytesMax)
    }

    deinit { self.end() }

    /// Creates the libnghttp2 session, which calls back `session`, and submits the same SETTINGS as APNs.
    ///
    /// - Returns: false if memory is exhausted.
    func begin(for session: HTTP2Session, _ limits: TransportLimits) -> Bool {
        let user = unsafe Unmanaged.passUnretained(session).toOpaque()
        let library = self.library
        let made = library.pool.lendingFrameBuffer {
            unsafe nghttp2_session_server_new3(
                &self.session,
                library.callbacks,
                user,
                library.options,
                library.memory
            )
        }
        guard made == 0 else { return false }
        let isSubmitted = self.submit([
            (NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, FieldDecoder.tableBytesMax),
            (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, self.streamsBelieved),
            (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.streamWindowBytes),
            (NGHTTP2_SETTINGS_MAX_FRAME_SIZE, limits.frameBytesMax),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.headerListBytesMax),
        ])
        let window = Int32(limits.connectionWindowBytes)
        return unsafe isSubmitted && nghttp2_session_set_local_window_size(self.session, 0, 0, window) == 0
    }

    private func submit(_ settings: [(name: nghttp2_settings_id, value: Int)]) -> Bool {
        let entries = settings.map {
            nghttp2_settings_entry(settings_id: Int32($0.name.rawValue), value: UInt32($0.value))
        }
        return unsafe nghttp2_submit_settings(self.session, 0, entries, entries.count) == 0
    }

    /// Frees the libnghttp2 session. No other method may be called after this.
    func end() {
        guard let session = unsafe self.session else { return }
        unsafe self.session = nil
        unsafe nghttp2_session_del(session)
    }

    // MARK: The state of libnghttp2

    /// True if nothing more will be read or written.
    var isFinished: Bool {
        unsafe nghttp2_session_want_read(self.session) == 0 && nghttp2_session_want_write(self.session) == 0
    }

    var wantsToWrite: Bool { unsafe nghttp2_session_want_write(self.session) != 0 }

    /// The number of queued frames that have not been produced.
    var framesPending: Int { unsafe nghttp2_session_get_outbound_queue_size(self.session) }

    /// The number of the peer's newest accepted stream.
    var lastStream: Int32 { unsafe nghttp2_session_get_last_proc_stream_id(self.session) }

    /// Returns the state of an open stream.
    func slot(_ number: Int32) -> StreamSlot? {
        guard let data = unsafe nghttp2_session_get_stream_user_data(self.session, number) else { return nil }
        return unsafe StreamSlot(pointer: data.assumingMemoryBound(to: StreamState.self))
    }

    func keep(_ slot: StreamSlot, with number: Int32) {
        unsafe nghttp2_session_set_stream_user_data(self.session, number, UnsafeMutableRawPointer(slot.pointer))
    }

    // MARK: Submitting frames

    /// Submits a head. If `hasBody` is true, a body follows, whose bytes the HTTP/2 session provides.
    func submit(_ response: Response, for slot: StreamSlot, hasBody: Bool) {
        let number = slot.state.number
        self.heads.append(response.block.view, for: number)
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

    /// Submits `100 Continue`. The answer follows later.
    func submitContinue(for number: Int32) {
        var block = ByteBuffer()
        FieldEncoder.append(status: 100, to: &block)
        self.heads.append(block.view, for: number)
        unsafe nghttp2_submit_headers(self.session, UInt8(NGHTTP2_FLAG_NONE.rawValue), number, nil, nil, 0, nil)
    }

    /// Resumes a body that has further bytes or has ended.
    func resume(_ number: Int32) {
        unsafe nghttp2_session_resume_data(self.session, number)
    }

    /// Submits a new stream limit. The HTTP/2 session provides its value when the frame is sent.
    func submitStreamLimit() -> Bool {
        self.submit([(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, self.streamsBelieved)])
    }

    /// Submits a new stream window together with the stream limit. The HTTP/2 session provides both values when the
    /// frame is sent.
    ///
    /// - Parameter believed: the initial window, which libnghttp2 continues to use.
    func submitStreamWindow(believed: Int) -> Bool {
        self.submit([
            (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, self.streamsBelieved),
            (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, believed),
        ])
    }

    func submitPing() {
        unsafe nghttp2_submit_ping(self.session, 0, nil)
    }

    /// Resets a stream. Does nothing if the stream was reset before.
    func submitReset(_ number: Int32, _ code: HTTP2ErrorCode) {
        unsafe nghttp2_submit_rst_stream(self.session, 0, number, code.rawValue)
    }

    func submitGoAway(last: Int32, _ code: HTTP2ErrorCode, _ debugData: ByteView) {
        let data = unsafe debugData.buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
        unsafe nghttp2_submit_goaway(self.session, 0, last, code.rawValue, data, debugData.count)
    }

    /// Submits a GOAWAY frame with the largest stream number. It asks the peer to open no further streams.
    func submitShutdownNotice() {
        unsafe nghttp2_submit_shutdown_notice(self.session)
    }

    /// Ends the connection because of an error of the peer.
    func terminate(_ code: HTTP2ErrorCode) {
        unsafe nghttp2_session_terminate_session(self.session, code.rawValue)
    }
}

// MARK: - From the peer to libnghttp2

extension LibrarySeam {
    /// Processes bytes from the peer, and reports their content to the session.
    func receive(_ bytes: ByteView, for session: HTTP2Session) {
        // A SETTINGS frame may have begun in earlier bytes.
        self.library.pendingBeforeSettings = self.framesPending
        var rest = bytes
        while !session.hasFailed, let part = self.cutter.next(&rest) {
            switch part {
            case .other(let bytes): self.feed(bytes, for: session)
            case .block(let piece): self.receive(piece, for: session)
            case .begun(let head, let bytes):
                session.frameBegan(head)
                self.feed(bytes, for: session)
            }
        }
    }

    /// Decodes a part of a field block, and passes its frame without this part to libnghttp2.
    ///
    /// All parts are decoded before libnghttp2 gets the end of the block. A block in a single frame is decoded as soon
    /// as libnghttp2 has accepted the frame. The parts of a longer block are decoded as they arrive, and an added empty
    /// frame then ends the block for libnghttp2.
    private func receive(_ piece: FrameCutter.Piece, for session: HTTP2Session) {
        let isWholeBlock = piece.beginsFrame && piece.head.isHeaders && piece.endsBlock
        self.library.piece = piece
        if piece.beginsFrame {
            if piece.head.isHeaders { session.blockBegan() }
            self.feed(piece.head.withoutBlock(endsBlock: isWholeBlock), piece.priority, for: session)
        }
        self.readPiece(for: session)
        guard piece.endsBlock, !isWholeBlock else { return }
        self.library.isEndingBlock = true
        self.feed(piece.head.end, ByteView(), for: session)
        self.library.isEndingBlock = false
    }

    private func feed(_ head: FrameHead, _ payload: ByteView, for session: HTTP2Session) {
        self.library.frame.removeAll()
        head.write(to: &self.library.frame)
        self.library.frame.append(payload)
        self.feed(self.library.frame.view, for: session)
    }

    private func feed(_ bytes: ByteView, for session: HTTP2Session) {
        let taken = unsafe nghttp2_session_mem_recv(
            self.session,
            bytes.buffer.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self),
            bytes.count
        )
        guard taken < 0 else { return }
        let isBadPreface = taken == Int(NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue)
        session.fail(isBadPreface ? .protocolError : .enhanceYourCalm)
    }

    /// Decodes the received part of a block, unless it has been decoded.
    private func readPiece(for session: HTTP2Session) {
        guard let piece = self.library.piece else { return }
        self.library.piece = nil
        do throws(FieldDecoder.Fault) {
            if piece.beginsFrame, piece.endsBlock, piece.head.isHeaders {
                try self.readBlock(piece.bytes, for: session)
            } else {
                try self.read(piece.bytes, isLast: piece.endsBlock, for: session)
            }
        } catch {
            session.blockFailed()
        }
    }

    @inline(__always)
    private func read(_ bytes: ByteView, isLast: Bool, for session: HTTP2Session) throws(FieldDecoder.Fault) {
        // The caller keeps a reference to the session. A counted reference in the closure would be retained for each
        // block.
        let session = unsafe Unmanaged.passUnretained(session)
        try self.decoder.decode(bytes, isLast: isLast, in: &self.library.fieldMemory) { name, value, note in
            unsafe session._withUnsafeGuaranteedRef { $0.fieldReceived(name, value, &note) }
        }
    }

    /// Reads a whole block. Recognizes runs of fields that repeat in every request, and does not decode them.
    private func readBlock(_ bytes: ByteView, for session: HTTP2Session) throws(FieldDecoder.Fault) {
        var rest = bytes
        if self.repeated.blockBegins(tableChanges: self.decoder.tableChanges), session.slotOfBlock != nil {
            try self.rememberRuns(of: &rest, for: session)
        } else if self.repeated.hasRuns {
            try self.readRuns(of: &rest, for: session)
        }
        try self.read(rest, isLast: true, for: session)
    }

    /// Reads the remembered runs at the start of a block, and the literals between them.
    private func readRuns(of rest: inout ByteView, for session: HTTP2Session) throws(FieldDecoder.Fault) {
        let listBytesMax = session.memory.limits.headerListBytesMax
        var index = 0
        while rest.count > 0 {
            var count =
                session.slotOfBlock.map { slot in
                    self.repeated.take(index, from: rest, &session.block, into: slot, listBytesMax: listBytesMax)
                } ?? 0
            if count > 0 {
                self.decoder.fieldsTaken()
                index += 1
            } else {
                count = FieldDecoder.countOfPassing(rest)
                guard count > 0 else { return }
                try self.read(rest.slice(0, count: count), isLast: false, for: session)
            }
            rest = rest.dropFirst(count)
        }
    }

    /// Decodes the fields at the start of a block that do not change the table, and remembers those that may repeat.
    private func rememberRuns(of rest: inout ByteView, for session: HTTP2Session) throws(FieldDecoder.Fault) {
        self.repeated.beginToRemember()
        while rest.count > 0, let slot = session.slotOfBlock {
            let repeatable = FieldDecoder.countOfRepeatable(rest)
            let count = repeatable > 0 ? repeatable : FieldDecoder.countOfPassing(rest)
            guard count > 0 else { break }
            let mark = RepeatedFields.Mark(session.block, slot)
            let coded = rest.slice(0, count: count)
            try self.read(coded, isLast: false, for: session)
            if repeatable > 0, session.slotOfBlock == slot {
                self.repeated.remember(coded, from: mark, session.block, in: slot)
            }
            rest = rest.dropFirst(count)
        }
    }

    // MARK: Events from libnghttp2

    @inline(__always)
    fileprivate func frameAnnounced(_ head: UnsafePointer<nghttp2_frame_hd>, for session: HTTP2Session) {
        switch unsafe UInt32(head.pointee.type) {
        case NGHTTP2_HEADERS.rawValue: session.headersAnnounced(unsafe head.pointee.stream_id)
        case NGHTTP2_SETTINGS.rawValue: self.library.pendingBeforeSettings = self.framesPending
        case NGHTTP2_CONTINUATION.rawValue: if !self.library.isEndingBlock { session.continuationAnnounced() }
        default: ()
        }
    }

    @inline(__always)
    fileprivate func headersBegan(_ frame: UnsafePointer<nghttp2_frame>, for session: HTTP2Session) {
        let isRequest = unsafe frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST
        session.headersBegan(unsafe frame.pointee.hd.stream_id, isRequest: isRequest)
        self.readPiece(for: session)
    }

    @inline(__always)
    fileprivate func frameReceived(_ frame: UnsafePointer<nghttp2_frame>, for session: HTTP2Session) {
        session.hasReceivedFrame = true
        let number = unsafe frame.pointee.hd.stream_id
        let hasEndFlag = unsafe UInt32(frame.pointee.hd.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
        switch unsafe UInt32(frame.pointee.hd.type) {
        case NGHTTP2_HEADERS.rawValue:
            let isRequest = unsafe frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST
            session.headersReceived(number, isRequest: isRequest, hasEnded: hasEndFlag)
        case NGHTTP2_DATA.rawValue: if hasEndFlag { session.requestEnded(number) }
        // The ACK flag is the same bit as END_STREAM.
        case NGHTTP2_PING.rawValue: session.pingReceived(isAnswer: hasEndFlag)
        case NGHTTP2_SETTINGS.rawValue:
            if !hasEndFlag, self.hasQueuedResets { self.terminate(.flowControlError) }
            session.settingsReceived(isAnswer: hasEndFlag)
        case NGHTTP2_RST_STREAM.rawValue: session.resetReceived(number)
        case NGHTTP2_PRIORITY.rawValue, NGHTTP2_GOAWAY.rawValue: session.controlFrameReceived()
        case NGHTTP2_WINDOW_UPDATE.rawValue: session.windowUpdateReceived()
        default: ()
        }
    }

    /// True if the peer's SETTINGS frame made libnghttp2 queue more than an acknowledgment. The other frames are
    /// resets of streams whose windows became too large. RFC 9113 §6.9.2 requires the connection to end instead.
    private var hasQueuedResets: Bool { self.framesPending > self.library.pendingBeforeSettings + 1 }
}

// MARK: - From libnghttp2 to the peer

extension LibrarySeam {
    /// The result of `produceFrame`.
    enum Produced {
        case frame
        case nothing
        case failed
    }

    /// Appends the next frame to send.
    @inline(__always)
    func produceFrame(into output: inout ByteBuffer, for session: HTTP2Session) -> Produced {
        var bytes: UnsafePointer<UInt8>?
        let count = unsafe nghttp2_session_mem_send(self.session, &bytes)
        guard count > 0, let bytes = unsafe bytes else { return count < 0 ? .failed : .nothing }
        let frame = unsafe UnsafeRawBufferPointer(start: bytes, count: count)
        // Type 1 is HEADERS.
        if unsafe frame[3] == 1 {
            self.heads.move(into: unsafe ByteView(frame), to: &output)
            return .frame
        }
        // Types 3 (RST_STREAM) and 7 (GOAWAY) report errors and are rare.
        if unsafe frame[3] & 0xFB == 3 { unsafe Self.countError(frame, in: session.memory.tally) }
        if session.streamLimit.isUnsent {
            unsafe self.appendSettings(frame, to: &output, for: session)
        } else {
            unsafe output.append(ByteView(frame))
        }
        return .frame
    }

    /// Appends a frame. In a SETTINGS frame of the server, replaces libnghttp2's values with the actual stream limit
    /// and window.
    ///
    /// The stream limit is the first setting, except in the first SETTINGS frame. A second setting is the window.
    @inline(never)
    private func appendSettings(
        _ frame: UnsafeRawBufferPointer,
        to output: inout ByteBuffer,
        for session: HTTP2Session
    ) {
        let room = unsafe output.reserve(frame.count)
        unsafe room.copyMemory(from: frame)
        // Type 4 is SETTINGS. Its only flag marks an acknowledgment.
        let isOurs = unsafe frame[3] == 4 && frame[4] == 0
        if isOurs, let limit = session.streamLimit.sent(now: session.memory.now) {
            // In the first frame, the size of the header table precedes the stream limit.
            let valueStart = 9 + (frame.count > 9 + 2 * 6 ? 6 : 0) + 2
            unsafe room.storeBytes(of: UInt32(limit).bigEndian, toByteOffset: valueStart, as: UInt32.self)
            if frame.count == 9 + 2 * 6 {
                let window = UInt32(session.streamWindowLeaves())
                unsafe room.storeBytes(of: window.bigEndian, toByteOffset: valueStart + 6, as: UInt32.self)
            }
        }
        output.commit(frame.count)
    }

    /// Counts an RST_STREAM or GOAWAY frame that the library sends because of a limit.
    @inline(never)
    private static func countError(_ frame: UnsafeRawBufferPointer, in tally: LimitTally<TransportLimit>) {
        let isGoAway = unsafe frame[3] == 7
        let codeStart = isGoAway ? 13 : 9
        guard frame.count >= codeStart + 4 else { return }
        let code = unsafe UInt32(bigEndian: frame.loadUnaligned(fromByteOffset: codeStart, as: UInt32.self))
        if code == HTTP2ErrorCode.flowControlError.rawValue {
            tally.met(isGoAway ? .connectionWindowBytes : .streamWindowBytes)
        } else if code == HTTP2ErrorCode.frameSizeError.rawValue, isGoAway {
            // Other frames of an invalid size have the same code with another reason.
            let reason = unsafe ByteView(UnsafeRawBufferPointer(rebasing: frame[(codeStart + 4)...]))
            if reason == "too large frame size" { tally.met(.frameBytesMax) }
        }
    }
}

// MARK: - C callbacks

private typealias User = UnsafeMutableRawPointer

/// Returns the result of `body` for the session in libnghttp2's user data. The session outlives every call of
/// libnghttp2.
@inline(__always)
private func withSession<Result>(_ user: User?, _ body: (HTTP2Session) -> Result) -> Result {
    unsafe Unmanaged<HTTP2Session>.fromOpaque(user.unsafelyUnwrapped)._withUnsafeGuaranteedRef { body($0) }
}

private func beginFrame(_: OpaquePointer?, _ head: UnsafePointer<nghttp2_frame_hd>?, _ user: User?) -> Int32 {
    unsafe withSession(user) { unsafe $0.seam.frameAnnounced(head.unsafelyUnwrapped, for: $0) }
    return 0
}

private func beginHeaders(_: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ user: User?) -> Int32 {
    unsafe withSession(user) { unsafe $0.seam.headersBegan(frame.unsafelyUnwrapped, for: $0) }
    return 0
}

private func receiveData(
    _: OpaquePointer?,
    _: UInt8,
    _ number: Int32,
    _ bytes: UnsafePointer<UInt8>?,
    _ count: Int,
    _ user: User?
) -> Int32 {
    let bytes = unsafe ByteView(UnsafeRawBufferPointer(start: bytes, count: count))
    unsafe withSession(user) { $0.dataReceived(number, bytes) }
    return 0
}

private func receiveFrame(_: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ user: User?) -> Int32 {
    unsafe withSession(user) { unsafe $0.seam.frameReceived(frame.unsafelyUnwrapped, for: $0) }
    return 0
}

private func closeStream(_: OpaquePointer?, _ number: Int32, _ errorCode: UInt32, _ user: User?) -> Int32 {
    unsafe withSession(user) { $0.streamClosed(number, errorCode: errorCode) }
    return 0
}

/// libnghttp2's memory for the bytes of a DATA frame, valid only during the call that passes it.
@safe
struct FrameBuffer {
    fileprivate let start: UnsafeMutablePointer<UInt8>?
    let count: Int

    /// Copies `bytes`, at most `count` of them, to the start of the buffer.
    func fill(with bytes: ByteView) {
        precondition(bytes.count <= self.count, "more bytes than the buffer can take")
        unsafe UnsafeMutableRawBufferPointer(start: self.start, count: self.count).copyMemory(from: bytes.buffer)
    }
}

private func readBody(
    _: OpaquePointer?,
    _: Int32,
    _ buffer: UnsafeMutablePointer<UInt8>?,
    _ count: Int,
    _ flags: UnsafeMutablePointer<UInt32>?,
    _ source: UnsafeMutablePointer<nghttp2_data_source>?,
    _ user: User?
) -> Int {
    let state = unsafe source.unsafelyUnwrapped.pointee.ptr.assumingMemoryBound(to: StreamState.self)
    let slot = unsafe StreamSlot(pointer: state)
    let buffer = unsafe FrameBuffer(start: buffer, count: count)
    let body = unsafe withSession(user) { $0.bodyWanted(slot, buffer) }
    guard body.count > 0 || body.isEnd else { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
    if body.isEnd { unsafe flags.unsafelyUnwrapped.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    return body.count
}
