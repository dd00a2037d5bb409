import Policy
import WakeGateTestKit

/// One random trace of background tasks, simulated and checked.
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
        let summary = simulator.finish(
            output: { ledgers[$0.device]?.follow($0) },
            tasks: { ledgers[$0.device]?.follow($0) }
        )
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

/// The charged launches of one device, checked for interval, allowance and budget.
struct LaunchCharges {
    private struct Charge {
        var moment: Int64
        /// True if it used the immediate allowance before the interval was over.
        var jumped: Bool
    }

    /// The charged launches that were not lost, in order.
    private var kept: [Charge] = []
    private var penalty: Int64 = 0
    private var isLatestCharged = false
    /// True once it is unknown if a launch was charged, because the device became active in the same millisecond.
    /// Nothing is checked from then on.
    private var isUncertain = false

    /// Records a launch of `priority` at `now`, in one of `states`.
    ///
    /// - Returns: the promises that it breaks.
    mutating func launched(
        _ priority: Int,
        _ now: Int64,
        _ states: [DeviceFacts],
        _ limits: TraceLimits,
        _ sightings: inout Sightings
    ) -> [(Violation.Promise, String)] {
        self.isLatestCharged = false
        let open = states.filter { !$0.isHeld(priority) }
        guard !open.isEmpty else { return [(.holds, "launched at priority \(priority) while held")] }
        if open.contains(where: \.isActive) {
            let mayBeCharged = open.contains { !$0.isActive && self.isSpaced(priority, now, $0, limits) }
            sightings.saw(mayBeCharged ? "launch.uncertain" : "launch.active")
            if mayBeCharged { self.isUncertain = true }
            return []
        }
        guard !self.isUncertain else { return [] }
        sightings.saw("launch.charged")
        let isDue = open.contains { self.isSpaced(5, now, $0, limits) }
        var broken: [(Violation.Promise, String)] = []
        if priority < 10 && !isDue {
            broken.append(
                (.spacing, "launched \(now - (self.kept.last?.moment ?? 0)) ms after the last, penalty \(self.penalty)")
            )
        }
        let jumps = priority == 10 && !open.contains { self.isSpaced(priority, now, $0, limits, asImmediate: true) }
        if jumps { sightings.saw("launch.jumped") }
        if self.penalty > 0 { sightings.saw("launch.penalised") }
        self.kept.append(Charge(moment: now, jumped: jumps))
        self.isLatestCharged = true
        if let fault = self.budgetFault(limits, &sightings) { broken.append((.budget, fault)) }
        if jumps, let fault = self.allowanceFault(limits) { broken.append((.allowance, fault)) }
        return broken
    }

    mutating func ended(_ outcome: WakeOutcome, _ limits: TraceLimits) {
        switch outcome {
        case .newData: self.penalty = 0
        case .noData, .failed: break
        case .expired: self.penalty = min(self.penalty + 1, limits.maxPenalty)
        case .lost: if self.isLatestCharged { self.kept.removeLast() }
        }
    }

    /// Returns true if the interval since the last charged launch is over. Priority 10 need not wait for it.
    private func isSpaced(
        _ priority: Int,
        _ now: Int64,
        _ state: DeviceFacts,
        _ limits: TraceLimits,
        asImmediate: Bool = false
    ) -> Bool {
        guard let last = self.kept.last, priority < 10 || asImmediate else { return true }
        return now >= last.moment + limits.interval(penalty: self.penalty, priority: priority, state)
    }

    /// Counts the launches in the latest budget window, and returns a fault if there are too many.
    private func budgetFault(_ limits: TraceLimits, _ sightings: inout Sightings) -> String? {
        var start = Int64.min
        var count: Int64 = 0
        for charge in self.kept {
            let isOpen = start != .min && charge.moment < start + limits.budgetWindow
            if start != .min && charge.moment == start + limits.budgetWindow && count == limits.dailyLaunches {
                sightings.saw("budget.waited")
            }
            if !isOpen { start = charge.moment }
            count = isOpen ? count + 1 : 1
        }
        return count > limits.dailyLaunches ? "launch \(count) of a window for \(limits.dailyLaunches)" : nil
    }

    /// Returns a fault if a series of early launches exceeds the burst and its refills.
    private func allowanceFault(_ limits: TraceLimits) -> String? {
        let jumps = self.kept.filter(\.jumped).map(\.moment)
        guard let last = jumps.last else { return nil }
        for (index, first) in jumps.enumerated() {
            let count = Int64(jumps.count - index)
            if count > limits.immediateBurst + (last - first) / limits.immediateRefill {
                return "\(count) jumps in \(last - first) ms"
            }
        }
        return nil
    }
}
