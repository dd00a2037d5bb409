package import LaunchPolicy

/// Where an engine's state is kept so that it outlives the process.
package protocol DeviceStore: AnyObject {
    /// Makes one step durable: when this returns, a crash loses nothing of it.
    ///
    /// - Throws: `StoreError` when it could not; then nothing of the step may be told to anybody.
    func commit(_ step: EngineStep) throws(StoreError)
}

/// What one step of the engine changed.
package struct EngineStep: Sendable {
    /// Policy time at the step.
    package let now: Instant
    /// The devices whose state changed, each once.
    package let devices: [DeviceIndex]
}

/// A commit that failed.
package struct StoreError: Error, Hashable, Sendable {
    /// What happened, and what to do.
    package let message: String

    package init(message: String) {
        self.message = message
    }
}

/// Keeps nothing: for tests and benchmarks, nothing survives the process.
package final class MemoryStore: DeviceStore {
    package init() {}

    package func commit(_ step: EngineStep) throws(StoreError) {}
}
