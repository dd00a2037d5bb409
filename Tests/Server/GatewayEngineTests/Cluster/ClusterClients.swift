import Engine
import Gateway
import Policy
import WakeGateTestKit
import Wire

/// The requests and observations of providers, workers and operators in a simulated cluster, and the checks that are
/// possible from these alone.
struct ClusterClients {
    struct Stream {
        let gateway: Int
        let topic: Int
        let slots: Int
        /// True if the worker answers every wake successfully and without delay.
        let isGood: Bool
        /// The wakes that it received and that have neither been answered nor ended.
        var wakes: Set<WakeID> = []
        var hasBegun = false
        var isDraining = false
    }

    struct Wake {
        let device: DeviceToken
        let kind: WakeKind
        let push: APNsID?
        let stream: Int
    }

    enum Question {
        /// The apns-id of a push, and whether its sender chose it.
        case push(APNsID, isNamed: Bool)
        case subscription
        case report(WakeID)
        /// A worker releases a wake that it could not begin.
        case release(WakeID)
        case statistics
        case other
    }

    struct Asked {
        let question: Question
        let gateway: Int
        /// The virtual time.
        let at: Int64
    }

    private(set) var asked: [Int: Asked] = [:]
    private(set) var streams: [Int: Stream] = [:]
    private(set) var wakes: [WakeID: Wake] = [:]
    /// The pushes by their answers.
    private(set) var accepted: Set<APNsID> = []
    private(set) var refused: Set<APNsID> = []
    /// The pushes whose answer is unknown, or was neither 200 nor 503.
    private(set) var uncertain: Set<APNsID> = []
    /// The wakes that workers released successfully.
    private(set) var givenBack: Set<WakeID> = []
    /// The counters as reported last.
    private(set) var counters: ActivityCounters?
    /// The number of busy slots of all workers, as reported last.
    private(set) var busySlots = 0
    private(set) var fault: String?
    private(set) var coverage = Coverage<ClusterEvent>()

    mutating func wrong(_ what: String) { self.fault = self.fault ?? what }

    // MARK: Asking

    mutating func asks(_ number: Int, _ question: Question, of gateway: Int, at now: Int64) {
        self.asked[number] = Asked(question: question, gateway: gateway, at: now)
    }

    mutating func subscribes(_ number: Int, _ stream: Stream, at now: Int64) {
        self.streams[number] = stream
        self.asks(number, .subscription, of: stream.gateway, at: now)
    }

    /// Removes a worker that leaves or is disconnected.
    mutating func leaves(_ stream: Int) { self.streams[stream] = nil }

    mutating func drains(_ stream: Int) { self.streams[stream]?.isDraining = true }

    /// Removes every connection to a gateway that has died.
    mutating func lose(_ gateway: Int) {
        self.streams = self.streams.filter { $0.value.gateway != gateway }
        for (number, asked) in self.asked where asked.gateway == gateway {
            self.asked[number] = nil
            if case .push(let push, _) = asked.question { self.uncertain.insert(push) }
        }
    }

    /// Returns the streams at a gateway, by number.
    func streams(at gateway: Int) -> [Int] {
        self.streams.filter { $0.value.hasBegun && $0.value.gateway == gateway }.keys.sorted()
    }

    // MARK: Hearing

    mutating func hear(_ heard: EngineOutput, of gateway: ClusterGateway, _ database: SimulatedDatabase) {
        switch heard {
        case .push(let number, let reply): self.answer(number, reply)
        case .answer(let number, let outcome): self.answer(number, outcome, database)
        case .subscribed(let number, _):
            if self.asked.removeValue(forKey: number) == nil { self.wrong("a stream begins twice") }
            self.streams[number]?.hasBegun = true
        case .wake(let wake): self.take(wake, of: gateway, database)
        case .expiring(let wake, _, let timeLeft, let stream):
            if self.wakes[wake]?.stream != stream { self.wrong("a stream was warned of a wake that it never had") }
            if timeLeft <= 0 { self.wrong("a warning comes too late") }
        case .expired(let wake, let reason, let stream):
            if self.wakes[wake]?.stream != stream { self.wrong("a wake expired on a stream that never had it") }
            self.streams[stream]?.wakes.remove(wake)
            self.coverage.note(reason == .lost ? .expiredAsLost : .expired)
        case .released(let wake, let stream):
            if self.wakes[wake]?.stream != stream { self.wrong("a stream was rid of a wake that it never had") }
            self.streams[stream]?.wakes.remove(wake)
        case .drained(let stream):
            if self.streams[stream]?.isDraining == false { self.wrong("a stream ended without a drain") }
            self.streams[stream] = nil
        case .asked, .conditions, .draining: break
        }
    }

    private mutating func answer(_ number: Int, _ reply: PushReply) {
        guard let asked = self.asked.removeValue(forKey: number), case .push(let push, let isNamed) = asked.question
        else { return self.wrong("an answer to no push, or a second one") }
        switch reply.word {
        case "launched", "scheduled", "coalesced", "discarded":
            self.accepted.insert(push)
            self.coverage.note(.accepted)
            // An earlier push without an answer was this one.
            self.uncertain.remove(push)
        case "ServiceUnavailable", "Shutdown", "Unregistered", "TooManyRequests":
            self.coverage.note(reply.reason?.status == 503 ? .unavailable : .refused)
            if isNamed { self.uncertain.insert(push) } else { self.refused.insert(push) }
        default: self.wrong("a push is answered \(reply.word)")
        }
    }

    private mutating func answer(_ number: Int, _ outcome: Outcome, _ database: SimulatedDatabase) {
        guard let asked = self.asked.removeValue(forKey: number) else {
            return self.wrong("an answer to nothing, or a second one")
        }
        if outcome.status == 500 { self.wrong("a request is answered \(outcome.status) \(outcome.reason ?? "")") }
        switch asked.question {
        case .push: self.wrong("a push is answered as something else")
        case .report(let wake): self.reported(wake, outcome, database)
        case .release(let wake):
            if outcome.status == 204 {
                self.givenBack.insert(wake)
                self.coverage.note(.givenBack)
            }
            self.reported(wake, outcome, database)
        case .statistics:
            guard case .statistics(let statistics) = outcome else { return }
            self.counters = statistics.counters
            self.busySlots = statistics.workers.busy
            self.coverage.note(.statistics)
            if statistics.counters.accepted != statistics.counters.accountedFor {
                self.wrong("statistics do not balance: \(statistics.counters)")
            }
        case .subscription: self.streams[number] = nil
        case .other: break
        }
    }

    private mutating func reported(_ wake: WakeID, _ outcome: Outcome, _ database: SimulatedDatabase) {
        switch outcome.status {
        case 204:
            if database.log.ends[wake] == nil { self.wrong("a result is answered 204, and the wake is in flight") }
            self.coverage.note(.reported)
            if let stream = self.wakes[wake]?.stream { self.streams[stream]?.wakes.remove(wake) }
        case 404, 409, 410:
            if database.log.ends[wake] == nil {
                self.wrong("a result is answered \(outcome.status), and the wake is in flight")
            }
            self.coverage.note(.lateReport)
        case 503: break
        default: self.wrong("a result is answered \(outcome.status) \(outcome.reason ?? "")")
        }
    }

    private mutating func take(_ wake: ReceivedWake, of gateway: ClusterGateway, _ database: SimulatedDatabase) {
        self.coverage.note(wake.kind == .push ? .wake : .taskWake)
        guard let place = database.log.launches[wake.id] else {
            return self.wrong("a wake is delivered that no commit has launched")
        }
        let commit = database.log.commits[place]
        if !gateway.store.numbers.contains(commit.gateway) { self.wrong("a wake is delivered by another gateway") }
        if !commit.launched.contains(where: { $0.wake == wake.id && $0.device == wake.device }) {
            self.wrong("a wake is delivered with another device's name")
        }
        let known = Wake(device: wake.device, kind: wake.kind, push: wake.push, stream: wake.stream)
        guard self.wakes.updateValue(known, forKey: wake.id) == nil else {
            return self.wrong("a wake is delivered twice")
        }
        if database.log.ends[wake.id] != nil { self.coverage.note(.wakeOfTheDead) }
        // A worker that has left sees nothing.
        guard let stream = self.streams[wake.stream] else { return }
        if stream.gateway != gateway.place { self.wrong("a wake is delivered to a stream of another gateway") }
        if wake.topic != EngineRig.topicName(stream.topic) { self.wrong("a wake is of another topic") }
        if stream.wakes.count >= stream.slots { self.wrong("a stream has more wakes than slots") }
        self.streams[wake.stream]?.wakes.insert(wake.id)
    }
}

// MARK: - Providers, devices and operators

extension ClusterSimulation {
    /// Plans a random action, and the next one after it.
    func planDeed() {
        self.plan(after: self.generator.number(in: 0...60)) {
            guard !self.isCalm else { return }
            self.act()
            self.planDeed()
        }
    }

    private func act() {
        guard let place = self.someGateway() else { return }
        let device = self.generator.number(below: Self.deviceCount)
        switch self.generator.number(below: 24) {
        case 0..<10: self.push(device, at: place)
        case 10..<14: self.subscribe(at: place)
        case 14: self.changeStream(at: place)
        case 15: self.ask(place, .statistics) { $0.statistics($1) }
        case 16: self.ask(place, .other) { $0.explain($1, device) }
        case 17: self.sendAgain(at: place)
        case 18: self.ask(place, .other) { $0.listTasks($1, device) }
        default: if device >= Self.plainCount { self.touch(device, at: place) }
        }
    }

    private func topic(_ device: Int) -> Int { device % Self.topicCount }

    private func push(_ device: Int, at place: Int) {
        let isPlain = device < Self.plainCount
        let priorities: [Priority] = isPlain ? [.considerate] : [.immediate, .considerate, .considerate, .passive]
        let priority = self.generator.pick(priorities)
        let expiration = self.generator.pick([nil, nil, nil, 0, self.database.wall / 1000 + 6] as [Int64?])
        // A device remembers its last four named pushes. With one more, an earlier one could be accepted and counted
        // again.
        let isNamed = self.generator.once(in: 4) && self.namedCounts[device, default: 0] < 4
        let number = self.numbers + 1
        if isNamed {
            self.named.append((number, device))
            self.namedCounts[device, default: 0] += 1
        }
        self.ask(place, .push(EngineRig.apnsID(UInt64(number)), isNamed: isNamed)) { requests, number in
            requests.push(
                number,
                device,
                topic: self.topic(device),
                priority,
                expiration: expiration,
                clientID: isNamed ? number : nil
            )
        }
    }

    /// A provider without an answer sends the same push again, to any gateway.
    private func sendAgain(at place: Int) {
        guard let (push, device) = self.named.last else { return }
        self.coverage.note(.repeatedPush)
        self.ask(place, .push(EngineRig.apnsID(UInt64(push)), isNamed: true)) { requests, number in
            requests.push(number, device, topic: self.topic(device), clientID: push)
        }
    }

    /// Performs an action that only some devices receive.
    private func touch(_ device: Int, at place: Int) {
        let name = self.generator.pick(["com.example.sync", "com.example.export.a", "com.example.clean"])
        switch self.generator.number(below: 12) {
        case 0, 1:
            self.ask(place, .other) { requests, number in
                requests.conditions(number, device) { report in
                    report.appState = self.generator.pick([.active, .background, .background, .forceQuit])
                    report.network = !self.generator.once(in: 5)
                }
            }
        case 2: self.ask(place, .other) { $0.simulateLaunch($1, device) }
        case 3: self.ask(place, .other) { $0.simulateExpiration($1, device) }
        case 4:
            self.coverage.note(.removal)
            // After a new registration, a push with a known apns-id counts as another one.
            self.named.removeAll { $0.device == device }
            self.ask(place, .other) { $0.unregister($1, device) }
        case 5: self.ask(place, .other) { $0.register($1, device, topic: self.topic(device)) }
        case 6: self.ask(place, .other) { $0.cancel($1, device, name) }
        case 7: self.ask(place, .other) { $0.finish($1, device, "transfers", 2, id: "\($1 / 4)") }
        case 8: self.ask(place, .other) { $0.submit($1, device, name, .continued(.fail)) }
        case 9: self.ask(place, .other) { $0.submit($1, device, name, .continued(.queue)) }
        case 10: self.ask(place, .other) { $0.submit($1, device, name, .processing(TaskNeeds())) }
        default: self.ask(place, .other) { $0.submit($1, device, name, .appRefresh) }
        }
    }
}

// MARK: - Workers

extension ClusterSimulation {
    private func subscribe(at place: Int) {
        guard self.clients.streams.count < 6 else { return }
        self.subscribe(at: place, topic: self.generator.number(below: Self.topicCount), isGood: false)
    }

    func subscribe(at place: Int, topic: Int, isGood: Bool) {
        guard let gateway = self.gateways[place] else { return }
        self.numbers += 1
        let slots = isGood ? 8 : self.generator.number(in: 1...3)
        let takesTasks = isGood || self.generator.once(in: 2)
        let stream = ClusterClients.Stream(gateway: place, topic: topic, slots: slots, isGood: isGood)
        self.clients.subscribes(self.numbers, stream, at: self.database.now)
        gateway.requests.subscribe(
            self.numbers,
            topic: topic,
            slots: slots,
            tasks: takesTasks ? ["com.example.*"] : ["com.example.sync"],
            sessions: takesTasks ? ["transfers"] : [],
            takesPushes: isGood || !self.generator.once(in: 6),
            reportsConditions: self.generator.once(in: 4)
        )
        gateway.requireStep(by: self.database.now + 1)
    }

    private func changeStream(at place: Int) {
        let streams = self.clients.streams(at: place)
        guard !streams.isEmpty, let gateway = self.gateways[place] else { return }
        let stream = self.generator.pick(streams)
        switch self.generator.number(below: 4) {
        case 0:
            self.ask(place, .other) { requests, number in
                self.clients.drains(stream)
                requests.drainStream(number, stream)
            }
        case 1: gateway.requests.pauseStream(stream, true)
        case 2: gateway.requests.pauseStream(stream, false)
        default: self.leave(stream)
        }
        gateway.requireStep(by: self.database.now + 1)
    }

    /// Ends a worker's stream.
    func leave(_ number: Int) {
        guard let stream = self.clients.streams[number], let gateway = self.gateways[stream.gateway] else { return }
        self.clients.leaves(number)
        gateway.requests.endStream(number)
        gateway.requireStep(by: self.database.now + 1)
    }

    /// A worker has received a wake. It answers after a while or never, to this gateway or another.
    func received(_ wake: ReceivedWake) {
        guard let stream = self.clients.streams[wake.stream] else { return }
        if stream.isGood {
            let elsewhere = self.generator.once(in: 4) ? self.generator.number(below: Self.gatewayCount) : nil
            return self.plan(after: self.generator.number(in: 0...150)) {
                self.report(wake, at: elsewhere ?? stream.gateway)
            }
        }
        // Some workers stall.
        guard !self.generator.once(in: 5) else { return }
        let after = self.generator.pick([0...20, 0...200, 500...2600])
        let elsewhere = self.generator.once(in: 3)
        self.plan(after: self.generator.number(in: after)) {
            let place = elsewhere ? self.generator.number(below: Self.gatewayCount) : stream.gateway
            if place != stream.gateway { self.coverage.note(.reportedElsewhere) }
            if wake.kind == .continued, self.generator.once(in: 2) {
                self.ask(place, .other) { $0.progress($1, wake.id, UInt64($1)) }
            }
            if self.generator.once(in: 6) { self.ask(place, .other) { $0.extend($1, wake.id) } }
            if self.generator.once(in: 6) { self.ask(place, .release(wake.id)) { $0.release($1, wake.id) } }
            self.report(wake, at: place)
            if self.generator.once(in: 8) { self.report(wake, at: self.generator.number(below: Self.gatewayCount)) }
        }
    }

    private func report(_ wake: ReceivedWake, at place: Int) {
        let isWell = self.isCalm || !self.generator.once(in: 4)
        self.ask(place, .report(wake.id)) { requests, number in
            if wake.kind == .push {
                requests.report(number, wake.id, isWell ? self.generator.pick([.newData, .noData]) : .failed)
            } else {
                requests.report(number, wake.id, isWell ? TaskResult.success : .failure)
            }
        }
    }
}
