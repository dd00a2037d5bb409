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
        if self.heldBytes + bytes > self.core.limits.requestBytesPerConnectionMax { return .connection }
        return self.core.requestBytes.hasRoom(for: self.uncountedBytes + bytes) ? .none : .server
    }

    /// Hands over what has arrived of a request that there is no room for: it is answered, and the rest thrown away.
    func refuse(_ slot: StreamSlot, _ shortage: RequestShortage) {
        self.letGo(slot)
        self.core.tally.met(shortage == .connection ? .requestBytesPerConnectionMax : .requestBytesMax)
        slot.state.shortage = shortage
        slot.state.bodyStart = slot.state.received.count
        self.deliver(slot)
    }

    /// Brings the count of all loops up to date: once a read, and not at all for requests that came whole.
    func countHeldBytes() {
        guard self.heldBytes != self.countedBytes else { return }
        self.core.requestBytes.change(by: self.heldBytes - self.countedBytes)
        self.countedBytes = self.heldBytes
    }

    /// The bytes held that the count of all loops does not know of yet.
    var uncountedBytes: Int { self.heldBytes - self.countedBytes }

    /// Counts what leaves with RST_STREAM or GOAWAY, if a bound of the library's is the reason.
    func countError(_ frame: UnsafeRawBufferPointer) {
        let isGoAway = unsafe frame[3] == 7
        let codeStart = isGoAway ? 13 : 9
        guard frame.count >= codeStart + 4 else { return }
        let code = unsafe UInt32(bigEndian: frame.loadUnaligned(fromByteOffset: codeStart, as: UInt32.self))
        if code == HTTP2ErrorCode.flowControlError.number {
            self.core.tally.met(isGoAway ? .connectionWindowBytes : .streamWindowBytes)
        } else if code == HTTP2ErrorCode.frameSizeError.number, isGoAway {
            // Frames of a wrong size get the same code, with another reason.
            let reason = unsafe ByteView(UnsafeRawBufferPointer(rebasing: frame[(codeStart + 4)...]))
            if reason == "too large frame size" { self.core.tally.met(.frameBytesMax) }
        }
    }
}

// MARK: - Frames that carry no request

extension HTTP2Session {
    func continuationAnnounced() {
        guard !self.isEndingBlock else { return }
        self.continuations += 1
        if self.continuations > self.core.limits.continuationFramesMax {
            self.endByLimit(.continuationFramesMax)
        } else {
            self.controlFrameReceived()
        }
    }

    /// Ends the connection of a peer that makes us work for nothing.
    func endByLimit(_ limit: TransportLimit) {
        // What came with the frame that was too many is still looked at.
        guard !self.isEndedByLimit else { return }
        self.isEndedByLimit = true
        self.core.tally.met(limit)
        self.terminate(.enhanceYourCalm)
    }
}

extension HTTP2Core {
    /// Notes that a streaming answer has passed the bound after which its handler is told when it is taken.
    func noteStreaming(_ slot: StreamSlot) {
        guard !slot.state.isAboveStreamingLimit, slot.state.output.count > self.limits.streamingBytesSoftMax else {
            return
        }
        slot.state.isAboveStreamingLimit = true
        self.tally.met(.streamingBytesSoftMax)
    }
}
