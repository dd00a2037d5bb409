import Engine
import Policy
import Wire

/// Questions about what all gateways have counted, until the store has answered: one count answers all that wait.
///
/// A question waits for what came before it, for a second at most, so that whoever pushes and then asks finds the push.
struct ClusterQuestions {
    /// How long a question waits for what came before it, in milliseconds.
    static let patience: Int64 = 1000

    struct Question {
        /// nil for the sample of a second.
        let request: EngineRequest?
        let topics: CountedTopics
        /// The last command that came before it.
        let behind: UInt64
        /// Until when it waits for that, in milliseconds since the machine started.
        let until: Int64
        /// Pushes that this gateway refused before are to be counted first.
        var needsRefusals = true
    }

    private var waiting: [Question] = []
    private var open: (number: TransactionNumber, questions: [Question])?

    var isEmpty: Bool { self.waiting.isEmpty && self.open == nil }

    var count: Int { self.waiting.count + (self.open?.questions.count ?? 0) }

    /// Whether the sample of a second is asked for.
    var hasSample: Bool {
        self.waiting.contains { $0.request == nil } || self.open?.questions.contains { $0.request == nil } ?? false
    }

    /// When the first question waits no longer, in milliseconds since the machine started; nil while it cannot go on.
    var nextAt: Int64? { self.open == nil ? self.waiting.map(\.until).min() : nil }

    mutating func append(_ question: Question) { self.waiting.append(question) }

    /// Whether a count may be asked for.
    func isReady(_ queue: CommandQueue, boot: Int64) -> Bool {
        self.open == nil && self.waiting.contains { Self.isReady($0, queue, boot) }
    }

    /// Whether the pushes that this gateway refused are to be counted before whoever is ready is answered.
    func needRefusals(_ queue: CommandQueue, boot: Int64) -> Bool {
        self.waiting.contains { $0.needsRefusals && Self.isReady($0, queue, boot) }
    }

    /// What this gateway refused until now is counted next.
    mutating func refusalsCounted() {
        for place in self.waiting.indices { self.waiting[place].needsRefusals = false }
    }

    /// Takes the questions that are answered with the count that is asked for now under this number.
    mutating func begin(_ number: TransactionNumber, _ queue: CommandQueue, boot: Int64) -> [Question] {
        let ready = self.waiting.filter { Self.isReady($0, queue, boot) }
        self.waiting.removeAll { Self.isReady($0, queue, boot) }
        self.open = (number, ready)
        return ready
    }

    /// A count has come, or will not come: those who asked for it. nil when it is not one of these.
    mutating func ended(_ number: TransactionNumber) -> [Question]? {
        guard let open = self.open, open.number == number else { return nil }
        self.open = nil
        return open.questions
    }

    /// Takes all of them: nothing is counted for now.
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

/// Requests that read one device: each is answered from the last committed version of its row, without a lock.
///
/// A question waits for the commands about its device that came before it, for a second at most, so that a caller who
/// changes something and then asks sees the change. It does not wait if another session has locked the row.
struct DeviceQuestions {
    /// The most questions that one read answers.
    private static let countMax = 256
    /// The most reads that are open at a time.
    private static let openMax = 2

    struct Question {
        let request: EngineRequest
        let device: DeviceToken
        /// The last command about the device that came before it; 0 if there is none.
        let behind: UInt64
        /// Until when it waits for that, in milliseconds since the machine started.
        let until: Int64
        /// The number of times that topics were read for it, because the topic of its device was unknown.
        var topicReads = 0
    }

    private var waiting: [Question] = []
    private var waitingForTopics: [Question] = []
    private var open: [TransactionNumber: [Question]] = [:]

    var isEmpty: Bool { self.waiting.isEmpty && self.waitingForTopics.isEmpty && self.open.isEmpty }

    /// True if another read may begin, and questions wait.
    var canBegin: Bool { !self.waiting.isEmpty && self.open.count < Self.openMax }

    /// The number of unanswered questions.
    var count: Int { self.waiting.count + self.waitingForTopics.count + self.open.values.reduce(0) { $0 + $1.count } }

    /// The end of the first question's wait, in milliseconds since the machine started; nil if no read may begin.
    var nextAt: Int64? { self.canBegin ? self.waiting.lazy.map(\.until).min() : nil }

    mutating func append(_ question: Question) { self.waiting.append(question) }

    /// Takes questions that can be answered now; they are open under this number if there are any.
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

    /// Ends a read, and takes its questions; nil if the number is not one of these.
    mutating func ended(_ number: TransactionNumber) -> [Question]? { self.open.removeValue(forKey: number) }

    /// Questions about devices of topics that are not known yet.
    mutating func waitForTopics(_ questions: [Question]) {
        for var question in questions {
            question.topicReads += 1
            self.waitingForTopics.append(question)
        }
    }

    /// Topics have come.
    mutating func topicsCame() {
        self.waiting += self.waitingForTopics
        self.waitingForTopics = []
    }

    /// Takes the questions that wait for topics, which cannot be read.
    mutating func takeWaitingForTopics() -> [Question] {
        defer { self.waitingForTopics = [] }
        return self.waitingForTopics
    }

    /// Takes all questions, and the numbers of the reads that are open: nothing is read for now.
    mutating func takeAll() -> (questions: [Question], open: [TransactionNumber]) {
        defer { self = DeviceQuestions() }
        let open = self.open.sorted { $0.key.rawValue < $1.key.rawValue }
        return (open.flatMap(\.value) + self.waitingForTopics + self.waiting, open.map(\.key))
    }
}

/// A list of devices, or of what waits and runs on all devices, read piece by piece: kept are the rows that will stand
/// in it.
struct DeviceListing {
    /// The rows of one piece.
    private static let rowsMax = 256
    /// The rows of one piece of a list that has to read every device on which a push is pending.
    private static let rowsOfPendingMax = 1024
    /// The most unfinished lists: each keeps the rows of its answer, which may be more than a thousand.
    static let countMax = 32
    /// The longest time that a list may take, in milliseconds.
    static let timeout: Int64 = 30_000

    let subject: ListedRows
    /// The last command that came before it, and until when it waits for that.
    let behind: UInt64
    let until: Int64
    /// When it is ended, in milliseconds since the machine started.
    var deadline: Int64 { self.until - ClusterQuestions.patience + Self.timeout }
    /// The piece that is being read.
    var number: TransactionNumber?
    let request: EngineRequest
    private(set) var rows: [SharedDevice] = []
    /// Where the next piece begins. It may be a device of another topic, which the caller must not learn of.
    private var after: DeviceToken?
    /// The last device whose row was read.
    private var lastRow: DeviceToken?
    private var count = 0
    private var examined = 0
    private var isAtEnd = false
    /// The place of each device of a list that is not in the order of tokens: when its oldest push arrived, or how recent
    /// its activity is.
    private var since: [DeviceToken: Instant] = [:]

    init(_ request: EngineRequest, _ subject: ListedRows, behind: UInt64, until: Int64) {
        self.request = request
        self.subject = subject
        self.behind = behind
        self.until = until
        if case .devices(let question) = subject { self.after = question.start }
    }

    /// The device whose row was read last, when there are more.
    var lastRead: DeviceToken? { self.isAtEnd ? nil : self.lastRow }

    /// The devices of a list in the order `recent`, which keeps no rows; nil for any other list.
    var recent: [DeviceToken]? {
        guard self.subject.order == .recent else { return nil }
        return self.since.sorted { $0.value == $1.value ? $0.key.isBefore($1.key) : $0.value < $1.value }.map(\.key)
    }

    /// What is read next.
    ///
    /// - `topics`: those that are asked about and that the caller reaches; nil for any. Where a page of devices ends is
    ///   told to the caller, so that no other rows are read for it.
    func plan(_ topics: Set<TopicIndex>?) -> ReadPlan {
        var plan = ReadPlan()
        switch self.subject {
        case .tasks:
            let only = topics.flatMap { $0.count == 1 ? $0.first : nil }
            plan.selection = .withTasks(topic: only, after: self.after, countMax: Self.rowsMax)
        case .devices(let question):
            let topics = topics.map(Array.init)
            plan.selection =
                question.order != .waiting
                ? .inOrder(topics: topics, after: self.after, countMax: Self.rowsMax)
                : .pending(topics: topics, after: self.after, countMax: Self.rowsOfPendingMax)
        }
        return plan
    }

    /// Takes a piece.
    ///
    /// - `devices`: the devices in it that are asked about, or of the tasks that are, each once for each.
    /// - `since`: the place of each of these in a list that is not in the order of tokens.
    /// - Returns: whether the list is whole.
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
        // A slice of the table may hold no device that is asked for.
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
    /// Keeps the rows of so many devices: those whose oldest pushes wait longest.
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
    /// A list has looked through devices for too long.
    static let longList = StoreError(
        message: "The gateway ended a list: it may look through the devices of the database for "
            + "\(DeviceListing.timeout / 1000) s. Ask for less, such as one topic or a smaller page, and see in "
            + "pg_stat_activity what keeps the database busy."
    )
}
