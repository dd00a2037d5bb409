import Engine
import Policy
import Wire

/// The pending requests for the counters of all gateways. One count by the store answers all requests that are ready.
///
/// A request waits for earlier commands, at most one second. A caller who pushes and then requests the counters
/// therefore finds the push counted.
struct ClusterQuestions {
    /// The maximum wait for earlier commands, in milliseconds.
    static let gracePeriod: Int64 = 1000

    struct Question {
        /// The request; nil for the sample of this second.
        let request: EngineRequest?
        let topics: CountedTopics
        /// The number of the last earlier command.
        let behind: UInt64
        /// The time at which the request stops waiting for earlier commands, in milliseconds since the start of the
        /// machine.
        let until: Int64
        /// True if this gateway's earlier refusals must be stored before the count.
        var needsRefusals = true
    }

    private var waiting: [Question] = []
    private var open: (number: TransactionNumber, questions: [Question])?

    var isEmpty: Bool { self.waiting.isEmpty && self.open == nil }

    var count: Int { self.waiting.count + (self.open?.questions.count ?? 0) }

    /// True if the sample of this second has been requested.
    var hasSample: Bool {
        self.waiting.contains { $0.request == nil } || self.open?.questions.contains { $0.request == nil } ?? false
    }

    /// The earliest time at which a request stops waiting, in milliseconds since the start of the machine. Nil while a
    /// count is open.
    var nextAt: Int64? { self.open == nil ? self.waiting.map(\.until).min() : nil }

    mutating func append(_ question: Question) { self.waiting.append(question) }

    /// Returns true if a request is ready and no count is open.
    func isReady(_ queue: CommandQueue, boot: Int64) -> Bool {
        self.open == nil && self.waiting.contains { Self.isReady($0, queue, boot) }
    }

    /// Returns true if this gateway's refused pushes must be stored before the ready requests are counted.
    func needRefusals(_ queue: CommandQueue, boot: Int64) -> Bool {
        self.waiting.contains { $0.needsRefusals && Self.isReady($0, queue, boot) }
    }

    /// Records that a transaction stores all earlier refusals.
    mutating func refusalsCounted() {
        for place in self.waiting.indices { self.waiting[place].needsRefusals = false }
    }

    /// Removes and returns the requests that the count with this number will answer.
    mutating func begin(_ number: TransactionNumber, _ queue: CommandQueue, boot: Int64) -> [Question] {
        let ready = self.waiting.filter { Self.isReady($0, queue, boot) }
        self.waiting.removeAll { Self.isReady($0, queue, boot) }
        self.open = (number, ready)
        return ready
    }

    /// Ends a count and returns its requests; nil if the number belongs to another transaction.
    mutating func ended(_ number: TransactionNumber) -> [Question]? {
        guard let open = self.open, open.number == number else { return nil }
        self.open = nil
        return open.questions
    }

    /// Removes and returns all requests, because nothing can be counted for now.
    mutating func takeAll() -> [Question] {
        defer {
            self.waiting = []
            self.open = nil
        }
        return (self.open?.questions ?? []) + self.waiting
    }

    private static func isReady(_ question: Question, _ queue: CommandQueue, _ boot: Int64) -> Bool {
        queue.hasEnded(upTo: question.behind) || boot >= question.until
    }
}

/// The pending requests that read one device. They are answered from the last committed version of its row, without a
/// lock.
///
/// A request waits for earlier commands about its device, at most one second, so that a caller sees its own changes. It
/// does not wait while another session has locked the row.
struct DeviceQuestions {
    /// The maximum number of requests answered by one read.
    private static let countMax = 256
    /// The maximum number of open reads.
    private static let openMax = 2

    struct Question {
        let request: EngineRequest
        let device: DeviceToken
        /// The number of the last earlier command about the device; 0 if there is none.
        let behind: UInt64
        /// The time at which the request stops waiting for earlier commands, in milliseconds since the start of the
        /// machine.
        let until: Int64
        /// The number of times that topics were read for the request, because the device's topic was unknown.
        var topicReads = 0
    }

    private var waiting: [Question] = []
    private var waitingForTopics: [Question] = []
    private var open: [TransactionNumber: [Question]] = [:]

    var isEmpty: Bool { self.waiting.isEmpty && self.waitingForTopics.isEmpty && self.open.isEmpty }

    /// True if requests are waiting and another read may begin.
    var canBegin: Bool { !self.waiting.isEmpty && self.open.count < Self.openMax }

    /// The number of unanswered requests.
    var count: Int { self.waiting.count + self.waitingForTopics.count + self.open.values.reduce(0) { $0 + $1.count } }

    /// The earliest time at which a request stops waiting, in milliseconds since the start of the machine. Nil if no
    /// read may begin.
    var nextAt: Int64? { self.canBegin ? self.waiting.lazy.map(\.until).min() : nil }

    mutating func append(_ question: Question) { self.waiting.append(question) }

    /// Moves the ready requests into a read with this number, and returns them.
    mutating func begin(_ number: TransactionNumber, _ queue: CommandQueue, boot: Int64) -> [Question] {
        var begun: [Question] = []
        var left: [Question] = []
        for question in self.waiting {
            if begun.count < Self.countMax, queue.hasEnded(question.behind) || boot >= question.until {
                begun.append(question)
            } else {
                left.append(question)
            }
        }
        self.waiting = left
        if !begun.isEmpty { self.open[number] = begun }
        return begun
    }

    /// Ends a read and returns its requests; nil if the number belongs to another transaction.
    mutating func ended(_ number: TransactionNumber) -> [Question]? { self.open.removeValue(forKey: number) }

    /// Keeps requests about devices of unknown topics until the topics have been read.
    mutating func waitForTopics(_ questions: [Question]) {
        for var question in questions {
            question.topicReads += 1
            self.waitingForTopics.append(question)
        }
    }

    /// Releases the requests that waited for topics.
    mutating func topicsCame() {
        self.waiting += self.waitingForTopics
        self.waitingForTopics = []
    }

    /// Removes and returns the requests that wait for topics, because the topics cannot be read.
    mutating func takeWaitingForTopics() -> [Question] {
        defer { self.waitingForTopics = [] }
        return self.waitingForTopics
    }

    /// Removes and returns all requests, because nothing can be read for now.
    mutating func takeAll() -> [Question] {
        defer { self = DeviceQuestions() }
        let open = self.open.sorted { $0.key.rawValue < $1.key.rawValue }
        return open.flatMap(\.value) + self.waitingForTopics + self.waiting
    }
}

/// A list of devices or tasks that is read in parts. It collects the rows of the answer.
struct DeviceListing {
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
    /// The number of the last earlier command, and the time at which the list stops waiting for it.
    let behind: UInt64
    let until: Int64
    /// The time at which the list is ended, in milliseconds since the start of the machine.
    var deadline: Int64 { self.until - ClusterQuestions.gracePeriod + Self.timeout }
    /// The number of the read of the current part; nil between parts.
    var number: TransactionNumber?
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

    init(_ request: EngineRequest, _ subject: ListedRows, behind: UInt64, until: Int64) {
        self.request = request
        self.subject = subject
        self.behind = behind
        self.until = until
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
    mutating func take(
        _ loaded: LoadedDevices,
        _ devices: [DeviceToken],
        since: [DeviceToken: Instant] = [:]
    ) -> Bool {
        self.number = nil
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
    private mutating func keepLongest(_ count: Int) {
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
