import Engine
import Policy
import PostgresStore
import Storage
import Testing
import WakeGateTestKit
import Wire

/// The delivery log in PostgreSQL: found by summaries of pages, and limited by age and by bytes.
@Suite(.timeLimit(.minutes(15)))
struct HistoryTablesTests {
    private static let device: UInt64 = 7
    private static let hour: Int64 = 3_600_000
    private static let now: Int64 = 1_800_000_000_000

    private let database: TestDatabase
    private var address: String { self.database.address }

    init() throws {
        self.database = try TestDatabase()
        try StoreRig(self.address).stop()
        try self.beginAgain()
    }

    /// Sets the moment from which the age of events is measured.
    private func beginAgain() throws { try self.query("UPDATE wakegate.connection SET moment = \(Self.now)") }

    @discardableResult
    private func query(_ sql: String) throws -> String { try self.database.query(sql) }

    private func history(_ limits: HistoryLimits = HistoryLimits()) throws -> PostgresHistory {
        PostgresHistory(try PostgresAddress(self.address), limits: limits)
    }

    /// Writes a received push for each of these moments, each in its own row.
    private func write(_ moments: [Int64]) throws {
        let rig = try StoreRig(self.address)
        for moment in moments { try rig.tell(Self.burst(at: moment, from: Self.device, count: 1)) }
        rig.stop()
        try self.beginAgain()
    }

    private func moments(
        _ history: PostgresHistory,
        of device: UInt64 = Self.device,
        notAfter end: Instant = .distantFuture,
        atMost count: Int = .max
    ) -> [Int64] {
        var found: [Int64] = []
        history.visit(device: device, notAfter: end) { event in
            found.append(event.at.milliseconds)
            return found.count < count
        }
        return found
    }

    @Test("Events are read newest first, whatever their age, until the caller has enough")
    func order() throws {
        let ages: [Int64] = [0, 1, Self.hour - 1, Self.hour, 3 * Self.hour, 24 * Self.hour, 24 * Self.hour + 1]
        let moments = (ages + [70 * Self.hour, Self.now]).map { Self.now - $0 }
        try self.write(moments.reversed())
        let history = try self.history()
        #expect(self.moments(history) == moments)
        #expect(self.moments(history, atMost: 5) == Array(moments.prefix(5)))
        let end = Instant(milliseconds: Self.now - 2)
        #expect(self.moments(history, notAfter: end) == Array(moments.dropFirst(2)))
    }

    @Test("Events that fill more than one page are read once each")
    func pages() throws {
        let moments = (0..<200).map { Self.now - Int64($0) * 60_000 }
        try self.write(moments.reversed())
        #expect(try self.moments(self.history()) == moments)
    }

    @Test("Repeated pushes with one name are listed once per time, however many there are")
    func repeated() throws {
        try self.write([Self.now])
        // Each moment has more rows than a page.
        try self.query(
            """
            INSERT INTO wakegate.push (apns, device, at)
            SELECT apns, device, at - m FROM wakegate.push, generate_series(0, 39) m, generate_series(1, 15)
            """
        )
        let found = try self.history().pushes(behind: nil, notBefore: .distantPast, countMax: 12)
        #expect(found.pushes.map(\.at.milliseconds) == (0..<12).map { Self.now - $0 })
    }

    /// Changes the tables back to those of version 1.
    private func goBack() throws {
        try self.query(
            """
            DROP TABLE wakegate.bundle;
            DROP INDEX wakegate.ready_pushes, wakegate.ready_names, wakegate.ready_stems;
            DROP INDEX wakegate.event_place, wakegate.push_place;
            DROP FUNCTION wakegate.oldest_events();
            DROP FUNCTION wakegate.summarize();
            CREATE INDEX event_device ON wakegate.event (device, id);
            CREATE INDEX event_at ON wakegate.event (at);
            CREATE INDEX push_apns ON wakegate.push (apns);
            CREATE INDEX push_at ON wakegate.push USING brin (at);
            UPDATE wakegate.meta SET version = 1, oldest = 1
            """
        )
    }

    /// The indexes that version 2 created.
    private static let largerSummaries = """
        DROP INDEX wakegate.event_place, wakegate.push_place;
        CREATE INDEX event_place ON wakegate.event USING brin (
            at, device int8_bloom_ops (n_distinct_per_range = 2000)) WITH (pages_per_range = 32, autosummarize = on);
        CREATE INDEX push_place ON wakegate.push USING brin (
            at, apns uuid_bloom_ops (n_distinct_per_range = 2000)) WITH (pages_per_range = 16, autosummarize = on)
        """

    /// Selects the pages per summary of both tables.
    private static let pagesPerSummary = """
        SELECT split_part(reloptions[1], '=', 2) FROM pg_class WHERE relname IN ('event_place', 'push_place')
        ORDER BY relname
        """

    @Test("A newer gateway migrates the tables next to an older one, which keeps working until it leaves")
    func rollingUpgrade() throws {
        let older = try StoreRig(self.address)
        try older.write([1]) { .of($0, $1) }
        // The state that version 6 left.
        try self.query(
            """
            \(Self.largerSummaries);
            UPDATE wakegate.meta SET version = 6, oldest = 6;
            UPDATE wakegate.gateway SET schema = 6 WHERE alive
            """
        )
        let newer = try StoreRig(self.address)
        #expect(try self.query("SELECT version, oldest FROM wakegate.meta") == "7|6")
        #expect(try self.query(Self.pagesPerSummary) == "8\n4")
        try newer.write([1, 2]) { .of($0, $1, record: 2) }
        try older.write([2, 3]) { .of($0, $1, record: 3) }
        let beside = try newer.find(.tokens([1, 2, 3]))
        #expect(beside.devices.map(\.record) == [[2], [3], [3]])
        try older.tell(Self.burst(at: Self.now, from: 100, count: 40))
        // The view of the newer gateway shows that the older one is still there.
        _ = try newer.view { $0.members.count == 2 }
        #expect(try self.query("SELECT oldest FROM wakegate.meta") == "6")
        older.stop()
        try self.database.wait(for: "7", of: "SELECT oldest FROM wakegate.meta")
        try newer.tell(Self.burst(at: Self.now + 1, from: 120, count: 40))
        newer.stop()
        // The rows of both gateways form one log.
        let found = try self.history().pushes(behind: nil, notBefore: .distantPast, countMax: 100)
        #expect(found.pushes.map(\.device) == Array((120..<160).reversed()) + Array((100..<140).reversed()))
    }

    // MARK: Bundles

    /// Creates a push to each of several devices, all at the same moment.
    private static func burst(at moment: Int64, from first: UInt64, count: Int) -> [HistoryEvent] {
        (0..<count).map { number in
            HistoryEvent(
                device: first + UInt64(number),
                at: Instant(milliseconds: moment),
                kind: .push(.launched),
                apnsID: Self.name(moment, first + UInt64(number))
            )
        }
    }

    private static func name(_ moment: Int64, _ device: UInt64) -> APNsID {
        APNsID(random: (UInt64(bitPattern: moment), device))
    }

    /// Writes ten bursts of 100 pushes, one minute apart, and more pushes to this suite's device between them.
    private func writeBursts() throws {
        let rig = try StoreRig(self.address)
        defer { rig.stop() }
        for burst in 0..<10 {
            let moment = Self.now - Int64(9 - burst) * 60_000
            try rig.tell(Self.burst(at: moment, from: 1000, count: 100))
            try rig.tell(Self.burst(at: moment + 1, from: Self.device, count: 1))
            let end = HistoryEvent(
                device: 1050,
                at: Instant(milliseconds: moment + 2),
                kind: .result(.push(.newData)),
                apnsID: Self.name(moment, 1050)
            )
            try rig.tell([end])
        }
        #expect(try self.query("SELECT count(*) FROM wakegate.bundle") == "10")
        #expect(try self.query("SELECT count(*) FROM wakegate.push") == "10")
    }

    @Test("Events of many devices in one row are read for each device and for each push")
    func bundles() throws {
        try self.writeBursts()
        let history = try self.history()
        let moments = (0..<10).map { Self.now - Int64($0) * 60_000 }
        #expect(self.moments(history, of: 1050) == moments.flatMap { [$0 + 2, $0] })
        #expect(self.moments(history) == moments.map { $0 + 1 })
        let way = history.push(Self.name(moments[4], 1050))
        #expect(way.map(\.at.milliseconds) == [moments[4], moments[4] + 2])
        #expect(way.allSatisfy { $0.device == 1050 })
        #expect(history.push(Self.name(moments[4], 1099)).count == 1)
        #expect(history.push(Self.name(moments[4] + 1, Self.device)).count == 1)
        #expect(history.push(Self.name(moments[4], 1100)).isEmpty)
    }

    @Test("The latest events of many devices are read at once, from bundles and from rows")
    func latestOfDevices() throws {
        try self.writeBursts()
        let history = try self.history()
        func entries(_ devices: [UInt64], minutes: Int64, each: Int = 100) -> LoggedEntries {
            let oldest = Instant(milliseconds: Self.now - minutes * 60_000)
            return history.entries(devices: devices, since: oldest, countEach: each)
        }
        let found = entries([1050, 5, Self.device, 1099], minutes: 3)
        let moments = (0..<4).map { Self.now - $0 * 60_000 }
        let expected = [moments.flatMap { [$0 + 2, $0] }, [], moments.map { $0 + 1 }, moments]
        #expect(found.entries.map { $0.map(\.event.at.milliseconds) } == expected)
        #expect(found.from == nil)
        #expect(entries([1050], minutes: 60, each: 5).entries.map(\.count) == [5])
        // Of too many rows the newest are read, and none of a bundle that is older than these.
        let oldest = Self.now - 8 * 60_000 - 1
        try self.query(
            """
            INSERT INTO wakegate.event (device, at, body)
            SELECT 1050, at - 1, body FROM wakegate.event, generate_series(1, 65536)
            WHERE device = 1050 AND at = \(Self.now - 8 * 60_000 + 2)
            """
        )
        let cut = entries([1050, 1099], minutes: 60)
        #expect(cut.from == Instant(milliseconds: oldest + 3))
        #expect(cut.entries[1].map(\.event.at.milliseconds) == (0..<8).map { Self.now - $0 * 60_000 })
        #expect(history.takeFailure() == nil)
    }

    @Test("Lists of pushes have those of bundles and of rows in one order, page by page", arguments: [7, 150, 2000])
    func bundlesListed(countMax: Int) throws {
        try self.writeBursts()
        let history = try self.history()
        var listed: [LoggedPush] = []
        var place: LoggedPush?
        repeat {
            let page = history.pushes(behind: place, notBefore: .distantPast, countMax: countMax)
            #expect(page.pushes.count <= countMax)
            listed += page.pushes
            place = page.next
        } while place != nil
        #expect(listed.count == 1010)
        #expect(Set(listed).count == 1010)
        #expect(zip(listed, listed.dropFirst()).allSatisfy { $0.precedes($1) })
        var counts: [UInt64: Int] = [:]
        history.visitDevices(since: listed.filter { $0.device == 1050 || $0.device == Self.device }) { events in
            for event in events { counts[event.device, default: 0] += 1 }
        }
        #expect(counts == [1050: 20, Self.device: 10])
    }

    @Test("The oldest bundles are removed when they are too old, or too many")
    func bundlesTidied() throws {
        try self.writeBursts()
        // The log depends on the server's own row counts.
        try self.database.wait(
            for: "20|10",
            of: """
                SELECT pg_stat_get_live_tuples('wakegate.event'::regclass),
                    pg_stat_get_live_tuples('wakegate.bundle'::regclass)
                """
        )
        let young = try self.history(HistoryLimits(ageMillisecondsMax: 5 * 60_000 + 30_000))
        while young.tidy() {}
        #expect(young.takeFailure() == nil)
        #expect(try self.query("SELECT count(*), min(at) FROM wakegate.bundle") == "6|\(Self.now - 300_000)")
        // 7 MB of older rows.
        try self.query(
            """
            INSERT INTO wakegate.bundle (at, keys, body)
            SELECT \(Self.now) - 86400000 + n, decode(repeat('00', 8), 'hex'), decode(repeat('00', 3400), 'hex')
            FROM generate_series(1, 2000) n;
            SELECT pg_stat_force_next_flush()
            """
        )
        try self.query("ANALYZE wakegate.bundle")
        let small = try self.history(HistoryLimits(bytesMax: 4 << 20, ageMillisecondsMax: 7 * 24 * Self.hour))
        while small.tidy() {}
        #expect(small.takeFailure() == nil)
        let left = try self.numbers("SELECT count(*), min(at) FROM wakegate.bundle")
        // 4 MiB of 3,468 bytes each.
        #expect((1050...1250).contains(left[0]))
        #expect(left[1] == Self.now - 86_400_000 + 2007 - left[0])
        #expect(try self.query("SELECT count(*) FROM wakegate.event") == "12")
    }

    @Test("A query for one push reads few rows, even before any rows are summarized")
    func looksAtFew() throws {
        try self.query(
            """
            ALTER TABLE wakegate.event SET (autovacuum_enabled = off);
            ALTER TABLE wakegate.push SET (autovacuum_enabled = off);
            INSERT INTO wakegate.event (device, at, body)
            SELECT n, \(Self.now) - 40000 + n, decode(repeat('00', 76), 'hex') FROM generate_series(1, 40000) n;
            INSERT INTO wakegate.push (apns, device, at)
            SELECT gen_random_uuid(), n, \(Self.now) - 40000 + n FROM generate_series(1, 40000) n
            """
        )
        let history = try self.history()
        let looked = """
            SELECT sum(seq_tup_read), sum(idx_tup_fetch) FROM pg_stat_user_tables WHERE relname IN ('event', 'push')
            """
        // Both summarise the existing rows, and have counted the rows that the session has read.
        while history.tidy() {}
        let before = try self.numbers(looked)
        #expect(history.push(Self.name(5, 5)).isEmpty)
        #expect(self.moments(history).isEmpty)
        while history.tidy() {}
        let after = try self.numbers(looked)
        #expect(history.takeFailure() == nil)
        #expect(after[0] == before[0], "a whole table was read")
        #expect(after[1] - before[1] < 8000, "\(after[1] - before[1]) of 80,000 rows")
    }

    private func numbers(_ sql: String) throws -> [Int64] {
        let numbers = try self.query(sql).split(separator: "|").compactMap { Int64($0) }
        try #require(numbers.count == 2)
        return numbers
    }

    @Test("Tables of version 1 are migrated with their content")
    func upgrade() throws {
        try self.write([Self.now - 5, Self.now])
        try self.goBack()
        try StoreRig(self.address).stop()
        #expect(try self.query("SELECT version FROM wakegate.meta") == "7")
        let indexes = try self.query(
            "SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes WHERE tablename IN ('event', 'push')"
        )
        #expect(indexes == "event_place push_place")
        let history = try self.history()
        #expect(self.moments(history) == [Self.now, Self.now - 5])
        #expect(history.push(Self.name(Self.now, Self.device)).map(\.at.milliseconds) == [Self.now])
    }

    @Test("Over the size limit the oldest rows are removed, and no more than necessary")
    func bytes() throws {
        try self.write([Self.now - 2 * 86_400_000])
        // 100,000 rows of about 130 bytes, one for each second, the last one at the current time.
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
        let left = try self.numbers("SELECT count(*), min(at) FROM wakegate.event")
        // 8 MiB with 193 bytes for each event and its push.
        #expect((33_000...44_000).contains(left[0]))
        // Only then are the rows those of the last seconds.
        #expect(left[1] == Self.now - (left[0] - 1) * 1000)
        let pushes = try self.query("SELECT count(*) FROM wakegate.push")
        #expect(try #require(Int64(pushes)) <= left[0] + 60)
    }

    @Test("Rows are removed by hundreds while time passes, not as many as arrive meanwhile")
    func whileTimePasses() throws {
        try self.write([Self.now])
        // 60,000 rows of about 130 bytes, one for each millisecond.
        try self.query(
            """
            INSERT INTO wakegate.event (device, at, body)
            SELECT n, \(Self.now) - 60000 + n, decode(repeat('00', 76), 'hex') FROM generate_series(1, 60000) n;
            ANALYZE wakegate.event
            """
        )
        let history = try self.history(HistoryLimits(bytesMax: 4 << 20))
        var calls = 0
        while calls < 200, history.tidy() {
            calls += 1
            try self.query("UPDATE wakegate.connection SET moment = moment + 20")
        }
        #expect(history.takeFailure() == nil)
        #expect((1..<100).contains(calls))
    }

    @Test("Space reused by other rows is not searched for the oldest ones")
    func roomTakenAgain() throws {
        try self.query("ALTER TABLE wakegate.event SET (autovacuum_enabled = off)")
        let history = try self.history(HistoryLimits(bytesMax: 6 << 20))
        let looked = "SELECT n_tup_del, idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'event'"
        var shares: [Int64] = []
        for round in 0..<24 where shares.count < 6 || shares.last ?? 0 > Self.lookedAtMax {
            try self.query(
                """
                INSERT INTO wakegate.event (device, at, body)
                SELECT n, \(Self.now) - (1200000 - \(round) * 50000 - n) * 400::bigint, decode(repeat('00', 76), 'hex')
                FROM generate_series(1, 50000) n;
                SELECT pg_stat_force_next_flush()
                """
            )
            try self.query("ANALYZE wakegate.event")
            let before = try self.numbers(looked)
            while history.tidy() {}
            let after = try self.numbers(looked)
            if after[0] > before[0] { shares.append((after[1] - before[1]) / (after[0] - before[0])) }
            try self.query("VACUUM wakegate.event")
        }
        #expect(history.takeFailure() == nil)
        // When all space has been reused, deleting a row reads no more rows than before. A vacuum of this database that
        // runs during a round keeps its summaries unchanged until the next rows are deleted.
        #expect(try #require(shares.last) <= Self.lookedAtMax, "\(shares)")
    }

    /// The number of rows that may be read for each deleted row. Without summaries of the remaining rows, it is ten
    /// times as high.
    private static let lookedAtMax: Int64 = 60

    @Test("Only events older than the limit are removed")
    func age() throws {
        let week = 7 * 24 * Self.hour
        try self.write([Self.now - week - 1, Self.now - week, Self.now])
        let history = try self.history()
        while history.tidy() {}
        #expect(self.moments(history) == [Self.now, Self.now - week])
        #expect(try self.query("SELECT count(*) FROM wakegate.push") == "2")
    }
}
