import Engine
import Foundation
import Glibc
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("A damaged file is refused by name")
struct DamageTests {
    /// Creates a closed journal of several rows, with everything in the file and nothing in the log.
    private static func folder(rows: Int = 6) throws -> JournalFolder {
        let folder = try JournalFolder()
        do {
            let (journal, _) = try folder.open()
            for row in 0..<rows {
                try journal.commit((0..<20).map { (.device(row * 10 + $0), Array(repeating: UInt8(row), count: 300)) })
            }
        }
        do {
            let database = try SQLiteDatabase(path: folder.path, mode: .readWrite)
            _ = try database.text("PRAGMA journal_mode = DELETE")
            _ = try database.text("PRAGMA journal_mode = WAL")
        }
        return folder
    }

    @Test(
        "A row that was changed, cut, lost or put elsewhere is refused with the file, the fault and the remedy",
        arguments: [
            (
                "UPDATE rows SET content = substr(content, 1, 500) || x'00' || substr(content, 502) WHERE id = 3",
                "row 3"
            ),
            ("UPDATE rows SET content = substr(content, 1, length(content) - 1) WHERE id = 1", "row 1"),
            ("UPDATE rows SET content = x'' WHERE id = 6", "row 6"),
            ("UPDATE rows SET checksum = checksum + 1 WHERE id = 2", "row 2"),
            ("UPDATE rows SET content = CAST('text' AS TEXT) WHERE id = 2", "row 2"),
            (
                "UPDATE rows SET (checksum, content) = (SELECT checksum, content FROM rows WHERE id = 4) WHERE id = 5",
                "row 5"
            ),
            ("DELETE FROM rows WHERE id = 4", "row 4 is missing"),
            ("DELETE FROM rows WHERE id = 1", "oldest row"),
            ("DELETE FROM rows WHERE id < 6", "oldest row"),
            ("INSERT INTO rows SELECT 7, checksum, content FROM rows WHERE id = 6", "row 7"),
            ("DROP TABLE rows", "no such table"),
        ]
    )
    func changedRow(sql: String, fault: String) throws {
        let folder = try Self.folder()
        #expect(try folder.refusal() == nil)
        try folder.change(sql)
        let message = try #require(try folder.refusal())
        #expect(message.contains(folder.path))
        #expect(message.contains(fault), "\(message)")
        #expect(message.contains("is damaged"), "\(message)")
        #expect(message.hasSuffix("."))
    }

    @Test("A row of another journal is refused, even if it is intact and at the same position", arguments: [2, 3, 5])
    func foreignRow(row: Int) throws {
        let (folder, other) = (try Self.folder(), try Self.folder())
        try folder.change(
            """
            ATTACH '\(other.path)' AS other;
            UPDATE rows SET (checksum, content) = (SELECT checksum, content FROM other.rows WHERE id = \(row))
                WHERE id = \(row);
            """
        )
        #expect(try other.refusal() == nil)
        let message = try #require(try folder.refusal())
        #expect(message.contains("row \(row) is not the one that row \(row + 1) was written behind"), "\(message)")
    }

    @Test(
        "A mark that a power loss tore in its first copy is read from another",
        arguments: [14, 30, 38, 46, 63]
    )
    func tornMark(offset: Int) throws {
        let folder = try Self.folder()
        let path = URL(filePath: folder.path + "-mark")
        var bytes = try Data(contentsOf: path)
        bytes[offset] ^= 0x40
        try bytes.write(to: path)
        #expect(try folder.refusal() == nil)
    }

    @Test(
        "A folder or pipe in place of a file is refused by name, without blocking",
        arguments: ["", "-wal", "-shm"],
        [true, false]
    )
    func noFile(name: String, isFolder: Bool) throws {
        let folder = try Self.folder()
        let path = folder.path + name
        unsafe unlink(path)
        #expect(unsafe (isFolder ? mkdir(path, 0o700) : mkfifo(path, 0o600)) == 0)
        let message = try #require(try folder.refusal())
        #expect(message.hasPrefix("\(path) is not a regular file."), "\(message)")
    }

    @Test("A file that may not be changed is refused with its name, the cause and the remedy", arguments: ["i", "a"])
    func unchangeable(attribute: String) throws {
        let folder = try Self.folder()
        func change(_ sign: String) throws -> Int32 {
            try Children.run("/usr/bin/chattr", ["\(sign)\(attribute)", folder.path]).status
        }
        // Not every file system has attributes, and not every user may set them.
        guard FileManager.default.fileExists(atPath: "/usr/bin/chattr"), try change("+") == 0 else { return }
        let message = try folder.refusal()
        #expect(try change("-") == 0)
        #expect(message?.hasPrefix("\(folder.path) cannot be written (Operation not permitted).") == true)
        #expect(message?.contains("chattr -\(attribute)") == true)
        #expect(try folder.refusal() == nil)
    }

    @Test("A log without its file is not deleted")
    func logAlone() throws {
        let folder = try JournalFolder()
        try folder.commit([(.device(1), [1])])
        let good = try Data(contentsOf: URL(filePath: folder.path))
        for content in [nil, Data()] {
            try? FileManager.default.removeItem(atPath: folder.path)
            try content?.write(to: URL(filePath: folder.path))
            let message = try #require(try folder.refusal())
            #expect(message.contains("\(folder.path)-wal is not"), "\(message)")
        }
        try good.write(to: URL(filePath: folder.path))
        #expect(try folder.open().1 == [.device(1): [1]])
    }

    @Test("Another format is refused with both numbers and the remedy, and the file does not change")
    func otherFormat() throws {
        let folder = try Self.folder()
        try folder.change("PRAGMA user_version = 4")
        let newer = try #require(try folder.refusal())
        #expect(newer.contains("\(folder.path) has format 4, and this build reads formats 2 to 3. Install"))
        try folder.change("PRAGMA user_version = 1")
        let older = try #require(try folder.refusal())
        #expect(older.contains("\(folder.path) has format 1, and this build reads formats 2 to 3. Start commit"))
        try folder.change("PRAGMA user_version = 2")
        #expect(try folder.open().1.count == 70)
    }

    @Test("A file of another program is refused and not changed")
    func foreignFile() throws {
        let folder = try JournalFolder()
        for sql in ["CREATE TABLE other (a)", "PRAGMA application_id = 77", "PRAGMA user_version = 1"] {
            try? FileManager.default.removeItem(atPath: folder.path)
            do {
                let database = try SQLiteDatabase(path: folder.path, mode: .create)
                try database.execute(sql)
            }
            let before = try Data(contentsOf: URL(filePath: folder.path))
            let message = try #require(try folder.refusal())
            #expect(message.contains("\(folder.path) is not a journal of WakeGate."))
            #expect(try Data(contentsOf: URL(filePath: folder.path)) == before)
            #expect(folder.names == ["journal.sqlite"])
        }
        try Data(repeating: 65, count: 5000).write(to: URL(filePath: folder.path))
        #expect(try folder.refusal()?.contains("is not a journal of WakeGate.") == true)
    }

    @Test("A missing folder is named, with advice")
    func missingFolder() throws {
        let folder = try JournalFolder()
        #expect {
            try Journal(path: folder.path("none/journal.sqlite")).begin()
        } throws: { error in
            let message = (error as? StoreError)?.message ?? ""
            return message.contains("none/journal.sqlite cannot be opened") && message.contains("its folder exists")
        }
    }

    @Test("Compaction checks rows before copying: damage never gets a valid checksum")
    func damageBeforeCompaction() throws {
        let folder = try Self.folder()
        var limits = JournalLimits()
        limits.compactionFloorBytes = 0
        let (journal, _) = try folder.open(limits: limits)
        try folder.change("UPDATE rows SET content = substr(content, 1, 100) || x'FF' || substr(content, 102)")
        #expect {
            for _ in 0..<100 { try journal.commit([(.device(69), Array(repeating: 1, count: 3000))]) }
        } throws: { error in
            (error as? StoreError)?.message.contains("the checksum of row 1 is wrong") == true
        }
        #expect(journal.failure != nil)
    }
}

@Suite("No damage to one file of a journal loses data silently", .timeLimit(.minutes(15)))
struct DamageSweepTests {
    /// The files of a journal as a process left them, and their records.
    struct State {
        let files: [String: Data]
        /// The same files a few commits earlier.
        let older: [String: Data]
        let records: [RecordKey: [UInt8]]
    }

    /// Returns a state with checkpoints and with commits after the last one, all acknowledged.
    private static func state(seed: UInt64, isCheckpointed: Bool) throws -> State {
        var random = SeededGenerator(seed: seed)
        let folder = try JournalFolder()
        var limits = JournalLimits()
        limits.compactionFloorBytes = 0
        if isCheckpointed { limits.checkpointBytes = 96 << 10 }
        let (journal, _) = try folder.open(limits: limits)
        var records: [RecordKey: [UInt8]] = [:]
        var older: [String: Data] = [:]
        for commit in 0..<16 {
            if commit == 12 { older = try folder.contents() }
            let batch = (0..<3).map { part in
                let value = [UInt8](repeating: UInt8(commit), count: random.number(in: 100...3000))
                return (RecordKey.device(part * 10 + random.number(below: 10)), value)
            }
            for (key, value) in batch { records[key] = value }
            try journal.commit(batch)
        }
        // The files are copied while the journal is open, as a killed process leaves them.
        return State(files: try folder.contents(), older: older, records: records)
    }

    @Test(
        "A damaged journal opens with every commit, or is refused by name and its files stay unchanged",
        arguments: [true, false]
    )
    func sweep(isCheckpointed: Bool) throws {
        let seed: UInt64 = isCheckpointed ? 1 : 2
        let state = try Self.state(seed: seed, isCheckpointed: isCheckpointed)
        let other = try Self.state(seed: seed + 100, isCheckpointed: !isCheckpointed)
        var random = SeededGenerator(seed: seed)
        var refused = 0
        var exact = 0
        for name in state.files.keys.sorted() {
            for damage in FileDamage.allCases {
                let said: Comment = "seed \(seed), checkpoints \(isCheckpointed): \(damage) of \(name)"
                let folder = try JournalFolder()
                try folder.write(state.files)
                try folder.make(damage, of: name, state, foreign: other.files[name], &random)
                let before = folder.held
                do {
                    let found = try folder.open().1
                    #expect(found == state.records, said)
                    exact += 1
                } catch let error as StoreError {
                    refused += 1
                    #expect(error.message.contains(folder.path), "\(said.rawValue): \(error.message)")
                    #expect(folder.held == before, "\(said.rawValue): \(error.message)")
                }
            }
        }
        #expect(refused > 30 && exact > 5, "\(refused) refused, \(exact) exact")
    }

    @Test("An older journal and log next to a newer mark are refused")
    func olderPair() throws {
        let state = try Self.state(seed: 5, isCheckpointed: true)
        let folder = try JournalFolder()
        try folder.write(state.files)
        try folder.write(state.older.filter { !$0.key.hasSuffix("-mark") })
        #expect(try #require(try folder.refusal()).contains(folder.path))
    }
}

extension JournalFolder {
    func write(_ files: [String: Data]) throws {
        for (name, content) in files { try content.write(to: URL(filePath: self.path(name))) }
    }

    fileprivate func make(
        _ damage: FileDamage,
        of name: String,
        _ state: DamageSweepTests.State,
        foreign: Data?,
        _ random: inout SeededGenerator
    ) throws {
        let path = self.path(name)
        let whole = state.files[name] ?? Data()
        let content = damage.applied(to: whole, older: state.older[name], foreign: foreign, &random)
        try FileManager.default.removeItem(atPath: path)
        switch damage {
        case .linkedToNothing:
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: self.path("nowhere"))
        case .folder: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        default: try content?.write(to: URL(filePath: path))
        }
    }

    /// The names in the folder, each with its contents if it is a file.
    fileprivate var held: [String: Data?] {
        var held: [String: Data?] = [:]
        for name in self.names where !name.hasSuffix("-shm") {
            held[name] = .some(FileManager.default.contents(atPath: self.path(name)))
        }
        return held
    }
}

/// The kinds of damage to one file of a journal. None of them results from a crash.
enum FileDamage: CaseIterable {
    case flippedBit, flippedBits, zeroedSector, garbledSector, zeroedPage, zeroedBeginning, zeroedTail
    case cut, cutInHalf, cutByAPage, emptied, extended, deleted
    case swappedPages, copiedPage, changedPageHeader
    case cutCommits, zeroedCommits, zeroedFrameHeaders, changedSalt
    case older, foreign, linkedToNothing, folder

    private static let sectorBytes = 512
    private static let pageBytes = 8_192

    /// Returns the file's contents after the damage; nil if it is no longer a regular file.
    ///
    /// - Parameters:
    ///   - older: an earlier version of the file; nil if it did not exist.
    ///   - foreign: the same file of another journal; nil if that has none.
    func applied(to content: Data, older: Data?, foreign: Data?, _ random: inout SeededGenerator) -> Data? {
        var bytes = [UInt8](content)
        switch self {
        case .flippedBit: Self.flip(&bytes, 1, &random)
        case .flippedBits: Self.flip(&bytes, 4, &random)
        case .zeroedSector: Self.fill(&bytes, Self.place(bytes, Self.sectorBytes, &random)) { 0 }
        case .garbledSector:
            Self.fill(&bytes, Self.place(bytes, Self.sectorBytes, &random)) { UInt8(random.number(below: 256)) }
        case .zeroedPage: Self.fill(&bytes, Self.place(bytes, Self.pageBytes, &random)) { 0 }
        case .zeroedBeginning: Self.fill(&bytes, 0..<min(Self.sectorBytes, bytes.count)) { 0 }
        case .zeroedTail: Self.fill(&bytes, random.number(below: bytes.count)..<bytes.count) { 0 }
        case .cut: bytes.removeLast(bytes.count - random.number(below: bytes.count))
        case .cutInHalf: bytes.removeLast(bytes.count / 2)
        case .cutByAPage: bytes.removeLast(min(Self.pageBytes, bytes.count))
        case .emptied: bytes = []
        case .extended: bytes += (0..<Self.pageBytes).map { _ in UInt8(random.number(below: 256)) }
        case .swappedPages: Self.movePage(&bytes, isSwap: true, &random)
        case .copiedPage: Self.movePage(&bytes, isSwap: false, &random)
        case .changedPageHeader: Self.changePageHeader(&bytes, &random)
        case .cutCommits, .zeroedCommits, .zeroedFrameHeaders, .changedSalt:
            self.changeLog(&bytes, &random)
        case .older: return older
        case .foreign: return foreign
        case .deleted, .linkedToNothing, .folder: return nil
        }
        return Data(bytes)
    }

    private static func flip(_ bytes: inout [UInt8], _ count: Int, _ random: inout SeededGenerator) {
        for _ in 0..<count { bytes[random.number(below: bytes.count)] ^= UInt8(1 << random.number(below: 8)) }
    }

    private static func place(_ bytes: [UInt8], _ size: Int, _ random: inout SeededGenerator) -> Range<Int> {
        let start = random.number(below: (bytes.count + size - 1) / size) * size
        return start..<min(bytes.count, start + size)
    }

    private static func fill(_ bytes: inout [UInt8], _ range: Range<Int>, _ byte: () -> UInt8) {
        for offset in range { bytes[offset] = byte() }
    }

    /// Moves pages of a journal's file. The frames of a log are longer, so it is cut at other positions.
    private static func movePage(_ bytes: inout [UInt8], isSwap: Bool, _ random: inout SeededGenerator) {
        let count = bytes.count / self.pageBytes
        guard count > 1 else { return self.flip(&bytes, 1, &random) }
        let one = random.number(below: count) * self.pageBytes
        let other = random.number(below: count) * self.pageBytes
        for offset in 0..<self.pageBytes {
            let mine = bytes[one + offset]
            if isSwap { bytes[one + offset] = bytes[other + offset] }
            bytes[other + offset] = mine
        }
    }

    /// Flips a bit of a page's kind, its free space, or its count of cells.
    private static func changePageHeader(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
        let page = random.number(below: max(1, bytes.count / self.pageBytes)) * self.pageBytes
        let offset = page + (page == 0 ? 100 : 0) + random.number(below: 8)
        bytes[min(offset, bytes.count - 1)] ^= UInt8(1 << random.number(below: 8))
    }

    // MARK: Logs

    private static let logHeaderBytes = 32
    private static let frameBytes = 24 + Self.pageBytes

    /// Damages the newest commits of a log. In another file it flips a bit.
    private func changeLog(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
        let commits = Self.commits(bytes)
        guard bytes.count > Self.logHeaderBytes, let last = commits.last else {
            return Self.flip(&bytes, 1, &random)
        }
        let count = random.number(in: 1...min(6, commits.count))
        let newest = commits.suffix(count)
        let start = newest.first?.first ?? last[0]
        switch self {
        case .cutCommits: bytes.removeLast(bytes.count - start)
        case .zeroedCommits: Self.fill(&bytes, start..<bytes.count) { 0 }
        case .zeroedFrameHeaders: for frame in newest.joined() { Self.fill(&bytes, frame..<frame + 24) { 0 } }
        default: bytes[start + 8 + random.number(below: 8)] ^= UInt8(random.number(in: 1...255))
        }
    }

    /// Returns the starts of the frames of each commit: frames with the header's salt, up to one with a database size.
    private static func commits(_ bytes: [UInt8]) -> [[Int]] {
        var commits: [[Int]] = [[]]
        for start in stride(from: self.logHeaderBytes, through: bytes.count - self.frameBytes, by: self.frameBytes) {
            guard bytes[start + 8..<start + 16] == bytes[16..<24] else { break }
            commits[commits.count - 1].append(start)
            if bytes[start + 4..<start + 8].contains(where: { $0 != 0 }) { commits.append([]) }
        }
        return commits.filter { !$0.isEmpty }
    }
}
