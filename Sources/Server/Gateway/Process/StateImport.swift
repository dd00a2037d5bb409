import Engine
import PostgresStore

/// Moves the state of a gateway that had its store to itself into the database that a configuration names.
package enum StateImport {
    /// Why nothing more was moved, and what to do about it.
    package struct Failure: Error, Sendable {
        package let message: String
    }

    /// What was moved.
    package struct Report: Sendable {
        package let devices: Int
        /// The devices that an import before, which was cut off, had moved.
        package let devicesBefore: Int
        package let topics: Int
        package let pushesAccepted: Int64
        package let pushesPending: Int64
        package let requestsWaiting: Int64
        /// Pushes, requests and transfers whose wakes were in flight: they wait again, or ended as lost.
        package let wakesLost: Int64
        /// What happened, as the delivery log tells it.
        package let events: Int
        /// Names of what gateways share that the database had already, and has still.
        package let kept: [String]
    }

    /// What is moved one after the other.
    package enum Part: String, Sendable {
        case devices = "devices"
        case logs = "delivery logs of devices"
    }

    /// How many events of the delivery log are moved at a time, those of one device together.
    private static let eventsAtATime = 8192

    /// Moves all of it; an import that was cut off goes on.
    ///
    /// - Parameters:
    ///   - folder: the state folder, which nobody else may use meanwhile.
    ///   - configuration: by which everything is judged, and which names the database.
    ///   - onProgress: hears what is moved, how many of it there are, and how many are moved.
    /// - Throws: when the folder holds no state, the database has its topics already, or the state was moved before.
    package static func run(
        from folder: String,
        _ configuration: GatewayConfiguration,
        onProgress: (Part, _ moved: Int, _ all: Int) -> Void
    ) throws(Failure) -> Report {
        do throws(StoreError) { return try self.move(folder, configuration, onProgress) } catch {
            throw Failure(message: error.message)
        }
    }

    private static func move(
        _ folder: String,
        _ configuration: GatewayConfiguration,
        _ onProgress: (Part, _ moved: Int, _ all: Int) -> Void
    ) throws(StoreError) -> Report {
        let settings = try configuration.storeSettings()
        var old = configuration
        old.stateFolder = folder
        old.store = .sqlite
        let state = try StateExport(old)
        let source = DatabaseImport.Source(id: state.id, fingerprint: state.fingerprint, topics: state.topics)
        let database = try DatabaseImport(source, at: state.now, settings)
        let wakesLost = try state.begin(at: database.now)
        let before = database.next
        while database.next < state.deviceCount {
            let end = min(state.deviceCount, database.next + DatabaseImport.devicesMax)
            try database.write(state.rows(database.next..<end, topicNumbers: database.topicNumbers))
            onProgress(.devices, database.next, state.deviceCount)
        }
        let books = state.books()
        let counts = DatabaseImport.Counts(total: books.total, topics: books.topics, rejections: state.rejections)
        var kept: [String] = []
        if !database.isDone {
            kept = try database.finish(counts, values: state.values, countingSince: state.countingSince)
        }
        let events = try self.moveLog(state, database, settings, onProgress)
        return Report(
            devices: state.deviceCount,
            devicesBefore: before,
            topics: state.topics.count,
            pushesAccepted: books.total.accepted,
            pushesPending: books.total.pending,
            requestsWaiting: books.total.requests.waiting.sum,
            wakesLost: wakesLost,
            events: events,
            kept: kept
        )
    }

    /// Moves the delivery log; gateways may run on the database already.
    ///
    /// - Returns: how many events were moved.
    private static func moveLog(
        _ state: StateExport,
        _ database: DatabaseImport,
        _ settings: StoreSettings,
        _ onProgress: (Part, _ moved: Int, _ all: Int) -> Void
    ) throws(StoreError) -> Int {
        let own = state.values[StateExport.historyKeyName] ?? []
        let log = try state.log(under: SharedValue.find(StateExport.historyKeyName, orKeep: own, settings))
        var moved = 0
        while database.nextLogged < log.deviceCount {
            var logs: [[HistoryEvent]] = []
            var count = 0
            while count < Self.eventsAtATime, database.nextLogged + logs.count < log.deviceCount {
                logs.append(try log.events(database.nextLogged + logs.count))
                count += logs.last?.count ?? 0
            }
            try database.write(logs: logs)
            moved += count
            onProgress(.logs, database.nextLogged, log.deviceCount)
        }
        try database.finishLog()
        return moved
    }
}
