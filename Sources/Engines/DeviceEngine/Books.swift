package import LaunchPolicy

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
    /// Wakes launched, empty ones included.
    package var launched: Int64 = 0
    /// Wakes that ended, by outcome.
    package var results = PerCase<WakeOutcome>()
    /// Registered devices.
    package var registered: Int64 = 0
    /// Devices with a pending push that is held, by the first hold that applies.
    package var held = PerCase<HoldCode>()

    package init() {}

    /// What `accepted` must be equal to.
    package var accountedFor: Int64 {
        self.completed + self.coalesced + self.discarded.sum + self.pending + self.inFlight
    }

    package static func += (left: inout Books, right: Books) {
        left.accepted &+= right.accepted
        left.noWake &+= right.noWake
        left.completed &+= right.completed
        left.coalesced &+= right.coalesced
        left.discarded += right.discarded
        left.pending &+= right.pending
        left.inFlight &+= right.inFlight
        left.launched &+= right.launched
        left.results += right.results
        left.registered &+= right.registered
        left.held += right.held
    }
}

/// A case that `PerCase` counts: its place among at most eight.
package protocol CountedCase: CaseIterable, Hashable, Sendable where AllCases == [Self] {
    var place: Int { get }
}

/// One count for each case of an enumeration.
package struct PerCase<Case: CountedCase>: Hashable, Sendable {
    private var counts = SIMD8<Int64>(repeating: 0)

    package init() {}

    package subscript(_ key: Case) -> Int64 {
        get { self.counts[key.place] }
        set { self.counts[key.place] = newValue }
    }

    package var sum: Int64 { self.counts.wrappedSum() }

    package static func += (left: inout Self, right: Self) {
        left.counts &+= right.counts
    }
}

extension HoldCode: CountedCase {
    package var place: Int { Int(self.rawValue) }
}

extension DiscardReason: CountedCase {
    package var place: Int {
        switch self {
        case .expired: 0
        case .exhausted: 1
        case .forceQuit: 2
        case .unregistered: 3
        }
    }
}

extension WakeOutcome: CountedCase {
    package var place: Int {
        switch self {
        case .newData: 0
        case .noData: 1
        case .failed: 2
        case .expired: 3
        case .lost: 4
        }
    }
}
