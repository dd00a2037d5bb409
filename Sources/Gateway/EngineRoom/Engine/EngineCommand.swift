package import Bytes
package import WakeDispatch

/// What a loop has for the engine besides pushes.
package enum EngineCommand: Sendable {
    /// Somebody asks for something, and waits.
    case request(EngineRequest)
    /// A push was refused before it reached the engine.
    case rejected(reason: Int, topic: [UInt8])
    case streamEnded(StreamAddress)
    case streamPaused(StreamAddress, Bool)
    /// A stream may hold more or fewer wakes from now on.
    case slotsChanged(StreamAddress, Int)
    /// A stream goes on without a wake it held, whose attempt counts unless its worker never got it.
    case lost(StreamAddress, WakeID, takingBackAttempt: Bool)
    /// How a topic's webhook is; nil when it has none any more.
    case webhookChanged(topic: String, WebhookStatus?)
    /// Another configuration is in force from here on.
    indirect case configure(EngineSettings)
    /// The first token was issued: workers are asked who they are.
    case workersAsked
    /// Launch nothing new from now on.
    case drain
}
