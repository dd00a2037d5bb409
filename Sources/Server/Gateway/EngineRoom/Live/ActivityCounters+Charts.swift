import Engine
import Policy

extension ActivityCounters {
    /// The counters of background tasks for charts. The groups `waiting`, `inFlight` and `launched` have a count for
    /// each kind of task; the group `held` has a count for each hold.
    ///
    /// For the kind `urlSession`, `waiting` and `inFlight` count finished transfers, and `launched` counts wakes.
    var chartedTasks: [(group: String, counts: [(name: String, count: Int64)])] {
        var waiting = self.requests.waiting
        waiting[.urlSession] = self.sessions.waiting
        var inFlight = self.requests.inFlight
        inFlight[.urlSession] = self.sessions.inFlight
        func byKind(_ counts: PerCase<TaskKind>) -> [(name: String, count: Int64)] {
            TaskKind.allCases.map { ($0.rawValue, counts[$0]) }
        }
        return [
            ("waiting", byKind(waiting)), ("inFlight", byKind(inFlight)), ("launched", byKind(self.tasks.launched)),
            ("held", Hold.ofTasks.map { ("\($0.name)", self.requests.held[$0]) }),
        ]
    }
}
