import Engine
package import Policy
package import Wire

/// A database in memory and virtual time that several gateways share, each through a `SimulatedClusterStore`.
///
/// It behaves like PostgreSQL. One transaction at a time locks a row, and the other transactions wait in turn. After a
/// wait, a transaction reads the last committed version of the row. An acknowledged commit is also on a standby. A seed
/// determines the duration and the failure of each action, and tests may plan failures.
///
/// A test advances time with `step` or `run`. With `DatabasePace.immediate`, no steps are needed: each call completes
/// its request unless it must wait for a lock, and sessions never time out.
package final class SimulatedDatabase {
    /// The maximum time in milliseconds after which a session ends because its gateway is silent, or a transaction
    /// because its client is.
    package static let silenceMax: Int64 = 3000
    /// The maximum time in milliseconds that a load waits for the lock of one row.
    static let lockMax = 250

    /// The virtual time in milliseconds since 1970. Every correct clock shows it.
    package private(set) var now: Int64 = 1_700_000_000_000
    /// Returns the time of an external clock, which is read before every immediate action; nil for none.
    package var follow: (() -> Int64)?
    package var pace: DatabasePace
    package var faults = DatabaseFaults.none
    /// True if the disk is full. No transaction can then commit.
    package var isFull = false
    package internal(set) var rows = DatabaseRows()
    package internal(set) var log = DatabaseLog()
    /// The intact records of the devices whose rows are damaged.
    private(set) var damaged: [DeviceToken: [UInt8]] = [:]

    let isImmediate: Bool
    var generator: SeededGenerator
    /// The planned events by virtual time. Events of the same time remain in the order in which they were planned.
    private var calendar = MomentQueue<() -> Void>()
    private var isRunning = false

    /// The offset of the primary's clock from virtual time. `shift` is the offset of policy time from the primary's
    /// clock.
    private(set) var clockAhead: Int64 = 0
    private(set) var shift: Int64 = 0
    /// True while the primary is down.
    var isDown = false

    var sessions: [GatewayNumber: DatabaseSession] = [:]
    var lastNumber: Int32 = 0
    /// The transaction that holds each row's lock, and the transactions that wait for it, in order.
    var locks: [DeviceToken: (holder: DatabaseTransaction, waiting: [DatabaseTransaction])] = [:]
    /// The transactions in progress, in the order in which they began.
    var transactions: [DatabaseTransaction] = []
    /// The commits that are written but not acknowledged, in the order of the log.
    var replicating: [DatabaseTransaction] = []
    var lastReplicatedAt: Int64 = 0
    /// The commits that wait because a commit in `replicating` inserts the same device.
    var inserting: [DatabaseTransaction] = []
    /// The commits that the test delays; nil if commits are not delayed.
    var held: [() -> Void]?
    /// The loads that the test delays; nil if loads are not delayed.
    var heldLoads: [() -> Void]?
    /// The number of later commits that the database must refuse.
    var refusals = 0

    package init(seed: UInt64, pace: DatabasePace = .usual) {
        self.generator = SeededGenerator(seed: seed)
        self.pace = pace
        self.isImmediate = pace.delay.upperBound == 0 && pace.replication.upperBound == 0
    }

    // MARK: Time

    /// The primary's clock, in milliseconds since 1970.
    package var wall: Int64 { self.now + self.clockAhead }

    /// The policy time of a transaction that begins now.
    package var policyNow: Instant {
        let now = Instant(milliseconds: self.wall + self.shift)
        return now < self.rows.lastMoment ? self.rows.lastMoment : now
    }

    /// The time of the next planned event; nil if there is none.
    package var nextEventAt: Int64? { self.calendar.first?.moment }

    /// Advances to the next event and runs it.
    ///
    /// - Returns: false if no event is planned.
    @discardableResult
    package func step() -> Bool {
        guard let event = self.calendar.popDue(.max) else { return false }
        if self.now < event.moment { self.now = event.moment }
        event.value()
        return true
    }

    /// Advances to a time, and runs all events that are due by then.
    package func run(until moment: Int64) {
        while let next = self.nextEventAt, next <= moment { self.step() }
        if self.now < moment { self.now = moment }
    }

    func plan(after milliseconds: Int, _ event: @escaping () -> Void) {
        self.calendar.insert(event, at: self.now + Int64(milliseconds))
    }

    func plan(at moment: Int64, _ event: @escaping () -> Void) {
        self.calendar.insert(event, at: max(self.now, moment))
    }

    /// With `DatabasePace.immediate`, runs all events that are due now.
    func settle() {
        guard self.isImmediate, !self.isRunning else { return }
        self.isRunning = true
        if let time = self.follow?(), self.now < time { self.now = time }
        self.run(until: self.now)
        self.isRunning = false
    }

    /// Sets the offset of the primary's clock from virtual time, in milliseconds.
    func clockChanges(to ahead: Int64) {
        self.log.note(ahead < self.clockAhead ? .clockBack : .clockForth)
        self.clockAhead = ahead
        // If the new clock is behind, policy time continues from the last commit.
        let behind = self.rows.lastMoment.milliseconds.subtractingReportingOverflow(self.wall + self.shift)
        if !behind.overflow, behind.partialValue > 0 { self.shift += behind.partialValue }
    }

    /// True if dead processes have open transactions.
    package var hasGhosts: Bool { self.transactions.contains { $0.store.isDead } }

    // MARK: Chance

    func draw(_ range: ClosedRange<Int>) -> Int { self.generator.number(in: range) }

    /// Returns true once in `count` times, on average; never if `count` is 0.
    func happens(onceIn count: Int) -> Bool { count > 0 && self.generator.once(in: count) }

    // MARK: Actions of tests

    /// Refuses the next `count` commits.
    package func refuseNextCommits(_ count: Int = 1) { self.refusals += count }

    /// Damages the row of a device, until `repairRows` is called.
    package func damageRow(of device: DeviceToken) {
        self.damaged[device] = self.rows.devices[device]?.device.record
        self.rows.devices[device]?.device.record = [1]
    }

    package func repairRows() {
        for (device, record) in self.damaged { self.rows.devices[device]?.device.record = record }
        self.damaged = [:]
    }

    /// Delays commits until the test calls `letCommitsGo`.
    package func holdCommits() { self.held = self.held ?? [] }

    /// Processes the delayed commits. Later commits are delayed again.
    package func letCommitsGo() {
        let waiting = self.held ?? []
        if self.held != nil { self.held = [] }
        for commit in waiting { commit() }
        self.settle()
    }

    /// Delays loads until the test calls `letLoadsGo`.
    package func holdLoads() { self.heldLoads = self.heldLoads ?? [] }

    /// Processes the delayed loads. Later loads are not delayed.
    package func letLoadsGo() {
        let waiting = self.heldLoads ?? []
        self.heldLoads = nil
        for load in waiting { load() }
        self.settle()
    }

    /// Replaces the primary with a standby. Cuts every connection. Of the unacknowledged commits, the first ones
    /// survive; their number is random.
    ///
    /// - `outage`: the time without a primary, in milliseconds.
    /// - `clockAhead`: the offset of the new primary's clock from virtual time, in milliseconds.
    package func failOver(outage: Int, clockAhead: Int64) {
        self.log.note(.failover)
        let survivors = self.draw(0...self.replicating.count)
        self.log.note(.survivor, survivors)
        self.log.note(.castaway, self.replicating.count - survivors)
        for transaction in self.replicating.prefix(survivors) { self.become(durable: transaction) }
        self.isDown = true
        for transaction in self.transactions {
            self.rollBack(transaction)
            // The client has already queried the result, and receives no other notification.
            if transaction.isInDoubt { self.resolve(transaction) }
        }
        for number in self.sessions.keys.sorted() {
            guard let session = self.sessions[number], session.isConnected else { continue }
            self.disconnect(session, "The primary is gone.")
        }
        self.plan(after: outage) {
            self.clockChanges(to: clockAhead)
            self.isDown = false
        }
        self.settle()
    }
}

/// One run of a gateway in a simulated database.
final class DatabaseSession {
    let number: GatewayNumber
    let store: SimulatedClusterStore
    /// The time when the gateway was attached, by the primary's clock in milliseconds since 1970.
    let since: Int64
    /// The virtual time of the gateway's last message.
    var heardAt: Int64
    /// The last report, and its time by the primary's clock.
    var report: (GatewayReport, at: Int64)?
    /// True while the session that holds the lock of the gateway's number exists.
    var isConnected = true
    /// True until the gateway is marked as dead. Later commits of the gateway are refused.
    var isAlive = true
    var isRetired = false
    /// The number of topics that the gateway has received, and in `values` the received versions of values.
    var topicCount = 0
    var values: [String: Int] = [:]

    init(_ number: GatewayNumber, of store: SimulatedClusterStore, since: Int64, heardAt: Int64) {
        self.number = number
        self.store = store
        self.since = since
        self.heardAt = heardAt
    }
}

/// The result of a transaction of a simulated database.
enum DatabaseEnd {
    case committed
    case failed(ClusterFailure)
}

/// The rates of random faults between gateways and a simulated database. A rate of n means once in n times; 0 means
/// never.
package struct DatabaseFaults: Sendable {
    /// The connection is cut after a commit, before the reply arrives.
    package var lostReplies = 0
    /// The connection is cut after a commit was sent, which may still arrive.
    package var lostCommits = 0
    /// A transaction's connection is cut before the rows are read.
    package var lostLoads = 0
    /// A commit is refused.
    package var refusedCommits = 0
    /// A transaction is refused as part of a deadlock.
    package var deadlocks = 0
    /// A notice does not arrive. `doubledNotices` is the rate at which a notice arrives twice.
    package var lostNotices = 0
    package var doubledNotices = 0

    package static let none = DatabaseFaults()
}

/// The delays between gateways and a simulated database, in milliseconds of virtual time.
package struct DatabasePace: Sendable {
    /// The delay of a request to the database, and of a reply back.
    package var delay: ClosedRange<Int>
    /// The time from a commit until a standby has it.
    package var replication: ClosedRange<Int>
    /// The time from the loss of a connection to the next connection.
    package var reconnection: ClosedRange<Int>

    /// Every action is completed immediately.
    package static let immediate = DatabasePace(delay: 0...0, replication: 0...0, reconnection: 0...0)
    package static let usual = DatabasePace(delay: 0...3, replication: 1...8, reconnection: 20...400)
    package static let slow = DatabasePace(delay: 0...30, replication: 400...1200, reconnection: 100...1000)
}
