import Testing
import Wire

@Suite("Reasons")
struct APNSReasonTests {
    /// Apple's table, under each status the reasons it lists.
    private static let table: [Int: [String]] = [
        400: [
            "BadCollapseId", "BadDeviceToken", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic",
            "DeviceTokenNotForTopic", "DuplicateHeaders", "IdleTimeout", "InvalidPushType", "MissingDeviceToken",
            "MissingTopic", "PayloadEmpty", "TopicDisallowed",
        ],
        403: [
            "BadCertificate", "BadCertificateEnvironment", "ExpiredProviderToken", "Forbidden",
            "InvalidProviderToken", "MissingProviderToken", "UnrelatedKeyIdInToken", "BadEnvironmentKeyIdInToken",
        ],
        404: ["BadPath"],
        405: ["MethodNotAllowed"],
        410: ["ExpiredToken", "Unregistered"],
        413: ["PayloadTooLarge"],
        429: ["TooManyProviderTokenUpdates", "TooManyRequests"],
        500: ["InternalServerError"],
        503: ["ServiceUnavailable", "Shutdown"],
    ]

    @Test("The reasons and their statuses are those of Apple's table, and one of a field of our own")
    func table() {
        #expect(
            Dictionary(grouping: APNSReason.allCases, by: \.status).mapValues { Set($0.map(\.rawValue)) }
                == Self.table.mapValues { Set($0) }.merging([400: ["BadDryRun"]]) { $0.union($1) }
        )
        #expect(APNSReason.count == 33)
    }

    @Test("The index of a reason is its place among all")
    func index() {
        #expect(APNSReason.allCases.map(\.index) == Array(0..<APNSReason.count))
    }

    @Test("The body names the reason, and 410 alone has an integer timestamp", arguments: APNSReason.allCases)
    func body(reason: APNSReason) {
        for timestamp in [nil, 1_795_233_957_130] as [Int64?] {
            var buffer = ByteBuffer()
            reason.writeBody(to: &buffer, timestampMilliseconds: timestamp)
            let text = buffer.view.string
            let tail = reason.status == 410 ? ",\"timestamp\":\(timestamp ?? 0)" : ""
            #expect(text == "{\"reason\":\"\(reason.rawValue)\"\(tail)}")
        }
    }
}
