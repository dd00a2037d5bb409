import Engine
import Gateway
import PostgresStore

/// Moves the state of a gateway with its own store into a database.
enum StateImport {
    /// The parts of the state, which are moved one after the other.
    enum Part: String, Sendable {
        case devices = "devices"
        case logs = "delivery logs of devices"
    }

    /// The minimum number of events to move in one step. The events of a device stay together.
    private static let eventsAtATime = 8192

    /// Moves the whole state, or resumes an interrupted import.
    ///
    /// - Parameters:
    ///   - folder: the state folder. No other process may use it during the import.
    ///   - configuration: the policies to apply.
    ///   - settings: the settings of the connections to the database.
    ///   - onProgress: receives the part, the number of moved elements, and their total number.
    /// - Returns: the numbers of what was moved, as lines for people.
    /// - Throws: `StoreError` in four cases: the folder has no state; the database already has one of the state's
    ///   topics; the whole state was moved before; or the state has changed since an interrupted import.
    static func run(
        from folder: String,
        _ configuration: GatewayConfiguration,
        to settings: StoreSettings,
        onProgress: (Part, _ moved: Int, _ all: Int) -> Void
    ) throws(StoreError) -> String {
        var old = configuration
        old.stateFolder = folder
        old.store = .sqlite
        let state = try StateExport(old)
        let database = try DatabaseImport(
            state.id,
            fingerprint: state.fingerprint,
            topics: state.topics,
            at: state.now,
            settings
        )
        let wakesLost = try state.begin(at: database.now)
        // The devices that an interrupted earlier import had already moved.
        let before = database.next
        while database.next < state.deviceCount {
            let end = min(state.deviceCount, database.next + DatabaseImport.devicesMax)
            try database.write(state.rows(database.next..<end, topicNumbers: database.topicNumbers))
            onProgress(.devices, database.next, state.deviceCount)
        }
        let counters = state.counters()
        // The shared values that the database already had. The import does not change them.
        var kept: [String] = []
        if !database.isDone {
            kept = try database.finish(
                counters,
                rejections: state.rejections,
                values: state.values,
                countingSince: state.countingSince
            )
        }
        let events = try self.moveLog(state, database, settings, onProgress)
        let totals = counters.total
        var lines = [
            "devices moved             \(state.deviceCount)", "topics                    \(state.topics.count)",
            "pushes accepted           \(totals.accepted)", "  pending                 \(totals.pending)",
            "tasks waiting             \(totals.requests.waiting.sum)", "wakes lost                \(wakesLost)",
            "events of the log         \(events)",
        ]
        if before > 0 { lines.insert("  moved before            \(before)", at: 1) }
        if !kept.isEmpty { lines.append("left as the database had  \(kept.joined(separator: ", "))") }
        return lines.map { "\($0)\n" }.joined()
    }

    /// Moves the delivery log. Gateways may already be using the database.
    ///
    /// - Returns: the number of events moved.
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
