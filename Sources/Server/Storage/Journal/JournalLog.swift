import Engine
import Platform
import Wire

/// A scan of a write-ahead log for unreadable commits. SQLite treats the first invalid frame as the end of the log and
/// silently ignores the commits after it.
///
/// Each commit is synced before the next begins, so a process that dies leaves at most one incomplete commit. If two
/// commits end after the first bad frame, a frame must be damaged.
///
/// The format is SQLite's (https://www.sqlite.org/fileformat2.html#the_write_ahead_log): a header of 32 bytes, then
/// frames with a header of 24 bytes and a page. Numbers are big-endian, and each checksum continues the previous one.
struct JournalLog {
    private static let headerBytes = 32
    private static let frameHeaderBytes = 24
    private static let magic: UInt32 = 0x377F_0682

    private let bytes: ByteView
    private let pageBytes: Int

    /// Returns the number of commits in the log of an open journal that are no longer readable. Returns 0 for a journal
    /// in another file system layer than the default one.
    static func unreadableCommits(_ location: JournalLocation, _ database: SQLiteDatabase) throws(StoreError) -> Int {
        let pageBytes = try JournalFile.pageBytes(of: database)
        // If the file cannot be mapped, SQLite cannot read it either, and reports the error.
        guard location.vfs == nil, let file = MappedFile(location.logPath) else { return 0 }
        return file.withView { bytes in
            guard bytes.count >= Self.headerBytes + Self.frameHeaderBytes else { return 0 }
            return JournalLog(bytes, pageBytes: pageBytes).commitsBehindTheEnd
        }
    }

    private init(_ bytes: ByteView, pageBytes: Int) {
        self.bytes = bytes
        self.pageBytes = pageBytes
    }

    private var frameCount: Int { (self.bytes.count - Self.headerBytes) / self.frameBytes }

    private var frameBytes: Int { Self.frameHeaderBytes + self.pageBytes }

    /// The number of commits that end after the first bad frame.
    private var commitsBehindTheEnd: Int {
        // Frames from before the last restart of the log have another salt.
        let first = self.goodFrames
        let salt = self.header(first.isHeaderGood ? 16 : Self.headerBytes + 8)
        guard salt != 0 else { return 0 }
        var commits = 0
        for frame in first.count..<self.frameCount {
            let start = Self.headerBytes + frame * self.frameBytes
            if self.header(start + 8) == salt, self.number(start + 4) != 0 { commits += 1 }
        }
        return commits
    }

    /// The number of frames before the first bad frame. `isHeaderGood` is true if the log's header is valid.
    private var goodFrames: (count: Int, isHeaderGood: Bool) {
        guard self.number(0) & ~1 == Self.magic, self.number(8) == UInt32(self.pageBytes) else { return (0, false) }
        var sum = Checksum(isBigEndian: self.number(0) & 1 == 1)
        sum.add(self.bytes[0..<24])
        guard self.header(24) == sum.value else { return (0, false) }
        let salt = self.header(16)
        for frame in 0..<self.frameCount {
            let start = Self.headerBytes + frame * self.frameBytes
            sum.add(self.bytes[start..<start + 8])
            sum.add(self.bytes[start + Self.frameHeaderBytes..<start + self.frameBytes])
            guard self.header(start + 8) == salt, self.header(start + 16) == sum.value else { return (frame, true) }
        }
        return (self.frameCount, true)
    }

    private func number(_ offset: Int) -> UInt32 {
        UInt32(bigEndian: self.bytes.load(UInt32.self, at: offset))
    }

    private func header(_ offset: Int) -> UInt64 {
        UInt64(bigEndian: self.bytes.load(UInt64.self, at: offset))
    }

    /// SQLite's checksum of a log: two sums over pairs of words.
    private struct Checksum {
        let isBigEndian: Bool
        var first: UInt32 = 0
        var second: UInt32 = 0

        var value: UInt64 { UInt64(self.first) << 32 | UInt64(self.second) }

        mutating func add(_ bytes: ByteView) {
            for offset in stride(from: 0, to: bytes.count, by: 8) {
                self.first &+= self.word(bytes, offset) &+ self.second
                self.second &+= self.word(bytes, offset + 4) &+ self.first
            }
        }

        private func word(_ bytes: ByteView, _ offset: Int) -> UInt32 {
            let word = bytes.load(UInt32.self, at: offset)
            return self.isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
        }
    }
}
