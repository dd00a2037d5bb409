package import Engine
package import Policy
import Storage
import Wire

/// The state of a gateway with its own store, as rows of a shared store. The gateway's store is only read. Wakes in
/// flight are lost, as after a restart.
package final class StateExport {
    /// The devices of the state. They are unchanged until `begin` updates them.
    private let engine: DeviceEngine
    private let stored: StoredGateway
    private let historyKey: HashKey
    private let store: GatewayStore
    /// The events of the delivery log that the journal has.
    private let recovery: EventRecovery
    /// The names of the topics, by topic number.
    package let topics: [String]
    /// The stored counts of refused pushes, by topic number. The totals have the number `RecordKey.everyTopic`.
    package let rejections: [(topic: UInt32, content: [UInt8])]
    /// The time of the export, unless the shared store specifies another.
    package let now: Instant
    private let offset: WallOffset

    /// Reads the whole state. No other process may use the state folder.
    ///
    /// - Parameter configuration: the configuration, whose state folder is exported.
    /// - Throws: `StoreError` if the folder has no state, or if the state is inconsistent.
    package init(_ configuration: GatewayConfiguration) throws(StoreError) {
        let store = GatewayStore(configuration)
        let folder = configuration.stateFolder
        do throws(CredentialError) { self.historyKey = try HistoryKey.prepare(in: folder).key } catch {
            throw StoreError(message: error.message)
        }
        let world = EngineWorld.system
        let reading = EngineClock.Reading(world)
        self.engine = DeviceEngine(
            configuration: configuration.engine,
            now: Instant(milliseconds: reading.wall),
            historyKey: self.historyKey,
            random: world.makeRandom()
        )
        let journal = try store.journalToRead()
        let recovery = EventRecovery(self.historyKey)
        var stored = StoredGateway(engine: self.engine, events: recovery)
        var rejections: [(topic: UInt32, content: [UInt8])] = []
        try journal.load { key, content throws(StoreError) in
            if key.kind == .rejections { rejections.append((key.index, content.array)) }
            try stored.take(key, content)
        }
        guard let clock = stored.clock else {
            throw StoreError(message: "No gateway's state is in \(folder). Name the folder of its `state`.")
        }
        self.store = store
        self.recovery = recovery
        self.stored = stored
        self.topics = self.engine.restoredTopics
        self.rejections = rejections
        let watch = ClockJumpWatch(millisecondsMax: configuration.clockJumpMaxMilliseconds)
        let resumed = EngineClock(resuming: clock, at: reading, world, watch)
        (self.now, self.offset) = (resumed.now, resumed.offset)
    }

    /// The identity of the state, which never changes. It reveals only a hash of the history's key.
    package var id: String {
        let hash = self.historyKey.hash(0, UInt64(bitPattern: self.stored.countingSince ?? 0))
        return String(hash, radix: 16)
    }

    /// A value that changes whenever the state changes.
    package var fingerprint: UInt64 {
        var buffer = ByteBuffer()
        self.stored.clock?.store(to: &buffer)
        buffer.append(memoryOf: UInt64(self.topics.count).littleEndian)
        return self.historyKey.hash(buffer.view)
    }

    /// The number of devices, including removed ones.
    package var deviceCount: Int { self.engine.takenCount }

    /// Updates the state to `now`, and ends the wakes in flight as lost. Call it once.
    ///
    /// - Returns: the number of pushes, requests and transfers that were in flight.
    package func begin(at now: Instant) throws(StoreError) -> Int64 {
        try self.engine.finishRestoring(now: now)
        let before = self.engine.totals
        self.engine.loseEveryWake()
        return before.inFlight + before.requests.inFlight.sum + before.sessions.inFlight
    }

    /// Returns the rows of the devices with these indices. Call `begin` first.
    ///
    /// - `topicNumbers`: the topic number in the shared store, for each topic number of this state.
    package func rows(_ places: Range<Int>, topicNumbers: [Int32]) -> [SharedDeviceChange] {
        places.map { place in
            let row = self.engine.sharedRow(DeviceIndex(rawValue: UInt32(place)))
            let number = UInt32(bitPattern: topicNumbers[Int(row.topic.rawValue)])
            return number == row.topic.rawValue ? row : Self.row(row, movedTo: number)
        }
    }

    /// Returns the row with another topic number. `DeviceRecord` stores this number after the token.
    private static func row(_ row: SharedDeviceChange, movedTo number: UInt32) -> SharedDeviceChange {
        var row = row
        let place = 4 + row.device.token.count
        let stored = row.device.record.withByteView { UInt32(littleEndian: $0.load(UInt32.self, at: place)) }
        precondition(stored == row.topic.rawValue, "a device's record has its topic elsewhere")
        for byte in 0..<4 { row.device.record[place + byte] = UInt8(truncatingIfNeeded: number >> UInt32(8 * byte)) }
        row.topic = TopicIndex(rawValue: number)
        return row
    }

    /// Returns the delivery log. Call `begin` first, and call this function once.
    ///
    /// - Parameter content: the shared store's value for the key of its history.
    package func log(under content: [UInt8]) throws(StoreError) -> StateLog {
        let key = try Self.historyKey(content)
        var lost: [HistoryEvent] = []
        self.engine.takeEvents(into: &lost)
        self.recovery.finish(isFirst: false, now: self.engine.now, offset: self.offset)
        let file = try StateLog.file(self.store, key: self.historyKey, self.recovery, lost)
        guard key != self.historyKey else { return StateLog(file, oldest: self.oldestEvent, numbers: nil) }
        var numbers: [UInt64: UInt64] = [:]
        func map(_ number: (HashKey) -> UInt64) { numbers[number(self.historyKey)] = number(key) }
        for topic in self.topics { map { HistoryEvent.streams(topic, $0) } }
        for place in 0..<self.deviceCount {
            let device = DeviceIndex(rawValue: UInt32(place))
            let token = self.engine.identity(device).token
            let topic = self.engine.topicName(self.engine.topic(of: device))
            map { HistoryEvent.device(of: token, $0) }
            map { HistoryEvent.streams(topic, naming: token, $0) }
        }
        return StateLog(file, oldest: self.oldestEvent, numbers: numbers)
    }

    /// The time before which events exceed the age limit of the history.
    private var oldestEvent: Instant { self.engine.now + -self.store.historyLimits.ageMillisecondsMax }

    /// Returns the totals and the counters of each topic, by topic number. Call `begin` first.
    ///
    /// The engine knows the memory of pushes and requests only in total. This function divides it among the topics in
    /// proportion to their pushes and requests.
    package func counters() -> (total: ActivityCounters, topics: [ActivityCounters]) {
        var topics = self.topics.indices.map { self.engine.snapshot(TopicIndex(rawValue: UInt32($0))).counters }
        for place in 0..<self.deviceCount {
            topics[Int(self.engine.topic(of: DeviceIndex(rawValue: UInt32(place))).rawValue)].gauges.devices += 1
        }
        let content = Self.shares(of: self.engine.contentBytes, topics.map { $0.pending + $0.inFlight })
        let tasks = Self.shares(of: self.engine.taskBytes, topics.map { $0.requests.waiting.sum + $0.sessions.waiting })
        for place in topics.indices {
            topics[place].gauges.contentBytes = content[place]
            topics[place].gauges.taskBytes = tasks[place]
        }
        var total = self.engine.totals
        total.gauges = topics.reduce(into: ActivityCounters()) { $0 += $1 }.gauges
        return (total, topics)
    }

    /// Divides `sum` in proportion to `weights`. The parts add up to `sum`; the last part with a weight gets the
    /// remainder.
    static func shares(of sum: Int, _ weights: [Int64]) -> [Int64] {
        let whole = weights.reduce(0, +)
        guard whole > 0, let last = weights.lastIndex(where: { $0 > 0 }) else { return weights.map { _ in 0 } }
        var shares = weights.map { Int64(Double(sum) * Double($0) / Double(whole)) }
        shares[last] = 0
        shares[last] = Int64(sum) - shares.reduce(0, +)
        return shares
    }

    /// The values that gateways share, by name. Call `begin` first.
    package var values: [String: [UInt8]] {
        var values = [Self.historyKeyName: Self.content(self.historyKey)]
        if self.stored.policies.current != nil {
            values[SharedValues.policies] = SharedValues.written(self.stored.policies)
        }
        if self.stored.wasWorkerAuthenticationRequired {
            values[SharedValues.workerAuthentication] = SharedValues.written(moment: self.stored.countingSince ?? 0)
        }
        for topic in self.engine.pausedTopics {
            values[SharedValues.pause(self.engine.topicName(topic))] = SharedValues.written(isPaused: true)
        }
        return values
    }

    /// The name under which gateways share the key of the history.
    package static let historyKeyName = "history.key"

    /// Returns the shared value for a key of the history.
    static func content(_ key: HashKey) -> [UInt8] {
        var content = ByteBuffer()
        content.append(memoryOf: key.first.littleEndian)
        content.append(memoryOf: key.second.littleEndian)
        return content.view.array
    }

    /// Returns the key of the history from its shared value.
    static func historyKey(_ content: [UInt8]) throws(StoreError) -> HashKey {
        guard content.count == 16 else {
            throw StoreError(message: "The value history.key in the database is not a key. Restore it, or delete it.")
        }
        return HistoryKey.key(content)
    }

    /// The name of the shared value for the start of counting, and the start in milliseconds since 1970.
    package var countingSince: (name: String, milliseconds: Int64)? {
        self.stored.countingSince.map { (SharedValues.countingSince, $0) }
    }
}

/// The events of the devices of a state, device by device.
package final class StateLog {
    /// The maximum number of events exported per device; the newest are kept.
    private static let eventsPerDeviceMax = 262_144

    private let file: HistoryFile
    private let oldest: Instant
    /// The numbers of devices in the shared store, by their numbers in this state; nil if both numbers are the same.
    private let numbers: [UInt64: UInt64]?
    /// The devices with events, by their numbers in the state, in ascending order.
    private let devices: [UInt64]

    /// - `oldest`: the time before which events are left out.
    /// - `numbers`: the numbers of devices in the shared store. Devices without a number are left out.
    init(_ file: HistoryFile, oldest: Instant, numbers: [UInt64: UInt64]?) {
        self.file = file
        self.oldest = oldest
        self.numbers = numbers
        self.devices = file.devices().filter { numbers?[$0] != nil || numbers == nil }.sorted()
    }

    /// Returns the delivery log, merged from the file and the journal.
    ///
    /// - `recovery`: the events in the journal.
    /// - `last`: events that are later than those in the journal.
    /// - Throws: if the file exists and cannot be used.
    static func file(
        _ store: GatewayStore,
        key: HashKey,
        _ recovery: EventRecovery,
        _ last: [HistoryEvent]
    ) throws(StoreError) -> HistoryFile {
        let isStored = store.hasHistory
        let file = isStored ? store.openHistory(key: key) { _ in } : HistoryFile(path: nil, key: key) { _ in }
        guard !isStored || file.isOpen && file.found?.isNew == false else {
            throw StoreError(
                message: "The delivery log in \(store.folder) cannot be read: \(file.cause ?? "it was set aside"). "
                    + "Move history.sqlite away and import again: all but the delivery log is in the database then."
            )
        }
        recovery.compare(with: file.found)
        if let undone = recovery.undone { file.void(undone) }
        for record in recovery.takeRecords() where !record.content.isEmpty {
            var events: [HistoryEvent] = []
            record.content.withByteView { content in
                // The same content was parsed successfully before.
                try? EventRecord(content).read { events.append($0) }
            }
            file.append(events[...], ofRecord: record.sequence)
        }
        file.append(last[...])
        return file
    }

    /// The number of devices with events.
    package var deviceCount: Int { self.devices.count }

    /// Returns the events of a device, the newest first.
    ///
    /// - Parameter place: the index of the device, from 0.
    /// - Throws: if the file cannot be read.
    package func events(_ place: Int) throws(StoreError) -> [HistoryEvent] {
        let device = self.devices[place]
        let number = self.numbers?[device] ?? device
        var events: [HistoryEvent] = []
        self.file.visit(device: device, notAfter: .distantFuture) { event in
            guard event.at >= self.oldest, events.count < Self.eventsPerDeviceMax else { return false }
            var event = event
            event.device = number
            events.append(event)
            return true
        }
        if let cause = self.file.cause {
            throw StoreError(
                message: "The delivery log cannot be read: \(cause). Import again; it continues where it stopped."
            )
        }
        return events
    }
}
