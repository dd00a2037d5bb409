// MARK: - Events of requests and sessions

extension Simulator {
    mutating func submitted(
        _ request: TraceRequest,
        _ device: Int,
        _ now: Instant,
        _ output: (Line) -> Void
    ) {
        let subject = TaskLine.Subject.task(request.identifier)
        let isPermitted = self.permitted?.contains { $0.matches(request.identifier) } ?? true
        let submission = TaskSubmission(
            name: self.taskName(request.identifier),
            kind: request.kind,
            earliestBegin: request.earliestBegin
        )
        let action = self.devices[device].lanes.submitted(
            submission,
            at: now,
            isPermitted: isPermitted,
            slotIsFree: true,
            self.parameters
        )
        switch action {
        case .refused(let refusal):
            self.summary.tasks.refused[refusal, default: 0] += 1
            self.emit(.submit(.refused(refusal)), subject, device, now, output)
        case .launched(let wake, let replaced):
            self.summary.tasks.submitted += 1
            self.replace(replaced)
            self.emit(.submit(.launched), subject, device, now, output)
            self.taskLaunched(wake, device, now, output)
        case .waits(_, let replaced):
            self.summary.tasks.submitted += 1
            self.replace(replaced)
            self.emit(.submit(replaced == nil ? .scheduled : .replaced), subject, device, now, output)
        }
    }

    mutating func transfersFinished(_ session: String, _ count: UInt64, _ device: Int, _ now: Instant) {
        switch self.devices[device].lanes.transfersFinished(self.taskName(session), count: count, at: now) {
        case .waits, .merged: self.summary.sessions.finished += Int(count)
        case .refused: self.summary.sessions.refused += Int(count)
        }
    }

    mutating func cancelled(_ identifier: String, _ device: Int, _ now: Instant, _ output: (Line) -> Void) {
        let action = self.devices[device].lanes.cancelled(self.taskName(identifier))
        self.summary.tasks.cancelled += action.discarded.count
        for wake in action.ended { self.taskEnded(wake, .cancelled, device, now, output) }
    }

    mutating func taskLaunched(_ wake: TaskWake, _ device: Int, _ now: Instant, _ output: (Line) -> Void) {
        let script = self.taskScripts[self.text(of: wake.task)] ?? .reliable
        self.devices[device].launched(wake, script, self.parameters)
        let event = TaskLine.Event.launch(
            wake.task.kind,
            transfers: wake.task.transfers,
            attempt: wake.task.attempts
        )
        self.emit(event, self.subject(of: wake.task), device, now, output)
    }

    mutating func answered(
        _ wake: TaskWake,
        _ answer: TaskScriptAnswer,
        _ device: Int,
        _ now: Instant,
        _ output: (Line) -> Void
    ) {
        guard let outcome = TaskOutcome(rawValue: answer.rawValue) else {
            preconditionFailure("an answer that never comes has no moment")
        }
        let action = self.devices[device].lanes.taskEnded(wake.task.arrival, outcome, self.parameters)
        self.taskEnded(wake, outcome, device, now, output)
        self.taskEnded(action, device, now, output)
    }

    /// Emits the outcome of a wake.
    mutating func taskEnded(
        _ wake: TaskWake,
        _ outcome: TaskOutcome,
        _ device: Int,
        _ now: Instant,
        _ output: (Line) -> Void
    ) {
        self.devices[device].ended(wake)
        if wake.task.kind == .urlSession {
            self.summary.sessions.results[outcome, default: 0] += 1
        } else {
            self.summary.tasks.results[outcome, default: 0] += 1
        }
        self.emit(.result(outcome), self.subject(of: wake.task), device, now, output)
    }

    /// Emits the change of a task whose wake ended.
    mutating func taskEnded(
        _ action: TaskEndedAction,
        _ device: Int,
        _ now: Instant,
        _ output: (Line) -> Void
    ) {
        switch action {
        case .ended(let task): self.summary.sessions.completed += Int(task.transfers)
        case .waits(_, let replaced): self.replace(replaced)
        case .replaced(let task): self.replace(task)
        case .merged: break
        case .discarded(let task, let reason, let replaced):
            self.replace(replaced)
            self.discard(task, reason, device, now, output)
        }
    }

    mutating func discard(
        _ task: BackgroundTask,
        _ reason: DiscardReason,
        _ device: Int,
        _ now: Instant,
        _ output: (Line) -> Void
    ) {
        if task.kind == .urlSession {
            self.summary.sessions.discarded[reason, default: 0] += Int(task.transfers)
        } else {
            self.summary.tasks.discarded[reason, default: 0] += 1
        }
        self.emit(.discard(reason), self.subject(of: task), device, now, output)
    }

    private mutating func replace(_ replaced: BackgroundTask?) {
        if replaced != nil { self.summary.tasks.replaced += 1 }
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

    private func subject(of task: BackgroundTask) -> TaskLine.Subject {
        task.kind == .urlSession ? .session(self.text(of: task)) : .task(self.text(of: task))
    }

    private func emit(
        _ event: TaskLine.Event,
        _ subject: TaskLine.Subject,
        _ device: Int,
        _ now: Instant,
        _ output: (Line) -> Void
    ) {
        output(.task(TaskLine(moment: now, device: self.devices[device].name, subject: subject, event: event)))
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
    static var reliable: Self { Self(steps: [Step(answer: Answer.success, delay: 1000)]) }

    /// Returns the answer to launch number `launch` of a device, counted from 0.
    func step(_ launch: Int) -> Step { self.steps[launch % self.steps.count] }
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
