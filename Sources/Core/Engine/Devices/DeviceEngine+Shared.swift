package import Policy
package import Wire

/// Support for a store that several gateways share. The engine loads devices for one step and then drops them.
///
/// The calls of a step, in order: `take` for each row, `beginSharedStep`, `advance` and the operations on the devices,
/// `takeSharedChanges`, `takeSharedCounts`, `takeEvents`, and `unloadAll`. Derived state is loaded as stored, not
/// recomputed. Each step then adds exactly the difference to the counters.
extension DeviceEngine {
    /// Switches the engine to a shared store. Call this once, before the first topic or device.
    package func useSharedStore() {
        precondition(self.topics.count == 0 && self.devices.count == 0, "the engine has a store of its own")
        self.shared = SharedStep(configuration: self.configuration)
        self.configuration.topicsMax = 0
    }

    /// True if the engine uses a shared store.
    package var isShared: Bool { self.shared != nil }

    /// The current step of the shared store.
    var step: SharedStep {
        guard let shared = self.shared else { preconditionFailure("the engine has a store of its own") }
        return shared
    }

    /// Adds the topics that the store has numbered and that are new to the engine.
    ///
    /// The engine does not create topics on its own: the caller creates a topic in the store first. A push,
    /// registration or subscription that names an unknown topic is refused with `tooManyTopics` or `topicsMax`.
    ///
    /// - Parameter names: every topic, by number.
    /// - Throws: `StoreError` if a known topic has another name.
    package func appendTopics(_ names: [String]) throws(StoreError) {
        precondition(self.isShared, "an engine with a store of its own makes its topics")
        for (number, name) in names.enumerated() {
            if number < self.topics.count {
                guard self.topics.name(TopicIndex(rawValue: UInt32(number))) == name else {
                    throw .unreadable("topic \(number), which has another name than before")
                }
                continue
            }
            guard name.withByteView({ self.topics.find($0) }) == nil else {
                throw .unreadable("topic \(number), which is there twice")
            }
            _ = name.withByteView { self.topics.insert($0, self.step.configuration) }
        }
        self.makeRoomForTopics()
        self.configuration.topicsMax = self.topics.count
        // A step does not store the existence of topics.
        _ = self.topics.takeChanges()
    }

    /// Applies a changed configuration.
    func applySharedConfiguration() {
        guard let shared = self.shared else { return }
        shared.configuration = self.configuration
        shared.forgetDigests()
        self.configuration.topicsMax = self.topics.count
    }

    /// Sets the starting counters: recent sums over all gateways. Until the next call, each step starts from these
    /// counters and memory totals. Call this while no rows are loaded.
    ///
    /// - `byTopic`: the new counters of topics; other topics keep their counters.
    package func setBaseCounters(_ total: ActivityCounters, byTopic: [TopicIndex: ActivityCounters]) {
        precondition(self.devices.count == 0, "a step has its rows")
        self.step.totals = total
        for (topic, counters) in byTopic where Int(topic.rawValue) < self.topics.count {
            self.step[topic] = counters
            self.resetCounts(topic)
        }
        self.resetTotals()
    }

    /// Resets the topic's counters to their values before the step.
    func resetCounts(_ topic: TopicIndex) {
        let counters = self.step[topic]
        self.topics.set(topic, to: counters)
        self.memory.set(topic, to: Int(counters.gauges.contentBytes))
        self.taskMemory.set(topic, to: Int(counters.gauges.taskBytes))
    }

    /// Resets the counters of all topics together to their values before the step.
    func resetTotals() {
        let totals = self.step.totals
        self.topics.set(to: totals)
        self.memory.set(to: Int(totals.gauges.contentBytes))
        self.taskMemory.set(to: Int(totals.gauges.taskBytes))
    }
}

// MARK: - Steps

extension DeviceEngine {
    /// The number of rows loaded or created in this step.
    package var takenCount: Int { self.devices.count }

    /// Loads a row. If lanes of the device wait for a slot, `Dispatcher.flow` launches them in this step.
    ///
    /// - Throws: `StoreError` if the row is inconsistent or its device is already loaded; `unknownTopic` if the row may
    ///   be accepted after `appendTopics`. The engine is then unchanged.
    package func take(_ row: SharedDevice) throws(StoreError) -> DeviceIndex {
        let step = self.step
        precondition(step.rows.count == self.devices.count, "rows are taken before the step begins")
        guard let derived = row.derived.withByteView({ DerivedState(stored: $0) }) else {
            throw .unreadable("what follows from a device")
        }
        guard var record = row.record.withByteView({ DeviceRecord(stored: $0) }) else {
            throw .unreadable("a device")
        }
        let (hash, readyCount) = (HistoryEvent.device(of: row.token, self.events.key), step.readyTasks.count)
        let device = DeviceIndex(rawValue: UInt32(self.devices.count))
        let tasks: TaskRow?
        let inFlight: [WakeID]
        do throws(StoreError) {
            guard Int(record.topic.rawValue) < self.topics.count else { throw .unknownTopic }
            let isValid =
                record.token.matches(row.token) && derived.isConsistent(with: record)
                && (derived.tasks == nil) == row.tasks.isEmpty && self.devices.find(row.token, hash: hash) == nil
            guard isValid else { throw .unreadable("a device, which is there twice or is another one's") }
            tasks = try Self.tasks(row.tasks, derived.tasks, device, record.topic, step)
            inFlight = record.wakesInFlight(tasks)
            guard self.wakes.restore(device, record, inFlight: inFlight) else {
                throw .unreadable("a device, which has the wake of another")
            }
        } catch {
            record.deallocate()
            step.readyTasks.removeLast(step.readyTasks.count - readyCount)
            throw error
        }
        record.isPending = derived.isPending
        record.isInFlight = derived.isInFlight
        record.held = derived.held
        record.readySince = derived.readySince
        record.rateWindowStart = derived.rateWindowStart
        record.rateWindowCount = derived.rateWindowCount
        record.hasTasks = derived.tasks != nil
        let (topic, isPending) = (record.topic, record.isPending)
        _ = self.devices.insert(record, hash: hash)
        if let tasks { self.tasks.insert(tasks, device) }
        step.append(topic, derived, inFlight: inFlight, ended: self.devices[device].endedWakes)
        self.schedule.set(device, to: derived.due)
        if derived.isReady { step.ready.append(device) }
        if isPending || derived.tasks != nil, derived.policy != step.digest(topic, self.parameters(topic)) {
            self.schedule.policyChanged()
        }
        return device
    }

    /// Decodes the tasks of a device, if it has any, and appends those that wait for a slot to the step.
    private static func tasks(
        _ bytes: [UInt8],
        _ derived: DerivedState.Tasks?,
        _ device: DeviceIndex,
        _ topic: TopicIndex,
        _ step: SharedStep
    ) throws(StoreError) -> TaskRow? {
        guard let derived else { return nil }
        guard let row = bytes.withByteView({ TaskRow(stored: $0) }) else { throw .unreadable("the tasks of a device") }
        row.isKept = true
        row.counted = derived.counted
        row.ready = derived.ready
        for ready in derived.ready {
            guard let task = row.policy.waiting.first(where: { $0.arrival == ready.arrival }) else {
                throw .unreadable("the tasks of a device that wait for a slot")
            }
            step.readyTasks.append(
                ReadyTask(
                    device: device,
                    topic: topic,
                    target: row.target(task),
                    order: ReadyOrder(since: ready.since, lastUse: row.policy.usage.last),
                    arrival: ready.arrival
                )
            )
        }
        return row
    }

    /// Starts the step after all rows are loaded. All events of the step happen at `now`. It may be earlier than the
    /// time of a previous step, but not earlier than the time at which any loaded row was written.
    ///
    /// - `deviceCount`: the recent number of devices in the store, to be compared with `devicesMax`.
    package func beginSharedStep(now: Instant, deviceCount: Int) {
        let step = self.step
        self.now = now
        // The store's count includes the loaded devices.
        self.configuration.devicesMax = step.configuration.devicesMax - deviceCount + self.devices.count
        // Ties are resolved by the order in which rows were loaded.
        let waits = step.ready.enumerated().map { place, device in
            let order = ReadyOrder(since: self.readySince(device), lastUse: self.lastUse(device))
            return (place: place, device: device, order: order)
        }
        for entry in waits.sorted(by: { ($0.order, $0.place) < ($1.order, $1.place) }) {
            let order = entry.order
            self.ready.append(entry.device, since: order.since, lastUse: order.lastUse, in: &self.devices)
        }
        let tasks = step.readyTasks.enumerated().sorted {
            ($0.element.order, $0.offset) < ($1.element.order, $1.offset)
        }
        for entry in tasks { self.readyTasks.append(entry.element) }
        step.ready.removeAll(keepingCapacity: true)
        step.readyTasks.removeAll(keepingCapacity: true)
    }

    /// Returns the time since which a device waits for a slot, as stored.
    func readySince(_ device: DeviceIndex) -> Instant {
        self.now - self.devices[device].readyMilliseconds(at: self.now)
    }

    /// Removes every device and the counts since `show`. Keeps topics, policies, `times`, events not yet returned by
    /// `takeEvents`, and the memory for the next step.
    package func unloadAll() {
        let step = self.step
        self.takeCountedTopics { _ in }
        self.resetTotals()
        for number in 0..<self.devices.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            self.wakes.remove(self.devices[device], inFlight: self.wakesInFlight(device))
            if self.devices[device].isReady { self.ready.removeAll(self.devices[device].topic) }
        }
        self.ready.removeNewlyReady()
        self.readyTasks.removeAll()
        self.wakes.removeAll()
        self.schedule.removeAll()
        self.tasks.removeAll()
        self.devices.removeAll()
        self.events.forgetDevices()
        step.removeRows()
    }

    /// Ends wakes as lost because their gateway is dead. The wakes do not count as attempts. They end as lost even if
    /// their deadline has passed. Call this before `advance`. Ids of wakes that are not in flight are ignored.
    package func endAsLost(_ wakes: [WakeID]) {
        let lost = Set(wakes)
        for number in 0..<self.devices.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            let inFlight = self.wakesInFlight(device).filter { lost.contains($0) }
            guard !inFlight.isEmpty else { continue }
            for wake in inFlight {
                guard let launch = self.inFlight(wake, device) else { continue }
                self.end(launch, device, launch.lost, takingBackAttempt: true)
            }
            self.settle(device)
        }
    }
}

extension StoreError {
    /// The damage of a row whose topic is not in the database.
    package static let unknownTopic = StoreError(
        message: "The table of topics lacks the topic of a device. Restore it from a backup."
    )
}

extension DerivedState {
    /// Returns true if the derived state is consistent with this record.
    fileprivate func isConsistent(with record: DeviceRecord) -> Bool {
        let isInFlight = record.state.inFlight.map { $0.push.handle != .none } ?? false
        guard self.isPending == (record.state.pending != nil), self.isInFlight == isInFlight else { return false }
        return self.isPending || (!self.isReady && self.held == nil)
    }
}

/// The durable results of a step of a shared store.
extension DeviceEngine {
    /// Returns the device changes of this step, in token order. Call this once per step.
    ///
    /// A wake that launched and ended within the step is in both `launched` and `ended`, so that a late result finds
    /// its device.
    package func takeSharedChanges() -> [SharedDeviceChange] {
        // Rows are evicted at the end of the step, so delayed progress must be stored now.
        self.tasks.flushProgress()
        for device in self.tasks.takeChanges() { self.devices.noteChange(device) }
        var changed: [(device: DeviceIndex, derived: DerivedState)] = []
        changed.reserveCapacity(self.devices.count)
        for number in 0..<self.devices.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            let derived = self.derived(device)
            // Derived state may change without a noted change of the record.
            let isChanged = self.step.row(device).map { !$0.derived.isSame(as: derived) } ?? true
            guard isChanged || self.devices[device].isChanged else { continue }
            changed.append((device, derived))
        }
        _ = self.devices.takeChanges()
        // Rows were loaded in token order, and new devices follow them.
        if zip(changed, changed.dropFirst()).contains(where: { self.isBefore($1.device, $0.device) }) {
            changed.sort { self.isBefore($0.device, $1.device) }
        }
        return changed.map { self.change(of: $0.device, $0.derived) }
    }

    /// Returns true if the token of `device` sorts before that of `other`.
    private func isBefore(_ device: DeviceIndex, _ other: DeviceIndex) -> Bool {
        // Whole tokens are copied only if their beginnings are equal.
        let (beginning, others) = (self.devices[device].token.beginning, self.devices[other].token.beginning)
        guard beginning == others else { return beginning < others }
        return self.devices[device].token.token.isBefore(self.devices[other].token.token)
    }

    /// Returns a device's row for the migration from a local store to a shared one.
    package func sharedRow(_ device: DeviceIndex) -> SharedDeviceChange {
        var buffer = ByteBuffer()
        return self.change(of: device, self.derived(device), nil, &buffer)
    }

    private func change(of device: DeviceIndex, _ derived: DerivedState) -> SharedDeviceChange {
        self.change(of: device, derived, self.step, &self.step.buffer)
    }

    /// - `step`: nil if no rows were loaded.
    private func change(
        of device: DeviceIndex,
        _ derived: DerivedState,
        _ step: SharedStep?,
        _ buffer: inout ByteBuffer
    ) -> SharedDeviceChange {
        let before = step?.row(device)
        let wakes = self.wakeChanges(device, before, step)
        let isSameReady = derived.isSameReady(as: before?.derived ?? DerivedState())
        return SharedDeviceChange(
            device: self.stored(device, derived, &buffer),
            topic: self.devices[device].topic,
            isNew: before == nil,
            due: derived.due == before?.derived.due ? .unchanged : .at(derived.due),
            ready: isSameReady ? nil : self.readyLanes(device),
            launched: wakes.launched,
            ended: wakes.ended
        )
    }

    private func stored(
        _ device: DeviceIndex,
        _ derived: DerivedState,
        _ buffer: inout ByteBuffer
    ) -> SharedDevice {
        func bytes(_ write: (inout ByteBuffer) -> Void) -> [UInt8] {
            buffer.removeAll()
            write(&buffer)
            return buffer.view.array
        }
        return SharedDevice(
            token: self.devices[device].token.token,
            record: bytes { self.devices[device].store(to: &$0, at: self.now) },
            tasks: self.tasks[device].map { row in bytes { row.store(to: &$0) } } ?? [],
            derived: bytes { derived.store(to: &$0) }
        )
    }

    /// Returns the state derived from the device's records, as of now.
    private func derived(_ device: DeviceIndex) -> DerivedState {
        let record = self.devices[device]
        var derived = DerivedState()
        derived.isPending = record.isPending
        derived.isInFlight = record.isInFlight
        derived.isReady = record.isReady
        derived.held = record.held
        derived.readySince = record.isReady ? record.readySince : 0
        derived.rateWindowStart = record.rateWindowStart
        derived.rateWindowCount = record.rateWindowCount
        derived.due = self.schedule[device]
        if record.hasTasks, let row = self.tasks[device] {
            derived.tasks = DerivedState.Tasks(counted: row.counted, ready: row.ready)
        }
        if derived.isPending || derived.tasks != nil {
            let parameters = self.parameters(record.topic)
            derived.policy = self.shared?.digest(record.topic, parameters) ?? parameters.digest
        }
        return derived
    }

    private func readyLanes(_ device: DeviceIndex) -> [SharedDeviceChange.ReadyLane] {
        var lanes: [SharedDeviceChange.ReadyLane] = []
        if self.devices[device].isReady {
            lanes.append(SharedDeviceChange.ReadyLane(target: .push, since: self.readySince(device)))
        }
        guard let row = self.tasks[device] else { return lanes }
        for ready in row.ready {
            guard let task = row.policy.waiting.first(where: { $0.arrival == ready.arrival }) else { continue }
            lanes.append(SharedDeviceChange.ReadyLane(target: row.target(task), since: ready.since))
        }
        return lanes
    }

    private func wakeChanges(
        _ device: DeviceIndex,
        _ before: SharedStep.Row?,
        _ step: SharedStep?
    ) -> (launched: [(wake: WakeID, deadline: Instant)], ended: [WakeID]) {
        let record = self.devices[device]
        if record.state.inFlight == nil, !record.hasTasks, record.endedWakes == nil,
            before?.inFlightCount ?? 0 == 0
        {
            return ([], [])
        }
        let inFlight = before.flatMap { step?.inFlight($0) } ?? []
        let endedBefore = before.flatMap { step?.ended($0) } ?? []
        let inFlightNow = self.wakesInFlight(device)
        var launched: [(wake: WakeID, deadline: Instant)] = []
        for wake in inFlightNow where !inFlight.contains(wake) {
            launched.append((wake, self.inFlight(wake, device)?.deadline ?? self.now))
        }
        var ended = inFlight.filter { !inFlightNow.contains($0) }
        for wake in record.endedWakes?.elements ?? []
        where !endedBefore.contains(wake.id) && !inFlight.contains(wake.id) {
            launched.append((wake.id, wake.at))
            ended.append(wake.id)
        }
        return (launched, Array(ended))
    }
}

// MARK: - Counts

extension DeviceEngine {
    /// Returns the changes of this step to the counters of topics, by topic number. Decreases are negative. A second
    /// call returns nothing.
    package func takeSharedCounts() -> [(topic: TopicIndex, added: ActivityCounters)] {
        var counts: [(topic: TopicIndex, added: ActivityCounters)] = []
        self.takeCountedTopics { topic in
            let before = self.step[topic]
            var added = self.topics.counters(topic) - before
            added.gauges.devices = Int64(self.topics.deviceCount(topic)) - before.gauges.devices
            added.gauges.contentBytes = Int64(self.memory.bytes(topic)) - before.gauges.contentBytes
            added.gauges.taskBytes = Int64(self.taskMemory.bytes(topic)) - before.gauges.taskBytes
            if added != ActivityCounters() { counts.append((topic, added)) }
        }
        self.resetTotals()
        return counts.sorted { $0.topic.rawValue < $1.topic.rawValue }
    }

    /// Calls `body` with each topic whose counters may have changed, then resets that topic to its state before the
    /// step.
    func takeCountedTopics(_ body: (TopicIndex) -> Void) {
        var topics = self.topics.takeChanges()
        // A topic that a device left is not necessarily noted as changed.
        for (number, row) in self.step.rows.enumerated() where number < self.devices.count {
            let isSame = self.devices[DeviceIndex(rawValue: UInt32(number))].topic == row.topic
            if !isSame, !topics.contains(row.topic) { topics.append(row.topic) }
        }
        for topic in topics {
            body(topic)
            self.resetCounts(topic)
        }
    }
}
