import Policy
public import Wire

/// A durable store of records.
///
/// A store has one user at a time, on any thread.
package protocol RecordStore: AnyObject {
    /// Calls `take` with the newest record of every key, each once, in no particular order. A view is valid during the
    /// call.
    ///
    /// Event records are an exception: every record that still exists is passed, perhaps twice. Called once, before
    /// `begin`. Nothing is written.
    ///
    /// - Throws: `StoreError` if the store cannot be read completely. Records already passed must then be discarded.
    func load(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError)

    /// The committed data that is lost; nil if none is. `begin` accepts the loss. Available until `begin`.
    var loss: StoreLoss? { get }

    /// True if `begin` forks the history of another store, because this store is a copy or has lost data. Sequence
    /// numbers could then be assigned twice. Available until `begin`.
    var isFork: Bool { get }

    /// Accepts the loaded records after the caller has verified them. They are then durable. Called once, before the
    /// first commit. Until then, no file is changed.
    ///
    /// - Throws: `StoreError` if the store cannot be written; it is then unusable.
    func begin() throws(StoreError)

    /// Makes one batch durable. After the call has returned, a crash does not lose the batch.
    ///
    /// - Throws: `StoreError` on failure. The next start may or may not find the batch. Its effects must not be
    ///   published, and no further commit may follow.
    func commit(_ batch: borrowing RecordBatch) throws(StoreError)

    /// The reason why commits fail, if it is known before the next commit. May be read on any thread.
    var failure: StoreError? { get }

    /// Reads the durable records again and passes them like `load`. Call this only after a commit has failed.
    func reload(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError)
}

extension RecordStore {
    package var isFork: Bool { self.loss != nil }

    package var failure: StoreError? { nil }
}

/// An error of a store.
package struct StoreError: Error, Hashable, Sendable {
    /// The problem, the file and the remedy, in full sentences.
    package let message: String

    package init(message: String) {
        self.message = message
    }
}

extension StoreError: CustomStringConvertible {
    package var description: String { self.message }
}

/// Committed data that a store has lost.
package struct StoreLoss: Hashable, Sendable {
    /// The path of the damaged file.
    package let file: String
    /// The damage, as a clause.
    package let fault: String
    /// The numbers of missing rows and commits; nil if unknown.
    package let rows: Int64?
    package let commits: Int64?
    /// The times of the newest commit that remains and of the newest that is missing, in milliseconds since 1970; nil
    /// if unknown.
    package let since: Int64?
    package let until: Int64?

    package init(
        file: String,
        fault: String,
        rows: Int64? = nil,
        commits: Int64? = nil,
        since: Int64? = nil,
        until: Int64? = nil
    ) {
        self.file = file
        self.fault = fault
        self.rows = rows
        self.commits = commits
        self.since = since
        self.until = until
    }
}

/// The key of a record. A newer record replaces an older one with the same key, except for events.
package struct RecordKey: Hashable, Sendable {
    package enum Kind: UInt8, CaseIterable, Sendable {
        /// Policy time and wall clock of the commit; one record, index 0.
        case clock = 1
        /// The time since which the counters count: index 0. Index 1 is `RecordKey.workerAuthentication`.
        case origin = 2
        /// A topic with its counters, by topic number.
        case topic = 3
        /// A device, by its position in the device table.
        case device = 4
        /// Rejected pushes by reason, by topic number; `RecordKey.everyTopic` for the total.
        case rejections = 5
        /// The history of launch policies; one record, index 0.
        case policies = 6
        /// Events for the history, by the lower half of their sequence number. A newer record replaces no older record.
        case events = 7
        /// The requests, sessions and habits of a device, by its position; empty if it has none left.
        case tasks = 8
    }

    /// The key of a record that exists if workers were required to authenticate. Its content is the start of the
    /// counters, because older versions expect that in every record of this kind.
    package static let workerAuthentication = RecordKey(.origin, 1)

    /// The index for the total of all topics.
    package static let everyTopic = UInt32.max

    package let kind: Kind
    package let index: UInt32

    package init(_ kind: Kind, _ index: UInt32 = 0) {
        self.kind = kind
        self.index = index
    }

    /// True if newer records with this key replace no older ones. Other modules use this instead of a comparison, which
    /// would not be specialized there.
    package var isEvents: Bool { self.kind == .events }
}

/// The records of one commit, each key at most once, in contiguous bytes.
///
/// A record is a header of 9 bytes (kind, index and byte count, little-endian) and its content.
package struct RecordBatch: ~Copyable {
    /// The size of a record's header in bytes.
    package static let headerCount = 9

    /// Returns the header of the record at `offset` of `bytes`.
    ///
    /// - Returns: nil if the record is incomplete or of an unknown kind.
    package static func header(of bytes: ByteView, at offset: Int) -> (key: RecordKey, count: Int)? {
        guard offset >= 0, bytes.count - offset >= Self.headerCount, let kind = RecordKey.Kind(rawValue: bytes[offset])
        else { return nil }
        let index = UInt32(littleEndian: bytes.load(UInt32.self, at: offset + 1))
        let count = Int(UInt32(littleEndian: bytes.load(UInt32.self, at: offset + 5)))
        guard bytes.count - offset - Self.headerCount >= count else { return nil }
        return (RecordKey(kind, index), count)
    }

    private var buffer = ByteBuffer()

    package init() {}

    package var isEmpty: Bool { self.buffer.isEmpty }

    /// All records in order; valid until the next change of the batch.
    package var bytes: ByteView { self.buffer.view }

    /// Appends a record whose content `write` appends to the buffer.
    package mutating func append(_ key: RecordKey, _ write: (inout ByteBuffer) -> Void) {
        self.buffer.append(key.kind.rawValue)
        self.buffer.append(memoryOf: key.index.littleEndian)
        self.buffer.append(memoryOf: UInt32(0))
        let start = self.buffer.count
        write(&self.buffer)
        self.buffer.overwrite(memoryOf: UInt32(self.buffer.count - start).littleEndian, at: start - 4)
    }

    /// Calls `body` with every record, in order. A view is valid during the call.
    package func forEach(_ body: (RecordKey, ByteView) -> Void) {
        let bytes = self.buffer.view
        var offset = 0
        while let (key, count) = Self.header(of: bytes, at: offset) {
            let start = offset + Self.headerCount
            body(key, bytes[start..<start + count])
            offset = start + count
        }
    }

    /// Removes every record and keeps the memory.
    package mutating func removeAll() {
        self.buffer.removeAll()
    }
}

/// A reader for the output of `ByteBuffer.appendLittleEndian`.
///
/// The reader returns zeros past the end, and the lower bound of the range for a value outside of its range. `isWhole`
/// is then false, so that a caller needs only one check at the end of a record.
///
/// The code is inlinable because unspecialized generic code would be many times slower.
@usableFromInline
package struct RecordReader {
    @usableFromInline let bytes: ByteView
    /// The number of bytes read.
    @usableFromInline package var offset = 0
    /// True if a part was missing.
    @usableFromInline package var isShort = false
    private var isImpossible = false

    package init(_ bytes: ByteView) {
        self.bytes = bytes
    }

    /// True if every part was present and valid, and no bytes remain.
    var isWhole: Bool { !self.isShort && !self.isImpossible && self.offset == self.bytes.count }

    /// True if every part was present so far, and bytes remain.
    @inlinable
    package var hasMore: Bool { !self.isShort && self.offset < self.bytes.count }

    @inlinable
    package mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type = Value.self) -> Value
    {
        guard self.take(MemoryLayout<Value>.size) else { return 0 }
        return Value(littleEndian: self.bytes.load(Value.self, at: self.offset - MemoryLayout<Value>.size))
    }

    /// Reads the time of an event. Sums and differences of such times do not overflow.
    mutating func moment() -> Instant {
        Instant(milliseconds: self.integer(-Self.momentMax...Self.momentMax))
    }

    /// Reads a time chosen by a client, such as an expiry. It may be later than any time of an event. Differences of
    /// such times, and sums with the time of an event, do not overflow.
    mutating func distantMoment() -> Instant {
        Instant(milliseconds: self.integer(-Self.momentMax...Self.distantMomentMax))
    }

    /// Reads a counter. Thousands of counters can be added without overflow.
    mutating func count() -> Int64 { self.integer(0...Self.countMax) }

    /// Reads an integer; returns the lower bound of `range` if the integer is outside of it.
    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(_ range: ClosedRange<Value>) -> Value {
        let value: Value = self.integer()
        if range.contains(value) { return value }
        self.isImpossible = true
        return range.lowerBound
    }

    /// 36 million years, in milliseconds.
    private static let momentMax: Int64 = 1 << 60
    /// An upper bound of the results of `WallOffset.instant`.
    private static let distantMomentMax: Int64 = 3 << 61
    /// 100,000 per second for 89 years.
    private static let countMax: Int64 = 1 << 48

    /// Returns the next `count` bytes; empty if fewer remain.
    @inlinable
    package mutating func view(_ count: Int) -> ByteView {
        guard self.take(count) else { return ByteView() }
        return self.bytes[self.offset - count..<self.offset]
    }

    @inlinable
    mutating func take(_ count: Int) -> Bool {
        guard !self.isShort, count <= self.bytes.count - self.offset else {
            self.isShort = true
            return false
        }
        self.offset += count
        return true
    }
}

extension ByteBuffer {
    /// Appends the bytes of `value`, with the least significant first.
    @inline(__always)
    mutating func appendLittleEndian<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value) {
        self.append(memoryOf: value.littleEndian)
    }
}
