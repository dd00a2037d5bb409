import Policy
import Wire

/// How a device is kept: flags, then the parts they name, all integers little-endian.
///
/// flags (2 bytes), penalty (1), token count (1), token, topic number (4), `registrationChangedAt` (8); then, by flag,
/// spacing, conditions, pending push, wake in flight, ended wakes, answered pushes. The codes of enumerations are spelt
/// out here: they must stay what they are as long as the journal's version does.
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
        /// The wake in flight carries a push.
        static let content = Flags(rawValue: 1 << 8)
        static let answeredPushes = Flags(rawValue: 1 << 9)
        /// The pending push belongs to a trace, or stands for one that does.
        static let pendingTrace = Flags(rawValue: 1 << 10)
        /// The push in flight belongs to a trace, or stands for one that does.
        static let inFlightTrace = Flags(rawValue: 1 << 11)
        /// Every flag that has a meaning.
        static let known = Flags(rawValue: 1 << 12 - 1)
        /// Flags that say something of a wake in flight.
        static let ofWake: Flags = [.spacingBefore, .discardsRetry, .content, .inFlightTrace]
    }

    /// Appends the record as it is kept.
    ///
    /// - Parameter now: ended wakes and answered pushes that are remembered no more are left out.
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
        if ended > 0, let wakes = self.endedWakes {
            buffer.append(UInt8(ended))
            wakes.forEach(where: { $0.at > wakesAfter }, { Self.store($0, to: &buffer) })
        }
        if answered > 0, let pushes = self.answeredPushes.value {
            buffer.append(UInt8(answered))
            pushes.forEach(where: { $0.at > pushesAfter }, { $0.store(to: &buffer) })
        }
    }

    /// The record that `store` wrote, with memory of its own for its pushes; nil when it is none, or holds what no
    /// device can come to: the policy counts on that.
    init?(stored bytes: ByteView) {
        var reader = RecordReader(bytes)
        let flags = Flags(rawValue: reader.integer())
        guard flags.isSubset(of: .known), flags.contains(.inFlight) || flags.isDisjoint(with: .ofWake) else {
            return nil
        }
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
        let endedWakes = flags.contains(.endedWakes) ? Self.endedWakes(&reader) : []
        let answeredPushes = flags.contains(.answeredPushes) ? Self.answeredPushes(&reader) : []
        guard reader.isWhole else { return nil }
        self.init(token: token, topic: topic, registeredAt: registrationChangedAt)
        self.state = DeviceState(
            pending: pending,
            inFlight: inFlight,
            spacing: spacing,
            conditions: conditions,
            penalty: penalty
        )
        if inFlight != nil { self.launched(wake) }
        for wake in endedWakes { _ = self.ended(wake) }
        for answered in answeredPushes { _ = self.answeredPushes.change(from: Ring()) { $0.append(answered) } }
        self.isRegistered = flags.contains(.isRegistered)
        pushes.removeAll()
    }
}

// MARK: - Parts

extension DeviceRecord {
    /// Three instants (8 bytes each) and the window's count (4).
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

    /// Battery level (8 bytes), app state, background refresh, thermal state, and three switches (1 each).
    private static func store(_ conditions: Conditions, to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(conditions.batteryLevel.bitPattern)
        buffer.append(conditions.appState.storedCode)
        buffer.append(conditions.backgroundRefresh.storedCode)
        buffer.append(conditions.thermalState.storedCode)
        buffer.append((conditions.charging ? 1 : 0) | (conditions.lowPowerMode ? 2 : 0) | (conditions.network ? 4 : 0))
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
        guard switches < 8 else { return nil }
        conditions.appState = appState
        conditions.backgroundRefresh = backgroundRefresh
        conditions.thermalState = thermalState
        conditions.charging = switches & 1 != 0
        conditions.lowPowerMode = switches & 2 != 0
        conditions.network = switches & 4 != 0
        return conditions
    }

    /// An ended wake: id (16 bytes), outcome (1) and end (8); before the first of them there is their number (1).
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

    /// Expiry, receivedAt, firstReceivedAt (8 bytes each), coalesced, attempts (4 each), priority (1), and with a
    /// content apns-id (16 and 4), collapse id (1 and its bytes), payload (4 and its bytes); with a trace its bytes
    /// behind their number (2).
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
