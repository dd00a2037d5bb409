import Engine
import Policy
import WakeGateTestKit
import Wire

// MARK: - Peace

extension ClusterSimulation {
    /// How long anything waits that nothing is in the way of, in milliseconds.
    private static let patience: Int64 = 5000

    /// Nothing fails any more, and good workers come: everything ends, and soon.
    func calm() {
        self.isCalm = true
        self.calmSince = self.database.now
        self.database.faults = .none
        // Nothing hangs on a notice, and nobody is told of a conflict.
        self.database.faults.lostNotices = 3
        self.database.faults.deadlocks = 60
        self.database.pace = .usual
        self.database.isFull = false
        for place in self.gateways.indices {
            if self.gateways[place]?.isDraining == true { self.end(place, withMachine: false) }
            if self.gateways[place]?.isPaused == true { self.gateways[place]?.store.resume() }
            if self.gateways[place] == nil { self.begin(place) }
        }
        // Whoever was thought dead is found to be, and whoever lives comes back.
        self.run(until: self.database.now + Self.patience)
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
            self.checkPatience()
        }
        guard self.fault == nil else { return }
        if !self.isDone {
            self.wrong("something never ends: \(self.ledger.openCount) pushes, \(self.database.rows.total().total)")
        }
        self.checkEnds()
        self.checkSpacing()
        self.checkStatistics()
    }

    private var isDone: Bool {
        let books = self.database.rows.total().total
        return books.requests.waiting.sum + books.requests.inFlight.sum + books.sessions.wakes == 0
            && self.ledger.openCount == 0 && self.database.rows.wakes.values.allSatisfy { $0.ended != nil }
            && self.database.rows.ready.isEmpty && self.clients.asked.isEmpty
    }

    /// Nothing that could be done at once is waited for for long.
    private func checkPatience() {
        let (now, policyNow) = (self.database.now, self.database.policyNow)
        for (number, asked) in self.clients.asked where max(asked.at, self.calmSince) + Self.patience < now {
            self.wrong("request \(number) is not answered: \(asked.question)")
        }
        for (_, lanes) in self.database.rows.ready {
            guard let since = lanes.map(\.since).min(), since + Self.patience < policyNow,
                self.calmSince + Self.patience < now
            else { continue }
            self.wrong("a lane waits for a slot, and one is free: \(lanes)")
        }
        if let due = self.database.rows.due.values.min(), due + Self.patience < policyNow,
            self.calmSince + Self.patience < now
        {
            self.wrong("something is due and not done since \(policyNow.milliseconds - due.milliseconds) ms")
        }
        self.checkBuried()
        self.checkBooks()
    }

    /// Whatever a dead gateway held is given back soon, whether or not its deadline is past.
    private func checkBuried() {
        for wake in self.database.rows.wakes.values where wake.ended == nil {
            guard let death = self.database.log.deaths[wake.holder],
                max(death, self.calmSince) + Self.patience < self.database.now
            else { continue }
            self.wrong("a wake of a dead gateway is in flight still")
        }
    }

    /// Whoever was taken for dead has told its workers that their wakes are lost.
    private func checkFenced() {
        let log = self.database.log
        for number in self.clients.streams.keys.sorted() {
            for wake in self.clients.streams[number]?.wakes ?? [] {
                guard let place = log.launches[wake], log.deaths[log.commits[place].gateway] != nil else { continue }
                self.wrong("a stream keeps a wake whose gateway was taken for dead")
            }
        }
    }

    /// What is counted is what happened.
    func checkBooks() {
        if let fault = self.ledger.compare(self.database.rows.total().total) { self.wrong(fault) }
    }

    /// Every push that was answered 200 has ended, and none that was refused was counted.
    private func checkEnds() {
        for push in self.clients.accepted where self.ledger.end(of: push) == nil {
            self.wrong("a push that was answered 200 \(self.ledger.has(push) ? "has not ended" : "is lost")")
        }
        for push in self.clients.refused where self.ledger.has(push) {
            self.wrong("a push that was refused is counted")
        }
        if self.ledger.books.accepted > self.clients.accepted.count + self.clients.uncertain.count {
            self.wrong("more pushes are counted than were sent")
        }
        let log = self.database.log
        for wake in log.launches.keys where log.ends[wake] == nil { self.wrong("a wake has never ended") }
        self.coverage.note(.lost, Int(self.ledger.books.results[.lost]))
    }

    /// Of the wakes that workers received of a device that only gets ordinary pushes, and that were not lost, any two
    /// are an interval apart.
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

    /// The wakes of plain devices, whose ends the events of the same commit tell, that ended as lost.
    private func lostWakes() -> Set<WakeID> {
        let log = self.database.log
        var lost: Set<WakeID> = []
        for (wake, known) in self.clients.wakes {
            guard let place = log.ends[wake], let launch = log.launches[wake] else { continue }
            let device = HistoryEvent.device(of: known.device, EngineRig.historyKey)
            let isLost = log.commits[place].events.contains { $0.device == device && $0.kind == .result(.lost) }
            guard isLost else { continue }
            lost.insert(wake)
            let death = log.deaths[log.commits[launch].gateway] ?? .max
            if death <= log.commits[place].at { self.coverage.note(.lostByDeath) }
        }
        return lost
    }

    /// Every gateway tells the same books in the end, which are those of the rows.
    private func checkStatistics() {
        self.run(until: self.database.now + 1500)
        for place in self.gateways.indices {
            self.ask(place, .statistics) { $0.statistics($1) }
            self.run(until: self.database.now + 500)
            let rows = self.database.rows.total().total
            guard let told = self.clients.books, self.fault == nil else { continue }
            if told != rows { self.wrong("statistics tell \(told), and the rows have \(rows)") }
            if told.pending + told.inFlight + told.requests.inFlight.sum != 0 {
                self.wrong("something is left: \(told)")
            }
        }
        self.checkBooks()
        self.checkSlots()
    }

    /// In the end every slot is free, whether or not somebody was told which wakes others have ended.
    private func checkSlots() {
        for _ in 0..<16 where self.fault == nil {
            for place in self.gateways.indices { self.ask(place, .statistics) { $0.statistics($1) } }
            self.run(until: self.database.now + 1000)
            if self.clients.busySlots == 0 { return }
        }
        self.wrong("\(self.clients.busySlots) slots are taken in the end, and nothing is in flight")
    }
}
