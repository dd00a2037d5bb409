import Testing
import Wire

@Suite("Order of the checks of a push")
struct PushCheckOrderTests {
    /// One way to be refused, and what of the push it changes.
    private struct Fault: Sendable {
        var reason: APNSReason
        var touches: Set<String>
        var apply: @Sendable (inout PushFixture) -> Void

        init(_ reason: APNSReason, _ touches: Set<String>, _ apply: @escaping @Sendable (inout PushFixture) -> Void) {
            self.reason = reason
            self.touches = touches
            self.apply = apply
        }
    }

    /// Every check in the order of the wire contract.
    private static let faults: [Fault] = [
        Fault(.methodNotAllowed, ["method"]) { $0.method = "GET" },
        Fault(.badPath, ["prefix"]) { $0.prefix = "/3/devices/" },
        Fault(.badPath, ["query"]) { $0.token += "?" },
        Fault(.missingDeviceToken, ["prefix", "token", "query"]) { $0.token = "" },
        Fault(.missingProviderToken, ["authentication"]) { $0.authentication = .missingProviderToken },
        Fault(.duplicateHeaders, ["apns-request-id"]) {
            $0.fields += [("apns-request-id", "1"), ("apns-request-id", "1")]
        },
        Fault(.badMessageId, ["apns-id"]) { $0.set("apns-id", "1") },
        Fault(.badExpirationDate, ["apns-expiration"]) { $0.set("apns-expiration", "-1") },
        Fault(.badPriority, ["apns-priority"]) { $0.set("apns-priority", "7") },
        Fault(.badPriority, ["apns-priority", "apns-push-type"]) {
            $0.rules.strictBackgroundPriority = true
            $0.set("apns-priority", "10")
        },
        Fault(.invalidPushType, ["apns-push-type"]) { $0.set("apns-push-type", "silent") },
        Fault(.badCollapseId, ["apns-collapse-id"]) {
            $0.set("apns-collapse-id", String(repeating: "x", count: 65))
        },
        Fault(.missingTopic, ["apns-topic"]) { $0.remove("apns-topic") },
        Fault(.badTopic, ["apns-topic"]) { $0.set("apns-topic", "a b") },
        Fault(.topicDisallowed, ["authorization"]) { $0.authorization = .topicDisallowed },
        Fault(.payloadEmpty, ["body"]) { $0.body = [] },
        Fault(.payloadTooLarge, ["body"]) { $0.body = [UInt8](repeating: 0x20, count: 4097) },
        Fault(.payloadEmpty, ["body"]) { $0.body = [UInt8]("[]".utf8) },
        Fault(.badDeviceToken, ["token"]) { $0.token = "xyz" + $0.token.filter { $0 == "?" } },
    ]

    @Test("One fault is refused for itself")
    func single() {
        for (index, fault) in Self.faults.enumerated() {
            var push = PushFixture()
            fault.apply(&push)
            #expect(push.reason == fault.reason, "fault \(index)")
        }
    }

    @Test("Of two faults the earlier is named, in whatever order they were made")
    func pairs() {
        var count = 0
        for (first, earlier) in Self.faults.enumerated() {
            for (second, later) in Self.faults.enumerated().dropFirst(first + 1)
            where earlier.touches.isDisjoint(with: later.touches) {
                for order in [[earlier, later], [later, earlier]] {
                    var push = PushFixture()
                    for fault in order { fault.apply(&push) }
                    #expect(push.reason == earlier.reason, "faults \(first) and \(second)")
                }
                count += 1
            }
        }
        #expect(count > 130, "\(count) pairs")
    }
}
