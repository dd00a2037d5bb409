import Engine
import Policy
import WakeGateTestKit
import Wire

/// All that the simulation itself knows of what happened; a restart goes back to what it was at a commit.
struct SimulationModels {
    var checker = WakeChecker()
    var ledger = PushLedger()
    var spacing = SpacingChecker()
    var tasks = TaskModels()
    var isActive: Set<DeviceToken> = []
    var removed: Set<DeviceToken> = []
    var launched: Int64 = 0
    var results = PerCase<WakeOutcome>()
    /// The wakes of each device that ended last, as many as are remembered, the newest last.
    private(set) var endedWakes: [DeviceToken: [WakeID]] = [:]

    /// The last pushes of each device whose senders named them, as many as are remembered, the newest last.
    private(set) var sentPushes: [DeviceToken: [SentPush]] = [:]

    mutating func remember(_ push: SentPush, of token: DeviceToken) {
        self.sentPushes[token] = Array(((self.sentPushes[token] ?? []) + [push]).suffix(4))
    }

    /// A new registration forgets the names of earlier pushes.
    mutating func forgetPushes(of token: DeviceToken) { self.sentPushes[token] = nil }

    mutating func remember(_ wake: WakeID, of token: DeviceToken) {
        var ended = self.endedWakes[token] ?? []
        ended.append(wake)
        self.endedWakes[token] = Array(ended.suffix(4))
    }
}
