/// How the wakes of an identifier or a session end: its steps in turn, starting again after the last.
struct TaskScript: Hashable, Sendable {
    /// How a wake is answered.
    enum Answer: String, Sendable, CaseIterable {
        case success, failure
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
        /// Every how many milliseconds before that a continued task advances; nil is never.
        var advance: Int64?

        init(_ answer: Answer, delay: Int64, advance: Int64? = nil) {
            self.answer = answer
            self.delay = delay
            self.advance = advance
        }
    }

    /// At least one.
    let steps: [Step]

    /// A worker that succeeds one second after each launch.
    static let reliable = TaskScript([Step(.success, delay: 1000)])

    init(_ steps: [Step]) {
        precondition(!steps.isEmpty, "a script needs a step")
        self.steps = steps
    }

    /// The answer to launch number `launch` of a device, from 0.
    func step(_ launch: Int) -> Step {
        self.steps[launch % self.steps.count]
    }
}
