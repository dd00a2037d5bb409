import Engine
import Platform
import Policy
import PostgresStore
import WakeGateTestKit
import Wire

/// A store on a real server. The test takes the role of the engine.
final class StoreRig {
    /// The test waits here for the store's thread, and can also stop that thread here.
    ///
    /// `@unchecked Sendable`: `monitor` guards every field.
    private final class Wakeup: @unchecked Sendable {
        private let monitor = Monitor()
        private var isSignaled = false
        private var isHeld = false
        private var warnings: [String] = []

        func warn(_ warning: String) {
            self.monitor.withLock {
                self.warnings.append(warning)
                self.isSignaled = true
                self.monitor.broadcast()
            }
        }

        /// Removes the first warning; nil if there is none.
        func takeWarning() -> String? {
            self.monitor.withLock { self.warnings.isEmpty ? nil : self.warnings.removeFirst() }
        }

        func signal() {
            self.monitor.withLock {
                self.isSignaled = true
                self.monitor.broadcast()
                while self.isHeld { self.monitor.wait() }
            }
        }

        /// - Returns: false if the moment came first.
        func wait(untilNanoseconds moment: Int64) -> Bool {
            self.monitor.withLock {
                defer { self.isSignaled = false }
                while !self.isSignaled {
                    guard self.monitor.wait(untilNanoseconds: moment) else { return self.isSignaled }
                }
                return true
            }
        }

        func hold(_ isHeld: Bool) {
            self.monitor.withLock {
                self.isHeld = isHeld
                self.monitor.broadcast()
            }
        }
    }

    /// An expected event did not arrive.
    struct Missing: Error, CustomStringConvertible {
        let description: String
    }

    static let waitSeconds: Int64 = 60

    private let store: PostgresStore
    private let wakeup: Wakeup
    private var replies: [ClusterReply] = []
    private var count: UInt64 = 0
    private var isStopped = false
    /// The number from the last attachment.
    private(set) var number = GatewayNumber(rawValue: 0)
    private(set) var attachment: Attachment

    /// Attaches a store with one topic.
    ///
    /// - `clock`: replaces the primary's clock.
    /// - `lockMilliseconds`: the longest wait of a load for the lock of one row. It is long, so that tests also pass on
    ///   a slow machine.
    init(
        _ address: String,
        connections: Int = 2,
        clock: String? = nil,
        lockMilliseconds: Int64 = 60_000,
        questionMilliseconds: Int64 = 60_000
    ) throws {
        var settings = StoreSettings(address: try PostgresAddress(address))
        settings.connections = connections
        settings.lockMilliseconds = lockMilliseconds
        settings.questionStatementMilliseconds = questionMilliseconds
        if let clock { settings.clock = clock }
        let wakeup = Wakeup()
        self.wakeup = wakeup
        self.store = try PostgresStore(settings, signal: { wakeup.signal() }, onWarning: { wakeup.warn($0) })
        self.attachment = Attachment(
            number: self.number,
            topics: [],
            values: [:],
            now: Instant(milliseconds: 0),
            wall: 0
        )
        try self.attached()
        self.store.submit(.addTopics(["com.example.app"]))
        _ = try self.wait("topics") { if case .topics(let topics) = $0 { topics } else { nil } }
    }

    deinit { self.stop() }

    /// Waits until the store is attached.
    @discardableResult
    func attached() throws -> Attachment {
        self.attachment = try self.wait("attached") { if case .attached(let found) = $0 { found } else { nil } }
        self.number = self.attachment.number
        return self.attachment
    }

    /// Waits until the store reports that it is detached.
    func detached() throws -> StoreError {
        try self.wait("detached") { if case .detached(let error) = $0 { error } else { nil } }
    }

    /// Waits until the store's thread has reported what `take` returns.
    private func wait<Found>(_ what: String, until take: () -> Found?) throws -> Found {
        let deadline = SystemClock.monotonicNanoseconds + Self.waitSeconds * 1_000_000_000
        while true {
            self.store.takeReplies(into: &self.replies)
            if let found = take() { return found }
            guard self.wakeup.wait(untilNanoseconds: deadline) else {
                throw Missing(description: "\(what) did not come; \(self.replies.count) replies are left")
            }
        }
    }

    /// Waits for the first reply that `match` accepts. Earlier replies stay.
    func wait<Found>(_ what: String, _ match: (ClusterReply) -> Found?) throws -> Found {
        try self.wait(what) {
            for (place, reply) in self.replies.enumerated() {
                guard let found = match(reply) else { continue }
                self.replies.remove(at: place)
                return found
            }
            return nil
        }
    }

    /// Waits for the next warning of a setting.
    func warning() throws -> String { try self.wait("a warning") { self.wakeup.takeWarning() } }

    /// True if the store has not been detached since the last attachment that the test has handled.
    var hasStayed: Bool {
        self.store.takeReplies(into: &self.replies)
        return !self.replies.contains { if case .detached = $0 { true } else { false } }
    }

    /// Returns and removes the notices that have arrived.
    func takeNotices() -> [ClusterNotice] {
        self.store.takeReplies(into: &self.replies)
        let notices = self.replies.compactMap { if case .notified(let notice) = $0 { notice } else { nil } }
        self.replies.removeAll { if case .notified = $0 { true } else { false } }
        return notices
    }

    func submit(_ request: ClusterRequest) { self.store.submit(request) }

    /// Stops the store before the end of the test.
    func stop() {
        guard !self.isStopped else { return }
        self.isStopped = true
        self.letGo()
        self.store.stop()
    }

    /// Makes the store's thread stop when it next reports something.
    func hold() { self.wakeup.hold(true) }

    /// Lets the store's thread continue.
    func letGo() { self.wakeup.hold(false) }

    // MARK: Transactions

    func nextNumber() -> TransactionNumber {
        self.count += 1
        return TransactionNumber(rawValue: self.count)
    }

    /// Requests rows, without waiting for them.
    func begin(_ plan: LoadPlan) -> TransactionNumber {
        let number = self.nextNumber()
        self.store.submit(.load(number, plan))
        return number
    }

    /// Waits for the reply to a transaction that `match` accepts.
    ///
    /// - Throws: `ClusterFailure` if the transaction fails.
    private func wait<Found>(
        of number: TransactionNumber,
        for what: String,
        _ match: (ClusterReply) -> Found?
    ) throws -> Found {
        try self.wait(what) { reply -> Result<Found, ClusterFailure>? in
            if case .failed(number, let failure) = reply { return .failure(failure) }
            return match(reply).map { .success($0) }
        }.get()
    }

    /// Waits for rows.
    func loaded(_ number: TransactionNumber) throws -> LoadedDevices {
        try self.wait(of: number, for: "rows") { if case .loaded(number, let devices) = $0 { devices } else { nil } }
    }

    func load(_ plan: LoadPlan) throws -> (number: TransactionNumber, loaded: LoadedDevices) {
        let number = self.begin(plan)
        return (number, try self.loaded(number))
    }

    /// Returns the devices that a plan finds, without writing anything about them.
    func find(_ plan: LoadPlan) throws -> LoadedDevices {
        let (number, loaded) = try self.load(plan)
        self.store.submit(.abandon(number))
        return loaded
    }

    /// Returns the devices that a plan finds, after waiting until it finds this many. An abandoned transaction holds
    /// its locks a little longer.
    func find(_ count: Int, _ plan: LoadPlan) throws -> LoadedDevices {
        var loaded = try self.find(plan)
        for _ in 1...10_000 where loaded.devices.count < count { loaded = try self.find(plan) }
        return loaded
    }

    /// Reads rows for a query.
    func read(_ plan: ReadPlan) throws -> LoadedDevices {
        let number = self.nextNumber()
        self.store.submit(.read(number, plan))
        return try self.loaded(number)
    }

    /// Reads rows slice by slice, until it has found this many or there are no more.
    func list(_ plan: ReadPlan) throws -> LoadedDevices {
        var plan = plan
        var found: [SharedDevice] = []
        while true {
            var loaded = try self.read(plan)
            found += loaded.devices
            guard let end = loaded.sliceEnd else {
                loaded.devices = found
                return loaded
            }
            switch plan.selection {
            case .none: break
            case .withTasks(let topic, _, let countMax):
                plan.selection = .withTasks(topic: topic, after: end, countMax: countMax - loaded.devices.count)
            case .inOrder(let topics, _, let countMax):
                plan.selection = .inOrder(topics: topics, after: end, countMax: countMax - loaded.devices.count)
            case .pending(let topics, _, let countMax):
                plan.selection = .pending(topics: topics, after: end, countMax: countMax - loaded.devices.count)
            }
        }
    }

    /// Commits changes of loaded devices and the number of accepted pushes, without waiting for the answer.
    func commit(_ number: TransactionNumber, _ devices: [SharedDeviceChange], accepted: Int64 = 0) {
        var writes = ClusterWrites()
        writes.devices = devices
        if accepted > 0 { writes.counts = [(.first, Self.counters(accepted: accepted))] }
        self.store.submit(.commit(number, writes))
    }

    /// Waits until a commit is answered.
    @discardableResult
    func committed(_ number: TransactionNumber) throws -> [HeldElsewhere] {
        try self.wait(of: number, for: "a commit") { if case .committed(number, let held) = $0 { held } else { nil } }
    }

    /// Loads devices, and writes the result of `change` for each one.
    @discardableResult
    func write(_ devices: [Int], _ change: (Int, LoadedDevices) -> SharedDeviceChange) throws -> [HeldElsewhere] {
        let (number, loaded) = try self.load(.tokens(devices))
        self.commit(number, devices.map { change($0, loaded) }, accepted: Int64(devices.count))
        return try self.committed(number)
    }

    /// Writes these events, and nothing else.
    func tell(_ events: [HistoryEvent]) throws {
        let (number, _) = try self.load(.tokens([]))
        var writes = ClusterWrites()
        writes.events = events
        self.store.submit(.commit(number, writes))
        try self.committed(number)
    }

    static func counters(accepted: Int64) -> ActivityCounters {
        var counters = ActivityCounters()
        counters.accepted = accepted
        counters.gauges.devices = accepted
        return counters
    }

    /// Returns true if a commit has been answered.
    func isAnswered(_ number: TransactionNumber) -> Bool {
        self.store.takeReplies(into: &self.replies)
        return self.replies.contains { reply in
            switch reply {
            case .committed(number, _), .failed(number, _): true
            case _: false
            }
        }
    }

    // MARK: Queries

    func counts() throws -> ClusterCounts {
        let number = self.nextNumber()
        self.store.submit(.count(number, topics: nil))
        return try self.wait("counts") { if case .counts(number, let counts) = $0 { counts } else { nil } }
    }

    func view() throws -> ClusterView {
        self.store.submit(.report(GatewayReport(name: "gateway", version: "1")))
        return try self.wait("view") { if case .view(let view) = $0 { view } else { nil } }
    }

    /// Requests views until one meets the condition.
    func view(where isIt: (ClusterView) -> Bool) throws -> ClusterView {
        let deadline = SystemClock.monotonic + Self.waitSeconds * 1000
        while SystemClock.monotonic < deadline {
            let view = try self.view()
            if isIt(view) { return view }
        }
        throw Missing(description: "no view is as it should be")
    }
}

extension TopicIndex {
    static let first = TopicIndex(rawValue: 0)
}

extension LoadPlan {
    static func tokens(_ devices: [Int]) -> LoadPlan { LoadPlan(tokens: devices.map { .numbered($0) }) }

    static func selection(_ selection: Selection) -> LoadPlan { LoadPlan(selection: selection) }
}

extension DeviceToken {
    /// Creates a token of 32 bytes. Higher numbers give higher tokens.
    static func numbered(_ number: Int) -> DeviceToken {
        var bytes = [UInt8](repeating: 7, count: 32)
        bytes[0] = UInt8(number >> 8)
        bytes[1] = UInt8(number & 255)
        return bytes.withByteView { DeviceToken(bytes: $0) } ?? DeviceToken()
    }
}

extension SharedDeviceChange {
    /// Creates a device with a record of one byte.
    static func of(
        _ number: Int,
        _ loaded: LoadedDevices,
        record: UInt8 = 1,
        tasks: [UInt8] = [],
        due: Due = .unchanged,
        ready: [ReadyLane]? = nil,
        launched: [(wake: WakeID, deadline: Instant)] = [],
        ended: [WakeID] = []
    ) -> SharedDeviceChange {
        let token = DeviceToken.numbered(number)
        return SharedDeviceChange(
            device: SharedDevice(token: token, record: [record], tasks: tasks, derived: [9]),
            topic: .first,
            isNew: !loaded.devices.contains { $0.token == token },
            due: due,
            ready: ready,
            launched: launched,
            ended: ended
        )
    }
}

extension WakeID {
    static func numbered(_ number: UInt64) -> WakeID { WakeID(random: (number, number)) }
}

extension ClusterFailure {
    var isConflict: Bool { if case .conflict = self { true } else { false } }

    var isLocked: Bool { if case .locked = self { true } else { false } }

    /// The session that holds the lock of a table.
    var holder: LockHolder? { if case .locked(let holder) = self { holder } else { nil } }

    /// The error of a refused transaction.
    var refusal: StoreError? { if case .refused(let error) = self { error } else { nil } }
}

/// A separate database on the shared server.
struct TestDatabase {
    let server: PostgresServer
    let address: String

    init() throws {
        self.server = try PostgresServer.shared()
        self.address = try self.server.database()
    }

    var name: String { self.address.split(separator: "/").last.map(String.init) ?? "" }

    /// Executes SQL as the superuser.
    @discardableResult
    func query(_ sql: String) throws -> String { try self.server.query(sql, database: self.name) }

    /// Repeats a query until it returns the expected answer.
    func wait(for answer: String, of sql: String) throws {
        try self.server.wait(for: answer, of: sql, database: self.name)
    }
}
