package import Engine
import Policy
package import Wire

/// Reads what `EventChunkWriter` wrote.
package struct EventChunkReader {
    private var reader: ByteReader
    private let base: Int64
    private var device: UInt64 = 0
    private var previousAt: Int64 = 0
    private var named: APNsID?

    /// nil when the chunk is damaged.
    package init?(_ chunk: ByteView) {
        guard let content = ChunkSeal.open(chunk) else { return nil }
        self.reader = ByteReader(content)
        self.base = Int64(bitPattern: self.reader.word())
    }

    /// Appends the events of `device`, or of all devices when it is nil, in the order they were written.
    ///
    /// - Returns: false when the chunk is damaged; some events may be there nevertheless.
    package mutating func read(_ device: UInt64?, into events: inout [HistoryEvent]) -> Bool {
        var isFirst = true
        while !self.reader.isAtEnd {
            let group = self.reader.word()
            let end = Int(self.reader.byte()) + self.reader.offset
            if isFirst || group != self.device {
                self.device = group
                self.previousAt = self.base
                self.named = nil
                isFirst = false
            }
            if let device, device != group {
                if group > device { break }
                self.reader.skip(end - self.reader.offset)
            } else {
                while self.reader.offset < end {
                    guard let event = self.event() else { return false }
                    events.append(event)
                }
                guard self.reader.offset == end else { return false }
            }
        }
        return !self.reader.isDamaged
    }

    /// nil when there is no whole event.
    private mutating func event() -> HistoryEvent? {
        guard let flags = EventFlags(&self.reader) else { return nil }
        self.previousAt &+= Int64(zigzag: self.reader.varint())
        let attempt = flags.hasNumbers ? UInt16(truncatingIfNeeded: self.reader.varint()) : 0
        let coalesced = flags.hasNumbers ? UInt16(truncatingIfNeeded: self.reader.varint()) : 0
        let apnsID = self.identifier(flags.identifier, flags)
        let related = self.identifier(flags.related, flags)
        guard !self.reader.isDamaged else { return nil }
        let event = HistoryEvent(
            device: self.device,
            at: Instant(milliseconds: self.previousAt),
            code: flags.code,
            attempt: attempt,
            coalesced: coalesced,
            apnsID: apnsID,
            related: related
        )
        if let event, let apnsID, !event.isNamePart { self.named = apnsID }
        return event
    }

    private mutating func identifier(_ mode: EventFlags.Identifier, _ flags: EventFlags) -> APNsID? {
        switch mode {
        case .none: return nil
        case .named: return self.named
        case .written:
            let first = self.reader.word()
            let second = self.reader.word()
            return APNsID(first: first, second: second, upperCase: flags.hasUpperCase ? self.reader.halfWord() : 0)
        }
    }
}
