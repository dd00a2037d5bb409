package import DeviceEngine
package import Settings

/// What the engine's thread goes on with after a reload.
package struct EngineSettings: Sendable {
    let engine: EngineConfiguration
    /// The bytes of payloads that a worker's stream may hold unanswered.
    let wakeBytesPerStreamMax: Int
    /// Called on the engine's thread when they are in force, with the number of the launch policy.
    let inForce: @Sendable (UInt32) -> Void

    package init(
        engine: EngineConfiguration,
        wakeBytesPerStreamMax: Int = GatewayLimits().wakeBytesPerStreamMax,
        inForce: @escaping @Sendable (UInt32) -> Void
    ) {
        self.engine = engine
        self.wakeBytesPerStreamMax = wakeBytesPerStreamMax
        self.inForce = inForce
    }

    package init(_ configuration: GatewayConfiguration, inForce: @escaping @Sendable (UInt32) -> Void) {
        self.init(
            engine: configuration.engine,
            wakeBytesPerStreamMax: configuration.limits.wakeBytesPerStreamMax,
            inForce: inForce
        )
    }
}
