package import Bytes
package import WakeDispatch

/// A push on its way from a loop to the engine: plain memory, followed in the batch by topic, collapse id, payload and
/// trace.
package struct PushCommand: BitwiseCopyable {
    package var reply: StreamAddress
    package let token: DeviceToken
    package let apnsID: APNsID
    /// The client chose the apns-id.
    package let isNamedByClient: Bool
    /// Seconds since 1970; 0 for now or never, `expirationAbsent` when the header is absent.
    package let expiration: Int64
    /// 10, 5 or 1.
    package let priority: UInt8
    package let wakes: Bool
    package let isDryRun: Bool
    package let topicCount: UInt8
    package let collapseIDCount: UInt8
    package let payloadCount: UInt16
    /// The bytes that `PushTrace` keeps; 0 when there is no trace.
    package var traceCount: UInt16 = 0

    package init(
        reply: StreamAddress,
        token: DeviceToken,
        apnsID: APNsID,
        isNamedByClient: Bool,
        expiration: Int64,
        priority: UInt8,
        wakes: Bool,
        isDryRun: Bool,
        topicCount: UInt8,
        collapseIDCount: UInt8,
        payloadCount: UInt16,
        traceCount: UInt16 = 0
    ) {
        self.reply = reply
        self.token = token
        self.apnsID = apnsID
        self.isNamedByClient = isNamedByClient
        self.expiration = expiration
        self.priority = priority
        self.wakes = wakes
        self.isDryRun = isDryRun
        self.topicCount = topicCount
        self.collapseIDCount = collapseIDCount
        self.payloadCount = payloadCount
        self.traceCount = traceCount
    }

    package static let expirationAbsent: Int64 = -1

    /// The bytes that follow it.
    var trailingCount: Int {
        Int(self.topicCount) + Int(self.collapseIDCount) + Int(self.payloadCount) + Int(self.traceCount)
    }
}
