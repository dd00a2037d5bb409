package import APNSProtocol
package import HTTPTransport

/// What each loop goes on with after a reload, and begins with.
///
/// A class, so that a mailbox without one hands over no more than nothing.
package final class LoopSettings: Sendable {
    package let rules: PushRules
    package let transport: TransportLimits
    package let requestsAtEngineMax: Int

    package init(_ configuration: GatewayConfiguration) {
        self.rules = PushRules(strictBackgroundPriority: configuration.strictBackgroundPriority)
        self.transport = configuration.limits.transport
        self.requestsAtEngineMax = configuration.limits.requestsAtEngineMax
    }
}
