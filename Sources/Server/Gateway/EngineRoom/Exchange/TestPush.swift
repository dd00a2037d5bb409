import Engine
package import Wire

/// A push that an operator sends to try out a device and its worker, as far as it is judged without knowing devices.
package struct TestPush: Sendable {
    let device: Named<DeviceToken>
    /// Nil for the device's own.
    let topic: [UInt8]?
    /// The push, but for its topic, and for its device, which may be named by what its token hides.
    let kept: KeptPush
    /// Why a provider would be refused for it; nil for a push that is good as far as can be told.
    let refusal: APNSReason?

    package init(_ device: Named<DeviceToken>, _ push: Push, topic: String?, refused reason: APNSReason? = nil) {
        self.device = device
        self.topic = topic.map { Array($0.utf8) }
        // Its reply is the answer of the operation.
        self.kept = KeptPush(push, from: .webhookReport(0))
        self.refusal = reason
    }
}
