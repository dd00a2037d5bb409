import WakeGateTestKit

// MARK: - What fails

extension ClusterSimulation {
    /// Something fails a while later, and something else after it.
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

    /// A gateway dies, and another one starts in its place a while later.
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

    /// A gateway is stopped, for longer than it is waited for or not, and goes on.
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

    /// A gateway is told to launch nothing new, and ends.
    private func drain(_ place: Int) {
        guard let gateway = self.gateways[place], !gateway.isDraining, !gateway.isPaused else { return }
        self.coverage.note(.drain)
        gateway.isDraining = true
        gateway.requests.drain()
        gateway.hurry(until: self.database.now)
        self.plan(after: self.generator.number(in: 500...3000)) {
            guard self.gateways[place] === gateway else { return }
            self.end(place, withMachine: false)
            self.begin(place)
        }
    }
}
