import Engine
import Gateway
import Platform
import Policy
import WakeGateTestKit
import Wire

/// Three production gateways on one simulated database, in virtual time, between providers and workers that come and
/// go, while gateways, connections and the primary fail.
///
/// What they are held to is known to their clients, and to whoever reads the database's rows: nothing of the policy
/// decides here.
final class ClusterSimulation {
    static let deviceCount = 8
    /// Devices below this number are sent ordinary pushes alone, and nobody touches them otherwise.
    static let plainCount = 2
    static let topicCount = 2
    static let gatewayCount = 3
    static let launchInterval: Int64 = 3000

    static let configuration = EngineRig.openToTasks([
        ("launchInterval", 3), ("executionWindow", 2), ("dailyLaunches", 30), ("budgetWindow", 3600),
        ("maxAttempts", 3), ("maxPenalty", 1), ("maxInterval", 6), ("immediateBurst", 2), ("immediateRefill", 6),
        ("defaultTTL", 12), ("processingWindow", 3), ("processingInterval", 3), ("progressWindow", 2),
        ("maxExtension", 3), ("refreshFlex", 0),
    ])

    let database: SimulatedDatabase
    let make: ClusterGateway.Maker
    /// How bad it is: something fails once in so many milliseconds, on average; 0 for never.
    let failsEvery: Int
    var generator: SeededGenerator
    var gateways: [ClusterGateway?] = Array(repeating: nil, count: ClusterSimulation.gatewayCount)
    var clients = ClusterClients()
    var ledger = ClusterLedger(attemptsMax: 3)
    var calendar = EventCalendar()
    var coverage = ClusterCoverage()
    /// Requests, streams and pushes have numbers of their own.
    var numbers = 0
    /// Pushes with an apns-id of their sender's, and their devices.
    var named: [(push: Int, device: Int)] = []
    /// Everything works, and workers answer.
    var isCalm = false
    var calmSince: Int64 = .max
    private let start: Int64
    private let clock: SharedClock
    private var lives: UInt64 = 0
    /// How many turns there were since time went on.
    private var passCount = 0
    private(set) var fault: String?

    /// - `failsEvery`: in milliseconds; 0 for never.
    init(seed: UInt64, failsEvery: Int, make: @escaping ClusterGateway.Maker) {
        self.generator = SeededGenerator(seed: seed)
        self.database = SimulatedDatabase(seed: self.generator.next())
        self.failsEvery = failsEvery
        self.make = make
        self.start = self.database.now
        self.clock = SharedClock(boot: 5_000_000, wall: self.database.now)
    }

    /// Lives through so many milliseconds, then in peace until everything has ended.
    ///
    /// - Returns: the first thing that was wrong.
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
            let next = [self.calendar.firstAt, self.database.nextEventAt, stepAt].compactMap { $0 }.min() ?? end
            guard next <= end else { break }
            let before = self.database.now
            self.pass(until: next)
            self.passCount = self.database.now == before ? self.passCount + 1 : 0
            if self.passCount == 1000 { self.wrong("time stands still: \(self.busy)") }
        }
        if self.fault == nil { self.pass(until: end) }
    }

    /// Everything that happens at one moment, or did before.
    private func pass(until moment: Int64) {
        self.database.run(until: moment)
        self.clock.change { $0.pass(self.database.now - self.start - ($0.boot - 5_000_000)) }
        while let next = self.calendar.firstAt, next <= self.database.now { self.calendar.popFirst()?.event() }
        for _ in 0..<50 where self.fault == nil {
            let due = self.gateways.compactMap { $0 }.filter { $0.isDue(at: self.database.now) }
            guard !due.isEmpty else { break }
            for gateway in due where self.fault == nil { self.step(gateway) }
        }
        self.ledger.read(self.database.log)
        if let fault = self.clients.fault ?? self.ledger.fault { self.wrong(fault) }
    }

    /// What each gateway is up to.
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
        self.calendar.plan(at: self.database.now + Int64(milliseconds), event)
    }

    // MARK: Lives

    /// Another life of a gateway begins.
    func begin(_ place: Int) {
        self.lives += 1
        let (clock, seed) = (self.clock, self.generator.next())
        // Nobody sees to it that the gateways' clocks are right.
        let ahead = Int64(self.generator.number(in: -3000...3000))
        let plain = EngineWorld(clock, seed: seed)
        let world = EngineWorld(
            wall: { clock.now.wall + ahead },
            boot: plain.boot,
            monotonic: plain.monotonic,
            bootID: nil,
            makeRandom: plain.makeRandom
        )
        do {
            self.gateways[place] = try ClusterGateway(
                place,
                { outlet, ring in
                    ClusterGateway.Parts(
                        configuration: Self.configuration,
                        world: world,
                        database: self.database,
                        outlet: outlet,
                        ring: ring
                    )
                },
                self.make
            )
        } catch {
            self.wrong("a gateway does not start: \(error)")
        }
    }

    /// A gateway is gone, and every connection to it.
    func end(_ place: Int, withMachine: Bool) {
        self.gateways[place]?.store.kill(withMachine: withMachine)
        self.gateways[place] = nil
        self.clients.lose(place)
    }

    // MARK: Asking

    /// Asks a gateway, which takes what it is asked within a few milliseconds.
    ///
    /// - Returns: the number of what was asked.
    @discardableResult
    func ask(_ place: Int, _ question: ClusterClients.Question, _ fill: (Requests, Int) -> Void) -> Int? {
        guard let gateway = self.gateways[place] else { return nil }
        self.numbers += 1
        self.clients.asks(self.numbers, question, of: place, at: self.database.now)
        fill(gateway.requests, self.numbers)
        gateway.hurry(until: self.database.now + Int64(self.generator.number(in: 0...2)))
        return self.numbers
    }

    /// A gateway that is there, if any is.
    func someGateway() -> Int? {
        let places = self.gateways.indices.filter { self.gateways[$0] != nil }
        return places.isEmpty ? nil : self.generator.pick(Array(places))
    }
}
