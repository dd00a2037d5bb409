import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

/// The production engine room in virtual time, between faulty providers and workers, on a medium that fails and dies.
///
/// The checks are made from the clients' point of view: their requests and the answers to them.
final class RoomSimulation {
    private static let deviceCount = 6
    private static let topicCount = 2
    private static let configuration = EngineRig.openToTasks([
        (.launchInterval, 60), (.executionWindow, 20), (.dailyLaunches, 40), (.budgetWindow, 3600), (.maxAttempts, 3),
        (.immediateBurst, 2), (.immediateRefill, 300), (.defaultTTL, 7200),
    ])

    private let medium: any SimulatedMedium
    private let faultsEvery: Int
    private let clock = SharedClock(boot: 5_000_000, wall: 1_700_000_000_000)
    private let seed: UInt64
    private var generator: SeededGenerator

    private var room: Room?
    /// The last number used. Requests and streams of all lives share the sequence.
    private var requests = 0
    /// The number of steps of the engines; at every third one the store rests.
    private var steps = 0
    private var clients = RoomClients()
    /// The requests that the history handed back, for the next step.
    private var questions: [EngineRequest] = []
    private var policyTime = RoomPolicyTime()
    /// The number of boots of the machine.
    private var boots: UInt64 = 1
    private(set) var coverage = Coverage<RoomEvent>()
    private var fault: String?

    /// One life of the engine room.
    private struct Room {
        let engine: any GatewayEngine
        let committer: SteppedCommitter
        let history: SteppedHistory
        let loop: LoopMailbox
    }

    /// - Parameter faultsEvery: the average number of steps between faults or deaths; 0 for none.
    init(seed: UInt64, on medium: any SimulatedMedium, faultsEvery: Int) {
        self.seed = seed
        self.generator = SeededGenerator(seed: seed)
        self.medium = medium
        self.faultsEvery = faultsEvery
    }

    /// Runs this many steps, then without faults until every push has ended.
    ///
    /// - Returns: the first error.
    func run(steps: Int) -> String? {
        self.start()
        for step in 0..<steps where self.fault == nil {
            self.pass(self.generator.pick([0, 1, 250, 1000, 5000, 30_000, 61_000] as [Int64]))
            self.step { for _ in 0..<self.generator.number(in: 0...3) { self.act($0) } }
            if self.generator.once(in: 2) { self.commit() }
            if self.generator.once(in: 40) { self.setWallClock() }
            if self.generator.once(in: 10) { self.checkPolicyTime() }
            if self.faultsEvery > 0, self.generator.once(in: self.faultsEvery) { self.fail() }
            if let fault = self.fault { return "step \(step): \(fault)" }
        }
        self.calm()
        return self.fault
    }

    private func wrong(_ what: String) { self.fault = self.fault ?? what }
}

// MARK: - Lives

extension RoomSimulation {
    private func start() {
        if self.faultsEvery > 0, self.generator.once(in: 3) { self.medium.planFault(&self.generator) }
        for _ in 0..<5 where self.fault == nil {
            do throws(StoreError) {
                return try self.tryToStart()
            } catch {
                self.coverage.note(.failedStart)
                if self.faultsEvery == 0 { self.wrong("a start failed without fault: \(error.message)") }
                self.medium.clearFaults()
                self.room = nil
                self.medium.die(self.generator.pick(SimulatedDeath.allCases), &self.generator)
            }
        }
        self.wrong("no start succeeds")
    }

    private func tryToStart() throws(StoreError) {
        let loop = LoopMailbox()
        let history = SteppedHistory(self.medium, PerOutput(loop))
        var committer: SteppedCommitter?
        let engine = try LocalEngine(
            configuration: Self.configuration,
            historyKey: EngineRig.historyKey,
            world: self.world(),
            makeCommitter: { store, output, _ throws(StoreError) in
                let made = SteppedCommitter(store, output)
                committer = made
                return made
            },
            store: try self.medium.open(),
            output: GroupOutput(mailboxes: PerOutput(loop), history: history),
            signal: {},
            onFailure: { _ in }
        )
        guard let committer else { return self.wrong("an engine with a store has no committer") }
        self.room = Room(engine: engine, committer: committer, history: history, loop: loop)
        self.clients.restarted()
        self.questions = []
        self.checkPolicyTime(isStart: true)
        self.checkCounters("after a start") { $0.inFlight == 0 }
    }

    private func world() -> EngineWorld {
        let lives = self.coverage[.death] + self.coverage[.failedStart]
        let seed = self.seed &+ UInt64(lives)
        return EngineWorld(self.clock, seed: seed, bootID: self.bootID)
    }

    /// The id of the current boot; nil on a machine that does not provide one.
    private var bootID: BootID? {
        self.seed.isMultiple(of: 4) ? nil : BootID(first: self.boots, second: self.seed)
    }

    /// Makes one of the next operations of the medium fail, or kills the process.
    private func fail() {
        if self.generator.once(in: 2) { return self.medium.planFault(&self.generator) }
        self.die()
    }

    private func die() {
        let death = self.generator.pick(SimulatedDeath.allCases)
        self.coverage.note(.death)
        if self.room?.committer.isBusy == true { self.coverage.note(.deathInCommit) }
        self.room = nil
        self.medium.clearFaults()
        self.medium.die(death, &self.generator)
        let off = self.generator.pick([0, 1, 1000, 60_000] as [Int64])
        self.pass(off)
        if death == .powerLoss { self.reboot() }
        self.policyTime.restarted(isSameBoot: death == .kill && self.bootID != nil)
        self.start()
    }

    private func reboot() {
        self.boots += 1
        self.clock.change { $0.reboot() }
        if self.generator.once(in: 2) { self.setWallClock() }
    }

    /// Sets the wall clock, as an operator may, or as a machine with a wrong clock does at boot.
    private func setWallClock() {
        let change = self.generator.pick([-7_200_000, -600_000, 60_000, 900_000] as [Int64])
        self.coverage.note(change < 0 ? .wallSetBack : .wallSetForward)
        self.clock.change { $0.stepWall(by: change) }
    }

    private func pass(_ milliseconds: Int64) { self.clock.change { $0.pass(milliseconds) } }

    private func commit() {
        self.room?.committer.commit()
        self.take()
    }

    /// Performs one step of the engine with the requests of clients.
    private func step(_ fill: (Requests) -> Void) {
        guard let engine = self.room?.engine else { return }
        let requests = Requests()
        fill(requests)
        for question in self.questions { requests.batch.append(.request(question)) }
        self.questions = []
        requests.batch.notePushesLeave()
        self.steps += 1
        self.room?.committer.isBatching = self.steps % 3 == 0
        _ = engine.step(requests.batch)
        self.take()
        guard self.clients.hasMetFailure else { return }
        // A gateway whose store has failed ends sooner or later.
        self.coverage.note(.failedCommit)
        if self.faultsEvery == 0 { self.wrong("a commit failed without fault") }
        self.die()
    }

    /// Passes the results to the clients.
    private func take() {
        guard let loop = self.room?.loop else { return }
        let told = EngineOutput.all(from: loop)
        for thing in told {
            if case .asked(let question) = thing { self.questions.append(question) }
            if let fault = self.clients.take(thing) { self.wrong(fault) }
            if self.clients.accepted.contains(thing.request) { self.policyTime.accepted(thing.request) }
        }
        self.coverage.add(told)
    }

    /// Sends a request and runs the engine until it is answered; nil if its store fails in the meantime.
    private func ask(_ fill: (Requests, Int) -> Void) -> EngineOutput? {
        self.requests += 1
        let number = self.requests
        self.step { fill($0, number) }
        for _ in 0..<6 {
            if let told = self.clients.answers.removeValue(forKey: number) { return told }
            self.commit()
            self.step { _ in }
        }
        return self.clients.answers.removeValue(forKey: number)
    }
}

// MARK: - What clients do

extension RoomSimulation {
    private func act(_ requests: Requests) {
        self.requests += 1
        let number = self.requests
        let device = self.generator.number(below: Self.deviceCount)
        let topic = device % Self.topicCount
        switch self.generator.number(below: 21) {
        case 0..<10:
            let priority = self.generator.pick([.immediate, .considerate, .considerate, .passive] as [Priority])
            let expiration = self.generator.once(in: 5) ? self.clock.now.wall / 1000 + 40 : nil
            self.clients.sent[number] = device
            self.policyTime.sent(number, to: device, at: self.clock.now.boot)
            requests.push(number, device, topic: topic, priority, expiration: expiration)
        case 10..<13 where self.clients.streams.count < 4:
            let slots = self.generator.number(in: 1...3)
            self.clients.streams[number] = RoomClients.Stream(topic: topic, slots: slots)
            requests.subscribe(number, topic: topic, slots: slots)
        case 13: if let stream = self.someStream() { self.end(stream, requests) }
        case 14..<17: self.report(number, requests)
        case 17:
            requests.conditions(number, device) { $0.appState = self.generator.once(in: 3) ? .active : .background }
        case 18: requests.simulateLaunch(number, device)
        // No worker takes tasks, so that every request waits until another one replaces it.
        case 19:
            let name = "task\(number % 3)"
            self.clients.submissions[number] = (device, name)
            requests.submit(number, device, name, .processing([]))
        default: requests.simulateExpiration(number, device)
        }
    }

    private func end(_ stream: Int, _ requests: Requests) {
        self.clients.ended(stream)
        requests.endStream(stream)
    }

    private func report(_ number: Int, _ requests: Requests) {
        let now = self.clock.now.boot
        if self.generator.once(in: 4), let (wake, result) = self.clients.rememberedResult(at: now) {
            self.clients.reports[number] = RoomClients.Report(wake: wake, result: result, sentAt: now, isRepeated: true)
            return requests.report(number, wake, result)
        }
        let held = self.clients.heldInOrder
        guard !held.isEmpty else { return }
        let wake = self.generator.pick(held)
        let result = self.generator.pick([.newData, .noData, .failed] as [FetchResult])
        self.clients.reports[number] = RoomClients.Report(wake: wake, result: result, sentAt: now)
        requests.report(number, wake, result)
    }

    private func someStream() -> Int? {
        let streams = self.clients.streams.keys.sorted()
        return streams.isEmpty ? nil : self.generator.pick(streams)
    }

    /// Stops all faults and adds good workers, so that every push ends and can report its end.
    private func calm() {
        self.medium.clearFaults()
        self.die()
        for topic in 0..<Self.topicCount {
            _ = self.ask { requests, number in
                self.clients.streams[number] = RoomClients.Stream(topic: topic, slots: 4)
                requests.subscribe(number, topic: topic)
            }
        }
        var rounds = 0
        var last: ActivityCounters?
        while self.fault == nil {
            rounds += 1
            guard rounds < 4000 else {
                return self.wrong("something never ends: \(last.map { "\($0)" } ?? "no counters")")
            }
            // Requests for durable data alone are still answered, so they do not reveal that the store has failed.
            if self.room?.committer.hasFailed == true { self.die() }
            self.pass(5000)
            self.step { requests in
                for wake in self.clients.heldInOrder {
                    self.requests += 1
                    let report = RoomClients.Report(wake: wake, result: .newData, sentAt: self.clock.now.boot)
                    self.clients.reports[self.requests] = report
                    requests.report(self.requests, wake, .newData)
                }
            }
            self.commit()
            guard rounds.isMultiple(of: 20), let counters = self.checkCounters("in the end") else { continue }
            last = counters
            if counters.pending + counters.inFlight == 0 { break }
        }
        self.checkWays()
        self.checkTasks()
    }
}

// MARK: - What holds

extension RoomSimulation {
    /// Checks that every accepted push is in one state, and that none that was answered is missing.
    @discardableResult
    private func checkCounters(
        _ when: String,
        _ holds: (ActivityCounters) -> Bool = { _ in true }
    ) -> ActivityCounters? {
        guard let told = self.ask({ $0.statistics($1) }), self.fault == nil else { return nil }
        guard case .answer(_, .statistics(let statistics)) = told else {
            self.wrong("\(when) statistics are \(told)")
            return nil
        }
        let counters = statistics.counters
        if counters.accepted != counters.accountedFor || !holds(counters) {
            self.wrong("\(when) the counters are \(counters)")
        }
        if counters.accepted < self.clients.accepted.count {
            self.wrong(
                "\(when) \(counters.accepted) pushes are counted, and \(self.clients.accepted.count) answered 200"
            )
        }
        let submitted = counters.requests.submitted.sum
        if submitted != counters.requestsAccountedFor || submitted < self.clients.submittedCount {
            self.wrong("\(when) \(submitted) requests are counted, and \(self.clients.submittedCount) answered 201")
        }
        if counters.accepted > self.clients.sent.count { self.wrong("\(when) more pushes are counted than were sent") }
        if counters.launched < self.clients.wakes.count {
            self.wrong("\(when) \(counters.launched) launches are counted, and \(self.clients.wakes.count) came")
        }
        return counters
    }

    /// - Parameter isStart: true if the gateway has just started.
    private func checkPolicyTime(isStart: Bool = false) {
        guard let device = self.policyTime.device, let told = self.ask({ $0.explain($1, device) }), self.fault == nil
        else { return }
        guard let registered = told.integer("registeredAt") else {
            return self.wrong("a device of a push that was answered 200 is not registered: \(told)")
        }
        let clock = self.clock.now
        self.coverage.note(.policyTimeTold)
        if let fault = self.policyTime.tell(clock.wall - registered, at: clock.boot, isStart: isStart) {
            self.wrong(fault)
        }
    }

    /// Checks that every push answered 200 has a history with an end, and that the histories match the counters.
    private func checkWays() {
        guard let counters = self.checkCounters("at last") else { return }
        var ends: [String: Int64] = [:]
        for push in self.clients.sent.keys.sorted() where self.fault == nil {
            guard let told = self.ask({ $0.way($1, of: push) }) else { return self.wrong("no answer about a push") }
            guard told.status == 200, let state = told.string("state") else {
                if self.clients.accepted.contains(push) {
                    self.wrong("push \(push) was answered 200, and its way: \(told)")
                }
                continue
            }
            ends[state, default: 0] += 1
        }
        let counted = [
            "completed": counters.completed, "coalesced": counters.coalesced, "discarded": counters.discarded.sum,
        ]
        if self.fault == nil, ends != counted.filter({ $0.value > 0 }) {
            self.wrong("the pushes end as \(ends), and the counters are \(counted)")
        }
        self.coverage.note(.wayTold, Int(ends.values.reduce(0, +)))
    }

    /// Checks that a request of each submitted name still waits, because others only replace it.
    private func checkTasks() {
        for (device, names) in self.clients.submitted where self.fault == nil {
            guard let told = self.ask({ $0.listTasks($1, device) }) else { return self.wrong("no answer about tasks") }
            let missing = names.filter { !told.text.contains("\"\($0)\"") }
            if !missing.isEmpty {
                self.wrong("device \(device) was answered 201 about \(missing.sorted()), and has \(told.text)")
            }
        }
    }
}

@Suite("Simulation of the engine room, with failed commits, deaths and restarts", .timeLimit(.minutes(15)))
struct RoomSimulationTests {
    private static let seeds = SimulationSeeds(seed: "WAKEGATE_ROOM_SEED", factor: "WAKEGATE_ROOM_FACTOR")

    @Test(
        "Deaths and failures lose no answered request, and every accepted push ends once",
        arguments: [true, false]
    )
    func holds(onDisk: Bool) {
        var coverage = Coverage<RoomEvent>()
        for seed in Self.seeds.group(of: 24) {
            let medium: any SimulatedMedium = onDisk ? DiskMedium(seed: seed) : MemoryMedium()
            let simulation = RoomSimulation(seed: seed, on: medium, faultsEvery: [6, 20, 60][Int(seed % 3)])
            let fault = simulation.run(steps: 80)
            #expect(fault == nil, "replay with WAKEGATE_ROOM_SEED=\(seed), on \(onDisk ? "a disk" : "memory")")
            #expect(medium.misuses.isEmpty, "seed \(seed)")
            coverage.add(simulation.coverage)
        }
        guard Self.seeds.replayed == nil else { return }
        #expect(coverage.missing(RoomEvent.allCases).isEmpty, "cases that never happened prove nothing")
    }

    @Test("Without failures, only a death loses anything")
    func quiet() {
        for seed in 1...(6 as UInt64) {
            let simulation = RoomSimulation(seed: seed, on: MemoryMedium(), faultsEvery: 0)
            #expect(simulation.run(steps: 80) == nil, "seed \(seed)")
            #expect(simulation.coverage[.failedStart] + simulation.coverage[.failedCommit] == 0)
        }
    }
}

/// The clients' knowledge of policy time, from the reported age of a device's registration.
///
/// Policy time advances with the uptime, however the wall clock is set. From one boot to the next, it never goes back
/// behind the time that was durable when a push was answered.
struct RoomPolicyTime {
    /// A device whose registration is durable and never renewed; nil until there is one.
    private(set) var device: Int?
    /// The age reported last and the uptime at that time, within the same boot; nil before the first report of a boot.
    private var told: (age: Int64, uptime: Int64)?
    /// The minimum age that is durable because of answers.
    private var durableAge: Int64 = 0
    /// The pushes of this life, with their devices and the uptime when they were sent.
    private var pushes: [Int: (device: Int, sentAt: Int64)] = [:]

    mutating func sent(_ push: Int, to device: Int, at uptime: Int64) { self.pushes[push] = (device, uptime) }

    /// Records that a push was answered 200. The durable time is then that of its step, or later.
    mutating func accepted(_ push: Int) {
        guard let (device, sentAt) = self.pushes.removeValue(forKey: push) else { return }
        if self.device == nil { self.device = device }
        guard let told = self.told else { return }
        self.durableAge = max(self.durableAge, told.age + (sentAt - told.uptime))
    }

    /// Records a restart.
    ///
    /// - Parameter isSameBoot: true if the gateway can know that the machine was not restarted.
    mutating func restarted(isSameBoot: Bool) {
        self.pushes = [:]
        if !isSameBoot { self.told = nil }
    }

    /// Checks the age reported at `uptime`.
    ///
    /// - Parameter isStart: true if a start has made this time durable, and no time has passed since.
    /// - Returns: the error in the age.
    mutating func tell(_ age: Int64, at uptime: Int64, isStart: Bool) -> String? {
        defer { self.told = (age, uptime) }
        if let told = self.told, age - told.age != uptime - told.uptime {
            return "policy time advanced by \(age - told.age) ms in \(uptime - told.uptime) ms of one boot"
        }
        if age < self.durableAge {
            return "policy time went back \(self.durableAge - age) ms behind what was durable"
        }
        if isStart { self.durableAge = age }
        return nil
    }
}
