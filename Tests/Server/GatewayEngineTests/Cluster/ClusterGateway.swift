import Engine
import Gateway
import Synchronization
import WakeGateTestKit

/// One life of one gateway of a simulated cluster.
final class ClusterGateway {
    /// What a test makes an engine of.
    struct Parts {
        let configuration: EngineConfiguration
        let world: EngineWorld
        let database: SimulatedDatabase
        let outlet: GroupOutlet
        /// Rung when the engine is to be stepped.
        let ring: @Sendable () -> Void
    }

    /// An engine, and the store it was made with.
    typealias Maker = (Parts) throws -> (any GatewayEngine, SimulatedClusterStore)

    /// Whether somebody has rung since it was asked last.
    private final class Bell: Sendable {
        private let hasRung = Mutex(false)

        func ring() { self.hasRung.withLock { $0 = true } }

        var isRung: Bool { self.hasRung.withLock { $0 } }

        func reset() { self.hasRung.withLock { $0 = false } }
    }

    let place: Int
    let store: SimulatedClusterStore
    private let engine: any GatewayEngine
    private let loop = LoopMailbox()
    private let bell = Bell()
    /// What clients have asked since the last step.
    var requests = Requests()
    /// When the engine wants to be stepped, in virtual time.
    private(set) var stepAt: Int64
    /// Whether the gateway was told to launch nothing new.
    var isDraining = false

    init(_ place: Int, _ parts: (GroupOutlet, @escaping @Sendable () -> Void) -> Parts, _ make: Maker) throws {
        let bell = self.bell
        let mailboxes = PerOutlet(self.loop)
        self.place = place
        let database: SimulatedDatabase
        let history = ClusterHistory(mailboxes)
        let made = parts(GroupOutlet(mailboxes: mailboxes, history: history)) { bell.ring() }
        database = made.database
        history.database = database
        (self.engine, self.store) = try make(made)
        self.stepAt = database.now
    }

    var isPaused: Bool { self.store.isPaused }

    func isDue(at now: Int64) -> Bool { !self.isPaused && (self.stepAt <= now || self.bell.isRung) }

    /// When it is to be stepped next.
    var nextStepAt: Int64 { self.bell.isRung ? .min : self.stepAt }

    /// What it is up to.
    var state: String {
        "\(self.store.openCount) open, \(self.bell.isRung ? "rung" : "stepped at \(self.stepAt)")"
    }

    /// Has the gateway stepped by this moment.
    func hurry(until moment: Int64) { self.stepAt = min(self.stepAt, moment) }

    /// One step, with all that was asked.
    ///
    /// - Returns: what was heard, in its order.
    func step(at now: Int64) -> [Heard] {
        self.bell.reset()
        let batch = self.requests.batch
        batch.notePushesLeave()
        self.requests = Requests()
        self.stepAt = now + max(0, self.engine.step(batch))
        var effects = EffectBatch()
        self.loop.take(into: &effects)
        return Heard.all(in: effects)
    }
}
