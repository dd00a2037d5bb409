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
        ended: [WakeID] = []
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
    }
}
