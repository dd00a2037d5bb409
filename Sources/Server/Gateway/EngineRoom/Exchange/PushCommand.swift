package import Engine
package import Wire

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
    /// The warnings in the answer if the push is accepted.
    package let warnings: PushWarnings
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
        warnings: PushWarnings = [],
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
        self.warnings = warnings
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
    /// The warnings about an accepted push.
    package var warnings: PushWarnings = []
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
