import Engine
import Gateway
import Policy
import WakeGateTestKit
import Wire

// MARK: - Providers, devices and operators

extension ClusterSimulation {
    /// Somebody does something, and something else a while later.
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
        let isNamed = self.generator.once(in: 4)
        let number = self.numbers + 1
        if isNamed { self.named.append((number, device)) }
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

    /// A provider that has heard nothing, or thinks so, sends the same push again, to any gateway.
    private func sendAgain(at place: Int) {
        guard let (push, device) = self.named.last else { return }
        self.coverage.note(.repeatedPush)
        self.ask(place, .push(EngineRig.apnsID(UInt64(push)), isNamed: true)) { requests, number in
            requests.push(number, device, topic: self.topic(device), clientID: push)
        }
    }

    /// What only some devices do.
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
            // A new registration takes a push under the same name as another one.
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
        gateway.hurry(until: self.database.now + 1)
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
        gateway.hurry(until: self.database.now + 1)
    }

    /// A worker leaves.
    func leave(_ number: Int) {
        guard let stream = self.clients.streams[number], let gateway = self.gateways[stream.gateway] else { return }
        self.clients.leaves(number)
        gateway.requests.endStream(number)
        gateway.hurry(until: self.database.now + 1)
    }

    /// A worker has a wake, and answers after a while, or never, there or anywhere else.
    func received(_ wake: HeardWake) {
        guard let stream = self.clients.streams[wake.stream] else { return }
        if stream.isGood {
            let elsewhere = self.generator.once(in: 4) ? self.generator.number(below: Self.gatewayCount) : nil
            return self.plan(after: self.generator.number(in: 0...150)) {
                self.report(wake, at: elsewhere ?? stream.gateway)
            }
        }
        // One worker in a few stalls.
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
            self.report(wake, at: place)
            if self.generator.once(in: 8) { self.report(wake, at: self.generator.number(below: Self.gatewayCount)) }
        }
    }

    private func report(_ wake: HeardWake, at place: Int) {
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
