import Engine
import Policy
import Storage
import WakeGateTestKit
import Wire

/// What the lives of a simulated gateway have in common: its records, the clocks, and what it told the world.
struct SimulatedLives {
    /// What leaves the gateway once the commit that covers it has returned.
    enum Effect {
        /// 200 to a push.
        case accepted(APNsID)
        /// 204 to a result.
        case ended(DeviceToken, WakeID, WakeReport, Instant)
        case delivered(Delivery)
        /// 201 to a submission, 202 to finished transfers.
        case taken(Int)
    }

    /// A batch for the store, and the world as it is when that batch is durable.
    struct Commit {
        /// Kept among the records, so that a restart says which commit it found.
        var number: UInt64 = 0
        var models = SimulationModels()
        var configuration = EngineConfiguration()
        var devices: [FrozenDevice?] = []
        /// What continued tasks have told is in it to the last.
        var hasProgress = true
        var books = Books()
        var clock: ClockRecord?
        var records: SimulatedStore.Records = [:]
        var effects: [Effect] = []
        /// What happened since the commit before it, and the number of the newest record of events.
        var events: [HistoryEvent] = []
        var sequence: UInt64 = 0
        /// What happened up to it.
        var happened: [HistoryEvent] = []
    }

    struct Settled {
        let wake: WakeID
        let result: WakeReport
        let at: Instant
    }

    let medium: any SimulatedMedium
    var store: (any RecordStore)?
    /// nil on a medium that has no room for it.
    var history: HistoryFile?
    /// The newest commit that has returned.
    var durable = Commit()
    /// What the store was told to commit and has not yet.
    var underWay: Commit?
    /// What waits for the commit that covers it.
    var staged: [Effect] = []
    /// Commits are numbered through all lives.
    var commits: UInt64 = 0
    var wall: Int64 = 1_700_000_000_000
    var boot: Int64 = 5_000_000
    /// When the life that is on began, in policy time.
    var bornAt = Instant(milliseconds: 0)
    var clock: PolicyClock
    /// How often, on average, something fails or dies: once in so many steps.
    var faultsEvery: Int
    /// Pushes that were answered 200.
    var answered: Set<APNsID> = []
    /// The last result of each device that was answered 204.
    var settled: [DeviceToken: Settled] = [:]
    /// Pushes that were never answered, as their commit failed or the gateway died.
    var unanswered: Set<APNsID> = []
    /// Requests and transfers that were answered 201 and 202.
    var answeredTasks: Set<Int> = []
    /// Requests and transfers that were never answered.
    var unansweredTasks: Set<Int> = []
    var coverage = CrashCoverage()

    init(_ medium: any SimulatedMedium, faultsEvery: Int) {
        self.medium = medium
        self.faultsEvery = faultsEvery
        self.clock = PolicyClock(wall: self.wall, boot: self.boot)
    }
}

/// What happened to simulated gateways, so that a property cannot hold because nothing did.
struct CrashCoverage {
    enum Event: String, CaseIterable {
        case kill, powerLoss, commit, failedCommit, failedStart, uncertainFound, uncertainLost
        case wakeLostAtRestart, wallJump, wallJumpBackAcrossRestart, answeredPushFound, unansweredPushFound
        case repeatedAnswer, forgottenAnswer, repeatedPush, repeatedPushAfterRestart, keptBackEffects, reload
        case eventsRecovered
    }

    private var counts: [Event: Int] = [:]

    mutating func note(_ event: Event, _ count: Int = 1) {
        if count > 0 { self.counts[event, default: 0] += count }
    }

    mutating func add(_ other: Self) { self.counts.merge(other.counts, uniquingKeysWith: +) }

    subscript(event: Event) -> Int { self.counts[event] ?? 0 }

    /// What never happened, by name.
    var missing: [String] { Event.allCases.filter { self[$0] == 0 }.map(\.rawValue) }
}
