package import Engine
import Policy
package import Wire

/// Encodes events that are sorted by device into one chunk.
///
/// A chunk consists of a seal, eight bytes of base time, and groups. A group has a device's number (8 bytes), the
/// length of its events (1 byte), and the events. If a device's events do not fit into one group, several groups follow
/// each other.
///
/// An event has these parts:
///
/// - one or two bytes of code and flags (`EventFlags`);
/// - its time as a zigzag varint, relative to the device's previous event in this chunk; for the first event, relative
///   to the base time;
/// - `attempt` and `coalesced` as varints, if one of them is not zero;
/// - each identifier that differs from the last one of the device.
///
/// A part of a name is encoded like an event that names pushes. All numbers are little-endian.
package struct EventChunkWriter: ~Copyable {
    /// The maximum number of bytes of one event: group, flags, time, two numbers, two identifiers.
    private static let eventBytesMax = 9 + 2 + 10 + 6 + 40
    /// The maximum number of bytes of a group, whose length is stored in one byte.
    private static let groupBytesMax = 255

    /// The identifiers of an event for which the index of pushes needs an entry: true for a push that the group has not
    /// named before.
    package struct Names {
        var apnsID = false
        var related = false
    }

    /// The bytes written so far; a complete chunk after `close`.
    package private(set) var buffer = ByteBuffer()
    /// The number of events in the chunk.
    package private(set) var eventCount = 0
    private var device: UInt64 = 0
    /// The offset of the group's length byte.
    private var countOffset = 0
    private var previousAt: Int64 = 0
    private var base: Int64 = 0
    private var named: APNsID?

    /// Creates an empty chunk.
    package init() {}

    /// True if an event of any size fits.
    package var hasRoom: Bool { RunTable.chunkBytesMax - self.buffer.count >= Self.eventBytesMax }

    /// Appends an event. `hasRoom` must be true, and the device number must not be less than the previous one.
    ///
    /// - Returns: true for each push of the event that is new in its group.
    package mutating func append(_ event: HistoryEvent) -> Names {
        if self.eventCount == 0 { self.begin(event) }
        if self.eventCount == 0 || self.device != event.device {
            self.beginGroup(event.device)
            self.previousAt = self.base
            self.named = nil
        } else if self.buffer.count - self.countOffset + Self.eventBytesMax > Self.groupBytesMax {
            self.beginGroup(event.device)
        }
        self.eventCount += 1
        let names = self.write(event)
        let count = self.buffer.count - self.countOffset - 1
        self.buffer.overwrite(memoryOf: UInt8(truncatingIfNeeded: count), at: self.countOffset)
        return names
    }

    /// Completes the chunk with its checksum. Call `removeAll` before the next chunk.
    package mutating func close() {
        ChunkSeal.close(&self.buffer)
    }

    mutating func removeAll() {
        self.buffer.removeAll()
        self.eventCount = 0
    }

    private mutating func begin(_ event: HistoryEvent) {
        self.base = event.at.milliseconds
        self.buffer.append(word: 0)
        self.buffer.append(word: UInt64(bitPattern: self.base))
    }

    private mutating func beginGroup(_ device: UInt64) {
        self.device = device
        self.buffer.append(word: device)
        self.countOffset = self.buffer.count
        self.buffer.append(0)
    }

    private mutating func write(_ event: HistoryEvent) -> Names {
        var names = Names()
        let identifier = EventFlags.Identifier(event.apnsID, named: self.named)
        let related = EventFlags.Identifier(event.related, named: self.named)
        names.apnsID = identifier == .written
        names.related = related == .written && event.relatedPush != nil
        let upperCase =
            names.apnsID && event.apnsID?.upperCase != 0 || related == .written && event.related?.upperCase != 0
        let flags = EventFlags(
            code: event.code,
            hasNumbers: event.attempt != 0 || event.coalesced != 0,
            identifier: identifier,
            related: related,
            hasUpperCase: upperCase
        )
        flags.write(to: &self.buffer)
        self.buffer.append(varint: (event.at.milliseconds &- self.previousAt).zigzag)
        self.previousAt = event.at.milliseconds
        if flags.hasNumbers {
            self.buffer.append(varint: UInt64(event.attempt))
            self.buffer.append(varint: UInt64(event.coalesced))
        }
        if names.apnsID, let apnsID = event.apnsID { self.write(apnsID, withCase: upperCase) }
        if related == .written, let related = event.related { self.write(related, withCase: upperCase) }
        guard !event.isNamePart else { return Names() }
        if let apnsID = event.apnsID { self.named = apnsID }
        return names
    }

    private mutating func write(_ apnsID: APNsID, withCase: Bool) {
        self.buffer.append(apnsID.first, apnsID.second)
        if withCase { self.buffer.append(halfWord: apnsID.upperCase) }
    }
}

/// Decodes chunks of `EventChunkWriter`.
package struct EventChunkReader {
    private var reader: RecordReader
    private let base: Int64
    private var device: UInt64 = 0
    private var previousAt: Int64 = 0
    private var named: APNsID?

    /// Opens a chunk; nil if it is damaged.
    package init?(_ chunk: ByteView) {
        guard let content = ChunkSeal.open(chunk) else { return nil }
        self.reader = RecordReader(content)
        self.base = self.reader.integer()
    }

    /// Appends the events of `device`, or of all devices if `device` is nil, in the order in which they were written.
    ///
    /// - Returns: false if the chunk is damaged. Some events may have been appended.
    package mutating func read(_ device: UInt64?, into events: inout [HistoryEvent]) -> Bool {
        var isFirst = true
        while self.reader.hasMore {
            let group: UInt64 = self.reader.integer()
            let end = Int(self.reader.integer(UInt8.self)) + self.reader.offset
            if isFirst || group != self.device {
                self.device = group
                self.previousAt = self.base
                self.named = nil
                isFirst = false
            }
            if let device, device != group {
                if group > device { break }
                _ = self.reader.view(end - self.reader.offset)
            } else {
                while self.reader.offset < end {
                    guard let event = self.event() else { return false }
                    events.append(event)
                }
                guard self.reader.offset == end else { return false }
            }
        }
        return !self.reader.isShort
    }

    /// Decodes an event; nil if it is incomplete.
    private mutating func event() -> HistoryEvent? {
        guard let flags = EventFlags(&self.reader) else { return nil }
        self.previousAt &+= Int64(zigzag: self.reader.varint())
        let attempt = flags.hasNumbers ? UInt16(truncatingIfNeeded: self.reader.varint()) : 0
        let coalesced = flags.hasNumbers ? UInt16(truncatingIfNeeded: self.reader.varint()) : 0
        let apnsID = self.identifier(flags.identifier, flags)
        let related = self.identifier(flags.related, flags)
        guard !self.reader.isShort else { return nil }
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
            let (first, second): (UInt64, UInt64) = (self.reader.integer(), self.reader.integer())
            return APNsID(first: first, second: second, upperCase: flags.hasUpperCase ? self.reader.integer() : 0)
        }
    }
}

/// The first one or two bytes of an encoded event, which determine its other parts.
///
/// The lower five bits of the first byte are the code. Bit 5 means that two numbers follow. Bits 6 and 7 are the
/// encoding of the push, or 3 if a second byte follows.
///
/// In the second byte, bits 0 and 1 are the encoding of the push, and bits 2 and 3 that of the related push. Bit 4
/// means that each written identifier is followed by four bytes, whose bits mark its upper-case letters.
struct EventFlags {
    /// The encoding of a push identifier.
    enum Identifier: UInt8 {
        case none = 0
        /// Sixteen bytes follow.
        case written = 1
        /// The last push that an event of this device named.
        case named = 2

        init(_ apnsID: APNsID?, named: APNsID?) {
            guard let apnsID else {
                self = .none
                return
            }
            self = named.map { apnsID.isSpelled(as: $0) } ?? false ? .named : .written
        }
    }

    private static let extended: UInt8 = 3

    let code: UInt8
    let hasNumbers: Bool
    let identifier: Identifier
    let related: Identifier
    let hasUpperCase: Bool

    func write(to buffer: inout ByteBuffer) {
        let isExtended = self.related != .none || self.hasUpperCase
        let mode = isExtended ? Self.extended : self.identifier.rawValue
        buffer.append(self.code | (self.hasNumbers ? 1 << 5 : 0) | mode << 6)
        guard isExtended else { return }
        let upperCase: UInt8 = self.hasUpperCase ? 1 << 4 : 0
        buffer.append(self.identifier.rawValue | self.related.rawValue << 2 | upperCase)
    }
}

extension EventFlags {
    /// Decodes the bytes; nil for values that the writer does not use.
    init?(_ reader: inout RecordReader) {
        let first: UInt8 = reader.integer()
        var modes = first >> 6
        if modes == Self.extended { modes = reader.integer() }
        guard modes < 1 << 5, let identifier = Identifier(rawValue: modes & 3),
            let related = Identifier(rawValue: modes >> 2 & 3)
        else { return nil }
        self.init(
            code: first & 31,
            hasNumbers: first & 1 << 5 != 0,
            identifier: identifier,
            related: related,
            hasUpperCase: modes & 1 << 4 != 0
        )
    }
}

extension RecordReader {
    /// Returns the number that `append(varint:)` wrote; 0 for bytes that it does not write, which count as missing.
    mutating func varint() -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            let byte: UInt8 = self.integer()
            value |= UInt64(byte & 0x7F) &<< shift
            if byte < 0x80 { return value }
        }
        self.isShort = true
        return 0
    }
}

extension ByteBuffer {
    /// Appends the number in groups of seven bits, the lowest group first. All bytes except the last have their top bit
    /// set.
    @inline(__always)
    mutating func append(varint value: UInt64) {
        guard value >= 0x80 else { return self.append(UInt8(truncatingIfNeeded: value)) }
        self.append(longVarint: value)
    }

    private mutating func append(longVarint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            self.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        self.append(UInt8(truncatingIfNeeded: rest))
    }
}

extension Int64 {
    /// The number with its sign in the lowest bit. Small numbers of either sign are therefore short as varints.
    var zigzag: UInt64 { UInt64(bitPattern: (self << 1) ^ (self >> 63)) }

    init(zigzag: UInt64) {
        self = Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1)
    }
}

/// The first eight bytes of a chunk: a checksum of all later bytes.
package enum ChunkSeal {
    /// The length of a seal in bytes.
    package static let byteCount = 8

    /// Writes the checksum into the first eight bytes of `chunk`, which must exist.
    package static func close(_ chunk: inout ByteBuffer) {
        let sum = self.checksum(chunk.view.dropFirst(self.byteCount))
        chunk.overwrite(memoryOf: sum.littleEndian, at: 0)
    }

    /// Returns the bytes after the checksum; nil if the checksum is wrong.
    static func open(_ chunk: ByteView) -> ByteView? {
        guard chunk.count >= self.byteCount else { return nil }
        let content = chunk.dropFirst(self.byteCount)
        return chunk.word(at: 0) == self.checksum(content) ? content : nil
    }

    private static func checksum(_ bytes: ByteView) -> UInt64 {
        var state = UInt64(bytes.count) ^ 0x9E37_79B9_7F4A_7C15
        var index = 0
        while index + 16 <= bytes.count {
            state = FoldedProduct.of(bytes.word(at: index) ^ 0xA076_1D64_78BD_642F, bytes.word(at: index + 8) ^ state)
            index += 16
        }
        var rest: (UInt64, UInt64) = (0, 0)
        while index < bytes.count {
            rest = (rest.0 << 8 | rest.1 >> 56, rest.1 << 8 | UInt64(bytes[index]))
            index += 1
        }
        state = FoldedProduct.of(rest.0 ^ 0xE703_7ED1_A0B4_28DB, rest.1 ^ state)
        return FoldedProduct.of(state ^ 0x8EBC_6AF0_9C88_C6E3, 0x5895_89B2_2C0F_7D1D)
    }
}
