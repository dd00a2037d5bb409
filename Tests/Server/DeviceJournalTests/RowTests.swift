import Engine
import Foundation
import Storage
import Testing
import WakeGateTestKit
import Wire

/// Commit 50ad6a39 took over journals of format 1 and left their rows unchanged until compaction.
@Suite("Rows of version 1 in a journal of format 2")
struct FormerRowTests {
    /// Returns a journal whose first 20 rows have version 1, and its records.
    private static func folder() throws -> (folder: JournalFolder, records: [RecordKey: [UInt8]]) {
        let folder = try JournalFolder()
        do {
            let (journal, _) = try folder.open()
            for number in 0..<20 { try journal.commit([(.device(number), Array(repeating: UInt8(number), count: 99))]) }
        }
        let records = try folder.read()
        try self.makeRowsOld(folder)
        // The mark knows other rows. A start that accepts this makes a new mark, as commit 50ad6a39 did at
        // a takeover.
        #expect(try folder.open(acceptsLoss: true).1 == records)
        return (folder, records)
    }

    private static func makeRowsOld(_ folder: JournalFolder) throws {
        let database = try SQLiteDatabase(path: folder.path, mode: .readWrite)
        var rows: [(Int64, [UInt8])] = []
        let selection = try database.prepare("SELECT id, content FROM rows")
        while try selection.step() { rows.append((selection.integer(0), selection.bytes(1).array)) }
        let update = try database.prepare("UPDATE rows SET checksum = ?2, content = ?3 WHERE id = ?1")
        for (row, content) in rows {
            var buffer = ByteBuffer()
            buffer.append(1)
            buffer.append(Array(content[1..<9] + content[JournalRow.headerBytes...]))
            try update.bind(1, row)
            try update.bind(2, RowChecksum.of(buffer.view, row: row))
            try update.bind(3, buffer.view)
            try update.run()
        }
    }

    @Test("Every start reads rows of version 1, and the rows after them")
    func read() throws {
        var (folder, records) = try Self.folder()
        for number in UInt8(0)..<3 {
            let (journal, found) = try folder.open()
            #expect(found == records)
            try journal.commit([(.device(3), [number])])
            records[.device(3)] = [number]
        }
        #expect(try folder.read() == records)
    }

    @Test("Compaction copies their current records")
    func compaction() throws {
        var (folder, records) = try Self.folder()
        var limits = JournalLimits()
        limits.compactionFloorBytes = 0
        limits.deletionBytes = 1
        do {
            let (journal, _) = try folder.open(limits: limits)
            records[.device(30)] = Array(repeating: 7, count: 3000)
            for _ in 0..<50 { try journal.commit([(.device(30), records[.device(30)] ?? [])]) }
        }
        let oldest = try SQLiteDatabase(path: folder.path, mode: .readOnly).integer("SELECT min(id) FROM rows") ?? 0
        #expect(oldest > 20)
        #expect(try folder.open().1 == records)
    }
}

@Suite("The checksum of a row", .timeLimit(.minutes(15)))
struct RowChecksumTests {
    @Test("The checksum equals that of existing files")
    func stays() {
        #expect("content".withByteView { RowChecksum.of($0, row: 1) } == -33_354_162_940_785_533)
    }
}
