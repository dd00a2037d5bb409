import Engine
import Policy
import Wire

/// A transaction of a shared store, from what it is for to what it may let out once it is durable.
final class ClusterTransaction {
    /// What it does besides its commands, of which only `commands` has any.
    enum Purpose {
        case commands
        /// What is due is done.
        case due
        /// So many free slots are filled with what waits for them.
        case claim(Claims.Shape, slots: Int)
        /// The wakes of a dead gateway are lost.
        case burial(GatewayNumber)
        /// Streams hear of conditions that have changed, some of them through other gateways.
        case conditions(changedElsewhere: [DeviceToken])
        /// Wakes that streams hold are looked for: they may have ended elsewhere.
        case heldWakes([WakeID])
        /// Workers are warned whose wakes' deadlines are near, unless they have moved.
        case warnings([WakeID])
        /// Pushes that were refused are counted.
        case refusals
        /// Devices are found that policies which have begun are to judge.
        case sweepRead
        /// Devices are judged by policies that have begun.
        case sweep
    }

    /// How often the same is tried that others are faster with.
    static let triesMax = 8

    /// The rows that it works on.
    enum Rows {
        /// Rows that it locks, and may write.
        case locked(LoadPlan)
        /// Rows that it reads for a question.
        case read(ReadPlan)
    }

    let purpose: Purpose
    private(set) var commands: [QueuedCommand]
    private(set) var rows: Rows
    /// What it lets out once it is durable.
    let group: StepGroup
    /// The number of its last try.
    var number = TransactionNumber(rawValue: 0)
    /// When its rows were asked for, in milliseconds since the machine started.
    var begunAt: Int64 = 0
    var conflicts = 0
    /// The number of times that topics were read for it, because the topic of a row was unknown.
    var topicReads = 0
    /// What it has done, until it is known whether that is durable.
    var step = Step()

    /// What one try of a transaction has done.
    struct Step {
        var streams = StreamChanges()
        /// Wakes that were given to streams here, their devices and deadlines.
        var launched: [(wake: WakeID, device: DeviceToken, deadline: Instant)] = []
        /// When to read the rows of wakes again, to warn their workers if the deadlines are near.
        var looks: [(wake: WakeID, at: Instant)] = []
        var ended: [WakeID] = []
        /// Topics of which wakes have ended.
        var freed: Set<TopicIndex> = []
        /// Topics of which something came to wait for a slot.
        var ready: Set<TopicIndex> = []
        /// Moments at which something will be due.
        var due: [Instant] = []
        /// Devices whose conditions are others than before, and their topics.
        var conditions: [(device: DeviceToken, topic: TopicIndex)] = []
        /// How long launches waited and wakes took, as counted before this try and after it.
        var times: (before: WakeTimes, after: WakeTimes)?
        /// Pushes that were refused in this try.
        var refused = Rejections()
        /// The topics whose counts of refused pushes it writes.
        var rejectionsWritten: [UInt32] = []
        /// How many rows were read, and whether there may be more.
        var rowCount = 0
        var hasMore = false
        /// The devices of the rows, of a transaction that looks for devices.
        var found: [DeviceToken] = []
        /// All refused pushes of this gateway as they were counted then, of a transaction that stores them.
        var rejections = Rejections()
        /// When it was performed, in policy time.
        var moment: Instant?
        /// Wakes of a dead gateway were lost.
        var hasLost = false
        /// Wakes that were given in it, and have ended at other gateways before it was known to be durable.
        var endedSince: [(wake: WakeID, reason: ExpirationReason?)] = []
        /// When the commit was handed over, by the monotonic clock in microseconds.
        var committedFrom: Int64 = 0
        /// The same moment in milliseconds since the machine started; nil before.
        var committedSince: Int64?
        /// Whether the try was performed: effects lie in the group.
        var isPerformed = false
    }

    /// Whether a worker says in it how a wake ended.
    var hasReports: Bool {
        self.commands.contains { command in
            guard case .request(let request) = command.work else { return false }
            return request.work.freesSlot
        }
    }

    /// Whether it is tried again after a conflict; what is due and what waits for slots others have seen to.
    var isRepeated: Bool {
        guard self.conflicts + 1 < Self.triesMax else { return false }
        switch self.purpose {
        case .commands, .burial, .conditions, .refusals, .sweep: return true
        case .due, .claim, .heldWakes, .warnings, .sweepRead: return false
        }
    }

    init(_ purpose: Purpose, _ commands: [QueuedCommand], _ rows: Rows, group: StepGroup) {
        self.purpose = purpose
        self.commands = commands
        self.rows = rows
        self.group = group
    }

    // MARK: Rows

    /// True if it loads devices for changes. One that counts refused pushes loads none.
    var namesRows: Bool {
        guard case .locked(let plan) = self.rows else { return false }
        if case .none = plan.selection { return !plan.tokens.isEmpty || !plan.wakes.isEmpty }
        return true
    }

    /// True if it only reads: the store has nothing to commit or abandon of it.
    var isRead: Bool { if case .read = self.rows { true } else { false } }

    /// True if it waits for no lock of a row.
    var passesOverLocked: Bool {
        switch self.rows {
        case .read: true
        case .locked(let plan): plan.passesOverLocked || plan.tokens.isEmpty && plan.wakes.isEmpty
        }
    }

    /// Has the next try leave out rows that others have locked.
    func passOverLocked() {
        guard case .locked(var plan) = self.rows else { return }
        plan.passesOverLocked = true
        self.rows = .locked(plan)
    }

    /// Leaves out the commands that wait for topics.
    ///
    /// - Parameters:
    ///   - devices: the devices of these topics.
    ///   - loaded: the rows of the transaction. Those of the devices that wait are removed.
    ///   - row: the row of a command.
    /// - Returns: the rows and commands that are left out; nil if there is nothing else in the transaction.
    func separate(
        _ devices: Set<DeviceToken>,
        from loaded: inout LoadedDevices,
        _ row: (QueuedCommand) -> RequestedRow
    ) -> (rows: LoadPlan, commands: [QueuedCommand])? {
        guard case .commands = self.purpose, case .locked(let plan) = self.rows else { return nil }
        var waiting = LoadPlan()
        waiting.passesOverLocked = plan.passesOverLocked
        waiting.tokens = plan.tokens.filter { devices.contains($0) }
        // A wake does not name the row of its device.
        if loaded.devices.contains(where: { devices.contains($0.token) }) { waiting.wakes = plan.wakes }
        let rows = Set(waiting.tokens.map { RequestedRow.device($0) } + waiting.wakes.map { RequestedRow.wake($0) })
        guard !self.commands.allSatisfy({ rows.contains(row($0)) }) else { return nil }
        loaded.devices.removeAll { devices.contains($0.token) }
        return (waiting, self.leaveOut(rows, row))
    }

    /// Leaves out some rows, and every command that is about one of them.
    ///
    /// - Parameter row: the row of a command.
    /// - Returns: the commands that are left out, in their order.
    func leaveOut(_ rows: Set<RequestedRow>, _ row: (QueuedCommand) -> RequestedRow) -> [QueuedCommand] {
        if case .locked(var plan) = self.rows {
            plan.tokens.removeAll { rows.contains(.device($0)) }
            plan.wakes.removeAll { rows.contains(.wake($0)) }
            self.rows = .locked(plan)
        }
        let leftOut = self.commands.filter { rows.contains(row($0)) }
        if !leftOut.isEmpty { self.commands.removeAll { rows.contains(row($0)) } }
        return leftOut
    }
}

/// Something that is to be done with the row of one device, and its place in the order in which all came.
///
/// A queue, a transaction and a sort move it about: what is large of it lies elsewhere.
struct QueuedCommand {
    enum Work {
        case push(KeptPush)
        case request(EngineRequest)
        /// A wake is lost, as the stream that held it has ended.
        case lose(WakeID)
        /// A wake is lost, while the stream that holds it goes on.
        indirect case loseOn(StreamAddress, WakeID, takingBackAttempt: Bool)
    }

    /// From 1; one that came later has a higher one.
    let number: UInt64
    /// Where the queue has its row.
    let place: Int
    /// When a push left its loop, by the monotonic clock in microseconds; 0 for everything else.
    let leftAt: Int64
    let work: Work
}
