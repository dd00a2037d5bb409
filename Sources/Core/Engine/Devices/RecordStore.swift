import Policy
package import Wire

/// Keeps records so that they outlive the process.
///
/// It has one user at a time, on any thread.
package protocol RecordStore: AnyObject {
    /// Hands over the newest record of every key, each once, in no particular order; a view is valid during the call.
    ///
    /// Of events it hands over every record that is still there, some perhaps twice, and in any case the newest.
    /// Called once, before `begin`. Nothing is written.
    ///
    /// - Throws: `StoreError` when what is kept cannot be read whole; then nothing that was handed over may be used.
    func load(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError)

    /// What was lost of what was once committed, and is given up by `begin`; nil when nothing was. Known until then.
    var loss: StoreLoss? { get }

    /// What `begin` makes goes on beside another store from what both have in common: it is a copy, or something is
    /// given up. Numbers that either gives could be given by the other, too. Known until then.
    var beginsAnother: Bool { get }

    /// Takes over what was loaded, when its user has verified what it means: it is durable from here on, and commits
    /// may follow. Called once, before the first commit; until then every file is as it was.
    ///
    /// - Throws: `StoreError` when nothing can be written; the store is then of no use.
    func begin() throws(StoreError)

    /// Makes one batch durable: when this returns, a crash loses nothing of it.
    ///
    /// - Throws: `StoreError` when it could not. Whether the batch is found at the next start is then open: nothing of
    ///   it may be told to anybody, and nothing more may be committed.
    func commit(_ batch: borrowing RecordBatch) throws(StoreError)

    /// Why nothing more can be committed, if that is known before the next commit. Any thread.
    var failure: StoreError? { get }

    /// Hands over, as `load` does, what was durable when a commit failed, reading it anew. Only after a failure.
    func reload(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError)
}

extension RecordStore {
    package var beginsAnother: Bool { self.loss != nil }

    package var failure: StoreError? { nil }
}

/// Why a store could not keep, or not give back, what it was asked for.
package struct StoreError: Error, Hashable, Sendable {
    /// What happened, to which file, and what to do, in whole sentences.
    package let message: String

    package init(message: String) {
        self.message = message
    }
}

extension StoreError: CustomStringConvertible {
    package var description: String { self.message }
}

/// What a store has lost of what was once committed, and goes on without.
package struct StoreLoss: Hashable, Sendable {
    /// The path of the file that lacks it.
    package let file: String
    /// What is wrong with it, as a clause.
    package let fault: String
    /// How many rows and commits are missing; nil when nothing tells.
    package let rows: Int64?
    package let commits: Int64?
    /// When the newest commit that is there was made, and the newest that is missing, in milliseconds since 1970; nil
    /// when nothing tells.
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

/// Names what a record is about; of several records with one key the newest counts, and of events each.
package struct RecordKey: Hashable, Sendable {
    package enum Kind: UInt8, CaseIterable, Sendable {
        /// Policy time and wall clock of the commit; one record, index 0.
        case clock = 1
        /// When the counters began; one record, index 0, and `RecordKey.workersAsked`.
        case origin = 2
        /// A topic with its counters, by topic number.
        case topic = 3
        /// A device, by its place in the engine's table.
        case device = 4
        /// Refused pushes by reason, of one topic; `RecordKey.everyTopic` for those of all.
        case rejections = 5
        /// Which launch policies were in force when; one record, index 0.
        case policies = 6
        /// Events for the history, by the lower half of their sequence number: none takes the place of another.
        case events = 7
        /// What a device has besides its own record for its requests, sessions and habits; empty when there is nothing
        /// any more.
        case tasks = 8
    }

    /// Workers were asked who they are, and had something to show. It says again when the counters began: that is what
    /// programs take it for that know no other record of this kind.
    package static let workersAsked = RecordKey(.origin, 1)

    /// The index of what concerns all topics.
    package static let everyTopic = UInt32.max

    package let kind: Kind
    package let index: UInt32

    package init(_ kind: Kind, _ index: UInt32 = 0) {
        self.kind = kind
        self.index = index
    }
}

/// The records of one commit, each key at most once, in one run of bytes.
///
/// A record is a header of 9 bytes (kind, index and byte count, little-endian) and its content.
package struct RecordBatch: ~Copyable {
    /// The bytes of a record's header.
    package static let headerCount = 9

    /// The header of the record that begins at `offset` of `bytes`.
    ///
    /// - Returns: nil when there is no whole record of a known kind.
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

    /// All records, one behind the other; valid until the batch is next changed.
    package var bytes: ByteView { self.buffer.view }

    /// Appends a record whose content `write` appends to the buffer it is given.
    package mutating func append(_ key: RecordKey, _ write: (inout ByteBuffer) -> Void) {
        self.buffer.append(key.kind.rawValue)
        self.buffer.append(memoryOf: key.index.littleEndian)
        self.buffer.append(memoryOf: UInt32(0))
        let start = self.buffer.count
        write(&self.buffer)
        self.buffer.overwrite(memoryOf: UInt32(self.buffer.count - start).littleEndian, at: start - 4)
    }

    /// Hands over every record in order; a view is valid during the call.
    package func forEach(_ body: (RecordKey, ByteView) -> Void) {
        let bytes = self.buffer.view
        var offset = 0
        while let (key, count) = Self.header(of: bytes, at: offset) {
            let start = offset + Self.headerCount
            body(key, bytes[start..<start + count])
            offset = start + count
        }
    }

    /// Drops every record and keeps the memory.
    package mutating func removeAll() {
        self.buffer.removeAll()
    }
}

/// Reads what `ByteBuffer.appendLittleEndian` wrote, part by part.
///
/// Past the end, and where something cannot be, it gives zeros and is not `isWhole` any more: whoever reads a record
/// asks once, at its end.
struct RecordReader {
    private let bytes: ByteView
    private var offset = 0
    /// A part was not there.
    private(set) var isShort = false
    private var isImpossible = false

    init(_ bytes: ByteView) {
        self.bytes = bytes
    }

    /// Every part was there, and nothing is left.
    var isWhole: Bool { !self.isShort && !self.isImpossible && self.offset == self.bytes.count }

    /// Every part that was read was there, and something is left.
    var hasMore: Bool { !self.isShort && self.offset < self.bytes.count }

    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type = Value.self) -> Value {
        guard self.take(MemoryLayout<Value>.size) else { return 0 }
        return Value(littleEndian: self.bytes.load(Value.self, at: self.offset - MemoryLayout<Value>.size))
    }

    /// A moment at which something happened or will; sums and differences of such moments do not overflow.
    mutating func moment() -> Instant {
        Instant(milliseconds: self.integer(-Self.momentMax...Self.momentMax))
    }

    /// A moment that a stranger chose, such as an expiry: farther away than what happens, and no less safe.
    mutating func distantMoment() -> Instant {
        Instant(milliseconds: self.integer(-Self.momentMax...Self.distantMomentMax))
    }

    /// A count of what has happened since the beginning; thousands of them can be added up.
    mutating func count() -> Int64 { self.integer(0...Self.countMax) }

    /// An integer that must lie in `range`, or its lower bound.
    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(_ range: ClosedRange<Value>) -> Value {
        let value: Value = self.integer()
        if range.contains(value) { return value }
        self.isImpossible = true
        return range.lowerBound
    }

    /// 36 million years.
    private static let momentMax: Int64 = 1 << 60
    /// What `WallOffset.instant` gives at most lies below, wherever policy time stands.
    private static let distantMomentMax: Int64 = 3 << 61
    /// A hundred thousand a second for 89 years.
    private static let countMax: Int64 = 1 << 48

    /// The next `count` bytes, none when there are fewer.
    mutating func view(_ count: Int) -> ByteView {
        guard self.take(count) else { return ByteView() }
        return self.bytes[self.offset - count..<self.offset]
    }

    private mutating func take(_ count: Int) -> Bool {
        guard !self.isShort, count <= self.bytes.count - self.offset else {
            self.isShort = true
            return false
        }
        self.offset += count
        return true
    }
}

extension ByteBuffer {
    /// Appends the bytes of `value`, the lowest first.
    @inline(__always)
    mutating func appendLittleEndian<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value) {
        self.append(memoryOf: value.littleEndian)
    }
}
