package import Policy
package import Wire

/// What was counted for one topic, or for all.
///
/// `accepted` = `completed` + `coalesced` + all of `discarded` + `pending` + `inFlight`, after every step.
package struct Books: Hashable, Sendable {
    /// Pushes that entered the policy.
    package var accepted: Int64 = 0
    /// Pushes answered 200 that wake nobody.
    package var noWake: Int64 = 0
    package var completed: Int64 = 0
    package var coalesced: Int64 = 0
    /// By reason.
    package var discarded = PerCase<DiscardReason>()
    /// Devices with a push that waits.
    package var pending: Int64 = 0
    /// Pushes whose wake is in flight.
    package var inFlight: Int64 = 0
    /// Wakes of pushes launched, empty ones included.
    package var launched: Int64 = 0
    /// Wakes of pushes that ended, by outcome.
    package var results = PerCase<WakeOutcome>()
    /// Wakes of everything else.
    package var tasks = TaskWakeBooks()
    package var requests = TaskBooks()
    package var sessions = SessionBooks()
    /// Registered devices.
    package var registered: Int64 = 0
    /// Devices with a pending push that is held, by the first hold that applies.
    package var held = PerCase<Hold>()
    /// What gateways that share a store count besides.
    package var stock = StockBooks()

    package init() {}

    /// What `accepted` must be equal to.
    package var accountedFor: Int64 {
        self.completed + self.coalesced + self.discarded.sum + self.pending + self.inFlight
    }

    /// What is shown of a topic that is paused: whatever waits is held by the pause, which goes before other holds.
    package var paused: Books {
        var books = self
        books.held = PerCase()
        books.held[.paused] = self.pending
        books.requests.held = PerCase()
        books.requests.held[.paused] = self.requests.waiting.sum
        return books
    }

    /// A wake was launched.
    mutating func noteLaunch(_ kind: LaunchKind) {
        if let task = kind.task { self.tasks.launched[task] += 1 } else { self.launched += 1 }
    }

    /// A wake ended.
    mutating func noteEnd(_ outcome: LaunchOutcome) {
        switch outcome {
        case .push(let outcome): self.results[outcome] += 1
        case .task(let kind, let outcome): self.tasks[kind][outcome] += 1
        }
    }

    package static func += (left: inout Books, right: Books) { left.combine(right, &+) }

    /// The counts of `left` beyond those of `right`.
    package static func - (left: Books, right: Books) -> Books {
        var difference = left
        difference.combine(right, &-)
        return difference
    }

    private mutating func combine(_ other: Books, _ operation: (Int64, Int64) -> Int64) {
        var (other, others) = (other, [Int64]())
        other.visit { others.append($1) }
        var place = 0
        self.visit { _, count in
            count = operation(count, others[place])
            place += 1
        }
    }
}

/// Wakes of tasks and sessions, counted by kind.
package struct TaskWakeBooks: Hashable, Sendable {
    package var launched = PerCase<TaskKind>()
    private var appRefresh = PerCase<TaskOutcome>()
    private var processing = PerCase<TaskOutcome>()
    private var continued = PerCase<TaskOutcome>()
    private var urlSession = PerCase<TaskOutcome>()

    package init() {}

    /// Wakes of one kind that ended, by outcome.
    package subscript(kind: TaskKind) -> PerCase<TaskOutcome> {
        get {
            switch kind {
            case .appRefresh: self.appRefresh
            case .processing: self.processing
            case .continued: self.continued
            case .urlSession: self.urlSession
            }
        }
        set {
            switch kind {
            case .appRefresh: self.appRefresh = newValue
            case .processing: self.processing = newValue
            case .continued: self.continued = newValue
            case .urlSession: self.urlSession = newValue
            }
        }
    }
}

/// A case that `PerCase` counts.
package protocol CountedCase: CaseIterable, Hashable, Sendable where AllCases == [Self] {
    /// The counts of all cases, whose number it bounds.
    associatedtype Counts: SIMD, Sendable = SIMD8<Int64> where Counts.Scalar == Int64

    /// The case's place among all cases.
    var place: Int { get }
}

extension CountedCase {
    // Too slow for what is counted with each push, which says its place itself.
    package var place: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

extension CountedCase where Self: StoredCase {
    // Codes count from 1.
    package var place: Int { Int(self.storedCode) - 1 }
}

extension Hold: CountedCase {
    package typealias Counts = SIMD16<Int64>

    package var place: Int { Int(self.rawValue) }
}

/// One count for each case of an enumeration.
package struct PerCase<Case: CountedCase>: Hashable, Sendable {
    private var counts = Case.Counts(repeating: 0)

    package init() {}

    package subscript(_ key: Case) -> Int64 {
        get { self.counts[key.place] }
        set { self.counts[key.place] = newValue }
    }

    package var sum: Int64 { self.counts.wrappedSum() }

    package static func += (left: inout Self, right: Self) { left.counts &+= right.counts }
    package static func -= (left: inout Self, right: Self) { left.counts &-= right.counts }
}

extension DiscardReason: CountedCase {}
extension WakeOutcome: CountedCase {}
extension TaskKind: CountedCase {}
extension TaskOutcome: CountedCase {}
/// What was counted of requests; their wakes are counted by `TaskWakeBooks`.
///
/// `submitted` = `replaced` + `cancelled` + all of `discarded` + every result but `lost` + `waiting` + `inFlight`,
/// after every step.
package struct TaskBooks: Hashable, Sendable {
    /// Requests that were taken, by kind.
    package var submitted = PerCase<TaskKind>()
    /// By reason; what was refused was not submitted.
    package var refused = PerCase<TaskRefusal>()
    package var replaced: Int64 = 0
    /// Requests that were cancelled while they waited.
    package var cancelled: Int64 = 0
    /// By reason.
    package var discarded = PerCase<DiscardReason>()
    /// Requests that wait, by kind.
    package var waiting = PerCase<TaskKind>()
    /// Requests whose wake is in flight, by kind.
    package var inFlight = PerCase<TaskKind>()
    /// Requests that wait and are held, by the first hold that applies.
    package var held = PerCase<Hold>()

    package init() {}
}

/// What was counted of finished transfers, a wake standing for as many as it was launched for.
///
/// `finished` = `completed` + all of `discarded` + `waiting` + `inFlight`, after every step.
package struct SessionBooks: Hashable, Sendable {
    package var finished: Int64 = 0
    /// Transfers of a session beyond those that may wait.
    package var refused: Int64 = 0
    package var completed: Int64 = 0
    /// By reason.
    package var discarded = PerCase<DiscardReason>()
    package var waiting: Int64 = 0
    package var inFlight: Int64 = 0
    /// Wakes that wait or are in flight.
    package var wakes: Int64 = 0

    package init() {}

    /// What `finished` must be equal to.
    package var accountedFor: Int64 { self.completed + self.discarded.sum + self.waiting + self.inFlight }
}

extension Books {
    /// What the requests submitted must be equal to.
    package var requestsAccountedFor: Int64 {
        let requests = self.requests
        let ended = TaskKind.requestable.reduce(0) { $0 + self.tasks[$1].sum - self.tasks[$1][.lost] }
        return requests.replaced + requests.cancelled + requests.discarded.sum + ended + requests.waiting.sum
            + requests.inFlight.sum
    }

    /// Requests and sessions that wait or are in flight.
    var requestCount: Int64 { self.requests.waiting.sum + self.requests.inFlight.sum + self.sessions.wakes }

    /// Wakes of requests that ended, by outcome.
    package func requestResults(_ outcome: TaskOutcome) -> Int64 {
        TaskKind.requestable.reduce(0) { $0 + self.tasks[$1][outcome] }
    }
}

extension TaskRefusal: CountedCase {}
/// How much there is at one time, in the books that gateways share: no process has all of it in its memory.
///
/// Zero in the books of an engine that does not share its store.
package struct StockBooks: Hashable, Sendable {
    /// Devices, removed ones included.
    package var devices: Int64 = 0
    /// The memory of pushes that wait or are in flight.
    package var contentBytes: Int64 = 0
    /// The memory of what requests and sessions are named and entitled, and of the ids of session events.
    package var taskBytes: Int64 = 0

    package init() {}
}

/// How books are kept that gateways share: a version (1 byte), and each count that is not zero behind its code (2), as
/// a little-endian integer (8). The codes never change their meaning.
extension Books {
    private static let version: UInt8 = 1

    /// Appends the books as they are kept.
    package func store(to buffer: inout ByteBuffer) {
        buffer.append(Self.version)
        var books = self
        books.visit { code, count in
            guard count != 0 else { return }
            buffer.appendLittleEndian(code)
            buffer.appendLittleEndian(count)
        }
    }

    /// The books that `store` wrote; nil when it did not, or when there is a count that is not known.
    package init?(stored bytes: ByteView) {
        var reader = RecordReader(bytes)
        guard reader.integer(UInt8.self) == Self.version else { return nil }
        var counts: [UInt16: Int64] = [:]
        while reader.hasMore {
            let code: UInt16 = reader.integer()
            guard counts.updateValue(reader.integer(), forKey: code) == nil else { return nil }
        }
        guard reader.isWhole else { return nil }
        self.init()
        self.visit { code, count in
            if let stored = counts.removeValue(forKey: code) { count = stored }
        }
        guard counts.isEmpty else { return nil }
    }

    /// Calls `body` with every count and its code.
    private mutating func visit(_ body: (UInt16, inout Int64) -> Void) {
        body(1, &self.accepted)
        body(2, &self.noWake)
        body(3, &self.completed)
        body(4, &self.coalesced)
        body(5, &self.pending)
        body(6, &self.inFlight)
        body(7, &self.launched)
        body(8, &self.registered)
        self.discarded.visit(1, DiscardReason.ofPushes) { body($0, &$1) }
        self.results.visit(2) { body($0, &$1) }
        self.held.visit(3, Hold.pushCodes) { body($0, &$1) }
        self.stock.visit(body)
        self.tasks.launched.visit(4) { body($0, &$1) }
        for kind in TaskKind.allCases { self.tasks[kind].visit(16 + kind.storedCode) { body($0, &$1) } }
        self.requests.visit(body)
        self.sessions.visit(body)
    }
}

extension StockBooks {
    fileprivate mutating func visit(_ body: (UInt16, inout Int64) -> Void) {
        body(9, &self.devices)
        body(10, &self.contentBytes)
        body(11, &self.taskBytes)
    }
}

extension TaskBooks {
    fileprivate mutating func visit(_ body: (UInt16, inout Int64) -> Void) {
        body(12, &self.replaced)
        body(13, &self.cancelled)
        self.submitted.visit(5) { body($0, &$1) }
        self.refused.visit(6) { body($0, &$1) }
        self.discarded.visit(7, DiscardReason.ofTasks) { body($0, &$1) }
        self.waiting.visit(8) { body($0, &$1) }
        self.inFlight.visit(9) { body($0, &$1) }
        self.held.visit(10, Hold.taskCodes) { body($0, &$1) }
    }
}

extension SessionBooks {
    fileprivate mutating func visit(_ body: (UInt16, inout Int64) -> Void) {
        body(14, &self.finished)
        body(15, &self.refused)
        body(16, &self.completed)
        body(17, &self.waiting)
        body(18, &self.inFlight)
        body(19, &self.wakes)
        self.discarded.visit(11, DiscardReason.ofTasks) { body($0, &$1) }
    }
}

extension PerCase {
    /// Calls `body` with the count of each case and its code: that of the list in the upper byte, its place in `keys`
    /// from 1 on in the lower.
    fileprivate mutating func visit(
        _ list: UInt8,
        _ keys: [Case] = Case.allCases,
        _ body: (UInt16, inout Int64) -> Void
    ) {
        for (place, key) in keys.enumerated() { body(UInt16(list) << 8 | UInt16(place + 1), &self[key]) }
    }
}
