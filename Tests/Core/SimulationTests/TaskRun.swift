import Policy
import WakeGateTestKit

/// One random trace of background tasks, simulated and judged.
struct TaskRun {
    private(set) var violations: [String] = []
    private(set) var sightings = Sightings()

    init(_ trace: TaskTrace) throws {
        var simulator = try Simulator()
        var ledgers: [String: TaskLedger] = [:]
        func feed(_ line: String) throws {
            try simulator.take(
                line,
                output: { ledgers[$0.device]?.follow($0) },
                tasks: { ledgers[$0.device]?.follow($0) }
            )
        }
        for header in trace.headers { try feed(header) }
        var settled: Int64 = -1
        let end = trace.until ?? .max
        for step in trace.steps {
            // What comes after the end changes nothing.
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
        let summary = simulator.finish(
            output: { ledgers[$0.device]?.follow($0) },
            tasks: { ledgers[$0.device]?.follow($0) }
        )
        for name in ledgers.keys.sorted() {
            ledgers[name]?.settled(at: min(Int64(1) << 50, end))
            self.violations += ledgers[name]?.violations ?? []
            self.sightings.add(ledgers[name]?.sightings ?? Sightings())
        }
        self.checkBooks(summary, Array(ledgers.values), trace)
    }

    private mutating func checkBooks(_ summary: Summary, _ ledgers: [TaskLedger], _ trace: TaskTrace) {
        let tasks = summary.tasks
        let ended = tasks.results.filter { $0.key != .lost }.values.reduce(0, +)
        let gone = tasks.replaced + tasks.cancelled + tasks.discarded.values.reduce(0, +) + ended
        if tasks.submitted != gone + tasks.waiting + tasks.inFlight {
            self.violations.append("conservation: the books of requests do not balance: \(summary.json)")
        }
        let sessions = summary.sessions
        let handled = sessions.completed + sessions.discarded.values.reduce(0, +)
        if sessions.finished != handled + sessions.waiting + sessions.inFlight {
            self.violations.append("conservation: the books of transfers do not balance: \(summary.json)")
        }
        if trace.until != nil { self.sightings.saw("trace.cut") }
        if trace.until == nil, tasks.inFlight > 0 || sessions.inFlight > 0 || sessions.waiting > 0 {
            self.violations.append("starvation: something never ended: \(summary.json)")
        }
        if trace.until == nil, tasks.waiting > 0, trace.taskLimits.usageWindow == 0 {
            self.violations.append("starvation: a request never launched: \(summary.json)")
        }
        func total(_ count: (TaskLedger) -> Int) -> Int { ledgers.map(count).reduce(0, +) }
        var told = [tasks.submitted, tasks.replaced, tasks.cancelled, tasks.waiting]
        told += [sessions.finished, sessions.refused, sessions.completed]
        var counted = [total(\.books.tasks.submitted), total(\.books.tasks.replaced), total(\.books.tasks.cancelled)]
        counted += [total { $0.waiting.count(where: \.isRequest) }, total(\.books.sessions.finished)]
        counted += [total(\.books.sessions.refused), total(\.books.sessions.completed)]
        told += [tasks.inFlight, sessions.waiting, sessions.inFlight, summary.pending, summary.inFlight]
        counted += [total { $0.flights.count(where: \.item.isRequest) }]
        counted += [total { $0.waiting.filter { $0.kind == "urlSession" }.map(\.count).reduce(0, +) }]
        counted += [total { $0.flights.filter { $0.item.kind == "urlSession" }.map(\.item.count).reduce(0, +) }]
        counted.append(total { $0.waiting.count { $0.kind == "push" } })
        counted.append(total { $0.flights.count { $0.item.kind == "push" } })
        for outcome in TaskOutcome.allCases {
            told += [tasks.results[outcome] ?? 0, sessions.results[outcome] ?? 0]
            counted.append(total { $0.books.tasks.results[outcome] ?? 0 })
            counted.append(total { $0.books.sessions.results[outcome] ?? 0 })
        }
        for reason in TaskDiscardReason.allCases {
            told += [tasks.discarded[reason] ?? 0, sessions.discarded[reason] ?? 0]
            counted.append(total { $0.books.tasks.discarded[reason] ?? 0 })
            counted.append(total { $0.books.sessions.discarded[reason] ?? 0 })
        }
        for refusal in TaskRefusal.allCases {
            told.append(tasks.refused[refusal] ?? 0)
            counted.append(total { $0.books.tasks.refused[refusal] ?? 0 })
        }
        if told != counted { self.violations.append("books: the summary says \(told), the lines \(counted)") }
    }
}
