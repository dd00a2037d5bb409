import Engine
import Policy
import Wire

/// A device as a restart must bring it back, to be compared.
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

    /// - Parameter hasProgress: how far continued tasks have come counts.
    init(_ snapshot: DeviceSnapshot, hasProgress: Bool = true) {
        self.topic = snapshot.topic
        self.isRegistered = snapshot.isRegistered
        self.registrationChangedAt = snapshot.registrationChangedAt
        // Where a push's content lies differs from process to process; its apns-id stands for it.
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
        self.tasks = snapshot.tasks.map { FrozenTask($0, hasProgress: hasProgress) }
    }
}
