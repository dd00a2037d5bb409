import Engine
import Policy
import Wire

/// An object that executes statements.
protocol StatementRunner {
    associatedtype Failure: Error

    func run(_ statement: CommitStatement, _ parameters: borrowing PostgresParameters) throws(Failure)
}

/// The statements that write the changes of a transaction, in this order: devices, their rows in `due` and `ready`,
/// wakes, events, counters.
///
/// Changes are accessed by index, because copies would retain and release their contents.
struct WriteStep<Runner: StatementRunner> {
    private let runner: Runner
    private var count = 0
    /// The index of the statement that returns the holders of ended wakes; nil if no wake has ended.
    private(set) var endedPlace: Int?

    /// - `versions`: the versions of the rows that were read, by token.
    /// - `now`: the time of the transaction.
    /// - `holder`: the number of this gateway.
    init(
        _ writes: ClusterWrites,
        versions: RowVersions,
        now: Instant,
        holder: GatewayNumber,
        _ runner: Runner
    ) throws(Runner.Failure) {
        try self.init(devices: writes.devices, versions: versions, now: now, runner)
        try self.appendWakes(writes.devices, now, holder)
        if EventBundle.isWorthwhile(writes.events) {
            try self.appendBundles(writes.events)
        } else {
            try self.appendEvents(writes.events)
        }
    }

    /// Writes devices and their rows in `due` and `ready`.
    init(
        devices: [SharedDeviceChange],
        versions: RowVersions,
        now: Instant,
        _ runner: Runner
    ) throws(Runner.Failure) {
        self.runner = runner
        try self.appendDevices(devices, versions, now)
        try self.appendDue(devices)
        try self.appendReady(devices)
    }

    private mutating func append(_ statement: CommitStatement, _ parameters: borrowing PostgresParameters) throws(Runner
        .Failure)
    {
        try self.runner.run(statement, parameters)
        self.count += 1
    }

    private mutating func appendDevices(
        _ changes: [SharedDeviceChange],
        _ versions: RowVersions,
        _ now: Instant
    ) throws(Runner.Failure) {
        var versions = versions
        for isNew in [true, false] where changes.contains(where: { $0.isNew == isNew }) {
            var tokens = PostgresArray(.bytes)
            var topics = PostgresArray(.int4)
            var records = PostgresArray(.bytes)
            var tasks = PostgresArray(.bytes)
            var derived = PostgresArray(.bytes)
            var numbers = PostgresArray(.int8)
            var places = PostgresArray(.place)
            for index in changes.indices where changes[index].isNew == isNew {
                tokens.append(changes[index].device.token)
                topics.append(Int32(bitPattern: changes[index].topic.rawValue))
                records.append(changes[index].device.record)
                tasks.append(changes[index].device.tasks)
                derived.append(changes[index].device.derived)
                guard !isNew else { continue }
                // A row that was not read has the version `none`, with which the transaction fails.
                let version = versions.version(of: changes[index].device.token)
                numbers.append(version.number)
                places.append(version.place)
            }
            var parameters = PostgresParameters()
            parameters.append(tokens)
            parameters.append(topics)
            parameters.append(records)
            parameters.append(tasks)
            parameters.append(derived)
            if !isNew {
                parameters.append(numbers)
                parameters.append(places)
            }
            parameters.append(now.milliseconds)
            try self.append(isNew ? .insertDevices : .updateDevices, parameters)
        }
    }

    private mutating func appendDue(_ changes: [SharedDeviceChange]) throws(Runner.Failure) {
        var tokens = PostgresArray(.bytes)
        var moments = PostgresArray(.int8)
        var gone = PostgresArray(.bytes)
        for index in changes.indices {
            switch changes[index].due {
            case .unchanged: ()
            case .at(nil): if !changes[index].isNew { gone.append(changes[index].device.token) }
            case .at(let moment?):
                tokens.append(changes[index].device.token)
                moments.append(moment.milliseconds)
            }
        }
        if gone.count > 0 { try self.append(.deleteDue, gone) }
        if tokens.count > 0 {
            var parameters = PostgresParameters()
            parameters.append(tokens)
            parameters.append(moments)
            try self.append(.upsertDue, parameters)
        }
    }

    private mutating func append(_ statement: CommitStatement, _ array: borrowing PostgresArray) throws(Runner.Failure)
    {
        var parameters = PostgresParameters()
        parameters.append(array)
        try self.append(statement, parameters)
    }

    private mutating func appendReady(_ changes: [SharedDeviceChange]) throws(Runner.Failure) {
        var gone = PostgresArray(.bytes)
        var tokens = PostgresArray(.bytes)
        var kinds = PostgresArray(.int2)
        var names = PostgresArray(.text)
        var resources = PostgresArray(.text)
        var topics = PostgresArray(.int4)
        var moments = PostgresArray(.int8)
        for index in changes.indices where changes[index].ready != nil {
            let change = changes[index]
            guard let lanes = change.ready else { continue }
            if !change.isNew { gone.append(change.device.token) }
            for lane in lanes {
                tokens.append(change.device.token)
                kinds.append(lane.target.kind.tableCode)
                names.append(lane.target.name)
                resources.append(lane.target.resources.joined(separator: ","))
                topics.append(Int32(bitPattern: change.topic.rawValue))
                moments.append(lane.since.milliseconds)
            }
        }
        if gone.count > 0 { try self.append(.deleteReady, gone) }
        guard tokens.count > 0 else { return }
        var parameters = PostgresParameters()
        parameters.append(tokens)
        parameters.append(kinds)
        parameters.append(names)
        parameters.append(resources)
        parameters.append(topics)
        parameters.append(moments)
        try self.append(.insertReady, parameters)
    }

    private mutating func appendWakes(_ changes: [SharedDeviceChange], _ now: Instant, _ holder: GatewayNumber)
        throws(Runner.Failure)
    {
        var launched = PostgresArray(.uuid)
        var tokens = PostgresArray(.bytes)
        var deadlines = PostgresArray(.int8)
        var ended = PostgresArray(.uuid)
        for index in changes.indices {
            for (wake, deadline) in changes[index].launched {
                launched.append(wake)
                tokens.append(changes[index].device.token)
                deadlines.append(deadline.milliseconds)
            }
            for wake in changes[index].ended { ended.append(wake) }
        }
        if launched.count > 0 {
            var parameters = PostgresParameters()
            parameters.append(launched)
            parameters.append(tokens)
            parameters.append(deadlines)
            parameters.append(holder.rawValue)
            try self.append(.insertWakes, parameters)
        }
        guard ended.count > 0 else { return }
        var parameters = PostgresParameters()
        parameters.append(ended)
        parameters.append(now.milliseconds)
        self.endedPlace = self.count
        try self.append(.endWakes, parameters)
    }

    private mutating func appendBundles(_ events: [HistoryEvent]) throws(Runner.Failure) {
        var keys = PostgresArray(.bytes)
        var bodies = PostgresArray(.bytes)
        for bundle in EventBundle.bundles(events) {
            keys.append(bundle.keys)
            bodies.append(bundle.body)
        }
        var parameters = PostgresParameters()
        parameters.append(events[0].at.milliseconds)
        parameters.append(keys)
        parameters.append(bodies)
        try self.append(.insertBundles, parameters)
    }

    private mutating func appendEvents(_ events: [HistoryEvent]) throws(Runner.Failure) {
        guard !events.isEmpty else { return }
        var devices = PostgresArray(.int8)
        var moments = PostgresArray(.int8)
        var bodies = PostgresArray(.bytes)
        for row in EventTables.rows(events) {
            devices.append(row.device)
            moments.append(row.at)
            bodies.append(row.body())
        }
        var parameters = PostgresParameters()
        parameters.append(devices)
        parameters.append(moments)
        parameters.append(bodies)
        try self.append(.insertEvents, parameters)
        let pushes = EventTables.pushes(events)
        guard !pushes.isEmpty else { return }
        var names = PostgresArray(.uuid)
        var targets = PostgresArray(.int8)
        var times = PostgresArray(.int8)
        for push in pushes {
            // The first byte is in the lowest bits of the identifier's words.
            names.append(uuid: (push.apns.first.byteSwapped, push.apns.second.byteSwapped))
            targets.append(push.device)
            times.append(push.at)
        }
        parameters = PostgresParameters()
        parameters.append(names)
        parameters.append(targets)
        parameters.append(times)
        try self.append(.insertPushes, parameters)
    }

    /// Appends the rows that only this connection writes. The last of them records the number of the transaction, which
    /// later shows whether the transaction has committed.
    mutating func appendOwn(
        _ counters: ConnectionCounters.Step,
        _ rejections: [(topic: UInt32, content: [UInt8])],
        _ mark: WriteMark
    ) throws(Runner.Failure) {
        if !counters.isEmpty {
            var topics = PostgresArray(.int4)
            var counts = PostgresArray(.bytes)
            for (topic, counters) in counters {
                var buffer = ByteBuffer()
                counters.store(to: &buffer)
                topics.append(topic)
                counts.append(buffer.view)
            }
            var parameters = PostgresParameters()
            parameters.append(mark.gateway.rawValue)
            parameters.append(mark.connection)
            parameters.append(topics)
            parameters.append(counts)
            try self.append(.upsertCounters, parameters)
        }
        if !rejections.isEmpty {
            var topics = PostgresArray(.int4)
            var contents = PostgresArray(.bytes)
            for (topic, content) in rejections {
                topics.append(Int32(bitPattern: topic))
                contents.append(content)
            }
            var parameters = PostgresParameters()
            parameters.append(mark.gateway.rawValue)
            parameters.append(mark.connection)
            parameters.append(mark.order)
            parameters.append(topics)
            parameters.append(contents)
            try self.append(.upsertRejections, parameters)
        }
        var parameters = PostgresParameters()
        parameters.append(mark.gateway.rawValue)
        parameters.append(mark.connection)
        parameters.append(mark.epoch)
        parameters.append(mark.number)
        parameters.append(mark.moment.milliseconds)
        try self.append(.mark, parameters)
        try self.append(.commit, PostgresParameters())
    }
}

/// The row that records the progress of a connection's transactions.
struct WriteMark {
    let gateway: GatewayNumber
    let connection: Int16
    let epoch: Int64
    /// The number of the transaction on this connection, starting at 1.
    let number: Int64
    let moment: Instant
    /// The position among all transactions of the gateway.
    let order: Int64
}

extension LaunchKind {
    /// The kind's code in the tables, which never changes its meaning.
    var tableCode: Int16 {
        switch self {
        case .push: 0
        case .appRefresh: 1
        case .processing: 2
        case .continued: 3
        case .urlSession: 4
        }
    }
}

/// The counters of one connection since its gateway was attached, in rows that only this connection writes.
struct ConnectionCounters {
    /// The topic number in the tables that stands for all topics together.
    static let everyTopic: Int32 = -1

    /// The counters by topic number in the tables.
    private(set) var counts: [Int32: ActivityCounters] = [:]

    /// The new values of changed rows, in the order of the topic numbers.
    typealias Step = [(topic: Int32, counters: ActivityCounters)]

    /// Returns the values of the changed rows after a transaction that adds these counts.
    func adding(_ added: [(topic: TopicIndex, added: ActivityCounters)]) -> Step {
        var changed: [Int32: ActivityCounters] = [:]
        for (topic, counters) in added {
            for place in [Int32(bitPattern: topic.rawValue), Self.everyTopic] {
                changed[place, default: self.counts[place] ?? ActivityCounters()] += counters
            }
        }
        return changed.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Records the values after the transaction has committed.
    mutating func take(_ step: Step) {
        for (topic, counters) in step { self.counts[topic] = counters }
    }
}
