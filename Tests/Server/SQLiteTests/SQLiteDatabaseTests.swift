import Foundation
import Storage
import Testing
import Wire

@Suite
struct SQLiteDatabaseTests {
    @Test("A blob is read back as it was written")
    func blobs() throws {
        let database = try SQLiteDatabase(path: ":memory:", mode: .create)
        try database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, content BLOB)")
        let insert = try database.prepare("INSERT INTO rows (content) VALUES (?)")
        for content in [[], [0], Array(repeating: UInt8(7), count: 100_000)] as [[UInt8]] {
            try content.withByteView {
                try insert.bind(1, $0)
                try insert.run()
            }
        }
        let select = try database.prepare("SELECT content FROM rows ORDER BY id")
        var counts: [Int] = []
        while try select.step() { counts.append(select.bytes(0).count) }
        #expect(counts == [0, 1, 100_000])
        #expect(try database.integer("SELECT count(*) FROM rows WHERE content = x'00'") == 1)
    }

    @Test("A file of another program is told from one that is missing")
    func errors() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "wakegate-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let text = folder.appending(path: "text").path
        try Data(repeating: 65, count: 10_000).write(to: URL(filePath: text))
        let database = try SQLiteDatabase(path: text, mode: .readWrite)
        #expect { try database.integer("PRAGMA user_version") } throws: { ($0 as? SQLiteError)?.kind == .notDatabase }
        #expect {
            _ = try SQLiteDatabase(path: folder.appending(path: "none").path, mode: .readWrite)
        } throws: {
            ($0 as? SQLiteError)?.kind == .cannotOpen
        }
    }
}
