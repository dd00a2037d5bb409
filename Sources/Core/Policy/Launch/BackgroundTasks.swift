/// What the policy keeps of a device for its requests, sessions and habits, beside its `DeviceState`.
///
/// A device that has no request or session, launched no processing task and reported no use has a blank one, which
/// need not be kept. Its size is bounded: `TaskKind.waitingMax` of each kind wait, besides what was lost.
package struct BackgroundTasks: Hashable, Sendable {
    /// What waits, in the order of arrival.
    package internal(set) var waiting: [BackgroundTask]
    /// What was launched, lane by lane, each in the order of launches.
    package internal(set) var inFlight: [TaskWake]
    /// Minus infinity before the first processing task.
    package internal(set) var lastProcessing: Instant
    package internal(set) var usage: Usage
    package internal(set) var arrivals: Arrivals

    /// What a store kept of a device; without arguments a blank one.
    package init(
        waiting: [BackgroundTask] = [],
        inFlight: [TaskWake] = [],
        lastProcessing: Instant = .distantPast,
        usage: Usage = Usage(),
        arrivals: Arrivals = Arrivals()
    ) {
        self.waiting = waiting
        self.inFlight = inFlight
        self.lastProcessing = lastProcessing
        self.usage = usage
        self.arrivals = arrivals
    }

    /// Whether there is nothing to keep.
    package var isBlank: Bool { self == BackgroundTasks() }
}

/// The order in which requests, sessions and pushes arrived on a device that has some of the former.
///
/// While a device has neither request nor session in hand, all is 0: whatever comes then comes after its push.
package struct Arrivals: Hashable, Sendable {
    /// The number of the latest arrival.
    package var latest: UInt64 = 0
    /// The number of the first push that the pending one stands for.
    package var pendingPush: UInt64 = 0
    /// The number of the first push that the one in flight stands for.
    package var pushInFlight: UInt64 = 0

    package init() {}
}

extension BackgroundTasks {
    private var isIdle: Bool { self.waiting.isEmpty && self.inFlight.isEmpty }

    /// Numbers a request or a session that arrived.
    mutating func arrived() -> UInt64 {
        self.arrivals.latest += 1
        return self.arrivals.latest
    }

    /// Numbers a push that arrived when none was pending.
    mutating func pushArrived() {
        self.arrivals.pendingPush = self.isIdle ? 0 : self.arrived()
    }

    /// Something may have been the last: forgets the order when nothing needs it.
    mutating func left() {
        if self.isIdle { self.arrivals = Arrivals() }
    }

    mutating func wait(_ task: BackgroundTask) {
        let index = self.waiting.firstIndex { $0.arrival > task.arrival } ?? self.waiting.endIndex
        self.waiting.insert(task, at: index)
    }

    mutating func fly(_ wake: TaskWake) {
        let lane = wake.task.kind.lane
        let index = self.inFlight.firstIndex { $0.task.kind.lane > lane } ?? self.inFlight.endIndex
        self.inFlight.insert(wake, at: index)
    }

    /// Takes what waits under the name of `task` away, if anything does.
    mutating func takeNamesake(of task: BackgroundTask) -> BackgroundTask? {
        guard let index = self.waiting.firstIndex(where: { $0.isNamesake(of: task) }) else { return nil }
        return self.waiting.remove(at: index)
    }
}
