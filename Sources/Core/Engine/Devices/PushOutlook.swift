package import Policy
import Wire

/// What becomes of a push of priority 5 that comes now: what a dry run of one is answered, and besides everything that
/// keeps it back.
package struct PushOutlook: Hashable, Sendable {
    /// Every hold by the device's conditions and its topic, the deciding one first.
    package let holds: [Hold]
    /// The first moment at which interval, allowance and budget allow its launch; may lie in the past.
    package let eligibleAt: Instant
    /// Whether it waits for what runs in its lane.
    package let laneIsFull: Bool
    package let takers: Takers
    private let now: Instant

    fileprivate init(_ device: DeviceSnapshot, _ priority: Priority, at now: Instant) {
        let (state, parameters) = (device.state, device.parameters)
        self.holds =
            (device.isTopicPaused ? [.paused] : [])
            + Hold.ofPushes.filter {
                state.conditions.holds($0, priority, criticalBattery: parameters.criticalBattery)
            }
        self.eligibleAt = state.eligibleAt(priority, parameters)
        self.laneIsFull =
            state.inFlight != nil
            || device.tasks.contains { task in
                if case .running = task.state { task.task.kind.lane == .short } else { false }
            }
        self.takers = device.pushTakers
        self.now = now
    }

    /// Whether a hold, the missing slot included, keeps it back, or a time or its lane.
    package enum Verdict: String, Sendable {
        case ready, waiting, held, inFlight
    }

    package var verdict: Verdict {
        if !self.holds.isEmpty { return .held }
        if self.laneIsFull { return .inFlight }
        if self.eligibleAt > self.now { return .waiting }
        return self.takers == .free ? .ready : .held
    }
}

extension DeviceSnapshot {
    /// What becomes of a push of priority 5 that comes at `now`, the moment of the snapshot.
    package func outlook(at now: Instant) -> PushOutlook {
        PushOutlook(self, max(.considerate, self.state.pending?.priority ?? .passive), at: now)
    }
}
