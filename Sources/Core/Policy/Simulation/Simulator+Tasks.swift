// MARK: - Events of requests and sessions

extension Simulator {
    mutating func submitted(_ request: TraceRequest, _ device: Int) {
        let subject = OutcomeLine.Subject.task(request.identifier)
        let isPermitted = self.permitted?.contains { $0.matches(request.identifier) } ?? true
        let name = self.taskName(request.identifier)
        let action = self.devices[device].lanes.submitted(
            name,
            request.kind,
            earliestBegin: request.earliestBegin,
            at: self.now,
            isPermitted: isPermitted,
            slotIsFree: true,
            self.parameters
        )
        if case .refused(let refusal) = action {
            self.summary["tasks.refused.\(refusal.rawValue)"] += 1
            return self.emit(.refusal(refusal), subject, device)
        }
        self.summary["tasks.submitted"] += 1
        self.replace(action.replaced)
        guard case .launched(let wake, _) = action else {
            return self.emit(.arrival(action.replaced == nil ? .scheduled : .replaced), subject, device)
        }
        self.emit(.arrival(.launched), subject, device)
        self.taskLaunched(wake, device)
    }

    mutating func transfersFinished(_ session: String, _ count: UInt64, _ device: Int) {
        switch self.devices[device].lanes.transfersFinished(self.taskName(session), count: count, at: self.now) {
        case .waits, .merged: self.summary["sessions.finished"] += Int(count)
        case .refused: self.summary["sessions.refused"] += Int(count)
        }
    }

    mutating func cancelled(_ identifier: String, _ device: Int) {
        let action = self.devices[device].lanes.cancelled(self.taskName(identifier))
        self.summary["tasks.cancelled"] += action.discarded.count
        for wake in action.ended { self.taskEnded(wake, .cancelled, nil, device) }
    }

    mutating func taskLaunched(_ wake: TaskWake, _ device: Int) {
        let task = wake.task
        let script = self.taskScripts[self.text(of: task)] ?? .reliable
        self.devices[device].launched(wake, script, self.parameters)
        let event = OutcomeLine.Event.launch(LaunchKind(task.kind), count: task.transfers, attempt: task.attempts)
        self.emit(event, self.subject(of: task), device)
    }

    mutating func answered(_ wake: TaskWake, _ answer: TaskScriptAnswer, _ device: Int) {
        guard let outcome = TaskOutcome(rawValue: answer.rawValue) else {
            preconditionFailure("an answer that never comes has no moment")
        }
        let action = self.devices[device].lanes.taskEnded(wake.task.arrival, outcome, self.parameters)
        self.taskEnded(wake, outcome, action, device)
    }

    /// Emits the outcome of a wake.
    ///
    /// - `action`: the change of the task; nil if a conditions report or a cancellation ended the wake.
    mutating func taskEnded(
        _ wake: TaskWake,
        _ outcome: TaskOutcome,
        _ action: TaskEndedAction?,
        _ device: Int
    ) {
        self.devices[device].ended(wake)
        let prefix = wake.task.kind == .urlSession ? "sessions" : "tasks"
        self.summary["\(prefix).results.\(outcome.rawValue)"] += 1
        self.emit(.result(.task(wake.task.kind, outcome)), self.subject(of: wake.task), device)
        switch action {
        case .ended(let task): self.summary["sessions.completed"] += Int(task.transfers)
        case .waits(_, let replaced): self.replace(replaced)
        case .replaced(let task): self.replace(task)
        case .merged, nil: break
        case .discarded(let task, let reason, let replaced):
            self.replace(replaced)
            self.discard(task, reason, device)
        }
    }

    mutating func discard(_ task: BackgroundTask, _ reason: DiscardReason, _ device: Int) {
        self.summary.count("discarded.\(reason.rawValue)", task)
        self.emit(.discard(reason), self.subject(of: task), device)
    }

    private mutating func replace(_ replaced: BackgroundTask?) {
        if replaced != nil { self.summary["tasks.replaced"] += 1 }
    }

    // MARK: Names

    private mutating func taskName(_ text: String) -> TaskName {
        if let known = self.taskNumbers[text] { return known }
        let name = TaskName(rawValue: UInt64(self.taskNames.count))
        self.taskNames.append(text)
        self.taskNumbers[text] = name
        return name
    }

    private func text(of task: BackgroundTask) -> String { self.taskNames[Int(task.name.rawValue)] }

    private func subject(of task: BackgroundTask) -> OutcomeLine.Subject {
        task.kind == .urlSession ? .session(self.text(of: task)) : .task(self.text(of: task))
    }
}

/// A script of wake outcomes, which starts again after its last step.
package struct WakeScript<Answer: ScriptedAnswer>: Hashable, Sendable {
    /// One answer.
    package struct Step: Hashable, Sendable {
        package var answer: Answer
        /// The time of the answer, in milliseconds after the launch.
        package var delay: Int64
        /// The time between two advances of a continued task before the answer, in milliseconds; nil for no advances.
        package var advance: Int64?

        package init(answer: Answer, delay: Int64, advance: Int64? = nil) {
            self.answer = answer
            self.delay = delay
            self.advance = advance
        }
    }

    /// The steps, at least one.
    let steps: [Step]

    package init(steps: [Step]) {
        self.steps = steps
    }

    /// A worker that succeeds one second after each launch.
    package static var reliable: Self { Self(steps: [Step(answer: Answer.success, delay: 1000)]) }

    /// Returns the answer to launch number `launch` of a device, counted from 0.
    package func step(_ launch: Int) -> Step { self.steps[launch % self.steps.count] }
}

/// A scripted answer to a wake: a result, `lost` if the worker's stream ends, or `none` if no answer comes.
package protocol ScriptedAnswer: RawRepresentable<String>, CaseIterable, Hashable, Sendable {
    /// The answer of a reliable worker.
    static var success: Self { get }
}

/// The scripted answer to the wake of a push.
package enum PushScriptAnswer: String, ScriptedAnswer {
    case newData, noData, failed, lost, none

    package static var success: Self { .newData }
}

/// The scripted answer to the wake of a task or a session.
package enum TaskScriptAnswer: String, ScriptedAnswer {
    case success, failure, lost, none
}

package typealias WorkerScript = WakeScript<PushScriptAnswer>
package typealias TaskScript = WakeScript<TaskScriptAnswer>
