package import Policy
package import Wire

/// One row of the device table.
///
/// Device records, up to millions, are the largest part of a gateway's memory. Rarely used fields are therefore
/// allocated on first use (`LazyMemory`), and the other fields are ordered to minimize padding.
@safe
package struct DeviceRecord {
    var state = DeviceState()
    /// The hold under which the counters include this device's pending push.
    var held: Hold?
    private var marks: Marks = .isRegistered
    var topic: TopicIndex
    /// The token of the device.
    package internal(set) var token: StoredDeviceToken
    /// The number of pushes counted in the current rate window.
    var rateWindowCount: UInt16 = 0
    /// The start of the current rate window, in seconds of policy time.
    var rateWindowStart: UInt32 = 0
    /// The time of the last registration, or of the removal if the device is removed.
    var registrationChangedAt: Instant
    /// The device's wakes; allocated at the first launch.
    private var wakes = LazyMemory<DeviceWakes>()
    /// The answers to recent pushes with a client-supplied apns-id; allocated at the first such push.
    var answeredPushes = LazyMemory<Ring<AnsweredPush>>()
    /// The neighbors in the topic's list of devices that wait for a slot (`ReadyQueues`). A device that was ever used
    /// is in a heap instead. The fields then contain its position in the heap and a marker.
    var previousReady = DeviceIndex.none
    var nextReady = DeviceIndex.none
    /// The time at which the device entered the topic's queue: the lower 32 bits of policy time in milliseconds.
    var readySince: UInt32 = 0

    /// Creates a registered device without pushes.
    package init(token: DeviceToken, topic: TopicIndex, registeredAt: Instant) {
        self.token = StoredDeviceToken(token)
        self.topic = topic
        self.registrationChangedAt = registeredAt
    }
}

/// State of a device's wakes outside of the policy's state.
private struct DeviceWakes {
    /// The wake in flight; undefined if there is none.
    var inFlight = WakeID(random: (0, 0))
    /// The last ended wakes.
    var ended = Ring<EndedWake>()
    /// The log of the pending push's wait; nil if the wait can be derived from the device's state.
    var wait: WaitLog?
}

extension DeviceRecord {
    /// Frees the memory that the record owns. Must be called before a record is dropped.
    func deallocate() {
        self.state.pending.flatMap { PushContent($0.handle) }?.deallocate()
        self.state.inFlight.flatMap { PushContent($0.push.handle) }?.deallocate()
        self.token.deallocate()
        self.wakes.deallocate()
        self.answeredPushes.deallocate()
    }
}

// MARK: - Wakes

extension DeviceRecord {
    /// The wake in flight; undefined if there is none. Copies of a record share this value.
    var wake: WakeID { self.wakes.value?.inFlight ?? WakeID(random: (0, 0)) }

    /// Notes that a wake with this id is in flight.
    mutating func launched(_ wake: WakeID) {
        self.wakes.change(from: DeviceWakes()) { $0.inFlight = wake }
    }

    /// The log of the pending push's wait; nil if the wait can be derived from the device's state.
    var wait: WaitLog? {
        get { self.wakes.value?.wait }
        set { self.wakes.change(from: DeviceWakes()) { $0.wait = newValue } }
    }

    /// The last ended wakes; nil if no wake was ever launched.
    var endedWakes: Ring<EndedWake>? { self.wakes.value?.ended }

    /// Remembers an ended wake.
    ///
    /// - Returns: the oldest wake, if it was dropped because the ring was full.
    mutating func ended(_ wake: EndedWake) -> EndedWake? {
        self.wakes.change(from: DeviceWakes()) { $0.ended.append(wake) }
    }

    /// The end of the last wake; `distantPast` if none is remembered.
    var lastEnd: Instant { self.endedWakes?.last { _ in true }?.at ?? .distantPast }

    /// Returns the remembered ended wake with this id, if there is one.
    func endedWake(_ id: WakeID) -> EndedWake? {
        self.wakes.value?.ended.last { $0.id == id }
    }

    /// Forgets and returns the oldest ended wake if it ended at or before `horizon`.
    mutating func forgetEndedWake(endedBy horizon: Instant) -> EndedWake? {
        guard let oldest = self.wakes.value?.ended.first, oldest.at <= horizon else { return nil }
        return self.wakes.change(from: DeviceWakes()) { $0.ended.popFirst() }
    }
}

// MARK: - Marks

extension DeviceRecord {
    /// Boolean properties in one byte. Separate properties would cost each device eight more bytes.
    private struct Marks: OptionSet {
        let rawValue: UInt8

        static let isPending = Marks(rawValue: 1 << 0)
        static let isInFlight = Marks(rawValue: 1 << 1)
        static let isRegistered = Marks(rawValue: 1 << 2)
        static let isReady = Marks(rawValue: 1 << 3)
        static let isChanged = Marks(rawValue: 1 << 4)
        static let hasTasks = Marks(rawValue: 1 << 5)
    }

    /// True if the counters include this device's pending push.
    var isPending: Bool {
        get { self.marks.contains(.isPending) }
        set { self.mark(.isPending, newValue) }
    }

    /// True if the counters include this device's push in flight.
    var isInFlight: Bool {
        get { self.marks.contains(.isInFlight) }
        set { self.mark(.isInFlight, newValue) }
    }

    var isRegistered: Bool {
        get { self.marks.contains(.isRegistered) }
        set { self.mark(.isRegistered, newValue) }
    }

    /// True if the device waits for a slot in its topic's queue.
    var isReady: Bool {
        get { self.marks.contains(.isReady) }
        set { self.mark(.isReady, newValue) }
    }

    /// True if the device is in the current step's list of changes.
    var isChanged: Bool {
        get { self.marks.contains(.isChanged) }
        set { self.mark(.isChanged, newValue) }
    }

    /// True if the device has a row for its requests, sessions and habits.
    var hasTasks: Bool {
        get { self.marks.contains(.hasTasks) }
        set { self.mark(.hasTasks, newValue) }
    }

    /// Notes that the device entered its topic's queue.
    mutating func becameReady(at moment: Instant) {
        self.isReady = true
        self.readySince = UInt32(truncatingIfNeeded: moment.milliseconds)
    }

    /// Returns the time for which the device has waited in its topic's queue, in milliseconds, modulo 2^32 (49 days).
    func readyMilliseconds(at now: Instant) -> Int64 {
        Int64(UInt32(truncatingIfNeeded: now.milliseconds) &- self.readySince)
    }

    private mutating func mark(_ mark: Marks, _ isSet: Bool) {
        if isSet { self.marks.insert(mark) } else { self.marks.remove(mark) }
    }
}

/// The stored form of a device. Integers are little-endian, and sizes are in bytes.
///
/// Flags (2), penalty (1), token count (1), token, topic number (4), `registrationChangedAt` (8). Then, each if
/// flagged: spacing, conditions, pending push, wake in flight, the wait of the pending push (`WaitLog`), ended wakes,
/// answered pushes. Enumerations are stored as explicit codes, which must not change within a version of the journal.
extension DeviceRecord {
    private struct Flags: OptionSet {
        let rawValue: UInt16

        static let isRegistered = Flags(rawValue: 1 << 0)
        static let spacing = Flags(rawValue: 1 << 1)
        static let conditions = Flags(rawValue: 1 << 2)
        static let pending = Flags(rawValue: 1 << 3)
        static let inFlight = Flags(rawValue: 1 << 4)
        static let spacingBefore = Flags(rawValue: 1 << 5)
        static let discardsRetry = Flags(rawValue: 1 << 6)
        static let endedWakes = Flags(rawValue: 1 << 7)
        /// True if the wake in flight carries a push.
        static let content = Flags(rawValue: 1 << 8)
        static let answeredPushes = Flags(rawValue: 1 << 9)
        /// True if the pending push, or a push coalesced into it, has a trace.
        static let pendingTrace = Flags(rawValue: 1 << 10)
        /// True if the push in flight, or a push coalesced into it, has a trace.
        static let inFlightTrace = Flags(rawValue: 1 << 11)
        static let wait = Flags(rawValue: 1 << 12)
        /// All defined flags.
        static let known = Flags(rawValue: 1 << 13 - 1)
        /// Flags that require a wake in flight.
        static let ofWake: Flags = [.spacingBefore, .discardsRetry, .content, .inFlightTrace]
    }

    /// Appends the stored form of the record.
    ///
    /// - `now`: the time; expired entries of ended wakes and answered pushes are left out.
    func store(to buffer: inout ByteBuffer, at now: Instant) {
        let state = self.state
        var flags: Flags = self.isRegistered ? .isRegistered : []
        if state.spacing != Spacing() { flags.insert(.spacing) }
        if state.conditions != Conditions() { flags.insert(.conditions) }
        if let pending = state.pending {
            flags.insert(.pending)
            if Self.hasTrace(pending) { flags.insert(.pendingTrace) }
        }
        if let inFlight = state.inFlight {
            flags.insert(.inFlight)
            if inFlight.spacingBefore != nil { flags.insert(.spacingBefore) }
            if inFlight.discardsRetry { flags.insert(.discardsRetry) }
            if inFlight.push.handle != .none { flags.insert(.content) }
            if Self.hasTrace(inFlight.push) { flags.insert(.inFlightTrace) }
        }
        let wakesAfter = now - WakeLedger.endedWakeMemory
        let ended = self.endedWakes?.count { $0.at > wakesAfter } ?? 0
        if ended > 0 { flags.insert(.endedWakes) }
        let pushesAfter = now - Self.answeredPushMemory
        let answered = self.answeredPushes.value?.count { $0.at > pushesAfter } ?? 0
        if answered > 0 { flags.insert(.answeredPushes) }
        let wait = state.pending == nil ? nil : self.wait
        if wait != nil { flags.insert(.wait) }

        buffer.appendLittleEndian(flags.rawValue)
        buffer.append(state.penalty)
        self.token.store(to: &buffer)
        buffer.appendLittleEndian(self.topic.rawValue)
        buffer.appendLittleEndian(self.registrationChangedAt.milliseconds)
        if flags.contains(.spacing) { Self.store(state.spacing, to: &buffer) }
        if flags.contains(.conditions) { Self.store(state.conditions, to: &buffer) }
        if let pending = state.pending { Self.store(pending, to: &buffer) }
        if let inFlight = state.inFlight {
            buffer.appendLittleEndian(self.wake.first)
            buffer.appendLittleEndian(self.wake.second)
            buffer.appendLittleEndian(inFlight.launchedAt.milliseconds)
            buffer.appendLittleEndian(inFlight.deadline.milliseconds)
            if let before = inFlight.spacingBefore { Self.store(before, to: &buffer) }
            Self.store(inFlight.push, to: &buffer)
        }
        wait?.store(to: &buffer)
        if ended > 0, let wakes = self.endedWakes {
            buffer.append(UInt8(ended))
            wakes.forEach(where: { $0.at > wakesAfter }, { Self.store($0, to: &buffer) })
        }
        if answered > 0, let pushes = self.answeredPushes.value {
            buffer.append(UInt8(answered))
            pushes.forEach(where: { $0.at > pushesAfter }, { $0.store(to: &buffer) })
        }
    }

    /// Decodes the output of `store` and allocates memory for its pushes; nil if it is malformed or contains values
    /// that no device can reach and the policy cannot handle.
    init?(stored bytes: ByteView) {
        var reader = RecordReader(bytes)
        let flags = Flags(rawValue: reader.integer())
        guard flags.isSubset(of: .known), flags.contains(.inFlight) || flags.isDisjoint(with: .ofWake),
            flags.contains(.pending) || flags.isDisjoint(with: [.pendingTrace, .wait])
        else { return nil }
        let penalty = reader.integer(0...UInt8(Parameters.penaltyMax))
        guard let token = DeviceToken(bytes: reader.view(Int(reader.integer(UInt8.self)))) else { return nil }
        let topic = TopicIndex(rawValue: reader.integer())
        let registrationChangedAt = reader.moment()
        let spacing = flags.contains(.spacing) ? Self.spacing(&reader) : Spacing()
        guard let conditions = flags.contains(.conditions) ? Self.conditions(&reader) : Conditions() else { return nil }
        var pushes: [PendingPush] = []
        defer { for push in pushes { PushContent(push.handle)?.deallocate() } }
        if flags.contains(.pending) {
            let hasTrace = flags.contains(.pendingTrace)
            guard let push = Self.push(&reader, attemptsMin: 0, hasContent: true, hasTrace: hasTrace) else {
                return nil
            }
            pushes.append(push)
        }
        let pending = pushes.first
        var wake = WakeID(random: (0, 0))
        var inFlight: WakeInFlight?
        if flags.contains(.inFlight) {
            wake = WakeID(random: (reader.integer(), reader.integer()))
            let launchedAt = reader.moment()
            let deadline = reader.moment()
            let before = flags.contains(.spacingBefore) ? Self.spacing(&reader) : nil
            let (hasContent, hasTrace) = (flags.contains(.content), flags.contains(.inFlightTrace))
            guard let push = Self.push(&reader, attemptsMin: 1, hasContent: hasContent, hasTrace: hasTrace) else {
                return nil
            }
            pushes.append(push)
            inFlight = WakeInFlight(
                push: push,
                launchedAt: launchedAt,
                deadline: deadline,
                spacingBefore: before,
                discardsRetry: flags.contains(.discardsRetry)
            )
        }
        let wait = flags.contains(.wait) ? WaitLog(&reader) : nil
        let endedWakes = flags.contains(.endedWakes) ? Self.endedWakes(&reader) : []
        let answeredPushes = flags.contains(.answeredPushes) ? Self.answeredPushes(&reader) : []
        guard reader.isWhole, (wait != nil) == flags.contains(.wait) else { return nil }
        self.init(token: token, topic: topic, registeredAt: registrationChangedAt)
        self.state = DeviceState(
            pending: pending,
            inFlight: inFlight,
            spacing: spacing,
            conditions: conditions,
            penalty: penalty
        )
        if inFlight != nil { self.launched(wake) }
        if wait != nil { self.wait = wait }
        for wake in endedWakes { _ = self.ended(wake) }
        for answered in answeredPushes { _ = self.answeredPushes.change(from: Ring()) { $0.append(answered) } }
        self.isRegistered = flags.contains(.isRegistered)
        pushes.removeAll()
    }
}

// MARK: - Parts

extension DeviceRecord {
    /// Stores three instants (8 bytes each) and the window's count (4).
    static func store(_ spacing: Spacing, to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(spacing.lastLaunch.milliseconds)
        buffer.appendLittleEndian(spacing.immediateTAT.milliseconds)
        buffer.appendLittleEndian(spacing.windowStart.milliseconds)
        buffer.appendLittleEndian(spacing.windowCount)
    }

    static func spacing(_ reader: inout RecordReader) -> Spacing {
        var spacing = Spacing()
        spacing.lastLaunch = Instant(milliseconds: reader.integer())
        spacing.immediateTAT = Instant(milliseconds: reader.integer())
        spacing.windowStart = Instant(milliseconds: reader.integer())
        spacing.windowCount = reader.integer(0...UInt32(Parameters.countMax))
        return spacing
    }

    /// Stores the battery level (8 bytes), app state, background refresh and thermal state (1 each). A last byte has
    /// three switches and, in higher bits, the memory pressure. Older versions accept only normal memory pressure.
    private static func store(_ conditions: Conditions, to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(conditions.batteryLevel.bitPattern)
        buffer.append(conditions.appState.storedCode)
        buffer.append(conditions.backgroundRefresh.storedCode)
        buffer.append(conditions.thermalState.storedCode)
        let switches: UInt8 =
            (conditions.charging ? 1 : 0) | (conditions.lowPowerMode ? 2 : 0) | (conditions.network ? 4 : 0)
        buffer.append(switches | conditions.memoryPressure.storedCode << 3)
    }

    private static func conditions(_ reader: inout RecordReader) -> Conditions? {
        var conditions = Conditions()
        conditions.batteryLevel = Double(bitPattern: reader.integer())
        guard 0...1 ~= conditions.batteryLevel,
            let appState = Conditions.AppState(storedCode: reader.integer()),
            let backgroundRefresh = Conditions.BackgroundRefresh(storedCode: reader.integer()),
            let thermalState = Conditions.ThermalState(storedCode: reader.integer())
        else { return nil }
        let switches: UInt8 = reader.integer()
        guard let memoryPressure = Conditions.MemoryPressure(storedCode: switches >> 3) else { return nil }
        conditions.appState = appState
        conditions.backgroundRefresh = backgroundRefresh
        conditions.thermalState = thermalState
        conditions.memoryPressure = memoryPressure
        conditions.charging = switches & 1 != 0
        conditions.lowPowerMode = switches & 2 != 0
        conditions.network = switches & 4 != 0
        return conditions
    }

    /// Stores an ended wake: id (16 bytes), outcome (1) and end (8). The list starts with its count (1).
    private static func store(_ wake: EndedWake, to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(wake.id.first)
        buffer.appendLittleEndian(wake.id.second)
        buffer.append(wake.outcome.storedCode)
        buffer.appendLittleEndian(wake.at.milliseconds)
    }

    private static func endedWakes(_ reader: inout RecordReader) -> [EndedWake] {
        var wakes: [EndedWake] = []
        for _ in 0..<min(Int(reader.integer(UInt8.self)), Ring<EndedWake>.capacity) {
            let id = WakeID(random: (reader.integer(), reader.integer()))
            guard let outcome = LaunchOutcome(storedCode: reader.integer()) else { break }
            wakes.append(EndedWake(id: id, outcome: outcome, at: reader.moment()))
        }
        return wakes
    }

    private static func answeredPushes(_ reader: inout RecordReader) -> [AnsweredPush] {
        var pushes: [AnsweredPush] = []
        for _ in 0..<min(Int(reader.integer(UInt8.self)), Ring<AnsweredPush>.capacity) {
            guard let push = AnsweredPush(&reader) else { break }
            pushes.append(push)
        }
        return pushes
    }

    /// Stores expiry, receivedAt, firstReceivedAt (8 bytes each), coalesced, attempts (4 each), priority (1). With
    /// content, apns-id (16 and 4), collapse id (length 1, bytes) and payload (length 4, bytes) follow; with a trace,
    /// its length (2) and bytes.
    private static func store(_ push: PendingPush, to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(push.expiry.milliseconds)
        buffer.appendLittleEndian(push.receivedAt.milliseconds)
        buffer.appendLittleEndian(push.firstReceivedAt.milliseconds)
        buffer.appendLittleEndian(push.coalesced)
        buffer.appendLittleEndian(push.attempts)
        buffer.append(push.priority.rawValue)
        guard let content = PushContent(push.handle) else { return }
        buffer.appendLittleEndian(content.apnsID.first)
        buffer.appendLittleEndian(content.apnsID.second)
        buffer.appendLittleEndian(content.apnsID.upperCase)
        buffer.append(UInt8(content.collapseID.count))
        buffer.append(content.collapseID)
        buffer.appendLittleEndian(UInt32(content.payload.count))
        buffer.append(content.payload)
        let trace = content.trace
        guard !trace.isEmpty else { return }
        buffer.appendLittleEndian(UInt16(trace.count))
        buffer.append(trace)
    }

    private static func hasTrace(_ push: PendingPush) -> Bool {
        PushContent(push.handle).map { !$0.trace.isEmpty } ?? false
    }

    private static func push(
        _ reader: inout RecordReader,
        attemptsMin: UInt32,
        hasContent: Bool,
        hasTrace: Bool
    ) -> PendingPush? {
        let expiry = reader.distantMoment()
        let receivedAt = reader.moment()
        let firstReceivedAt = reader.moment()
        let coalesced: UInt32 = reader.integer()
        let attempts = reader.integer(attemptsMin...UInt32(Parameters.countMax))
        guard let priority = Priority(rawValue: reader.integer()) else { return nil }
        var handle = PushHandle.none
        if hasContent {
            let apnsID = APNsID(first: reader.integer(), second: reader.integer(), upperCase: reader.integer())
            let collapseID = reader.view(Int(reader.integer(UInt8.self)))
            let payload = reader.view(Int(reader.integer(UInt32.self)))
            let trace = hasTrace ? reader.view(Int(reader.integer(UInt16.self))) : ByteView()
            guard !hasTrace || PushTrace(trace) != nil else { return nil }
            handle = PushContent(apnsID: apnsID, collapseID: collapseID, payload: payload, trace: trace).handle
        }
        return PendingPush(
            handle: handle,
            expiry: expiry,
            receivedAt: receivedAt,
            firstReceivedAt: firstReceivedAt,
            coalesced: coalesced,
            attempts: attempts,
            priority: priority
        )
    }
}

/// The answer to a push with a client-supplied apns-id, for a client that received no answer and repeats the push.
struct AnsweredPush {
    let apnsID: APNsID
    /// The time at which the push was accepted.
    let at: Instant
    let disposition: Disposition
    let held: Hold?
    let eligibleAt: Instant?

    init(_ apnsID: APNsID, _ answer: PushAnswer, at moment: Instant) {
        self.apnsID = apnsID
        self.at = moment
        self.disposition = answer.disposition
        self.held = answer.held
        self.eligibleAt = answer.eligibleAt
    }

    /// The answer to a repetition of the push, which launches no wake.
    var answer: PushAnswer {
        PushAnswer(disposition: self.disposition, eligibleAt: self.eligibleAt, held: self.held, wake: nil)
    }
}

// MARK: - Stored

extension AnsweredPush {
    /// The code for no hold; the codes of holds start at 1.
    private static let noHold: UInt8 = 0
    /// The encoding of a nil `eligibleAt`; no push is eligible at this instant.
    private static let noMoment = Instant.distantFuture

    /// Stores the apns-id (16 and 4 bytes), disposition and hold (1 each), `at` and `eligibleAt` (8 each).
    func store(to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(self.apnsID.first)
        buffer.appendLittleEndian(self.apnsID.second)
        buffer.appendLittleEndian(self.apnsID.upperCase)
        buffer.append(self.disposition.storedCode)
        buffer.append(self.held.map { Hold.pushCodes.code($0) } ?? Self.noHold)
        buffer.appendLittleEndian(self.at.milliseconds)
        buffer.appendLittleEndian((self.eligibleAt ?? Self.noMoment).milliseconds)
    }

    init?(_ reader: inout RecordReader) {
        self.apnsID = APNsID(first: reader.integer(), second: reader.integer(), upperCase: reader.integer())
        guard let disposition = Disposition(storedCode: reader.integer()) else { return nil }
        self.disposition = disposition
        let held: UInt8 = reader.integer()
        self.held = Hold.pushCodes.element(code: held)
        guard self.held != nil || held == Self.noHold else { return nil }
        self.at = reader.moment()
        let eligibleAt = Instant(milliseconds: reader.integer())
        self.eligibleAt = eligibleAt == Self.noMoment ? nil : eligibleAt
    }
}

// MARK: - Remembered

extension DeviceRecord {
    /// The time for which answers are remembered, in milliseconds.
    static let answeredPushMemory: Int64 = 600_000

    /// Returns the earlier answer to this push, if it has a client-supplied apns-id and may be a repetition.
    func answerBefore(_ push: Push, at now: Instant) -> PushAnswer? {
        guard push.hasClientID, let answered = self.answeredPushes.value else { return nil }
        let horizon = now - Self.answeredPushMemory
        return answered.last { $0.apnsID == push.apnsID && $0.at > horizon }?.answer
    }

    /// Forgets the answers to all pushes.
    mutating func forgetAnswers() {
        guard self.answeredPushes.value != nil else { return }
        self.answeredPushes.change(from: Ring()) { $0 = Ring() }
    }

    /// Remembers the answer to a push with a client-supplied apns-id.
    mutating func noteAnswer(_ answer: PushAnswer, _ push: Push, at now: Instant) {
        let answered = AnsweredPush(push.apnsID, answer, at: now)
        _ = self.answeredPushes.change(from: Ring()) { $0.append(answered) }
    }
}

/// A value that is allocated at its first change. The owner must call `deallocate`.
@safe
struct LazyMemory<Value> {
    private var pointer: UnsafeMutablePointer<Value>?

    init() {
        unsafe self.pointer = nil
    }

    /// The value; nil before its first change.
    var value: Value? {
        unsafe self.pointer?.pointee
    }

    /// Changes the value. Its value before the first change is `initial`.
    mutating func change<Result>(from initial: @autoclosure () -> Value, _ body: (inout Value) -> Result) -> Result {
        if let pointer = unsafe self.pointer { return unsafe body(&pointer.pointee) }
        let pointer = UnsafeMutablePointer<Value>.allocate(capacity: 1)
        unsafe pointer.initialize(to: initial())
        unsafe self.pointer = pointer
        return unsafe body(&pointer.pointee)
    }

    func deallocate() {
        unsafe self.pointer?.deinitialize(count: 1)
        unsafe self.pointer?.deallocate()
    }
}
