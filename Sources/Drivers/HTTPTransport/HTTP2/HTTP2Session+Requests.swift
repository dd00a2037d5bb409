internal import Bytes

/// From the bytes of a stream to a request at the handler, and to the stream's end.
extension HTTP2Session {
    /// DATA begins, or HEADERS that are too short. The library names another code for a frame that has no room for the
    /// length of its padding, and is silent about DATA on a stream that is gone.
    @inline(__always)
    func frameBegan(_ head: FrameHead) {
        let isOfCurrent = self.current.map { $0.state.number == head.streamNumber } ?? false
        if !isOfCurrent || head.length == 0 { self.frameOfDoubtBegan(head) }
    }

    @inline(never)
    private func frameOfDoubtBegan(_ head: FrameHead) {
        let number = head.streamNumber
        if head.isTooShortForPadding { return self.terminate(.frameSizeError) }
        if head.length == 0, !head.endsStream { self.controlFrameReceived() }
        // Those numbers that are no client's are left to the library.
        guard number & 1 == 1, self.numbers.isUsed(number), self.slot(number) == nil else { return }
        if !self.numbers.mayGoOn(number) { self.terminate(.streamClosed) }
    }

    /// A HEADERS frame begins, which the library does not know to be at fault.
    func headersAnnounced(_ number: Int32) {
        self.continuations = 0
        guard self.numbers.isUsed(number), self.slot(number) == nil else { return }
        if let fault = self.numbers.faultUnlessOpen(number) {
            self.terminate(fault)
        } else {
            // Trailers to a request that was cut short, which the library decodes and drops.
            self.controlFrameReceived()
        }
    }

    func controlFrameReceived() {
        if !self.budget.frameReceived(now: self.memory.now) { self.endByLimit(.controlFramesPerSecond) }
    }

    func windowUpdateReceived() {
        if !self.updateBudget.frameReceived(now: self.memory.now) { self.endByLimit(.controlFramesPerSecond) }
    }

    func reportDrained() {
        guard !self.drained.isEmpty else { return }
        let streams = self.drained
        self.drained.removeAll()
        self.memory.handlerWasTold = true
        for stream in streams { self.handler.streamDrained(stream) }
    }

    func close(_ slot: StreamSlot) {
        let phase = slot.state.phase
        let stream = StreamID(connection: self.id, number: slot.state.number)
        self.letGo(slot)
        self.queuedBytes -= slot.state.output.count
        self.open.remove(slot)
        if !slot.state.hasRequestEnded { self.numbers.cutShort(stream.number) }
        if self.current == slot { self.current = nil }
        if self.open.count == 0 { self.idleSince = self.memory.now }
        self.memory.streams.giveBack(slot)
        switch phase {
        case .waiting, .streaming:
            self.memory.handlerWasTold = true
            self.handler.streamClosed(stream)
        case .receiving, .sending, .free: ()
        }
    }

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
        guard slot.state.isBodyWhole else { return self.refuse(number, .protocolError) }
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
            self.memory.response.begin(status: 431)
            _ = self.respond(slot.state.number, self.memory.response, body: nil)
        } else {
            self.handler.requestReceived(self.request(slot))
        }
        slot.state.dropRequest(keepingBytesMax: StreamPool.keptBytesMax)
        slot.state.exchangeRequestMemory(with: &self.memory.spare)
    }

    func dataReceived(_ number: Int32, _ bytes: ByteView) {
        guard let slot = self.slot(number), slot.state.phase == .receiving else { return }
        self.current = slot
        guard slot.state.take(bodyBytes: bytes.count) else { return self.refuse(number, .protocolError) }
        let held = slot.state.received.count - slot.state.bodyStart
        guard held + bytes.count <= slot.state.bodyBytesMax else {
            slot.state.isBodyTooLarge = true
            self.deliver(slot)
            return
        }
        let shortage = self.shortage(for: bytes.count)
        guard shortage == .none else { return self.refuse(slot, shortage) }
        slot.state.received.append(bytes)
        self.heldBytes += bytes.count
    }

    /// Moves waiting bytes of a stream into the room of a DATA frame.
    ///
    /// - Returns: how many, and whether they are the last; of a stream that grows there may be none for now.
    func bodyWanted(_ slot: StreamSlot, _ room: UnsafeMutableRawBufferPointer) -> (count: Int, isEnd: Bool) {
        let isGrowing = slot.state.phase == .streaming
        let count = min(room.count, slot.state.output.count)
        if count > 0 {
            unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: slot.state.output.view.buffer[..<count]))
            slot.state.output.consume(count)
            self.queuedBytes -= count
            self.updateBudget.earned(2 + (count >> 11))
            // The next bytes of an event stream may be minutes away.
            if isGrowing && slot.state.output.isEmpty { slot.state.output.free() }
        }
        if count > 0 && slot.state.isAboveStreamingLimit && isGrowing
            && slot.state.output.count < self.memory.limits.streamingBytesSoftMax / 2
        {
            slot.state.isAboveStreamingLimit = false
            self.drained.append(StreamID(connection: self.id, number: slot.state.number))
        }
        return (count, slot.state.output.isEmpty && !isGrowing)
    }

    func streamClosed(_ number: Int32, errorCode: UInt32) {
        if errorCode == HTTP2ErrorCode.noError.number { self.budget.earned() }
        if let slot = self.slot(number) { self.close(slot) }
    }
}
