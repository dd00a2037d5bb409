import Policy
import WakeGateTestKit

/// One random trace of background tasks, simulated and checked.
struct TaskRun {
    private(set) var violations: [String] = []
    private(set) var sightings = Coverage<String>()

    init(_ trace: TaskTrace) throws {
        var simulator = try Simulator()
        var ledgers: [String: TaskLedger] = [:]
        var moments: [Instant] = []
        func follow(_ line: OutcomeLine) {
            moments.append(line.moment)
            ledgers[line.device]?.follow(line)
        }
        func feed(_ line: String) throws { try simulator.take(line, follow) }
        for header in trace.headers { try feed(header) }
        var settled: Int64 = -1
        let end = trace.until ?? .max
        for step in trace.steps {
            // Events after the end have no effect.
            guard step.moment <= end else {
                try feed(step.line)
                continue
            }
            if ledgers[step.device] == nil { ledgers[step.device] = TaskLedger(name: step.device, trace: trace) }
            if step.moment > settled { try feed(step.barrier) }
            settled = step.moment
            ledgers[step.device]?.settled(at: step.moment)
            ledgers[step.device]?.happens(step.event)
            try feed(step.line)
        }
        let summary = simulator.finish(follow)
        if moments != moments.sorted() { self.violations.append("order: lines are not ordered by time") }
        for name in ledgers.keys.sorted() {
            ledgers[name]?.settled(at: min(Int64(1) << 50, end))
            self.violations += ledgers[name]?.violations ?? []
            self.sightings.add(ledgers[name]?.sightings ?? Coverage())
        }
        self.checkCounters(summary, Array(ledgers.values), trace)
    }

    private mutating func checkCounters(_ summary: Summary, _ ledgers: [TaskLedger], _ trace: TaskTrace) {
        func sum(_ prefix: String) -> Int {
            Summary.names.filter { $0.hasPrefix(prefix) }.reduce(0) { $0 + summary[$1] }
        }
        let pushes =
            summary["completed"] + summary["coalesced"] + sum("discarded.") + summary["pending"] + summary["inFlight"]
        let requests =
            summary["tasks.replaced"] + summary["tasks.cancelled"] + sum("tasks.discarded.") + sum("tasks.results.")
            - summary["tasks.results.lost"] + summary["tasks.waiting"] + summary["tasks.inFlight"]
        let transfers =
            summary["sessions.completed"] + sum("sessions.discarded.") + summary["sessions.waiting"]
            + summary["sessions.inFlight"]
        let arrivals = [("accepted", pushes), ("tasks.submitted", requests), ("sessions.finished", transfers)]
        for (name, accountedFor) in arrivals where summary[name] != accountedFor {
            self.violations.append("conservation: \(accountedFor) of \(name) are accounted for: \(summary.json)")
        }
        if trace.until != nil { self.sightings.note("trace.cut") }
        let mustEnd = ["pending", "inFlight", "tasks.inFlight", "sessions.inFlight", "sessions.waiting"]
        if trace.until == nil, mustEnd.contains(where: { summary[$0] > 0 }) {
            self.violations.append("starvation: something never ended: \(summary.json)")
        }
        if trace.until == nil, summary["tasks.waiting"] > 0, trace.taskLimits.usageWindow == 0 {
            self.violations.append("starvation: a request never launched: \(summary.json)")
        }
        for name in Summary.names {
            let counted = ledgers.reduce(0) { $0 + $1.count(name) }
            if summary[name] == counted { continue }
            self.violations.append("counters: the summary says \(summary[name]) \(name), the lines \(counted)")
        }
    }
}
