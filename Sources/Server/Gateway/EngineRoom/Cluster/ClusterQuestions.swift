import Engine
import Policy
import Wire

/// A request that is answered from the counters of all gateways, or from the last committed version of one device's
/// row, without a lock.
struct ClusterQuestion {
    /// The request; nil for the sample of this second.
    let request: EngineRequest?
    let wait: CommandWait
    /// True if this gateway's earlier refusals must be stored before the counters are read.
    var needsRefusals = true
    /// The number of times that the topics were read again for this request.
    var topicReads = 0
}

/// The wait of a request for earlier commands, at most one second, so that a caller sees its own changes.
struct CommandWait {
    /// The maximum wait, in milliseconds.
    static let milliseconds: Int64 = 1000

    /// The number of the last earlier command. If it is 0, the request does not wait.
    let behind: UInt64
    /// True if the request waits only for this command, and not for all earlier ones.
    var isOfRow = false
    /// The end of the wait, in milliseconds since the start of the machine.
    let until: Int64

    func isOver(_ queue: CommandQueue, boot: Int64) -> Bool {
        boot >= self.until || (self.isOfRow ? queue.hasEnded(self.behind) : queue.hasEnded(upTo: self.behind))
    }
}

/// A list of devices or tasks that is read in parts. It collects the rows of the answer.
final class DeviceListing {
    /// The number of rows in one part.
    private static let rowsMax = 256
    /// The number of rows in one part of a list that must read every device with a pending push.
    private static let rowsOfPendingMax = 1024
    /// The maximum number of unfinished lists. The limit bounds memory, because a list can have more than a thousand
    /// rows.
    static let countMax = 32
    /// The maximum duration of a list, in milliseconds.
    static let timeout: Int64 = 30_000

    let subject: ListedRows
    let wait: CommandWait
    /// The time at which the list is ended, in milliseconds since the start of the machine.
    var deadline: Int64 { self.wait.until - CommandWait.milliseconds + Self.timeout }
    let request: EngineRequest
    private(set) var rows: [SharedDevice] = []
    /// The device after which the next part starts. Its topic may be outside the caller's scope.
    private var after: DeviceToken?
    /// The last device whose row was read.
    private var lastRow: DeviceToken?
    private var count = 0
    private var examined = 0
    private var isAtEnd = false
    /// The sort keys of a list in another order than that of tokens. A key is the arrival time of the device's oldest
    /// push, or the time of its last activity.
    private var since: [DeviceToken: Instant] = [:]

    init(_ request: EngineRequest, _ subject: ListedRows, _ wait: CommandWait) {
        self.request = request
        self.subject = subject
        self.wait = wait
        if case .devices(let question) = subject { self.after = question.start }
    }

    /// The last device read, if more devices follow.
    var lastRead: DeviceToken? { self.isAtEnd ? nil : self.lastRow }

    /// The devices of a list in the order `recent`, which collects no rows; nil for any other list.
    var recent: [DeviceToken]? {
        guard self.subject.order == .recent else { return nil }
        return self.since.sorted { $0.value == $1.value ? $0.key.isBefore($1.key) : $0.value < $1.value }.map(\.key)
    }

    /// Returns the plan for reading the next part.
    ///
    /// - `topics`: the requested topics within the caller's scope; nil for any. Rows of other topics are not read,
    ///   because the end of a page is visible to the caller.
    func plan(_ topics: Set<TopicIndex>?) -> ReadPlan {
        switch self.subject {
        case .tasks:
            let only = topics.flatMap { $0.count == 1 ? $0.first : nil }
            return ReadPlan(selection: .withTasks(topic: only, after: self.after, countMax: Self.rowsMax))
        case .devices(let question):
            let topics = topics.map(Array.init)
            return ReadPlan(
                selection: question.order != .waiting
                    ? .inOrder(topics: topics, after: self.after, countMax: Self.rowsMax)
                    : .pending(topics: topics, after: self.after, countMax: Self.rowsOfPendingMax)
            )
        }
    }

    /// Adds a part to the list.
    ///
    /// - `devices`: the requested devices in the part. In a list of tasks, each task adds its device once.
    /// - `since`: the sort keys of the devices in a list that is not in the order of tokens.
    /// - Returns: true if the list is complete.
    func take(
        _ loaded: LoadedDevices,
        _ devices: [DeviceToken],
        since: [DeviceToken: Instant] = [:]
    ) -> Bool {
        self.count += devices.count
        self.examined += loaded.devices.count
        let wanted = Set(devices)
        self.rows += loaded.devices.filter { wanted.contains($0.token) }
        self.lastRow = loaded.devices.last?.token ?? self.lastRow
        self.after = loaded.sliceEnd ?? loaded.devices.last?.token ?? self.after
        self.isAtEnd = loaded.sliceEnd == nil && (!loaded.hasMore || loaded.devices.isEmpty)
        // A part of the table may contain no requested device.
        if case .devices(let question) = self.subject, let last = self.after, question.isPast(last) {
            self.isAtEnd = true
        }
        switch self.subject {
        case .tasks: return self.isAtEnd || self.count >= Workspace.tasksMax
        case .devices(let question) where question.order == .waiting:
            self.since.merge(since) { $1 }
            self.keepLongest(question.limit)
            return self.isAtEnd
        case .devices(let question) where question.order == .recent:
            self.since.merge(since) { $1 }
            self.rows = []
            return self.isAtEnd || self.examined >= question.limit
        case .devices(let question):
            return self.isAtEnd || self.count >= question.limit || self.examined >= DeviceQuestion.examinedMax
        }
    }
}

extension DeviceListing {
    /// Keeps the rows of the `count` devices with the oldest pushes.
    private func keepLongest(_ count: Int) {
        guard self.rows.count > count else { return }
        let since = self.since
        func order(_ row: SharedDevice) -> Instant { since[row.token] ?? .distantFuture }
        self.rows.sort { left, right in
            order(left) == order(right) ? left.token.isBefore(right.token) : order(left) < order(right)
        }
        for row in self.rows[count...] { self.since[row.token] = nil }
        self.rows.removeSubrange(count...)
    }
}

extension StoreError {
    /// The error of a list that has read devices for too long.
    static let longList = StoreError(
        message: "The gateway ended a list: it may look through the devices of the database for "
            + "\(DeviceListing.timeout / 1000) s. Ask for less, such as one topic or a smaller page, and see in "
            + "pg_stat_activity what keeps the database busy."
    )
}
