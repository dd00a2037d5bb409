package import Policy

/// A request or a session that came to wait for nothing but a slot on a stream that takes it.
package struct ReadyTask: Sendable {
    package let device: DeviceIndex
    package let topic: TopicIndex
    package let target: LaunchTarget
    /// Since when it waits so.
    package let since: Instant
    /// Which of the device's tasks it is.
    let arrival: UInt64
}

/// What a stream has to take for a launch.
package struct LaunchTarget: Hashable, Sendable {
    package let kind: LaunchKind
    /// The identifier, or the session's name; empty for a push.
    package let name: String
    /// What the stream must offer.
    package let resources: [String]

    package static let push = LaunchTarget(kind: .push, name: "")

    package init(kind: LaunchKind, name: String, resources: [String] = []) {
        self.kind = kind
        self.name = name
        self.resources = resources
    }
}

extension EmbeddedEngine {
    /// Whether the device has requests, sessions or habits.
    package func hasTasks(_ device: DeviceIndex) -> Bool { self.devices[device].hasTasks }

    /// Whether a task came to wait for a slot that was not taken by `popReadyTask` yet.
    package var hasReadyTask: Bool { !self.readyTasks.isEmpty }

    /// Takes one task that came to wait for a slot, the first first; it may have ceased to.
    package func popReadyTask() -> ReadyTask? { self.readyTasks.popFirst() }

    /// Whether the task still waits for nothing but a slot.
    package func isReady(_ task: ReadyTask) -> Bool {
        guard let row = self.tasks[task.device], row.readySince(task.arrival) != nil,
            let waiting = row.policy.waiting.first(where: { $0.arrival == task.arrival })
        else { return false }
        return LaunchKind(waiting.kind) == task.target.kind && row.text(waiting.name) == task.target.name
    }

    /// Since when the device has waited whose push has waited longest for a slot of this topic.
    package func longestReadySince(_ topic: TopicIndex) -> Instant? {
        self.ready.first(topic).map { self.now - self.devices[$0].readyMilliseconds(at: self.now) }
    }

    /// Launches what is next on the device by its policy, a slot for it provided.
    ///
    /// - `hasSlot`: whether a stream that takes it has a free slot for this device.
    /// - Returns: the wake, valid until the engine is next called; nil when nothing launches.
    package func claim(_ device: DeviceIndex, hasSlot: (LaunchTarget) -> Bool) -> LaunchedWake? {
        guard let row = self.tasks[device] else {
            return self.devices[device].isReady && hasSlot(.push) ? self.claim(device) : nil
        }
        if let moment = self.schedule[device], moment <= self.now { self.settle(device) }
        let candidate = self.lanes(device).nextLaunch(at: self.now, self.parameters(of: device)) { candidate in
            switch candidate {
            case .push: hasSlot(.push)
            case .task(let task): hasSlot(row.target(task))
            }
        }
        switch candidate {
        case nil: return nil
        case .push: return self.launchPush(device)
        case .task(let task):
            if let since = row.readySince(task.arrival) {
                self.times.lateness.record(self.lateness(since: since, self.devices[device].topic))
            }
            let wake = self.launchTask(task.arrival, device)
            self.reconcile(device)
            return self.launchedWake(wake)
        }
    }
}

extension TaskRow {
    /// What a stream has to take to be sent this task.
    func target(_ task: BackgroundTask) -> LaunchTarget {
        LaunchTarget(
            kind: LaunchKind(task.kind),
            name: self.text(task.name),
            resources: self.details(task).resources
        )
    }
}
