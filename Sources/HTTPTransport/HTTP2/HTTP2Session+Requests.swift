internal import Bytes

/// From the bytes of a stream to a request at the handler, and to the stream's end.
extension HTTP2Session {
    func reportDrained() {
        guard !self.drained.isEmpty else { return }
        let streams = self.drained
        self.drained.removeAll()
        self.core.handlerWasTold = true
        for stream in streams { self.handler.streamDrained(stream) }
    }

    func close(_ slot: StreamSlot) {
        let phase = slot.state.phase
        let stream = StreamID(connection: self.id, number: slot.state.number)
        self.open.remove(slot)
        if !slot.state.hasRequestEnded { self.numbers.cutShort(stream.number) }
        if self.current == slot { self.current = nil }
        if self.open.count == 0 { self.idleSince = self.core.now }
        self.core.streams.giveBack(slot)
        switch phase {
        case .waiting, .streaming:
            self.core.handlerWasTold = true
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

    func deliver(_ slot: StreamSlot) {
        guard slot.state.phase == .receiving else { return }
        self.open.move(slot, to: .waiting, now: self.core.now)
        self.hasCarriedRequest = true
        if slot.state.isHeaderListTooLarge {
            self.core.response.begin(status: 431)
            _ = self.respond(slot.state.number, self.core.response, body: nil)
        } else {
            self.handler.requestReceived(self.request(slot))
        }
        slot.state.dropRequest(keepingBytesMax: StreamPool.keptBytesMax)
        slot.state.exchangeRequestMemory(with: &self.core.spare)
    }

    func dataReceived(_ number: Int32, _ bytes: ByteView) {
        guard let slot = self.slot(number), slot.state.phase == .receiving else { return }
        self.current = slot
        let held = slot.state.received.count - slot.state.bodyStart
        guard held + bytes.count <= slot.state.bodyBytesMax else {
            slot.state.isBodyTooLarge = true
            self.deliver(slot)
            return
        }
        slot.state.received.append(bytes)
    }
}
