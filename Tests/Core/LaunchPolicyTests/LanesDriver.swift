import Policy
import Wire

/// The lanes of a device with its parameters, driven by tests with times in seconds and names as text.
struct LanesDriver {
    var lanes = DeviceLanes()
    var parameters = Parameters()
    private var names: [String] = []
    private var lastHandle: UInt64 = 0

    init(_ parameters: [(PolicyParameter, Double)] = [], maxAttempts: Double = 3) throws {
        for (name, value) in parameters + [(.maxAttempts, maxAttempts)] {
            precondition(name.set(value, in: &self.parameters), "\(name.rawValue) must be \(name.requirement)")
        }
    }

    static func at(_ seconds: Double) -> Instant {
        Instant(milliseconds: Int64(seconds * 1000))
    }

    mutating func name(_ text: String) -> TaskName {
        if !self.names.contains(text) { self.names.append(text) }
        return TaskName(rawValue: UInt64(self.names.firstIndex(of: text) ?? 0))
    }

    func text(_ task: BackgroundTask) -> String { self.names[Int(task.name.rawValue)] }

    /// The names of pending tasks, by arrival.
    var waiting: [String] { self.lanes.tasks.waiting.map(self.text) }

    /// The names of tasks in flight, by lane.
    var inFlight: [String] { self.lanes.tasks.inFlight.map { self.text($0.task) } }

    /// Returns the wake in flight with this name; the first if there are several.
    func wake(_ text: String) -> TaskWake? {
        self.lanes.tasks.inFlight.first { self.text($0.task) == text }
    }

    @discardableResult
    mutating func submit(
        _ name: String,
        _ kind: TaskSubmission.Kind,
        at seconds: Double,
        slotIsFree: Bool = true
    ) -> TaskSubmittedAction {
        let name = self.name(name)
        return self.lanes.submitted(
            name,
            kind,
            earliestBegin: nil,
            at: Self.at(seconds),
            isPermitted: true,
            slotIsFree: slotIsFree,
            self.parameters
        )
    }

    @discardableResult
    mutating func finish(_ session: String, _ count: UInt64, at seconds: Double) -> TransfersFinishedAction {
        let name = self.name(session)
        return self.lanes.transfersFinished(name, count: count, at: Self.at(seconds))
    }

    @discardableResult
    mutating func push(
        _ priority: Priority,
        at seconds: Double,
        expiration: Expiration = .absent
    ) -> PushReceivedAction {
        self.lastHandle += 1
        let handle = PushHandle(rawValue: self.lastHandle)
        let now = Self.at(seconds)
        return self.lanes.pushReceived(handle, priority, expiration, at: now, workerIsFree: true, self.parameters)
    }

    @discardableResult
    mutating func report(
        at seconds: Double,
        _ change: (inout ConditionsReport) -> Void
    ) -> Removals {
        var report = ConditionsReport()
        change(&report)
        return self.lanes.conditionsReported(report, at: Self.at(seconds), self.parameters)
    }

    /// Launches the next push or task, if there is one.
    ///
    /// - Returns: its name; "push" for a push.
    @discardableResult
    mutating func launch(at seconds: Double) -> String? {
        switch self.lanes.nextLaunch(at: Self.at(seconds), self.parameters, hasSlot: { _ in true }) {
        case nil: return nil
        case .push:
            self.lanes.pushLaunched(at: Self.at(seconds), self.parameters)
            return "push"
        case .task(let task):
            self.lanes.taskLaunched(task.arrival, at: Self.at(seconds), self.parameters)
            return self.text(task)
        }
    }

    /// Ends the wake in flight with this name, if there is one.
    mutating func end(_ name: String, _ outcome: TaskOutcome, restarted: Bool = false) -> TaskEndedAction? {
        self.wake(name).map {
            self.lanes.taskEnded($0.task.arrival, outcome, takingBackAttempt: restarted, self.parameters)
        }
    }
}
