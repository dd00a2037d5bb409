/// The ready transfers of one session, grouped by host. The hosts take turns. The transfers of a host start in order.
struct SessionSchedule {
    private struct Lane {
        var ready: [TransferID] = []
        /// The index in `ready` of the transfer that starts next.
        var head = 0
        var running = 0
        var isQueued = false

        var hasReady: Bool { self.head < self.ready.count }
    }

    /// The maximum number of running transfers of a host.
    var connectionsPerHost: Int {
        didSet { for host in Array(self.lanes.keys) { self.open(host) } }
    }
    private var lanes: [String: Lane] = [:]
    /// The hosts with a ready transfer and a free connection, in the order of their turns.
    private var queue: [String] = []
    private var queueHead = 0

    init(connectionsPerHost: Int) {
        self.connectionsPerHost = connectionsPerHost
    }

    var hasOpenLane: Bool { self.queueHead < self.queue.count }

    /// Returns true if a waiting transfer could start now. Transfers that were cancelled remain in their lane until
    /// their turn.
    func hasReady(_ isWaiting: (TransferID) -> Bool) -> Bool {
        self.queue[self.queueHead...].contains { host in
            self.lanes[host].map { $0.ready[$0.head...].contains(where: isWaiting) } ?? false
        }
    }

    mutating func ready(_ id: TransferID, host: String) {
        self.lanes[host, default: Lane()].ready.append(id)
        self.open(host)
    }

    /// Removes and returns the next transfer. The transfer counts as running until `ended` is called.
    ///
    /// - `isWaiting`: returns true if a transfer is still waiting. Transfers in other states are skipped.
    mutating func next(_ isWaiting: (TransferID) -> Bool) -> TransferID? {
        while self.hasOpenLane {
            let host = self.queue[self.queueHead]
            self.queueHead += 1
            if self.queueHead > 64, self.queueHead * 2 > self.queue.count {
                self.queue.removeFirst(self.queueHead)
                self.queueHead = 0
            }
            guard var lane = self.lanes.removeValue(forKey: host) else { continue }
            lane.isQueued = false
            var found: TransferID?
            while found == nil, lane.hasReady, lane.running < self.connectionsPerHost {
                let id = lane.ready[lane.head]
                lane.head += 1
                if isWaiting(id) { found = id }
            }
            if lane.head > 64, lane.head * 2 > lane.ready.count {
                lane.ready.removeFirst(lane.head)
                lane.head = 0
            }
            if found != nil { lane.running += 1 }
            if lane.hasReady || lane.running > 0 { self.lanes[host] = lane }
            self.open(host)
            if found != nil { return found }
        }
        return nil
    }

    /// Records that a transfer of the host has ended.
    mutating func ended(host: String) {
        guard var lane = self.lanes[host] else { return }
        lane.running -= 1
        self.lanes[host] = lane.hasReady || lane.running > 0 ? lane : nil
        self.open(host)
    }

    private mutating func open(_ host: String) {
        guard let lane = self.lanes[host], !lane.isQueued, lane.hasReady, lane.running < self.connectionsPerHost else {
            return
        }
        self.lanes[host]?.isQueued = true
        self.queue.append(host)
    }
}

/// Transfers by identifier. The dictionary has only indexes of an array, which saves memory if there are many
/// transfers.
struct TransferTable {
    private var places: [TransferID: Int32] = [:]
    private var rows: [Transfer?] = []
    private var free: [Int32] = []

    var count: Int { self.places.count }

    /// All transfers, in no particular order.
    var values: some Sequence<Transfer> { self.rows.lazy.compactMap(\.self) }

    subscript(id: TransferID) -> Transfer? {
        get { self.places[id].flatMap { self.rows[Int($0)] } }
        set {
            if let place = self.places[id] {
                self.rows[Int(place)] = newValue
                guard newValue == nil else { return }
                self.places[id] = nil
                self.free.append(place)
            } else if let newValue {
                let place = self.free.popLast() ?? Int32(self.rows.count)
                if Int(place) == self.rows.count {
                    self.rows.append(newValue)
                } else {
                    self.rows[Int(place)] = newValue
                }
                self.places[id] = place
            }
        }
    }
}
