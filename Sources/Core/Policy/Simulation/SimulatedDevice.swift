/// A device of a simulation: what the policy knows of it, and what its worker will do.
struct SimulatedDevice {
    /// How and when a task in flight will be answered.
    struct TaskAnswer {
        var answer: TaskScriptAnswer
        var moment: Instant
    }

    /// Something in flight whose end is due.
    enum DueEnd {
        case push(PushScriptAnswer)
        case task(TaskWake, TaskScriptAnswer)
        /// A deadline passed.
        case expiry
    }

    let name: String
    var lanes = DeviceLanes()
    /// How often pushes were launched, which selects the worker's next step.
    var launches = 0
    /// How and when the push in flight will be answered; nil when it will expire.
    var answer: (answer: PushScriptAnswer, moment: Instant)?
    /// How often each identifier was launched.
    private var taskLaunches: [TaskName: Int] = [:]
    /// How often each session was.
    private var sessionLaunches: [TaskName: Int] = [:]
    /// By the wakes' arrivals; none for what will expire.
    private var taskAnswers: [UInt64: TaskAnswer] = [:]

    init(name: String) {
        self.name = name
    }

    /// When something next happens by itself from `now` on, or nil.
    func nextMoment(from now: Instant, _ parameters: Parameters) -> Instant? {
        var moments = self.taskAnswers.values.map(\.moment)
        if let answer = self.answer { moments.append(answer.moment) }
        if let moment = self.lanes.nextMoment(from: now, parameters) { moments.append(moment) }
        return moments.min()
    }

    /// The first of what is in flight, lane by lane, whose end is due at `now`.
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

    /// The state holds a push that was just launched: decides how it is answered.
    mutating func launched(_ wake: WakeInFlight, _ script: WorkerScript) {
        let step = script.step(self.launches)
        self.launches += 1
        let moment = wake.launchedAt + step.delay
        // An answer on or after the deadline does not count.
        self.answer = step.answer == .none || moment >= wake.deadline ? nil : (step.answer, moment)
    }

    /// A task was just launched: decides how it is answered.
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
        self.taskAnswers[wake.task.arrival] = TaskAnswer(answer: step.answer, moment: moment)
    }

    /// Lets a continued task advance as its step says.
    ///
    /// - Returns: the deadline in the end.
    private mutating func advanced(_ wake: TaskWake, _ step: TaskScript.Step, _ parameters: Parameters) -> Instant {
        // Advances that are less than a window apart keep the task alive: the last of them stands for all.
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

    /// A wake of a task ended.
    mutating func ended(_ wake: TaskWake) {
        self.taskAnswers[wake.task.arrival] = nil
    }
}
