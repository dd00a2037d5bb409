import Engine
import Policy
import Wire

/// New devices as rows of the tables, each table's with one statement.
struct ImportRows {
    private let rows: [SharedDeviceChange]
    private let now: Instant

    init(_ rows: [SharedDeviceChange], at now: Instant) {
        self.rows = rows
        self.now = now
    }

    /// Within a transaction.
    func write(to client: PostgresClient) throws(PostgresError) {
        try self.writeDevices(client)
        try self.writeDue(client)
        try self.writeReady(client)
        try self.writeWakes(client)
    }

    private func run(
        _ client: PostgresClient,
        _ statement: CommitStatement,
        _ parameters: borrowing PostgresParameters
    ) throws(PostgresError) {
        try client.query(statement.sql(clock: ""), parameters)
    }

    private func writeDevices(_ client: PostgresClient) throws(PostgresError) {
        var tokens = PostgresArray(.bytes)
        var topics = PostgresArray(.int4)
        var records = PostgresArray(.bytes)
        var tasks = PostgresArray(.bytes)
        var derived = PostgresArray(.bytes)
        for row in self.rows {
            tokens.append(row.device.token)
            topics.append(Int32(bitPattern: row.topic.rawValue))
            records.append(row.device.record)
            tasks.append(row.device.tasks)
            derived.append(row.device.derived)
        }
        var parameters = PostgresParameters()
        parameters.append(tokens)
        parameters.append(topics)
        parameters.append(records)
        parameters.append(tasks)
        parameters.append(derived)
        parameters.append(self.now.milliseconds)
        try self.run(client, .insertDevices, parameters)
    }

    private func writeDue(_ client: PostgresClient) throws(PostgresError) {
        var tokens = PostgresArray(.bytes)
        var moments = PostgresArray(.int8)
        for row in self.rows {
            guard case .at(let moment?) = row.due else { continue }
            tokens.append(row.device.token)
            moments.append(moment.milliseconds)
        }
        guard tokens.count > 0 else { return }
        var parameters = PostgresParameters()
        parameters.append(tokens)
        parameters.append(moments)
        try self.run(client, .upsertDue, parameters)
    }

    private func writeReady(_ client: PostgresClient) throws(PostgresError) {
        var tokens = PostgresArray(.bytes)
        var kinds = PostgresArray(.int2)
        var names = PostgresArray(.text)
        var resources = PostgresArray(.text)
        var topics = PostgresArray(.int4)
        var moments = PostgresArray(.int8)
        for row in self.rows {
            for lane in row.ready ?? [] {
                tokens.append(row.device.token)
                kinds.append(lane.target.kind.tableCode)
                names.append(lane.target.name)
                resources.append(lane.target.resources.joined(separator: ","))
                topics.append(Int32(bitPattern: row.topic.rawValue))
                moments.append(lane.since.milliseconds)
            }
        }
        guard tokens.count > 0 else { return }
        var parameters = PostgresParameters()
        parameters.append(tokens)
        parameters.append(kinds)
        parameters.append(names)
        parameters.append(resources)
        parameters.append(topics)
        parameters.append(moments)
        try self.run(client, .insertReady, parameters)
    }

    /// Wakes that have ended and are remembered: none is in flight. They were no gateway's of this database.
    private func writeWakes(_ client: PostgresClient) throws(PostgresError) {
        var wakes = PostgresArray(.uuid)
        var tokens = PostgresArray(.bytes)
        var deadlines = PostgresArray(.int8)
        for row in self.rows {
            for (wake, deadline) in row.launched {
                wakes.append(wake)
                tokens.append(row.device.token)
                deadlines.append(deadline.milliseconds)
            }
        }
        guard wakes.count > 0 else { return }
        var parameters = PostgresParameters()
        parameters.append(wakes)
        parameters.append(tokens)
        parameters.append(deadlines)
        parameters.append(self.now.milliseconds)
        try client.query(
            """
            INSERT INTO wakegate.wake (id, device, holder, deadline, ended)
            SELECT id, device, 0, deadline, $4::bigint FROM unnest($1::uuid[], $2::bytea[], $3::bigint[])
                u(id, device, deadline)
            """,
            parameters
        )
    }
}
