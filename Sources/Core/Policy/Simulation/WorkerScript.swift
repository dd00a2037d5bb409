/// How the trace's worker answers: its steps in turn, starting again after the last.
struct WorkerScript: Hashable, Sendable {
    /// How a wake is answered.
    enum Answer: String, Sendable, CaseIterable {
        case newData, noData, failed
        /// The worker's stream ends.
        case lost
        /// The worker never reports.
        case none
    }

    /// One answer.
    struct Step: Hashable, Sendable {
        var answer: Answer
        /// Milliseconds after the launch.
        var delay: Int64

        init(_ answer: Answer, delay: Int64) {
            self.answer = answer
            self.delay = delay
        }
    }

    /// At least one.
    let steps: [Step]

    /// A worker that reports new data one second after each launch.
    static let reliable = WorkerScript([Step(.newData, delay: 1000)])

    init(_ steps: [Step]) {
        precondition(!steps.isEmpty, "a worker needs a step")
        self.steps = steps
    }

    /// The answer to a device's launch number `launch`, from 0.
    func step(_ launch: Int) -> Step {
        self.steps[launch % self.steps.count]
    }
}
