package import Policy
package import Wire

/// The counters of one topic, or of all topics.
///
/// Invariant after every step: `accepted` = `completed` + `coalesced` + the sum of `discarded` + `pending` +
/// `inFlight`.
package struct ActivityCounters: Hashable, Sendable {
    /// Accepted pushes whose payload asks to wake the device.
    package var accepted: Int64 = 0
    /// Pushes answered 200 that wake no device.
    package var noWake: Int64 = 0
    package var completed: Int64 = 0
    package var coalesced: Int64 = 0
    /// Discarded pushes, by reason.
    package var discarded = PerCase<DiscardReason>()
    /// The number of devices with a pending push.
    package var pending: Int64 = 0
    /// The number of pushes whose wake is in flight.
    package var inFlight: Int64 = 0
    /// The number of launched push wakes, including wakes without a push.
    package var launched: Int64 = 0
    /// Push wakes that ended, by outcome.
    package var results = PerCase<WakeOutcome>()
    /// Wakes of background tasks and sessions.
    package var tasks = TaskWakeCounters()
    package var requests = TaskCounters()
    package var sessions = SessionCounters()
    /// The number of registered devices.
    package var registered: Int64 = 0
    /// Devices with a held pending push, by the first hold that applies.
    package var held = PerCase<Hold>()
    /// Totals that gateways with a shared store cannot count in memory.
    package var gauges = DeviceGauges()

    package init() {}

    /// The sum that must equal `accepted`.
    package var accountedFor: Int64 {
        self.completed + self.coalesced + self.discarded.sum + self.pending + self.inFlight
    }

    /// The counters shown for a paused topic: the pause takes precedence over every other hold of a pending launch.
    package var paused: ActivityCounters {
        var counters = self
        counters.held = PerCase()
        counters.held[.paused] = self.pending
        counters.requests.held = PerCase()
        counters.requests.held[.paused] = self.requests.waiting.sum
        return counters
    }

    /// Counts a launched wake.
    mutating func noteLaunch(_ kind: LaunchKind) {
        if let task = kind.task { self.tasks.launched[task] += 1 } else { self.launched += 1 }
    }

    /// Counts an ended wake.
    mutating func noteEnd(_ outcome: LaunchOutcome) {
        switch outcome {
        case .push(let outcome): self.results[outcome] += 1
        case .task(let kind, let outcome): self.tasks[kind][outcome] += 1
        }
    }

    package static func += (left: inout ActivityCounters, right: ActivityCounters) { left.combine(right, &+) }

    /// Returns the differences of the counters of `left` and `right`.
    package static func - (left: ActivityCounters, right: ActivityCounters) -> ActivityCounters {
        var difference = left
        difference.combine(right, &-)
        return difference
    }

    private mutating func combine(_ other: ActivityCounters, _ operation: (Int64, Int64) -> Int64) {
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
package struct TaskWakeCounters: Hashable, Sendable {
    package var launched = PerCase<TaskKind>()
    private var appRefresh = PerCase<TaskOutcome>()
    private var processing = PerCase<TaskOutcome>()
    private var continued = PerCase<TaskOutcome>()
    private var urlSession = PerCase<TaskOutcome>()

    /// Ended wakes of one kind, by outcome.
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

/// An enumeration whose cases `PerCase` counts.
package protocol CountedCase: CaseIterable, Hashable, Sendable where AllCases == [Self] {
    /// The vector with one counter per case; its width limits the number of cases.
    associatedtype Counts: SIMD, Sendable = SIMD8<Int64> where Counts.Scalar == Int64

    /// The zero-based position of the case.
    var place: Int { get }
}

extension CountedCase {
    // Linear search. Types that are counted for each push implement this themselves.
    package var place: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

extension CountedCase where Self: StoredCase {
    // Stored codes start at 1.
    package var place: Int { Int(self.storedCode) - 1 }
}

extension Hold: CountedCase {
    package typealias Counts = SIMD16<Int64>

    package var place: Int { Int(self.rawValue) }
}

/// One counter for each case of an enumeration.
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
/// The counters of task requests. `TaskWakeCounters` counts their wakes.
///
/// Invariant after every step: `submitted` = `replaced` + `cancelled` + the sum of `discarded` + every result except
/// `lost` + `waiting` + `inFlight`.
package struct TaskCounters: Hashable, Sendable {
    /// Accepted requests, by kind.
    package var submitted = PerCase<TaskKind>()
    /// Refused requests, by reason; not included in `submitted`.
    package var refused = PerCase<TaskRefusal>()
    package var replaced: Int64 = 0
    /// Requests cancelled while pending.
    package var cancelled: Int64 = 0
    /// Discarded requests, by reason.
    package var discarded = PerCase<DiscardReason>()
    /// Pending requests, by kind.
    package var waiting = PerCase<TaskKind>()
    /// Requests whose wake is in flight, by kind.
    package var inFlight = PerCase<TaskKind>()
    /// Pending requests that are held, by the first hold that applies.
    package var held = PerCase<Hold>()
}

/// The counters of finished transfers. The end of a wake counts for each of its transfers.
///
/// Invariant after every step: `finished` = `completed` + the sum of `discarded` + `waiting` + `inFlight`.
package struct SessionCounters: Hashable, Sendable {
    package var finished: Int64 = 0
    /// Finished transfers rejected because the device has too many sessions.
    package var refused: Int64 = 0
    package var completed: Int64 = 0
    /// Discarded transfers, by reason.
    package var discarded = PerCase<DiscardReason>()
    package var waiting: Int64 = 0
    package var inFlight: Int64 = 0
    /// Session wakes that are pending or in flight.
    package var wakes: Int64 = 0

    /// The sum that must equal `finished`.
    package var accountedFor: Int64 { self.completed + self.discarded.sum + self.waiting + self.inFlight }
}

extension ActivityCounters {
    /// The sum that must equal the number of submitted requests.
    package var requestsAccountedFor: Int64 {
        let requests = self.requests
        let ended = TaskKind.requestable.reduce(0) { $0 + self.tasks[$1].sum - self.tasks[$1][.lost] }
        return requests.replaced + requests.cancelled + requests.discarded.sum + ended + requests.waiting.sum
            + requests.inFlight.sum
    }

    /// Requests and sessions that are pending or in flight.
    var requestCount: Int64 { self.requests.waiting.sum + self.requests.inFlight.sum + self.sessions.wakes }

    /// Returns the number of request wakes that ended with this outcome.
    package func requestResults(_ outcome: TaskOutcome) -> Int64 {
        TaskKind.requestable.reduce(0) { $0 + self.tasks[$1][outcome] }
    }
}

extension TaskRefusal: CountedCase {}
/// Current totals of a store that gateways share, as no single process has all of its data in memory.
///
/// Zero in an engine with its own store.
package struct DeviceGauges: Hashable, Sendable {
    /// Devices, removed ones included.
    package var devices: Int64 = 0
    /// Bytes of memory of pushes that are pending or in flight.
    package var contentBytes: Int64 = 0
    /// Bytes of memory of names and details of requests and sessions, and of the ids of session events.
    package var taskBytes: Int64 = 0

    package init() {}
}

/// The stored form of counters that gateways share: a version (1 byte), then each nonzero counter as its code (2 bytes)
/// and a little-endian integer (8 bytes). Codes never change their meaning.
extension ActivityCounters {
    private static let version: UInt8 = 1

    /// Appends the stored form.
    package func store(to buffer: inout ByteBuffer) {
        buffer.append(Self.version)
        var counters = self
        counters.visit { code, count in
            guard count != 0 else { return }
            buffer.appendLittleEndian(code)
            buffer.appendLittleEndian(count)
        }
    }

    /// Decodes the output of `store`; nil if it is malformed or contains an unknown counter.
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

    /// Calls `body` with each counter and its code.
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
        self.gauges.visit(body)
        self.tasks.launched.visit(4) { body($0, &$1) }
        for kind in TaskKind.allCases { self.tasks[kind].visit(16 + kind.storedCode) { body($0, &$1) } }
        self.requests.visit(body)
        self.sessions.visit(body)
    }
}

extension DeviceGauges {
    fileprivate mutating func visit(_ body: (UInt16, inout Int64) -> Void) {
        body(9, &self.devices)
        body(10, &self.contentBytes)
        body(11, &self.taskBytes)
    }
}

extension TaskCounters {
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

extension SessionCounters {
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
    /// Calls `body` with the counter of each case and its code: `list` in the upper byte, the one-based position in
    /// `keys` in the lower byte.
    fileprivate mutating func visit(
        _ list: UInt8,
        _ keys: [Case] = Case.allCases,
        _ body: (UInt16, inout Int64) -> Void
    ) {
        for (place, key) in keys.enumerated() { body(UInt16(list) << 8 | UInt16(place + 1), &self[key]) }
    }
}
