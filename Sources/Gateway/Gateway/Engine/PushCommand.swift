import Bytes
import WakeDispatch

/// A push on its way from a loop to the engine: plain memory, followed in the batch by topic, collapse id, payload and
/// trace.
struct PushCommand: BitwiseCopyable {
    var reply: StreamAddress
    let token: DeviceToken
    let apnsID: APNsID
    /// The client chose the apns-id.
    let isNamedByClient: Bool
    /// Seconds since 1970; 0 for now or never, `expirationAbsent` when the header is absent.
    let expiration: Int64
    /// 10, 5 or 1.
    let priority: UInt8
    let wakes: Bool
    let isDryRun: Bool
    let topicCount: UInt8
    let collapseIDCount: UInt8
    let payloadCount: UInt16
    /// The bytes that `PushTrace` keeps; 0 when there is no trace.
    var traceCount: UInt16 = 0

    static let expirationAbsent: Int64 = -1

    /// The bytes that follow it.
    var trailingCount: Int {
        Int(self.topicCount) + Int(self.collapseIDCount) + Int(self.payloadCount) + Int(self.traceCount)
    }
}
