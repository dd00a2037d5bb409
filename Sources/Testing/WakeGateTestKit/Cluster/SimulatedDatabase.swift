import Engine
package import Policy
import Wire

/// A database in memory and in virtual time that several gateways share, each through a `SimulatedClusterStore`.
///
/// It does what PostgreSQL does for them: rows are locked by one transaction at a time and waited for in turn, what was
/// waited for is read as it was committed last, and what is acknowledged is on a standby. Everything takes a time that
/// a seed draws, and fails when the seed or the test says so.
///
/// A test moves time on with `step` or `run`. With `DatabasePace.immediate` nothing needs that: what is asked for is
/// done in the call that asks, no session ends by itself, and only locks are waited for.
package final class SimulatedDatabase {
    /// How long a gateway may not be heard of, or a transaction wait for its client, in milliseconds.
    package static let silenceMax: Int64 = 3000
    /// For how long a load waits for the lock of one row, in milliseconds.
    static let lockMax = 250

    /// Virtual time, in milliseconds since 1970: that of all who have a right clock.
    package private(set) var now: Int64
    /// Where somebody else has the clock: asked before everything that is done at once.
    package var follow: (() -> Int64)?
    package var pace: DatabasePace
    package var faults = DatabaseFaults.none
    /// There is no room: nothing is committed.
    package var isFull = false
    package internal(set) var rows = DatabaseRows()
    package internal(set) var log = DatabaseLog()

    let isImmediate: Bool
    var generator: SeededGenerator
    private var calendar = EventCalendar()
    private var isRunning = false

    /// The primary's clock is ahead of virtual time by so much, and policy time ahead of the primary's clock.
    private(set) var clockAhead: Int64 = 0
    private(set) var shift: Int64 = 0
    /// There is no primary.
    var isDown = false

    var sessions: [GatewayNumber: DatabaseSession] = [:]
    var lastNumber: Int32 = 0
    /// Who has the lock of a row, and who waits for it, the first first.
    var locks: [DeviceToken: (holder: DatabaseTransaction, waiting: [DatabaseTransaction])] = [:]
    /// Transactions that have begun and are not over, in the order in which they began.
    var transactions: [DatabaseTransaction] = []
    /// Commits that are written and not acknowledged, in the order of the log.
    var replicating: [DatabaseTransaction] = []
    var lastReplicatedAt: Int64 = 0
    /// Commits that wait for one of those, which inserts the same device.
    var inserting: [DatabaseTransaction] = []
    /// Commits that wait for the test; nil when none has to.
    var held: [() -> Void]?
    /// Loads that wait for the test; nil when none has to.
    var heldLoads: [() -> Void]?
    /// How many commits are refused from now on.
    var refusals = 0

    /// - `start`: in milliseconds since 1970.
    package init(seed: UInt64, pace: DatabasePace = .usual, start: Int64 = 1_700_000_000_000) {
        self.generator = SeededGenerator(seed: seed)
        self.pace = pace
        self.now = start
        self.isImmediate = pace.way.upperBound == 0 && pace.replication.upperBound == 0
    }

    // MARK: Time

    /// The primary's clock, in milliseconds since 1970.
    package var wall: Int64 { self.now + self.clockAhead }

    /// What a transaction that begins now takes for the present.
    package var policyNow: Instant {
        let now = Instant(milliseconds: self.wall + self.shift)
        return now < self.rows.lastMoment ? self.rows.lastMoment : now
    }

    /// When the next thing happens by itself; nil when nothing does.
    package var nextEventAt: Int64? { self.calendar.firstAt }

    /// Moves on to what happens next.
    ///
    /// - Returns: false when nothing does.
    @discardableResult
    package func step() -> Bool {
        guard let (moment, event) = self.calendar.popFirst() else { return false }
        if self.now < moment { self.now = moment }
        event()
        return true
    }

    /// Moves on to a moment, and does what happens until then.
    package func run(until moment: Int64) {
        while let next = self.calendar.firstAt, next <= moment { self.step() }
        if self.now < moment { self.now = moment }
    }

    func plan(after milliseconds: Int, _ event: @escaping () -> Void) {
        self.calendar.plan(at: self.now + Int64(milliseconds), event)
    }

    func plan(at moment: Int64, _ event: @escaping () -> Void) {
        self.calendar.plan(at: max(self.now, moment), event)
    }

    /// Does what there is to do at once, where nothing takes time.
    func settle() {
        guard self.isImmediate, !self.isRunning else { return }
        self.isRunning = true
        if let time = self.follow?(), self.now < time { self.now = time }
        self.run(until: self.now)
        self.isRunning = false
    }

    /// The primary's clock is another one, which differs from virtual time by so much.
    func clockChanges(to ahead: Int64) {
        self.log.note(ahead < self.clockAhead ? .clockBack : .clockForth)
        self.clockAhead = ahead
        // Policy time goes on from the last commit when the new clock is behind.
        let behind = self.rows.lastMoment.milliseconds.subtractingReportingOverflow(self.wall + self.shift)
        if !behind.overflow, behind.partialValue > 0 { self.shift += behind.partialValue }
    }

    /// Whether transactions are open of processes that are gone.
    package var hasGhosts: Bool { self.transactions.contains { $0.store.isDead } }

    // MARK: Chance

    func draw(_ range: ClosedRange<Int>) -> Int { self.generator.number(in: range) }

    /// True once in `count` times, on average; never when that is 0.
    func happens(onceIn count: Int) -> Bool { count > 0 && self.generator.once(in: count) }

    // MARK: What the test does to it

    /// So many commits are refused from now on.
    package func refuseNextCommits(_ count: Int = 1) { self.refusals += count }

    /// Commits wait from now on, until the test lets them go.
    package func holdCommits() { self.held = self.held ?? [] }

    /// The commits that wait are done, and those that come wait again.
    package func letCommitsGo() {
        let waiting = self.held ?? []
        if self.held != nil { self.held = [] }
        for commit in waiting { commit() }
        self.settle()
    }

    /// Loads wait from now on, until the test lets them go.
    package func holdLoads() { self.heldLoads = self.heldLoads ?? [] }

    /// The loads that wait are done, and those that come do not wait.
    package func letLoadsGo() {
        let waiting = self.heldLoads ?? []
        self.heldLoads = nil
        for load in waiting { load() }
        self.settle()
    }

    /// The primary dies, and a standby takes its place: every connection is cut, and of the commits that were not
    /// acknowledged the first so many have survived.
    ///
    /// - `outage`: for how many milliseconds there is no primary.
    /// - `clockAhead`: how far the new primary's clock is ahead of virtual time.
    package func failOver(outage: Int, clockAhead: Int64) {
        self.log.note(.failover)
        let survivors = self.draw(0...self.replicating.count)
        self.log.note(.survivor, survivors)
        self.log.note(.castaway, self.replicating.count - survivors)
        for transaction in self.replicating.prefix(survivors) { self.become(durable: transaction) }
        self.isDown = true
        for transaction in self.transactions {
            self.rollBack(transaction)
            // Its client has asked already, and nobody else tells it.
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

/// One run of a gateway, as a simulated database knows it.
final class DatabaseSession {
    let number: GatewayNumber
    let store: SimulatedClusterStore
    /// When it was attached, by the primary's clock in milliseconds since 1970.
    let since: Int64
    /// When it last was heard of, in virtual time.
    var heardAt: Int64
    /// What it said last, and when, by the primary's clock.
    var report: (GatewayReport, at: Int64)?
    /// Whether the session stands that holds the lock of its number.
    var isConnected = true
    /// Whether nobody has found yet that it is dead: what it commits is taken.
    var isAlive = true
    var isBuried = false
    /// How many topics it knows, and which versions of values.
    var topicCount = 0
    var values: [String: Int] = [:]

    init(_ number: GatewayNumber, of store: SimulatedClusterStore, since: Int64, heardAt: Int64) {
        self.number = number
        self.store = store
        self.since = since
        self.heardAt = heardAt
    }
}

/// How a transaction of a simulated database ended.
enum DatabaseEnd {
    case committed
    case failed(ClusterFailure)
}

/// How often things go wrong by chance between gateways and a simulated database: once in so many; 0 for never.
package struct DatabaseFaults: Sendable {
    /// The connection is cut when a commit has been done and its reply is on the way.
    package var lostReplies = 0
    /// The connection is cut while a commit is on its way, which may arrive all the same.
    package var lostCommits = 0
    /// A transaction's connection is cut before it has read its rows.
    package var lostLoads = 0
    /// A commit is refused.
    package var refusedCommits = 0
    /// A transaction is said to wait for another that waits for it.
    package var deadlocks = 0
    /// A notice does not arrive, or arrives twice.
    package var lostNotices = 0
    package var doubledNotices = 0

    package init() {}

    package static let none = DatabaseFaults()
}

/// How long things take between gateways and a simulated database, in milliseconds of virtual time.
package struct DatabasePace: Sendable {
    /// A request's way to the database, and a reply's back.
    package var way: ClosedRange<Int>
    /// From a commit until a standby has it, too.
    package var replication: ClosedRange<Int>
    /// From the loss of a connection until another one stands.
    package var reconnection: ClosedRange<Int>

    package init(way: ClosedRange<Int>, replication: ClosedRange<Int>, reconnection: ClosedRange<Int>) {
        self.way = way
        self.replication = replication
        self.reconnection = reconnection
    }

    /// Everything is done as soon as it is asked for.
    package static let immediate = DatabasePace(way: 0...0, replication: 0...0, reconnection: 0...0)
    package static let usual = DatabasePace(way: 0...3, replication: 1...8, reconnection: 20...400)
    package static let slow = DatabasePace(way: 0...30, replication: 400...1200, reconnection: 100...1000)
}
