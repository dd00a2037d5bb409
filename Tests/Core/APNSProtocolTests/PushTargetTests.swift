import Testing
import Wire

@Suite("Method, path and token of a push")
struct PushTargetTests {
    private static func reason(_ method: String, _ path: String) -> APNSReason? {
        var push = PushFixture()
        push.method = method
        push.prefix = path
        push.token = ""
        return push.reason
    }

    private static let token = PushFixture().token

    @Test("Only POST is a push", arguments: ["GET", "PUT", "DELETE", "post", "POST ", "POS", "", "CONNECT", "OPTIONS"])
    func methods(method: String) {
        #expect(Self.reason(method, "/3/device/" + Self.token) == .methodNotAllowed)
        #expect(Self.reason(method, "/") == .methodNotAllowed)
    }

    @Test(
        "A path of any other form is bad",
        arguments: [
            "", "/", "*", "/3", "/3/device", "/3/devices/T", "/3/Device/T", "/2/device/T", "3/device/T", "//3/device/T",
            "/3//device/T", "/3/device//T", "/3/device/T/", "/3/device/T/x", "/3/device/T?x=1", "/3/device/T?",
            "/3/device/?", "/3/device//", "/3/device?T", "/v2/device/T", "/3/device/T/T", "/3/device/ab?",
            "/3/device/a/",
            "http://host/3/device/T",
        ]
    )
    func badPaths(path: String) {
        #expect(Self.reason("POST", path.replacing("T", with: Self.token)) == .badPath)
    }

    @Test("A slash or a question mark at any position after the prefix makes the path bad", arguments: ["/", "?"])
    func delimiters(delimiter: Character) {
        for count in [1, 7, 8, 9, 16, 63, 64] {
            for place in 0..<count {
                var digits = [Character](repeating: "a", count: count)
                digits[place] = delimiter
                #expect(Self.reason("POST", "/3/device/" + String(digits)) == .badPath, "\(place) of \(count)")
            }
        }
    }

    @Test("No other character is treated as a delimiter")
    func otherCharacters() {
        for byte in UInt8(1)..<0x80 where byte != UInt8(ascii: "/") && byte != UInt8(ascii: "?") {
            let digits = String(repeating: "a", count: 12) + String(Unicode.Scalar(byte))
            #expect(Self.reason("POST", "/3/device/" + digits) == .badDeviceToken, "byte \(byte)")
        }
    }

    @Test("Upper and lower case name the same device")
    func cases() throws {
        var push = PushFixture()
        let lower = try push.check().token
        push.token = push.token.uppercased()
        #expect(try push.check().token == lower)
        #expect(lower.hex == Self.token)
    }
}

@Suite("Payload of a push")
struct PushPayloadTests {
    /// Returns a JSON object of exactly `count` bytes.
    private static func object(_ count: Int) -> [UInt8] {
        [UInt8](("{\"a\":\"" + String(repeating: "x", count: count - 8) + "\"}").utf8)
    }

    @Test("4096 bytes are accepted, one more is too large", arguments: PushType.allCases.map(Optional.some) + [nil])
    func bounds(type: PushType?) {
        var push = PushFixture()
        if let type { push.set("apns-push-type", type.name.description) } else { push.remove("apns-push-type") }
        let bound = type == .voip ? 5120 : 4096
        push.body = Self.object(bound)
        #expect(push.body.count == bound)
        #expect(push.reason == nil)
        push.body = Self.object(bound + 1)
        #expect(push.reason == .payloadTooLarge)
    }

    @Test("An empty body is PayloadEmpty; a body that was cut short is too large, whatever part arrived")
    func emptyAndCut() {
        var push = PushFixture()
        push.body = []
        #expect(push.reason == .payloadEmpty)
        push.isBodyCutShort = true
        #expect(push.reason == .payloadTooLarge)
        push.body = Self.object(100)
        #expect(push.reason == .payloadTooLarge)
    }

    @Test("Only 1 wakes; a wrong value is warned of, and in development priority 10 of a background push")
    func warnings() throws {
        var push = PushFixture()
        push.set("apns-push-type", "background")
        push.set("apns-priority", "10")
        for (value, wrong) in [("1", false), ("0", false), ("true", true), ("1.0", true), ("\"1\"", true)] {
            push.body = [UInt8]("{\"aps\":{\"content-available\":\(value)}}".utf8)
            let expected: PushWarnings = wrong ? .contentAvailable : []
            push.rules.isForDevelopment = false
            let checked = try push.check()
            #expect(checked.warnings == expected && checked.wakes == (value == "1"), "\(value)")
            push.rules.isForDevelopment = true
            let warnings = try push.check().warnings
            #expect(warnings == expected.union(.backgroundPriority), "\(value)")
            #expect(warnings.texts.count == (wrong ? 2 : 1))
        }
        push.set("apns-priority", "5")
        push.body = [UInt8]("{\"aps\":{\"content-available\":1}}".utf8)
        #expect(try push.check().warnings.isEmpty)
        push.set("apns-push-type", "alert")
        push.set("apns-priority", "10")
        #expect(try push.check().warnings.isEmpty)
    }
}

@Suite("Order of the checks of a push")
struct PushCheckOrderTests {
    /// A fault that causes a refusal, and the parts of the push that it changes.
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

    /// Every check, in the order of the wire contract.
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
        Fault(.badMessageId, ["apns-id"]) { $0.set("apns-id", "") },
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
        Fault(.payloadEmpty, ["body"]) { $0.body = [UInt8]("{}}".utf8) },
        Fault(.badDeviceToken, ["token"]) { $0.token = "xyz" + $0.token.filter { $0 == "?" } },
    ]

    @Test("Each single fault has its own reason")
    func single() {
        for (index, fault) in Self.faults.enumerated() {
            var push = PushFixture()
            fault.apply(&push)
            #expect(push.reason == fault.reason, "fault \(index)")
        }
    }

    @Test("Of two faults the earlier check's reason is returned, in either order")
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

@Suite("Reasons")
struct APNSReasonTests {
    /// Apple's table of reasons by status.
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

    @Test("The body names the reason, and only 410 has an integer timestamp", arguments: APNSReason.allCases)
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
