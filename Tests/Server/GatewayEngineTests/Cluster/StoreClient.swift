import Engine
import Policy
import WakeGateTestKit
import Wire

/// A gateway without an engine: what a test asks of its store, and every reply that came.
final class StoreClient {
    let store: SimulatedClusterStore
    private(set) var replies: [ClusterReply] = []
    private var last: UInt64 = 0

    init(_ database: SimulatedDatabase) {
        self.store = SimulatedClusterStore(database, ring: {})
    }

    @discardableResult
    func take() -> [ClusterReply] {
        var new: [ClusterReply] = []
        self.store.takeReplies(into: &new)
        self.replies += new
        return new
    }

    /// Begins a transaction on devices by their numbers, and what `change` adds to the plan.
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

    // MARK: What came

    func loaded(_ number: TransactionNumber) -> LoadedDevices? {
        self.take()
        for case .loaded(number, let loaded) in self.replies { return loaded }
        return nil
    }

    /// The numbers of the devices whose rows were read; nil when none were.
    func devices(_ number: TransactionNumber) -> [Int]? {
        self.loaded(number)?.devices.map { device in
            device.token.withBytes { bytes in (0..<8).reduce(0) { $0 << 8 | Int(bytes[$1]) } }
        }
    }

    /// How a transaction ended, in a word; nil while it has not.
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

    /// The numbers it was attached under, the first first.
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
    /// Devices by their numbers, whose record is one byte.
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
        var books = Books()
        books.accepted = accepted
        self.counts = [(TopicIndex(rawValue: 0), books)]
    }
}
