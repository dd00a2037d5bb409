import Bytes
import ClusterStore
import DeviceEngine
import History
import LaunchPolicy
import PostgreSQL
import PostgresStore
import Testing
import WakeGateTestKit

/// The delivery log as it lies in PostgreSQL: found by summaries of pages, bounded by age and by bytes.
@Suite(.timeLimit(.minutes(15)))
struct HistoryTablesTests {
    private static let device: UInt64 = 7
    private static let hour: Int64 = 3_600_000
    private static let now: Int64 = 1_800_000_000_000

    private let server: PostgresServer
    private let database: String
    private let address: String

    init() throws {
        self.server = try PostgresServer.shared()
        self.address = try self.server.database()
        self.database = self.address.split(separator: "/").last.map(String.init) ?? ""
        try StoreRig(self.address).stop()
        // The moment that the age of events is told from.
        try self.query("UPDATE wakegate.connection SET moment = \(Self.now)")
    }

    @discardableResult
    private func query(_ sql: String) throws -> String { try self.server.query(sql, database: self.database) }

    private func history(_ limits: HistoryLimits = HistoryLimits()) throws -> PostgresHistory {
        PostgresHistory(try PostgresAddress(self.address), limits: limits)
    }

    /// Writes that a push came at each of these moments, a row each.
    private func write(_ moments: [Int64]) throws {
        for moment in moments {
            let event = HistoryEvent(
                device: Self.device,
                at: Instant(milliseconds: moment),
                kind: .push(.launched),
                apnsID: APNsID(moment)
            )
            for row in EventTables.rows([event]) {
                let body = Self.hex(row.body())
                try self.query(
                    "INSERT INTO wakegate.event (device, at, body) VALUES (\(row.device), \(row.at), '\\x\(body)')"
                )
            }
            for push in EventTables.pushes([event]) {
                try self.query(
                    "INSERT INTO wakegate.push (apns, device, at) VALUES "
                        + "('\(Self.hex(Self.bytes(push.apns)))', \(push.device), \(push.at))"
                )
            }
        }
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    private static func bytes(_ id: APNsID) -> [UInt8] {
        [id.first, id.second].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
    }

    private func moments(_ history: PostgresHistory, atMost count: Int = .max) -> [Int64] {
        var found: [Int64] = []
        history.visit(device: Self.device, notAfter: .distantFuture) { event in
            found.append(event.at.milliseconds)
            return found.count < count
        }
        return found
    }

    @Test("What happened is told newest first, however long ago it was, and no longer than somebody listens")
    func order() throws {
        let ages: [Int64] = [0, 1, Self.hour - 1, Self.hour, 3 * Self.hour, 24 * Self.hour, 24 * Self.hour + 1]
        let moments = (ages + [70 * Self.hour, Self.now]).map { Self.now - $0 }
        try self.write(moments.reversed())
        let history = try self.history()
        #expect(self.moments(history) == moments)
        #expect(self.moments(history, atMost: 5) == Array(moments.prefix(5)))
        var earlier: [Int64] = []
        history.visit(device: Self.device, notAfter: Instant(milliseconds: Self.now - 2)) { event in
            earlier.append(event.at.milliseconds)
            return true
        }
        #expect(earlier == Array(moments.dropFirst(2)))
    }

    @Test("More rows than a page are told once each")
    func pages() throws {
        let moments = (0..<200).map { Self.now - Int64($0) * 60_000 }
        try self.write(moments.reversed())
        #expect(try self.moments(self.history()) == moments)
    }

    @Test("Pushes of one name, sent again and again, are listed once a moment, however many there are")
    func repeated() throws {
        // More of each moment than a page has, in the log's own words: the case of a name's letters is not in them.
        try self.query(
            """
            INSERT INTO wakegate.push (apns, device, at)
            SELECT '\(Self.hex(Self.bytes(APNsID(9))))', \(Self.device), \(Self.now) - m
            FROM generate_series(0, 39) m, generate_series(1, 15);
            """
        )
        let found = try self.history().pushes(behind: nil, notBefore: .distantPast, countMax: 12)
        #expect(found.pushes.map(\.at.milliseconds) == (0..<12).map { Self.now - $0 })
    }

    /// Makes the tables what version 1 made of them.
    private func goBack() throws {
        try self.query(
            """
            DROP INDEX wakegate.event_place, wakegate.push_place;
            DROP FUNCTION wakegate.oldest_events();
            CREATE INDEX event_device ON wakegate.event (device, id);
            CREATE INDEX event_at ON wakegate.event (at);
            CREATE INDEX push_apns ON wakegate.push (apns);
            CREATE INDEX push_at ON wakegate.push USING brin (at);
            UPDATE wakegate.meta SET version = 1, oldest = 1
            """
        )
    }

    @Test("A newer gateway brings the tables up beside an older one, which goes on, until the older one has left")
    func rollingUpgrade() throws {
        let older = try StoreRig(self.address)
        try older.write([1]) { .of($0, $1) }
        try self.goBack()
        try self.query("UPDATE wakegate.gateway SET schema = 1 WHERE alive")
        let newer = try StoreRig(self.address)
        #expect(try self.query("SELECT version, oldest FROM wakegate.meta") == "2|1")
        try newer.write([1, 2]) { .of($0, $1, record: 2) }
        try older.write([2, 3]) { .of($0, $1, record: 3) }
        #expect(try newer.find(.tokens([1, 2, 3])).devices.map(\.record) == [[2], [3], [3]])
        // A second of the newer one's passes, and the older is still there.
        _ = try newer.view { $0.members.count == 2 }
        #expect(try self.query("SELECT oldest FROM wakegate.meta") == "1")
        older.stop()
        try self.server.wait(for: "2", of: "SELECT oldest FROM wakegate.meta", database: self.database)
        newer.stop()
    }

    @Test("Tables of version 1 are taken up, and what they have is found")
    func upgrade() throws {
        try self.goBack()
        try self.write([Self.now - 5, Self.now])
        try StoreRig(self.address).stop()
        #expect(try self.query("SELECT version FROM wakegate.meta") == "2")
        let indexes = try self.query(
            "SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes WHERE tablename IN ('event', 'push')"
        )
        #expect(indexes == "event_place push_place")
        let history = try self.history()
        #expect(self.moments(history) == [Self.now, Self.now - 5])
        #expect(history.push(APNsID(Self.now)).map(\.at.milliseconds) == [Self.now])
    }

    @Test("Too many bytes: the oldest go, and not more than has to")
    func bytes() throws {
        try self.write([Self.now - 2 * 86_400_000])
        // 100,000 rows of about 130 bytes, one a second, the last of them now.
        try self.query(
            """
            INSERT INTO wakegate.event (device, at, body)
            SELECT n, \(Self.now) - (100000 - n) * 1000::bigint, decode(repeat('00', 76), 'hex')
            FROM generate_series(1, 100000) n;
            INSERT INTO wakegate.push (apns, device, at)
            SELECT gen_random_uuid(), n, \(Self.now) - (100000 - n) * 1000::bigint FROM generate_series(1, 100000) n;
            SELECT pg_stat_force_next_flush()
            """
        )
        try self.query("ANALYZE wakegate.event; ANALYZE wakegate.push")
        try self.query("SELECT brin_summarize_new_values('wakegate.event_place')")
        let history = try self.history(HistoryLimits(bytesMax: 8 << 20))
        while history.tidy() {}
        #expect(history.takeFailure() == nil)
        #expect(self.moments(history).isEmpty)
        let left = try self.query("SELECT count(*), min(at), max(at) FROM wakegate.event").split(separator: "|")
            .compactMap { Int64($0) }
        try #require(left.count == 3)
        // 8 MiB of 193 bytes for each event and its push.
        #expect((33_000...44_000).contains(left[0]))
        #expect(left[2] == Self.now)
        #expect(left[1] == Self.now - (left[0] - 1) * 1000)
        let pushes = try self.query("SELECT count(*) FROM wakegate.push")
        #expect(try #require(Int64(pushes)) <= left[0] + 60)
    }

    @Test("What is too old goes, and no more than that")
    func age() throws {
        let week = 7 * 24 * Self.hour
        try self.write([Self.now - week - 1, Self.now - week, Self.now])
        let history = try self.history()
        while history.tidy() {}
        #expect(self.moments(history) == [Self.now, Self.now - week])
        #expect(try self.query("SELECT count(*) FROM wakegate.push") == "2")
    }
}

extension APNsID {
    /// An identifier that is no other number's.
    fileprivate init(_ number: Int64) { self.init(random: (UInt64(bitPattern: number), 1)) }
}
