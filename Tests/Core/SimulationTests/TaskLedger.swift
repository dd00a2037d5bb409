import Policy
import WakeGateTestKit

/// Checks the outcome lines of one device against the events of the trace, and records each broken promise.
///
/// It tracks pending and running launches and charged launches. It computes which launches are allowed from that
/// history, and never chooses a launch.
struct TaskLedger {
    let name: String
    let trace: TaskTrace
    private(set) var violations: [String] = []
    private(set) var sightings = Coverage<String>()

    private var counters = Summary()
    private var waiting: [Item] = []
    private var flights: [Flight] = []
    private var state = DeviceFacts()
    private var now: Int64 = 0
    /// The time of the last line or event.
    private var changed: Int64 = -1
    private var arrivals = 0
    private var musts: [Must] = []
    /// The submission whose line must come next.
    private var submission: TaskTrace.Request?
    /// The push whose line must come next.
    private var arriving: Item?
    private var penalty: Int64 = 0
    /// The charged launches of the short lane that were not lost.
    private var charges: [Charge] = []
    private var processingLaunches: [Int64] = []
    private var lastUse: Int64?
    private var hours: [Int64] = []
    private var turns: [String: Int] = [:]

    init(name: String, trace: TaskTrace) {
        self.name = name
        self.trace = trace
    }

    /// Returns the counter with this name in the summary of a simulation.
    func count(_ name: String) -> Int {
        switch name {
        case "pending": self.waiting.count { $0.kind == "push" }
        case "inFlight": self.flights.count { $0.item.kind == "push" }
        case "tasks.waiting": self.waiting.count(where: \.isRequest)
        case "tasks.inFlight": self.flights.count(where: \.item.isRequest)
        case "sessions.waiting": self.waiting.filter { $0.kind == "urlSession" }.reduce(0) { $0 + $1.count }
        case "sessions.inFlight": self.flights.filter { $0.item.kind == "urlSession" }.reduce(0) { $0 + $1.item.count }
        default: self.counters[name]
        }
    }

    private mutating func broke(_ what: String) {
        self.violations.append("\(what) (device \(self.name) at \(self.now) ms)")
    }

    private mutating func moved(to moment: Int64) {
        if moment < self.now { self.broke("order: time runs backwards") }
        if moment > self.trace.until ?? .max { self.broke("end: something happens after the end") }
        self.now = moment
        for flight in self.flights where flight.end.moment < moment {
            self.broke("overdue: \(flight.item.name) should be \(flight.end.outcome) since \(flight.end.moment) ms")
        }
        for item in self.waiting where item.expiry < moment && !self.musts.contains(where: { $0.name == item.name }) {
            self.broke("overdue: \(item.name) waits past its life")
        }
    }

    /// Checks the state before an event at `moment`, after all lines until then.
    mutating func settled(at moment: Int64) {
        if let must = self.musts.first { self.broke("missing: \(must)") }
        if let request = self.submission { self.broke("missing: nothing was said of \(request.identifier)") }
        self.musts = []
        self.submission = nil
        self.moved(to: moment)
        for flight in self.flights where flight.end.moment <= moment {
            self.broke("overdue: \(flight.item.name) should be \(flight.end.outcome)")
        }
        for item in self.waiting where self.mayLaunch(item, at: moment) {
            self.broke("idle: \(item.name) may launch and does not")
        }
    }
}

// MARK: - Allowed launches

extension TaskLedger {
    private func isFull(_ lane: String) -> Bool {
        let count = Int64(self.flights.count { $0.item.lane == lane })
        return count >= (lane == "continued" ? self.trace.limits.continuedMax : 1)
    }

    /// Returns true if the device's state holds `item`.
    private func isHeld(_ item: Item, at moment: Int64) -> Bool {
        let state = self.state
        let isHot = state.thermalState == "critical" || state.thermalState == "serious"
        switch item.kind {
        case "push": return state.isHeld(item.priority, criticalBattery: self.trace.limits.criticalBattery)
        case "urlSession": return state.isHeld(5, criticalBattery: self.trace.limits.criticalBattery)
        case "continued": return state.thermalState == "critical"
        default: break
        }
        if state.appState != "background" || state.backgroundRefresh != "available" || isHot { return true }
        if state.batteryLevel < self.trace.limits.criticalBattery && !state.charging { return true }
        let window = self.trace.limits.usageWindow
        if window > 0, let last = self.lastUse, moment - last >= window { return true }
        if item.kind == "appRefresh" { return !state.network }
        return state.lowPowerMode || item.needsNetwork && !state.network || item.needsPower && !state.charging
    }

    /// Returns the time from which interval, allowance and budget allow a launch of `priority`; the distant past while
    /// the device is in use.
    private func eligible(_ priority: Int = 5) -> Int64 {
        let limits = self.trace.limits
        guard !self.state.isActive, let last = self.charges.last?.moment else { return .min }
        var allowance = Int64.min
        for charge in self.charges where charge.jumped {
            allowance = max(allowance, charge.moment) + limits.immediateRefill
        }
        var spaced = last + limits.interval(penalty: self.penalty, priority: priority, self.state)
        if priority == 10 {
            // Before the first early launch, the allowance is complete.
            let refilled = (limits.immediateBurst - 1) * limits.immediateRefill
            spaced = allowance == .min ? .min : min(spaced, allowance - refilled)
        }
        let window = self.window
        return window.count < limits.dailyLaunches ? spaced : max(spaced, window.start + limits.budgetWindow)
    }

    /// The latest budget window, and the number of launches in it.
    private var window: (start: Int64, count: Int64) {
        var window = (start: Int64.min / 2, count: Int64(0))
        for charge in self.charges {
            if charge.moment >= window.start + self.trace.limits.budgetWindow { window = (charge.moment, 0) }
            window.count += 1
        }
        return window
    }

    /// Returns the launch time of a refresh that may launch from `moment` on, delayed to precede habitual use.
    private func putOff(_ moment: Int64) -> Int64 {
        let (flex, lead) = (self.trace.limits.refreshFlex, self.trace.limits.refreshLead)
        guard flex > 0, let last = self.hours.last else { return moment }
        let remembered = Set(self.hours.filter { $0 > last - 168 })
        func isHabitual(_ hour: Int64) -> Bool { remembered.count { ($0 - hour) % 24 == 0 } >= 3 }
        if isHabitual((moment + lead) / 3_600_000) { return moment }
        var hour = (moment + lead) / 3_600_000 + 1
        while hour * 3_600_000 - lead <= moment + flex {
            if isHabitual(hour) { return hour * 3_600_000 - lead }
            hour += 1
        }
        return moment
    }

    /// Returns true if `item` may launch at `moment`.
    private func mayLaunch(_ item: Item, at moment: Int64) -> Bool {
        guard !self.isFull(item.lane), !self.isHeld(item, at: moment), moment < item.expiry else { return false }
        switch item.kind {
        case "continued": return true
        case "urlSession": return moment >= self.eligible()
        case "appRefresh": return moment >= self.putOff(max(item.place.since, self.eligible()))
        case "push": return moment >= self.eligible(item.priority)
        default:
            guard moment >= item.place.since else { return false }
            var interval = self.trace.limits.processingInterval
            for _ in 0..<self.penalty { interval *= 2 }
            interval = min(interval, max(self.trace.limits.processingInterval, self.trace.limits.maxInterval))
            return self.processingLaunches.last.map { moment >= $0 + interval } ?? true
        }
    }
}

// MARK: - Events

extension TaskLedger {
    mutating func happens(_ event: TaskTrace.Event) {
        switch event {
        case .push(let name, let priority, let expiration):
            let life = expiration.map { $0 == 0 ? self.now : $0 } ?? self.now + self.trace.limits.defaultTTL
            var item = Item(name: name, kind: "push", place: Place(since: self.now, arrival: self.arrived()))
            (item.priority, item.expiry, item.isNowOrNever) = (priority, life, expiration == 0)
            self.arriving = item
        case .submit(let request): self.submission = request
        case .finished(let session, let count): self.finished(session, count)
        case .cancel(let identifier): self.cancelled(identifier)
        case .report(let state): self.reported(state)
        }
        self.changed = self.now
    }

    private mutating func arrived() -> Int {
        self.arrivals += 1
        return self.arrivals
    }

    private mutating func finished(_ session: String, _ count: Int) {
        if let index = self.waiting.firstIndex(where: { $0.kind == "urlSession" && $0.name == session }) {
            self.waiting[index].count += count
            self.sightings.note("session.takenUp")
        } else if self.waiting.count(where: { $0.kind == "urlSession" }) >= 8 {
            self.counters["sessions.refused"] += count
            self.sightings.note("session.refused")
            return
        } else {
            var item = Item(name: session, kind: "urlSession", place: Place(since: self.now, arrival: self.arrived()))
            item.count = count
            self.waiting.append(item)
        }
        self.counters["sessions.finished"] += count
    }

    private mutating func cancelled(_ identifier: String) {
        let isMeant = { (item: Item) in item.isRequest && item.name == identifier }
        self.counters["tasks.cancelled"] += self.waiting.count(where: isMeant)
        self.waiting.removeAll(where: isMeant)
        for index in self.flights.indices where isMeant(self.flights[index].item) {
            self.flights[index].isCancelled = true
            guard self.flights[index].item.kind == "continued" else { continue }
            self.musts.append(Must(event: "result", name: identifier, word: "cancelled"))
        }
    }

    private mutating func reported(_ state: DeviceFacts) {
        let before = self.state
        self.state = state
        if before.isActive != state.isActive { self.lastUse = self.now }
        if !before.isActive && state.isActive { self.hours.append(self.now / 3_600_000) }
        let isForceQuit = before.appState != "forceQuit" && state.appState == "forceQuit"
        if isForceQuit {
            let quit = self.waiting.filter { $0.kind == "push" } + self.waiting.filter { $0.kind == "continued" }
            self.musts += quit.map { Must(event: "discard", name: $0.name, word: "forceQuit") }
        }
        for lane in ["processing", "continued"] {
            for flight in self.flights where flight.item.lane == lane {
                let lastUse = self.lastUse
                // A long time without use does not interrupt running tasks.
                self.lastUse = nil
                let isHeld = self.isHeld(flight.item, at: self.now)
                self.lastUse = lastUse
                guard isHeld || isForceQuit && lane == "continued" else { continue }
                self.musts.append(Must(event: "result", name: flight.item.name, word: "interrupted"))
            }
        }
    }
}

// MARK: - Lines of pushes

extension TaskLedger {
    mutating func follow(_ line: OutcomeLine) {
        self.moved(to: line.moment.milliseconds)
        let name = line.subject.name
        let isRequest: Bool? =
            switch line.subject {
            case .push: nil
            case .task: true
            case .session: false
            }
        switch line.event {
        case .arrival(let disposition) where isRequest == nil: self.pushed(name, disposition)
        case .arrival(let disposition): self.submitted(name, disposition.rawValue)
        case .refusal(let refusal): self.submitted(name, refusal.rawValue)
        case .launch(let kind, let count, let attempt):
            self.launched(name, kind.rawValue, count: Int(count), Int64(attempt))
        case .result(let outcome): self.ended(name, isRequest: isRequest, outcome.name)
        case .discard(let reason): self.dropped(name, isRequest: isRequest, reason.rawValue)
        }
        self.changed = self.now
    }

    private mutating func pushed(_ name: String, _ disposition: OutcomeLine.Disposition) {
        guard let newer = self.arriving, newer.name == name, newer.place.since == self.now else {
            return self.broke("order: \(name) did not arrive now")
        }
        self.arriving = nil
        self.counters["accepted"] += 1
        self.sightings.note("disposition.\(disposition)")
        let index = self.waiting.firstIndex { $0.kind == "push" }
        let item = index.map { Self.joined(newer, self.waiting[$0]) } ?? newer
        let expected = self.disposition(newer, joined: item)
        if disposition != expected { self.broke("disposition: \(name) is \(disposition), not \(expected)") }
        guard disposition != .discarded else {
            self.musts.append(Must(event: "discard", name: name, word: "expired"))
            return
        }
        if newer.isNowOrNever { self.sightings.note("nowOrNever.\(disposition)") }
        if item.priority > newer.priority { self.sightings.note("joint.priority") }
        if item.expiry > newer.expiry { self.sightings.note("joint.expiry") }
        if let index {
            self.counters["coalesced"] += 1
            self.waiting.remove(at: index)
        }
        self.waiting.append(item)
        if disposition == .launched { self.musts.append(Must(event: "launch", name: name, word: "push")) }
    }

    /// Returns the disposition of an arriving push that becomes `joined` with the pending one.
    private func disposition(_ push: Item, joined: Item) -> OutcomeLine.Disposition {
        let isOver = push.expiry <= self.now
        if isOver, !push.isNowOrNever { return .discarded }
        var joined = joined
        joined.expiry = .max
        if self.mayLaunch(joined, at: self.now) { return .launched }
        return isOver ? .discarded : joined.count == 0 ? .scheduled : .coalesced
    }

    /// Returns `newer` with the merged properties and the position of `older`.
    private static func joined(_ newer: Item, _ older: Item) -> Item {
        var item = newer
        item.place = min(newer.place, older.place)
        item.count += older.count + 1
        item.priority = max(newer.priority, older.priority)
        item.expiry = max(newer.expiry, older.expiry)
        return item
    }
}

// MARK: - Lines of requests and sessions

extension TaskLedger {
    private func refusal(_ request: TaskTrace.Request) -> TaskRefusal? {
        let isContinued = request.kind == "continued"
        if let permitted = self.trace.permitted, !permitted.contains(request.identifier) { return .notPermitted }
        if !isContinued && self.state.backgroundRefresh != "available" { return .unavailable }
        if isContinued && !self.state.isActive { return .notForeground }
        let others = self.waiting.count { $0.kind == request.kind && $0.name != request.identifier }
        if others + 1 > (request.kind == "appRefresh" ? 1 : 10) { return .tooManyPendingTaskRequests }
        let isStuck = self.isFull("continued") || self.state.thermalState == "critical"
        return request.fails && isStuck ? .immediateRunIneligible : nil
    }

    private mutating func submitted(_ name: String, _ disposition: String) {
        guard let request = self.submission, request.identifier == name else {
            return self.broke("order: \(name) was not submitted")
        }
        self.submission = nil
        self.sightings.note("submit.\(disposition)")
        if let refusal = self.refusal(request) {
            if disposition != refusal.rawValue { self.broke("refusal: \(name) is \(disposition), not \(refusal)") }
            self.counters["tasks.refused.\(refusal.rawValue)"] += 1
            return
        }
        self.counters["tasks.submitted"] += 1
        let before = self.waiting.count
        self.waiting.removeAll { $0.isRequest && $0.name == name }
        self.counters["tasks.replaced"] += before - self.waiting.count
        let earliest = request.kind == "continued" ? self.now : request.earliestBegin ?? self.now
        let place = Place(since: max(self.now, earliest), arrival: self.arrived())
        var item = Item(name: name, kind: request.kind, place: place)
        (item.needsNetwork, item.needsPower) = (request.needsNetwork, request.needsPower)
        let isLaunched = self.mayLaunch(item, at: self.now)
        self.waiting.append(item)
        let expected = isLaunched ? "launched" : before > self.waiting.count - 1 ? "replaced" : "scheduled"
        if disposition != expected { self.broke("disposition: \(name) is \(disposition), not \(expected)") }
        if isLaunched { self.musts.append(Must(event: "launch", name: name, word: request.kind)) }
    }
}

// MARK: - Wakes

extension TaskLedger {
    /// Returns true if the line is the one that must come next; records a violation if another one must.
    private mutating func isDue(_ must: Must) -> Bool {
        guard let first = self.musts.first else { return false }
        if first == must {
            self.musts.removeFirst()
            return true
        }
        self.broke("missing: \(first) before \(must)")
        self.musts = []
        return false
    }

    private mutating func launched(_ name: String, _ kind: String, count: Int, _ attempt: Int64) {
        let isAtOnce = self.isDue(Must(event: "launch", name: name, word: kind))
        guard let index = self.waiting.firstIndex(where: { $0.name == name && $0.kind == kind }) else {
            return self.broke("conservation: \(name) launched and does not wait")
        }
        var item = self.waiting[index]
        // A now-or-never push launches at the time of its expiry.
        var alive = item
        if isAtOnce, kind == "push" { alive.expiry = .max }
        self.sightings.note("launch.\(kind)")
        let eligible = max(item.place.since, self.eligible())
        if kind == "appRefresh" { self.sawRefresh(eligible) }
        if self.isFull(item.lane) { self.broke("room: \(name) launched while its lane was full") }
        if !self.mayLaunch(alive, at: self.now) { self.broke("too early: \(name) may not launch") }
        if self.changed < self.now, self.mayLaunch(item, at: self.now - 1) { self.broke("too late: \(name)") }
        for other in self.waiting
        where other.lane == item.lane && other.place < item.place && self.mayLaunch(other, at: self.now) {
            self.broke("turn: \(name) launched before \(other.name)")
        }
        item.attempts += 1
        if item.attempts != attempt || attempt > self.trace.limits.maxAttempts {
            self.broke("attempts: \(name) is at \(attempt), not \(item.attempts)")
        }
        if item.count != count { self.broke("count: \(name) stands for \(count), not \(item.count)") }
        self.waiting.remove(at: index)
        if kind == "push" { self.sawPush(item) }
        let isCharged = item.lane == "short" && !self.state.isActive
        if isCharged { self.charge(item) }
        if kind == "processing" { self.processingLaunches.append(self.now) }
        let end = self.end(item)
        self.flights.append(Flight(item: item, end: end, isCharged: isCharged))
    }

    private mutating func sawPush(_ item: Item) {
        self.counters["launched"] += 1
        if item.attempts > 1 { self.sightings.note("launch.retry") }
        if item.count > 0 { self.sightings.note("launch.coalesced") }
        if self.state.isActive { self.sightings.note("launch.active") }
    }

    private mutating func sawRefresh(_ eligible: Int64) {
        if self.putOff(eligible) > eligible { self.sightings.note("refresh.putOff") }
        let habits = Set(self.hours.map { $0 % 24 })
        let (hour, hourOfLead) = (self.now / 3_600_000, (self.now + self.trace.limits.refreshLead) / 3_600_000)
        if hourOfLead > hour, habits.contains(hourOfLead % 24) { self.sightings.note("refresh.inLead") }
    }

    private mutating func charge(_ item: Item) {
        let priority = item.kind == "push" ? item.priority : 5
        let interval = self.trace.limits.interval(penalty: self.penalty, priority: 10, self.state)
        let jumped = priority == 10 && self.now < (self.charges.last?.moment ?? .min / 2) + interval
        if jumped { self.sightings.note("launch.jumped") }
        if self.penalty > 0 { self.sightings.note("launch.penalized") }
        let window = self.window
        if window.count >= self.trace.limits.dailyLaunches, self.now == window.start + self.trace.limits.budgetWindow {
            self.sightings.note("budget.waited")
        }
        self.charges.append(Charge(moment: self.now, jumped: jumped))
    }

    /// Returns the outcome and time of a wake that launches now, by its script.
    private mutating func end(_ item: Item) -> (outcome: String, moment: Int64) {
        let key = item.kind == "push" ? "worker" : item.isRequest ? "task \(item.name)" : "session \(item.name)"
        let turn = self.turns[key, default: 0]
        self.turns[key] = turn + 1
        let reliable = [TaskTrace.Answer(outcome: "success", delay: 1000)]
        let answers = item.kind == "push" ? self.trace.worker : self.trace.answers[item.name] ?? reliable
        let answer = answers[turn % answers.count]
        let answeredAt = answer.outcome == "none" ? Int64.max : self.now + answer.delay
        var deadline = self.now
        switch item.kind {
        case "processing": deadline += self.trace.limits.processingWindow
        case "continued":
            deadline += self.trace.limits.progressWindow
            var advance = self.now + (answer.advance ?? .max / 2)
            while advance < deadline, advance < self.now + answer.delay {
                deadline = advance + self.trace.limits.progressWindow
                advance += answer.advance ?? 0
            }
        default: deadline += self.trace.limits.executionWindow
        }
        return answeredAt < deadline ? (answer.outcome, answeredAt) : ("expired", deadline)
    }

    private mutating func ended(_ name: String, isRequest: Bool?, _ outcome: String) {
        let isDue = self.isDue(Must(event: "result", name: name, word: outcome))
        let index = self.flights.firstIndex { flight in
            let isOne = flight.item.name == name && (flight.item.kind == "push") == (isRequest == nil)
            let isKind = isRequest == nil || flight.item.isRequest == isRequest
            return isOne && isKind && (isDue || flight.end == (outcome, self.now))
        }
        guard let index else { return self.broke("end: \(name) is \(outcome), and nothing of it ends so now") }
        var flight = self.flights.remove(at: isDue ? self.interruptible(name, outcome) ?? index : index)
        self.sightings.note("\(flight.item.kind).\(outcome)")
        self.count(flight.item, outcome)
        let isContinued = flight.item.kind == "continued"
        if ["success", "newData"].contains(outcome), !isContinued { self.penalty = 0 }
        if outcome == "expired", !isContinued, self.penalty < self.trace.limits.maxPenalty { self.penalty += 1 }
        if outcome == "lost" {
            if flight.isCharged { self.charges.removeLast() }
            if flight.item.kind == "processing" { self.processingLaunches.removeLast() }
        }
        let retries = flight.item.isRequest ? ["lost"] : ["lost", "failure", "failed", "expired"]
        guard retries.contains(outcome) else {
            if flight.item.kind == "urlSession" { self.counters["sessions.completed"] += flight.item.count }
            return
        }
        if ["failed", "expired"].contains(outcome) { flight.item.priority = min(flight.item.priority, 5) }
        self.retry(flight)
    }

    /// Returns the wake that an event may end: a processing task, a cancelled one, or a continued one.
    private func interruptible(_ name: String, _ outcome: String) -> Int? {
        self.flights.firstIndex {
            $0.item.name == name && (outcome == "cancelled" ? $0.isCancelled : $0.item.lane != "short")
                && $0.item.isRequest && (outcome != "cancelled" || $0.item.kind == "continued")
        }
    }

    private mutating func count(_ item: Item, _ outcome: String) {
        self.counters["\(item.list)results.\(outcome)"] += 1
        if item.kind == "push", ["newData", "noData"].contains(outcome) { self.counters["completed"] += 1 }
    }

    private mutating func retry(_ flight: Flight) {
        let item = flight.item
        let isExhausted = item.attempts >= self.trace.limits.maxAttempts
        let exhausted = Must(event: "discard", name: item.name, word: "exhausted")
        if flight.isCancelled {
            self.musts.append(Must(event: "discard", name: item.name, word: "cancelled"))
            self.waiting.append(item)
            return
        }
        let other = self.waiting.firstIndex {
            item.kind == "push" ? $0.kind == "push" : $0.isNamesake(item)
        }
        if let other, !item.isRequest {
            self.sightings.note("retry.\(item.kind)")
            if item.kind == "push" {
                self.counters["coalesced"] += 1
                self.waiting[other] = Self.joined(self.waiting[other], item)
            } else {
                self.waiting[other].place = min(self.waiting[other].place, item.place)
                self.waiting[other].count += item.count
            }
            return
        }
        if let other {
            self.counters["tasks.replaced"] += 1
            self.sightings.note("retry.twin")
            if self.waiting[other].place.arrival > item.place.arrival { return }
            self.waiting.remove(at: other)
        }
        if isExhausted {
            self.musts.append(exhausted)
        } else if item.kind == "push", item.expiry <= self.now {
            self.musts.append(Must(event: "discard", name: item.name, word: "expired"))
        }
        self.waiting.append(item)
    }

    private mutating func dropped(_ name: String, isRequest: Bool?, _ reason: String) {
        let isDue = self.isDue(Must(event: "discard", name: name, word: reason))
        self.sightings.note("\(isRequest == nil ? "discard" : isRequest == true ? "task" : "session").\(reason)")
        if isRequest == nil { self.counters["discarded.\(reason)"] += 1 }
        // Among tasks with the same name, a lost one follows the pending one.
        let index = self.waiting.lastIndex {
            let isKind = isRequest == nil ? $0.kind == "push" : $0.kind != "push" && $0.isRequest == isRequest
            return $0.name == name && isKind
        }
        guard let index else {
            if isRequest != nil || !isDue { self.broke("conservation: \(name) was dropped and does not wait") }
            return
        }
        let item = self.waiting.remove(at: index)
        if !isDue, item.kind != "push" || item.expiry != self.now || reason != "expired" {
            self.broke("conservation: \(name) was dropped for nothing (\(reason))")
        }
        guard isRequest != nil else { return }
        self.counters["\(item.list)discarded.\(reason)"] += item.isRequest ? 1 : item.count
    }
}
