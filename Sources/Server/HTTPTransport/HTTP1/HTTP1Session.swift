package import Wire

/// The server's end of one HTTP/1 connection, without its socket. It turns received bytes into calls of the handler,
/// and answers into bytes.
///
/// The session handles one request at a time, and processes later bytes after its answer. A request that violates RFC
/// 9112 is answered with an error, and the connection ends. Otherwise a proxy and this server might disagree about the
/// end of a request. The bytes after that end could then pass as a request that no client made (request smuggling).
@safe
package final class HTTP1Session {
    /// The meaning of the peer's next bytes.
    private enum Expected {
        case head
        case body(left: UInt64)
        case chunks
        /// Further bytes are processed after the request is answered.
        case answer
        /// Further bytes are discarded. The connection ends when the remaining output is sent.
        case end
    }

    let memory: LoopMemory
    let handler: any RequestHandler
    private let id: ConnectionID
    private let listener: Int

    private var expected = Expected.head
    private var scanner = HeadScanner()
    private var chunks = ChunkReader()
    /// True if bytes of a request have arrived.
    private var hasBegun = false
    /// True if the request line was checked; true if an empty line before it was skipped.
    private var (isLineKnown, isLineSkipped) = (false, false)
    /// The received bytes that have not been parsed.
    private var input = ByteBuffer()
    /// The state of the current request, and its parsed head.
    private(set) var slot: StreamSlot?
    private var head: HTTP1Head?
    private var requests: Int32 = 0

    /// The bytes to send before further bytes of the answer's body.
    var output = ByteBuffer()
    /// True if the last lines of the answer's head have not been written. They depend on whether the connection ends.
    var isHeadOpen = false
    var isAnswerChunked = false
    /// True if the connection ends after the current answer, or otherwise after the remaining output.
    private(set) var isLast = false
    /// True if the answer was sent although the request has not arrived completely.
    private(set) var isAnswerSent = false
    var drained: StreamID?

    /// The number of bytes of the current request's body that were discarded.
    private var discarded = 0
    /// The number of this session's bytes in the count of all partly received requests.
    private var countedBytes = 0
    /// The time since which the session has waited for the next request or the rest of the current one, in monotonic
    /// milliseconds.
    private var awaitedSince: Int64
    private(set) var hasCarriedRequest = false

    /// Creates the session of a new connection.
    ///
    /// - Parameters:
    ///   - memory: the memory of the loop.
    ///   - handler: the handler of the connection's requests.
    ///   - id: the identifier of the connection on the loop.
    ///   - listener: the index in the server's list of listeners.
    package init(memory: LoopMemory, handler: any RequestHandler, id: ConnectionID, listener: Int) {
        self.memory = memory
        self.handler = handler
        self.id = id
        self.listener = listener
        self.awaitedSince = memory.now
    }

    // MARK: Bytes

    /// True if all output is sent and nothing more will be read.
    package var isFinished: Bool {
        guard case .end = self.expected else { return false }
        return self.slot == nil && self.output.isEmpty
    }

    /// True if `produce` has bytes to send that are not part of an answer's body.
    package var wantsToWrite: Bool { !self.output.isEmpty }

    /// True if the session can use more bytes: bytes of a request, or a few bytes after an unanswered request.
    package var wantsToRead: Bool {
        switch self.expected {
        case .head, .body, .chunks: true
        case .answer: self.input.isEmpty && !self.isStreaming
        case .end: false
        }
    }

    /// Processes bytes from the peer.
    package func receive(_ bytes: ByteView) {
        if self.input.isEmpty {
            var rest = bytes
            self.take(&rest)
            self.keep(rest)
        } else {
            self.keep(bytes)
            self.takeInput()
        }
        self.countHeldBytes()
    }

    private func keep(_ bytes: ByteView) {
        guard !bytes.isEmpty else { return }
        guard !self.isStreaming else { return self.leaveInput() }
        guard self.hasRoom(for: bytes.count) else {
            self.memory.tally.met(.requestBytesMax)
            return self.fail(.noRoom)
        }
        self.input.append(bytes)
    }

    /// Returns true if `bytes` further bytes of partly received requests are within the limit of all connections.
    private func hasRoom(for bytes: Int) -> Bool {
        let held = self.heldBytes + bytes
        return self.memory.requestBytes.hasRoom(for: held - self.countedBytes, ofConnection: held)
    }

    /// True if received bytes have not been parsed.
    var hasInput: Bool { !self.input.isEmpty }

    private var isStreaming: Bool { self.slot?.state.phase == .streaming }

    /// Discards the bytes after the request. A streaming answer may last for days, which is too long to store later
    /// requests. The client repeats them on another connection.
    func leaveInput() {
        self.isLast = true
        self.input.free()
        self.countHeldBytes()
    }

    private func takeInput() {
        guard !self.input.isEmpty else { return }
        var input = ByteBuffer()
        swap(&input, &self.input)
        var rest = input.view
        self.take(&rest)
        input.consume(input.count - rest.count)
        if input.isEmpty { input.free() }
        swap(&input, &self.input)
        if self.isStreaming, self.hasInput { self.leaveInput() }
    }

    /// Parses as many bytes as possible from the start of `rest`.
    private func take(_ rest: inout ByteView) {
        do throws(HTTP1Fault) {
            while !rest.isEmpty, try self.takePart(of: &rest) {}
        } catch {
            self.fail(error)
        }
        if case .end = self.expected { rest = ByteView() }
    }

    /// Parses the next part of the input.
    ///
    /// - Returns: false if more bytes or the answer to the request are needed first.
    private func takePart(of rest: inout ByteView) throws(HTTP1Fault) -> Bool {
        switch self.expected {
        case .head:
            return try self.takeHead(from: &rest)
        case .body(let left):
            let count = Int(min(left, UInt64(rest.count)))
            let isLast = UInt64(count) == left
            let part = rest[0..<count]
            rest = rest.dropFirst(count)
            self.expected = .body(left: left - UInt64(count))
            self.bodyReceived(part)
            if isLast { self.requestEnded() }
            return true
        case .chunks:
            let trailerBytesMax = self.memory.limits.headerListBytesMax
            guard let part = try self.chunks.next(&rest, trailerBytesMax: trailerBytesMax) else { return false }
            switch part {
            case .bytes(let bytes): self.bodyReceived(bytes)
            case .end: self.requestEnded()
            }
            return true
        case .answer, .end:
            return false
        }
    }

    /// The maximum size of a head, as a multiple of `headerListBytesMax`. That limit does not count blanks around
    /// values.
    private static let headBytesFactor = 2

    private func takeHead(from rest: inout ByteView) throws(HTTP1Fault) -> Bool {
        if !self.hasBegun {
            self.hasBegun = true
            self.awaitedSince = self.memory.now
        }
        let bytesMax = self.memory.limits.headerListBytesMax * Self.headBytesFactor
        guard rest[0..<1].isToken || rest[0] == UInt8(ascii: "\r") else {
            throw .malformed("A request begins with its method.")
        }
        let known = rest[0..<min(rest.count, bytesMax)]
        var end = try self.scanner.end(in: known, pausesBehindFirstLine: !self.isLineKnown)
        if end == nil, !self.isLineKnown, let count = self.scanner.firstLineCount {
            // Check the first line now. A client of another protocol may never send the empty line that ends a head.
            _ = try RequestLine(rest[0..<count])
            self.isLineKnown = true
            end = try self.scanner.end(in: known)
        }
        guard let end else {
            guard rest.count < bytesMax else { throw self.isLineKnown ? .headTooLarge : .targetTooLong }
            return false
        }
        let head = rest[0..<end]
        rest = rest.dropFirst(end)
        self.scanner = HeadScanner()
        guard end > 2 else {
            // One empty line before a request is skipped, as RFC 9112 §2.2 requires.
            guard !self.isLineSkipped else { throw .malformed("A request begins with its request line.") }
            self.isLineSkipped = true
            return true
        }
        try self.headReceived(head)
        return true
    }

    // MARK: Requests

    private func headReceived(_ bytes: ByteView) throws(HTTP1Fault) {
        self.requests = self.requests == .max ? 1 : self.requests + 1
        guard let slot = self.memory.streams.take(number: self.requests, now: self.memory.now) else {
            self.memory.tally.met(.streamsPerLoopMax)
            throw .noRoom
        }
        self.slot = slot
        let bytesMax = self.memory.limits.headerListBytesMax
        let head = try HTTP1Head(bytes, into: slot, headerListBytesMax: bytesMax)
        self.head = head
        self.isLast = self.isLast || head.isLast
        slot.state.bodyStart = slot.state.received.count
        switch head.body {
        case .none:
            self.requestEnded()
        case .length(let count):
            self.expected = .body(left: count)
            self.bodyAnnounced(slot, bytes: count)
        case .chunked:
            self.expected = .chunks
            self.chunks = ChunkReader()
            self.bodyAnnounced(slot, bytes: 0)
        }
    }

    private func bodyAnnounced(_ slot: StreamSlot, bytes: UInt64) {
        slot.state.bodyBytesMax = self.handler.bodyBytesMax(for: self.request(slot))
        if bytes > UInt64(slot.state.bodyBytesMax) {
            slot.state.isBodyTooLarge = true
            self.deliver(slot)
        } else if self.head?.isAwaitingContinue == true {
            self.head?.isAwaitingContinue = false
            self.output.append("HTTP/1.1 100 Continue\r\n\r\n")
        }
    }

    private func bodyReceived(_ bytes: ByteView) {
        guard let slot else { return }
        if slot.state.phase == .receiving {
            let held = slot.state.received.count - slot.state.bodyStart
            if held + bytes.count > slot.state.bodyBytesMax {
                slot.state.isBodyTooLarge = true
            } else if self.hasRoom(for: bytes.count) {
                return slot.state.received.append(bytes)
            } else {
                self.memory.tally.met(.requestBytesMax)
                slot.state.shortage = .server
                slot.state.bodyStart = slot.state.received.count
            }
            self.deliver(slot)
        }
        self.discarded += bytes.count
        guard self.discarded > self.memory.limits.discardedBytesMax else { return }
        self.memory.tally.met(.discardedBytesMax)
        self.readNoMore()
    }

    private func requestEnded() {
        // The connection may have ended because the last bytes of the body exceeded a limit.
        if case .end = self.expected { return }
        self.expected = .answer
        guard let slot else { return }
        slot.state.hasRequestEnded = true
        if slot.state.phase == .receiving {
            self.deliver(slot)
        } else if self.isAnswerSent {
            self.release(slot)
        }
    }

    private func deliver(_ slot: StreamSlot) {
        slot.state.phase = .waiting
        self.hasCarriedRequest = true
        self.memory.wasHandlerNotified = true
        self.handler.requestReceived(self.request(slot))
        slot.state.dropRequest(keepingBytesMax: 0)
    }

    private func request(_ slot: StreamSlot) -> Request {
        Request(stream: self.stream, listener: self.listener, isHTTP2: false, slot: slot)
    }

    /// The identifier of the current request.
    var stream: StreamID { StreamID(connection: self.id, number: self.requests) }

    /// Answers a request with an error if it has not been answered, and then ends the connection.
    private func fail(_ fault: HTTP1Fault) {
        if case .headTooLarge = fault { self.memory.tally.met(.headerListBytesMax) }
        let isAnswered = self.slot.map { $0.state.phase != .receiving } ?? false
        self.readNoMore()
        guard !isAnswered else { return }
        if let slot { self.memory.streams.giveBack(slot) }
        self.slot = nil
        let message = ByteView(fault.message)
        self.memory.response.begin(status: fault.status)
        self.memory.response.add("content-type", "text/plain")
        self.writeHead(self.memory.response, bodyBytes: message.count + 1)
        self.closeHead()
        guard !self.isAnswerBare else { return }
        self.output.append(message)
        self.output.append("\n")
    }

    // MARK: Ends

    /// Handles the end of an answer: all its bytes have been produced.
    func answerSent(_ slot: StreamSlot) {
        guard slot.state.hasRequestEnded || self.isLast else {
            self.isAnswerSent = true
            return
        }
        self.release(slot)
        self.takeInput()
        self.countHeldBytes()
    }

    private func release(_ slot: StreamSlot) {
        self.memory.streams.giveBack(slot)
        self.slot = nil
        self.head = nil
        self.discarded = 0
        self.isAnswerSent = false
        (self.hasBegun, self.isLineKnown, self.isLineSkipped) = (false, false, false)
        self.awaitedSince = self.memory.now
        if self.isLast { self.readNoMore() } else { self.expected = .head }
    }

    /// Discards further bytes from the peer. The connection ends when the remaining output is sent.
    private func readNoMore() {
        self.expected = .end
        self.isLast = true
        self.input.free()
        guard let slot else { return }
        slot.state.hasRequestEnded = true
        if self.isAnswerSent { self.release(slot) }
    }

    /// Ends the connection after the answer to the current request, or immediately without one.
    package func closeAfterAnswer() {
        self.isLast = true
        if self.slot == nil || self.isAnswerSent { self.readNoMore() }
    }

    /// Handles the end of the peer's data.
    ///
    /// - Returns: true if an answer is still being sent to the peer.
    package func peerEnded() -> Bool {
        let isAnswering = self.slot?.state.phase == .sending || !self.output.isEmpty
        if self.slot == nil || isAnswering { self.readNoMore() }
        return isAnswering
    }

    /// Drops the request. Notifies the handler if it has not completed the answer. Later calls of the handler have no
    /// effect.
    package func end() {
        self.expected = .end
        self.input.free()
        self.output.free()
        defer { self.countHeldBytes() }
        guard let slot else { return }
        let phase = slot.state.phase
        self.slot = nil
        self.memory.streams.giveBack(slot)
        guard phase == .waiting || phase == .streaming else { return }
        self.memory.wasHandlerNotified = true
        self.handler.streamClosed(self.stream)
    }

    // MARK: Time

    /// Runs the timers. If a request takes too long to arrive, answers with an error and ends the connection.
    ///
    /// - Returns: false if the connection must end now, because the peer sends no request or does not read the answer.
    package func secondPassed() -> Bool {
        guard self.memory.now >= self.isQuietUntil, !self.isFinished else { return true }
        if let slot, slot.state.phase == .sending, !self.isAnswerSent {
            self.memory.tally.met(.responseSeconds)
            return false
        }
        guard self.hasBegun else { return false }
        self.memory.tally.met(.requestSeconds)
        self.fail(.timeout)
        return true
    }

    /// The time of the next action of `secondPassed`, unless something is read or written earlier.
    var isQuietUntil: Int64 {
        // When nothing more is read, only the limit on unsent output applies.
        if case .end = self.expected, self.slot == nil { return .max }
        let limits = self.memory.limits
        let awaited = self.awaitedSince + Int64(limits.requestSeconds) * 1000 + 1
        guard let slot, !self.isAnswerSent else { return awaited }
        switch slot.state.phase {
        case .receiving: return awaited
        case .sending: return slot.state.since + Int64(limits.responseSeconds) * 1000 + 1
        case .waiting, .streaming, .free: return .max
        }
    }

    // MARK: Partly received requests

    /// The number of this connection's bytes of partly received requests.
    private var heldBytes: Int {
        guard let slot, slot.state.phase == .receiving else { return self.input.count }
        return self.input.count + slot.state.received.count - slot.state.bodyStart
    }

    /// Updates the count of all loops. It is called once per read, and changes nothing for a request that arrives in
    /// one read.
    private func countHeldBytes() {
        let held = self.heldBytes
        guard held != self.countedBytes else { return }
        self.memory.requestBytes.change(by: held - self.countedBytes)
        self.countedBytes = held
    }
}

// MARK: - Framing of answers

extension HTTP1Session {
    /// True if the answer is sent without its body (HEAD).
    var isAnswerBare: Bool { self.head?.isHEAD ?? false }

    /// True if the peer understands chunks.
    var takesChunks: Bool { !(self.head?.isOld ?? true) }

    /// Records an answer to a peer that waits for `100 Continue`. The peer may then send or omit the body, so later
    /// bytes cannot be parsed.
    func noteAnswerBeforeBody() {
        if self.head?.isAwaitingContinue == true { self.isLast = true }
    }
}
