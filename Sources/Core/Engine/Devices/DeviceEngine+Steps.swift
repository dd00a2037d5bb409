package import Policy
import Wire

extension DeviceEngine {
    /// Ends the wakes and drops the pushes of one device that are due, then updates all state derived from the device.
    func settle(_ device: DeviceIndex) {
        let (now, parameters) = (self.now, self.parameters(of: device))
        while true {
            let record = self.devices[device]
            switch self.change(device, { $0.timePassed(now, parameters, with: &$1) }) {
            case .nothing:
                self.reconcile(device)
                return
            case .pushExpired(let action):
                let wake = record.wake
                self.noteEnd(device, record, .expired, action)
                self.wakes.expired.append((wake, .deadline))
            case .taskExpired(let wake, let action):
                let ended = self.noteTaskEnd(device, wake, .expired, action)
                self.wakes.expired.append((ended, wake.task.kind == .continued ? .progress : .deadline))
            case .taskEndedByPressure(let wake, let outcome, let action):
                self.wakes.expired.append((self.noteTaskEnd(device, wake, outcome, action), .pressure))
            case .pendingExpired(let push):
                let waited = record.state.pending.map { self.waited(device, $0, isLaunched: false) }
                self.discard(push, .expired, device, waited)
            }
        }
    }

    /// Applies all due events of one device, even if the current step would reach them later. The caller makes the
    /// launches that then wait for a slot.
    ///
    /// - Returns: true if anything was due.
    package func catchUp(_ device: DeviceIndex) -> Bool {
        let isDue = self.schedule[device].map { $0 <= self.now } ?? false
        if isDue {
            self.warnIfDue(device)
            // Possibly only a warning was due.
            if let moment = self.schedule[device], moment <= self.now {
                self.schedule.begin(moment)
                self.settle(device)
                self.schedule.end()
                return true
            }
        }
        // The derived state may still be that of an earlier policy.
        let record = self.devices[device]
        guard self.schedule.isJudging, record.state.pending != nil || record.hasTasks else { return isDue }
        self.judge(device)
        return true
    }

    /// Updates all state derived from the device, and notes the change.
    func reconcile(_ device: DeviceIndex) {
        self.derive(device)
        self.devices.noteChange(device)
    }

    /// Updates gauges, queues and the due index from the policy's state of the device.
    func derive(_ device: DeviceIndex) {
        guard !self.devices[device].hasTasks else { return self.deriveLanes(device) }
        let state = self.devices[device].state
        let parameters = self.parameters(self.devices[device].topic)
        let isReady = state.isLaunchable(self.now, parameters)
        self.derivePush(device, state, parameters, isReady: isReady)
        // `claim` launches a device that waits for a slot, so only the expiry of its push depends on time.
        let next = isReady ? state.pending?.expiry : state.nextMoment(parameters)
        self.schedule.set(device, to: self.warning(device, state, parameters, before: next))
    }

    /// Updates gauges and queue from the state of the device's push.
    ///
    /// - `isReady`: true if the pending push waits only for a slot.
    @inline(__always)
    func derivePush(_ device: DeviceIndex, _ state: DeviceState, _ parameters: Parameters, isReady: Bool) {
        if isReady != self.devices[device].isReady {
            if isReady {
                let moment = self.readyMoment(self.readyFrom(device, state, parameters))
                self.ready.append(device, since: moment, lastUse: self.lastUse(device), in: &self.devices)
            } else {
                self.ready.remove(device, in: &self.devices)
            }
        }
        var held: Hold?
        if let pending = state.pending {
            held = state.hold(pending.priority, parameters) ?? (isReady ? .worker : nil)
            self.devices.noteWaiting(device, since: pending.firstReceivedAt)
        }
        let isPending = state.pending != nil
        let isInFlight = state.inFlight.map { $0.push.handle != .none } ?? false
        let before = (
            held: self.devices[device].held, isPending: self.devices[device].isPending,
            isInFlight: self.devices[device].isInFlight
        )
        if held != before.held || isPending != before.isPending || isInFlight != before.isInFlight {
            self.count(self.devices[device].topic) { counters in
                if let before = before.held { counters.held[before] -= 1 }
                if let held { counters.held[held] += 1 }
                counters.pending += (isPending ? 1 : 0) - (before.isPending ? 1 : 0)
                counters.inFlight += (isInFlight ? 1 : 0) - (before.isInFlight ? 1 : 0)
            }
            self.devices[device].held = held
            self.devices[device].isPending = isPending
            self.devices[device].isInFlight = isInFlight
            if held != before.held { self.noteHold(device, before.held, wasPending: before.isPending) }
        }
    }

    /// Returns the time at which a push or task becomes ready: the due time of the event that is being applied, or now
    /// if there is none. During a restart, the time is `restored`.
    @inline(__always)
    private func readyMoment(_ restored: @autoclosure () -> Instant) -> Instant {
        guard let moment = self.schedule.momentBeingDone else { return self.now }
        return moment == .distantPast ? min(restored(), self.now) : moment
    }

    /// Returns the time since which a pending push has waited only for a slot, computed from its device's stored state.
    func readyFrom(_ device: DeviceIndex, _ state: DeviceState, _ parameters: Parameters) -> Instant {
        guard let push = state.pending else { return self.now }
        let record = self.devices[device]
        let spaced = max(push.firstReceivedAt, state.eligibleAt(push.priority, parameters))
        return max(spaced, record.wait?.changedAt ?? .distantPast, record.lastEnd)
    }

    /// - `waited`: nil for a push that was in flight.
    func discard(_ push: PushHandle, _ reason: DiscardReason, _ device: DeviceIndex, _ waited: Waited? = nil) {
        self.count(self.devices[device].topic) { $0.discarded[reason] += 1 }
        let content = PushContent(push)
        self.remember(device, .discard(.push, reason), content?.apnsID, related: waited?.stored)
        if let content { self.memory.letGo(content, self.devices[device].topic) }
    }

    /// Records an event for the history and for watchers.
    ///
    /// - `name`: the identifier of a task, or the name of a session; nil for other events.
    func remember(
        _ device: DeviceIndex,
        _ kind: HistoryEvent.Kind,
        _ apnsID: APNsID? = nil,
        name: String? = nil,
        related: APNsID? = nil,
        terms: PushTerms? = nil,
        payloadBytes: Int = 0,
        wake: WakeID? = nil
    ) {
        let event = HistoryEvent(
            device: 0,
            at: self.now,
            kind: kind,
            apnsID: apnsID,
            related: related,
            terms: terms,
            payloadBytes: payloadBytes
        )
        self.events.append(event, of: device, name: name, in: self.devices)
        guard let offset = self.watchOffset else { return }
        self.watch(device, kind, apnsID, related: related, wake: wake, name: name, offset)
    }

    /// Records the conditions that a report changed.
    func remember(_ device: DeviceIndex, changed: ConditionsReport) {
        let event = HistoryEvent(device: 0, at: self.now, kind: .conditions, changed: changed)
        self.events.append(event, of: device, in: self.devices)
        if let offset = self.watchOffset { self.watch(device, .conditions, nil, changed: changed, offset) }
    }

    package func parameters(_ topic: TopicIndex) -> Parameters { self.topics.parameters(topic) }

    func count(_ topic: TopicIndex, _ change: (inout ActivityCounters) -> Void) { self.topics.count(topic, change) }
}

// MARK: - Storing

extension DeviceEngine {
    /// True if there are changes that `takeStep` has not returned. Reported progress becomes a change after a delay, so
    /// that frequent reports do not cause more writes.
    package var hasChanges: Bool {
        self.devices.hasChanges || self.tasks.hasChanges(at: self.now) || self.topics.hasChanges
    }

    /// The time at which reported progress becomes a change; nil if none is delayed.
    package var progressDue: Instant? { self.tasks.progressDue }

    /// Makes delayed progress a change now. Called before the last step.
    package func flushProgress() { self.tasks.flushProgress() }

    /// Returns the devices and the topics that changed since the last call, each once. Used without a store.
    package func takeStep() -> (devices: [DeviceIndex], topics: [TopicIndex]) {
        self.tasks.progressPassed(self.now)
        return (self.devices.takeChanges(), self.topics.takeChanges())
    }

    /// Appends the changed devices, tasks and topics since the last call to `batch`, as records of their current state.
    package func takeStep(into batch: inout RecordBatch) {
        self.tasks.progressPassed(self.now)
        self.topics.takeChanges(into: &batch)
        self.devices.takeChanges(into: &batch, at: self.now)
        self.tasks.takeChanges(into: &batch)
    }
}

/// Operations on the policy state of a device with all of its lanes.
extension DeviceEngine {
    func parameters(of device: DeviceIndex) -> Parameters { self.parameters(self.devices[device].topic) }

    /// Returns the complete policy state of a device.
    func lanes(_ device: DeviceIndex) -> DeviceLanes {
        let record = self.devices[device]
        guard record.hasTasks, let row = self.tasks[device] else { return DeviceLanes(device: record.state) }
        return DeviceLanes(device: record.state, tasks: row.policy)
    }

    /// Changes the policy state and the tasks of a device in place.
    @inline(__always)
    func change<Result>(
        _ device: DeviceIndex,
        _ body: (inout DeviceState, inout BackgroundTasks) -> Result
    ) -> Result {
        guard self.devices[device].hasTasks else { return body(&self.devices[device].state, &self.noTasks) }
        let row = self.tasks.row(device)
        var tasks = row.policy
        let result = body(&self.devices[device].state, &tasks)
        if row.policy != tasks {
            row.policy = tasks
            self.tasks.noteChange(device, row)
        }
        return result
    }

    /// Changes the policy state of a device. Adds a task row if the device has none; `derive` removes a blank row.
    func changeLanes<Result>(_ device: DeviceIndex, _ body: (inout DeviceLanes) -> Result) -> Result {
        _ = self.tasks.row(device)
        self.devices[device].hasTasks = true
        return self.change(device) { $0.change(with: &$1, body) }
    }

    /// Returns true if a wake in flight blocks all launches of pushes, refreshes and sessions of the device.
    package func isShortLaneFull(_ device: DeviceIndex) -> Bool {
        if self.devices[device].state.inFlight != nil { return true }
        guard self.devices[device].hasTasks else { return false }
        return self.lanes(device).isFull(.short, self.parameters(of: device))
    }

    /// Updates gauges, queues and the due index, and removes the row if it has become blank.
    func deriveLanes(_ device: DeviceIndex) {
        guard let row = self.tasks[device] else { preconditionFailure("a device with tasks has a row") }
        let record = self.devices[device]
        let parameters = self.parameters(record.topic)
        let lanes = DeviceLanes(device: record.state, tasks: row.policy)
        self.deriveReadyTasks(device, row, lanes, parameters)
        row.tidy()
        let gauges = row.gauges(lanes, at: self.now, parameters)
        if gauges != row.counted {
            self.count(record.topic) { $0.change(from: row.counted, to: gauges) }
            self.taskMemory.change(by: gauges.bytes - row.counted.bytes, record.topic)
            row.counted = gauges
        }
        let isReady = lanes.isPushLaunchable(at: self.now, parameters)
        self.derivePush(device, record.state, parameters, isReady: isReady)
        let next = lanes.nextMoment(beside: self.now, parameters)
        self.schedule.set(device, to: self.warning(device, row, parameters, before: next))
        guard row.isBlank else { return }
        self.tasks.remove(device)
        self.devices[device].hasTasks = false
    }

    private func deriveReadyTasks(
        _ device: DeviceIndex,
        _ row: TaskRow,
        _ lanes: DeviceLanes,
        _ parameters: Parameters
    ) {
        var ready: [TaskRow.Ready] = []
        for task in lanes.launchableTasks(at: self.now, parameters) {
            if let known = row.readySince(task.arrival) {
                ready.append((task.arrival, known))
                continue
            }
            let since = self.readyMoment(
                max(
                    max(task.waitsSince, lanes.eligibleAt(task, parameters)),
                    row.note(task)?.wait?.changedAt ?? .distantPast,
                    task.kind.lane == .short ? self.devices[device].lastEnd : .distantPast
                )
            )
            ready.append((task.arrival, since))
            self.readyTasks.append(
                ReadyTask(
                    device: device,
                    topic: self.devices[device].topic,
                    target: row.target(task),
                    order: ReadyOrder(since: since, lastUse: row.policy.usage.last),
                    arrival: task.arrival
                )
            )
        }
        row.ready = ready
    }
}

extension ActivityCounters {
    /// Replaces a device's contribution to the gauges of pending, running and held tasks.
    fileprivate mutating func change(from before: TaskGauges, to after: TaskGauges) {
        for kind in TaskKind.requestable {
            self.requests.waiting[kind] += after.waiting[kind] - before.waiting[kind]
            self.requests.inFlight[kind] += after.inFlight[kind] - before.inFlight[kind]
        }
        self.sessions.waiting += after.transfersWaiting - before.transfersWaiting
        self.sessions.inFlight += after.transfersInFlight - before.transfersInFlight
        self.sessions.wakes += after.sessionWakes - before.sessionWakes
        self.requests.held += after.held
        self.requests.held -= before.held
    }
}

/// The due times of devices, and the position of the scan that applies a changed policy to all devices.
package struct DueSchedule: ~Copyable {
    private var due = DueIndex()
    /// The first device that the scan has not reached; nil if the scan is complete.
    private var firstUnjudged: Int?
    /// The due time of the event that is being applied; nil during an operation that is not caused by a due time.
    package private(set) var momentBeingDone: Instant?

    /// Creates an empty schedule.
    package init() {}

    /// The earliest due time.
    package var first: Instant? { self.due.first }

    /// The due time of `device`; nil for none.
    package subscript(device: DeviceIndex) -> Instant? { self.due[device] }

    /// Sets the next due time of `device`; nil for none.
    package mutating func set(_ device: DeviceIndex, to moment: Instant?) { self.due.set(device, to: moment) }

    /// Removes and returns the device with the earliest due time, if that is at or before `now`. `momentBeingDone` is
    /// then this due time.
    package mutating func popDue(_ now: Instant) -> DeviceIndex? {
        let moment = self.due.first
        let device = self.due.popDue(now)
        self.momentBeingDone = device == nil ? nil : moment
        return device
    }

    /// Sets `momentBeingDone` without removing a device.
    package mutating func begin(_ moment: Instant) { self.momentBeingDone = moment }

    /// Resets `momentBeingDone`.
    package mutating func end() { self.momentBeingDone = nil }

    /// Starts the scan of all devices, because the policy has changed.
    package mutating func policyChanged() { self.firstUnjudged = 0 }

    /// True if the scan is not complete.
    package var isJudging: Bool { self.firstUnjudged != nil }

    /// Clears all due times and ends the scan.
    package mutating func removeAll() {
        self.due.removeAll()
        self.firstUnjudged = nil
        self.momentBeingDone = nil
    }

    /// Returns the next devices of the scan, at most `devicesMax`.
    package mutating func popUnjudged(devicesMax: Int, of deviceCount: Int) -> Range<Int> {
        guard let first = self.firstUnjudged else { return 0..<0 }
        let end = min(first + devicesMax, deviceCount)
        self.firstUnjudged = end < deviceCount ? end : nil
        return first..<max(first, end)
    }
}

/// An index of devices by due time: a 4-ary heap that knows each device's position.
///
/// Setting, clearing and removing the first cost O(log n). Equal times are in no particular order.
package struct DueIndex {
    private struct Entry {
        var moment: Instant
        var device: UInt32
    }

    private static let nowhere = UInt32.max
    private var heap: [Entry] = []
    /// The position of each device in `heap`, or `nowhere`.
    private var places: [UInt32] = []

    package init() {}

    /// The number of devices with a due time.
    package var count: Int { self.heap.count }

    /// The earliest due time.
    package var first: Instant? { self.heap.first?.moment }

    /// The due time of `device`; nil for none.
    package subscript(device: DeviceIndex) -> Instant? {
        let number = Int(device.rawValue)
        guard number < self.places.count, self.places[number] != Self.nowhere else { return nil }
        return self.heap[Int(self.places[number])].moment
    }

    /// Sets the next due time of `device`; nil for none.
    package mutating func set(_ device: DeviceIndex, to moment: Instant?) {
        let number = Int(device.rawValue)
        if number >= self.places.count {
            guard moment != nil else { return }
            self.places.append(contentsOf: repeatElement(Self.nowhere, count: number + 1 - self.places.count))
        }
        let place = self.places[number]
        switch (place == Self.nowhere, moment) {
        case (true, nil): break
        case (true, let moment?):
            self.heap.append(Entry(moment: moment, device: device.rawValue))
            self.rise(self.heap.count - 1)
        case (false, nil): self.remove(Int(place))
        case (false, let moment?):
            let before = self.heap[Int(place)].moment
            self.heap[Int(place)].moment = moment
            if moment < before { self.rise(Int(place)) } else if moment > before { self.sink(Int(place)) }
        }
    }

    /// Removes and returns the device with the earliest due time, if that is at or before `now`.
    package mutating func popDue(_ now: Instant) -> DeviceIndex? {
        guard let first = self.heap.first, first.moment <= now else { return nil }
        self.remove(0)
        return DeviceIndex(rawValue: first.device)
    }

    /// Clears all due times and keeps the memory.
    package mutating func removeAll() {
        for entry in self.heap { self.places[Int(entry.device)] = Self.nowhere }
        self.heap.removeAll(keepingCapacity: true)
    }

    private mutating func remove(_ place: Int) {
        self.places[Int(self.heap[place].device)] = Self.nowhere
        let last = self.heap.removeLast()
        guard place < self.heap.count else { return }
        self.heap[place] = last
        self.places[Int(last.device)] = UInt32(place)
        self.rise(place)
        self.sink(Int(self.places[Int(last.device)]))
    }

    private mutating func rise(_ start: Int) {
        var place = start
        let entry = self.heap[place]
        while place > 0 {
            let parent = (place - 1) >> 2
            guard entry.moment < self.heap[parent].moment else { break }
            self.put(self.heap[parent], at: place)
            place = parent
        }
        self.put(entry, at: place)
    }

    private mutating func sink(_ start: Int) {
        var place = start
        let entry = self.heap[place]
        while true {
            let child = place << 2 + 1
            guard child < self.heap.count else { break }
            var least = child
            for sibling in (child + 1)..<max(child + 1, min(child + 4, self.heap.count))
            where self.heap[sibling].moment < self.heap[least].moment {
                least = sibling
            }
            guard self.heap[least].moment < entry.moment else { break }
            self.put(self.heap[least], at: place)
            place = least
        }
        self.put(entry, at: place)
    }

    private mutating func put(_ entry: Entry, at place: Int) {
        self.heap[place] = entry
        self.places[Int(entry.device)] = UInt32(place)
    }
}
