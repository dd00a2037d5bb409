import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The simulated database that gateways share")
struct SimulatedDatabaseTests {
    private let database = SimulatedDatabase(seed: 1, pace: .immediate)
    private let first: StoreClient
    private let second: StoreClient

    init() {
        self.first = StoreClient(self.database)
        self.second = StoreClient(self.database)
        self.first.store.submit(.addTopics([EngineRig.topicName(0)]))
    }

    /// Creates devices with `writes`.
    private func make(_ writes: ClusterWrites) {
        let transaction = self.first.load()
        self.first.commit(transaction, writes)
        #expect(self.first.end(transaction) == "committed")
    }

    @Test("A row belongs to one transaction, and a waiting transaction reads the latest commit")
    func locks() {
        self.make(ClusterWrites(1, 2, isNew: true))
        let writer = self.first.load(1)
        let waiter = self.second.load(1, 2)
        let last = self.first.load(2)
        #expect(self.first.devices(writer) == [1])
        #expect(self.second.devices(waiter) == nil)
        #expect(self.first.devices(last) == [2])
        self.first.commit(writer, ClusterWrites(1, record: 7))
        #expect(self.second.devices(waiter) == nil)
        self.first.store.submit(.abandon(last))
        #expect(self.second.loaded(waiter)?.devices.map(\.record) == [[7], [0]])
        #expect(self.database.log.misuses == [])
    }

    @Test("The second of two transactions that insert a device gets a conflict, and none of its writes remain")
    func newcomers() {
        let (one, two) = (self.first.load(1), self.second.load(1))
        #expect(self.first.devices(one) == [])
        self.first.commit(one, ClusterWrites(1, isNew: true, accepted: 1))
        self.second.commit(two, ClusterWrites(1, isNew: true, accepted: 1))
        #expect(self.first.end(one) == "committed")
        #expect(self.second.end(two) == "conflict")
        #expect(self.second.count()?.total.accepted == 1)
    }

    @Test("Counts are the sum of all commits, from dead and live gateways")
    func counts() {
        self.make(ClusterWrites(1, isNew: true, accepted: 2))
        let transaction = self.second.load(1)
        self.second.commit(transaction, ClusterWrites(1, accepted: 3))
        let refused = self.second.load(1)
        self.database.refuseNextCommits()
        self.second.commit(refused, ClusterWrites(1, accepted: 5))
        #expect(self.second.end(refused) == "refused")
        let again = self.second.load(1)
        self.second.commit(again, ClusterWrites(1, accepted: 7))
        self.first.store.kill(withMachine: false)
        self.second.report()
        #expect(self.second.view?.dead.map(\.rawValue) == [1])
        #expect(self.second.count()?.total.accepted == 12)
        self.second.store.submit(.retire(GatewayNumber(rawValue: 1)))
        #expect(self.second.count()?.total.accepted == 12)
        self.second.report()
        #expect(self.second.view?.dead.isEmpty == true)
    }

    @Test("Due devices and devices waiting for a slot are found in order, and skipped while another gateway holds them")
    func selections() {
        let now = self.database.policyNow
        func lanes(_ target: LaunchTarget, _ since: Int64) -> [SharedDeviceChange.ReadyLane] {
            [SharedDeviceChange.ReadyLane(target: target, since: now + since)]
        }
        let task = LaunchTarget(kind: .processing, name: "com.example.sync", resources: ["gpu"])
        self.make(ClusterWrites(1, isNew: true, due: .at(now), ready: lanes(.push, 3)))
        self.make(ClusterWrites(2, isNew: true, due: .at(now + -1), ready: lanes(.push, 2)))
        self.make(ClusterWrites(3, isNew: true, due: .at(now + 1), ready: lanes(task, 1)))
        func due(_ countMax: Int) -> LoadPlan.Selection { .due(countMax: countMax) }
        func ready(_ change: (inout ReadyPlan) -> Void) -> [Int]? {
            var plan = ReadyPlan(topic: TopicIndex(rawValue: 0), takesPushes: false, countMax: 8)
            change(&plan)
            let transaction = self.second.load { $0.selection = .ready(plan) }
            defer { self.second.store.submit(.abandon(transaction)) }
            return self.second.devices(transaction)
        }
        let one = self.first.load { $0.selection = due(1) }
        #expect(self.first.devices(one) == [2])
        #expect(self.first.loaded(one)?.hasMore == true)
        let two = self.second.load { $0.selection = due(8) }
        #expect(self.second.devices(two) == [1])
        #expect(self.second.loaded(two)?.hasMore == false)
        #expect(ready { $0.takesPushes = true } == [])
        self.first.store.submit(.abandon(one))
        self.second.store.submit(.abandon(two))
        #expect(ready { $0.takesPushes = true } == [2, 1])
        #expect(ready { ($0.takesPushes, $0.devices) = (true, [EngineRig.token(1), EngineRig.token(3)]) } == [1])
        #expect(ready { ($0.tasks, $0.resources) = (["com.example.*"], ["cpu", "gpu"]) } == [3])
        #expect(ready { ($0.tasks, $0.resources) = (["com.example.sync"], ["gpu"]) } == [3])
        #expect(ready { $0.tasks = ["com.example.*"] } == [])
        #expect(ready { ($0.tasks, $0.resources) = (["com.example.sync.*", "com.*"], ["gpu"]) } == [3])
        #expect(ready { ($0.tasks, $0.resources) = (["com.example.sync.*"], ["gpu"]) } == [])
        self.second.report()
        #expect(self.second.view?.ready.map(\.since) == [now + 1])
        #expect(self.second.view?.nextDue == now + -1)
    }

    @Test("A wake leads to its device in flight and for ten more minutes, and its end names its holder")
    func wakes() throws {
        var time = self.database.now
        self.database.follow = { time }
        let wake = WakeID(random: (1, 2))
        self.make(ClusterWrites(1, isNew: true, launched: [wake]))
        let transaction = self.second.load { $0.wakes = [wake] }
        #expect(self.second.devices(transaction) == [1])
        self.second.commit(transaction, ClusterWrites(1, ended: [wake]))
        let ends = self.second.take().compactMap { reply in
            if case .committed(transaction, let ends) = reply { ends } else { nil }
        }
        #expect(ends == [[HeldElsewhere(wake: wake, holder: GatewayNumber(rawValue: 1))]])
        for (milliseconds, devices) in [(599_999, [1]), (1, [])] as [(Int64, [Int])] {
            time += milliseconds
            let transaction = self.second.load { $0.wakes = [wake] }
            #expect(self.second.devices(transaction) == devices)
            self.second.store.submit(.abandon(transaction))
        }
        #expect(self.database.log.misuses == [])
    }

    @Test("A commit of a dead gateway is refused, and its wakes are found by its number")
    func fencing() {
        let wake = WakeID(random: (1, 2))
        self.make(ClusterWrites(1, isNew: true, launched: [wake]))
        let late = self.first.load(1)
        #expect(self.first.devices(late) == [1])
        self.first.store.pause()
        self.first.store.cutAll()
        _ = self.database.step()
        self.second.report()
        #expect(self.second.view?.dead.map(\.rawValue) == [1])
        self.first.commit(late, ClusterWrites(1, record: 9))
        self.first.store.resume()
        #expect(["refused", "conflict"].contains(self.first.end(late)))
        #expect(self.first.numbers == [1, 3])
        let lost = self.second.load { $0.selection = .wakes(of: GatewayNumber(rawValue: 1), countMax: 8) }
        #expect(self.second.loaded(lost)?.devices.map(\.record) == [[0]])
    }
}

/// A gateway without an engine: the test's requests to its store, and all replies.
final class StoreClient {
    let store: SimulatedClusterStore
    private(set) var replies: [ClusterReply] = []
    private var last: UInt64 = 0

    init(_ database: SimulatedDatabase) {
        self.store = SimulatedClusterStore(database, signal: {})
    }

    @discardableResult
    func take() -> [ClusterReply] {
        var new: [ClusterReply] = []
        self.store.takeReplies(into: &new)
        self.replies += new
        return new
    }

    /// Begins a transaction on devices by number; `change` modifies the plan.
    func load(_ devices: Int..., change: (inout LoadPlan) -> Void = { _ in }) -> TransactionNumber {
        self.last += 1
        let number = TransactionNumber(rawValue: self.last)
        var plan = LoadPlan()
        plan.tokens = devices.map { EngineRig.token($0) }
        change(&plan)
        self.store.submit(.load(number, plan))
        return number
    }

    func commit(_ number: TransactionNumber, _ writes: ClusterWrites) { self.store.submit(.commit(number, writes)) }

    func count() -> ClusterCounts? {
        self.last += 1
        self.store.submit(.count(TransactionNumber(rawValue: self.last), topics: nil))
        for case .counts(let number, let counts) in self.take() where number.rawValue == self.last { return counts }
        return nil
    }

    func report() { self.store.submit(.report(GatewayReport(name: "gateway", version: "1"))) }

    // MARK: Replies

    func loaded(_ number: TransactionNumber) -> LoadedDevices? {
        self.take()
        for case .loaded(number, let loaded) in self.replies { return loaded }
        return nil
    }

    /// Returns the numbers of the devices whose rows were read; nil if none were.
    func devices(_ number: TransactionNumber) -> [Int]? {
        self.loaded(number)?.devices.map { device in
            device.token.withBytes { bytes in (0..<8).reduce(0) { $0 << 8 | Int(bytes[$1]) } }
        }
    }

    /// Returns the end of a transaction as a word; nil if it has not ended.
    func end(_ number: TransactionNumber) -> String? {
        self.take()
        for reply in self.replies {
            switch reply {
            case .committed(number, _): return "committed"
            case .failed(number, .conflict): return "conflict"
            case .failed(number, .refused): return "refused"
            default: continue
            }
        }
        return nil
    }

    /// The numbers under which it was attached, in order.
    var numbers: [Int32] {
        self.take()
        return self.replies.compactMap { reply in
            if case .attached(let attachment) = reply { attachment.number.rawValue } else { nil }
        }
    }

    /// The last view.
    var view: ClusterView? {
        self.take()
        return self.replies.reversed().lazy.compactMap { if case .view(let view) = $0 { view } else { nil } }.first
    }
}

extension ClusterWrites {
    /// Creates devices by number, with records of one byte.
    init(
        _ devices: Int...,
        record: UInt8 = 0,
        isNew: Bool = false,
        due: SharedDeviceChange.Due = .unchanged,
        ready: [SharedDeviceChange.ReadyLane]? = nil,
        launched: [WakeID] = [],
        ended: [WakeID] = [],
        accepted: Int64 = 0
    ) {
        self.init()
        self.devices = devices.map { device in
            SharedDeviceChange(
                device: SharedDevice(token: EngineRig.token(device), record: [record], tasks: [], derived: []),
                topic: TopicIndex(rawValue: 0),
                isNew: isNew,
                due: due,
                ready: ready,
                launched: launched.map { ($0, Instant(milliseconds: 0)) },
                ended: ended
            )
        }
        var counters = ActivityCounters()
        counters.accepted = accepted
        self.counts = [(TopicIndex(rawValue: 0), counters)]
    }
}

/// Gateways that count in rows, on a database that fails in every possible way.
@Suite("The simulated database when things fail", .timeLimit(.minutes(15)))
struct DatabaseFaultTests {
    @Test("Acknowledged commits stay, refused ones leave no trace, and no row loses a change")
    func holds() {
        var happened: Set<DatabaseLog.Event> = []
        for seed in 1...(24 as UInt64) {
            let crowd = CountingCrowd(seed: seed)
            crowd.run(until: 15_000)
            #expect(crowd.fault == nil, "seed \(seed)")
            happened.formUnion(DatabaseLog.Event.allCases.filter { crowd.database.log.counts[$0] ?? 0 > 0 })
        }
        // Gateways that only count send no requests for reading.
        let missing = Set(DatabaseLog.Event.allCases).subtracting(happened).subtracting([.read])
        #expect(missing == [], "cases that never happened prove nothing")
    }
}

/// Three gateways that increment the rows of a database.
private final class CountingCrowd {
    let database: SimulatedDatabase
    private(set) var fault: String?
    private var generator: SeededGenerator
    private var clients: [StoreClient?]
    /// The devices of each client's open transactions, before and after their rows were read.
    private var loading: [[TransactionNumber: [Int]]] = [[:], [:], [:]]
    private var committing: [[TransactionNumber: [Int]]] = [[:], [:], [:]]
    /// The number of confirmed increments of each device.
    private var acknowledged: [Int: Int] = [:]
    /// The increments whose client died before their confirmation.
    private var unheard: [Int: Int] = [:]
    private var dead: Set<Int32> = []

    init(seed: UInt64) {
        self.generator = SeededGenerator(seed: seed)
        self.database = SimulatedDatabase(seed: seed)
        self.database.faults.lostReplies = 20
        self.database.faults.lostCommits = 40
        self.database.faults.lostLoads = 40
        self.database.faults.refusedCommits = 30
        self.database.faults.deadlocks = 50
        self.database.faults.lostNotices = 4
        self.database.faults.doubledNotices = 4
        let database = self.database
        self.clients = (0..<3).map { _ in StoreClient(database) }
    }

    func run(until end: Int64) {
        let start = self.database.now
        var nextReport = start
        while self.database.now < start + end, self.fault == nil {
            self.database.run(until: self.database.now + 5)
            for place in self.clients.indices { self.turn(place) }
            if nextReport <= self.database.now {
                nextReport += 1000
                for client in self.clients { if client?.store.isPaused == false { client?.report() } }
            }
            if self.generator.once(in: 100) { self.fail() }
        }
        self.calm()
    }

    private func wrong(_ what: String) { self.fault = self.fault ?? what }

    private func turn(_ place: Int) {
        guard let client = self.clients[place], !client.store.isPaused else { return }
        for reply in client.take() { self.hear(reply, client, place) }
        let isAttached = client.store.number != nil
        let hasTopic = !self.database.rows.topics.isEmpty
        if isAttached, hasTopic, client.store.openCount < 4, self.generator.once(in: 2) {
            let devices = Set((0..<self.generator.number(in: 1...3)).map { _ in self.generator.number(below: 8) })
            let number = client.load { plan in
                plan.tokens = devices.map { EngineRig.token($0) }
                if self.generator.once(in: 4) { plan.selection = .due(countMax: 1) }
            }
            self.loading[place][number] = devices.sorted()
        }
        if isAttached, self.generator.once(in: 40) {
            client.store.submit(.sendNotices([.ready(TopicIndex(rawValue: 0))]))
            client.store.submit(.addTopics([EngineRig.topicName(0)]))
        }
    }

    private func hear(_ reply: ClusterReply, _ client: StoreClient, _ place: Int) {
        switch reply {
        case .attached(let attachment):
            if !self.dead.insert(attachment.number.rawValue).inserted { self.wrong("a number is given twice") }
        case .loaded(let number, let loaded):
            guard let devices = self.loading[place].removeValue(forKey: number) else {
                return self.wrong("rows were read twice")
            }
            if self.generator.once(in: 20) { return client.store.submit(.abandon(number)) }
            self.committing[place][number] = devices
            client.commit(number, self.counted(devices, loaded))
        case .committed(let number, _):
            guard let devices = self.committing[place].removeValue(forKey: number) else {
                return self.wrong("a commit ended twice")
            }
            for device in devices { self.acknowledged[device, default: 0] += 1 }
        case .failed(let number, _):
            let isKnown = self.loading[place].removeValue(forKey: number) != nil
            if self.committing[place].removeValue(forKey: number) == nil, !isKnown {
                self.wrong("a transaction ended twice")
            }
        case .view(let view):
            for number in view.dead { client.store.submit(.retire(number)) }
        case .detached, .counts, .topics, .topicsRefused, .notified, .value, .valueNotStored: break
        }
    }

    /// Returns the rows with one added to each.
    private func counted(_ devices: [Int], _ loaded: LoadedDevices) -> ClusterWrites {
        var writes = ClusterWrites()
        for device in devices {
            let row = loaded.devices.first { $0.token == EngineRig.token(device) }
            let count = row.map { Int($0.record[0]) << 8 | Int($0.record[1]) } ?? 0
            let record = [UInt8(truncatingIfNeeded: (count + 1) >> 8), UInt8(truncatingIfNeeded: count + 1)]
            let one = ClusterWrites(device, isNew: row == nil)
            let change = one.devices[0]
            writes.devices.append(
                SharedDeviceChange(
                    device: SharedDevice(token: change.device.token, record: record, tasks: [], derived: []),
                    topic: change.topic,
                    isNew: change.isNew,
                    due: .at(Instant(milliseconds: 0)),
                    ready: nil,
                    launched: [],
                    ended: []
                )
            )
        }
        var counters = ActivityCounters()
        counters.accepted = Int64(devices.count)
        writes.counts = [(TopicIndex(rawValue: 0), counters)]
        return writes
    }

    private func fail() {
        let place = self.generator.number(below: 3)
        switch self.generator.number(below: 9) {
        case 0: self.database.failOver(outage: 1500, clockAhead: self.generator.pick([-4000, 0, 4000]))
        case 1: self.clients[place]?.store.cutAll()
        case 2, 3: self.clients[place]?.store.cutOne()
        case 4: self.kill(place)
        case 5: self.clients[place]?.store.pause()
        case 6: self.database.isFull.toggle()
        default:
            for client in self.clients { if client?.store.isPaused == true { client?.store.resume() } }
        }
    }

    private func kill(_ place: Int) {
        guard let client = self.clients[place] else {
            self.clients[place] = StoreClient(self.database)
            return
        }
        client.store.kill(withMachine: self.generator.once(in: 2))
        for devices in self.committing[place].values { for device in devices { self.unheard[device, default: 0] += 1 } }
        self.clients[place] = nil
        self.loading[place] = [:]
        self.committing[place] = [:]
    }

    /// Checks that everything is answered, and that the rows match the counts.
    private func calm() {
        self.database.faults = .none
        self.database.isFull = false
        for client in self.clients { if client?.store.isPaused == true { client?.store.resume() } }
        for _ in 0..<2000 where self.fault == nil {
            self.database.run(until: self.database.now + 5)
            for place in self.clients.indices {
                guard let client = self.clients[place] else { continue }
                for reply in client.take() { self.hear(reply, client, place) }
            }
        }
        if self.loading.contains(where: { !$0.isEmpty }) || self.committing.contains(where: { !$0.isEmpty }) {
            self.wrong("something is never answered")
        }
        var total: Int64 = 0
        for (device, row) in self.database.rows.devices {
            let count = Int(row.device.record[0]) << 8 | Int(row.device.record[1])
            total += Int64(count)
            let place = device.withBytes { Int($0[7]) }
            let known = self.acknowledged[place] ?? 0
            if count < known || count > known + (self.unheard[place] ?? 0) {
                self.wrong("device \(place) is \(count), and \(known) were acknowledged")
            }
        }
        let counted = self.database.rows.total().total.accepted
        if counted != total { self.wrong("\(counted) are counted, and the rows have \(total)") }
        if let misuse = self.database.log.misuses.first { self.wrong(misuse) }
    }
}
