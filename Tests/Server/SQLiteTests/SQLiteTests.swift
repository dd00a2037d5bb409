import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite
struct SQLiteDatabaseTests {
    @Test("A blob is read back unchanged")
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
}

/// The disk must fail like real disks and not worse; otherwise tests on it are meaningless.
@Suite("A simulated disk", .timeLimit(.minutes(15)))
struct SimulatedDiskTests {
    /// The journal mode of a database.
    enum Keeping: String, CaseIterable {
        case log, journal

        var pragmas: String {
            switch self {
            case .log: "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            // The deletion of the rollback journal is the commit; only EXTRA syncs the folder after it.
            case .journal: "PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA;"
            }
        }
    }

    private static let commits = 6

    private static func open(_ disk: SimulatedDisk, _ pragmas: String) throws -> SQLiteDatabase {
        let database = try SQLiteDatabase(path: "/db", mode: .create, vfs: disk.vfsName)
        try database.execute("PRAGMA page_size=4096; PRAGMA temp_store=MEMORY; " + pragmas)
        return database
    }

    /// Commits rows of several pages until something fails.
    ///
    /// - Returns: the number of acknowledged commits.
    private static func write(_ disk: SimulatedDisk, _ pragmas: String) -> Int {
        var acknowledged = 0
        do {
            let database = try self.open(disk, pragmas)
            try database.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, content BLOB)")
            for number in 1...self.commits {
                try database.execute("INSERT INTO rows VALUES (\(number), randomblob(6000))")
                acknowledged = number
                if number == 2 { _ = try database.checkpoint(.truncate) }
                if number == 4 { _ = try database.checkpoint(.passive) }
            }
        } catch {
            // The caller checks the rows.
        }
        return acknowledged
    }

    /// - Returns: the number of rows; nil if the database is damaged.
    private static func rows(_ disk: SimulatedDisk) -> Int? {
        do {
            let database = try self.open(disk, "")
            guard try database.text("PRAGMA integrity_check") == "ok" else { return nil }
            guard try database.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'rows'") == 1 else { return 0 }
            return try database.integer("SELECT count(*) FROM rows WHERE length(content) = 6000").map(Int.init)
        } catch {
            return nil
        }
    }

    @Test("A synced commit survives every loss of power, at every operation", arguments: Keeping.allCases)
    func syncedCommitsSurvive(keeping: Keeping) {
        var losses = 0
        for seed in 0..<8 as Range<UInt64> {
            for number in 0... {
                let disk = SimulatedDisk(seed: seed)
                disk.failOperation(number, .powerLoss, seed: seed == 0 ? 0 : seed &* 1000 + UInt64(number))
                let acknowledged = Self.write(disk, keeping.pragmas)
                guard disk.metFault else { break }
                losses += 1
                let rows = Self.rows(disk)
                #expect(rows == acknowledged || rows == acknowledged + 1, "seed \(seed): \(disk.firstFault)")
            }
        }
        #expect(losses > 8 * 20)
    }

    @Test("Without syncs some loss of power loses a commit, and some leaves a damaged file")
    func unsyncedCommitsAreLost() {
        var isLost = false
        var isDamaged = false
        for seed in 0..<60 as Range<UInt64> {
            let disk = SimulatedDisk(seed: seed)
            let acknowledged = Self.write(disk, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;")
            #expect(acknowledged == Self.commits)
            disk.losePower(seed: seed)
            let rows = Self.rows(disk)
            isDamaged = isDamaged || rows == nil
            isLost = isLost || rows.map { $0 < acknowledged } == true
        }
        #expect(isLost)
        #expect(isDamaged)
    }

    @Test("A failed sync loses its writes, even if the next one succeeds")
    func failedSyncLoses() throws {
        for isFailing in [false, true] {
            let disk = SimulatedDisk()
            let database = try Self.open(disk, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;")
            try database.execute("CREATE TABLE rows (content BLOB); PRAGMA synchronous=NORMAL;")
            try database.execute("INSERT INTO rows VALUES (randomblob(6000))")
            if isFailing { disk.failOperation(0, .failedSync) }
            let checkpoint = Result { try database.checkpoint(.passive) }
            #expect(disk.metFault == isFailing)
            #expect(((try? checkpoint.get()) == nil) == isFailing)
            try database.execute("PRAGMA synchronous=FULL; INSERT INTO rows VALUES (randomblob(6000))")
            disk.losePower()
            #expect(Self.rows(disk) == (isFailing ? 0 : 2))
        }
    }

    @Test("One connection writes at a time, and others read the last commit", arguments: Keeping.allCases)
    func locks(keeping: Keeping) throws {
        let disk = SimulatedDisk()
        let writer = try Self.open(disk, keeping.pragmas)
        try writer.execute("CREATE TABLE rows (content BLOB)")
        let other = try Self.open(disk, "")
        try writer.execute("BEGIN IMMEDIATE; INSERT INTO rows VALUES (randomblob(6000))")
        let refused = #expect(throws: SQLiteError.self) { try other.execute("BEGIN IMMEDIATE") }
        #expect(refused?.kind == .busy)
        #expect(try other.integer("SELECT count(*) FROM rows") == 0)
        try other.execute("BEGIN; SELECT count(*) FROM rows")
        switch keeping {
        case .log:
            try writer.execute("COMMIT")
            #expect(try other.integer("SELECT count(*) FROM rows") == 0, "a reader's snapshot moved")
        case .journal:
            let refused = #expect(throws: SQLiteError.self) { try writer.execute("COMMIT") }
            #expect(refused?.kind == .busy, "a page was overwritten under its reader")
            try other.execute("COMMIT")
            try writer.execute("COMMIT")
            try other.execute("BEGIN")
        }
        try other.execute("COMMIT")
        #expect(try other.integer("SELECT count(*) FROM rows") == 1)
        try other.execute("BEGIN IMMEDIATE; INSERT INTO rows VALUES (randomblob(6000)); COMMIT")
        #expect(try writer.integer("SELECT count(*) FROM rows") == 2)
    }

    @Test("A planned fault occurs at its operation, once or from then on")
    func plans() throws {
        let counts = (0..<2).map { _ in
            let disk = SimulatedDisk(seed: 5)
            #expect(Self.write(disk, Keeping.log.pragmas) == Self.commits)
            return disk.operations
        }
        #expect(counts[0] == counts[1])
        #expect(counts[0] > 20)
        let disk = SimulatedDisk()
        let database = try Self.open(disk, Keeping.log.pragmas)
        try database.execute("CREATE TABLE rows (content BLOB)")
        for isLasting in [false, true] {
            disk.failOperation(0, .ioError, isLasting: isLasting)
            let insert = "INSERT INTO rows VALUES (randomblob(6000))"
            #expect { try database.execute(insert) } throws: { ($0 as? SQLiteError)?.kind == .io }
            #expect(((try? database.execute(insert)) == nil) == isLasting)
        }
    }
}
