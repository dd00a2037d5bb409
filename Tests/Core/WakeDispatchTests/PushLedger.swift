import Engine
import Policy
import Wire

/// Tracks the outcome of every accepted push per device, from the outside.
///
/// It uses the answers to pushes, the delivered wakes and their outcomes. It learns pending pushes from snapshots and
/// computes the reasons of discards.
struct PushLedger {
    enum End: Hashable {
        case completed, coalesced
        case discarded(DiscardReason)
    }

    struct Push {
        let id: APNsID
        var expiry: Instant
        var attempts = 0
    }

    private struct Device {
        var pending: Push?
        var inFlight: Push?
        /// True if the device was removed while its wake was in flight.
        var discardsRetry = false
    }

    private var devices: [DeviceToken: Device] = [:]
    private(set) var ends: [APNsID: End] = [:]
    private(set) var accepted = 0
    private(set) var faults: [String] = []

    func count(_ end: End) -> Int64 { Int64(self.ends.values.count { $0 == end }) }

    private mutating func end(_ push: Push, _ end: End) {
        if let before = self.ends.updateValue(end, forKey: push.id) {
            self.faults.append("push \(push.id) ended as \(before) and as \(end)")
        }
    }

    mutating func accepted(
        _ id: APNsID,
        expiry: Instant,
        _ token: DeviceToken,
        _ disposition: Disposition,
        deliveredAtOnce: Bool
    ) {
        guard disposition != .noWake else { return }
        self.accepted += 1
        var push = Push(id: id, expiry: expiry)
        guard disposition != .discarded else { return self.end(push, .discarded(.expired)) }
        let older = self.devices[token]?.pending
        if let older {
            push.expiry = max(push.expiry, older.expiry)
            self.end(older, .coalesced)
        }
        if disposition == .coalesced, older == nil { self.faults.append("push \(id) was coalesced with nothing") }
        if disposition == .scheduled, older != nil { self.faults.append("push \(id) displaced another silently") }
        if (disposition == .launched) != deliveredAtOnce { self.faults.append("push \(id) is \(disposition), but") }
        self.devices[token, default: Device()].pending = push
    }

    mutating func launched(_ id: APNsID?, _ token: DeviceToken, attempt: UInt32) {
        var push = self.devices[token]?.pending
        if push?.id != id { self.faults.append("a wake has a push that was not pending") }
        push?.attempts += 1
        if let push, push.attempts != Int(attempt) { self.faults.append("push \(push.id) says attempt \(attempt)") }
        self.devices[token]?.pending = nil
        self.devices[token, default: Device()].inFlight = push
        self.devices[token]?.discardsRetry = false
    }

    /// - Parameter takingBackAttempt: true if the gateway restarted. The launch does not count then.
    mutating func ended(
        _ token: DeviceToken,
        _ outcome: WakeOutcome,
        at now: Instant,
        _ parameters: Parameters,
        takingBackAttempt: Bool = false
    ) {
        guard var device = self.devices[token], var push = device.inFlight else { return }
        if takingBackAttempt { push.attempts -= 1 }
        device.inFlight = nil
        defer { self.devices[token] = device }
        switch outcome {
        case .newData, .noData: return self.end(push, .completed)
        case .failed, .expired, .lost: break
        }
        if device.discardsRetry {
            self.end(push, .discarded(.unregistered))
        } else if var newer = device.pending {
            newer.expiry = max(newer.expiry, push.expiry)
            device.pending = newer
            self.end(push, .coalesced)
        } else if push.attempts >= Int(parameters.maxAttempts) {
            self.end(push, .discarded(.exhausted))
        } else if push.expiry <= now {
            self.end(push, .discarded(.expired))
        } else {
            push.expiry = max(push.expiry, now)
            device.pending = push
        }
    }

    /// Expires the pending push if it is due.
    mutating func expire(_ token: DeviceToken, at now: Instant) {
        guard let push = self.devices[token]?.pending, push.expiry <= now else { return }
        self.end(push, .discarded(.expired))
        self.devices[token]?.pending = nil
    }

    mutating func discarded(_ token: DeviceToken, _ reason: DiscardReason) {
        if reason == .unregistered { self.devices[token]?.discardsRetry = true }
        guard let push = self.devices[token]?.pending else { return }
        self.end(push, .discarded(reason))
        self.devices[token]?.pending = nil
    }

    /// Compares with a snapshot.
    mutating func compare(_ token: DeviceToken, pending: APNsID?, inFlight: APNsID?) {
        let device = self.devices[token]
        if device?.pending?.id != pending { self.faults.append("pending should be \(device?.pending?.id as Any)") }
        if device?.inFlight?.id != inFlight { self.faults.append("in flight should be \(device?.inFlight?.id as Any)") }
    }

    /// Compares with the counters of the gateway.
    mutating func compare(_ counters: ActivityCounters) {
        var counts: [(String, Int64, Int64)] = [
            ("accepted", Int64(self.accepted), counters.accepted),
            ("completed", self.count(.completed), counters.completed),
            ("coalesced", self.count(.coalesced), counters.coalesced),
            ("pending", Int64(self.devices.values.count { $0.pending != nil }), counters.pending),
            ("inFlight", Int64(self.devices.values.count { $0.inFlight != nil }), counters.inFlight),
        ]
        for reason in DiscardReason.ofPushes {
            counts.append((reason.rawValue, self.count(.discarded(reason)), counters.discarded[reason]))
        }
        for (name, mine, theirs) in counts where mine != theirs {
            self.faults.append("\(name) is \(theirs), and should be \(mine)")
        }
    }
}

/// A push with a client-supplied apns-id.
struct SentPush {
    let number: UInt64
    /// The answer to a repetition: that to the push, without a wake.
    private(set) var answer: PushAnswer
    let at: Instant

    init(number: UInt64, _ answer: PushAnswer, at moment: Instant) {
        self.number = number
        self.answer = answer
        self.answer.wake = nil
        self.at = moment
    }
}

/// The state of a device that must survive a restart, and the end of a step with a shared store.
struct FrozenDevice: Hashable {
    private let topic: String
    private let isRegistered: Bool
    private let registrationChangedAt: Instant
    private let state: DeviceState
    private let wake: WakeID?
    private let pendingID: APNsID?
    private let inFlightID: APNsID?
    private let held: [Hold]
    private let usage: Usage
    private let tasks: [FrozenTask]

    init(_ snapshot: DeviceSnapshot) {
        self.topic = snapshot.topic
        self.isRegistered = snapshot.isRegistered
        self.registrationChangedAt = snapshot.registrationChangedAt
        // The address of a push's content differs between processes; its apns-id identifies it.
        var pending = snapshot.state.pending
        if pending?.handle != PushHandle.none { pending?.handle = PushHandle(rawValue: 1) }
        var inFlight = snapshot.state.inFlight
        if let handle = inFlight?.push.handle, handle != .none { inFlight?.push.handle = PushHandle(rawValue: 1) }
        self.state = DeviceState(
            pending: pending,
            inFlight: inFlight,
            spacing: snapshot.state.spacing,
            conditions: snapshot.state.conditions,
            penalty: snapshot.state.penalty
        )
        self.wake = snapshot.wake
        self.pendingID = snapshot.pendingID
        self.inFlightID = snapshot.inFlightID
        self.held = snapshot.held
        self.usage = snapshot.usage
        self.tasks = snapshot.tasks.map { FrozenTask($0) }
    }
}

/// A request, or the finished transfers of a session, for the comparison of devices.
struct FrozenTask: Hashable {
    private let name: String
    private let task: BackgroundTask
    private let details: TaskDetails
    private let state: TaskSnapshot.State

    init(_ snapshot: TaskSnapshot) {
        self.name = snapshot.name
        // The number of a name differs between processes.
        var task = snapshot.task
        task.name = TaskName(rawValue: 0)
        self.task = task
        self.details = snapshot.details
        self.state = snapshot.state
    }
}
