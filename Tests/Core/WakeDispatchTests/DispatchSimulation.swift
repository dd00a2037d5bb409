import Engine
import Policy
import WakeGateTestKit
import Wire

/// The production dispatcher and engine with faulty workers in virtual time. The seed determines everything.
final class DispatchSimulation {
    let deviceCount: Int
    let topicCount: Int
    private(set) var rig: DispatchRig
    var generator: SeededGenerator
    /// True if there are requests and sessions.
    let hasTasks: Bool
    /// The number of accepted requests and transfers, across restarts.
    var taskCount = 0
    private(set) var configuration: EngineConfiguration
    let tokens: [DeviceToken]

    var models = SimulationModels()
    /// The rows of a store that the engine shares; nil if it has its own.
    private var rows: SharedRows?
    /// The state of a simulated gateway that dies and restarts; nil if it never dies.
    var lives: SimulatedLives?
    var coverage = Coverage<String>()
    /// The messages to workers, in order.
    private(set) var log: [RecordingOutput.Event] = []
    private(set) var fault: String?

    private(set) var workers: [StreamAddress: SimulatedWorker] = [:]
    private var streamCount = 0
    private var answers: [(at: Int64, number: Int, wake: WakeID, deed: SimulatedDeed)] = []
    private var answerCount = 0
    private(set) var wakesSeen: [WakeID] = []
    /// The device that an operator is launching, and the request.
    private(set) var forced: (token: DeviceToken, identifier: String?)?
    /// The wakes that must end because their requests are being cancelled.
    var cancelledWakes: Set<WakeID> = []
    /// The device that is becoming `forceQuit`.
    var quitting: DeviceToken?
    /// The streams that must be notified of the current change of conditions.
    var unheard: Set<StreamAddress> = []
    private var states: [DeviceToken: DeviceState] = [:]
    /// The payload of each push, by its apns-id.
    private var payloads: [APNsID: String] = [:]

    init(seed: UInt64, hasTasks: Bool = false, sharesStore: Bool = false) {
        var generator = SeededGenerator(seed: seed)
        self.deviceCount = generator.number(in: 3...16)
        self.topicCount = generator.number(in: 1...3)
        // With a shared store, warnings are not due times of the engine.
        self.configuration = Self.configuration(&generator, sharesStore ? [(.expirationLead, 0)] : [])
        self.tokens = (0..<self.deviceCount).map { EngineRig.token($0, bytes: 32) }
        self.rig = DispatchRig(self.configuration, seed: generator.next())
        self.generator = generator
        self.hasTasks = hasTasks
        if sharesStore { self.rows = SharedRows(self.rig, topicCount: self.topicCount) }
        if hasTasks { self.reload() }
    }

    private static func configuration(
        _ generator: inout SeededGenerator,
        _ parameters: [(PolicyParameter, Double)]
    ) -> EngineConfiguration {
        let common: [(PolicyParameter, Double)] = [
            (.launchInterval, Double(generator.number(in: 20...300))),
            (.executionWindow, Double(generator.number(in: 5...30))),
            (.maxExtension, Double(generator.pick([0, 10, 90]))),
            (.dailyLaunches, Double(generator.number(in: 2...20))),
            (.budgetWindow, Double(generator.number(in: 600...7200))),
            (.immediateBurst, Double(generator.number(in: 1...3))),
            (.immediateRefill, Double(generator.number(in: 30...900))),
            (.maxAttempts, Double(generator.number(in: 1...4))),
            (.maxInterval, Double(generator.number(in: 300...3600))),
            (.defaultTTL, Double(generator.number(in: 300...7200))),
        ]
        var configuration = EngineRig.open(common + parameters)
        let hasty = EngineRig.open([(.launchInterval, 15), (.maxAttempts, 2), (.defaultTTL, 900)] + parameters).policy
        configuration.topicPolicies[EngineRig.topicName(1)] = hasty
        return configuration
    }

    var now: Instant { self.rig.rig.instant }

    func topic(of device: Int) -> Int { device % self.topicCount }

    func parameters(_ topic: String) -> Parameters {
        self.configuration.topicPolicies[topic] ?? self.configuration.policy
    }

    func parameters(_ token: DeviceToken) -> Parameters {
        guard let device = self.tokens.firstIndex(of: token) else { return self.configuration.policy }
        return self.parameters(EngineRig.topicName(self.topic(of: device)))
    }

    func fail(_ what: String) { self.fault = self.fault ?? what }

    /// Applies another configuration to the gateway.
    func reconfigure(_ configuration: EngineConfiguration) {
        self.configuration = configuration
        self.turn { self.rig.engine.reconfigure(configuration) }
    }

    /// Ends the step of a shared store, makes a change between two steps, and begins the next step.
    private func turn(_ change: (() -> Void)? = nil) {
        guard let rows = self.rows else {
            change?()
            return
        }
        rows.commit(isFollowedAtOnce: change == nil)
        self.took()
        change?()
        if self.generator.once(in: 4) { rows.fail() }
        rows.load()
        self.took()
        if let fault = rows.faults.first { self.fail(fault) }
    }
}

// MARK: - Operations

extension DispatchSimulation {
    /// Advances the time and applies what is due, a few devices at a time.
    func pass(_ milliseconds: Int64) {
        self.turn { self.rig.rig.pass(milliseconds) }
        self.advance()
        self.check()
    }

    private func advance() {
        let devicesMax = self.generator.pick([1, 2, 5, 1000])
        while !self.rig.dispatcher.advance(to: self.now, devicesMax: devicesMax) { self.checkCounters() }
        self.took()
        for token in self.tokens { self.models.ledger.expire(token, at: self.now) }
    }

    /// - Parameter isNamed: true if the client chooses the apns-id and may repeat the push.
    func push(
        _ device: Int,
        _ priority: Priority,
        _ expiration: Expiration,
        wakes: Bool,
        isNamed: Bool
    ) {
        let token = self.tokens[device]
        let topic = EngineRig.topicName(self.topic(of: device))
        let answer = self.rig.push(
            device,
            topic: self.topic(of: device),
            priority,
            expiration,
            wakes: wakes,
            clientID: isNamed ? self.rig.rig.lastPush + 1 : nil
        )
        guard let answer else {
            if !self.models.removed.contains(token) { self.fail("a push to a registered device was refused") }
            return self.check()
        }
        let id = EngineRig.apnsID(self.rig.rig.lastPush)
        if isNamed { self.models.remember(SentPush(number: self.rig.rig.lastPush, answer, at: self.now), of: token) }
        let expiry: Instant =
            switch expiration {
            case .absent: self.now + self.parameters(topic).defaultTTL
            case .nowOrNever: self.now
            case .at(let moment): moment
            }
        self.payloads[id] = "{\"aps\":{\"content-available\":1},\"n\":\(self.rig.rig.lastPush)}"
        let isDelivered = self.rig.output.deliveries.contains { $0.apnsID == id }
        self.models.ledger.accepted(id, expiry: expiry, token, answer.disposition, deliveredAtOnce: isDelivered)
        self.settle()
    }

    func subscribe(
        _ worker: SimulatedWorker,
        topic: Int,
        slots: Int,
        devices: [Int],
        _ takes: StreamTakes = .pushes
    ) {
        self.streamCount += 1
        let address = DispatchRig.address(self.streamCount)
        self.workers[address] = worker
        let tokens = Set(devices.map { self.tokens[$0] })
        self.models.checker.streams[address] =
            WakeChecker.Stream(topic: EngineRig.topicName(topic), slots: slots, devices: tokens, takes: takes)
        self.rig.subscribe(self.streamCount, topic: topic, slots: slots, takes, devices: devices)
        self.settle()
    }

    func endStream(_ address: StreamAddress) {
        self.workers[address] = nil
        if self.rows == nil {
            self.rig.dispatcher.streamEnded(address)
        } else {
            self.rig.dispatcher.lose(self.rig.dispatcher.removeStream(address))
        }
        for delivery in self.models.checker.ended(address) { self.lost(delivery, takingBackAttempt: false) }
        self.settle()
    }

    /// Drains a stream whose worker is stopping.
    func drain(_ address: StreamAddress) {
        self.models.checker.streams[address]?.isDraining = true
        if !self.rig.dispatcher.streamDraining(address, isAdmitted: { _ in true }) { self.fail("a stream is unknown") }
        self.settle()
    }

    /// Requests an extension of a wake, which may not be in flight.
    func extend(_ wake: WakeID, by milliseconds: Int64) {
        let outcome = self.rig.dispatcher.extend(wake, by: milliseconds)
        let topic = self.models.checker.open[wake]?.topic ?? ""
        let parameters = self.parameters(topic)
        let moved = self.models.checker.extended(
            wake,
            until: self.now + milliseconds,
            parameters.maxExtension,
            window: parameters.processingWindow,
            outcome
        )
        if moved { self.coverage.note("extension") }
        if case .limitReached = outcome { self.coverage.note("refused extension") }
        self.settle()
    }

    func pause(_ address: StreamAddress, _ isPaused: Bool) {
        self.models.checker.streams[address]?.isPaused = isPaused
        self.rig.dispatcher.streamPaused(address, isPaused)
        self.settle()
    }

    func changeSlots(_ address: StreamAddress, to slots: Int) {
        self.models.checker.streams[address]?.slots = slots
        self.rig.dispatcher.slotsChanged(address, to: slots)
        self.settle()
    }

    func lose(_ wake: WakeID, on address: StreamAddress, takingBackAttempt: Bool) {
        self.rig.dispatcher.lose(wake, on: address, takingBackAttempt: takingBackAttempt)
        if let delivery = self.models.checker.lost(wake) {
            self.lost(delivery, takingBackAttempt: takingBackAttempt)
        }
        self.settle()
    }

    func report(_ report: WakeReport, _ wake: WakeID) {
        let outcome = self.rig.dispatcher.report(report, wake: wake)
        switch outcome {
        case .ended: break
        case .repeated: self.coverage.note("repeated answer")
        case .endedOtherwise: self.coverage.note("late answer")
        case .unknown: self.coverage.note("unknown answer")
        case .otherKind: self.checkOtherKind(report, wake)
        }
        self.checkRemembered(wake, report, outcome)
        if let delivery = self.models.checker.answered(wake, outcome) {
            self.ended(delivery, reportedAs: report)
            self.lives?.settled[delivery.token] = SimulatedLives.Settled(wake: wake, result: report, at: self.now)
        }
        self.settle()
    }

    func conditions(_ device: Int, _ report: ConditionsReport) {
        guard let index = self.rig.rig.find(device) else { return }
        let token = self.tokens[device]
        let former = self.rig.engine.snapshot(index).state.conditions
        let before = former.appState
        let conditions = self.rig.dispatcher.conditions(report, index)
        let after = conditions.appState
        self.reported(report, token, former, conditions)
        if after == .forceQuit, before != .forceQuit { self.models.ledger.discarded(token, .forceQuit) }
        self.took()
        self.quitting = nil
        if !self.unheard.isDisjoint(with: self.models.checker.streams.keys) {
            self.fail("a stream did not receive conditions")
        }
        self.unheard = []
        self.check()
    }

    func register(_ device: Int) {
        let token = self.tokens[device]
        let topic = EngineRig.topicName(self.topic(of: device))
        let admission = topic.withByteView { self.rig.dispatcher.register(token, topic: $0) }
        guard case .device = admission else { return self.fail("a registration was refused") }
        if self.models.removed.remove(token) != nil {
            self.models.forgetPushes(of: token)
            self.models.tasks.startedAfresh(token, at: self.now, self.parameters(token))
        }
        self.settle()
    }

    /// - Returns: true if it was registered.
    @discardableResult
    func unregister(_ device: Int) -> Bool {
        guard let index = self.rig.rig.find(device) else { return false }
        let token = self.tokens[device]
        self.rig.dispatcher.unregister(index)
        let isNew = self.models.removed.insert(token).inserted
        if isNew {
            self.models.ledger.discarded(token, .unregistered)
            self.models.tasks.startedAfresh(token, at: self.now, self.parameters(token))
        }
        self.settle()
        return isNew
    }

    /// - Parameter identifier: the request to launch; nil for the pending push, or an empty wake.
    func simulateLaunch(_ device: Int, _ identifier: String? = nil) {
        guard let index = self.rig.rig.find(device) else { return }
        let token = self.tokens[device]
        let topic = EngineRig.topicName(self.topic(of: device))
        var expected = Dispatcher.SimulatedLaunch.notPending
        if let target = identifier.map({ self.models.tasks.ledger.request($0, token)?.target }) ?? LaunchTarget.push {
            let lane = target.kind.lane
            let isFull = self.models.checker.count(token, lane) >= self.laneMax(lane, token)
            let couldTake = self.models.checker.couldTakeForced(token, topic: topic, target)
            expected = isFull ? .laneIsFull : couldTake ? .launched : .noWorker
        }
        let outcome = self.rig.dispatcher.simulateLaunch(index, identifier: identifier)
        let name = identifier ?? "a push"
        if outcome != expected { self.fail("launching \(name) answered \(outcome), and not \(expected)") }
        if identifier != nil {
            self.coverage.note("simulated launch: \(outcome)")
        } else if outcome == .launched, self.models.checker.pausedTopics.contains(topic) {
            self.coverage.note("launch in a paused topic")
        }
        self.forced = (token, identifier)
        self.took()
        self.forced = nil
        self.check()
    }

    /// Returns the maximum number of wakes of the lane in flight on the device.
    private func laneMax(_ lane: Lane, _ token: DeviceToken) -> Int {
        lane == .continued ? Int(self.parameters(token).continuedMax) : 1
    }

    /// - Parameter identifier: the request or session to end; nil for the wake in the short lane.
    func simulateExpiration(_ device: Int, _ identifier: String? = nil) {
        guard let index = self.rig.rig.find(device) else { return }
        let token = self.tokens[device]
        let isInFlight =
            identifier.map { self.models.tasks.ledger[token].inFlight.map(\.item.name).contains($0) }
            ?? (self.models.checker.count(token, .short) > 0)
        let happened = self.rig.dispatcher.simulateExpiration(index, identifier: identifier)
        if happened != isInFlight { self.fail("simulate-expiration answered \(happened)") }
        if happened, identifier == nil { self.coverage.note("simulated expiration of the short lane") }
        if happened, identifier != nil { self.coverage.note("simulated expiration") }
        self.settle()
    }

    /// Sends all worker reports that are due.
    func answer() {
        while let next = self.answers.indices.min(by: { left, right in
            (self.answers[left].at, self.answers[left].number) < (self.answers[right].at, self.answers[right].number)
        }), self.answers[next].at <= self.now.milliseconds {
            let answer = self.answers.remove(at: next)
            switch answer.deed {
            case .report(let report): self.report(report, answer.wake)
            case .progress(let completed): self.progress(completed, answer.wake)
            }
        }
    }

    /// The time of the next worker report.
    var nextAnswer: Int64? { self.answers.map(\.at).min() }
}

// MARK: - Observations

extension DispatchSimulation {
    /// - Parameter takingBackAttempt: true if the gateway restarted, or the wake never reached its worker.
    func ended(_ delivery: Delivery, _ outcome: WakeOutcome, takingBackAttempt: Bool = false) {
        self.models.results[outcome] += 1
        self.models.remember(delivery.wake, of: delivery.token)
        self.models.ledger.ended(
            delivery.token,
            outcome,
            at: self.now,
            self.parameters(delivery.topic),
            takingBackAttempt: takingBackAttempt
        )
    }

    /// Processes the messages to workers.
    func took() {
        self.models.checker.warned(self.rig.output.takeWarnings(), at: self.now)
        for event in self.rig.output.take() {
            self.log.append(event)
            switch event {
            case .released: break
            case .drained(let stream):
                self.workers[stream] = nil
                self.coverage.note("drained stream")
                self.models.checker.drained(stream)
            case .conditions(let token, let conditions, let stream): self.heard(token, conditions, stream)
            // A loss must be recorded before its stream is notified.
            case .expired(let wake, _, .lost): if self.models.checker.open[wake] != nil { self.fail("a loss is early") }
            case .expired(let wake, let stream, let reason):
                self.expires(wake, reason)
                guard let delivery = self.models.checker.expired(wake, on: stream) else { break }
                self.ended(delivery, because: reason)
                self.models.ledger.expire(delivery.token, at: self.now)
            case .delivered(let delivery): self.delivered(delivery)
            }
        }
    }

    private func delivered(_ delivery: Delivery) {
        let token = delivery.token
        let laneMax = self.laneMax(delivery.kind.lane, token)
        let isForced = self.forced?.token == token
        self.models.checker.delivered(delivery, at: self.now, laneMax: laneMax, isForced: isForced)
        guard let push = delivery.push else { return self.taskDelivered(delivery) }
        self.models.ledger.launched(delivery.apnsID, token, attempt: push.attempts)
        if delivery.apnsID == nil { self.coverage.note("empty wake") }
        if self.models.checker.streams[delivery.stream]?.devices.isEmpty == false {
            self.coverage.note("delivery to a stream that names devices")
        }
        self.models.launched += 1
        if let id = delivery.apnsID, self.payloads[id].map({ Array($0.utf8) }) != delivery.payload {
            self.fail("wake \(delivery.wake) carries another push's payload")
        }
        self.received(delivery)
    }

    /// Plans the answers of a worker that has received a wake.
    func received(_ delivery: Delivery) {
        self.wakesSeen.append(delivery.wake)
        guard delivery.kind == .push else { return self.plan(self.deeds(delivery), delivery.wake) }
        let window = self.parameters(delivery.topic).executionWindow
        let answers = self.workers[delivery.stream]?.answers(&self.generator, window: window) ?? []
        self.plan(answers.map { ($0.after, .report(.push($0.result))) }, delivery.wake)
    }

    private func plan(_ deeds: [(after: Int64, deed: SimulatedDeed)], _ wake: WakeID) {
        for (after, deed) in deeds {
            self.answerCount += 1
            self.answers.append((self.now.milliseconds + after, self.answerCount, wake, deed))
        }
    }

    private func checkCounters() {
        let counters = self.rig.engine.totals
        if counters.accepted != counters.accountedFor { self.fail("the counters do not balance: \(counters)") }
        let busy = self.rig.dispatcher.workerCounts(nil).busy
        let launched = counters.launched + counters.tasks.launched.sum
        let ended = counters.results.sum + TaskKind.allCases.reduce(0) { $0 + counters.tasks[$1].sum }
        if launched != ended + Int64(busy) { self.fail("\(launched) launches are not \(ended) + \(busy)") }
        self.checkTaskCounters(counters)
        // During a step, the models lag behind.
        guard self.rig.output.events.isEmpty else { return }
        if counters.launched != self.models.launched || counters.results != self.models.results {
            self.fail("the counters have \(counters.launched) launches, and there were \(self.models.launched)")
        }
    }

    /// - Parameter gauges: the registered devices and the first holds, according to the snapshots of all devices.
    private func checkGauges(_ gauges: ActivityCounters) {
        let (totals, shown) = (self.rig.engine.totals, self.rig.engine.totalsShown)
        if totals.registered != gauges.registered || shown.held != gauges.held {
            self.fail("\(totals.registered) devices and \(shown.held) are not those of the snapshots: \(gauges)")
        }
        let sum = self.rig.engine.topicSnapshots.reduce(into: ActivityCounters()) { $0 += $1.counters }
        if sum != totals { self.fail("the topics add up to \(sum), and not to \(totals)") }
    }

    /// Ends an operation: processes the messages to workers, checks the invariants, and stores the step.
    func settle() {
        self.took()
        self.check()
    }

    /// Checks the invariants after a step, then stores the step.
    func check() {
        self.turn()
        self.verify()
        self.keep()
    }

    private func verify() {
        guard self.fault == nil else { return }
        self.checkCounters()
        self.models.checker.stepEnded(at: self.now)
        // Without restarts or a shared store, no store takes the changes.
        let changed = self.lives == nil && self.rows == nil ? Set(self.rig.engine.takeStep().devices) : nil
        var gauges = ActivityCounters()
        for (device, token) in self.tokens.enumerated() {
            guard let index = self.rig.engine.find(token) else { continue }
            let snapshot = self.rig.engine.snapshot(index)
            if let changed, !changed.contains(index), let before = self.states[token], before != snapshot.state {
                self.fail("device \(device) changed, and the step does not say so")
            }
            self.states[token] = snapshot.state
            gauges.registered += snapshot.isRegistered ? 1 : 0
            if let hold = snapshot.held.first { gauges.held[hold] += 1 }
            self.models.ledger.compare(token, pending: snapshot.pendingID, inFlight: snapshot.inFlightID)
            if snapshot.wake != self.models.checker.wakeInFlight(token) {
                self.fail("device \(device) is in another wake")
            }
            self.verifyTasks(token, snapshot)
            self.verifyPause(token, snapshot)
            guard snapshot.held.contains(.worker) else { continue }
            self.coverage.note("push waits for a worker")
            if self.isDraining, self.models.checker.hasFreeTaker(token, topic: snapshot.topic) {
                self.coverage.note("held back by the drain")
            }
            if self.models.checker.couldTake(token, topic: snapshot.topic) {
                self.fail("device \(device) waits for nothing")
            }
        }
        self.checkGauges(gauges)
        self.models.ledger.compare(self.rig.engine.totals)
        self.models.tasks.ledger.compare(self.rig.engine.totals)
        let faults =
            self.models.checker.faults + self.models.ledger.faults + self.models.tasks.allFaults
        if let first = faults.first { self.fail(first) }
    }
}

// MARK: - Lives

extension DispatchSimulation {
    /// Resets the streams after the gateway died and was restarted.
    func begin(_ rig: DispatchRig) {
        self.rig = rig
        self.workers = [:]
        self.states = [:]
        self.lives?.bornAt = self.now
    }
}
