import Engine
import Policy
import Wire

/// A transaction of a shared store. It has a purpose, and effects that are released when it is durable.
final class ClusterTransaction {
    /// The purpose. Only a transaction for `commands` has commands.
    enum Purpose {
        case commands
        /// Performs the work of due devices.
        case due
        /// Claims devices for this many free slots.
        case claim(Claims.Shape, slots: Int)
        /// Records the loss of a dead gateway's wakes.
        case retirement(GatewayNumber)
        /// Notifies streams of changed conditions, including changes at other gateways.
        case conditions(changedElsewhere: [DeviceToken])
        /// Warns the workers of wakes on this gateway's streams whose deadlines are near, and finds out if wakes have
        /// ended at other gateways.
        case heldWakes([WakeID])
        /// Stores the counts of refused pushes.
        case refusals
        /// Reads the next devices to which new policies must be applied, or applies them.
        case sweep(PolicySweep.Step)
        /// Reads the counters of all gateways, and of these topics, for requests; nil for every topic.
        case counts([ClusterQuestion], topics: [TopicIndex]?)
        /// Reads devices for requests that concern one device each.
        case devices([ClusterQuestion])
        /// Reads the next part of a list.
        case list(DeviceListing)
    }

    /// The maximum number of attempts after conflicts with other gateways.
    static let triesMax = 8

    let purpose: Purpose
    private(set) var commands: [QueuedCommand]
    /// The rows that are locked, because they may be written; nil if the transaction only reads.
    var locked: LoadPlan?
    /// The rows that are only read; nil if the transaction locks rows or reads counters.
    let read: ReadPlan?
    /// The effects to release when the transaction is durable.
    let group: StepGroup
    /// The number of the current attempt; each attempt has a new number.
    var number = TransactionNumber(rawValue: 0)
    /// The time at which the rows were requested, in milliseconds since the start of the machine.
    var begunAt: Int64 = 0
    var conflicts = 0
    /// The number of times that topics were read because the topic of a row was unknown.
    var topicReads = 0
    /// The results of the current attempt.
    var step = Step()

    /// The results of one attempt.
    struct Step {
        var streams = StreamChanges()
        /// The wakes delivered to streams here, with their devices and deadlines.
        var launched: [(wake: WakeID, device: DeviceToken, deadline: Instant)] = []
        /// The times at which rows of wakes on streams here must be read again.
        var looks: [(wake: WakeID, at: Instant)] = []
        var ended: [WakeID] = []
        /// The topics of wakes that have ended.
        var freed: Set<TopicIndex> = []
        /// The topics in which devices now wait for a slot.
        var ready: Set<TopicIndex> = []
        /// The times at which devices will be due.
        var due: [Instant] = []
        /// The devices whose conditions have changed, and their topics.
        var conditions: [(device: DeviceToken, topic: TopicIndex)] = []
        /// The statistics of waits and wakes before and after this attempt.
        var times: (before: WakeTimes, after: WakeTimes)?
        /// The events of earlier subscriptions, which this attempt writes.
        var subscriptions: [HistoryEvent] = []
        /// The pushes refused in this attempt.
        var refused = Rejections()
        /// The topics whose counts of refused pushes this attempt writes.
        var rejectionsWritten: [UInt32] = []
        /// The number of rows read. `hasMore` is true if further rows may exist.
        var rowCount = 0
        var hasMore = false
        /// The tokens of the rows that a sweep has read.
        var found: [DeviceToken] = []
        /// For a transaction that stores refusals: all refused pushes of this gateway at the time of the attempt.
        var rejections = Rejections()
        /// The policy time of the attempt.
        var moment: Instant?
        /// True if the attempt recorded the loss of a dead gateway's wakes.
        var hasLost = false
        /// The launched wakes that ended at other gateways before the commit was confirmed.
        var endedSince: [(wake: WakeID, reason: ExpirationReason?)] = []
        /// The time at which the commit was submitted, in microseconds of the monotonic clock.
        var committedFrom: Int64 = 0
        /// The same time in milliseconds since the start of the machine; nil before the submission.
        var committedSince: Int64?
        /// True if the attempt was performed. `group` then contains its effects.
        var isPerformed = false
    }

    /// True if a command is a worker's report about the end of a wake.
    var hasReports: Bool {
        self.commands.contains { command in
            guard case .request(let request) = command.work else { return false }
            return request.work.freesSlot
        }
    }

    /// True if the transaction must commit even without changes, because a command is answered from its rows.
    ///
    /// An earlier commit of these rows may be visible before a standby has it, for example if its wait was cancelled
    /// and its caller got 503. The commit waits until a standby has both. A dry run needs no commit.
    var needsCommit: Bool {
        self.commands.contains { command in
            switch command.work {
            case .push(let push): push.read { !$0.isDryRun }
            case .request: true
            case .lose, .loseOn: false
            }
        }
    }

    /// True if the transaction is repeated after a conflict. If it is not, the other gateway has already done the work.
    var isRepeated: Bool {
        guard self.conflicts + 1 < Self.triesMax else { return false }
        switch self.purpose {
        case .commands, .retirement, .conditions, .refusals, .sweep: return true
        case .due, .claim, .heldWakes, .counts, .devices, .list: return false
        }
    }

    init(_ purpose: Purpose, _ commands: [QueuedCommand], _ locked: LoadPlan?, _ read: ReadPlan?, group: StepGroup) {
        self.purpose = purpose
        self.commands = commands
        self.locked = locked
        self.read = read
        self.group = group
    }

    // MARK: Rows

    /// True if the transaction loads devices to change them. A transaction that only counts refused pushes loads none.
    var namesRows: Bool {
        guard let plan = self.locked else { return false }
        if case .none = plan.selection { return !plan.tokens.isEmpty || !plan.wakes.isEmpty }
        return true
    }

    /// True if the transaction only reads. It then has nothing to commit or abandon.
    var isRead: Bool { self.locked == nil }

    /// The requests that the transaction answers without changes; nil stands for the sample of this second.
    var questions: [EngineRequest?] {
        switch self.purpose {
        case .counts(let questions, _), .devices(let questions): questions.map(\.request)
        case .list(let listing): [listing.request]
        default: []
        }
    }

    /// True if the transaction does not wait for row locks.
    var passesOverLocked: Bool {
        guard let plan = self.locked else { return true }
        return plan.passesOverLocked || plan.tokens.isEmpty && plan.wakes.isEmpty
    }

    /// Removes the commands that wait for topics.
    ///
    /// - Parameters:
    ///   - devices: the devices whose topics are unknown.
    ///   - loaded: the rows of the transaction. The rows of `devices` are removed from it.
    ///   - row: returns the row of a command.
    /// - Returns: the removed rows and commands; nil if no other commands would remain.
    func separate(
        _ devices: Set<DeviceToken>,
        from loaded: inout LoadedDevices,
        _ row: (QueuedCommand) -> RequestedRow
    ) -> (rows: LoadPlan, commands: [QueuedCommand])? {
        guard case .commands = self.purpose, let plan = self.locked else { return nil }
        var waiting = LoadPlan()
        waiting.passesOverLocked = plan.passesOverLocked
        waiting.tokens = plan.tokens.filter { devices.contains($0) }
        // The devices of the requested wakes are unknown, so all wakes wait if any loaded device waits.
        if loaded.devices.contains(where: { devices.contains($0.token) }) { waiting.wakes = plan.wakes }
        let rows = Set(waiting.tokens.map { RequestedRow.device($0) } + waiting.wakes.map { RequestedRow.wake($0) })
        guard !self.commands.allSatisfy({ rows.contains(row($0)) }) else { return nil }
        loaded.devices.removeAll { devices.contains($0.token) }
        return (waiting, self.leaveOut(rows, row))
    }

    /// Removes rows and every command about them.
    ///
    /// - `row`: returns the row of a command.
    /// - Returns: the removed commands in order.
    func leaveOut(_ rows: Set<RequestedRow>, _ row: (QueuedCommand) -> RequestedRow) -> [QueuedCommand] {
        self.locked?.tokens.removeAll { rows.contains(.device($0)) }
        self.locked?.wakes.removeAll { rows.contains(.wake($0)) }
        let leftOut = self.commands.filter { rows.contains(row($0)) }
        if !leftOut.isEmpty { self.commands.removeAll { rows.contains(row($0)) } }
        return leftOut
    }
}

/// A command about one device, with its number in the order of arrival.
///
/// Commands are copied often, so the type is small and stores large contents by reference.
struct QueuedCommand {
    enum Work {
        case push(KeptPush)
        case request(EngineRequest)
        /// The wake is lost because its stream has ended.
        case lose(WakeID)
        /// The wake is lost although its stream continues.
        indirect case loseOn(StreamAddress, WakeID, takingBackAttempt: Bool)
    }

    /// The number of the command, from 1, in order of arrival.
    let number: UInt64
    /// The index of the command's lane in the queue.
    let place: Int
    /// The time at which a push left its loop, in microseconds of the monotonic clock; 0 for any other command.
    let leftAt: Int64
    let work: Work
}
