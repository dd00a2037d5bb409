package import Engine
import Policy
package import Wire

/// The delivery log as tables: what happened to a device in one transaction is one row of bytes.
package enum EventTables {
    /// The tables as version 1 of the schema makes them.
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

    /// What version 2 of the schema finds rows by: summaries of pages instead of an entry a row.
    ///
    /// An entry a row, at a random place of an index, would be half of what a push costs; a question reads the
    /// summaries, which are a hundredth of the rows, and the few pages that they name. Autovacuum summarises pages,
    /// which are looked through until then.
    static let summaries = [
        "DROP INDEX wakegate.event_at, wakegate.event_device, wakegate.push_apns, wakegate.push_at",
        """
        CREATE INDEX event_place ON wakegate.event USING brin (
            at, device int8_bloom_ops (n_distinct_per_range = \(Self.rowsPerSummary)))
        WITH (pages_per_range = \(Summarized.event.pagesPerSummary), autosummarize = on)
        """,
        """
        CREATE INDEX push_place ON wakegate.push USING brin (
            at, apns uuid_bloom_ops (n_distinct_per_range = \(Self.rowsPerSummary)))
        WITH (pages_per_range = \(Summarized.push.pagesPerSummary), autosummarize = on)
        """,
        Self.oldest,
    ]

    /// The version of the schema from which on gateways write bundles, once no older gateway is attached.
    static let bundlesFrom: Int32 = 3

    /// What version 3 of the schema adds: rows for what happens to many devices at once.
    ///
    /// A row a device and one a push are a third of what a push costs PostgreSQL. A bundle stands for dozens of both,
    /// and its filter says which. A question about one device or moment reads the bundles of its time; one for a push
    /// by its name alone reads the pages of all, as filters stand beside their bodies. No row is moved out of its page:
    /// two fill one.
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

    /// Summarises the pages that nobody has yet: autovacuum does so once a minute, for a few hundred of them, and after
    /// a burst a question would read all the others for as long as an hour. Where a vacuum is under way, which does the
    /// same, or the tables are another role's, it does nothing.
    private static let summarize = """
        CREATE FUNCTION wakegate.summarize() RETURNS void LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
        BEGIN
            PERFORM brin_summarize_new_values('wakegate.event_place');
            PERFORM brin_summarize_new_values('wakegate.push_place');
        EXCEPTION WHEN lock_not_available OR insufficient_privilege THEN NULL;
        END $$
        """

    /// A table whose rows are found by summaries of its pages, which its index `NAME_place` has.
    enum Summarized: String {
        case event, push

        /// Pages that have one summary together.
        var pagesPerSummary: Int {
            switch self {
            case .event: 32
            case .push: 16
            }
        }
    }

    /// About as many rows as the pages of one summary have.
    private static let rowsPerSummary = 2000

    /// Two moments: up to `early` there are no events, and up to `late` there are some, at most those of a 64th of the
    /// time that all are from. Nulls without events.
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

    /// The most events of one row: what `EventRecord` writes of as many is one record.
    static let eventsPerRow = 512

    /// What happened to one device in one transaction, or a part of that.
    package struct Row {
        /// The number the history knows the device by.
        package let device: Int64
        /// When the first of it happened, in policy time.
        package let at: Int64
        package fileprivate(set) var events: [HistoryEvent]

        /// - Parameter events: at least one, in the order in which they happened.
        init(events: [HistoryEvent]) {
            self.device = Int64(bitPattern: events[0].device)
            self.at = events[0].at.milliseconds
            self.events = events
        }

        /// The events as `EventRecord` writes them.
        package func body() -> [UInt8] {
            var buffer = ByteBuffer()
            _ = EventRecord.write(self.events, from: 0, sequence: 1, keyMark: 0, to: &buffer)
            return buffer.view.array
        }
    }

    /// The events by device, each device's in their order; devices in the order of their first events.
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

    /// The pushes that were answered: identifier, device and moment, the identifier without the case of its letters.
    package static func pushes(_ events: [HistoryEvent]) -> [(apns: APNsID, device: Int64, at: Int64)] {
        events.compactMap { event in
            guard case .push = event.kind, let apns = event.apnsID else { return nil }
            return (apns, Int64(bitPattern: event.device), event.at.milliseconds)
        }
    }
}

/// What happened at one moment to many devices, as one row of `EventTables.bundles`.
package struct EventBundle {
    /// The fewest events that are bundled: fewer are rows of their own, which indexes find.
    package static let eventsMin = 16
    /// The most bytes of a body: of pushes, two rows fill a page with their filters.
    private static let bodyBytesMax = 3_500

    /// A filter of the devices and pushes that it tells of.
    package let keys: [UInt8]
    /// The events as `EventRecord` writes them.
    package let body: [UInt8]

    /// Whether these are better kept as bundles: there are enough, and all of one moment, as those of one transaction
    /// are.
    package static func isWorthwhile(_ events: [HistoryEvent]) -> Bool {
        guard events.count >= self.eventsMin else { return false }
        let moment = events[0].at
        return events.allSatisfy { $0.at == moment }
    }

    /// All of the events, in their order.
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

/// A filter of keys: it holds each that was put into it, and of others one in some hundred.
///
/// Its bits are a power of two, of which a key has four; PostgreSQL tests them, so what a key's bits are never changes.
package struct BundleFilter {
    /// How many bits a key has.
    static let bitsPerKey = 4
    /// How many bits the filter has for each key, at least.
    private static let roomPerKey = 16
    private static let bytesMin = 8

    private var keys: [UInt64] = []
    private var lastDevice: UInt64?

    /// Holds nothing.
    init() {}

    /// Drops every key and keeps the memory.
    mutating func removeAll() {
        self.keys.removeAll(keepingCapacity: true)
        self.lastDevice = nil
    }

    /// Appends what an event is looked for by: its device, and the push that came with it.
    mutating func append(_ event: HistoryEvent) {
        if event.device != self.lastDevice {
            self.keys.append(Self.key(device: event.device))
            self.lastDevice = event.device
        }
        if case .push = event.kind, let apns = event.apnsID { self.keys.append(Self.key(push: apns)) }
    }

    /// The filter as it is stored.
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

    /// Where a key's bits are: in a filter of so many bits the remainders.
    static func places(_ key: UInt64) -> [Int64] { (0..<self.bitsPerKey).map { self.place($0, of: key) } }

    @inline(__always)
    private static func place(_ number: Int, of key: UInt64) -> Int64 {
        let step = key >> 32 | 1
        return Int64((key &+ UInt64(number) &* step) & 0x7FFF_FFFF)
    }

    /// The key of a device, by the number that events know it by.
    static func key(device: UInt64) -> UInt64 { SplitMix64.scattered(device &+ SplitMix64.step) }

    /// The key of a push, without the case of its letters.
    static func key(push: APNsID) -> UInt64 { self.key(device: self.key(device: push.first) ^ push.second) }
}

/// What happened to devices before they came into the tables, as rows of the delivery log.
///
/// A device's rows are read by their numbers. These have numbers below zero, and those that gateways write have others:
/// so they come first, though they may be written last.
struct ImportedEvents: ~Copyable {
    /// The longest time that one row tells of, in milliseconds: a row is deleted when its first event is too old.
    private static let spanMax: Int64 = 3_600_000

    private var ids = PostgresArray(.int8)
    private var devices = PostgresArray(.int8)
    private var moments = PostgresArray(.int8)
    private var bodies = PostgresArray(.bytes)
    private var pushed = PostgresArray(.uuid)
    private var pushedDevices = PostgresArray(.int8)
    private var pushedMoments = PostgresArray(.int8)

    /// No events.
    init() {}

    /// Appends all that happened to one device.
    ///
    /// - Parameter newestFirst: the newest first.
    mutating func append(_ newestFirst: [HistoryEvent]) {
        var id: Int64 = 0
        var start = 0
        while start < newestFirst.count {
            let end = Self.end(ofRowFrom: start, newestFirst)
            id -= 1
            let row = EventTables.Row(events: newestFirst[start..<end].reversed())
            self.ids.append(id)
            self.devices.append(row.device)
            self.moments.append(row.at)
            self.bodies.append(row.body())
            for push in EventTables.pushes(row.events) {
                // An identifier's words have the first byte lowest.
                self.pushed.append(uuid: (push.apns.first.byteSwapped, push.apns.second.byteSwapped))
                self.pushedDevices.append(push.device)
                self.pushedMoments.append(push.at)
            }
            start = end
        }
    }

    /// Where a row ends: with a push, since the way of a push is looked for in rows from its own moment on.
    private static func end(ofRowFrom start: Int, _ newestFirst: [HistoryEvent]) -> Int {
        let newest = newestFirst[start].at
        for place in start..<newestFirst.count {
            let event = newestFirst[place]
            if case .push = event.kind { return place + 1 }
            guard place + 1 < newestFirst.count else { break }
            let older = newestFirst[place + 1]
            // A name stays with its event, which comes before it here.
            guard !older.isNamePart else { continue }
            let isFull = place + 1 - start >= EventTables.eventsPerRow / 2
            if isFull || newest.milliseconds - older.at.milliseconds > self.spanMax { return place + 1 }
        }
        return newestFirst.count
    }

    /// Within a transaction.
    func write(to client: PostgresClient) throws(PostgresError) {
        guard self.ids.count > 0 else { return }
        var parameters = PostgresParameters()
        parameters.append(self.devices)
        parameters.append(self.ids)
        parameters.append(self.moments)
        parameters.append(self.bodies)
        try client.query(
            """
            INSERT INTO wakegate.event (device, id, at, body)
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[])
            """,
            parameters
        )
        guard self.pushed.count > 0 else { return }
        parameters = PostgresParameters()
        parameters.append(self.pushed)
        parameters.append(self.pushedDevices)
        parameters.append(self.pushedMoments)
        try client.query(CommitStatement.insertPushes.sql(clock: ""), parameters)
    }
}
