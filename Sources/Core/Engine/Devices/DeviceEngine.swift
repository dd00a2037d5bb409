package import Policy
package import Wire

/// The in-memory engine for all devices: states, due times, queues for slots, and counters. One thread steps it.
///
/// `DeviceState` and `DeviceLanes` make the decisions. The engine has no clock: its owner supplies the time with
/// `advance`. The owner also knows the workers: it determines whether a slot is free, and claims devices that are
/// ready.
package final class DeviceEngine {
    /// Policy time of the current step.
    package internal(set) var now: Instant
    package internal(set) var configuration: EngineConfiguration
    let random: () -> (UInt64, UInt64)
    var devices: DeviceTable
    var topics: TopicTable
    /// The tasks of devices that have requests, sessions or habits.
    var tasks = TaskTable()
    /// Devices whose push waits only for a slot.
    package var ready = ReadyQueues()
    /// Requests and sessions that have begun to wait for a slot and were not offered to the dispatcher yet.
    var readyTasks = FIFOQueue<ReadyTask>()
    var schedule = DueSchedule()
    var wakes = WakeLedger()
    /// The memory of push contents.
    var memory = ContentMemory()
    /// The memory of names and details of requests and sessions, and of the ids of session events.
    var taskMemory = ContentMemory()
    var traces = TraceJoiner()
    /// Pending events for the history.
    var events: EventQueue
    /// The subscriptions that `takeSubscriptions` has not returned, as events for the history.
    var subscriptions: [HistoryEvent] = []
    /// The number of subscription events of each topic in `subscriptionSecond`, a second of policy time.
    var subscriptionCounts: [TopicIndex: Int] = [:]
    var subscriptionSecond: Int64 = 0
    /// Pending events for watchers.
    var watched = WatchedEvents()
    /// Wall clock minus policy time; nil if no watcher is present.
    var watchOffset: WallOffset?
    /// The time of events that occur outside of steps, such as refusals, for watchers.
    var watchedAt: Instant
    /// Histograms of launch delays and wake durations.
    package var times = WakeTimes()
    /// The step of a shared store; nil if the engine has its own store.
    var shared: SharedStep?
    /// A value that stands for the tasks of a device without tasks. Always blank.
    var noTasks = BackgroundTasks()

    /// Creates an engine without devices.
    ///
    /// - `now`: policy time at the start.
    /// - `historyKey`: the key by which the history numbers devices.
    /// - `random`: returns 128 unpredictable bits, which become the id of a wake.
    package init(
        configuration: EngineConfiguration,
        now: Instant,
        historyKey: HashKey,
        random: @escaping () -> (UInt64, UInt64)
    ) {
        self.configuration = configuration
        self.now = now
        self.watchedAt = now
        self.random = random
        self.devices = DeviceTable(key: historyKey)
        self.topics = TopicTable(key: HashKey(random()))
        self.events = EventQueue(key: historyKey)
    }

    /// The key of the hash from device tokens to the numbers in events and in the device table.
    package var historyKey: HashKey { self.events.key }
}

// MARK: - Time

extension DeviceEngine {
    /// Advances to `now`: ends wakes and expires pushes that are due by then.
    ///
    /// - `devicesMax`: the maximum number of devices to examine, which bounds the step.
    /// - Returns: true if everything due was examined.
    package func advance(to now: Instant, devicesMax: Int) -> Bool {
        self.now = max(self.now, now)
        let isForgotten = self.wakes.forget(at: self.now, devicesMax: devicesMax, in: &self.devices)
        defer { self.schedule.end() }
        for _ in 0..<devicesMax {
            guard let device = self.schedule.popDue(self.now) else {
                return self.judge(devicesMax: devicesMax) && isForgotten
            }
            if let moment = self.schedule.momentBeingDone, self.warn(device, at: moment) { continue }
            self.settle(device)
        }
        return isForgotten && !self.schedule.isJudging && self.schedule.first.map { $0 > self.now } ?? true
    }

    /// Applies a changed policy to the next devices.
    ///
    /// - Returns: true if all devices are done.
    private func judge(devicesMax: Int) -> Bool {
        guard self.schedule.isJudging else { return true }
        for number in self.schedule.popUnjudged(devicesMax: devicesMax, of: self.devices.count) {
            let device = DeviceIndex(rawValue: UInt32(number))
            let record = self.devices[device]
            let isAtRest = record.state.pending == nil && record.state.inFlight == nil
            if !isAtRest || record.hasTasks { self.judge(device) }
        }
        return !self.schedule.isJudging
    }

    /// Updates the state derived from a device after a policy change.
    func judge(_ device: DeviceIndex) {
        guard self.devices[device].hasTasks else { return self.derive(device) }
        let hasExcess = self.tasks[device]?.policy.hasExcess(self.parameters(of: device)) ?? false
        if hasExcess { self.settle(device) } else { self.derive(device) }
    }

    /// The next time at which `advance` has work to do.
    package var nextDue: Instant? { self.schedule.first }

    /// Removes and returns the oldest wake that ended without a result of its worker. The caller must free its slot.
    package func popExpiredWake() -> (id: WakeID, reason: ExpirationReason)? { self.wakes.expired.popFirst() }

    /// True if a wake has expired or is near its deadline, or a launch waits for a slot and was not offered yet.
    package var hasNews: Bool {
        !self.wakes.expired.isEmpty || !self.wakes.expiring.isEmpty || self.ready.hasNewlyReady
            || !self.readyTasks.isEmpty
    }

    /// Replaces the configuration.
    ///
    /// The next calls of `advance` update the launch times of pending pushes and tasks, each for a bounded number of
    /// devices. An operation on a device updates it earlier. Wakes in flight keep their deadlines. Contents that exceed
    /// a lowered limit remain.
    @discardableResult
    package func reconfigure(_ configuration: EngineConfiguration) -> Bool {
        self.configuration = configuration
        let isChanged = self.topics.reconfigure(configuration)
        if isChanged { self.schedule.policyChanged() }
        self.applySharedConfiguration()
        return isChanged
    }
}

// MARK: - Queries

extension DeviceEngine {
    /// The counters of all topics together.
    package var totals: ActivityCounters { self.topics.totals }

    /// Bytes of memory of all pushes that are pending or in flight.
    package var contentBytes: Int { self.memory.bytes }

    /// Bytes of memory of names and details of requests and sessions, and of the ids of session events.
    package var taskBytes: Int { self.taskMemory.bytes }

    /// Returns the number of stored identifiers and session names of a device.
    package func taskNameCount(_ device: DeviceIndex) -> Int { self.tasks[device]?.nameCount ?? 0 }

    /// The number of wakes in flight or remembered after their end, and the number of devices with remembered wakes.
    package var wakesKnown: (ids: Int, devicesWithEnded: Int) { self.wakes.known }

    /// True if there are events that `takeEvents` or `takeSubscriptions` has not returned.
    package var hasEvents: Bool { !self.events.isEmpty || !self.subscriptions.isEmpty }

    /// Returns the events of the streams that opened since the last call.
    package func takeSubscriptions() -> [HistoryEvent] {
        defer { self.subscriptions = [] }
        return self.subscriptions
    }

    /// Gives events of `takeSubscriptions` back to the engine, because they were not stored.
    package func keep(_ subscriptions: [HistoryEvent]) {
        if !subscriptions.isEmpty { self.subscriptions.insert(contentsOf: subscriptions, at: 0) }
    }

    /// Appends the events since the last call to `events`, in order.
    package func takeEvents(into events: inout [HistoryEvent]) { self.events.take(into: &events) }
}

// MARK: - Restoring

extension DeviceEngine {
    /// Restores a record of a topic, a device or its tasks. Ignores other records. Call this before the first step
    /// only.
    ///
    /// - Throws: `StoreError` if `takeStep` cannot have written the record.
    package func restore(_ key: RecordKey, _ content: ByteView) throws(StoreError) {
        switch key.kind {
        case .clock, .origin, .rejections, .policies, .events: break
        case .topic:
            guard self.topics.restore(key.index, content) else { throw .unreadable("topic \(key.index)") }
        case .device:
            guard let record = DeviceRecord(stored: content), self.devices.place(record, at: key.index) else {
                throw .unreadable("device \(key.index)")
            }
        case .tasks:
            guard self.tasks.restore(DeviceIndex(rawValue: key.index), content) else {
                throw .unreadable("the tasks of device \(key.index)")
            }
        }
    }

    /// The names of the topics in the restored records, by number; empty after `finishRestoring`.
    package var restoredTopics: [String] { self.topics.restoredNames }

    /// Updates all derived state after the last record, and continues at `now`. Wakes in flight remain in flight,
    /// because their workers may still exist.
    ///
    /// - Throws: `StoreError` if records are missing.
    package func finishRestoring(now: Instant) throws(StoreError) {
        self.now = now
        try self.topics.finishRestoring(self.configuration)
        self.makeRoomForTopics()
        guard self.devices.finishPlacing() else { throw .unreadable("a device, which is missing") }
        // Launches that are ready became so before the restart, at a time computed from their device's state.
        self.schedule.begin(.distantPast)
        defer { self.schedule.end() }
        var ready: [(since: Instant, device: DeviceIndex)] = []
        for number in 0..<self.devices.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            let record = self.devices[device]
            guard Int(record.topic.rawValue) < self.topics.count else {
                throw .unreadable("device \(number): its topic is missing")
            }
            if record.isRegistered { self.count(record.topic) { $0.registered += 1 } }
            self.topics.countDevices(record.topic, 1)
            for push in [record.state.pending, record.state.inFlight?.push] {
                if let content = push.flatMap({ PushContent($0.handle) }) { self.memory.hold(content, record.topic) }
            }
            if self.tasks[device] != nil { self.devices[device].hasTasks = true }
            guard self.wakes.restore(device, record, inFlight: self.wakesInFlight(device)) else {
                throw .unreadable("device \(number): it has the wake of another")
            }
            let parameters = self.parameters(record.topic)
            let isAtRest = record.state.pending == nil && record.state.inFlight == nil
            if record.state.isLaunchable(now, parameters) {
                ready.append((self.readyFrom(device, record.state, parameters), device))
            } else if !isAtRest || self.devices[device].hasTasks {
                self.derive(device)
            }
        }
        // The queues of ready devices are in the order of these times.
        ready.sort { ($0.since, $0.device.rawValue) < ($1.since, $1.device.rawValue) }
        for entry in ready { self.derive(entry.device) }
        guard self.tasks.isOfDevices(below: self.devices.count) else {
            throw .unreadable("the tasks of a device, which is missing")
        }
        self.topics.beginSteps()
    }

    /// Ends every wake in flight as lost, even if its deadline has passed. The attempts do not count. Call this only if
    /// no worker still has a wake, such as when the only gateway of a store starts.
    package func loseEveryWake() {
        for number in 0..<self.devices.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            let push = self.devices[device].state.inFlight.map { InFlight.push($0) }
            let launches = (push.map { [$0] } ?? []) + (self.tasks[device]?.policy.inFlight.map { .task($0) } ?? [])
            guard !launches.isEmpty else { continue }
            for launch in launches { self.end(launch, device, launch.lost, takingBackAttempt: true) }
            self.settle(device)
        }
    }
}

extension StoreError {
    /// Returns an error for inconsistent stored records.
    static func unreadable(_ what: String) -> StoreError {
        StoreError(message: "The stored state does not hold together at \(what). Restore a backup.")
    }
}

extension DeviceEngine {
    /// Returns the device with this number in events, also if it was removed.
    package func find(number: UInt64) -> DeviceIndex? { self.devices.find(hash: number) }

    /// Returns the token and topic of a device, and true if it is registered.
    package func identity(_ device: DeviceIndex) -> (token: DeviceToken, topic: TopicIndex, isRegistered: Bool) {
        let record = self.devices[device]
        return (record.token.token, record.topic, record.isRegistered)
    }

    package func topic(of device: DeviceIndex) -> TopicIndex { self.devices[device].topic }

    /// Registers a token. A registered token is not changed.
    package func register(_ token: borrowing DeviceToken, topic name: ByteView) -> Admission {
        guard let device = self.find(token) else {
            if let refusal = self.refusalOfNewcomer(topic: name) { return .refused(refusal) }
            let device = self.insert(copy token, topic: self.topic(name))
            return .device(device)
        }
        let record = self.devices[device]
        let isSame = self.topics.isName(name, of: record.topic)
        guard !record.isRegistered else { return isSame ? .device(device) : .refused(.otherTopic) }
        // A wake launched before the removal is still counted in the old topic.
        guard isSame || self.wakesInFlight(device).isEmpty else { return .refused(.otherTopic) }
        if !isSame {
            if let refusal = self.refusalOfMove(topic: name) { return .refused(refusal) }
            let topic = self.topic(name)
            self.topics.countDevices(record.topic, -1)
            self.topics.countDevices(topic, 1)
            self.devices[device].topic = topic
        }
        self.devices[device].isRegistered = true
        // The answers are for pushes that the removal discarded.
        self.devices[device].forgetAnswers()
        // Discard conditions reported while the device was removed. Nothing is pending.
        _ = self.resetDevice(device)
        self.noteRegistration(device)
        return .device(device)
    }

    /// Removes a token. Pending pushes, requests and sessions are discarded, and wakes in flight continue without a
    /// retry.
    package func unregister(_ device: DeviceIndex) {
        self.settle(device)
        guard self.devices[device].isRegistered else { return }
        let pending = self.devices[device].state.pending
        let action = self.resetDevice(device)
        if let row = self.tasks[device], !row.eventIDs.isEmpty {
            row.forgetEvents()
            self.tasks.noteChange(device, row)
        }
        self.devices[device].isRegistered = false
        self.devices[device].registrationChangedAt = self.now
        self.count(self.devices[device].topic) { $0.registered -= 1 }
        self.remember(device, .removed, nil)
        self.noteDropped(action, pending, .unregistered, device)
        self.reconcile(device)
    }

    private func resetDevice(_ device: DeviceIndex) -> Removals {
        let (now, parameters) = (self.now, self.parameters(of: device))
        return self.change(device) { state, tasks in
            state.change(with: &tasks) { $0.unregistered(at: now, parameters) }
        }
    }

    /// Records pending launches that were dropped for `reason`.
    ///
    /// - `pending`: the push that was pending before.
    private func noteDropped(
        _ action: Removals,
        _ pending: PendingPush?,
        _ reason: DiscardReason,
        _ device: DeviceIndex
    ) {
        if let push = action.discardedPush {
            self.discard(push, reason, device, pending.map { self.waited(device, $0, isLaunched: false) })
        }
        for task in action.discarded { self.noteDropped(task, reason, device) }
    }

    /// Applies a device's report of its conditions.
    ///
    /// - Returns: all conditions of the device now.
    package func conditions(_ report: ConditionsReport, _ device: DeviceIndex) -> Conditions {
        self.settle(device)
        let before = self.devices[device].state
        let action = self.reported(report, device)
        self.remember(device, changed: before.conditions.changes(to: self.devices[device].state.conditions))
        self.noteDropped(action, before.pending, .forceQuit, device)
        for wake in action.ended {
            self.wakes.expired.append((self.noteTaskEnd(device, wake, .interrupted, .ended(wake.task)), .conditions))
        }
        self.settle(device)
        return self.devices[device].state.conditions
    }

    private func reported(_ report: ConditionsReport, _ device: DeviceIndex) -> Removals {
        let isUsed = self.devices[device].state.conditions.appState == .active
        // The task row records the use of a device, so a report that starts or ends a use needs the row.
        guard self.devices[device].hasTasks || isUsed || report.appState == .active else {
            return Removals(discardedPush: self.devices[device].state.conditionsReported(report))
        }
        let (now, parameters) = (self.now, self.parameters(of: device))
        return self.changeLanes(device) { $0.conditionsReported(report, at: now, parameters) }
    }

    func insert(_ token: DeviceToken, topic: TopicIndex) -> DeviceIndex {
        let device = self.devices.insert(DeviceRecord(token: token, topic: topic, registeredAt: self.now))
        self.topics.countDevices(topic, 1)
        self.count(topic) { $0.registered += 1 }
        self.remember(device, .registered, nil)
        self.devices.noteChange(device)
        return device
    }

    private func noteRegistration(_ device: DeviceIndex) {
        self.devices[device].registrationChangedAt = self.now
        self.count(self.devices[device].topic) { $0.registered += 1 }
        self.remember(device, .registered, nil)
        self.reconcile(device)
    }

    /// Returns the refusal of a new device in the topic with this name; nil if no limit is reached.
    func refusalOfNewcomer(topic name: ByteView) -> Refusal? {
        self.devices.count < self.configuration.devicesMax ? self.refusalOfMove(topic: name) : .tooManyDevices
    }

    /// Returns the refusal of an existing device that moves to the topic with this name; nil if no limit is reached.
    private func refusalOfMove(topic name: ByteView) -> Refusal? {
        guard let topic = self.topics.find(name) else {
            return self.topics.count < self.configuration.topicsMax ? nil : .tooManyTopics
        }
        return self.topics.deviceCount(topic) < self.configuration.devicesPerTopicMax ? nil : .tooManyDevicesOfTopic
    }
}
