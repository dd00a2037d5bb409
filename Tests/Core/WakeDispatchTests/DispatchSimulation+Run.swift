import Engine
import Policy
import WakeGateTestKit
import Wire

extension DispatchSimulation {
    /// Runs random steps with faults, then a calm phase with good workers until everything has ended.
    ///
    /// - Parameters:
    ///   - deadStep: the step at which the gateway certainly dies.
    ///   - drainStep: the step at which it begins to shut down. A gateway that never dies ends with the shutdown.
    /// - Returns: the first fault that was found, and its step.
    func run(steps: Int, dyingAt deadStep: Int? = nil, drainingAt drainStep: Int? = nil) -> String? {
        for step in 0..<steps {
            if step == deadStep { self.die() }
            if step == drainStep { self.drain() }
            self.pass(self.someTime())
            self.answer()
            for _ in 0..<self.generator.number(in: 1...3) { self.act() }
            if self.generator.once(in: 2), !self.isDraining { self.repeatPush() }
            if self.generator.once(in: 4) { self.actAsWebhook() }
            self.actOnTasks()
            if self.generator.once(in: 3) { self.actOnWaiting() }
            if let fault = self.fault { return "step \(step): \(fault)" }
        }
        if drainStep != nil { self.endDrain() }
        if drainStep == nil || self.lives != nil { self.calm() }
        self.noteCounted(self.rig.engine.totals)
        self.coverage.note("stall", self.models.checker.stalls)
        return self.fault.map { "after the faults: \($0)" }
    }

    /// Notes the events that the gateway has counted.
    private func noteCounted(_ totals: ActivityCounters) {
        self.coverage.note("push launched", Int(totals.launched))
        self.coverage.note("push completed", Int(totals.completed))
        self.coverage.note("push coalesced", Int(totals.coalesced))
        for outcome in WakeOutcome.allCases { self.coverage.note("push \(outcome)", Int(totals.results[outcome])) }
        for reason in DiscardReason.allCases {
            self.coverage.note("push discarded \(reason)", Int(totals.discarded[reason]))
            self.coverage.note("request discarded \(reason)", Int(totals.requests.discarded[reason]))
        }
    }

    private func someTime() -> Int64 {
        // Often the exact time at which something is due, where rules interact.
        if self.generator.once(in: 3), let due = self.rig.engine.nextDue {
            return min(max(0, due.milliseconds - self.now.milliseconds), 600_000)
        }
        return self.generator.pick([0, 0, 1, 250, 1000, 5000, 30_000, 61_000, 240_000])
    }

    private func act() {
        if self.lives != nil {
            // Workers reconnect after the gateway was gone.
            if self.workers.count < 2 { self.subscribeSomebody() }
            if self.generator.once(in: 8) { return self.reanswer() }
        }
        let device = self.generator.number(below: self.deviceCount)
        switch self.generator.number(below: 44) {
        case 0..<18: if !self.isDraining { self.pushSomething(device) }
        case 18..<23: self.subscribeSomebody()
        case 23..<26: if let stream = self.someStream() { self.endStream(stream) }
        case 26..<28:
            if let stream = self.someStream() { self.pause(stream, self.generator.once(in: 3)) }
        case 28..<32: self.reportConditions(device)
        case 32: if self.unregister(device) { self.coverage.note("removal") }
        case 33..<35: self.register(device)
        case 35..<37: self.simulateLaunch(device)
        case 37: self.simulateExpiration(device)
        case 38..<41: self.extendSomething()
        case 41: if self.generator.once(in: 2), let stream = self.someStream() { self.drain(stream) }
        default: self.misanswer()
        }
    }

    private func pushSomething(_ device: Int) {
        let expiration = self.generator.pick(
            [
                .absent, .absent, .nowOrNever, .at(self.now), .at(self.now + 1), .at(self.now + 40_000),
                .at(self.now + 600_000),
            ] as [Expiration]
        )
        let priority = self.generator.pick([.immediate, .considerate, .considerate, .passive] as [Priority])
        self.push(
            device,
            priority,
            expiration,
            wakes: !self.generator.once(in: 20),
            isNamed: self.generator.once(in: 2)
        )
    }

    private func subscribeSomebody() {
        guard self.workers.count < 6, !self.isDraining else { return }
        let topic = self.generator.number(below: self.topicCount)
        let worker = self.generator.pick(SimulatedWorker.allCases)
        let named = (0..<self.deviceCount).filter { self.topic(of: $0) == topic && $0 % 2 == 0 }
        let devices = self.generator.once(in: 3) ? Array(named.prefix(self.generator.number(in: 1...4))) : []
        let slots = self.generator.number(in: 1...4)
        self.subscribe(worker, topic: topic, slots: slots, devices: devices, self.someTakes())
    }

    /// Returns one of the open streams, in an order that the seed determines.
    func someStream() -> StreamAddress? {
        let streams = self.workers.keys.sorted { $0.number < $1.number }
        return streams.isEmpty ? nil : self.generator.pick(streams)
    }

    /// True if everything that was accepted has ended.
    private var isDone: Bool {
        let counters = self.rig.engine.totals
        return counters.pending + counters.inFlight == 0 && self.models.tasks.ledger.isDone
    }

    private func reportConditions(_ device: Int) {
        var report = ConditionsReport()
        switch self.generator.number(below: 7) {
        case 0: report.appState = .active
        case 1: report.appState = .forceQuit
        case 2: report.network = self.generator.once(in: 2)
        case 3: report.batteryLevel = self.generator.pick([0.1, 0.9])
        case 4: report.thermalState = self.generator.pick(Conditions.ThermalState.allCases)
        case 5: report.lowPowerMode = self.generator.once(in: 2)
        default: report = Self.wellBeing
        }
        self.conditions(device, report)
    }

    static var wellBeing: ConditionsReport {
        var report = ConditionsReport()
        report.appState = .background
        report.network = true
        report.batteryLevel = 1
        report.thermalState = .nominal
        report.memoryPressure = .normal
        report.lowPowerMode = false
        return report
    }

    /// Requests an extension as a worker, usually for a wake that it holds.
    private func extendSomething() {
        let open = self.models.checker.open.keys.sorted { ($0.first, $0.second) < ($1.first, $1.second) }
        let wakes = open.isEmpty || self.generator.once(in: 6) ? self.wakesSeen : open
        guard !wakes.isEmpty else { return }
        self.extend(self.generator.pick(wakes), by: self.generator.pick([1, 1000, 15_000, 40_000, 200_000]))
    }

    /// Reports a result for an old or nonexistent wake.
    private func misanswer() {
        let result = self.generator.pick(FetchResult.allCases)
        guard self.generator.once(in: 2), !self.wakesSeen.isEmpty else {
            return self.report(.push(result), WakeID(random: (self.generator.next(), 1)))
        }
        self.report(.push(result), self.generator.pick(self.wakesSeen))
    }

    /// Repeats a result that was already answered.
    private func reanswer() {
        guard let settled = self.lives?.settled, !settled.isEmpty else { return }
        let all = settled.values.sorted { ($0.at, $0.wake.first) < ($1.at, $1.wake.first) }
        let again = self.generator.pick(self.generator.once(in: 3) ? all : Array(all.suffix(3)))
        let other = WakeReport.push(self.generator.pick(FetchResult.allCases))
        self.report(self.generator.once(in: 4) ? other : again.result, again.wake)
    }

    /// Passes the time from one event to the next until the condition holds.
    func pass(until isDone: () -> Bool) {
        for _ in 0..<10_000 {
            guard !isDone(), self.fault == nil else { return }
            let moments = [self.rig.engine.nextDue?.milliseconds, self.nextAnswer].compactMap { $0 }
            guard let next = moments.min() else { break }
            self.pass(max(1, next - self.now.milliseconds))
            self.answer()
        }
        self.fail("something never ends")
    }

    /// Stops all faults. Everything that was accepted must end.
    private func calm() {
        self.lives?.diesEvery = 0
        self.die()
        while let stream = self.someStream() { self.endStream(stream) }
        self.calmTasks()
        self.resumeEveryTopic()
        for topic in 0..<self.topicCount {
            self.subscribe(.good, topic: topic, slots: 64, devices: [], self.allTakes)
        }
        for device in 0..<self.deviceCount { self.conditions(device, Self.wellBeing) }
        self.pass { self.isDone }
        // Empty wakes must end, too.
        self.pass(60_000)
        self.answer()
        // A removed device without a wake needs no memory.
        for device in 0..<self.deviceCount { self.unregister(device) }
        if self.rig.engine.contentBytes + self.rig.engine.taskBytes != 0 { self.fail("memory is never freed") }
        self.die()
        if self.rig.dispatcher.workerCounts(nil).busy != 0 { self.fail("a wake is in flight forever") }
        if self.models.ledger.ends.count != self.models.ledger.accepted { self.fail("a push has no end") }
        if self.models.checker.open.count != 0 { self.fail("a worker still holds a wake") }
        if !self.models.tasks.ledger.isDone { self.fail("a request has no end") }
    }
}

/// Repeated pushes, as from clients that got no answer.
extension DispatchSimulation {
    /// The time for which a push is remembered, in milliseconds.
    private static var memory: Int64 { 600_000 }

    /// Repeats one of the last four pushes of a sender to a device, within the time for which they are remembered.
    func repeatPush() {
        let device = self.generator.number(below: self.deviceCount)
        let token = self.tokens[device]
        let sent = (self.models.sentPushes[token] ?? []).filter {
            self.now.milliseconds - $0.at.milliseconds < Self.memory
        }
        guard !sent.isEmpty, !self.models.removed.contains(token) else { return }
        let first = self.generator.pick(sent)
        let counters = self.rig.engine.totals
        let before = self.frozen(device, self.rig)
        let number = self.rig.rig.lastPush
        let answer = self.rig.push(
            device,
            topic: self.topic(of: device),
            self.generator.pick(Priority.allCases),
            self.generator.pick([.absent, .nowOrNever] as [Expiration]),
            clientID: first.number
        )
        // The repetition must not consume a number, because no new push exists.
        self.rig.rig.lastPush = number
        guard answer == first.answer else {
            return self.fail("push \(first.number) was answered \(first), and \(answer as Any) when it came again")
        }
        if self.rig.engine.totals != counters { self.fail("push \(first.number) is counted again") }
        if self.frozen(device, self.rig) != before { self.fail("push \(first.number) changed its device again") }
        self.coverage.note("repeated push")
        if let lives = self.lives, lives.bornAt > first.at { self.coverage.note("repeated push after a restart") }
    }
}

extension DispatchSimulation {
    /// Performs an action of a webhook's stream: changes its slots, or loses one wake.
    func actAsWebhook() {
        guard let stream = self.someStream() else { return }
        let open = self.models.checker.streams[stream]?.open ?? []
        let wakes = open.sorted { ($0.first, $0.second) < ($1.first, $1.second) }
        if wakes.isEmpty || self.generator.once(in: 2) {
            let slots = self.generator.pick([0, 1, 2, 4, 4])
            self.coverage.note("slot change")
            self.changeSlots(stream, to: slots)
        } else {
            self.coverage.note("loss on an open stream")
            self.lose(self.generator.pick(wakes), on: stream, takingBackAttempt: self.generator.once(in: 2))
        }
    }
}
