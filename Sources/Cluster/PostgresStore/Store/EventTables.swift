package import Engine
import Policy
package import Wire

/// The delivery log as tables. The events of a device in one transaction are one row of bytes.
package enum EventTables {
    /// The tables as created by version 1 of the schema.
    static let statements = [
        """
        CREATE TABLE wakegate.event (
            device bigint NOT NULL,
            id bigserial,
            at bigint NOT NULL,
            body bytea NOT NULL)
        WITH (autovacuum_vacuum_insert_scale_factor = 0.1)
        """,
        "CREATE INDEX event_device ON wakegate.event (device, id)",
        "CREATE INDEX event_at ON wakegate.event (at)",
        """
        CREATE TABLE wakegate.push (apns uuid NOT NULL, device bigint NOT NULL, at bigint NOT NULL)
        WITH (autovacuum_vacuum_insert_scale_factor = 0.1)
        """,
        "CREATE INDEX push_apns ON wakegate.push (apns)",
        "CREATE INDEX push_at ON wakegate.push USING brin (at)",
    ]

    /// Version 2 of the schema replaces the indexes of rows with summaries of pages.
    static let withoutRowIndexes = [
        "DROP INDEX wakegate.event_at, wakegate.event_device, wakegate.push_apns, wakegate.push_at",
        Self.oldest,
    ]

    /// The indexes of version 7 of the schema: BRIN summaries of pages, which version 2 introduced for four times as
    /// many pages each.
    ///
    /// An index entry for each row, at a random position, would be half the cost of a push. A query reads the
    /// summaries, the few pages that they select, and all pages that autovacuum has not summarized yet. The summaries
    /// have a hundredth of the rows' size. When rows reuse the space of deleted ones, each insertion writes a summary
    /// again, 600 bytes here. With summaries of 2,000 rows, an insertion into a full log cost eight times as much.
    ///
    /// An upgrade keeps the indexes of a log of more than a gibibyte, because no gateway can commit while it builds
    /// them.
    static let summaries = [
        """
        DO $$ BEGIN
            IF to_regclass('wakegate.event_place') IS NOT NULL
                AND pg_relation_size('wakegate.event') + pg_relation_size('wakegate.push') > 1::bigint << 30
            THEN RETURN; END IF;
            DROP INDEX IF EXISTS wakegate.event_place, wakegate.push_place;
            CREATE INDEX event_place ON wakegate.event USING brin (
                at, device int8_bloom_ops (n_distinct_per_range = \(Self.rowsPerSummary)))
            WITH (pages_per_range = \(Summarized.event.pagesPerSummary), autosummarize = on);
            CREATE INDEX push_place ON wakegate.push USING brin (
                at, apns uuid_bloom_ops (n_distinct_per_range = \(Self.rowsPerSummary)))
            WITH (pages_per_range = \(Summarized.push.pagesPerSummary), autosummarize = on);
        END $$
        """
    ]

    /// The tables that version 3 of the schema adds, with rows for the events of many devices at the same time.
    ///
    /// Separate rows for each device and each push would cause a third of PostgreSQL's cost of a push. A bundle
    /// replaces dozens of them, and has a filter of its devices and pushes. A query with a time reads the bundles of
    /// that time. A query with only the identifier of a push reads the pages of all bundles, because filters are stored
    /// next to the bodies. Storage is PLAIN, so that no value is moved out of its page; two rows fill a page.
    static let bundles = [
        """
        CREATE TABLE wakegate.bundle (
            id bigint NOT NULL DEFAULT nextval('wakegate.event_id_seq'),
            at bigint NOT NULL,
            keys bytea NOT NULL,
            body bytea NOT NULL)
        WITH (autovacuum_vacuum_insert_scale_factor = 0.1)
        """,
        "ALTER TABLE wakegate.bundle ALTER keys SET STORAGE PLAIN, ALTER body SET STORAGE PLAIN",
        "CREATE INDEX bundle_at ON wakegate.bundle (at)",
        Self.summarize,
    ]

    /// An SQL function that summarizes pages without a summary. Autovacuum alone summarizes a few hundred pages a
    /// minute; after a burst, queries would read the other pages for up to an hour. The function does nothing during a
    /// vacuum, which also summarizes, or if another role owns the tables.
    private static let summarize = """
        CREATE FUNCTION wakegate.summarize() RETURNS void LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
        BEGIN
            PERFORM brin_summarize_new_values('wakegate.event_place');
            PERFORM brin_summarize_new_values('wakegate.push_place');
        EXCEPTION WHEN lock_not_available OR insufficient_privilege THEN NULL;
        END $$
        """

    /// A table whose rows are found by page summaries in the index `NAME_place`.
    enum Summarized: String {
        case event, push

        /// The number of pages per summary.
        var pagesPerSummary: Int {
            switch self {
            case .event: 8
            case .push: 4
            }
        }
    }

    /// The approximate number of rows in the pages of one summary.
    private static let rowsPerSummary = 500

    /// An SQL function that returns two times: no event has a time up to `early`, and some event has a time up to
    /// `late`. They differ by at most about a 64th of the time since `late`. Both are NULL if the table is empty.
    private static let oldest = """
        CREATE FUNCTION wakegate.oldest_events(OUT early bigint, OUT late bigint) LANGUAGE plpgsql STABLE
        SET enable_seqscan = off AS $$
        DECLARE
            newest bigint := (SELECT max(moment) FROM wakegate.connection);
            middle bigint;
        BEGIN
            IF NOT EXISTS (SELECT FROM wakegate.event WHERE at <= newest) THEN RETURN; END IF;
            early := -1;
            late := newest;
            WHILE late - early > 1 + (newest - late) / 64 LOOP
                middle := early + (late - early) / 2;
                IF EXISTS (SELECT FROM wakegate.event WHERE at <= middle) THEN late := middle;
                ELSE early := middle;
                END IF;
            END LOOP;
        END $$
        """

    /// The maximum number of events of one row; `EventRecord` writes this many as one record.
    static let eventsPerRow = 512

    /// Events of one device in one transaction.
    package struct Row {
        /// At least one event, in chronological order.
        package fileprivate(set) var events: [HistoryEvent]

        /// The number of the device in the history.
        package var device: Int64 { Int64(bitPattern: self.events[0].device) }
        /// The policy time of the first event.
        package var at: Int64 { self.events[0].at.milliseconds }

        /// Returns the events in the format of `EventRecord`.
        package func body() -> [UInt8] {
            var buffer = ByteBuffer()
            _ = EventRecord.write(self.events, from: 0, sequence: 1, keyMark: 0, to: &buffer)
            return buffer.view.array
        }
    }

    /// Groups events by device, in the order of each device's first event. The events of a device remain in order.
    package static func rows(_ events: [HistoryEvent]) -> [Row] {
        var places: [UInt64: Int] = [:]
        var rows: [Row] = []
        for event in events {
            if let place = places[event.device], rows[place].events.count < Self.eventsPerRow {
                rows[place].events.append(event)
            } else {
                places[event.device] = rows.count
                rows.append(Row(events: [event]))
            }
        }
        return rows
    }

    /// Returns the identifier, device and time of each accepted push.
    package static func pushes(_ events: [HistoryEvent]) -> [(apns: APNsID, device: Int64, at: Int64)] {
        events.compactMap { event in
            guard case .push = event.kind, let apns = event.apnsID else { return nil }
            return (apns, Int64(bitPattern: event.device), event.at.milliseconds)
        }
    }

    /// Returns the parameters of `CommitStatement.insertPushes`.
    static func parameters(of pushes: [(apns: APNsID, device: Int64, at: Int64)]) -> PostgresParameters {
        var parameters = PostgresParameters()
        parameters.append(pushes) { $0.apns }
        parameters.append(pushes) { $0.device }
        parameters.append(pushes) { $0.at }
        return parameters
    }
}

/// Events of many devices at the same time, as one row of `EventTables.bundles`.
package struct EventBundle {
    /// The minimum number of events in a bundle. Fewer events become separate rows, which indexes find.
    package static let eventsMin = 16
    /// The maximum number of bytes of a body, so that two rows with their filters fill a page.
    private static let bodyBytesMax = 3_500

    /// A filter of the bundle's devices and pushes.
    package let keys: [UInt8]
    /// The events in the format of `EventRecord`.
    package let body: [UInt8]

    /// Returns true if there are at least `eventsMin` events, all with the same time, so that a bundle is cheaper.
    package static func isWorthwhile(_ events: [HistoryEvent]) -> Bool {
        guard events.count >= self.eventsMin else { return false }
        let moment = events[0].at
        return events.allSatisfy { $0.at == moment }
    }

    /// Encodes all events, in order.
    package static func bundles(_ events: [HistoryEvent]) -> [EventBundle] {
        var bundles: [EventBundle] = []
        var body = ByteBuffer()
        var filter = BundleFilter()
        var place = 0
        while place < events.count {
            let start = place
            body.removeAll()
            place = EventRecord.write(
                events,
                from: start,
                sequence: 1,
                keyMark: 0,
                bytesMax: self.bodyBytesMax,
                to: &body
            )
            filter.removeAll()
            for event in events[start..<place] { filter.append(event) }
            bundles.append(EventBundle(keys: filter.bytes(), body: body.view.array))
        }
        return bundles
    }
}

/// A Bloom filter of keys. It also matches about one in several hundred keys that were not added.
///
/// The number of bits is a power of two. PostgreSQL tests the bits, so a key's bits must never change.
package struct BundleFilter {
    /// The number of bits that a key sets.
    static let bitsPerKey = 4
    /// The minimum number of bits of the filter per key.
    private static let roomPerKey = 16
    private static let bytesMin = 8

    private var keys: [UInt64] = []
    private var lastDevice: UInt64?

    /// Removes every key and keeps the memory.
    mutating func removeAll() {
        self.keys.removeAll(keepingCapacity: true)
        self.lastDevice = nil
    }

    /// Adds the keys of an event: its device, and its identifier if the event is a push.
    mutating func append(_ event: HistoryEvent) {
        if event.device != self.lastDevice {
            self.keys.append(Self.key(device: event.device))
            self.lastDevice = event.device
        }
        if case .push = event.kind, let apns = event.apnsID { self.keys.append(Self.key(push: apns)) }
    }

    /// Returns the filter in its stored form.
    func bytes() -> [UInt8] {
        var count = Self.bytesMin
        while count * 8 < self.keys.count * Self.roomPerKey { count *= 2 }
        var bytes = [UInt8](repeating: 0, count: count)
        let mask = Int64(count * 8 - 1)
        for key in self.keys {
            for number in 0..<Self.bitsPerKey {
                let place = Int(Self.place(number, of: key) & mask)
                bytes[place >> 3] |= 1 << UInt8(place & 7)
            }
        }
        return bytes
    }

    /// Returns the positions of a key's bits, to be reduced modulo the number of bits.
    static func places(_ key: UInt64) -> [Int64] { (0..<self.bitsPerKey).map { self.place($0, of: key) } }

    @inline(__always)
    private static func place(_ number: Int, of key: UInt64) -> Int64 {
        let step = key >> 32 | 1
        return Int64((key &+ UInt64(number) &* step) & 0x7FFF_FFFF)
    }

    /// Returns the key of a device, from its number in the history.
    static func key(device: UInt64) -> UInt64 { SplitMix64.scattered(device &+ SplitMix64.step) }

    /// Returns the key of a push, ignoring case.
    static func key(push: APNsID) -> UInt64 { self.key(device: self.key(device: push.first) ^ push.second) }
}

/// Imported events of devices, as rows of the delivery log.
///
/// A device's rows are read in the order of their ids. Imported rows have negative ids and rows of gateways have
/// positive ids, so imported rows come first even if they are written last.
struct ImportedEvents {
    /// The maximum time span of one row, in milliseconds. It is limited, because a row is deleted by the age of its
    /// first event.
    private static let spanMax: Int64 = 3_600_000

    private var rows: [(id: Int64, row: EventTables.Row)] = []

    /// Appends all events of one device.
    ///
    /// - Parameter newestFirst: the events, the newest first.
    mutating func append(_ newestFirst: [HistoryEvent]) {
        var id: Int64 = 0
        var start = 0
        while start < newestFirst.count {
            let end = Self.end(ofRowFrom: start, newestFirst)
            id -= 1
            self.rows.append((id, EventTables.Row(events: newestFirst[start..<end].reversed())))
            start = end
        }
    }

    /// Returns the end of a row. A push is the oldest event of its row, because the events of a push are searched in
    /// rows from its time on.
    private static func end(ofRowFrom start: Int, _ newestFirst: [HistoryEvent]) -> Int {
        let newest = newestFirst[start].at
        for place in start..<newestFirst.count {
            let event = newestFirst[place]
            if case .push = event.kind { return place + 1 }
            guard place + 1 < newestFirst.count else { break }
            let older = newestFirst[place + 1]
            // Store the parts of a name in the row of their event.
            guard !older.isNamePart else { continue }
            let isFull = place + 1 - start >= EventTables.eventsPerRow / 2
            if isFull || newest.milliseconds - older.at.milliseconds > self.spanMax { return place + 1 }
        }
        return newestFirst.count
    }

    /// Writes the rows. The caller has begun a transaction.
    func write(to client: PostgresClient) throws(PostgresError) {
        guard !self.rows.isEmpty else { return }
        var parameters = PostgresParameters()
        parameters.append(self.rows) { $0.row.device }
        parameters.append(self.rows) { $0.id }
        parameters.append(self.rows) { $0.row.at }
        parameters.append(self.rows) { $0.row.body() }
        try client.query(
            """
            INSERT INTO wakegate.event (device, id, at, body)
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[])
            """,
            parameters
        )
        let pushes = self.rows.flatMap { EventTables.pushes($0.row.events) }
        guard !pushes.isEmpty else { return }
        try client.query(CommitStatement.insertPushes.sql(clock: ""), EventTables.parameters(of: pushes))
    }
}
