import Testing
import Wire

@Suite("Header fields of a push")
struct PushHeadersTests {
    @Test("A push with every field is read completely")
    func everything() throws {
        let push = try PushFixture().check { push in
            #expect(push.collapseID.string == "score")
            #expect(push.topic.string == "com.example.app")
        }
        let id = "9d3220fe-444b-633e-d1f1-5d0dcb4f537a".withByteView { APNsID($0) }
        #expect(push.hasClientID && push.apnsID == id)
        #expect(push.expiration == .seconds(1_800_000_000))
        #expect(push.priority == .considerate)
        #expect(push.type == .background)
        #expect(!push.isDryRun)
        #expect(push.wakes)
    }

    @Test("A push with nothing but a topic has the defaults")
    func defaults() throws {
        var push = PushFixture()
        push.fields = [("apns-topic", "a")]
        let outcome = try push.check()
        #expect(!outcome.hasClientID)
        #expect(outcome.expiration == .absent)
        #expect(outcome.priority == .immediate)
        #expect(outcome.type == nil)
        #expect(outcome.collapseID.isEmpty)
    }

    @Test("The identifier is known despite other faults, and keeps its case")
    func earlyID() throws {
        var push = PushFixture()
        push.set("apns-id", "9D3220fe-444B-633E-d1f1-5d0dcb4f537a")
        push.set("apns-priority", "x")
        let id = try #require(push.withRequest { $0.id })
        var buffer = ByteBuffer()
        id.write(to: &buffer)
        let text = buffer.view.string
        #expect(text == "9D3220fe-444B-633E-d1f1-5d0dcb4f537a")
    }

    @Test(
        "Anything but a whole number of seconds is a bad expiration",
        arguments: ["", "-1", "+1", "1.5", "123.456", "1e9", "now", " 1", "1 ", "0x10", "1,000", "٣", "-0"]
    )
    func badExpirations(value: String) {
        #expect(PushFixture.reason("apns-expiration", value) == .badExpirationDate)
    }

    @Test("Seconds may be zero, past, or beyond any limit")
    func expirations() throws {
        let cases: [(String, PushExpiration)] = [
            ("0", .zero), ("0000", .zero), ("1", .seconds(1)), ("0017", .seconds(17)),
            ("999999999999", .seconds(999_999_999_999)), ("1000000000000", .seconds(1_000_000_000_000)),
            ("1000000000001", .seconds(1_000_000_000_000)), ("18446744073709551616", .seconds(1_000_000_000_000)),
            (String(repeating: "9", count: 5000), .seconds(1_000_000_000_000)),
        ]
        for (value, expiration) in cases {
            var push = PushFixture()
            push.set("apns-expiration", value)
            #expect(try push.check().expiration == expiration, "\(value.prefix(30))")
        }
    }

    @Test("Priorities are 10, 5 and 1")
    func priorities() throws {
        for (value, priority) in [("10", Priority.immediate), ("5", .considerate), ("1", .passive)] {
            var push = PushFixture()
            push.set("apns-priority", value)
            #expect(try push.check().priority == priority)
        }
    }

    @Test(
        "Nothing else is a priority",
        arguments: ["", "0", "2", "6", "9", "11", "100", "05", "010", "5.0", "-5", "+5", "high", "5 "]
    )
    func badPriorities(value: String) {
        #expect(PushFixture.reason("apns-priority", value) == .badPriority)
    }

    @Test("Background with priority 10 is refused when the rules are strict, and only then")
    func strictBackground() {
        for (priority, refused) in [("10", true), (nil, true), ("5", false), ("1", false)] {
            for (type, isBackground) in [("background", true), ("alert", false), (nil, false)] {
                for strict in [true, false] {
                    var push = PushFixture()
                    push.rules = PushRules(strictBackgroundPriority: strict)
                    if let priority { push.set("apns-priority", priority) } else { push.remove("apns-priority") }
                    if let type { push.set("apns-push-type", type) } else { push.remove("apns-push-type") }
                    let expected: APNSReason? = strict && refused && isBackground ? .badPriority : nil
                    #expect(push.reason == expected, "\(priority ?? "none") \(type ?? "none") \(strict)")
                }
            }
        }
    }

    @Test("Every push type of Apple's table is accepted")
    func types() throws {
        let names = [
            "alert", "background", "location", "voip", "complication", "fileprovider", "mdm", "liveactivity",
            "pushtotalk", "widgets", "controls",
        ]
        for name in names {
            var push = PushFixture()
            push.set("apns-push-type", name)
            #expect(try #require(push.check().type).name.description == name)
        }
        #expect(PushType.allCases.map(\.name.description) == names)
    }

    @Test(
        "Nothing else is a push type",
        arguments: [
            "", "Alert", "BACKGROUND", "alert ", "alerts", "backgrounb", "xxxxxxxxxxxx", "LiveActivity", "foo", "mdn",
            "voio", "widgetz", "locatiom", "controlz", "pushtotall", "complicatiom", "fileprovideq",
        ]
    )
    func badTypes(value: String) {
        #expect(PushFixture.reason("apns-push-type", value) == .invalidPushType)
    }

    @Test("A collapse id has up to 64 bytes, not characters")
    func collapseIDs() {
        for value in ["", "x", String(repeating: "x", count: 64), String(repeating: "é", count: 32)] {
            #expect(PushFixture.reason("apns-collapse-id", value) == nil)
        }
        for value in [String(repeating: "x", count: 65), String(repeating: "é", count: 33)] {
            #expect(PushFixture.reason("apns-collapse-id", value) == .badCollapseId)
        }
    }

    @Test(
        "A collapse id that is not UTF-8 is refused, wherever its fault is",
        arguments: [
            [0xFF], [0x80], [0xC3], [0xC3, 0x28], [0xC0, 0xAF], [0xE2, 0x80], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80],
            [0xF0, 0x9F, 0xA6], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80],
        ] as [[UInt8]]
    )
    func collapseIDsOutsideUTF8(bytes: [UInt8]) {
        for position in [0, 1, 7, 8, 9, 20] {
            let value = [UInt8](repeating: UInt8(ascii: "c"), count: position) + bytes
            for value in [value, value + Array("é and more".utf8)] {
                let path = ByteView("/3/device/00112233445566778899aabbccddeeff")
                var request = PushRequest(method: ByteView("POST"), path: path, body: ByteView("{}"))
                value.withByteView { value in
                    request.field(name: ByteView("apns-collapse-id"), value: value)
                    request.field(name: ByteView("apns-topic"), value: ByteView("com.example"))
                    var push = Push()
                    #expect(throws: APNSReason.badCollapseId) {
                        try request.check(into: &push, rules: PushRules(), authenticate: { _ in }, authorize: { _ in })
                    }
                }
            }
        }
    }

    @Test("A topic has 1 to 255 letters, digits, dots, hyphens and underscores")
    func topics() {
        #expect(PushFixture.reason("apns-topic", nil) == .missingTopic)
        for value in ["a", "com.Example_1.app-2.voip", String(repeating: "a", count: 255)] {
            #expect(PushFixture.reason("apns-topic", value) == nil)
        }
        for value in ["", String(repeating: "a", count: 256), "<com.example>", "com.example.äpp"] {
            #expect(PushFixture.reason("apns-topic", value) == .badTopic)
        }
        let legal = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-".utf8)
        for byte in UInt8.min...UInt8.max {
            let isTopic = [byte].withByteView { Push.isTopic($0) }
            #expect(isTopic == legal.contains(byte), "byte \(byte)")
        }
    }

    @Test(
        "A repeated apns field, known or not, or authorization, is refused",
        arguments: [
            "authorization", "apns-id", "apns-expiration", "apns-priority", "apns-push-type", "apns-topic",
            "apns-collapse-id", "apns-channel-id", "apns-request-id", "apns-unique-id", "apns-other", "apns-",
        ]
    )
    func duplicates(name: String) {
        var push = PushFixture()
        if !push.fields.contains(where: { $0.name == name }) { push.fields.append((name, "x")) }
        #expect(push.reason == nil, "once is not too often")
        let value = push.fields.first { $0.name == name }?.value ?? ""
        push.fields.append((name, value))
        #expect(push.reason == .duplicateHeaders)
    }

    @Test("Fields are compared by name: a repeated apns field is refused, and other fields may repeat")
    func otherFields() {
        var push = PushFixture()
        push.fields += [("apns-a", ""), ("apns-b", ""), ("apns-c", ""), ("apns-d", ""), ("apns-e", "")]
        push.fields += [("cookie", "a"), ("cookie", "b"), ("apnsid", ""), ("apnsid", ""), ("content-type", "x")]
        #expect(push.reason == nil)
        push.fields.append(("apns-d", ""))
        #expect(push.reason == .duplicateHeaders)
    }

    @Test(
        "Only a single wakegate-dry-run of 1 asks for a dry run; every other value is refused",
        arguments: [
            ["1"], ["0"], [""], ["true"], ["1 "], ["01"], ["1", "1"], ["1", "0"], ["0", "1"],
        ]
    )
    func dryRun(values: [String]) throws {
        var push = PushFixture()
        for value in values { push.fields.append(("wakegate-dry-run", value)) }
        if values == ["1"] {
            #expect(try push.check().isDryRun)
        } else {
            #expect(throws: APNSReason.badDryRun) { try push.check() }
        }
        #expect(push.withRequest { $0.isDryRun } == (values == ["1"]))
        #expect(try !PushFixture().check().isDryRun)
    }

    @Test("Authorization and topic can be read before any check; the first of several counts")
    func unverified() {
        var push = PushFixture()
        push.fields.append(("authorization", "bearer second"))
        push.set("apns-topic", "<bad>")
        #expect(push.withRequest { $0.authorization?.string } == "bearer a.b.c")
        #expect(push.withRequest { $0.unverifiedTopic?.string } == "<bad>")
        push.fields = []
        #expect(push.withRequest { $0.authorization == nil && $0.unverifiedTopic == nil })
    }
}
