import Policy
import WakeGateTestKit

/// Checks the outcome lines of one device against the trace, and records each broken promise.
///
/// It tracks coalesced pushes and charged launches, and never computes when a launch is due.
struct DeviceLedger {
    struct Item {
        var apnsID: String
        var priority: Int
        var expiry: Int64
        var coalesced = 0
        var attempts: Int64 = 0
        var pendingSince: Int64

        mutating func absorb(_ older: Item) {
            self.coalesced += older.coalesced + 1
            self.priority = max(self.priority, older.priority)
            self.expiry = max(self.expiry, older.expiry)
            self.pendingSince = min(self.pendingSince, older.pendingSince)
        }
    }

    let name: String
    let facts: TraceFacts
    private(set) var violations: [Violation] = []
    private(set) var sightings = Sightings()
    private(set) var pending: Item?
    private(set) var inFlight: Item?
    private(set) var accepted = 0
    private(set) var completed = 0
    private(set) var coalesced = 0
    private(set) var discarded = 0

    private var launchedAt: Int64 = 0
    private var charges = LaunchCharges()
    /// The push that the next line must launch, if any.
    private var mustLaunch: String?
    private var mustDiscard: (apnsID: String, reason: DiscardReason)?

    init(name: String, facts: TraceFacts) {
        self.name = name
        self.facts = facts
    }

    mutating func follow(_ line: OutcomeLine) {
        let now = line.moment.milliseconds
        self.checkPending(now)
        if let must = self.mustLaunch {
            let launches = if case .launch = line.event { line.apnsID == must } else { false }
            if !launches { self.broke(.disposition, now, "\(must) was reported as launched and did not launch") }
        }
        if let must = self.mustDiscard, line.event != .discard(must.reason) || line.apnsID != must.apnsID {
            self.broke(.retry, now, "\(must.apnsID) should have been discarded (\(must.reason))")
            self.mustDiscard = nil
        }
        switch line.event {
        case .push(let disposition): self.pushed(line.apnsID, disposition, now)
        case .launch(let coalesced, let attempt): self.launched(line.apnsID, Int(coalesced), Int64(attempt), now)
        case .result(let outcome): self.ended(line.apnsID, outcome, now)
        case .discard(let reason): self.dropped(line.apnsID, reason, now)
        }
    }

    /// Checks the end of the outcome.
    mutating func finish() {
        if let must = self.mustDiscard { self.broke(.retry, 0, "\(must.apnsID) was never discarded") }
        if let must = self.mustLaunch { self.broke(.disposition, 0, "\(must) was reported as launched, and never was") }
    }

    private mutating func broke(_ promise: Violation.Promise, _ now: Int64, _ what: String) {
        self.violations.append(Violation(promise: promise, moment: now, device: self.name, what: what))
    }

    private mutating func checkPending(_ now: Int64) {
        guard let pending = self.pending, self.mustLaunch == nil else { return }
        if pending.expiry < now { self.broke(.expiry, now, "\(pending.apnsID) waits past its life") }
        var before = DeviceFacts()
        for report in self.facts.reports[self.name] ?? [] where report.moment < now {
            if report.device.appState == "forceQuit", before.appState != "forceQuit",
                pending.pendingSince < report.moment
            {
                self.broke(.forceQuit, now, "\(pending.apnsID) outlived the force quit")
            }
            before = report.device
        }
    }
}

// MARK: - Pushes

extension DeviceLedger {
    private mutating func pushed(_ name: String, _ disposition: OutcomeLine.Disposition, _ now: Int64) {
        self.accepted += 1
        self.sightings.saw("disposition.\(disposition)")
        guard let push = self.facts.pushes[name], push.moment == now else {
            return self.broke(.order, now, "\(name) did not arrive now")
        }
        let isNowOrNever = push.expiration == 0
        let isTooLate = push.expiration.map { $0 != 0 && $0 <= now } ?? false
        if disposition == .discarded {
            if !isNowOrNever && !isTooLate { self.broke(.expiry, now, "\(name) was discarded while it lives") }
            self.mustDiscard = (name, .expired)
            return
        }
        if isTooLate { self.broke(.expiry, now, "\(name) came too late, and was taken") }
        if isNowOrNever {
            self.sightings.saw("nowOrNever.\(disposition)")
            if disposition != .launched { self.broke(.expiry, now, "\(name) waits, and should be now or never") }
        }
        if disposition != .launched, (disposition == .coalesced) != (self.pending != nil) {
            self.broke(.disposition, now, "\(name) was reported as \(disposition)")
        }
        let expiry = isNowOrNever ? now : push.expiration ?? now + self.facts.limits.defaultTTL
        var item = Item(apnsID: name, priority: push.priority, expiry: expiry, pendingSince: now)
        if let older = self.pending {
            if older.priority > item.priority { self.sightings.saw("joint.priority") }
            if older.expiry > item.expiry { self.sightings.saw("joint.expiry") }
            item.absorb(older)
            self.coalesced += 1
        }
        self.pending = item
        if disposition == .launched { self.mustLaunch = name }
    }

    private mutating func dropped(_ name: String, _ reason: DiscardReason, _ now: Int64) {
        self.discarded += 1
        self.sightings.saw("discard.\(reason)")
        guard self.mustDiscard == nil else {
            self.mustDiscard = nil
            return
        }
        guard let pending = self.pending, pending.apnsID == name else {
            return self.broke(.conservation, now, "\(name) was discarded and is not pending")
        }
        self.pending = nil
        switch reason {
        case .expired:
            if pending.expiry != now { self.broke(.expiry, now, "\(name) expires at \(pending.expiry) ms") }
        case .forceQuit:
            let states = self.facts.states(of: self.name, at: now).dropFirst()
            if !states.contains(where: { $0.appState == "forceQuit" }) {
                self.broke(.forceQuit, now, "\(name) was discarded without a force quit")
            }
        case .exhausted, .unregistered, .cancelled, .replaced:
            self.broke(.retry, now, "\(name) was discarded while it waited: \(reason)")
        }
    }
}

// MARK: - Wakes

extension DeviceLedger {
    private mutating func launched(_ name: String, _ coalesced: Int, _ attempt: Int64, _ now: Int64) {
        let isArrival = self.mustLaunch == name
        self.mustLaunch = nil
        if self.inFlight != nil { self.broke(.oneInFlight, now, "\(name) launched while another was in flight") }
        guard var item = self.pending, item.apnsID == name else {
            return self.broke(.conservation, now, "\(name) launched and is not pending")
        }
        item.attempts += 1
        if item.coalesced != coalesced {
            self.broke(.joint, now, "\(name) stands for \(item.coalesced), not \(coalesced)")
        }
        if item.attempts != attempt {
            self.broke(.attempts, now, "\(name) is at attempt \(item.attempts), not \(attempt)")
        }
        if attempt > self.facts.limits.maxAttempts { self.broke(.attempts, now, "\(name): attempt \(attempt)") }
        let isNever = isArrival && self.facts.pushes[name]?.expiration == 0 && item.expiry == now
        if item.expiry <= now && !isNever { self.broke(.expiry, now, "\(name) launched after its life") }
        if attempt > 1 { self.sightings.saw("launch.retry") }
        if coalesced > 0 { self.sightings.saw("launch.coalesced") }
        self.pending = nil
        self.inFlight = item
        self.launchedAt = now
        let states = self.facts.states(of: self.name, at: now)
        let broken = self.charges.launched(item.priority, now, states, self.facts.limits, &self.sightings)
        for (promise, what) in broken { self.broke(promise, now, "\(name): \(what)") }
    }

    private mutating func ended(_ name: String, _ outcome: WakeOutcome, _ now: Int64) {
        self.sightings.saw("result.\(outcome)")
        guard var item = self.inFlight, item.apnsID == name else {
            return self.broke(.oneInFlight, now, "\(name) ended and was not in flight")
        }
        self.inFlight = nil
        let deadline = self.launchedAt + self.facts.limits.executionWindow
        if outcome == .expired ? now != deadline : now >= deadline {
            self.broke(.wakeEnd, now, "\(name) is \(outcome); its deadline is \(deadline) ms")
        }
        self.charges.ended(outcome, self.facts.limits)
        switch outcome {
        case .newData, .noData:
            self.completed += 1
            return
        case .failed, .expired: item.priority = min(item.priority, 5)
        case .lost: break
        }
        item.pendingSince = now
        if self.pending != nil {
            self.sightings.saw("retry.absorbed")
            self.pending?.absorb(item)
            self.coalesced += 1
        } else if item.attempts >= self.facts.limits.maxAttempts {
            self.mustDiscard = (name, .exhausted)
        } else if item.expiry <= now {
            self.mustDiscard = (name, .expired)
        } else {
            self.pending = item
        }
    }
}
