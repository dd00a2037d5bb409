import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

/// Gateways that count in rows, over a database that fails in every way it can.
@Suite("The simulated database when things fail", .timeLimit(.minutes(15)))
struct DatabaseFaultTests {
    @Test("What is acknowledged stays, what is refused is not there, and no row loses a change")
    func holds() {
        var happened: Set<DatabaseLog.Event> = []
        for seed in 1...(24 as UInt64) {
            let crowd = CountingCrowd(seed: seed)
            crowd.run(until: 15_000)
            #expect(crowd.fault == nil, "seed \(seed)")
            happened.formUnion(DatabaseLog.Event.allCases.filter { crowd.database.log.counts[$0] ?? 0 > 0 })
        }
        // Gateways that count ask no questions.
        let missing = Set(DatabaseLog.Event.allCases).subtracting(happened).subtracting([.read])
        #expect(missing == [], "what never happened proves nothing")
    }
}

/// Three gateways that add one to rows of a database.
private final class CountingCrowd {
    let database: SimulatedDatabase
    private(set) var fault: String?
    private var generator: SeededGenerator
    private var clients: [StoreClient?]
    /// What each open transaction of a client has been asked to do: the devices, before they were read and after.
    private var loading: [[TransactionNumber: [Int]]] = [[:], [:], [:]]
    private var committing: [[TransactionNumber: [Int]]] = [[:], [:], [:]]
    /// How often each device was counted up, for certain.
    private var acknowledged: [Int: Int] = [:]
    /// Commits whose client has not lived to hear of them.
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
            client.store.submit(.tell([.ready(TopicIndex(rawValue: 0))]))
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
            for number in view.dead { client.store.submit(.bury(number)) }
        case .detached, .counts, .topics, .topicsRefused, .told, .value, .unkept: break
        }
    }

    /// The rows with one added to each.
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
        var books = Books()
        books.accepted = Int64(devices.count)
        writes.counts = [(TopicIndex(rawValue: 0), books)]
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

    /// Everything is answered, and the rows are what was counted.
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
