internal import Bytes

/// From the bytes of a field block to the fields of a request.
extension HTTP2Session {
    /// How many times the limit a header list may take before its stream is reset instead of answered 431: 16 KiB of
    /// references stand for a list of up to 60 MiB, all of which has to be looked at (RFC 7541 §7.3).
    static let overlongListFactor = 4

    /// Gives the library a frame without the piece of a block in it, and reads that piece.
    ///
    /// The piece is read before the library hears that the block has ended: a whole block as soon as the library takes
    /// it, any other in between, and then the end is told with an empty frame of our own.
    func receive(_ piece: FrameCutter.Piece) {
        let isWholeBlock = piece.beginsFrame && piece.head.isHeaders && piece.endsBlock
        self.piece = piece
        if piece.beginsFrame {
            if piece.head.isHeaders { self.blockStream = nil }
            self.feed(piece.head.withoutBlock(endsBlock: isWholeBlock), piece.priority)
        }
        self.readPiece()
        guard piece.endsBlock, !isWholeBlock else { return }
        self.isEndingBlock = true
        self.feed(piece.head.end, ByteView())
        self.isEndingBlock = false
    }

    private func feed(_ head: FrameHead, _ payload: ByteView) {
        self.core.frameHead.removeAll()
        head.write(to: &self.core.frameHead)
        self.core.frameHead.append(payload)
        self.feed(self.core.frameHead.view)
    }

    /// Reads the piece of a block that has come, unless that was done.
    func readPiece() {
        guard let piece = self.piece else { return }
        self.piece = nil
        do throws(FieldDecoder.Fault) {
            let isLast = piece.endsBlock
            try self.decoder.decode(piece.bytes, isLast: isLast, in: &self.core.fieldMemory) { name, value, note in
                self.fieldReceived(name, value, &note)
            }
        } catch {
            self.blockStream = nil
            self.terminate(.compressionError)
        }
    }

    /// A field has come; a fault in it resets the stream, and what follows of the block is read and dropped.
    @inline(__always)
    private func fieldReceived(_ name: ByteView, _ value: ByteView, _ note: inout UInt32) {
        guard let number = self.blockStream else { return }
        guard let kind = self.rules.admit(name, value, &note) else {
            return self.refuseBlock(of: number, .protocolError)
        }
        if let slot = self.current, slot.state.phase == .receiving {
            slot.state.fieldReceived(name, value, kind, headerListBytesMax: self.core.limits.headerListBytesMax)
            guard slot.state.isHeaderListTooLarge else { return }
            self.fieldBytes = slot.state.headerListBytes
        } else {
            self.fieldBytes += name.count + value.count + 32
        }
        guard self.fieldBytes > self.core.limits.headerListBytesMax * Self.overlongListFactor else { return }
        self.core.tally.met(.headerListBytesMax)
        self.refuseBlock(of: number, .enhanceYourCalm)
    }

    func refuseBlock(of number: Int32, _ fault: HTTP2ErrorCode) {
        self.blockStream = nil
        self.refuse(number, fault)
    }
}
