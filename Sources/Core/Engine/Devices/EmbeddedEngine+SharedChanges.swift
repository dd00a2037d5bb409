import Policy
import Wire

/// What a step of a shared store has to make durable.
extension EmbeddedEngine {
    /// Takes what changed of devices in this step, in the order of tokens; once in a step.
    ///
    /// A wake that was launched and ended within the step is in `launched` as well as in `ended`, so that a late answer
    /// to it finds its device.
    package func takeSharedChanges() -> [SharedDeviceChange] {
        // Rows are forgotten at the end of the step: nothing can stay behind the store.
        self.tasks.hurryProgress()
        for device in self.tasks.takeChanges() { self.devices.noteChange(device) }
        var changed: [(place: TokenPlace, derived: DerivedState)] = []
        changed.reserveCapacity(self.devices.count)
        for number in 0..<self.devices.count {
            let device = DeviceIndex(rawValue: UInt32(number))
            let derived = self.derived(device)
            // Not everything that follows from a device's records is noted as a change of theirs.
            let isChanged = self.step.row(device).map { !$0.derived.isSame(as: derived) } ?? true
            guard isChanged || self.devices[device].isChanged else { continue }
            changed.append((TokenPlace(device, self.devices[device].token.token), derived))
        }
        _ = self.devices.takeChanges()
        // Rows came in the order of tokens, devices that were not there behind them.
        if zip(changed, changed.dropFirst()).contains(where: { $1.place.isBefore($0.place, self.devices) }) {
            changed.sort { $0.place.isBefore($1.place, self.devices) }
        }
        return changed.map { self.change(of: $0.place.device, $0.derived) }
    }

    /// A device of an engine that keeps all devices, as a row of a shared store that does not have it: for whoever
    /// moves the state of one into the other.
    package func sharedRow(_ device: DeviceIndex) -> SharedDeviceChange {
        var buffer = ByteBuffer()
        return self.change(of: device, self.derived(device), nil, &buffer)
    }

    private func change(of device: DeviceIndex, _ derived: DerivedState) -> SharedDeviceChange {
        self.change(of: device, derived, self.step, &self.step.buffer)
    }

    /// - `step`: nil where no row was ever taken.
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

    /// What follows from a device's records now.
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
            launched.append((wake, self.deadline(wake, device) ?? self.now))
        }
        var ended = inFlight.filter { !inFlightNow.contains($0) }
        for wake in record.endedWakes?.elements ?? []
        where !endedBefore.contains(wake.id) && !inFlight.contains(wake.id) {
            launched.append((wake.id, wake.at))
            ended.append(wake.id)
        }
        return (launched, Array(ended))
    }

    private func deadline(_ wake: WakeID, _ device: DeviceIndex) -> Instant? {
        switch self.inFlight(wake, device) {
        case nil: nil
        case .push: self.devices[device].state.inFlight?.deadline
        case .task(let arrival): self.tasks[device]?.wake(arrival)?.deadline
        }
    }
}

// MARK: - Counts

extension EmbeddedEngine {
    /// Takes what this step adds to the books of topics, signed where something became less, in the order of their
    /// numbers; nothing is left for a second call.
    package func takeSharedCounts() -> [(topic: TopicIndex, added: Books)] {
        var counts: [(topic: TopicIndex, added: Books)] = []
        self.takeCountedTopics { topic in
            let before = self.step[topic]
            var added = self.topics.books(topic) - before
            added.stock.devices = Int64(self.topics.deviceCount(topic)) - before.stock.devices
            added.stock.contentBytes = Int64(self.memory.bytes(topic)) - before.stock.contentBytes
            added.stock.taskBytes = Int64(self.taskMemory.bytes(topic)) - before.stock.taskBytes
            if added != Books() { counts.append((topic, added)) }
        }
        self.resetTotals()
        return counts.sorted { $0.topic.rawValue < $1.topic.rawValue }
    }

    /// Calls `body` with each topic that something may have been counted of, which is then counted as before the step.
    func takeCountedTopics(_ body: (TopicIndex) -> Void) {
        var topics = self.topics.takeChanges()
        // A topic that a device has left is among them only for another reason.
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

/// A device and what its token begins with, by which rows are ordered as their tokens' bytes are.
private struct TokenPlace {
    let device: DeviceIndex
    private let beginning: UInt64

    init(_ device: DeviceIndex, _ token: borrowing DeviceToken) {
        self.device = device
        self.beginning = token.beginning
    }

    func isBefore(_ other: TokenPlace, _ devices: borrowing DeviceTable) -> Bool {
        guard self.beginning == other.beginning else { return self.beginning < other.beginning }
        return devices[self.device].token.token.isBefore(devices[other.device].token.token)
    }
}
