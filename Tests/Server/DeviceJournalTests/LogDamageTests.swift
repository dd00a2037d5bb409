import Engine
import Foundation
import Storage
import Testing
import WakeGateTestKit

@Suite("A damaged log is distinguished from an incomplete one")
struct LogDamageTests {
    private static let commits = 6

    /// Returns a journal whose commits are all still in its log, as after a kill.
    ///
    /// - Parameters:
    ///   - marked: the number of commits recorded in its mark, which may be lower after a power loss.
    ///   - pageBytes: the size of its pages; nil for that of new journals.
    private static func folder(marked: Int = Self.commits, pageBytes: Int? = nil) throws -> JournalFolder {
        let folder = try JournalFolder()
        if let pageBytes { try folder.makeJournal(pageBytes: pageBytes) }
        let (journal, _) = try folder.open()
        var mark = try Data(contentsOf: URL(filePath: folder.markPath))
        for commit in 0..<Self.commits {
            try journal.commit([(.device(commit), Array(repeating: 7, count: 300))])
            if commit < marked { mark = try Data(contentsOf: URL(filePath: folder.markPath)) }
        }
        try mark.write(to: URL(filePath: folder.markPath))
        return folder
    }

    /// Returns a copy of the folder, with the file, the mark, and the log changed by `change`.
    private static func changed(_ folder: JournalFolder, _ change: (inout Data) -> Void) throws -> JournalFolder {
        let copy = try JournalFolder()
        try FileManager.default.copyItem(atPath: folder.path, toPath: copy.path)
        try FileManager.default.copyItem(atPath: folder.markPath, toPath: copy.markPath)
        var log = try Data(contentsOf: URL(filePath: folder.path + "-wal"))
        change(&log)
        try log.write(to: URL(filePath: copy.path + "-wal"))
        return copy
    }

    @Test("A log with any changed bytes is refused by name, or nothing is missing", arguments: 0..<3)
    func changedByte(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let folder = try Self.folder()
        var refusals = 0
        for _ in 0..<100 {
            let copy = try Self.changed(folder) { $0[random.number(below: $0.count)] ^= 1 }
            do {
                #expect(try copy.open().1.count == Self.commits, "seed \(seed)")
            } catch let error as StoreError {
                refusals += 1
                #expect(error.message.contains(copy.path), "\(error.message)")
            }
        }
        #expect(refusals > 50)
    }

    @Test("A log beyond its mark may end anywhere, as after a power loss")
    func cutBeyondMark() throws {
        let folder = try Self.folder(marked: 0)
        let whole = try Data(contentsOf: URL(filePath: folder.path + "-wal")).count
        var counts: Set<Int> = []
        for count in Array(stride(from: 0, to: whole, by: 4096)) + [whole] {
            let copy = try Self.changed(folder) { $0 = $0.prefix(count) }
            counts.insert(try copy.open().1.count)
        }
        #expect(counts == Set(0...Self.commits))
    }

    @Test("Another program may checkpoint the log and remove it", arguments: 0...6)
    func copiedByHand(marked: Int) throws {
        let folder = try Self.folder(marked: marked)
        do {
            // The shell of SQLite also closes last.
            let database = try SQLiteDatabase(path: folder.path, mode: .readWrite)
            _ = try database.integer("SELECT count(*) FROM rows")
        }
        #expect(!folder.names.contains("journal.sqlite-wal"))
        #expect(try folder.open().1.count == Self.commits)
    }

    @Test(
        "A log that lacks commits of the mark is refused with their number and time, and stays unchanged",
        arguments: [8192, 16_384]
    )
    func lacking(pageBytes: Int) throws {
        let folder = try Self.folder(pageBytes: pageBytes)
        let frameBytes = 24 + pageBytes
        let whole = try Data(contentsOf: URL(filePath: folder.path + "-wal")).count
        let changes: [(String, (inout Data) -> Void)] = [
            ("first sector zero", { $0.replaceSubrange(0..<512, with: Data(count: 512)) }),
            ("first sector garbage", { $0.replaceSubrange(0..<512, with: Data(repeating: 0x5A, count: 512)) }),
            ("empty", { $0 = Data() }),
            ("cut in half", { $0 = $0.prefix(whole / 2) }),
            ("cut by a byte", { $0 = $0.prefix(whole - 1) }),
            ("zeroed tail", { $0.replaceSubrange(whole / 2..<whole, with: Data(count: whole - whole / 2)) }),
            (
                "zeroed frame headers",
                { log in
                    for frame in stride(from: 32 + frameBytes * 4, to: log.count, by: frameBytes) {
                        log.replaceSubrange(frame..<frame + 24, with: Data(count: 24))
                    }
                }
            ),
            ("byte of an early frame", { $0[32 + frameBytes * 3 + 100] ^= 1 }),
            ("salt of the last frame", { $0[$0.count - frameBytes + 8] ^= 1 }),
        ]
        for (name, change) in changes {
            let copy = try Self.changed(folder, change)
            let before = try copy.contents()
            let message = try #require(try copy.refusal(), "\(name)")
            #expect(try copy.contents() == before, "\(name)")
            #expect(message.contains("rows of") && message.contains("commits are missing"), "\(name): \(message)")
            #expect(message.contains("--accept-loss") && message.contains("\(copy.path)-wal"), "\(name): \(message)")
            let (journal, found, given) = try copy.open(acceptsLoss: true)
            let loss = try #require(given, "\(name)")
            #expect(loss.commits == Int64(Self.commits - found.count), "\(name)")
            try journal.commit([(.device(9), [9])])
            #expect(try copy.open().1.count == found.count + 1, "\(name)")
        }
    }

    @Test("Commits after a damaged frame are missed, even if the mark does not know them", arguments: [8192, 16_384])
    func unmarked(pageBytes: Int) throws {
        let folder = try Self.folder(marked: 1, pageBytes: pageBytes)
        let frameBytes = 24 + pageBytes
        let frames = try Data(contentsOf: URL(filePath: folder.path + "-wal")).count / frameBytes
        var messages: [String] = []
        for frame in 0..<frames {
            let copy = try Self.changed(folder) { $0[32 + frame * frameBytes + 8000] ^= 1 }
            guard let message = try copy.refusal() else {
                #expect(try copy.open().1.count >= Self.commits - 1, "frame \(frame)")
                continue
            }
            messages.append(message)
            let (_, found, loss) = try copy.open(acceptsLoss: true)
            #expect(loss != nil && found.count < Self.commits - 1, "frame \(frame): \(message)")
            #expect(try copy.refusal() == nil, "frame \(frame)")
        }
        #expect(messages.contains { $0.contains("commits in its log, ") && $0.contains("cannot be read any more") })
    }

    @Test("A log that ends in the header of its first frame is empty", arguments: [33, 40, 47, 55])
    func stump(count: Int) throws {
        let folder = try Self.folder()
        do {
            let database = try SQLiteDatabase(path: folder.path, mode: .readWrite)
            _ = try database.integer("SELECT count(*) FROM rows")
        }
        try Data(repeating: 0x5A, count: count).write(to: URL(filePath: folder.path + "-wal"))
        #expect(try folder.open().1.count == Self.commits)
    }

    @Test("A last commit is left out if only parts of it reached the disk", arguments: 1...3)
    func torn(seed: UInt64) throws {
        let folder = try Self.folder(marked: Self.commits - 1)
        let copy = try Self.changed(folder) { log in
            // The last frame, whose header marks the end of the commit, was written; its page was not.
            let end = log.count
            log.replaceSubrange(end - 8192 + Int(seed) * 100..<end, with: Data(count: 8192 - Int(seed) * 100))
        }
        #expect(try copy.open().1.count == Self.commits - 1)
    }
}
