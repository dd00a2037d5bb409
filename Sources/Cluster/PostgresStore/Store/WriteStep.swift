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
        for isNew in [true, false] {
            let places = changes.indices.filter { changes[$0].isNew == isNew }
            guard !places.isEmpty else { continue }
            var parameters = PostgresParameters()
            parameters.append(places) { changes[$0].device.token }
            parameters.append(places) { Int32(bitPattern: changes[$0].topic.rawValue) }
            parameters.append(places) { changes[$0].device.record }
            parameters.append(places) { changes[$0].device.tasks }
            parameters.append(places) { changes[$0].device.derived }
            if !isNew {
                // A row that was not read has the version `none`, with which the transaction fails.
                let read = places.map { versions.version(of: changes[$0].device.token) }
                parameters.append(read) { $0.number }
                parameters.append(read) { $0.place }
            }
            parameters.append(now.milliseconds)
            try self.append(isNew ? .insertDevices : .updateDevices, parameters)
        }
    }

    private mutating func appendDue(_ changes: [SharedDeviceChange]) throws(Runner.Failure) {
        var moments: [(place: Int, at: Instant)] = []
        var gone: [DeviceToken] = []
        for place in changes.indices {
            switch changes[place].due {
            case .unchanged: ()
            case .at(nil): if !changes[place].isNew { gone.append(changes[place].device.token) }
            case .at(let moment?): moments.append((place, moment))
            }
        }
        if !gone.isEmpty { try self.append(.deleteDue, PostgresParameters(PostgresList(gone))) }
        guard !moments.isEmpty else { return }
        var parameters = PostgresParameters()
        parameters.append(moments) { changes[$0.place].device.token }
        parameters.append(moments) { $0.at.milliseconds }
        try self.append(.upsertDue, parameters)
    }

    private mutating func appendReady(_ changes: [SharedDeviceChange]) throws(Runner.Failure) {
        var gone: [DeviceToken] = []
        var lanes: [(place: Int, lane: SharedDeviceChange.ReadyLane)] = []
        for place in changes.indices {
            guard let ready = changes[place].ready else { continue }
            if !changes[place].isNew { gone.append(changes[place].device.token) }
            for lane in ready { lanes.append((place, lane)) }
        }
        if !gone.isEmpty { try self.append(.deleteReady, PostgresParameters(PostgresList(gone))) }
        guard !lanes.isEmpty else { return }
        var parameters = PostgresParameters()
        parameters.append(lanes) { changes[$0.place].device.token }
        parameters.append(lanes) { Int16($0.lane.target.kind.storedCode) }
        parameters.append(lanes) { $0.lane.target.name }
        parameters.append(lanes) { $0.lane.target.resources.joined(separator: ",") }
        parameters.append(lanes) { Int32(bitPattern: changes[$0.place].topic.rawValue) }
        parameters.append(lanes) { $0.lane.since.milliseconds }
        try self.append(.insertReady, parameters)
    }

    private mutating func appendWakes(_ changes: [SharedDeviceChange], _ now: Instant, _ holder: GatewayNumber)
        throws(Runner.Failure)
    {
        let launched = SharedDeviceChange.launched(changes)
        if !launched.isEmpty {
            var parameters = PostgresParameters()
            parameters.append(launched) { $0.wake }
            parameters.append(launched) { $0.token }
            parameters.append(launched) { $0.deadline.milliseconds }
            parameters.append(holder.rawValue)
            try self.append(.insertWakes, parameters)
        }
        var ended: [WakeID] = []
        for place in changes.indices { ended += changes[place].ended }
        guard !ended.isEmpty else { return }
        self.endedPlace = self.count
        try self.append(.endWakes, PostgresParameters(PostgresList(ended), now.milliseconds))
    }

    private mutating func appendBundles(_ events: [HistoryEvent]) throws(Runner.Failure) {
        let bundles = EventBundle.bundles(events)
        var parameters = PostgresParameters(events[0].at.milliseconds)
        parameters.append(bundles) { $0.keys }
        parameters.append(bundles) { $0.body }
        try self.append(.insertBundles, parameters)
    }

    private mutating func appendEvents(_ events: [HistoryEvent]) throws(Runner.Failure) {
        guard !events.isEmpty else { return }
        let rows = EventTables.rows(events)
        var parameters = PostgresParameters()
        parameters.append(rows) { $0.device }
        parameters.append(rows) { $0.at }
        parameters.append(rows) { $0.body() }
        try self.append(.insertEvents, parameters)
        let pushes = EventTables.pushes(events)
        if !pushes.isEmpty { try self.append(.insertPushes, EventTables.parameters(of: pushes)) }
    }

    /// Appends the rows that only this connection writes. The last of them records the number of the transaction, which
    /// later shows whether the transaction has committed.
    mutating func appendOwn(
        _ counters: ConnectionCounters.Step,
        _ rejections: [(topic: UInt32, content: [UInt8])],
        _ mark: WriteMark
    ) throws(Runner.Failure) {
        if !counters.isEmpty {
            var parameters = PostgresParameters(mark.gateway.rawValue, mark.connection)
            parameters.append(counters) { $0.topic }
            parameters.append(counters) { $0.counters }
            try self.append(.upsertCounters, parameters)
        }
        if !rejections.isEmpty {
            var parameters = PostgresParameters(mark.gateway.rawValue, mark.connection, mark.order)
            parameters.append(rejections) { Int32(bitPattern: $0.topic) }
            parameters.append(rejections) { $0.content }
            try self.append(.upsertRejections, parameters)
        }
        let moment = mark.moment.milliseconds
        let parameters = PostgresParameters(mark.gateway.rawValue, mark.connection, mark.epoch, mark.number, moment)
        try self.append(.mark, parameters)
        try self.append(.commit, PostgresParameters())
    }
}

extension SharedDeviceChange {
    /// Returns the wakes that changes launch, with their devices and deadlines.
    static func launched(_ changes: [Self]) -> [(wake: WakeID, token: DeviceToken, deadline: Instant)] {
        var launched: [(wake: WakeID, token: DeviceToken, deadline: Instant)] = []
        for place in changes.indices {
            for (wake, deadline) in changes[place].launched {
                launched.append((wake, changes[place].device.token, deadline))
            }
        }
        return launched
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
    /// The kind's code in the tables and in reports, which never changes its meaning; 0 for a push.
    var storedCode: UInt8 { self.task?.storedCode ?? 0 }
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
