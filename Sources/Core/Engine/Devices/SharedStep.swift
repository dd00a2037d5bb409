package import Policy
package import Wire

/// The rows loaded by a step of a shared store, in their stored form, and the counters at its start.
final class SharedStep {
    /// A row in the state in which it was loaded. Its index is the device's index.
    struct Row {
        let topic: TopicIndex
        let derived: DerivedState
        /// The index of the row's first wake in `wakes`: first the wakes in flight, then the remembered ended wakes.
        let firstWake: Int
        let inFlightCount: Int
        let endedCount: Int
    }

    /// The configuration with its own limits. In a step, the engine uses other values for some of them.
    var configuration: EngineConfiguration
    private(set) var rows: [Row] = []
    private var wakes: [WakeID] = []
    /// The launches to offer when the step begins.
    var ready: [DeviceIndex] = []
    var readyTasks: [ReadyTask] = []
    /// The recent counters of all gateways, by topic and in total.
    private var counters: [TopicIndex: ActivityCounters] = [:]
    var totals = ActivityCounters()
    /// `Parameters.digest` by topic number; nil until it is needed.
    private var digests: [UInt64?] = []
    /// A buffer for encoding records.
    var buffer = ByteBuffer()

    init(configuration: EngineConfiguration) {
        self.configuration = configuration
    }

    /// Appends the row of the next device.
    func append(_ topic: TopicIndex, _ derived: DerivedState, inFlight: [WakeID], ended: Ring<EndedWake>?) {
        let first = self.wakes.count
        self.wakes += inFlight
        if let ended { self.wakes += ended.elements.lazy.map(\.id) }
        self.rows.append(
            Row(
                topic: topic,
                derived: derived,
                firstWake: first,
                inFlightCount: inFlight.count,
                endedCount: self.wakes.count - first - inFlight.count
            )
        )
    }

    /// Returns the row of a device in the state in which it was loaded; nil if the device is new in this step.
    func row(_ device: DeviceIndex) -> Row? {
        Int(device.rawValue) < self.rows.count ? self.rows[Int(device.rawValue)] : nil
    }

    /// Returns the wakes that were in flight when the row was loaded.
    func inFlight(_ row: Row) -> ArraySlice<WakeID> { self.wakes[row.firstWake..<row.firstWake + row.inFlightCount] }

    /// Returns the remembered ended wakes when the row was loaded.
    func ended(_ row: Row) -> ArraySlice<WakeID> {
        let start = row.firstWake + row.inFlightCount
        return self.wakes[start..<start + row.endedCount]
    }

    /// Removes all rows.
    func removeRows() {
        self.rows.removeAll(keepingCapacity: true)
        self.wakes.removeAll(keepingCapacity: true)
        self.ready.removeAll(keepingCapacity: true)
        self.readyTasks.removeAll(keepingCapacity: true)
    }

    /// The counters of a topic, summed over all gateways.
    subscript(topic: TopicIndex) -> ActivityCounters {
        get { self.counters.isEmpty ? ActivityCounters() : self.counters[topic] ?? ActivityCounters() }
        set { self.counters[topic] = newValue }
    }

    /// Returns the digest of a topic's policy.
    func digest(_ topic: TopicIndex, _ parameters: @autoclosure () -> Parameters) -> UInt64 {
        let place = Int(topic.rawValue)
        if place < self.digests.count, let digest = self.digests[place] { return digest }
        while self.digests.count <= place { self.digests.append(nil) }
        let digest = parameters().digest
        self.digests[place] = digest
        return digest
    }

    func forgetDigests() { self.digests.removeAll() }
}

/// The row of a device in a store that several gateways share.
package struct SharedDevice: Sendable {
    /// The number of the bit in `derived` that is set while a push is pending: bit 0 of byte 1, counted from the lowest
    /// bit of byte 0.
    package static let pendingBit = 8

    package let token: DeviceToken
    /// The stored form of `DeviceRecord`.
    package var record: [UInt8]
    /// The stored form of `TaskRow`; empty if there is none.
    package let tasks: [UInt8]
    /// The stored form of `DerivedState`, from the time of the last write.
    package let derived: [UInt8]

    package init(token: DeviceToken, record: [UInt8], tasks: [UInt8], derived: [UInt8]) {
        self.token = token
        self.record = record
        self.tasks = tasks
        self.derived = derived
    }
}

/// The changes of a step to one device.
package struct SharedDeviceChange: Sendable {
    /// A lane that waits only for a slot.
    package struct ReadyLane: Hashable, Sendable {
        package let target: LaunchTarget
        package let since: Instant

        package init(target: LaunchTarget, since: Instant) {
            self.target = target
            self.since = since
        }
    }

    /// A due time, or no change of it.
    package enum Due: Hashable, Sendable {
        case unchanged
        /// The new due time; nil for never.
        case at(Instant?)
    }

    package var device: SharedDevice
    package var topic: TopicIndex
    /// True if the store does not have the device yet.
    package let isNew: Bool
    package let due: Due
    /// All lanes of the device that wait for a slot; nil if they have not changed.
    package let ready: [ReadyLane]?
    /// Launched wakes, with their deadlines.
    package let launched: [(wake: WakeID, deadline: Instant)]
    /// Wakes that are no longer in flight.
    package let ended: [WakeID]

    /// True if the change affects more than the device's row: slots, wakes or due times.
    package var hasNews: Bool {
        self.due != .unchanged || self.ready != nil || !self.launched.isEmpty || !self.ended.isEmpty
    }

    package init(
        device: SharedDevice,
        topic: TopicIndex,
        isNew: Bool,
        due: Due,
        ready: [ReadyLane]?,
        launched: [(wake: WakeID, deadline: Instant)],
        ended: [WakeID]
    ) {
        self.device = device
        self.topic = topic
        self.isNew = isNew
        self.due = due
        self.ready = ready
        self.launched = launched
        self.ended = ended
    }
}

/// State that was derived from a device's records when they were last written, and additional stored values. The
/// counters include exactly this state, so a step corrects them by the differences.
struct DerivedState {
    /// The gauges of a device's requests and sessions, and the tasks that wait only for a slot.
    final class Tasks {
        let counted: TaskGauges
        let ready: [TaskRow.Ready]

        init(counted: TaskGauges, ready: [TaskRow.Ready]) {
            self.counted = counted
            self.ready = ready
        }
    }

    var isPending = false
    var isInFlight = false
    var isReady = false
    var held: Hold?
    /// The value of `DeviceRecord.readySince`; 0 if the device's push does not wait for a slot.
    var readySince: UInt32 = 0
    var rateWindowStart: UInt32 = 0
    var rateWindowCount: UInt16 = 0
    /// The next due time.
    var due: Instant?
    /// The state of tasks; nil for a device without requests, sessions and habits.
    var tasks: Tasks?
    /// `Parameters.digest`. Irrelevant for a device without a pending push and without tasks.
    var policy: UInt64 = 0
}

extension DerivedState {
    /// Returns true if a store that has `other` needs no write. A different policy digest alone does not require a
    /// write.
    func isSame(as other: DerivedState) -> Bool {
        self.isPending == other.isPending && self.isInFlight == other.isInFlight && self.held == other.held
            && self.rateWindowStart == other.rateWindowStart && self.rateWindowCount == other.rateWindowCount
            && self.due == other.due && self.isSameReady(as: other)
            && self.tasks?.counted == other.tasks?.counted
    }

    /// Returns true if the same launches wait for a slot since the same times.
    func isSameReady(as other: DerivedState) -> Bool {
        guard self.isReady == other.isReady, self.readySince == other.readySince else { return false }
        let (ready, others) = (self.tasks?.ready ?? [], other.tasks?.ready ?? [])
        return ready.count == others.count && zip(ready, others).allSatisfy { $0 == $1 }
    }
}

// MARK: - Stored

/// The stored form. Integers are little-endian, and sizes are in bytes. A version (1) and flags (1) come first; each
/// other field is present if its flag is set:
///
/// - the digest (8) and the due time (8);
/// - the hold (1), and the start of the push's wait for a slot (4);
/// - the window of the push rate (4) and its count (2);
/// - for tasks: the gauges (8 each), the number of tasks that wait for a slot (2), and for each of them the arrival and
///   the start of its wait (8 each).
///
/// Version 2 appends the gauge of tasks held by memory pressure. It is written only if that gauge is not zero, because
/// older versions cannot read it.
extension DerivedState {
    private static let version: UInt8 = 1
    private static let versionWithMemory: UInt8 = 2

    private var heldByMemory: Int64 { self.tasks?.counted.held[.memory] ?? 0 }

    private struct Flags: OptionSet {
        let rawValue: UInt8

        static let isPending = Flags(rawValue: 1 << 0)
        static let isInFlight = Flags(rawValue: 1 << 1)
        static let isReady = Flags(rawValue: 1 << 2)
        static let due = Flags(rawValue: 1 << 3)
        static let held = Flags(rawValue: 1 << 4)
        static let rate = Flags(rawValue: 1 << 5)
        static let tasks = Flags(rawValue: 1 << 6)
        static let policy = Flags(rawValue: 1 << 7)
    }

    func store(to buffer: inout ByteBuffer) {
        var flags: Flags = []
        if self.isPending { flags.insert(.isPending) }
        if self.isInFlight { flags.insert(.isInFlight) }
        if self.isReady { flags.insert(.isReady) }
        if self.due != nil { flags.insert(.due) }
        if self.held != nil { flags.insert(.held) }
        if self.rateWindowCount > 0 { flags.insert(.rate) }
        if self.tasks != nil { flags.insert(.tasks) }
        if self.isPending || self.tasks != nil { flags.insert(.policy) }
        buffer.append(self.heldByMemory == 0 ? Self.version : Self.versionWithMemory)
        buffer.append(flags.rawValue)
        if flags.contains(.policy) { buffer.appendLittleEndian(self.policy) }
        if let due = self.due { buffer.appendLittleEndian(due.milliseconds) }
        if let held = self.held { buffer.append(Hold.pushCodes.code(held)) }
        if self.isReady { buffer.appendLittleEndian(self.readySince) }
        if flags.contains(.rate) {
            buffer.appendLittleEndian(self.rateWindowStart)
            buffer.appendLittleEndian(self.rateWindowCount)
        }
        guard let tasks = self.tasks else { return }
        tasks.counted.store(to: &buffer)
        buffer.appendLittleEndian(UInt16(tasks.ready.count))
        for ready in tasks.ready {
            buffer.appendLittleEndian(ready.arrival)
            buffer.appendLittleEndian(ready.since.milliseconds)
        }
        if self.heldByMemory != 0 { buffer.appendLittleEndian(self.heldByMemory) }
    }

    /// Decodes the output of `store`; nil if it is malformed.
    init?(stored bytes: ByteView) {
        var reader = RecordReader(bytes)
        let version: UInt8 = reader.integer()
        guard version == Self.version || version == Self.versionWithMemory else { return nil }
        let flags = Flags(rawValue: reader.integer())
        self.isPending = flags.contains(.isPending)
        self.isInFlight = flags.contains(.isInFlight)
        self.isReady = flags.contains(.isReady)
        if flags.contains(.policy) { self.policy = reader.integer() }
        if flags.contains(.due) { self.due = Instant(milliseconds: reader.integer()) }
        if flags.contains(.held) {
            guard let held = Hold.pushCodes.element(code: reader.integer()) else { return nil }
            self.held = held
        }
        if self.isReady { self.readySince = reader.integer() }
        if flags.contains(.rate) {
            self.rateWindowStart = reader.integer()
            self.rateWindowCount = reader.integer()
        }
        if flags.contains(.tasks) {
            var counted = TaskGauges(&reader)
            let count: UInt16 = reader.integer()
            var ready: [TaskRow.Ready] = []
            for _ in 0..<count where reader.hasMore {
                ready.append((reader.integer(), Instant(milliseconds: reader.integer())))
            }
            guard ready.count == Int(count) else { return nil }
            if version == Self.versionWithMemory { counted.held[.memory] = reader.integer() }
            self.tasks = Tasks(counted: counted, ready: ready)
        }
        guard reader.isWhole else { return nil }
    }
}

extension TaskGauges {
    /// The holds whose gauges are stored in all versions. Pauses are counted per topic, not per device. The gauge for
    /// memory pressure is stored separately.
    private static let storedHolds = Hold.taskCodes.filter { $0 != .paused && $0 != .memory }

    fileprivate func store(to buffer: inout ByteBuffer) {
        for kind in TaskKind.allCases {
            buffer.appendLittleEndian(self.waiting[kind])
            buffer.appendLittleEndian(self.inFlight[kind])
        }
        for hold in Self.storedHolds { buffer.appendLittleEndian(self.held[hold]) }
        buffer.appendLittleEndian(self.transfersWaiting)
        buffer.appendLittleEndian(self.transfersInFlight)
        buffer.appendLittleEndian(Int64(self.bytes))
    }

    fileprivate init(_ reader: inout RecordReader) {
        for kind in TaskKind.allCases {
            self.waiting[kind] = reader.integer()
            self.inFlight[kind] = reader.integer()
        }
        for hold in Self.storedHolds { self.held[hold] = reader.integer() }
        self.transfersWaiting = reader.integer()
        self.transfersInFlight = reader.integer()
        self.bytes = Int(reader.integer(Int64.self))
    }
}
