package import Engine
import Policy
package import Wire

/// Writes events, sorted by device, into one chunk.
///
/// A chunk is its seal, eight bytes of base time, and groups: eight bytes of device, one byte with the count of bytes
/// that follow, and the device's events. A device with more than fits has several groups, one behind the other.
///
/// An event is a byte of code and flags (`EventFlags`), for some a second one, its time as a zigzag varint (against
/// the device's event before it in this chunk; of the first one against the base), attempt and coalesced count of a
/// launch as varints, and the identifiers that are not the one named last; a part of a name is written as an event that
/// names pushes, and names none. All numbers are little-endian.
package struct EventChunkWriter: ~Copyable {
    /// The most bytes one event takes: group, flags, time, two numbers, two identifiers.
    private static let eventBytesMax = 9 + 2 + 10 + 6 + 40
    /// The most bytes a group's count can say.
    private static let groupBytesMax = 255

    /// The pushes an event named for the first time in its group; what the index of pushes has to know.
    package struct Names {
        var apnsID = false
        var related = false
    }

    /// The chunk as far as it is written; whole once it is closed.
    package private(set) var buffer = ByteBuffer()
    /// How many events are in it.
    package private(set) var eventCount = 0
    private var device: UInt64 = 0
    /// Where the group's byte count stands.
    private var countOffset = 0
    private var previousAt: Int64 = 0
    private var base: Int64 = 0
    private var named: APNsID?

    /// An empty chunk.
    package init() {}

    /// Whether another event fits, whatever it is.
    package var hasRoom: Bool { RunTable.chunkBytesMax - self.buffer.count >= Self.eventBytesMax }

    /// Appends an event, for which there must be room; its device is that of the one before or sorts behind it.
    ///
    /// - Returns: which of its pushes are new in its group.
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

    /// Seals the chunk; `removeAll` makes ready for the next.
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
        names.related = related == .written
        let upperCase = names.apnsID && event.apnsID?.upperCase != 0 || names.related && event.related?.upperCase != 0
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
        if names.related, let related = event.related { self.write(related, withCase: upperCase) }
        guard !event.isNamePart else { return Names() }
        if let apnsID = event.apnsID { self.named = apnsID }
        return names
    }

    private mutating func write(_ apnsID: APNsID, withCase: Bool) {
        self.buffer.append(apnsID.first, apnsID.second)
        if withCase { self.buffer.append(halfWord: apnsID.upperCase) }
    }
}
