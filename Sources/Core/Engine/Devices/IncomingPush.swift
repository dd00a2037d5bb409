package import Policy
package import Wire

/// A push that passed every check that needs no state.
package struct IncomingPush {
    package let apnsID: APNsID
    /// Whether the sender chose the apns-id, and may repeat the push with it: the repetition is answered as before, and
    /// not accepted again.
    package let isNamedByClient: Bool
    package let priority: Priority
    package let expiration: ArrivingPush.Expiration
    /// Empty when there is none; valid during the call.
    package let collapseID: ByteView
    /// Valid during the call.
    package let payload: ByteView
    /// Whether `aps.content-available` is 1.
    package let wakes: Bool
    /// The trace it belongs to, as `PushTrace` keeps it; empty when there is none, valid during the call.
    package let trace: ByteView

    package init(
        apnsID: APNsID,
        isNamedByClient: Bool,
        priority: Priority,
        expiration: ArrivingPush.Expiration,
        collapseID: ByteView,
        payload: ByteView,
        wakes: Bool,
        trace: ByteView = ByteView()
    ) {
        self.apnsID = apnsID
        self.isNamedByClient = isNamedByClient
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
        self.payload = payload
        self.wakes = wakes
        self.trace = trace
    }
}

/// What is answered to an accepted push.
package struct PushAnswer: Hashable, Sendable {
    package let disposition: Disposition
    /// When the push will be eligible, for `scheduled` and `coalesced` while nothing holds it.
    package let eligibleAt: Instant?
    /// The first hold that applies, for `scheduled` and `coalesced`.
    package let held: HoldCode?
    /// The wake that the push launched.
    package let wake: WakeID?
}

extension PushAnswer {
    /// What is answered to a push that did `action`, after which its device is in `state`; it names no wake.
    ///
    /// - `isLaneFree`: nothing of the short lane is in flight.
    /// - `isPaused`: its topic is.
    init(
        _ action: PushReceivedAction,
        _ state: DeviceState,
        isLaneFree: Bool,
        isPaused: Bool,
        _ now: Instant,
        _ parameters: Parameters
    ) {
        switch action {
        case .launched: self.init(disposition: .launched, eligibleAt: nil, held: nil, wake: nil)
        case .discarded: self.init(disposition: .discarded, eligibleAt: nil, held: nil, wake: nil)
        case .waits(let absorbed):
            guard let pending = state.pending else { preconditionFailure("a push that waits is pending") }
            let eligibleAt = state.eligibleAt(pending.priority, parameters)
            var held = state.hold(pending.priority, parameters).map { HoldCode($0) }
            if held == nil, isLaneFree, eligibleAt <= now { held = .worker }
            if isPaused { held = .paused }
            self.init(
                disposition: absorbed == nil ? .scheduled : .coalesced,
                eligibleAt: held == nil ? max(eligibleAt, now) : nil,
                held: held,
                wake: nil
            )
        }
    }
}

/// What the provider of an accepted push is told of it.
package enum Disposition: UInt8, Sendable, CaseIterable {
    case launched, scheduled, coalesced, discarded, noWake

    package var name: StaticString {
        switch self {
        case .launched: "launched"
        case .scheduled: "scheduled"
        case .coalesced: "coalesced"
        case .discarded: "discarded"
        case .noWake: "no-wake"
        }
    }
}
