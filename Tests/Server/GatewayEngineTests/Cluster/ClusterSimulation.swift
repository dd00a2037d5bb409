import Engine
import Gateway
import Platform
import Policy
import WakeGateTestKit
import Wire

/// Three production gateways on one simulated database, in virtual time. Providers and workers come and go, while
/// gateways, connections and the primary fail.
///
/// The checks use only the knowledge of clients and the database's rows. They do not depend on the policy's code.
final class ClusterSimulation {
    static let deviceCount = 8
    /// The number of devices that receive only ordinary pushes and are never changed otherwise.
    static let plainCount = 2
    static let topicCount = 2
    static let gatewayCount = 3
    static let launchInterval: Int64 = 3000

    static let configuration = EngineRig.openToTasks([
        (.launchInterval, 3), (.executionWindow, 2), (.dailyLaunches, 30), (.budgetWindow, 3600),
        (.maxAttempts, 3), (.maxPenalty, 1), (.maxInterval, 6), (.immediateBurst, 2), (.immediateRefill, 6),
        (.defaultTTL, 12), (.processingWindow, 3), (.processingInterval, 3), (.progressWindow, 2),
        (.maxExtension, 3), (.refreshFlex, 0),
    ])

    let database: SimulatedDatabase
    /// The average time between faults in milliseconds; 0 for none.
    let failsEvery: Int
    var generator: SeededGenerator
    var gateways: [ClusterGateway?] = Array(repeating: nil, count: ClusterSimulation.gatewayCount)
    var clients = ClusterClients()
    var ledger = ClusterLedger(attemptsMax: 3)
    private var calendar = MomentQueue<() -> Void>()
    var coverage = Coverage<ClusterEvent>()
    /// The last number used. Requests, streams and pushes share the sequence.
    var numbers = 0
    /// The pushes whose apns-id was chosen by their sender, and their devices.
    var named: [(push: Int, device: Int)] = []
    /// The number of such pushes sent to each device.
    var namedCounts: [Int: Int] = [:]
    /// True once nothing fails and all workers answer.
    var isCalm = false
    var calmSince: Int64 = .max
    private let start: Int64
    private let clock: SharedClock
    /// The number of turns since time last advanced.
    private var passCount = 0
    private(set) var fault: String?

    /// - `failsEvery`: milliseconds; 0 for never.
    init(seed: UInt64, failsEvery: Int) {
        self.generator = SeededGenerator(seed: seed)
        self.database = SimulatedDatabase(seed: self.generator.next())
        self.failsEvery = failsEvery
        self.start = self.database.now
        self.clock = SharedClock(boot: 5_000_000, wall: self.database.now)
    }

    /// Runs for this many milliseconds, then without faults until everything has ended.
    ///
    /// - Returns: the first error.
    func run(for milliseconds: Int64) -> String? {
        for place in self.gateways.indices { self.begin(place) }
        self.planDeed()
        self.planFault()
        self.run(until: self.start + milliseconds)
        if self.fault == nil { self.calm() }
        return self.fault.map { "after \(self.database.now - self.start) ms: \($0)" }
    }

    func wrong(_ what: String) { self.fault = self.fault ?? what }

    // MARK: Time

    func run(until end: Int64) {
        while self.fault == nil {
            let stepAt = self.gateways.compactMap { $0?.isPaused == false ? $0?.nextStepAt : nil }.min()
            let next = [self.calendar.first?.moment, self.database.nextEventAt, stepAt].compactMap { $0 }.min() ?? end
            guard next <= end else { break }
            let before = self.database.now
            self.pass(until: next)
            self.passCount = self.database.now == before ? self.passCount + 1 : 0
            if self.passCount == 1000 { self.wrong("time stands still: \(self.busy)") }
        }
        if self.fault == nil { self.pass(until: end) }
    }

    /// Performs everything that is due at this time.
    private func pass(until moment: Int64) {
        self.database.run(until: moment)
        self.clock.change { $0.pass(self.database.now - self.start - ($0.boot - 5_000_000)) }
        while let event = self.calendar.popDue(self.database.now) { event.value() }
        for _ in 0..<50 where self.fault == nil {
            let due = self.gateways.compactMap { $0 }.filter { $0.isDue(at: self.database.now) }
            guard !due.isEmpty else { break }
            for gateway in due where self.fault == nil { self.step(gateway) }
        }
        self.ledger.read(self.database.log)
        if let fault = self.clients.fault ?? self.ledger.fault { self.wrong(fault) }
    }

    /// The state of each gateway.
    private var busy: [String] {
        self.gateways.map { gateway in
            guard let gateway else { return "dead" }
            return gateway.state
        }
    }

    private func step(_ gateway: ClusterGateway) {
        for heard in gateway.step(at: self.database.now) {
            self.clients.hear(heard, of: gateway, self.database)
            if case .wake(let wake) = heard { self.received(wake) }
        }
    }

    func plan(after milliseconds: Int, _ event: @escaping () -> Void) {
        self.calendar.insert(event, at: self.database.now + Int64(milliseconds))
    }

    // MARK: Lives

    /// Begins another life of a gateway.
    func begin(_ place: Int) {
        let (clock, seed) = (self.clock, self.generator.next())
        // The clocks of the gateways are not synchronized.
        let ahead = Int64(self.generator.number(in: -3000...3000))
        let plain = EngineWorld(clock, seed: seed)
        let world = EngineWorld(
            wall: { clock.now.wall + ahead },
            boot: plain.boot,
            monotonic: plain.monotonic,
            bootID: nil,
            makeRandom: plain.makeRandom
        )
        self.gateways[place] = ClusterGateway(place, self.database, world)
    }

    /// Ends a gateway and every connection to it.
    func end(_ place: Int, withMachine: Bool) {
        self.gateways[place]?.store.kill(withMachine: withMachine)
        self.gateways[place] = nil
        self.clients.lose(place)
    }

    // MARK: Asking

    /// Sends a request to a gateway, which receives it within a few milliseconds.
    ///
    /// - Returns: the number of the request.
    @discardableResult
    func ask(_ place: Int, _ question: ClusterClients.Question, _ fill: (Requests, Int) -> Void) -> Int? {
        guard let gateway = self.gateways[place] else { return nil }
        self.numbers += 1
        self.clients.asks(self.numbers, question, of: place, at: self.database.now)
        fill(gateway.requests, self.numbers)
        gateway.requireStep(by: self.database.now + Int64(self.generator.number(in: 0...2)))
        return self.numbers
    }

    /// Returns a random live gateway, if there is one.
    func someGateway() -> Int? {
        let places = self.gateways.indices.filter { self.gateways[$0] != nil }
        return places.isEmpty ? nil : self.generator.pick(Array(places))
    }
}

// MARK: - Peace

extension ClusterSimulation {
    /// The maximum delay of anything that nothing prevents, in milliseconds.
    private static let gracePeriod: Int64 = 5000

    /// Stops all faults and adds good workers, so that everything ends soon.
    func calm() {
        self.isCalm = true
        self.calmSince = self.database.now
        self.database.faults = .none
        // Nothing depends on a notification, and conflicts resolve without one.
        self.database.faults.lostNotices = 3
        self.database.faults.deadlocks = 60
        self.database.pace = .usual
        self.database.isFull = false
        for place in self.gateways.indices {
            if self.gateways[place]?.isDraining == true { self.end(place, withMachine: false) }
            if self.gateways[place]?.isPaused == true { self.gateways[place]?.store.resume() }
            if self.gateways[place] == nil { self.begin(place) }
        }
        // Gateways that were declared dead are found dead, and live ones are attached again.
        self.run(until: self.database.now + Self.gracePeriod)
        for _ in 0..<100 where self.database.hasGhosts { self.run(until: self.database.now + 200) }
        self.checkFenced()
        for stream in self.clients.streams.keys.sorted() { self.leave(stream) }
        self.calmSince = self.database.now
        for topic in 0..<Self.topicCount {
            self.subscribe(at: self.generator.number(below: Self.gatewayCount), topic: topic, isGood: true)
        }
        for device in Self.plainCount..<Self.deviceCount {
            let place = self.generator.number(below: Self.gatewayCount)
            self.ask(place, .other) { requests, number in
                requests.conditions(number, device) { ($0.appState, $0.network) = (.background, true) }
            }
        }
        let end = self.database.now + 60_000
        while self.fault == nil, self.database.now < end, !self.isDone {
            self.run(until: self.database.now + 250)
            self.checkGracePeriod()
        }
        guard self.fault == nil else { return }
        if !self.isDone {
            self.wrong("something never ends: \(self.ledger.openCount) pushes, \(self.database.rows.total().total)")
        }
        self.checkEnds()
        self.checkGivenBack()
        self.checkSpacing()
        self.checkStatistics()
    }

    private var isDone: Bool {
        let counters = self.database.rows.total().total
        return counters.requests.waiting.sum + counters.requests.inFlight.sum + counters.sessions.wakes == 0
            && self.ledger.openCount == 0 && self.database.rows.wakes.values.allSatisfy { $0.ended != nil }
            && self.database.rows.ready.isEmpty && self.clients.asked.isEmpty
    }

    /// Checks that nothing that could be done immediately has waited for long.
    private func checkGracePeriod() {
        let (now, policyNow) = (self.database.now, self.database.policyNow)
        for (number, asked) in self.clients.asked where max(asked.at, self.calmSince) + Self.gracePeriod < now {
            self.wrong("request \(number) is not answered: \(asked.question)")
        }
        for (_, lanes) in self.database.rows.ready {
            guard let since = lanes.map(\.since).min(), since + Self.gracePeriod < policyNow,
                self.calmSince + Self.gracePeriod < now
            else { continue }
            self.wrong("a lane waits for a slot, and one is free: \(lanes)")
        }
        if let due = self.database.rows.due.values.min(), due + Self.gracePeriod < policyNow,
            self.calmSince + Self.gracePeriod < now
        {
            self.wrong("something is due and not done since \(policyNow.milliseconds - due.milliseconds) ms")
        }
        self.checkRetired()
        self.checkCounters()
    }

    /// Checks that the wakes of a dead gateway are lost soon, even before their deadlines.
    private func checkRetired() {
        for wake in self.database.rows.wakes.values where wake.ended == nil {
            guard let death = self.database.log.deaths[wake.holder],
                max(death, self.calmSince) + Self.gracePeriod < self.database.now
            else { continue }
            self.wrong("a wake of a dead gateway is still in flight")
        }
    }

    /// Checks that gateways that were declared dead have notified their workers of lost wakes.
    private func checkFenced() {
        let log = self.database.log
        for number in self.clients.streams.keys.sorted() {
            for wake in self.clients.streams[number]?.wakes ?? [] {
                guard let place = log.launches[wake], log.deaths[log.commits[place].gateway] != nil else { continue }
                self.wrong("a stream keeps a wake whose gateway was declared dead")
            }
        }
    }

    /// Checks that the counters match the events.
    func checkCounters() {
        if let fault = self.ledger.compare(self.database.rows.total().total) { self.wrong(fault) }
    }

    /// Checks that every push answered 200 has ended, and that no refused push was counted.
    private func checkEnds() {
        for push in self.clients.accepted where self.ledger.end(of: push) == nil {
            self.wrong("a push that was answered 200 \(self.ledger.has(push) ? "has not ended" : "is lost")")
        }
        for push in self.clients.refused where self.ledger.has(push) {
            self.wrong("a push that was refused is counted")
        }
        if self.ledger.counters.accepted > self.clients.accepted.count + self.clients.uncertain.count {
            self.wrong("more pushes are counted than were sent")
        }
        let log = self.database.log
        for wake in log.launches.keys where log.ends[wake] == nil { self.wrong("a wake has never ended") }
        self.coverage.note(.lost, Int(self.ledger.counters.results[.lost]))
    }

    /// Checks that a wake released by its worker is lost, and costs its push no attempt.
    private func checkGivenBack() {
        let lost = self.lostWakes()
        var attempts: [APNsID: Int] = [:]
        for wake in self.clients.givenBack {
            guard let known = self.clients.wakes[wake], known.kind == .push else { continue }
            if !lost.contains(wake) { self.wrong("a wake was given back, and is not lost") }
            guard let push = known.push, !self.outlivesItsGateway(wake) else { continue }
            attempts[push, default: 0] += 1
        }
        for (push, givenBack) in attempts where self.ledger.end(of: push) == .discarded(.exhausted) {
            self.coverage.note(.exhaustedAfterRelease)
            self.ledger.checkExhausted(push, givenBack: givenBack)
        }
        if let fault = self.ledger.fault { self.wrong(fault) }
    }

    /// Checks the intervals between the wakes of devices with ordinary pushes only, as received by workers and not
    /// lost.
    private func checkSpacing() {
        let log = self.database.log
        let lost = self.lostWakes()
        for device in 0..<Self.plainCount {
            let token = EngineRig.token(device)
            let launches = self.clients.wakes.filter { $0.value.device == token && !lost.contains($0.key) }.keys
                .compactMap { log.launches[$0] }.sorted().map { log.commits[$0].moment }
            for (earlier, later) in zip(launches, launches.dropFirst()) {
                self.coverage.note(.spaced)
                guard later < earlier + Self.launchInterval else { continue }
                self.wrong("a device is launched twice in \(later.milliseconds - earlier.milliseconds) ms")
            }
        }
    }

    /// Returns the wakes of plain devices that ended as lost, according to the events of the same commits.
    private func lostWakes() -> Set<WakeID> {
        let log = self.database.log
        var lost: Set<WakeID> = []
        for (wake, known) in self.clients.wakes {
            guard let place = log.ends[wake] else { continue }
            let device = HistoryEvent.device(of: known.device, EngineRig.historyKey)
            let isLost = log.commits[place].events.contains { $0.device == device && $0.kind == .result(.push(.lost)) }
            guard isLost else { continue }
            lost.insert(wake)
            if self.outlivesItsGateway(wake) { self.coverage.note(.lostByDeath) }
        }
        return lost
    }

    /// Returns true if the gateway that gave a wake was declared dead before the wake ended.
    private func outlivesItsGateway(_ wake: WakeID) -> Bool {
        let log = self.database.log
        guard let end = log.ends[wake], let launch = log.launches[wake],
            let death = log.deaths[log.commits[launch].gateway]
        else { return false }
        return death <= log.commits[end].at
    }

    /// Checks that every gateway finally reports the same counters, which equal those in the rows.
    private func checkStatistics() {
        self.run(until: self.database.now + 1500)
        for place in self.gateways.indices {
            self.ask(place, .statistics) { $0.statistics($1) }
            self.run(until: self.database.now + 500)
            let rows = self.database.rows.total().total
            guard let told = self.clients.counters, self.fault == nil else { continue }
            if told != rows { self.wrong("statistics report \(told), and the rows have \(rows)") }
            if told.pending + told.inFlight + told.requests.inFlight.sum != 0 {
                self.wrong("something is left: \(told)")
            }
        }
        self.checkCounters()
        self.checkSlots()
    }

    /// Checks that every slot is finally free, even if notifications about wakes that ended elsewhere were lost.
    private func checkSlots() {
        for _ in 0..<16 where self.fault == nil {
            for place in self.gateways.indices { self.ask(place, .statistics) { $0.statistics($1) } }
            self.run(until: self.database.now + 1000)
            if self.clients.busySlots == 0 { return }
        }
        self.wrong("\(self.clients.busySlots) slots are busy at the end, without wakes in flight")
    }
}

// MARK: - What fails

extension ClusterSimulation {
    /// Plans a random fault, and the next one after it.
    func planFault() {
        guard self.failsEvery > 0 else { return }
        self.database.faults.lostReplies = 150
        self.database.faults.lostCommits = 200
        self.database.faults.lostLoads = 200
        self.database.faults.refusedCommits = 100
        self.database.faults.deadlocks = 200
        self.database.faults.lostNotices = 5
        self.database.faults.doubledNotices = 5
        self.planNextFault()
    }

    private func planNextFault() {
        self.plan(after: self.generator.number(in: 0...2 * self.failsEvery)) {
            guard !self.isCalm else { return }
            self.fail()
            self.planNextFault()
        }
    }

    private func fail() {
        let place = self.generator.number(below: Self.gatewayCount)
        switch self.generator.number(below: 11) {
        case 0:
            self.database.failOver(
                outage: self.generator.number(in: 100...1500),
                clockAhead: self.generator.pick([-5000, -1000, 0, 1000, 5000])
            )
        case 1, 2: self.kill(place)
        case 3: self.pause(place)
        case 4: self.gateways[place]?.store.cutAll()
        case 5, 6, 7: self.gateways[place]?.store.cutOne()
        case 8: self.slowDown()
        case 9: self.fillUp()
        default: self.drain(place)
        }
    }

    /// Kills a gateway; another one replaces it later.
    private func kill(_ place: Int) {
        guard self.gateways[place] != nil else { return }
        self.coverage.note(.kill)
        self.end(place, withMachine: self.generator.once(in: 2))
        self.plan(after: self.generator.number(in: 0...3000)) {
            guard self.gateways[place] == nil else { return }
            self.coverage.note(.start)
            self.begin(place)
        }
    }

    /// Suspends a gateway, possibly longer than the others wait for it, and resumes it.
    private func pause(_ place: Int) {
        guard let gateway = self.gateways[place], !gateway.isPaused else { return }
        self.coverage.note(.pause)
        gateway.store.pause()
        self.plan(after: self.generator.pick([50, 1000, 4000, 6000])) {
            if gateway.isPaused, self.gateways[place] === gateway { gateway.store.resume() }
        }
    }

    private func slowDown() {
        self.coverage.note(.slow)
        self.database.pace = .slow
        self.plan(after: self.generator.number(in: 500...3000)) { self.database.pace = .usual }
    }

    private func fillUp() {
        self.coverage.note(.full)
        self.database.isFull = true
        self.plan(after: self.generator.number(in: 100...1500)) { self.database.isFull = false }
    }

    /// Drains a gateway and then ends it.
    private func drain(_ place: Int) {
        guard let gateway = self.gateways[place], !gateway.isDraining, !gateway.isPaused else { return }
        self.coverage.note(.drain)
        gateway.isDraining = true
        gateway.requests.drain()
        gateway.requireStep(by: self.database.now)
        self.plan(after: self.generator.number(in: 500...3000)) {
            guard self.gateways[place] === gateway else { return }
            self.end(place, withMachine: false)
            self.begin(place)
        }
    }
}
