package import Policy
package import Wire

/// The state of one device at one instant.
package struct DeviceSnapshot: Sendable {
    package let token: DeviceToken
    package let topic: String
    package let isTopicPaused: Bool
    package let isRegistered: Bool
    /// The time of the last registration, or of the removal if the device is removed.
    package let registrationChangedAt: Instant
    package let state: DeviceState
    package let parameters: Parameters
    /// The wake in flight.
    package let wake: WakeID?
    package let pendingID: APNsID?
    package let inFlightID: APNsID?
    /// Every hold that applies to the pending push, in order of precedence.
    package let held: [Hold]
    package let usage: Usage
    /// Pending tasks, the longest waiting first, then running tasks.
    package var tasks: [TaskSnapshot]
    /// The name of the worker on which the device's last wake expired, if that worker has never responded.
    package var silentWorker: String?
    /// The availability of open streams for the device's pushes. The dispatcher sets this property.
    package var pushTakers = Takers.none
}

/// The readiness of open streams for a push or a task.
package enum Takers: Int, Comparable, Sendable {
    /// No stream accepts the launch.
    case none
    /// Streams accept the launch, but none of them has a free slot.
    case busy
    /// Streams of other gateways may accept the launch; this gateway does not know their state.
    case unknown
    /// A stream that accepts the launch has a free slot.
    case free

    package static func < (left: Takers, right: Takers) -> Bool { left.rawValue < right.rawValue }
}

/// The state of one topic at one instant.
package struct TopicSnapshot: Sendable {
    package let index: TopicIndex
    package let name: String
    package let counters: ActivityCounters
    /// True if the topic is paused: nothing of it launches.
    package let isPaused: Bool

    /// The counters as users see them, which reflect a pause.
    package var countersShown: ActivityCounters { self.isPaused ? self.counters.paused : self.counters }
}

extension DeviceEngine {
    package func snapshot(_ device: DeviceIndex) -> DeviceSnapshot {
        // Ignore the result: if nothing was due, nothing changed that must be stored.
        _ = self.catchUp(device)
        let record = self.devices[device]
        let parameters = self.parameters(record.topic)
        var held: [Hold] = []
        if let priority = record.state.pending?.priority {
            held = Hold.ofPushes.filter {
                record.state.conditions.holds($0, priority, criticalBattery: parameters.criticalBattery)
            }
        }
        if record.isReady { held.append(.worker) }
        let isTopicPaused = self.isPaused(record.topic)
        if isTopicPaused, record.state.pending != nil { held = [.paused] + held.filter { $0 != .worker } }
        return DeviceSnapshot(
            token: record.token.token,
            topic: self.topics.name(record.topic),
            isTopicPaused: isTopicPaused,
            isRegistered: record.isRegistered,
            registrationChangedAt: record.registrationChangedAt,
            state: record.state,
            parameters: parameters,
            wake: record.state.inFlight == nil ? nil : record.wake,
            pendingID: record.state.pending.flatMap { PushContent($0.handle)?.apnsID },
            inFlightID: record.state.inFlight.flatMap { PushContent($0.push.handle)?.apnsID },
            held: held,
            usage: self.tasks[device]?.policy.usage ?? Usage(),
            tasks: self.tasks(of: device)
        )
    }
}

/// A request, or the finished transfers of a session, at one instant; pending or running.
package struct TaskSnapshot: Sendable {
    package enum State: Hashable, Sendable {
        /// - `eligibleAt`: the first time at which interval, budget, earliest start and habits allow the launch; nil if
        ///   they allow it now.
        /// - `held`: every hold that applies, in order of precedence; `worker` if the task waits only for a slot.
        /// - `laneIsFull`: true if the task waits for the running tasks of its lane.
        case waiting(eligibleAt: Instant?, held: [Hold], laneIsFull: Bool)
        /// - `progress`: the last reported progress of a continued task.
        case running(wake: WakeID, launchedAt: Instant, deadline: Instant, progress: TaskProgress?)
    }

    package let device: DeviceToken
    package let topic: String
    /// The identifier of a request, or the name of a session.
    package let name: String
    package let task: BackgroundTask
    package let details: TaskDetails
    package let state: State
    /// True if the task is pending and an open stream accepts it, with or without a free slot. The dispatcher sets this
    /// property.
    package var isTaken = false
    /// The name of the worker that runs the task on a stream of this gateway; nil if it gave none. The dispatcher sets
    /// this property.
    package var worker: String?
}

/// A filter for the requests of all devices; nil fields match anything.
package struct TaskFilter: Sendable {
    package enum State: String, CaseIterable, Sendable {
        case waiting, running
    }

    package var topics: Set<TopicIndex>?
    package var kind: TaskKind?
    package var state: State?

    package init(topics: Set<TopicIndex>? = nil, kind: TaskKind? = nil, state: State? = nil) {
        self.topics = topics
        self.kind = kind
        self.state = state
    }
}

extension DeviceEngine {
    /// Returns the requests and sessions of a device: pending tasks, the longest waiting first, then running tasks.
    package func tasks(of device: DeviceIndex) -> [TaskSnapshot] {
        _ = self.catchUp(device)
        guard let row = self.tasks[device] else { return [] }
        return self.snapshots(device, row)
    }

    /// Continues a search, and examines at most `placesMax` devices with tasks.
    ///
    /// - Returns: true if the search is complete.
    package func look(_ search: inout TaskSearch, placesMax: Int) -> Bool {
        let topics = search.filter.topics
        guard topics?.isEmpty != true else { return true }
        let places = self.tasks.places(from: search.place, countMax: placesMax)
        search.place += places.count
        for case (let device, let row)? in places where search.devices.count < search.countMax {
            if let topics, !topics.contains(self.devices[device].topic) { continue }
            if search.filter.takesAny(of: row.policy) { search.devices.append(device) }
        }
        return places.count < placesMax || search.devices.count == search.countMax
    }

    /// Returns the requests and sessions that a search has found.
    package func tasks(_ search: TaskSearch) -> [TaskSnapshot] {
        var found: [TaskSnapshot] = []
        // A row may have been removed, or found at two positions, since the search began.
        var seen: Set<DeviceIndex> = []
        for device in search.devices where found.count < search.countMax && seen.insert(device).inserted {
            guard let row = self.tasks[device] else { continue }
            // The device may have been registered in another topic since the search began.
            if let topics = search.filter.topics, !topics.contains(self.devices[device].topic) { continue }
            found += self.snapshots(device, row).filter { search.filter.takes($0) }
        }
        return Array(found.prefix(search.countMax))
    }

    private func snapshots(_ device: DeviceIndex, _ row: TaskRow) -> [TaskSnapshot] {
        let lanes = self.lanes(device)
        let parameters = self.parameters(of: device)
        let waiting = lanes.tasks.waiting.sorted { ($0.waitsSince, $0.arrival) < ($1.waitsSince, $1.arrival) }
        return waiting.map { task in
            let eligibleAt = lanes.eligibleAt(task, parameters)
            let laneIsFull = lanes.isFull(task.kind.lane, parameters)
            var held = lanes.allHolds(task, at: self.now, parameters)
            if self.isPaused(self.devices[device].topic) {
                held.insert(.paused, at: 0)
            } else if held.isEmpty, !laneIsFull, eligibleAt <= self.now {
                held = [.worker]
            }
            let state = TaskSnapshot.State.waiting(
                eligibleAt: eligibleAt > self.now ? eligibleAt : nil,
                held: held,
                laneIsFull: laneIsFull
            )
            return self.snapshot(task, device, row, state)
        }
            + lanes.tasks.inFlight.compactMap { wake in
                row.flight(of: wake.task.arrival).map { flight in
                    let state = TaskSnapshot.State.running(
                        wake: flight.wake,
                        launchedAt: wake.launchedAt,
                        deadline: wake.deadline,
                        progress: flight.progress
                    )
                    return self.snapshot(wake.task, device, row, state)
                }
            }
    }

    private func snapshot(
        _ task: BackgroundTask,
        _ device: DeviceIndex,
        _ row: TaskRow,
        _ state: TaskSnapshot.State
    ) -> TaskSnapshot {
        let record = self.devices[device]
        return TaskSnapshot(
            device: record.token.token,
            topic: self.topics.name(record.topic),
            name: row.text(task.name),
            task: task,
            details: row.details(task),
            state: state
        )
    }
}

/// An incremental search for the requests and sessions of all devices.
package struct TaskSearch: Sendable {
    fileprivate let filter: TaskFilter
    fileprivate let countMax: Int
    /// The next position in the table of tasks.
    fileprivate var place = 0
    /// The devices found so far.
    fileprivate var devices: [DeviceIndex] = []

    /// - `countMax`: the maximum number of requests and sessions.
    package init(_ filter: TaskFilter, countMax: Int) {
        self.filter = filter
        self.countMax = countMax
    }
}

extension TaskFilter {
    /// Returns true if the device has a task that matches the filter, ignoring `topics`.
    fileprivate func takesAny(of tasks: BackgroundTasks) -> Bool {
        func takes(_ task: BackgroundTask) -> Bool { self.kind == nil || self.kind == task.kind }
        if self.state != .running, tasks.waiting.contains(where: takes) { return true }
        return self.state != .waiting && tasks.inFlight.contains { takes($0.task) }
    }

    /// Returns true if the task matches the filter, ignoring `topics`.
    fileprivate func takes(_ snapshot: TaskSnapshot) -> Bool {
        if let kind = self.kind, kind != snapshot.task.kind { return false }
        switch (self.state, snapshot.state) {
        case (nil, _), (.waiting, .waiting), (.running, .running): return true
        case (.waiting, .running), (.running, .waiting): return false
        }
    }
}
