/// A device of a simulation: its policy state, and the scripted answers of its worker.
struct SimulatedDevice {
    /// The reason why a wake in flight ends now.
    enum DueEnd {
        case push(PushScriptAnswer)
        case task(TaskWake, TaskScriptAnswer)
        /// A deadline passed.
        case expiry
    }

    let name: String
    var lanes = DeviceLanes()
    /// The due time; nil for never. Entries of the simulator's queue with another time are obsolete.
    var due: Instant?
    /// The number of push launches, which selects the worker's next step.
    var launches = 0
    /// The scripted answer to the push in flight, and its time; nil if it will expire.
    var answer: (answer: PushScriptAnswer, moment: Instant)?
    /// The number of launches of each identifier.
    private var taskLaunches: [TaskName: Int] = [:]
    /// The number of launches of each session.
    private var sessionLaunches: [TaskName: Int] = [:]
    /// The scripted answers and their times, by the task's arrival number. Wakes that will expire have none.
    private var taskAnswers: [UInt64: (answer: TaskScriptAnswer, moment: Instant)] = [:]

    init(name: String) {
        self.name = name
    }

    /// Returns the next due time at or after `now`; nil for never.
    func nextMoment(from now: Instant, _ parameters: Parameters) -> Instant? {
        var moments = self.taskAnswers.values.map(\.moment)
        if let answer = self.answer { moments.append(answer.moment) }
        if let moment = self.lanes.nextMoment(from: now, parameters) { moments.append(moment) }
        return moments.min()
    }

    /// Returns the end of the first wake in flight, by lane, that ends at `now`; nil if none ends.
    func dueEnd(_ now: Instant) -> DueEnd? {
        if let answer = self.answer, answer.moment <= now { return .push(answer.answer) }
        if let wake = self.lanes.device.inFlight, wake.deadline <= now { return .expiry }
        for wake in self.lanes.tasks.inFlight {
            if let answer = self.taskAnswers[wake.task.arrival], answer.moment <= now {
                return .task(wake, answer.answer)
            }
            if wake.deadline <= now { return .expiry }
        }
        return nil
    }

    /// Schedules the answer to a push that was just launched.
    mutating func launched(_ wake: WakeInFlight, _ script: WorkerScript) {
        let step = script.step(self.launches)
        self.launches += 1
        let moment = wake.launchedAt + step.delay
        // An answer at or after the deadline does not count.
        self.answer = step.answer == .none || moment >= wake.deadline ? nil : (step.answer, moment)
    }

    /// Schedules the answer to a task that was just launched.
    mutating func launched(_ wake: TaskWake, _ script: TaskScript, _ parameters: Parameters) {
        let step: TaskScript.Step
        if wake.task.kind == .urlSession {
            step = script.step(self.sessionLaunches[wake.task.name, default: 0])
            self.sessionLaunches[wake.task.name, default: 0] += 1
        } else {
            step = script.step(self.taskLaunches[wake.task.name, default: 0])
            self.taskLaunches[wake.task.name, default: 0] += 1
        }
        let deadline = self.advanced(wake, step, parameters)
        let moment = wake.launchedAt + step.delay
        guard step.answer != .none, moment < deadline else { return }
        self.taskAnswers[wake.task.arrival] = (step.answer, moment)
    }

    /// Applies the scripted progress of a continued task.
    ///
    /// - Returns: the final deadline of the wake.
    private mutating func advanced(_ wake: TaskWake, _ step: TaskScript.Step, _ parameters: Parameters) -> Instant {
        // Advances that are less than a window apart keep the task running, so only the last advance is applied.
        guard wake.task.kind == .continued, let advance = step.advance,
            wake.launchedAt + advance < wake.deadline, step.delay > advance
        else { return wake.deadline }
        let advances = (step.delay - 1) / advance
        let deadline = self.lanes.progressReported(
            wake.task.arrival,
            completed: UInt64(advances),
            at: wake.launchedAt + advances * advance,
            parameters
        )
        guard let deadline else { preconditionFailure("a continued task has progress") }
        return deadline
    }

    /// Removes the scripted answer to a task whose wake ended.
    mutating func ended(_ wake: TaskWake) {
        self.taskAnswers[wake.task.arrival] = nil
    }
}
