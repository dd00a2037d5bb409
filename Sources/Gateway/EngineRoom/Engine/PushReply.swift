package import Bytes
package import WakeDispatch

/// The answer to one push: plain memory.
package struct PushReply: BitwiseCopyable {
    package let address: StreamAddress
    package let apnsID: APNsID
    /// The index of the reason it was refused for, or `accepted`.
    package let reason: UInt8
    /// The raw value of its disposition.
    package let disposition: UInt8
    /// The raw value of the hold that applies, or `none`.
    package let held: UInt8
    /// After how many seconds a refused push may be sent again; 0 when that is not known.
    package var retryAfterSeconds: UInt32 = 0
    /// When it will be eligible, in seconds since 1970, or `noMoment`.
    package let eligibleAt: Int64
    /// When its token was removed, in milliseconds since 1970, or `noMoment`.
    package let timestamp: Int64

    package static let accepted: UInt8 = .max
    static let none: UInt8 = .max
    package static let noMoment: Int64 = -1
}
