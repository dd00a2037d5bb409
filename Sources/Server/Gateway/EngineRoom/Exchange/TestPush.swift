import Engine
import Policy
package import Wire

/// A push that an operator sends to try out a device and its worker, as far as it is judged without knowing devices.
package struct TestPush: Sendable {
    let device: Named<DeviceToken>
    let apnsID: APNsID
    /// Nil for the device's own.
    let topic: [UInt8]?
    /// Why a provider would be refused for it; nil for a push that is good as far as can be told.
    let refusal: APNSReason?
    package var expiration = PushCommand.expirationAbsent
    package var priority = Priority.considerate.rawValue
    package var collapseID: [UInt8] = []
    package var payload: [UInt8] = []
    package var wakes = false
    package var warnings: PushWarnings = []

    /// A push that is good as far as can be told.
    package init(
        _ device: Named<DeviceToken>,
        _ push: CheckedPush,
        _ apnsID: APNsID,
        topic: String?,
        payload: [UInt8]
    ) {
        self.init(device, refused: nil, apnsID, topic: topic)
        switch push.head.expiration {
        case .absent: self.expiration = PushCommand.expirationAbsent
        case .zero: self.expiration = 0
        case .seconds(let seconds): self.expiration = seconds
        }
        self.priority = push.head.priority.rawValue
        self.collapseID = push.head.collapseID.array
        self.payload = payload
        self.wakes = push.wakes
        self.warnings = push.warnings
    }

    /// A push that is refused for this.
    package init(_ device: Named<DeviceToken>, refused reason: APNSReason?, _ apnsID: APNsID, topic: String?) {
        self.device = device
        self.apnsID = apnsID
        self.topic = topic.map { Array($0.utf8) }
        self.refusal = reason
    }

    /// The push as it comes to an engine, and what follows it.
    func command(to token: DeviceToken, of topic: [UInt8]) -> (command: PushCommand, bytes: [UInt8]) {
        let command = PushCommand(
            // Its reply is the answer of the operation.
            reply: .webhookReport(0),
            token: token,
            apnsID: self.apnsID,
            isNamedByClient: false,
            expiration: self.expiration,
            priority: self.priority,
            wakes: self.wakes,
            isDryRun: false,
            warnings: self.warnings,
            topicCount: UInt8(topic.count),
            collapseIDCount: UInt8(self.collapseID.count),
            payloadCount: UInt16(self.payload.count)
        )
        return (command, topic + self.collapseID + self.payload)
    }
}
