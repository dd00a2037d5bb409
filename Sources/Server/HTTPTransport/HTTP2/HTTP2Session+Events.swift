package import Wire

/// The events that libnghttp2 reports for the peer's frames.
extension HTTP2Session {
    /// Checks a DATA frame, or a HEADERS frame that is too short for the length of its padding. For such HEADERS,
    /// libnghttp2 would end the connection with another error code. It ignores DATA on a closed stream.
    @inline(__always)
    func frameBegan(_ head: FrameHead) {
        let isOfCurrent = self.open.current.map { $0.state.number == head.streamNumber } ?? false
        if !isOfCurrent || head.length == 0 { self.frameOfDoubtBegan(head) }
    }

    @inline(never)
    private func frameOfDoubtBegan(_ head: FrameHead) {
        let number = head.streamNumber
        if head.isTooShortForPadding { return self.seam.terminate(.frameSizeError) }
        if head.length == 0, !head.endsStream { self.controlFrameReceived() }
        // libnghttp2 rejects stream numbers that a client cannot use.
        guard number & 1 == 1, self.slot(number) == nil, self.numbers.isUsed(number) else { return }
        if !self.numbers.mayGoOn(number) { self.seam.terminate(.streamClosed) }
    }

    /// Checks the stream number of a HEADERS frame that libnghttp2 considers valid.
    func headersAnnounced(_ number: Int32) {
        self.budgets.blockBegan()
        guard self.numbers.isUsed(number), self.slot(number) == nil else { return }
        if let fault = self.numbers.faultUnlessOpen(number) {
            self.seam.terminate(fault)
        } else {
            // These are trailers of a request on a closed stream. libnghttp2 ignores them.
            self.controlFrameReceived()
        }
    }

    // MARK: Field blocks

    /// Drops the fields of the previous block. Called when a HEADERS frame begins, before libnghttp2 gets it.
    func blockBegan() {
        self.block.drop()
    }

    /// Begins a block that libnghttp2 has accepted. Its fields follow.
    func headersBegan(_ number: Int32, isRequest: Bool) {
        self.block.taken(for: number, isRequest: isRequest)
        guard isRequest else {
            self.open.current = nil
            return
        }
        self.numbers.opened(number)
        guard self.departure.takes(number) else { return self.refuseToBegin(number) }
        let count = self.open.count
        let isRoom = count < self.streamLimit.enforced
        guard isRoom, let slot = self.memory.streams.take(number: number, openCount: count, now: self.memory.now) else {
            self.memory.tally.met(isRoom ? .streamsPerLoopMax : .streamsPerConnectionMax)
            if !isRoom { self.streamRefused() }
            return self.refuseToBegin(number)
        }
        slot.state.exchangeRequestMemory(with: &self.memory.spare)
        self.open.begin(slot)
        self.budgets.streamTaken()
        self.seam.keep(slot, with: number)
    }

    /// The state of the request whose block is being decoded; nil for trailers, and if the fields are not needed.
    var slotOfBlock: StreamSlot? {
        guard self.block.stream != nil, let slot = self.open.current, slot.state.phase == .receiving,
            !slot.state.isHeaderListTooLarge
        else { return nil }
        return slot
    }

    /// Refuses a stream before its request is processed. The client may then send the request to another server.
    private func refuseToBegin(_ number: Int32) {
        self.open.current = nil
        self.numbers.cutShort(number)
        self.seam.submitReset(number, .refusedStream)
    }

    /// Handles a field of the block. An invalid field resets the stream; the remaining fields are decoded and dropped.
    @inline(__always)
    func fieldReceived(_ name: ByteView, _ value: ByteView, _ note: inout UInt32) {
        guard let number = self.block.stream else { return }
        let fault = self.block.fieldReceived(
            name,
            value,
            &note,
            into: self.open.current,
            listBytesMax: self.memory.limits.headerListBytesMax
        )
        guard let fault else { return }
        if fault == .enhanceYourCalm { self.memory.tally.met(.headerListBytesMax) }
        self.refuseBlock(of: number, fault)
    }

    /// Ends the connection because of a malformed block, after which later blocks cannot be decoded.
    func blockFailed() {
        self.block.drop()
        self.seam.terminate(.compressionError)
    }

    func refuseBlock(of number: Int32, _ fault: HTTP2ErrorCode) {
        self.block.drop()
        self.seam.submitReset(number, fault)
    }

    /// Checks the request at the end of a block, and delivers it if it has ended.
    func headersReceived(_ number: Int32, isRequest: Bool, hasEnded: Bool) {
        guard self.block.stream != nil else { return }
        let rules = self.block.rules
        guard isRequest ? rules.isWholeHead : hasEnded else { return self.seam.submitReset(number, .protocolError) }
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
                if rules.expectsContinue { self.answerExpectation(slot) }
            }
        }
        if hasEnded { self.requestEnded(number) }
    }

    /// Answers a client that waits before it sends content. The answer is `100 Continue`, or the final answer if the
    /// announced content is too large.
    private func answerExpectation(_ slot: StreamSlot) {
        guard slot.state.phase == .receiving else { return }
        guard slot.state.bodyBytesMissing ?? 0 > UInt64(slot.state.bodyBytesMax) else {
            return self.seam.submitContinue(for: slot.state.number)
        }
        slot.state.isBodyTooLarge = true
        self.deliver(slot)
    }

    // MARK: Requests

    func request(_ slot: StreamSlot) -> Request {
        Request(
            stream: StreamID(connection: self.id, number: slot.state.number),
            listener: self.listener,
            isHTTP2: true,
            slot: slot
        )
    }

    func requestEnded(_ number: Int32) {
        guard let slot = self.slot(number) else { return }
        guard slot.state.isBodyWhole else { return self.seam.submitReset(number, .protocolError) }
        slot.state.hasRequestEnded = true
        self.deliver(slot)
    }

    func deliver(_ slot: StreamSlot) {
        guard slot.state.phase == .receiving else { return }
        self.letGo(slot)
        self.open.move(slot, to: .waiting, now: self.memory.now)
        self.hasCarriedRequest = true
        if slot.state.isHeaderListTooLarge {
            self.memory.tally.met(.headerListBytesMax)
            if !self.handler.headerListTooLarge(self.request(slot)) {
                self.memory.response.begin(status: 431)
                _ = self.respond(slot.state.number, self.memory.response, body: nil)
            }
        } else {
            self.handler.requestReceived(self.request(slot))
        }
        slot.state.dropRequest(keepingBytesMax: StreamPool.keptBytesMax)
        slot.state.exchangeRequestMemory(with: &self.memory.spare)
    }

    func dataReceived(_ number: Int32, _ bytes: ByteView) {
        guard let slot = self.slot(number), slot.state.phase == .receiving else { return }
        self.open.current = slot
        guard slot.state.take(bodyBytes: bytes.count) else { return self.seam.submitReset(number, .protocolError) }
        let held = slot.state.received.count - slot.state.bodyStart
        guard held + bytes.count <= slot.state.bodyBytesMax else {
            slot.state.isBodyTooLarge = true
            self.deliver(slot)
            return
        }
        let shortage = self.shortage(for: bytes.count)
        guard shortage == .none else { return self.refuse(slot, shortage) }
        slot.state.received.append(bytes)
        self.held.hold(bytes.count)
    }

    /// Moves unsent bytes of an answer into the buffer of a DATA frame.
    ///
    /// - Returns: the number of bytes, and true if they are the last. A streaming answer may have no bytes for now.
    func bodyWanted(_ slot: StreamSlot, _ buffer: FrameBuffer) -> (count: Int, isEnd: Bool) {
        let isGrowing = slot.state.phase == .streaming
        let count = min(buffer.count, slot.state.output.count)
        if count > 0 {
            buffer.fill(with: slot.state.output.view[0..<count])
            slot.state.output.consume(count)
            self.queuedBytes -= count
            self.budgets.dataLeaves(count)
            // The next bytes of an event stream may come minutes later, so free the memory.
            if isGrowing && slot.state.output.isEmpty { slot.state.output.free() }
        }
        if count > 0 && slot.state.isAboveStreamingLimit && isGrowing
            && slot.state.output.count < self.memory.limits.streamingBytesSoftMax / 2
        {
            slot.state.isAboveStreamingLimit = false
            self.drained.append(StreamID(connection: self.id, number: slot.state.number))
        }
        let isEnd = slot.state.output.isEmpty && !isGrowing
        if isEnd { self.resetIfAnswered(slot) }
        return (count, isEnd)
    }

    func streamClosed(_ number: Int32, errorCode: UInt32) {
        let slot = self.slot(number)
        // A reset by the peer was counted when its frame arrived.
        if !self.numbers.isNewestReset(number) {
            if errorCode == HTTP2ErrorCode.noError.rawValue {
                self.budgets.streamClosed()
            } else if let slot, !slot.state.isResetByHandler, self.departure.takes(number),
                errorCode != HTTP2ErrorCode.refusedStream.rawValue  // A limit of the server.
            {
                self.controlFrameReceived()
            }
        }
        if let slot { self.close(slot) }
    }

    /// Counts a refused stream above the stream limit. A peer that has not acknowledged the limit may not know it, so
    /// up to `streamsPerConnectionMax` of its refused streams are not counted.
    private func streamRefused() {
        if !self.streamLimit.isAcknowledged, Int(self.earlyRefusals) < self.memory.limits.streamsPerConnectionMax {
            self.earlyRefusals += 1
        } else {
            self.controlFrameReceived()
        }
    }

    // MARK: Frames that carry no request

    func pingReceived(isAnswer: Bool) {
        if isAnswer { self.ping.answered() } else { self.controlFrameReceived() }
    }

    func settingsReceived(isAnswer: Bool) {
        if isAnswer { self.streamLimit.acknowledged(now: self.memory.now) } else { self.controlFrameReceived() }
    }

    func resetReceived(_ number: Int32) {
        self.numbers.resetByPeer(number)
        self.controlFrameReceived()
    }

    func controlFrameReceived() {
        let isWithin = self.budgets.controlFrameReceived(now: self.memory.now)
        if !isWithin { self.endByLimit(.controlFramesPerSecond) }
    }

    func windowUpdateReceived() {
        let isWithin = self.budgets.updateReceived(now: self.memory.now)
        if !isWithin { self.endByLimit(.controlFramesPerSecond) }
    }

    func continuationAnnounced() {
        let max = self.memory.limits.continuationFramesMax
        let limit = self.budgets.continuationReceived(max: max, now: self.memory.now)
        if let limit { self.endByLimit(limit) }
    }
}

/// The state of the field block that is being decoded.
package struct FieldBlock {
    /// The multiple of the header list limit above which the stream is reset. Up to this size, the answer is 431.
    /// References of 16 KiB can represent a list of 60 MiB, and all of it must be decoded (RFC 7541 §7.3).
    static let overlongListFactor = 4

    /// The stream of the block. Nil if the fields are dropped, because libnghttp2 has not accepted the HEADERS frame or
    /// a field was invalid.
    package private(set) var stream: Int32?
    /// The rules, which have the properties of the fields so far.
    var rules = FieldRules.head
    /// The size of the fields, as HTTP/2 counts it, for blocks without a stream state.
    private var bytes = 0

    /// Creates the state before the first block.
    package init() {}

    /// Drops the remaining fields of the block, because the stream is closed or the fields are not needed. They are
    /// still decoded.
    package mutating func drop() {
        self.stream = nil
    }

    /// Begins a block whose HEADERS frame libnghttp2 has accepted.
    package mutating func taken(for stream: Int32, isRequest: Bool) {
        self.stream = stream
        self.rules = isRequest ? .head : .trailers
        self.bytes = 0
    }

    /// Checks and adds a field of a block that is not dropped.
    ///
    /// - Parameters:
    ///   - name: the field's name.
    ///   - value: the field's value.
    ///   - note: the note of `FieldRules.admit` for the field.
    ///   - slot: the state of the request. The field is added only if its phase is `receiving`.
    ///   - listBytesMax: the maximum size of a header list in bytes.
    /// - Returns: the error code for a reset of the stream; nil if the field is valid.
    @inline(__always)
    package mutating func fieldReceived(
        _ name: ByteView,
        _ value: ByteView,
        _ note: inout UInt32,
        into slot: @autoclosure () -> StreamSlot?,
        listBytesMax: @autoclosure () -> Int
    ) -> HTTP2ErrorCode? {
        guard let kind = self.rules.admit(name, value, &note) else { return .protocolError }
        if let slot = slot(), slot.state.phase == .receiving {
            slot.state.fieldReceived(name, value, kind, headerListBytesMax: listBytesMax())
            guard slot.state.isHeaderListTooLarge else { return nil }
            self.bytes = slot.state.headerListBytes
        } else {
            self.bytes += name.count + value.count + 32
        }
        return self.bytes > listBytesMax() * Self.overlongListFactor ? .enhanceYourCalm : nil
    }
}
