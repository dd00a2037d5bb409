import APNSProtocol
import HTTPTransport

/// What each loop goes on with after a reload, and begins with.
///
/// A class, so that a mailbox without one hands over no more than nothing.
final class LoopSettings: Sendable {
    let rules: PushRules
    let transport: TransportLimits
    let requestsAtEngineMax: Int

    init(_ configuration: GatewayConfiguration) {
        self.rules = PushRules(strictBackgroundPriority: configuration.strictBackgroundPriority)
        self.transport = configuration.limits.transport
        self.requestsAtEngineMax = configuration.limits.requestsAtEngineMax
    }
}
