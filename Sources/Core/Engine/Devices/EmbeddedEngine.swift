package import Policy
package import Wire

/// All devices in memory, stepped by one thread: states, due moments, queues of those that wait for a slot, books.
///
/// `DeviceState` decides, and `DeviceLanes`. The engine has no clock: whoever drives it says with `advance` what time
/// it is. No worker is known to it: whoever drives it says whether a slot is free, and claims devices that are ready
/// for one.
package final class EmbeddedEngine {
    /// Policy time: the moment of the current step.
    package internal(set) var now: Instant
    var configuration: EngineConfiguration
    let random: () -> (UInt64, UInt64)
    var devices: DeviceTable
    var topics: TopicTable
    /// What some devices have besides for their requests, sessions and habits.
    var tasks = TaskTable()
    /// Devices whose push waits for nothing but a slot.
    package var ready = ReadyQueues()
    /// Requests and sessions that came to wait for nothing but a slot and were not yet offered to a driver.
    var readyTasks = FIFOQueue<ReadyTask>()
    /// When devices have something due.
    var schedule = DueSchedule()
    var wakes = WakeLedger()
    /// The memory of pushes.
    var memory = ContentMemory()
    /// The memory of what requests and sessions are named and entitled, and of the ids of session events.
    var taskMemory = ContentMemory()
    var traces = TraceJoiner()
    /// What the history is to hear.
    var events: EventQueue
    /// What those are to hear who follow what happens.
    var watched = WatchedEvents()
    /// Wall clock minus policy time; nil when nobody follows what happens.
    var watchOffset: WallOffset?
    /// The present, as those hear of it who follow refusals, which may come without a step.
    var watchedAt: Instant
    /// How long launches were waited for, and wakes took.
    package var times = WakeTimes()
    /// The step of a shared store; nil for an engine that has its store alone.
    var shared: SharedStep?
    /// False while a gateway shares the store that cannot read memory pressure: reports of it are then left out.
    package var keepsMemoryPressure = true
    /// The tasks of the devices that have none; blank.
    var noTasks = BackgroundTasks()

    /// An engine without devices.
    ///
    /// - `now`: policy time at the start.
    /// - `historyKey`: the key of the history that its events go to.
    /// - `random`: 128 unpredictable bits at each call; wake ids are made of them.
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

    /// Makes the numbers by which events name devices, and by which they are found.
    package var historyKey: HashKey { self.events.key }
}

// MARK: - Time

extension EmbeddedEngine {
    /// Goes on to `now`, and ends and expires what is due by then.
    ///
    /// - `devicesMax`: the most devices looked at, so that a step is bounded.
    /// - Returns: whether everything that is due was looked at.
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

    /// Looks at devices that wait under a policy that has changed.
    ///
    /// - Returns: whether all were looked at.
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

    /// Brings what follows from a device's state up to date with a policy that has changed.
    func judge(_ device: DeviceIndex) {
        guard self.devices[device].hasTasks else { return self.derive(device) }
        let hasExcess = self.tasks[device]?.policy.hasExcess(self.parameters(of: device)) ?? false
        if hasExcess { self.settle(device) } else { self.derive(device) }
    }

    /// The next moment at which `advance` has something to do.
    package var nextDue: Instant? { self.schedule.first }

    /// Takes one wake that ended without its worker's doing, the first first: its slot is to be taken back.
    package func popExpiredWake() -> ExpiredWake? { self.wakes.popExpired() }

    /// Takes one wake whose deadline is near; its worker may have been warned of that deadline before.
    package func popExpiringWake() -> ExpiringWake? { self.wakes.popExpiring() }

    /// Whether a wake ended without its worker's doing, one's deadline is near, or something came to wait for a slot,
    /// that was not taken yet.
    package var hasNews: Bool {
        self.wakes.hasExpired || self.wakes.hasExpiring || self.ready.hasNewcomer || !self.readyTasks.isEmpty
    }

    /// Goes on with another configuration, at once for whatever happens from now on.
    ///
    /// The moments at which waiting devices launch follow in the next calls of `advance`, a bounded number of devices
    /// in each; a device that is launched, asked about or pushed to before is looked at then. Wakes in flight keep
    /// their deadlines. What is past a bound that has become tighter stays.
    package func reconfigure(_ configuration: EngineConfiguration) {
        self.configuration = configuration
        if self.topics.reconfigure(configuration) { self.schedule.policyChanged() }
        self.sharedPolicyChanged()
    }
}

// MARK: - Questions

extension EmbeddedEngine {
    /// The books of all topics together.
    package var totals: Books { self.topics.totals }

    /// The memory of all pushes that wait or are in flight.
    package var contentBytes: Int { self.memory.bytes }

    /// The bytes of pushes that may wait or be in flight.
    package var contentBytesMax: Int { self.configuration.pendingBytesMax }

    /// The memory of what requests and sessions are named and entitled, and of the ids of session events.
    package var taskBytes: Int { self.taskMemory.bytes }

    /// The bytes that requests and sessions may have for that.
    package var taskBytesMax: Int { self.configuration.taskBytesMax }

    /// The identifiers that the workers of each topic may submit.
    package var permittedTasks: PermittedTasks { self.configuration.permittedTasks }

    /// How many identifiers and sessions are kept by name for a device.
    package func taskNameCount(_ device: DeviceIndex) -> Int { self.tasks.nameCount(device) }

    /// How many wakes are known by their ids, in flight or ended, and how many devices have ended ones.
    package var wakesKnown: (ids: Int, devicesWithEnded: Int) { self.wakes.known }

    /// Something happened since `takeEvents` was last called.
    package var hasEvents: Bool { !self.events.isEmpty }

    /// Appends to `events` what happened since the last call, in its order.
    package func takeEvents(into events: inout [HistoryEvent]) { self.events.take(into: &events) }
}

/// What one step of the engine changed.
package struct EngineStep: Sendable {
    /// Policy time at the step.
    package let now: Instant
    /// The devices whose state changed, each once.
    package let devices: [DeviceIndex]
    /// The topics whose counters changed, each once.
    package let topics: [TopicIndex]

    package var isEmpty: Bool { self.devices.isEmpty && self.topics.isEmpty }
}

// MARK: - Keeping

extension EmbeddedEngine {
    /// Something changed since `takeStep` was last called. Progress that is told is a change a little later, so that
    /// reports cost a store no more the more there are.
    package var hasChanges: Bool {
        self.devices.hasChanges || self.tasks.hasChanges(at: self.now) || self.topics.hasChanges
    }

    /// When progress that was told is a change; nil when there is none that is not one yet.
    package var progressDue: Instant? { self.tasks.progressDue }

    /// Progress that was told is a change from here on: for whoever steps no more.
    package func hurryProgress() { self.tasks.hurryProgress() }

    /// Takes the changes since the last call: what a store has to make durable.
    package func takeStep() -> EngineStep {
        self.tasks.progressPassed(self.now)
        return EngineStep(now: self.now, devices: self.devices.takeChanges(), topics: self.topics.takeChanges())
    }

    /// Takes the changes since the last call as records, in `batch`: each device and topic as it is now.
    package func takeStep(into batch: inout RecordBatch) {
        self.tasks.progressPassed(self.now)
        self.topics.takeChanges(into: &batch)
        self.devices.takeChanges(into: &batch, at: self.now)
        self.tasks.takeChanges(into: &batch)
    }
}

// MARK: - Restoring

extension EmbeddedEngine {
    /// Takes one record of a topic or a device; others are not the engine's. Only before its first step.
    ///
    /// - Throws: `StoreError` when the record is not one that `takeStep` wrote.
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

    /// The names of the topics that records have told of, by their numbers; empty after `finishRestoring`.
    package var restoredTopics: [String] { self.topics.restoredNames }

    /// Every record has been handed over: brings up to date what follows from them, and goes on at `now`. Wakes that
    /// were in flight still are: records do not tell whether their workers are there.
    ///
    /// - Throws: `StoreError` when records are missing.
    package func finishRestoring(now: Instant) throws(StoreError) {
        self.now = now
        try self.topics.finishRestoring(self.configuration)
        self.makeRoomForTopics()
        guard self.devices.finishPlacing() else { throw .unreadable("a device, which is missing") }
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
            guard self.wakes.restore(device, inFlight: self.wakesInFlight(device), in: self.devices) else {
                throw .unreadable("device \(number): it has the wake of another")
            }
            let isAtRest = record.state.pending == nil && record.state.inFlight == nil
            if !isAtRest || self.devices[device].hasTasks { self.derive(device) }
        }
        guard self.tasks.isOfDevices(below: self.devices.count) else {
            throw .unreadable("the tasks of a device, which is missing")
        }
        self.topics.beginSteps()
    }

    /// Loses every wake in flight and takes its attempt back: for whoever knows that no worker holds one, as the only
    /// user of a store does that has just started on it. A deadline that has passed does not go before that.
    package func loseEveryWake() {
        for number in 0..<self.devices.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            let isPushInFlight = self.devices[device].state.inFlight != nil
            let tasks = self.tasks[device]?.policy.inFlight ?? []
            guard isPushInFlight || !tasks.isEmpty else { continue }
            if isPushInFlight { self.lose(.push, device, takingBackAttempt: true) }
            for wake in tasks { self.lose(.task(wake), device, takingBackAttempt: true) }
            self.settle(device)
        }
    }
}

extension StoreError {
    /// What was found in records does not hold together.
    static func unreadable(_ what: String) -> StoreError {
        StoreError(message: "The stored state does not hold together at \(what). Restore a backup.")
    }
}

extension EmbeddedEngine {
    /// The device with this token, removed ones included.
    package func find(_ token: borrowing DeviceToken) -> DeviceIndex? {
        let number = HistoryEvent.device(of: token, self.events.key)
        guard let device = self.devices.find(token, hash: number) else { return nil }
        self.events.found(device, number: number)
        return device
    }

    /// The device that events know by this number, removed ones included.
    package func find(number: UInt64) -> DeviceIndex? { self.devices.find(hash: number) }

    /// The device's token, its topic, and whether it is registered.
    package func identity(_ device: DeviceIndex) -> (token: DeviceToken, topic: TopicIndex, isRegistered: Bool) {
        let record = self.devices[device]
        return (record.token.token, record.topic, record.isRegistered)
    }

    /// The device's topic.
    package func topic(of device: DeviceIndex) -> TopicIndex { self.devices[device].topic }

    /// Registers a token, or leaves a registered one as it is.
    package func register(_ token: borrowing DeviceToken, topic name: ByteView) -> Admission {
        guard let device = self.find(token) else {
            if let refusal = self.refusalOfNewcomer(topic: name) { return .refused(refusal) }
            let device = self.insert(copy token, topic: self.topic(name))
            return .device(device)
        }
        let record = self.devices[device]
        let isSame = self.topics.isName(name, of: record.topic)
        guard !record.isRegistered else { return isSame ? .device(device) : .refused(.otherTopic) }
        // A wake of the former registration is still counted under its topic.
        guard isSame || self.wakesInFlight(device).isEmpty else { return .refused(.otherTopic) }
        if !isSame {
            if let refusal = self.refusalOfMove(topic: name) { return .refused(refusal) }
            let topic = self.topic(name)
            self.topics.countDevices(record.topic, -1)
            self.topics.countDevices(topic, 1)
            self.devices[device].topic = topic
        }
        self.devices[device].isRegistered = true
        // The removal discarded the pushes that these answers are about.
        self.devices[device].forgetAnswers()
        // The device starts afresh, whatever was reported of it while it was removed; nothing is pending.
        _ = self.startAfresh(device)
        self.noteRegistration(device)
        return .device(device)
    }

    /// Removes a token: what is pending or waits is discarded, wakes in flight go on without a retry.
    package func unregister(_ device: DeviceIndex) {
        self.settle(device)
        guard self.devices[device].isRegistered else { return }
        let action = self.startAfresh(device)
        if let row = self.tasks[device], !row.eventIDs.isEmpty {
            row.forgetEvents()
            self.tasks.noteChange(device, row)
        }
        self.devices[device].isRegistered = false
        self.devices[device].registrationChangedAt = self.now
        self.count(self.devices[device].topic) { $0.registered -= 1 }
        self.remember(device, .removed, nil)
        self.noteDropped(action, .unregistered, device)
        self.reconcile(device)
    }

    private func startAfresh(_ device: DeviceIndex) -> DroppedAction {
        let (now, parameters) = (self.now, self.parameters(of: device))
        return self.change(device) { state, tasks in
            state.change(with: &tasks) { $0.unregistered(at: now, parameters) }
        }
    }

    /// Notes what waited and was dropped for a reason.
    private func noteDropped(_ action: DroppedAction, _ reason: DiscardReason, _ device: DeviceIndex) {
        if let push = action.discardedPush { self.discard(push, reason, device) }
        for task in action.discarded { self.noteDropped(task, reason, device) }
    }

    /// The device reported conditions.
    ///
    /// - Returns: all its conditions now.
    package func conditions(_ report: ConditionsReport, _ device: DeviceIndex) -> Conditions {
        var report = report
        if !self.keepsMemoryPressure { report.memoryPressure = nil }
        self.settle(device)
        let action = self.reported(report, device)
        self.remember(device, .conditions, nil)
        self.noteDropped(action, .forceQuit, device)
        for wake in action.ended {
            self.wakes.expired(self.noteTaskEnd(device, wake, .interrupted, .ended(wake.task)), .conditions)
        }
        self.settle(device)
        return self.devices[device].state.conditions
    }

    private func reported(_ report: ConditionsReport, _ device: DeviceIndex) -> DroppedAction {
        let isUsed = self.devices[device].state.conditions.appState == .active
        // A use is kept beside the device's state.
        guard self.devices[device].hasTasks || isUsed || report.appState == .active else {
            return DroppedAction(discardedPush: self.devices[device].state.conditionsReported(report))
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

    /// Why no device may be added to the topic of this name; nil while there is room.
    func refusalOfNewcomer(topic name: ByteView) -> Refusal? {
        self.devices.count < self.configuration.devicesMax ? self.refusalOfMove(topic: name) : .tooManyDevices
    }

    /// Why no device that is there may be moved to the topic of this name; nil while there is room.
    private func refusalOfMove(topic name: ByteView) -> Refusal? {
        guard let topic = self.topics.find(name) else {
            return self.topics.count < self.configuration.topicsMax ? nil : .tooManyTopics
        }
        return self.topics.deviceCount(topic) < self.configuration.devicesPerTopicMax ? nil : .tooManyDevicesOfTopic
    }
}
