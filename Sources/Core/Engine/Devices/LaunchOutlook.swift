package import Policy
import Wire

/// All conditions that delay a launch at a given time.
///
/// For a push of priority 5 that arrives now, the outlook agrees with the answer to a dry run, and has more details.
package struct LaunchOutlook: Hashable, Sendable {
    package let kind: LaunchKind
    /// Every hold by the device's conditions and its topic, in order of precedence.
    package let holds: [Hold]
    /// The first time at which interval, budget, earliest start and habits allow the launch; may be in the past.
    package let eligibleAt: Instant
    /// True if the launch waits for another wake of its lane, or is running.
    package let isInFlight: Bool
    package var takers: Takers
    /// The time of the outlook.
    package let now: Instant

    /// The first obstacle: a hold (a missing slot included), a wake in flight, or an earliest time.
    package enum Verdict: String, Sendable {
        case ready, waiting, held, inFlight
    }

    package var verdict: Verdict {
        if !self.holds.isEmpty { return .held }
        if self.isInFlight { return .inFlight }
        if self.eligibleAt > self.now { return .waiting }
        return self.takers == .free ? .ready : .held
    }

    /// The time at which the launch is possible, if only time or a wake in flight delays it.
    package var answeredEligibleAt: Instant? {
        switch self.verdict {
        case .waiting, .inFlight: max(self.eligibleAt, self.now)
        case .ready, .held: nil
        }
    }
}

extension DeviceSnapshot {
    /// Returns the outlook of a push of priority 5 that arrives at `now`, the time of the snapshot.
    package func outlook(at now: Instant) -> LaunchOutlook {
        let priority = max(.considerate, self.state.pending?.priority ?? .passive)
        let holds = Hold.ofPushes.filter {
            self.state.conditions.holds($0, priority, criticalBattery: self.parameters.criticalBattery)
        }
        let isLaneTaken = self.tasks.contains { $0.isRunning && $0.task.kind.lane == .short }
        return LaunchOutlook(
            kind: .push,
            holds: (self.isTopicPaused ? [.paused] : []) + holds,
            eligibleAt: self.state.eligibleAt(priority, self.parameters),
            isInFlight: self.state.inFlight != nil || isLaneTaken,
            takers: self.pushTakers,
            now: now
        )
    }
}

/// All conditions that delay the request of an identifier.
package struct TaskOutlook: Sendable {
    package let name: String
    /// True if the device's topic permits the identifier.
    package let isPermitted: Bool
    /// The pending request or, if there is none, the running request; nil if there is neither.
    package let found: TaskSnapshot?
    /// The request of this outlook; a new refresh if none was found.
    package let task: BackgroundTask
    package var launch: LaunchOutlook
    /// The time from which the interval of processing tasks allows a launch.
    package let processingFrom: Instant

    /// The kind, name and resources that a stream must accept to get the launch.
    package var target: LaunchTarget {
        LaunchTarget(kind: self.launch.kind, name: self.name, resources: self.found?.details.resources ?? [])
    }
}

extension DeviceEngine {
    /// Returns the outlook of the request with this identifier; if there is none, of a refresh submitted now. The
    /// dispatcher sets `launch.takers`.
    func outlook(ofTask name: String, _ device: DeviceIndex) -> TaskOutlook {
        let found = self.tasks(of: device).first { $0.name == name && $0.task.kind != .urlSession }
        let (lanes, parameters) = (self.lanes(device), self.parameters(of: device))
        let topic = self.devices[device].topic
        let task =
            found?.task
            ?? BackgroundTask(
                name: TaskName(rawValue: 0),
                kind: .appRefresh,
                needs: .network,
                arrivedAt: self.now,
                waitsSince: self.now,
                arrival: .max
            )
        return TaskOutlook(
            name: name,
            isPermitted: self.configuration.permittedTasks.permits(name, topic: self.topics.name(topic)),
            found: found,
            task: task,
            launch: LaunchOutlook(
                kind: LaunchKind(task.kind),
                holds: (self.isPaused(topic) ? [.paused] : []) + lanes.allHolds(task, at: self.now, parameters),
                eligibleAt: lanes.eligibleAt(task, parameters),
                isInFlight: found?.isRunning ?? false || lanes.isFull(task.kind.lane, parameters),
                takers: .none,
                now: self.now
            ),
            processingFrom: lanes.tasks.lastProcessing + lanes.processingInterval(parameters)
        )
    }
}

extension DeviceEngine {
    /// Returns the minimum time between launches of tasks of a kind on one device, in milliseconds; nil for continued
    /// tasks.
    package func interval(_ kind: TaskKind, topic: TopicIndex) -> Int64? {
        switch kind {
        case .appRefresh, .urlSession: self.parameters(topic).launchInterval
        case .processing: self.parameters(topic).processingInterval
        case .continued: nil
        }
    }
}

extension TaskSnapshot {
    package var isRunning: Bool {
        if case .running = self.state { true } else { false }
    }
}
