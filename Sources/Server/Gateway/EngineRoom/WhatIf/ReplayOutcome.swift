import Policy
import Wire

/// The recorded or replayed outcomes of the pushes and tasks of one device or of several devices.
struct ReplayOutcome: Sendable {
    /// A launch of a push.
    struct Launch {
        /// The time, in milliseconds since 1970.
        let at: Int64
        let attempt: Int
        let coalesced: Int
        var result: WakeOutcome?
    }

    /// The launches of pushes of one device.
    private(set) var launches: [Launch] = []
    private(set) var pushes = ReplayCounts()
    private(set) var tasks = ReplayCounts()
    /// True if a push from the period is pending.
    private var hasPending = false
    /// True if a push from the period is in flight.
    private var hasInFlight = false
    /// True if the next discard does not concern the pending push. It concerns a push that was discarded on arrival or
    /// after its last wake.
    private var isDiscardOfAnother = false
    /// The arrival times of pushes that have not been launched, including coalesced pushes.
    private var arrivals: [Int64] = []
    /// The arrival times of requests that have not been launched, and of the reports of each waiting session.
    private var waitingTasks: [OutcomeLine.Subject: [Int64]] = [:]
    private var tasksInFlight: [OutcomeLine.Subject: Int] = [:]

    /// The number of launches of pushes and tasks.
    var launchCount: Int { self.pushes.launched + self.tasks.launched }

    // MARK: Pushes

    /// Counts the arrival of a push. If the push is discarded on arrival, its discard is the next event.
    mutating func pushReceived(at moment: Int64, isDiscarded: Bool) {
        self.isDiscardOfAnother = isDiscarded
        guard !isDiscarded else { return }
        if self.hasPending { self.pushes.merged += 1 }
        self.hasPending = true
        self.arrivals.append(moment)
    }

    mutating func launched(at moment: Int64, attempt: Int, coalesced: Int) {
        self.launches.append(Launch(at: moment, attempt: attempt, coalesced: coalesced))
        self.pushes.launched += 1
        self.hasInFlight = self.hasPending
        self.hasPending = false
        self.pushes.endWaits(&self.arrivals, at: moment)
    }

    /// Ends the wake in flight. After a failure, its push is pending again or is coalesced into the pending push.
    ///
    /// - `isDiscarded`: true if the push is discarded although another is pending. This happens when the device is
    ///   removed.
    mutating func ended(_ outcome: WakeOutcome, isDiscarded: Bool = false) {
        if !self.launches.isEmpty { self.launches[self.launches.count - 1].result = outcome }
        guard self.hasInFlight else { return }
        self.hasInFlight = false
        switch outcome {
        case .newData, .noData: self.pushes.ended += 1
        case .failed, .expired, .lost:
            guard self.hasPending else {
                self.hasPending = true
                return
            }
            if isDiscarded { self.isDiscardOfAnother = true } else { self.pushes.merged += 1 }
        }
    }

    /// Counts the discard of the pending push, or of a push that `isDiscardOfAnother` announced.
    mutating func pushDiscarded(at moment: Int64) {
        if self.isDiscardOfAnother {
            self.pushes.discarded += 1
        } else if self.hasPending {
            self.pushes.discarded += 1
            self.hasPending = false
            self.pushes.endWaits(&self.arrivals, at: moment)
        }
        self.isDiscardOfAnother = false
    }

    // MARK: Tasks

    /// Counts a request or a report of finished transfers. A request replaces a pending request; a report is added to
    /// pending ones.
    mutating func taskSubmitted(_ subject: OutcomeLine.Subject, at moment: Int64) {
        if var waiting = self.waitingTasks[subject] {
            self.tasks.merged += 1
            if case .task = subject { self.tasks.endWaits(&waiting, at: moment) }
            self.waitingTasks[subject] = waiting
        }
        self.waitingTasks[subject, default: []].append(moment)
    }

    /// Counts a refused request as discarded. Only replays have refused requests.
    mutating func taskRefused() { self.tasks.discarded += 1 }

    mutating func taskLaunched(_ subject: OutcomeLine.Subject, at moment: Int64) {
        self.tasks.launched += 1
        guard var waiting = self.waitingTasks.removeValue(forKey: subject) else { return }
        self.tasks.endWaits(&waiting, at: moment)
        self.tasksInFlight[subject, default: 0] += 1
    }

    /// Ends a wake. A lost task is pending again. The transfers of a session are pending again after any failure.
    mutating func taskEnded(_ subject: OutcomeLine.Subject, _ outcome: TaskOutcome) {
        guard let count = self.tasksInFlight[subject], count > 0 else { return }
        self.tasksInFlight[subject] = count - 1
        var waitsAgain = outcome == .lost
        if case .session = subject { waitsAgain = outcome != .success }
        if !waitsAgain {
            self.tasks.ended += 1
        } else if self.waitingTasks[subject] == nil {
            self.waitingTasks[subject] = []
        } else {
            self.tasks.merged += 1
        }
    }

    /// Counts the discard or cancellation of a pending task.
    mutating func taskDiscarded(_ subject: OutcomeLine.Subject, at moment: Int64) {
        guard var waiting = self.waitingTasks.removeValue(forKey: subject) else { return }
        self.tasks.endWaits(&waiting, at: moment)
        self.tasks.discarded += 1
    }

    // MARK: End of the period

    /// Ends the period. For pushes and tasks without a launch, the wait ends at `moment`.
    mutating func finish(at moment: Int64) {
        self.pushes.endWaits(&self.arrivals, at: moment)
        self.pushes.waiting = (self.hasPending ? 1 : 0) + (self.hasInFlight ? 1 : 0)
        for var waiting in self.waitingTasks.values { self.tasks.endWaits(&waiting, at: moment) }
        self.tasks.waiting = self.waitingTasks.count + self.tasksInFlight.values.reduce(0, +)
    }

    /// Adds the counts of another device.
    mutating func add(_ other: ReplayOutcome) {
        self.pushes.add(other.pushes)
        self.tasks.add(other.tasks)
    }

    /// Appends the outcome as a member.
    ///
    /// - `isOfTopic`: true for a topic, whose launches are only counted; false for one device.
    func write(_ name: StaticString, isOfTopic: Bool = false, to writer: inout JSONWriter) {
        writer.beginObject(name)
        self.pushes.write(ended: "completed", merged: "coalesced", isOfTopic: isOfTopic, to: &writer)
        if !isOfTopic {
            writer.array("launches", self.launches) { writer, launch in
                writer.beginObject()
                writer.member("at", launch.at)
                writer.member("attempt", launch.attempt)
                writer.member("coalesced", launch.coalesced)
                writer.member("result", launch.result?.rawValue)
                writer.endObject()
            }
        }
        writer.beginObject("tasks")
        self.tasks.write(ended: "ended", merged: "replaced", isOfTopic: isOfTopic, to: &writer)
        writer.endObject()
        writer.endObject()
    }
}

/// The counts of pushes or of tasks. Each arrival has ended, was merged or discarded, or is still waiting.
struct ReplayCounts: Sendable {
    var launched = 0
    var ended = 0
    /// The number of arrivals that were coalesced or replaced by later ones.
    var merged = 0
    var discarded = 0
    /// The number of arrivals that are pending or in flight.
    var waiting = 0
    private var waitCount: Int64 = 0
    private var waitSum: Int64 = 0
    private var waitMax: Int64 = 0

    /// Ends the waits that began at `arrivals`, and removes all elements of `arrivals`.
    mutating func endWaits(_ arrivals: inout [Int64], at moment: Int64) {
        for arrival in arrivals {
            let wait = max(0, moment - arrival)
            self.waitCount += 1
            self.waitSum += wait
            self.waitMax = max(self.waitMax, wait)
        }
        arrivals.removeAll()
    }

    mutating func add(_ other: ReplayCounts) {
        self.launched += other.launched
        self.ended += other.ended
        self.merged += other.merged
        self.discarded += other.discarded
        self.waiting += other.waiting
        self.waitCount += other.waitCount
        self.waitSum += other.waitSum
        self.waitMax = max(self.waitMax, other.waitMax)
    }

    /// Appends the counts, and the mean and the maximum wait in milliseconds, as members.
    fileprivate func write(
        ended: StaticString,
        merged: StaticString,
        isOfTopic: Bool,
        to writer: inout JSONWriter
    ) {
        writer.member(isOfTopic ? "launches" : "launched", self.launched)
        writer.member(ended, self.ended)
        writer.member(merged, self.merged)
        writer.member("discarded", self.discarded)
        writer.member("waiting", self.waiting)
        let mean = self.waitCount > 0 ? self.waitSum / self.waitCount : nil
        writer.member(isOfTopic ? "meanWaitMs" : "meanWait", mean)
        writer.member(isOfTopic ? "maxWaitMs" : "maxWait", self.waitCount > 0 ? self.waitMax : nil)
    }
}
