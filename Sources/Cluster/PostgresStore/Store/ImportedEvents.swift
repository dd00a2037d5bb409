import Engine
import Policy
import Wire

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
