import Policy
import WakeGateTestKit

/// Which launches of one device were charged, and whether each kept to interval, allowance and budget.
struct LaunchCharges {
    private struct Charge {
        var moment: Int64
        /// Whether it came before the interval was over, on the immediate allowance.
        var jumped: Bool
    }

    /// The charged launches that were not lost, in order.
    private var kept: [Charge] = []
    private var penalty: Int64 = 0
    private var isLatestCharged = false
    /// A launch may have been free or charged, for the device became active in the same millisecond: from
    /// there on nothing can be said.
    private var isUncertain = false

    /// A launch of `priority` at `now`, in one of `states`.
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

    /// Whether the interval since the last charged launch is over; priority 10 need not wait for it.
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

    /// Counts the launches of the latest budget window.
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

    /// No run of jumps may be longer than the burst and what was refilled during it.
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
