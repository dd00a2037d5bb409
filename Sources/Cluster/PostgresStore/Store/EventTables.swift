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
