import Policy
import WakeGateTestKit

/// One random trace of background tasks, simulated and checked.
struct TaskRun {
    private(set) var violations: [String] = []
    private(set) var sightings = Sightings()

    init(_ trace: TaskTrace) throws {
        var simulator = try Simulator()
        var ledgers: [String: TaskLedger] = [:]
        var moments: [Instant] = []
        func follow(_ line: Simulator.Line) {
            switch line {
            case .push(let line):
                moments.append(line.moment)
                ledgers[line.device]?.follow(line)
            case .task(let line):
                moments.append(line.moment)
                ledgers[line.device]?.follow(line)
            }
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
            self.sightings.add(ledgers[name]?.sightings ?? Sightings())
        }
        self.checkCounters(summary, Array(ledgers.values), trace)
    }

    private mutating func checkCounters(_ summary: Summary, _ ledgers: [TaskLedger], _ trace: TaskTrace) {
        let tasks = summary.tasks
        let ended = tasks.results.filter { $0.key != .lost }.values.reduce(0, +)
        let gone = tasks.replaced + tasks.cancelled + tasks.discarded.values.reduce(0, +) + ended
        if tasks.submitted != gone + tasks.waiting + tasks.inFlight {
            self.violations.append("conservation: the counters of requests do not balance: \(summary.json)")
        }
        let sessions = summary.sessions
        let handled = sessions.completed + sessions.discarded.values.reduce(0, +)
        if sessions.finished != handled + sessions.waiting + sessions.inFlight {
            self.violations.append("conservation: the counters of transfers do not balance: \(summary.json)")
        }
        let pushes = summary.completed + summary.coalesced + summary.discarded.values.reduce(0, +)
        if summary.accepted != pushes + summary.pending + summary.inFlight {
            self.violations.append("conservation: the counters of pushes do not balance: \(summary.json)")
        }
        if trace.until != nil { self.sightings.saw("trace.cut") }
        if trace.until == nil, summary.pending > 0 || summary.inFlight > 0 {
            self.violations.append("starvation: a push never ended: \(summary.json)")
        }
        if trace.until == nil, tasks.inFlight > 0 || sessions.inFlight > 0 || sessions.waiting > 0 {
            self.violations.append("starvation: something never ended: \(summary.json)")
        }
        if trace.until == nil, tasks.waiting > 0, trace.taskLimits.usageWindow == 0 {
            self.violations.append("starvation: a request never launched: \(summary.json)")
        }
        func total(_ count: (TaskLedger) -> Int) -> Int { ledgers.map(count).reduce(0, +) }
        var told = [tasks.submitted, tasks.replaced, tasks.cancelled, tasks.waiting]
        told += [sessions.finished, sessions.refused, sessions.completed]
        var counted = [
            total(\.counters.tasks.submitted), total(\.counters.tasks.replaced), total(\.counters.tasks.cancelled),
        ]
        counted += [total { $0.waiting.count(where: \.isRequest) }, total(\.counters.sessions.finished)]
        counted += [total(\.counters.sessions.refused), total(\.counters.sessions.completed)]
        told += [tasks.inFlight, sessions.waiting, sessions.inFlight, summary.pending, summary.inFlight]
        counted += [total { $0.flights.count(where: \.item.isRequest) }]
        counted += [total { $0.waiting.filter { $0.kind == "urlSession" }.map(\.count).reduce(0, +) }]
        counted += [total { $0.flights.filter { $0.item.kind == "urlSession" }.map(\.item.count).reduce(0, +) }]
        counted.append(total { $0.waiting.count { $0.kind == "push" } })
        counted.append(total { $0.flights.count { $0.item.kind == "push" } })
        told += [summary.accepted, summary.launched, summary.completed, summary.coalesced]
        counted += [total(\.counters.accepted), total(\.counters.launched), total(\.counters.completed)]
        counted.append(total(\.counters.coalesced))
        for outcome in WakeOutcome.allCases {
            told.append(summary.results[outcome] ?? 0)
            counted.append(total { $0.counters.results[outcome] ?? 0 })
        }
        for reason in DiscardReason.ofPushes {
            told.append(summary.discarded[reason] ?? 0)
            counted.append(total { $0.counters.discarded[reason] ?? 0 })
        }
        for outcome in TaskOutcome.allCases {
            told += [tasks.results[outcome] ?? 0, sessions.results[outcome] ?? 0]
            counted.append(total { $0.counters.tasks.results[outcome] ?? 0 })
            counted.append(total { $0.counters.sessions.results[outcome] ?? 0 })
        }
        for reason in DiscardReason.ofTasks {
            told += [tasks.discarded[reason] ?? 0, sessions.discarded[reason] ?? 0]
            counted.append(total { $0.counters.tasks.discarded[reason] ?? 0 })
            counted.append(total { $0.counters.sessions.discarded[reason] ?? 0 })
        }
        for refusal in TaskRefusal.allCases {
            told.append(tasks.refused[refusal] ?? 0)
            counted.append(total { $0.counters.tasks.refused[refusal] ?? 0 })
        }
        if told != counted { self.violations.append("counters: the summary says \(told), the lines \(counted)") }
    }
}

/// The number of occurrences of each corner case, to ensure that the promises were tested.
struct Sightings {
    private(set) var counts: [String: Int] = [:]

    mutating func saw(_ what: String) {
        self.counts[what, default: 0] += 1
    }

    mutating func add(_ other: Sightings) {
        self.counts.merge(other.counts, uniquingKeysWith: +)
    }
}
