import Glibc
import Platform
import Wire

/// Looks into a write-ahead log for commits that SQLite would leave out without a word: it takes the first frame that
/// does not fit for the log's end.
enum JournalLog {
    /// The number of the newest commit whose rows the log has, whether SQLite reads them or not; 0 for none.
    ///
    /// Behind the last whole commit a process that died leaves a part of one more at most, as each is synced before the
    /// next begins. So a row of a later one means that a frame was damaged, not that writing ended.
    ///
    /// - Parameter journal: the journal's number, by which its rows are found.
    static func newestCommit(_ place: JournalPlace, of journal: UInt64) -> Int64 {
        // What cannot be mapped SQLite cannot read either, and says so.
        guard place.vfs == nil, let file = MappedFile(place.logPath) else { return 0 }
        return file.withView { self.newestCommit(in: $0, of: journal) }
    }

    private static func newestCommit(in log: ByteView, of journal: UInt64) -> Int64 {
        let first = UInt8(truncatingIfNeeded: journal)
        var newest: Int64 = 0
        var start = 0
        while let found = self.find(first, in: log, from: start + JournalRow.journalOffset) {
            start = found - JournalRow.journalOffset
            defer { start += 1 }
            guard log.count - start >= JournalRow.headerBytes else { break }
            let header = log.slice(start, count: JournalRow.headerBytes)
            guard header[0] == JournalRow.version else { continue }
            let stamp = JournalRow.stamp(of: header)
            if stamp.journal == journal { newest = max(newest, stamp.commits) }
        }
        return newest
    }

    private static func find(_ byte: UInt8, in log: ByteView, from offset: Int) -> Int? {
        guard offset < log.count, let base = unsafe log.buffer.baseAddress,
            let found = unsafe memchr(base + offset, Int32(byte), log.count - offset)
        else { return nil }
        return unsafe UnsafeRawPointer(found) - base
    }
}
