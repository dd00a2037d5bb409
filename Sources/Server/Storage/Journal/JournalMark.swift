import Platform
import Wire

/// What a start must find in a journal: the newest row, and whose it is.
///
/// A mark is never ahead of what is durable. After a crash of the process it is behind by one commit at most, after a
/// loss of power by what was committed since its last sync.
struct JournalMark: Hashable {
    /// "WkGMark" and the version.
    private static let magic: UInt64 = 0x576B_474D_6172_6B01
    static let bytes = 64

    /// Of several marks the one with the highest number counts.
    var number: UInt64
    /// The journal's number, by which it is told from others and from its own copies.
    var journal: UInt64
    /// The newest row, 0 when there was none, and its checksum.
    var row: Int64
    var checksum: Int64
    /// How many commits the journal has had since it counts them.
    var commits: Int64
    /// When the newest commit began, in milliseconds since 1970; 0 when there was none.
    var time: Int64

    /// The first mark of a journal whose newest row, if there is one, lies at `position`.
    static func first(number: UInt64, _ position: JournalPosition?) -> JournalMark {
        var random = RandomBits()
        return JournalMark(
            number: number,
            journal: random.next(),
            row: position?.row ?? 0,
            checksum: position?.checksum ?? 0,
            commits: position?.stamp.commits ?? 0,
            time: position?.stamp.time ?? 0
        )
    }

    /// - Returns: nil when the bytes are no mark, or a damaged one.
    init?(stored bytes: ByteView) {
        guard bytes.count == Self.bytes, Self.word(bytes, 0) == Self.magic else { return nil }
        guard Self.word(bytes, 56) == UInt64(bitPattern: RowChecksum.of(bytes[0..<56], row: 0)) else { return nil }
        self.init(
            number: Self.word(bytes, 8),
            journal: Self.word(bytes, 16),
            row: Int64(bitPattern: Self.word(bytes, 24)),
            checksum: Int64(bitPattern: Self.word(bytes, 32)),
            commits: Int64(bitPattern: Self.word(bytes, 40)),
            time: Int64(bitPattern: Self.word(bytes, 48))
        )
    }

    private init(number: UInt64, journal: UInt64, row: Int64, checksum: Int64, commits: Int64, time: Int64) {
        self.number = number
        self.journal = journal
        self.row = row
        self.checksum = checksum
        self.commits = commits
        self.time = time
    }

    func store(to buffer: inout ByteBuffer) {
        buffer.removeAll()
        buffer.append(memoryOf: Self.magic.littleEndian)
        buffer.append(memoryOf: self.number.littleEndian)
        buffer.append(memoryOf: self.journal.littleEndian)
        buffer.append(memoryOf: self.row.littleEndian)
        buffer.append(memoryOf: self.checksum.littleEndian)
        buffer.append(memoryOf: self.commits.littleEndian)
        buffer.append(memoryOf: self.time.littleEndian)
        buffer.append(memoryOf: RowChecksum.of(buffer.view, row: 0).littleEndian)
    }

    private static func word(_ bytes: ByteView, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.load(UInt64.self, at: offset))
    }
}

/// Where the newest row of a journal lies, and what its header says.
struct JournalPosition: Hashable {
    let row: Int64
    let checksum: Int64
    let stamp: JournalRow.Stamp
}
