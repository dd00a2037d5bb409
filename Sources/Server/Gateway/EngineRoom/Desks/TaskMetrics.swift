import Engine
import Policy
import Wire

/// Every metric of background tasks and sessions.
struct TaskMetrics {
    let engine: EmbeddedEngine
    let dispatcher: Dispatcher

    /// All of it, in the order of `Metric.ofTasks`.
    func write(to text: inout MetricsText) {
        self.writeRequests(to: &text)
        self.writeSessions(to: &text)
        self.writeWakes(to: &text)
    }

    private func writeRequests(to text: inout MetricsText) {
        let books = self.engine.totalsShown
        let requests = books.requests
        text.values(.tasksSubmitted, Self.byKind(requests.submitted))
        text.values(.tasksRefused, TaskRefusal.allCases.map { ($0.rawValue, requests.refused[$0]) })
        text.value(.tasksReplaced, requests.replaced)
        text.value(.tasksCancelled, requests.cancelled)
        text.values(.tasksDiscarded, Self.byReason(requests.discarded))
        text.values(.tasksWaiting, Self.byKind(requests.waiting))
        text.values(.tasksInFlight, Self.byKind(requests.inFlight))
        text.value(.tasksStalled, Int64(self.dispatcher.stalledTaskCount))
        text.value(.taskProgressReports, self.dispatcher.progressReports)
        text.values(.tasksHeld, Hold.ofTasks.map { ("\($0.name)", requests.held[$0]) })
        text.value(.tasksUnaccounted, requests.submitted.sum - books.requestsAccountedFor)
        text.value(.taskMemory, Int64(self.engine.taskBytes))
        text.value(.taskMemoryMax, Int64(self.engine.taskBytesMax))
    }

    private func writeSessions(to text: inout MetricsText) {
        let sessions = self.engine.totalsShown.sessions
        text.value(.sessionsFinished, sessions.finished)
        text.value(.sessionsRefused, sessions.refused)
        text.value(.sessionsCompleted, sessions.completed)
        text.values(.sessionsDiscarded, Self.byReason(sessions.discarded))
        text.value(.sessionsWaiting, sessions.waiting)
        text.value(.sessionsInFlight, sessions.inFlight)
        text.value(.sessionsUnaccounted, sessions.finished - sessions.accountedFor)
    }

    private func writeWakes(to text: inout MetricsText) {
        let books = self.engine.totalsShown.tasks
        let times = self.engine.times
        text.values(.taskWakesLaunched, TaskKind.allCases.map { ($0.rawValue, books.launched[$0]) })
        text.values(
            .taskWakesEnded,
            byLabels: TaskKind.allCases.flatMap { kind in
                TaskOutcome.allCases.map { ([kind.rawValue, $0.rawValue], books[kind][$0]) }
            }
        )
        text.histograms(
            .taskWakeDuration,
            TaskKind.allCases.map { ($0.rawValue, times[$0]) },
            unitsPerBase: 1000
        )
    }

    private static func byKind(_ counts: PerCase<TaskKind>) -> [(label: String, value: Int64)] {
        TaskKind.requestable.map { ($0.rawValue, counts[$0]) }
    }

    private static func byReason(_ counts: PerCase<DiscardReason>) -> [(label: String, value: Int64)] {
        DiscardReason.ofTasks.map { ($0.rawValue, counts[$0]) }
    }
}
