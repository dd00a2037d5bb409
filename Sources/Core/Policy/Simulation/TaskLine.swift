import Wire

/// One line of a simulation's output: what happened to a request or to a session, where and when.
package struct TaskLine: Hashable, Sendable {
    /// What it happened to.
    package enum Subject: Hashable, Sendable {
        /// A request, by its identifier.
        case task(String)
        /// Finished transfers, by the name of their session.
        case session(String)
    }

    package enum Event: Hashable, Sendable {
        case submit(Disposition)
        /// - `transfers`: how many the wake of a session stands for.
        case launch(TaskKind, transfers: UInt64, attempt: UInt32)
        case result(TaskOutcome)
        case discard(TaskDiscardReason)
    }

    /// What the submitter is told of a request.
    package enum Disposition: Hashable, Sendable {
        case launched, scheduled, replaced
        case refused(TaskRefusal)

        package var name: String {
            switch self {
            case .launched: "launched"
            case .scheduled: "scheduled"
            case .replaced: "replaced"
            case .refused(let refusal): refusal.rawValue
            }
        }
    }

    package var moment: Instant
    package var device: String
    package var subject: Subject
    package var event: Event

    /// The line as a JSON object, without a line end.
    package var json: String {
        JSONWriter.line(at: self.moment, device: self.device) { self.writeEvent(&$0) }
    }

    private func writeEvent(_ writer: inout JSONWriter) {
        switch self.event {
        case .submit(let disposition):
            writer.string("submit")
            self.writeSubject(&writer)
            writer.key("disposition")
            writer.string(disposition.name)
        case .launch(let kind, let transfers, let attempt):
            writer.string("launch")
            writer.key("kind")
            writer.string(kind.rawValue)
            self.writeSubject(&writer)
            if case .session = self.subject {
                writer.key("count")
                writer.integer(transfers)
            }
            writer.key("attempt")
            writer.integer(attempt)
        case .result(let outcome):
            writer.string("result")
            self.writeSubject(&writer)
            writer.key("result")
            writer.string(outcome.rawValue)
        case .discard(let reason):
            writer.string("discard")
            self.writeSubject(&writer)
            writer.key("reason")
            writer.string(reason.rawValue)
        }
    }

    private func writeSubject(_ writer: inout JSONWriter) {
        switch self.subject {
        case .task(let identifier):
            writer.key("task")
            writer.string(identifier)
        case .session(let name):
            writer.key("session")
            writer.string(name)
        }
    }
}
