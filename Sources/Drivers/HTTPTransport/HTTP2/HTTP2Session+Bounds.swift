internal import Bytes

/// What the session counts of what its peer makes it hold.
extension HTTP2Session {
    /// The head of a request has arrived, and its body is to come.
    func hold(_ slot: StreamSlot) {
        let shortage = self.shortage(for: slot.state.received.count)
        guard shortage == .none else { return self.refuse(slot, shortage) }
        slot.state.isHeld = true
        self.heldBytes += slot.state.received.count
    }

    /// The request goes to the handler, or is gone.
    func letGo(_ slot: StreamSlot) {
        guard slot.state.isHeld else { return }
        slot.state.isHeld = false
        self.heldBytes -= slot.state.received.count
    }

    /// What there is no room in for so many more bytes of requests.
    func shortage(for bytes: Int) -> RequestShortage {
        if self.heldBytes + bytes > self.memory.limits.requestBytesPerConnectionMax { return .connection }
        return self.memory.requestBytes.hasRoom(for: self.uncountedBytes + bytes) ? .none : .server
    }

    /// Hands over what has arrived of a request that there is no room for: it is answered, and the rest thrown away.
    func refuse(_ slot: StreamSlot, _ shortage: RequestShortage) {
        self.letGo(slot)
        self.memory.tally.met(shortage == .connection ? .requestBytesPerConnectionMax : .requestBytesMax)
        slot.state.shortage = shortage
        slot.state.bodyStart = slot.state.received.count
        self.deliver(slot)
    }

    /// Brings the count of all loops up to date: once a read, and not at all for requests that came whole.
    func countHeldBytes() {
        guard self.heldBytes != self.countedBytes else { return }
        self.memory.requestBytes.change(by: self.heldBytes - self.countedBytes)
        self.countedBytes = self.heldBytes
    }

    /// The bytes held that the count of all loops does not know of yet.
    var uncountedBytes: Int { self.heldBytes - self.countedBytes }
}

// MARK: - What has begun and not ended

/// A frame, or a field block, of which a part has come.
struct UnfinishedFrame {
    /// Which one, as `FrameCutter.unfinishedFrame` has it; 0 for none.
    var number = 0
    /// When that was found first, in monotonic milliseconds.
    var since: Int64 = 0
    /// What is held of a block, which is part of `heldBytes`.
    var blockBytes = 0
}

extension HTTP2Session {
    /// Looks at what the last read has left unfinished, and counts what is held of a block.
    @inline(__always)
    func noteUnfinishedFrame() {
        let number = self.seam.unfinishedFrame
        if number != self.unfinished.number {
            self.unfinished.number = number
            self.unfinished.since = self.memory.now
        }
        if number != 0, self.seam.isWithinBlock { self.holdBlock() }
    }

    /// Where there is no room for what has come of a block, its stream is refused, and what follows of the block is
    /// read and dropped. The connection ends where that is no help: by the bytes of one connection, or by a field that
    /// is longer than any that is taken.
    private func holdBlock() {
        var bytes = self.seam.pendingFieldBytes
        if let slot = self.current, slot.state.phase == .receiving, !slot.state.isHeld {
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
        self.unfinished.blockBytes = bytes
        self.heldBytes += bytes
    }

    /// The block goes on, or the connection has ended.
    @inline(__always)
    func letGoOfBlock() {
        self.heldBytes -= self.unfinished.blockBytes
        self.unfinished.blockBytes = 0
    }
}

// MARK: - Frames that carry no request

extension HTTP2Session {
    /// Records of TLS have come that carry nothing for us, but make work.
    func controlRecordsReceived(_ count: Int) {
        for _ in 0..<count where !self.isEndedByLimit { self.controlFrameReceived() }
    }

    func continuationAnnounced() {
        self.continuations += 1
        if self.continuations > self.memory.limits.continuationFramesMax {
            self.endByLimit(.continuationFramesMax)
        } else {
            self.controlFrameReceived()
        }
    }

    /// Ends the connection of a peer that makes us work for nothing.
    func endByLimit(_ limit: TransportLimit, _ code: HTTP2ErrorCode = .enhanceYourCalm) {
        // What came with the frame that was too many is still looked at.
        guard !self.isEndedByLimit else { return }
        self.isEndedByLimit = true
        self.memory.tally.met(limit)
        self.terminate(code)
    }
}
