import Engine
import Platform
import Policy
import Storage
import Wire

/// The history as one would write it with SQLite alone: a row for each event, in the order of devices, and an index of
/// the pushes. What the history's sorted runs are measured against.
final class OrdinaryTables: EventStore {
    private let database: SQLiteDatabase
    private let insert: SQLiteStatement
    private let ofDevice: SQLiteStatement
    private let ofPush: SQLiteStatement
    private var number: Int64 = 0
    let name = "tables"
    let path: String

    init(path: String) throws(SQLiteError) {
        self.path = path
        self.database = try SQLiteDatabase(path: path, mode: .create)
        try self.database.execute(
            """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8192;
            CREATE TABLE event(
                device INTEGER NOT NULL, number INTEGER NOT NULL, at INTEGER NOT NULL, code INTEGER NOT NULL,
                attempt INTEGER NOT NULL, coalesced INTEGER NOT NULL, push BLOB NOT NULL, PRIMARY KEY(device, number)
            ) WITHOUT ROWID;
            CREATE INDEX push ON event(push) WHERE push <> x'';
            """
        )
        self.insert = try self.database.prepare("INSERT INTO event VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")
        self.ofDevice = try self.database.prepare(
            "SELECT number, at, code, push FROM event WHERE device = ?1 ORDER BY number DESC LIMIT ?2"
        )
        self.ofPush = try self.database.prepare(
            "SELECT device, number, at, code FROM event WHERE push = ?1 AND push <> x''"
        )
    }

    /// Writes the events in one transaction, sorted by device as the runs are, and copies the log when it is long.
    func write(_ events: [HistoryEvent]) throws -> Pieces {
        let start = SystemClock.monotonicMicroseconds
        try self.database.execute("BEGIN")
        for event in events.sorted(by: { $0.device < $1.device }) {
            self.number += 1
            try self.insert.bind(1, Int64(bitPattern: event.device))
            try self.insert.bind(2, self.number)
            try self.insert.bind(3, event.at.milliseconds)
            try self.insert.bind(4, Int64(event.code))
            try self.insert.bind(5, Int64(event.attempt))
            try self.insert.bind(6, Int64(event.coalesced))
            // A statement reads what was bound when it runs.
            try Self.bytes(event.apnsID).withByteView { push in
                try self.insert.bind(7, push)
                try self.insert.run()
            }
        }
        try self.database.execute("COMMIT")
        let written = SystemClock.monotonicMicroseconds
        _ = try self.database.checkpoint(.passive)
        return Pieces(flush: written - start, tidying: SystemClock.monotonicMicroseconds - written)
    }

    func recent(device: UInt64, count: Int) throws -> Int {
        defer { self.ofDevice.reset() }
        try self.ofDevice.bind(1, Int64(bitPattern: device))
        try self.ofDevice.bind(2, Int64(count))
        return try Self.rows(self.ofDevice)
    }

    func push(_ id: APNsID) throws -> Int {
        defer { self.ofPush.reset() }
        return try Self.bytes(id).withByteView { view in
            try self.ofPush.bind(1, view)
            return try Self.rows(self.ofPush)
        }
    }

    private static func rows(_ statement: SQLiteStatement) throws(SQLiteError) -> Int {
        var count = 0
        while try statement.step() { count += 1 }
        return count
    }

    /// The bytes of an identifier; none for none.
    private static func bytes(_ id: APNsID?) -> [UInt8] {
        guard let id else { return [] }
        return [id.first, id.second].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
    }
}
