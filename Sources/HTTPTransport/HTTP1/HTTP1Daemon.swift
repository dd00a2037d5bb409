internal import Bytes
// The one file that knows libmicrohttpd.
internal import CMicrohttpd

/// The HTTP/1.1 side of one loop: libmicrohttpd without thread and listener, driven by the loop.
@safe
final class HTTP1Daemon {
    /// What the library's callbacks are given.
    fileprivate final class Context {
        /// The connection that is being handed to the library.
        var adopting: HTTP1Connection?
    }

    fileprivate unowned let loop: EventLoop
    private let daemon: OpaquePointer
    private let context = Context()
    /// The library's own epoll, to be watched by the loop's.
    let pollDescriptor: Int32
    /// Whether the library has to look at its sockets before the loop waits again.
    var needsRun = false
    private var isRunning = false

    /// Bytes of the library's memory for one connection: its request line and fields have to fit.
    private static let connectionBytes = 32_768
    /// More than any server takes, which counts its connections itself.
    private static let connectionsMax: UInt32 = 1_100_000

    init?(loop: EventLoop) {
        self.loop = loop
        let daemon = unsafe wakegate_mhd_start(
            requestAccess,
            completeRequest,
            notifyConnection,
            readTarget,
            Unmanaged.passUnretained(self.context).toOpaque(),
            UInt32(loop.limits.requestSeconds),
            Self.connectionBytes,
            Self.connectionsMax
        )
        guard let daemon = unsafe daemon else { return nil }
        unsafe self.daemon = unsafe daemon
        self.pollDescriptor = unsafe wakegate_mhd_epoll(daemon)
    }

    /// Gives the connection's socket to the library, which closes it from then on, also when it refuses.
    func adopt(_ connection: Connection) -> Bool {
        let http1 = HTTP1Connection(daemon: self, connection: connection)
        connection.http1 = http1
        self.context.adopting = http1
        defer { self.context.adopting = nil }
        self.needsRun = true
        return unsafe wakegate_mhd_add(self.daemon, connection.descriptor) != 0
    }

    /// Lets the library read and write what is ready.
    func runIfNeeded() {
        guard self.needsRun, !self.isRunning else { return }
        self.isRunning = true
        self.needsRun = false
        unsafe MHD_run(self.daemon)
        if unsafe wakegate_mhd_has_work(self.daemon) != 0 { self.needsRun = true }
        self.isRunning = false
    }

    /// Ends every connection and the library.
    func stop() {
        for connection in self.loop.connections { connection?.http1?.abandon() }
        self.isRunning = true
        // Suspended connections have to be resumed, and the library has to see it, before it may be stopped.
        unsafe MHD_run(self.daemon)
        unsafe MHD_stop_daemon(self.daemon)
    }
}

/// One HTTP/1.1 connection and the request that is on it.
@safe
final class HTTP1Connection {
    private let daemon: HTTP1Daemon
    private unowned let loop: EventLoop
    private let connection: Connection
    fileprivate var handle: OpaquePointer?
    /// The request target as sent.
    private var target = ByteBuffer()

    private var slot: StreamSlot?
    private var requests: Int32 = 0
    /// The answer, until the library takes it.
    private var response: OpaquePointer?
    private var status = 0
    private var isSuspended = false
    private var isAbandoned = false
    private var isClosing = false
    private var discarded = 0
    /// What of the body has arrived while the rest has not.
    private var heldBytes = 0
    /// Since when the next request, or the rest of one that has begun, is awaited; monotonic milliseconds.
    private var awaitedSince: Int64
    /// Whether that request has begun.
    private var hasRequestBegun = false

    fileprivate init(daemon: HTTP1Daemon, connection: Connection) {
        self.awaitedSince = daemon.loop.core.now
        self.daemon = daemon
        self.loop = daemon.loop
        self.connection = connection
    }

    deinit {
        if let response = unsafe self.response { unsafe MHD_destroy_response(response) }
    }

    var hasCarriedRequest: Bool { self.requests > 0 }

    // MARK: Answers

    private func waitingSlot(_ number: Int32, _ phase: StreamState.Phase) -> StreamSlot? {
        guard let slot, !self.isAbandoned, number == self.requests, slot.state.phase == phase else { return nil }
        return slot
    }

    func respond(_ number: Int32, _ response: Response, body: ByteView?) -> Bool {
        guard let slot = self.waitingSlot(number, .waiting) else { return false }
        slot.state.phase = .sending
        let bytes = body ?? ByteView()
        let made = unsafe wakegate_mhd_response(bytes.buffer.baseAddress, bytes.count)
        return unsafe self.prepare(made, response)
    }

    func beginStreaming(_ number: Int32, _ response: Response) -> Bool {
        guard let slot = self.waitingSlot(number, .waiting) else { return false }
        slot.state.phase = .streaming
        let this = unsafe Unmanaged.passRetained(self)
        let made = unsafe wakegate_mhd_stream(streamContent, this.toOpaque(), forgetContent)
        if unsafe made == nil { unsafe this.release() }
        return unsafe self.prepare(made, response)
    }

    private func prepare(_ made: OpaquePointer?, _ response: Response) -> Bool {
        guard let made = unsafe made else {
            self.abandon()
            return false
        }
        for index in 1..<max(1, response.fieldCount) {
            let field = response.field(at: index)
            let name = unsafe ByteView(UnsafeRawBufferPointer(start: field.name, count: field.nameCount))
            // The library frames the body by itself.
            if name == "content-length" || name == "connection" || name == "transfer-encoding" { continue }
            unsafe MHD_add_response_header(made, name.string, response.value(of: field).string)
        }
        if self.isClosing { unsafe MHD_add_response_header(made, "connection", "close") }
        unsafe self.response = unsafe made
        self.status = response.status
        self.resume()
        return true
    }

    func write(_ number: Int32, _ bytes: ByteView) -> Int? {
        guard let slot = self.waitingSlot(number, .streaming) else { return nil }
        slot.state.output.append(bytes)
        self.loop.core.noteStreaming(slot)
        if unsafe self.response == nil { self.resume() }
        return slot.state.output.count
    }

    func finish(_ number: Int32) {
        guard let slot = self.waitingSlot(number, .streaming) else { return }
        slot.state.phase = .sending
        if unsafe self.response == nil { self.resume() }
    }

    /// Ends the connection after the answer to the request that is on it, or now when there is none.
    func closeAfterResponse() {
        self.isClosing = true
        if self.slot == nil { self.abandon() }
    }

    /// Ends the connection: its peer is gone, or is to go.
    func abandon() {
        guard !self.isAbandoned else { return }
        self.isAbandoned = true
        System.shutdownBoth(self.connection.descriptor)
        self.resume()
        self.daemon.needsRun = true
    }

    private func resume() {
        self.daemon.needsRun = true
        guard self.isSuspended else { return }
        self.isSuspended = false
        unsafe MHD_resume_connection(self.handle)
    }

    /// Ends the connection when a request takes too long to arrive, or too long to begin. The library ends one on which
    /// nothing happens at all; a byte now and then is enough for it.
    func secondPassed() {
        guard self.slot.map({ $0.state.phase == .receiving }) ?? true, !self.isAbandoned,
            self.loop.core.now - self.awaitedSince > Int64(self.loop.limits.requestSeconds) * 1000
        else { return }
        if self.hasRequestBegun { self.loop.core.tally.met(.requestSeconds) }
        self.abandon()
    }

    // MARK: What the library reports

    /// The first line of a request has arrived.
    fileprivate func requestLineReceived(_ target: ByteView) {
        self.target.removeAll()
        self.target.append(target)
        self.hasRequestBegun = true
        self.awaitedSince = self.loop.core.now
    }

    /// The library asks for an answer: first with the head alone, then with each piece of the body, then at its end.
    fileprivate func accessRequested(_ method: ByteView, _ upload: ByteView) -> (result: MHD_Result, taken: Int) {
        guard !self.isAbandoned else { return (.NO, 0) }
        guard let slot else { return (self.requestBegan(method), 0) }
        if upload.count > 0 { return (self.bodyReceived(slot, upload), upload.count) }
        if slot.state.phase == .receiving {
            slot.state.hasRequestEnded = true
            self.deliver(slot)
        }
        return (self.queueOrSuspend(), 0)
    }

    private func requestBegan(_ method: ByteView) -> MHD_Result {
        self.requests = self.requests == .max ? 1 : self.requests + 1
        self.discarded = 0
        guard let slot = self.loop.core.streams.take(number: self.requests, now: self.loop.core.now) else {
            self.loop.core.tally.met(.streamsPerLoopMax)
            return .NO
        }
        self.slot = slot
        slot.state.method = slot.state.append(name: ByteView(), value: method)
        slot.state.path = slot.state.append(name: ByteView(), value: self.target.view)
        unsafe wakegate_mhd_fields(self.handle, listField, UnsafeMutableRawPointer(slot.pointer))
        slot.state.bodyStart = slot.state.received.count
        if slot.state.headerListBytes > self.loop.limits.headerListBytesMax {
            slot.state.isHeaderListTooLarge = true
            self.deliver(slot)
            return self.queue()
        }
        let request = self.request(slot)
        let announced = self.contentLength(of: request)
        slot.state.bodyBytesMax = self.loop.handler.bodyBytesMax(for: request)
        guard announced > UInt64(slot.state.bodyBytesMax) else { return .YES }
        slot.state.isBodyTooLarge = true
        self.deliver(slot)
        return unsafe self.response == nil ? .YES : self.queue()
    }

    private func contentLength(of request: Request) -> UInt64 {
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            if field.name == "content-length" { return field.value.decimal ?? 0 }
        }
        return 0
    }

    private func bodyReceived(_ slot: StreamSlot, _ bytes: ByteView) -> MHD_Result {
        let held = slot.state.received.count - slot.state.bodyStart
        if slot.state.phase == .receiving && held + bytes.count <= slot.state.bodyBytesMax {
            guard self.loop.core.requestBytes.hasRoom(for: bytes.count) else {
                self.loop.core.tally.met(.requestBytesMax)
                slot.state.shortage = .server
                slot.state.bodyStart = slot.state.received.count
                self.deliver(slot)
                return .YES
            }
            slot.state.received.append(bytes)
            self.hold(self.heldBytes + bytes.count)
            return .YES
        }
        self.discarded += bytes.count
        guard self.discarded <= self.loop.limits.discardedBytesMax else {
            self.loop.core.tally.met(.discardedBytesMax)
            return .NO
        }
        if slot.state.phase == .receiving {
            slot.state.isBodyTooLarge = true
            self.deliver(slot)
        }
        return .YES
    }

    /// Counts the body's bytes with those of all loops.
    private func hold(_ bytes: Int) {
        self.loop.core.requestBytes.change(by: bytes - self.heldBytes)
        self.heldBytes = bytes
    }

    private func request(_ slot: StreamSlot) -> Request {
        Request(
            stream: StreamID(connection: self.connection.id, number: self.requests),
            listener: self.connection.listener,
            isHTTP2: false,
            slot: slot
        )
    }

    private func deliver(_ slot: StreamSlot) {
        slot.state.phase = .waiting
        self.hold(0)
        if slot.state.isHeaderListTooLarge {
            self.loop.core.tally.met(.headerListBytesMax)
            self.loop.core.response.begin(status: 431)
            _ = self.respond(self.requests, self.loop.core.response, body: nil)
        } else {
            self.loop.handler.requestReceived(self.request(slot))
        }
    }

    private func queueOrSuspend() -> MHD_Result {
        if self.isAbandoned { return .NO }
        if unsafe self.response != nil { return self.queue() }
        self.isSuspended = true
        unsafe MHD_suspend_connection(self.handle)
        return .YES
    }

    private func queue() -> MHD_Result {
        guard let response = unsafe self.response else { return .NO }
        unsafe self.response = nil
        defer { unsafe MHD_destroy_response(response) }
        return unsafe MHD_queue_response(self.handle, UInt32(self.status), response)
    }

    /// The library wants more of a streaming body.
    fileprivate func contentWanted(_ room: UnsafeMutableRawBufferPointer) -> Int {
        guard let slot, !self.isAbandoned else { return Int(MHD_CONTENT_READER_END_WITH_ERROR) }
        let count = min(room.count, slot.state.output.count)
        guard count > 0 else {
            if slot.state.phase != .streaming { return Int(MHD_CONTENT_READER_END_OF_STREAM) }
            self.isSuspended = true
            unsafe MHD_suspend_connection(self.handle)
            return 0
        }
        unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: slot.state.output.view.buffer[..<count]))
        slot.state.output.consume(count)
        if slot.state.isAboveStreamingLimit && slot.state.output.count < self.loop.limits.streamingBytesSoftMax / 2 {
            slot.state.isAboveStreamingLimit = false
            self.loop.core.handlerWasTold = true
            self.loop.handler.streamDrained(StreamID(connection: self.connection.id, number: self.requests))
        }
        return count
    }

    /// The request and its answer are over, one way or the other.
    fileprivate func requestCompleted() {
        guard let slot else { return }
        let phase = slot.state.phase
        self.slot = nil
        self.hold(0)
        self.hasRequestBegun = false
        self.awaitedSince = self.loop.core.now
        self.loop.core.streams.giveBack(slot)
        switch phase {
        case .waiting, .streaming:
            self.loop.core.handlerWasTold = true
            self.loop.handler.streamClosed(StreamID(connection: self.connection.id, number: self.requests))
        case .receiving, .sending, .free: ()
        }
        // What was answered before the end was decided on did not tell the peer to close.
        if self.isClosing { self.abandon() }
    }

    fileprivate func closed() {
        self.requestCompleted()
        unsafe self.handle = nil
        self.isAbandoned = true
        self.loop.forget(self.connection)
        self.loop.tellClosed(self.connection)
        self.connection.http1 = nil
    }
}

// MARK: C callbacks

/// Recovers a connection from the library's socket context, which holds a reference from start to close.
private func connection(_ handle: OpaquePointer?) -> HTTP1Connection? {
    guard let context = unsafe wakegate_mhd_context(handle) else { return nil }
    return unsafe Unmanaged<HTTP1Connection>.fromOpaque(context).takeUnretainedValue()
}

private func view(_ text: UnsafePointer<CChar>?) -> ByteView {
    guard let text = unsafe text else { return ByteView() }
    var count = 0
    while unsafe text[count] != 0 { count += 1 }
    return unsafe ByteView(UnsafeRawBufferPointer(start: text, count: count))
}

private func notifyConnection(
    _ context: UnsafeMutableRawPointer?,
    _ handle: OpaquePointer?,
    _ socketContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ what: MHD_ConnectionNotificationCode
) {
    if what.rawValue == 0 {
        let daemon = unsafe Unmanaged<HTTP1Daemon.Context>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
        guard let adopting = daemon.adopting else { return }
        unsafe adopting.handle = unsafe handle
        unsafe socketContext?.pointee = unsafe Unmanaged.passRetained(adopting).toOpaque()
    } else if let held = unsafe socketContext?.pointee {
        unsafe socketContext?.pointee = nil
        unsafe Unmanaged<HTTP1Connection>.fromOpaque(held).takeRetainedValue().closed()
    }
}

private func readTarget(
    _: UnsafeMutableRawPointer?,
    _ target: UnsafePointer<CChar>?,
    _ handle: OpaquePointer?
) -> UnsafeMutableRawPointer? {
    guard let connection = unsafe connection(handle) else { return nil }
    unsafe connection.requestLineReceived(view(target))
    return nil
}

private func requestAccess(
    _: UnsafeMutableRawPointer?,
    _ handle: OpaquePointer?,
    _: UnsafePointer<CChar>?,
    _ method: UnsafePointer<CChar>?,
    _: UnsafePointer<CChar>?,
    _ upload: UnsafePointer<CChar>?,
    _ uploadCount: UnsafeMutablePointer<Int>?,
    _: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let connection = unsafe connection(handle) else { return .NO }
    let bytes = unsafe ByteView(UnsafeRawBufferPointer(start: upload, count: uploadCount?.pointee ?? 0))
    let (result, taken) = connection.accessRequested(unsafe view(method), bytes)
    if taken > 0 { unsafe uploadCount?.pointee -= taken }
    return result
}

private func listField(
    _ state: UnsafeMutableRawPointer?,
    _: MHD_ValueKind,
    _ name: UnsafePointer<CChar>?,
    _ value: UnsafePointer<CChar>?
) -> MHD_Result {
    let slot = unsafe StreamSlot(pointer: state.unsafelyUnwrapped.assumingMemoryBound(to: StreamState.self))
    unsafe slot.state.appendField(nameInAnyCase: view(name), value: view(value))
    return .YES
}

private func streamContent(
    _ context: UnsafeMutableRawPointer?,
    _: UInt64,
    _ room: UnsafeMutablePointer<CChar>?,
    _ count: Int
) -> Int {
    let connection = unsafe Unmanaged<HTTP1Connection>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
    return unsafe connection.contentWanted(UnsafeMutableRawBufferPointer(start: room, count: count))
}

private func forgetContent(_ context: UnsafeMutableRawPointer?) {
    unsafe Unmanaged<HTTP1Connection>.fromOpaque(context.unsafelyUnwrapped).release()
}

private func completeRequest(
    _: UnsafeMutableRawPointer?,
    _ handle: OpaquePointer?,
    _: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _: MHD_RequestTerminationCode
) {
    unsafe connection(handle)?.requestCompleted()
}
