/// The reason why a push is refused: every reason that APNs documents, and `badDryRun`. The raw value is its name on
/// the wire.
package enum APNSReason: String, Error, CaseIterable, BitwiseCopyable, Sendable {
    case badCollapseId = "BadCollapseId"
    case badDeviceToken = "BadDeviceToken"
    case badExpirationDate = "BadExpirationDate"
    case badMessageId = "BadMessageId"
    case badPriority = "BadPriority"
    case badTopic = "BadTopic"
    case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
    case duplicateHeaders = "DuplicateHeaders"
    case idleTimeout = "IdleTimeout"
    case invalidPushType = "InvalidPushType"
    case missingDeviceToken = "MissingDeviceToken"
    case missingTopic = "MissingTopic"
    case payloadEmpty = "PayloadEmpty"
    case topicDisallowed = "TopicDisallowed"
    case badCertificate = "BadCertificate"
    case badCertificateEnvironment = "BadCertificateEnvironment"
    case expiredProviderToken = "ExpiredProviderToken"
    case forbidden = "Forbidden"
    case invalidProviderToken = "InvalidProviderToken"
    case missingProviderToken = "MissingProviderToken"
    case unrelatedKeyIdInToken = "UnrelatedKeyIdInToken"
    case badEnvironmentKeyIdInToken = "BadEnvironmentKeyIdInToken"
    case badPath = "BadPath"
    case methodNotAllowed = "MethodNotAllowed"
    case expiredToken = "ExpiredToken"
    case unregistered = "Unregistered"
    case payloadTooLarge = "PayloadTooLarge"
    case tooManyProviderTokenUpdates = "TooManyProviderTokenUpdates"
    case tooManyRequests = "TooManyRequests"
    case internalServerError = "InternalServerError"
    case serviceUnavailable = "ServiceUnavailable"
    case shutdown = "Shutdown"
    /// The value of `wakegate-dry-run` is invalid. APNs does not have this header.
    case badDryRun = "BadDryRun"

    /// The HTTP status of the reason.
    package var status: Int {
        switch self {
        case .badCollapseId, .badDeviceToken, .badExpirationDate, .badMessageId, .badPriority, .badTopic,
            .deviceTokenNotForTopic, .duplicateHeaders, .idleTimeout, .invalidPushType, .missingDeviceToken,
            .missingTopic, .payloadEmpty, .topicDisallowed, .badDryRun:
            400
        case .badCertificate, .badCertificateEnvironment, .expiredProviderToken, .forbidden,
            .invalidProviderToken, .missingProviderToken, .unrelatedKeyIdInToken, .badEnvironmentKeyIdInToken:
            403
        case .badPath:
            404
        case .methodNotAllowed:
            405
        case .expiredToken, .unregistered:
            410
        case .payloadTooLarge:
            413
        case .tooManyProviderTokenUpdates, .tooManyRequests:
            429
        case .internalServerError:
            500
        case .serviceUnavailable, .shutdown:
            503
        }
    }

    /// The number of reasons, for arrays of counters.
    package static let count = APNSReason.allCases.count

    /// The position of the reason in `allCases`, from 0 to `count` - 1.
    package var index: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    /// Appends the body of the answer: `{"reason":"..."}`; for status 410 also the integer member `timestamp`.
    ///
    /// - `timestampMilliseconds`: the time at which the token was found to be inactive, in milliseconds since 1970. It
    ///   is used only for status 410. Clients fail on a 410 without a timestamp, so nil is written as 0, which precedes
    ///   every registration.
    package func writeBody(to buffer: inout ByteBuffer, timestampMilliseconds: Int64?) {
        buffer.append("{\"reason\":\"")
        buffer.append(self.rawValue)
        buffer.append(UInt8(ascii: "\""))
        if self.status == 410 {
            buffer.append(",\"timestamp\":")
            buffer.appendDecimal(timestampMilliseconds ?? 0)
        }
        buffer.append(UInt8(ascii: "}"))
    }
}
