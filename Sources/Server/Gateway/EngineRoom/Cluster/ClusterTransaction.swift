import Engine
import Policy
import Wire

/// A transaction of a shared store, with its purpose and the effects to release when it is durable.
final class ClusterTransaction {
    /// The purpose. Only a transaction for `commands` has commands.
    enum Purpose {
        case commands
        /// Processes due devices.
        case due
        /// Fills this many free slots with waiting launches.
        case claim(Claims.Shape, slots: Int)
        /// Records the loss of a dead gateway's wakes.
        case burial(GatewayNumber)
        /// Notifies streams of changed conditions, including changes at other gateways.
        case conditions(changedElsewhere: [DeviceToken])
        /// Checks if wakes held by streams have ended at other gateways.
        case heldWakes([WakeID])
        /// Warns workers of near deadlines, unless these have moved.
        case warnings([WakeID])
        /// Stores the counts of refused pushes.
        case refusals
        /// Finds devices to which new policies must be applied.
        case sweepRead
        /// Applies new policies to devices.
        case sweep
    }

    /// The maximum number of attempts after conflicts with other gateways.
    static let triesMax = 8

    /// The rows of the transaction.
    enum Rows {
        /// Rows to lock and perhaps write.
        case locked(LoadPlan)
        /// Rows to read.
        case read(ReadPlan)
    }

    let purpose: Purpose
    private(set) var commands: [QueuedCommand]
    private(set) var rows: Rows
    /// The effects to release when the transaction is durable.
    let group: StepGroup
    /// The number of the last attempt.
    var number = TransactionNumber(rawValue: 0)
    /// The time at which the rows were requested, in milliseconds since the start of the machine.
    var begunAt: Int64 = 0
    var conflicts = 0
    /// The number of times that topics were read because the topic of a row was unknown.
    var topicReads = 0
    /// The results of the attempt, until its outcome is known.
    var step = Step()

    /// The results of one attempt.
    struct Step {
        var streams = StreamChanges()
        /// The wakes given to streams here, with their devices and deadlines.
        var launched: [(wake: WakeID, device: DeviceToken, deadline: Instant)] = []
        /// The times at which rows of wakes must be read again, to warn their workers of near deadlines.
        var looks: [(wake: WakeID, at: Instant)] = []
        var ended: [WakeID] = []
        /// The topics of wakes that have ended.
        var freed: Set<TopicIndex> = []
        /// The topics with launches that now wait for a slot.
        var ready: Set<TopicIndex> = []
        /// The times at which devices will be due.
        var due: [Instant] = []
        /// The devices whose conditions have changed, and their topics.
        var conditions: [(device: DeviceToken, topic: TopicIndex)] = []
        /// The times of waits and wakes as counted before and after this attempt.
        var times: (before: WakeTimes, after: WakeTimes)?
        /// The events of earlier subscriptions, which this attempt writes.
        var subscriptions: [HistoryEvent] = []
        /// The pushes refused in this attempt.
        var refused = Rejections()
        /// The topics whose counts of refused pushes this attempt writes.
        var rejectionsWritten: [UInt32] = []
        /// The number of rows read; `hasMore` is true if there may be more.
        var rowCount = 0
        var hasMore = false
        /// The devices found, for a transaction that looks for devices.
        var found: [DeviceToken] = []
        /// All refused pushes of this gateway at the attempt, for a transaction that stores them.
        var rejections = Rejections()
        /// The policy time of the attempt.
        var moment: Instant?
        /// True if the attempt recorded the loss of a dead gateway's wakes.
        var hasLost = false
        /// The launched wakes that ended at other gateways before this attempt was known to be durable.
        var endedSince: [(wake: WakeID, reason: ExpirationReason?)] = []
        /// The time at which the commit was submitted, in microseconds of the monotonic clock.
        var committedFrom: Int64 = 0
        /// The time of submission in milliseconds since the start of the machine; nil before the submission.
        var committedSince: Int64?
        /// True if the attempt was performed, so that the group contains effects.
        var isPerformed = false
    }

    /// True if a command is a worker's report about the end of a wake.
    var hasReports: Bool {
        self.commands.contains { command in
            guard case .request(let request) = command.work else { return false }
            return request.work.freesSlot
        }
    }

    /// True if the transaction is repeated after a conflict; false if the other gateway has done the work.
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

    /// True if the transaction loads devices to change them. A transaction that only counts refused pushes loads none.
    var namesRows: Bool {
        guard case .locked(let plan) = self.rows else { return false }
        if case .none = plan.selection { return !plan.tokens.isEmpty || !plan.wakes.isEmpty }
        return true
    }

    /// True if the transaction only reads, so that there is nothing to commit or abandon.
    var isRead: Bool { if case .read = self.rows { true } else { false } }

    /// True if the transaction does not wait for row locks.
    var passesOverLocked: Bool {
        switch self.rows {
        case .read: true
        case .locked(let plan): plan.passesOverLocked || plan.tokens.isEmpty && plan.wakes.isEmpty
        }
    }

    /// Makes the next attempt skip rows that others have locked.
    func passOverLocked() {
        guard case .locked(var plan) = self.rows else { return }
        plan.passesOverLocked = true
        self.rows = .locked(plan)
    }

    /// Removes the commands that wait for topics.
    ///
    /// - Parameters:
    ///   - devices: the devices of the topics.
    ///   - loaded: the rows of the transaction, from which the rows of `devices` are removed.
    ///   - row: returns the row of a command.
    /// - Returns: the removed rows and commands; nil if nothing else remains.
    func separate(
        _ devices: Set<DeviceToken>,
        from loaded: inout LoadedDevices,
        _ row: (QueuedCommand) -> RequestedRow
    ) -> (rows: LoadPlan, commands: [QueuedCommand])? {
        guard case .commands = self.purpose, case .locked(let plan) = self.rows else { return nil }
        var waiting = LoadPlan()
        waiting.passesOverLocked = plan.passesOverLocked
        waiting.tokens = plan.tokens.filter { devices.contains($0) }
        // The device of a requested wake is unknown, so all wakes wait if any loaded row does.
        if loaded.devices.contains(where: { devices.contains($0.token) }) { waiting.wakes = plan.wakes }
        let rows = Set(waiting.tokens.map { RequestedRow.device($0) } + waiting.wakes.map { RequestedRow.wake($0) })
        guard !self.commands.allSatisfy({ rows.contains(row($0)) }) else { return nil }
        loaded.devices.removeAll { devices.contains($0.token) }
        return (waiting, self.leaveOut(rows, row))
    }

    /// Removes some rows and every command about them.
    ///
    /// - Parameter row: returns the row of a command.
    /// - Returns: the removed commands in order.
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

/// An operation on the row of one device, with its number in the order of arrival.
///
/// The type is small, because it is copied often. Large contents are stored by reference.
struct QueuedCommand {
    enum Work {
        case push(KeptPush)
        case request(EngineRequest)
        /// A wake is lost because the stream that held it has ended.
        case lose(WakeID)
        /// A wake is lost although the stream that held it continues.
        indirect case loseOn(StreamAddress, WakeID, takingBackAttempt: Bool)
    }

    /// The number of the command, from 1, in order of arrival.
    let number: UInt64
    /// The index of its lane in the queue.
    let place: Int
    /// The time at which a push left its loop, in microseconds of the monotonic clock; 0 for any other command.
    let leftAt: Int64
    let work: Work
}
