import DeviceEngine
import DeviceJournal
import Foundation
import Testing
import WakeGateTestKit

@Suite("A log that was damaged is told from one whose writing ended")
struct LogDamageTests {
    private static let commits = 6

    /// A journal whose commits all lie in its log still, as a killed process leaves it.
    private static func folder() throws -> JournalFolder {
        let folder = try JournalFolder()
        let (journal, _) = try folder.open()
        for commit in 0..<Self.commits { try journal.commit([(.device(commit), Array(repeating: 7, count: 300))]) }
        return folder
    }

    /// The log with `change` made, in a folder of its own with the file beside it.
    private static func changed(_ folder: JournalFolder, _ change: (inout Data) -> Void) throws -> JournalFolder {
        let copy = try JournalFolder()
        try FileManager.default.copyItem(atPath: folder.path, toPath: copy.path)
        var log = try Data(contentsOf: URL(filePath: folder.path + "-wal"))
        change(&log)
        try log.write(to: URL(filePath: copy.path + "-wal"))
        return copy
    }

    @Test("A changed byte is refused by name when commits behind it cannot be read any more", arguments: 0..<3)
    func changedByte(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let folder = try Self.folder()
        var refusals = 0
        for _ in 0..<100 {
            let copy = try Self.changed(folder) { $0[random.number(below: $0.count)] ^= 1 }
            do {
                // What is taken lacks no more than the last commit.
                #expect(try copy.open().1.count >= Self.commits - 1, "seed \(seed)")
            } catch let error as StoreError {
                refusals += 1
                #expect(error.message.contains("\(copy.path)-wal"), "\(error.message)")
            }
        }
        #expect(refusals > 50)
    }

    @Test("A log that is cut off anywhere holds every commit before the cut")
    func cut() throws {
        let folder = try Self.folder()
        let whole = try Data(contentsOf: URL(filePath: folder.path + "-wal")).count
        var counts: Set<Int> = []
        for count in Array(stride(from: 0, to: whole, by: 4096)) + [whole] {
            let copy = try Self.changed(folder) { $0 = $0.prefix(count) }
            counts.insert(try copy.open().1.count)
        }
        #expect(counts == Set(0...Self.commits))
    }

    @Test("A last commit of which only parts reached the disk is left out", arguments: 1...3)
    func torn(seed: UInt64) throws {
        let folder = try Self.folder()
        let copy = try Self.changed(folder) { log in
            // The last frame, with the end of its commit in the header, came through; the page did not.
            let end = log.count
            log.replaceSubrange(end - 16_384 + Int(seed) * 100..<end, with: Data(count: 16_384 - Int(seed) * 100))
        }
        #expect(try copy.open().1.count == Self.commits - 1)
    }
}
