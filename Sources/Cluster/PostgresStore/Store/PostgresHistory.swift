package import Engine
package import Policy
package import Storage
package import Wire

/// The events of devices and pushes, as all gateways have written them to `EventTables`.
///
/// Used by one caller at a time, on any thread. Each query blocks. After a loss of the connection, the next query
/// connects again.
package final class PostgresHistory: HistorySource {
    /// The maximum number of rows read at a time, which is enough for most devices.
    private static let rowsPerPage: Int64 = 64
    /// The time spans, in milliseconds, to search before all older rows.
    private static let windowMilliseconds: [Int64] = [3_600_000, 86_400_000]
    /// The timeout for an answer, in milliseconds.
    private static let answerMilliseconds: Int64 = 10_000
    /// The maximum numbers of rows and of bundles that one call of `tidy` deletes. Finding the oldest of a million rows
    /// costs PostgreSQL about as much as deleting ten thousand.
    private static let deletedMax: Int64 = 20_000
    private static let deletedBundlesMax: Int64 = 500
    /// The approximate sizes in bytes of a row with its push and of a bundle, which limit a deletion to the excess.
    private static let rowBytes: Int64 = 200
    private static let bundleBytes: Int64 = 4_000
    /// The maximum number of outdated summaries remembered per table. They cover up to a gigabyte of rows.
    private static let staleSummariesMax = 16_384
    /// The maximum number of summaries recreated at a time, which reads up to 4,096 pages.
    private static let summariesMadeMax = 512
    /// Limits of the search for a push: the bundles read at a time, the devices, and the rows of these devices. An
    /// identifier is normally unique. If it was used for many pushes, the latest are returned.
    private static let bundlesPerPage: Int64 = 1_024
    private static let devicesOfPushMax = 64
    private static let rowsOfPushMax: Int64 = 4_096

    private let address: PostgresAddress
    private(set) var limits: HistoryLimits
    /// A cache of devices, by their numbers in events.
    var remembered: [UInt64: LoggedDevice] = [:]
    private var client: PostgresClient?
    private var failure: StoreError?
    /// For each table, the numbers of summaries that still include deleted rows.
    private var staleSummaries: [EventTables.Summarized: Set<Int64>] = [:]
    /// True from the call of `tidy` that found too many bytes until enough are deleted.
    private var isShrinking = false

    /// - Parameters:
    ///   - address: the address of the database.
    ///   - limits: the limits of the age and size of events.
    package init(_ address: PostgresAddress, limits: HistoryLimits) {
        self.address = address
        self.limits = limits
    }

    /// Sets other limits.
    package func setLimits(_ limits: HistoryLimits) { self.limits = limits }

    package func takeFailure() -> StoreError? {
        defer { self.failure = nil }
        return self.failure
    }

    package func visit(device: UInt64, notAfter latest: Instant, _ body: (HistoryEvent) -> Bool) {
        // Most queries are for the latest events, so search the last hour, then the last day, then everything.
        var upper = latest.milliseconds
        for milliseconds in Self.windowMilliseconds + [upper] {
            let lower = max(-1, min(upper, latest.milliseconds - milliseconds) - 1)
            guard self.visit(device: device, after: lower, notAfter: upper, latest, body), lower >= 0 else { return }
            upper = lower
        }
    }

    /// Visits the events of a device after one time and up to another.
    ///
    /// - Returns: true if `body` accepts more events.
    private func visit(
        device: UInt64,
        after lower: Int64,
        notAfter upper: Int64,
        _ latest: Instant,
        _ body: (HistoryEvent) -> Bool
    ) -> Bool {
        var last = Int64.max
        while true {
            var parameters = PostgresParameters(Int64(bitPattern: device), last, lower, upper, Self.rowsPerPage)
            for place in BundleFilter.places(BundleFilter.key(device: device)) { parameters.append(place) }
            guard let rows = self.query(Self.newestFirst, parameters) else { return false }
            for row in 0..<rows.count {
                last = rows.int64(row, 0)
                for event in Self.events(rows.bytes(row, 1)).reversed()
                where event.device == device && event.at <= latest {
                    guard body(event) else { return false }
                }
            }
            guard rows.count == Self.rowsPerPage else { return true }
        }
    }

    package func push(_ apnsID: APNsID) -> [HistoryEvent] {
        let arrivals = self.arrivals(of: apnsID).suffix(Self.devicesOfPushMax)
        guard !arrivals.isEmpty else { return [] }
        var parameters = PostgresParameters()
        parameters.append(arrivals) { Int64(bitPattern: $0.device) }
        parameters.append(arrivals) { $0.at }
        parameters.append(Int64(HistoryFile.pushEventsMax))
        Self.append(keysOf: arrivals.map(\.device), to: &parameters)
        parameters.append(Self.rowsOfPushMax)
        guard let rows = self.query(Self.eventsOfPush, parameters) else { return [] }
        var events: [HistoryEvent] = []
        for row in 0..<rows.count {
            let device = UInt64(bitPattern: rows.int64(row, 0))
            events += Self.events(rows.bytes(row, 1)).filter {
                $0.device == device && !$0.isNamePart && $0.names(apnsID)
            }
        }
        // The sort is stable.
        return events.sorted { $0.at < $1.at }.suffix(HistoryFile.pushEventsMax)
    }

    /// Returns the devices that received a push and the time of its first receipt, in the order of these times.
    private func arrivals(of apnsID: APNsID) -> [(device: UInt64, at: Int64)] {
        var first: [UInt64: Int64] = [:]
        guard let rows = self.query(Self.arrivals, apnsID, Int64(Self.devicesOfPushMax)) else { return [] }
        for row in 0..<rows.count { first[UInt64(bitPattern: rows.int64(row, 0))] = rows.int64(row, 1) }
        guard self.addBundled(apnsID, to: &first) else { return [] }
        return first.map { ($0.key, $0.value) }.sorted { ($0.1, $0.0) < ($1.1, $1.0) }
    }

    /// Adds the devices and times of receipts in bundles. About one filter in a thousand matches although the push is
    /// not in its bundle. Therefore, bundles are read page by page, the newest first, until a device is found.
    ///
    /// - Returns: false if a query failed.
    private func addBundled(_ apnsID: APNsID, to first: inout [UInt64: Int64]) -> Bool {
        var last = Int64.max
        while true {
            var parameters = PostgresParameters(Self.bundlesPerPage)
            for place in BundleFilter.places(BundleFilter.key(push: apnsID)) { parameters.append(place) }
            parameters.append(last)
            guard let bundles = self.query(Self.bundlesOfPush, parameters) else { return false }
            for row in 0..<bundles.count {
                last = bundles.int64(row, 1)
                for event in Self.events(bundles.bytes(row, 0)) {
                    guard let push = LoggedPush(event), push.first == apnsID.first, push.second == apnsID.second else {
                        continue
                    }
                    first[event.device] = min(first[event.device] ?? .max, event.at.milliseconds)
                }
            }
            guard bundles.count == Self.bundlesPerPage, first.isEmpty else { return true }
        }
    }

    /// Appends the bit positions of the keys of devices, one array per bit.
    static func append(keysOf devices: [UInt64], to parameters: inout PostgresParameters) {
        let places = devices.map { BundleFilter.places(BundleFilter.key(device: $0)) }
        for number in 0..<BundleFilter.bitsPerKey { parameters.append(places) { $0[number] } }
    }

    /// Deletes some events that are too old, or some of the oldest events if the total size is too large. Several
    /// gateways may call this at the same time, and delete different rows.
    ///
    /// - Returns: true if more events may have to be deleted.
    package func tidy() -> Bool {
        self.summarizeAgain()
        let age = self.limits.ageMillisecondsMax
        var deleted = self.delete(Self.some(of: "event", Self.isOld), from: .event, age, Self.deletedMax)
        deleted += self.delete(Self.some(of: "push", Self.isOld), from: .push, age, Self.deletedMax)
        deleted += self.deleteBundles(Self.isOld, age, Self.deletedBundlesMax)
        let failure = self.takeFailure()
        _ = self.query("SELECT wakegate.summarize()")
        // A failure only makes queries slower.
        self.failure = failure
        // Let the counters include this session's deletions at once, instead of a second later.
        _ = self.query("SELECT pg_stat_force_next_flush()")
        if deleted == 0, let rows = self.query(Self.bytes), rows.count == 1 {
            deleted = self.shrink(from: rows.int64(0, 0))
        }
        // A later call retries the deletion.
        if self.takeFailure() != nil { return false }
        return deleted > 0
    }

    /// Deletes some events if they have more bytes than the limit, or still more than 15/16 of it after that. Without
    /// the difference, each call would find the oldest rows again for the few events since the last one.
    ///
    /// - Returns: the number of rows or bundles deleted.
    private func shrink(from bytes: Int64) -> Int {
        let limit = Int64(self.limits.bytesMax)
        let target = limit - limit / 16
        self.isShrinking = bytes > (self.isShrinking ? target : limit)
        return self.isShrinking ? self.deleteOldest(bytes: bytes - target) : 0
    }

    /// Deletes some of the oldest bundles or rows, at most about this number of bytes, and the pushes without events.
    private func deleteOldest(bytes: Int64) -> Int {
        guard let oldest = self.query(Self.oldest), oldest.count == 1 else { return 0 }
        let hasRows = !oldest.isNull(0, 0)
        let last = hasRows ? oldest.int64(0, 0) : .max
        let bundles = min(bytes / Self.bundleBytes + 1, Self.deletedBundlesMax)
        var deleted = self.deleteBundles(Self.isUpTo, last, bundles)
        if deleted == 0, hasRows {
            let rows = min(bytes / Self.rowBytes + 1, Self.deletedMax)
            deleted = self.delete(Self.some(of: "event", Self.isUpTo), from: .event, last, rows)
        }
        if deleted > 0 { _ = self.delete(Self.pushesOfNothing, from: .push) }
        return deleted
    }

    /// Deletes the oldest bundles that satisfy a condition, at most `countMax`, and returns their number.
    private func deleteBundles(_ condition: String, _ milliseconds: Int64, _ countMax: Int64) -> Int {
        let some = Self.some(of: "bundle", condition, "ORDER BY at")
        return self.query("DELETE FROM wakegate.bundle WHERE \(some)", milliseconds, countMax)?.affectedCount ?? 0
    }

    /// Deletes the rows of a table that satisfy a condition, and records the summaries of their pages as outdated.
    ///
    /// - Returns: the number of rows deleted.
    private func delete<each Value: PostgresValue>(
        _ condition: String,
        from table: EventTables.Summarized,
        _ values: repeat each Value
    ) -> Int {
        let statement = """
            WITH gone AS (
                DELETE FROM wakegate.\(table) WHERE \(condition)
                RETURNING (ctid::text::point)[0]::bigint / \(table.pagesPerSummary) AS summary)
            SELECT summary, count(*) FROM gone GROUP BY summary
            """
        guard let rows = self.query(statement, repeat each values) else { return 0 }
        var deleted = 0
        for row in 0..<rows.count {
            self.staleSummaries[table, default: []].insert(rows.int64(row, 0))
            deleted += Int(rows.int64(row, 1))
        }
        // Without the right to summarize, the set would grow indefinitely.
        while self.staleSummaries[table, default: []].count > Self.staleSummariesMax {
            _ = self.staleSummaries[table]?.popFirst()
        }
        return deleted
    }

    /// Recreates the summaries of pages from which rows were deleted. New rows reuse the space, but PostgreSQL never
    /// narrows a summary, so a search for the oldest rows would soon read all pages.
    private func summarizeAgain() {
        let failure = self.takeFailure()
        for (table, summaries) in self.staleSummaries {
            let some = summaries.prefix(Self.summariesMadeMax)
            let rows = self.query(Self.summarizeAgain(table), PostgresList(Array(some)))
            if rows?.count == some.count { self.staleSummaries[table] = summaries.subtracting(some) }
        }
        // A failure only makes tidying slower.
        self.failure = failure
    }

    func query<each Value: PostgresValue>(_ sql: String, _ values: repeat each Value) -> PostgresRows? {
        self.query(sql, PostgresParameters(repeat each values))
    }

    func query(_ sql: String, _ parameters: borrowing PostgresParameters) -> PostgresRows? {
        let wasConnected = self.client != nil
        do throws(PostgresError) {
            do throws(PostgresError) {
                return try self.connected().query(sql, parameters)
            } catch {
                // The server may have been replaced while the connection was idle, so retry once.
                guard wasConnected, error.kind == .connectionLost else { throw error }
                self.client = nil
                return try self.connected().query(sql, parameters)
            }
        } catch {
            self.client = nil
            self.failure = StoreError(message: error.description)
            return nil
        }
    }

    private func connected() throws(PostgresError) -> PostgresClient {
        if let client = self.client { return client }
        let client = try PostgresClient(
            self.address,
            application: "wakegate history",
            // The planner overestimates the cost of these queries, which read few rows by page summaries. By default,
            // it would scan whole tables, start parallel workers and compile.
            settings: [
                PostgresSetting("enable_seqscan", "off"), PostgresSetting("jit", "off"),
                PostgresSetting("max_parallel_workers_per_gather", "0"),
            ],
            answerMilliseconds: Self.answerMilliseconds
        )
        self.client = client
        return client
    }

    /// Returns the events of one row up to the first malformed event.
    static func events(_ body: ByteView) -> [HistoryEvent] {
        var events: [HistoryEvent] = []
        do throws(EventRecord.Fault) {
            try EventRecord(body).read { events.append($0) }
        } catch { return events }
        return events
    }
}

// MARK: - Statements

extension PostgresHistory {
    /// Returns a condition that is true if a bundle's filter contains the key with these bit positions.
    static func holds(_ places: [String]) -> String {
        places.map { "get_bit(b.keys, \($0) & (octet_length(b.keys) * 8 - 1)) = 1" }.joined(separator: " AND ")
    }

    /// Returns the parameters with the bit positions of one key, starting at the parameter `first`.
    private static func places(from first: Int) -> [String] {
        (0..<BundleFilter.bitsPerKey).map { "$\(first + $0)::bigint" }
    }

    /// The ids of a device's rows are in the order of their transactions, because each transaction locks the device's
    /// row.
    private static let newestFirst = """
        SELECT id, body FROM wakegate.event WHERE device = $1::bigint AND id < $2::bigint
            AND at > $3::bigint AND at <= $4::bigint
        UNION ALL
        SELECT b.id, b.body FROM wakegate.bundle b WHERE b.id < $2::bigint AND b.at > $3::bigint AND b.at <= $4::bigint
            AND \(holds(places(from: 6)))
        ORDER BY id DESC LIMIT $5::bigint
        """

    private static let arrivals = """
        SELECT device, min(at) FROM wakegate.push WHERE apns = $1::uuid GROUP BY device
        ORDER BY min(at) DESC LIMIT $2::bigint
        """

    private static let bundlesOfPush = """
        SELECT b.body, b.id FROM wakegate.bundle b WHERE b.id < $6::bigint AND \(holds(places(from: 2)))
        ORDER BY b.id DESC LIMIT $1::bigint
        """

    /// Selects the events of a push's devices from its arrival on, up to a limit of rows per device.
    private static let eventsOfPush = """
        SELECT p.device, e.body
        FROM unnest($1::bigint[], $2::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
            p(device, at, one, two, three, four)
        CROSS JOIN LATERAL (
            SELECT id, body FROM wakegate.event WHERE device = p.device AND at >= p.at
            UNION ALL
            SELECT b.id, b.body FROM wakegate.bundle b
            WHERE b.at >= p.at AND \(holds(["p.one", "p.two", "p.three", "p.four"]))
            ORDER BY id LIMIT $3::bigint
        ) e ORDER BY e.id LIMIT $8::bigint
        """

    private static let isOld = "at < (SELECT max(moment) FROM wakegate.connection) - $1::bigint"
    private static let isUpTo = "at <= $1::bigint"

    /// Returns a condition that selects at most `$2` rows that satisfy another condition and are not locked.
    private static func some(of table: String, _ condition: String, _ order: String = "") -> String {
        """
        ctid = ANY(ARRAY(
            SELECT ctid FROM wakegate.\(table) WHERE \(condition)
            \(order) LIMIT $2::bigint FOR UPDATE SKIP LOCKED))
        """
    }

    /// The end of the oldest 64th of the time of all rows. `oldest_events` alone may return the time of a single row.
    private static let oldest = """
        SELECT late + ((SELECT max(moment) FROM wakegate.connection) - late) / 64 FROM wakegate.oldest_events()
        """

    private static let pushesOfNothing = """
        at < (SELECT min(at) FROM wakegate.event WHERE at <= (SELECT late FROM wakegate.oldest_events()))
        """

    /// Returns SQL that recreates summaries. It does nothing if another role owns the table, or if a vacuum or another
    /// gateway has locked the table. A new summary includes deleted rows that are visible in an old snapshot.
    private static func summarizeAgain(_ table: EventTables.Summarized) -> String {
        """
        SELECT brin_desummarize_range('wakegate.\(table)_place', page),
            brin_summarize_range('wakegate.\(table)_place', page)
        FROM (SELECT unnest($1::bigint[]) * \(table.pagesPerSummary) AS page) pages
        WHERE (SELECT set_config('lock_timeout', '100ms', true)) IS NOT NULL
            AND pg_has_role((SELECT relowner FROM pg_class WHERE oid = 'wakegate.\(table)'::regclass), 'USAGE')
            AND NOT EXISTS (
                SELECT FROM pg_locks
                WHERE relation = 'wakegate.\(table)'::regclass AND mode = 'ShareUpdateExclusiveLock')
        """
    }

    /// The size of the existing rows, estimated from the server's counters. The size of the files would include deleted
    /// rows.
    private static let bytes = """
        SELECT (pg_stat_get_live_tuples('wakegate.event'::regclass) * (52 + coalesce((
            SELECT avg_width FROM pg_stats
            WHERE schemaname = 'wakegate' AND tablename = 'event' AND attname = 'body'), 76))
            + pg_stat_get_live_tuples('wakegate.push'::regclass) * 65
            + pg_stat_get_live_tuples('wakegate.bundle'::regclass) * (60 + coalesce((
            SELECT sum(avg_width) FROM pg_stats
            WHERE schemaname = 'wakegate' AND tablename = 'bundle' AND attname IN ('keys', 'body')), 3900)))::bigint
        """
}
