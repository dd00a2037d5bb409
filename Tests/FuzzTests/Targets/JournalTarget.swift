import Engine
import Storage
import Wire

/// The rows of a journal file. Each row is two bytes with its length, followed by its records.
///
/// The highest bit of a length damages the row without changing its checksum. The next lower bit leaves the row out.
enum JournalTarget {
    private struct Row {
        var id: Int64
        var content: [UInt8]
        var isDamaged: Bool
    }

    static func check(_ input: ByteView) throws(BrokenPromise) {
        let rows = self.rows(input)
        // A record of a device with a high number is valid, but needs memory for all devices before it.
        guard self.expected(rows).keys.allSatisfy({ $0.index < 1 << 16 || $0.index > LiveRecords.indexMax }) else {
            return
        }
        var newest: [RecordKey: [UInt8]] = [:]
        var isTwice = false
        let database: SQLiteDatabase
        do {
            database = try self.database(rows)
        } catch { throw BrokenPromise("the rows could not be written: \(error)") }
        do throws(StoreError) {
            _ = try JournalLoader.load(database) { key, content throws(StoreError) in
                // A record of events may occur twice. The first one that is returned is the newer one.
                if newest[key] == nil { newest[key] = content.array } else { isTwice = isTwice || key.kind != .events }
            }
        } catch {
            return try promise(error.message.contains(":memory:"), "a fault does not name the file: \(error.message)")
        }
        try promise(rows.allSatisfy { !$0.isDamaged }, "a damaged row was read")
        try promise(!isTwice, "a record was handed over twice")
        try promise(newest == self.expected(rows), "the records are not the newest of each key")
    }

    private static func rows(_ input: ByteView) -> [Row] {
        var rows: [Row] = []
        var reader = InputReader(input)
        var id: Int64 = 1
        var stamp = JournalRow.Stamp()
        while !reader.isAtEnd {
            let length = Int(reader.byte()) | Int(reader.byte()) << 8
            var buffer = ByteBuffer()
            JournalRow.appendHeader(stamp, to: &buffer)
            JournalRow.setFirst(1, in: &buffer)
            buffer.append(reader.view(length & 0x3FFF))
            stamp.previous = RowChecksum.of(buffer.view, row: id)
            if length & 0x4000 == 0 {
                rows.append(Row(id: id, content: buffer.view.array, isDamaged: length & 0x8000 != 0))
            }
            id += 1
        }
        return rows
    }

    private static func database(_ rows: [Row]) throws(SQLiteError) -> SQLiteDatabase {
        let database = try SQLiteDatabase(path: ":memory:", mode: .create)
        try database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, checksum INTEGER, content BLOB) STRICT")
        let insertion = try database.prepare("INSERT INTO rows (id, checksum, content) VALUES (?1, ?2, ?3)")
        for row in rows {
            try insertion.bind(1, row.id)
            try insertion.bind(2, row.content.withByteView { RowChecksum.of($0, row: row.id) })
            var content = row.content
            if row.isDamaged { content[content.count / 2] ^= 1 }
            let bound = content.withByteView { bytes in
                Result { () throws(SQLiteError) in try insertion.bind(3, bytes) }
            }
            try bound.get()
            try insertion.run()
        }
        return database
    }

    private static func expected(_ rows: [Row]) -> [RecordKey: [UInt8]] {
        var newest: [RecordKey: [UInt8]] = [:]
        for row in rows {
            row.content.withByteView { content in
                var records = RecordRun(content, from: JournalRow.headerBytes)
                while let (key, content) = records.next() { newest[key] = content.array }
            }
        }
        return newest
    }
}
