/// When a machine's conditions are told to the gateway: on change, not too often, and again after a reconnection.
///
/// A pure machine: every event carries the time in milliseconds of a clock that no one sets. It sends nothing; whoever
/// drives it asks with `timePassed` for what is to be sent, no later than `nextAt`.
package struct ConditionsReporter: Hashable, Sendable {
    /// Waits in milliseconds.
    package struct Timing: Hashable, Sendable {
        /// How long a change is looked at, so that what flickers is not told.
        package var settling: Int64 = 1000
        /// The least time between two reports.
        package var interval: Int64 = 10_000
        /// The wait after a report that did not arrive; it doubles with each.
        package var firstRetry: Int64 = 5000
        package var lastRetry: Int64 = 300_000

        package init() {}
    }

    private let timing: Timing
    private var isConnected = false
    private var current: MachineConditions?
    /// What the gateway has confirmed since the last connection.
    private var confirmed: MachineConditions?
    private var inFlight: MachineConditions?
    private var changedAt: Int64?
    private var reportedAt: Int64?
    private var retryAt: Int64?
    private var failures = 0
    private var isRefused = false

    package init(_ timing: Timing = Timing()) {
        self.timing = timing
    }

    /// The machine was read.
    package mutating func conditionsRead(_ conditions: MachineConditions, now: Int64) {
        if conditions != self.current { self.isRefused = false }
        self.current = conditions
        if conditions.changes(since: self.inFlight ?? self.confirmed).isEmpty {
            self.changedAt = nil
        } else if self.changedAt == nil {
            self.changedAt = now
        }
    }

    /// `appState` is somebody else's to tell from now on.
    package mutating func endAppState() {
        self.current?.appState = nil
        self.confirmed?.appState = nil
        self.inFlight?.appState = nil
    }

    /// The gateway can be reached (again). It may have forgotten what it was told, so it is told everything.
    package mutating func connected(now: Int64) {
        self.isConnected = true
        self.confirmed = nil
        self.isRefused = false
        self.retryAt = nil
        // What was true before the connection needs no settling.
        self.changedAt = now - self.timing.settling
    }

    package mutating func disconnected() {
        self.isConnected = false
    }

    /// When something is to be sent; nil for nothing until another event.
    package var nextAt: Int64? {
        guard self.isConnected, !self.isRefused, self.inFlight == nil, let current = self.current,
            !current.changes(since: self.confirmed).isEmpty, let changedAt = self.changedAt
        else { return nil }
        return max(
            changedAt + self.timing.settling,
            self.reportedAt.map { $0 + self.timing.interval } ?? .min,
            self.retryAt ?? .min
        )
    }

    /// The fields to send now, if it is time for it; the end of the report is to be told.
    package mutating func timePassed(now: Int64) -> MachineConditions? {
        guard let nextAt = self.nextAt, nextAt <= now, let current = self.current else { return nil }
        self.inFlight = current
        self.reportedAt = now
        self.changedAt = nil
        return current.changes(since: self.confirmed)
    }

    /// The gateway has taken the report.
    package mutating func reportConfirmed(now: Int64) {
        self.confirmed = self.inFlight
        self.inFlight = nil
        self.failures = 0
        self.retryAt = nil
        if let current = self.current, current.changes(since: self.confirmed).isEmpty { self.changedAt = nil }
    }

    /// The gateway has refused the report for good: the same is not sent again until a reconnection.
    package mutating func reportRefused(now: Int64) {
        self.inFlight = nil
        self.isRefused = true
        self.changedAt = self.changedAt ?? now
    }

    /// The report may not have arrived.
    package mutating func reportFailed(now: Int64) {
        self.inFlight = nil
        let doubled = self.timing.firstRetry << Int64(min(self.failures, 16))
        self.retryAt = now + min(self.timing.lastRetry, doubled)
        self.failures += 1
        self.changedAt = self.changedAt ?? now
    }
}
