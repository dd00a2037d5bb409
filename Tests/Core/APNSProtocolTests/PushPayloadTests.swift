import Testing
import Wire

@Suite("Payload of a push")
struct PushPayloadTests {
    /// An object of exactly `count` bytes.
    private static func object(_ count: Int) -> [UInt8] {
        [UInt8](("{\"a\":\"" + String(repeating: "x", count: count - 8) + "\"}").utf8)
    }

    @Test("4096 bytes are taken, one more is too large", arguments: PushType.allCases.map(Optional.some) + [nil])
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

    @Test("An empty body is empty; a body that was cut short is too large whatever came of it")
    func emptyAndCut() {
        var push = PushFixture()
        push.body = []
        #expect(push.reason == .payloadEmpty)
        push.isBodyCutShort = true
        #expect(push.reason == .payloadTooLarge)
        push.body = Self.object(100)
        #expect(push.reason == .payloadTooLarge)
    }

    @Test("What is no JSON object counts as empty", arguments: ["[]", "1", "null", "\"a\"", "{", "{}}", " ", "hello"])
    func notAnObject(text: String) {
        var push = PushFixture()
        push.body = [UInt8](text.utf8)
        #expect(push.reason == .payloadEmpty)
    }

    @Test("Any object is accepted; content-available decides whether it wakes")
    func wakes() throws {
        for (text, wakes) in [
            ("{}", false), ("{\"mdm\":\"magic\"}", false), ("{\"aps\":{}}", false),
            ("{\"aps\":{\"alert\":\"x\",\"content-available\":1},\"own\":[1]}", true),
            ("{\"aps\":{\"content-available\":0}}", false),
        ] {
            var push = PushFixture()
            push.body = [UInt8](text.utf8)
            let checked = try push.check().get()
            #expect(checked.wakes == wakes && checked.warnings.isEmpty, "\(text)")
        }
    }

    @Test("A wrong content-available is warned of, and in development priority 10 of a background push")
    func warnings() throws {
        var push = PushFixture()
        push.set("apns-push-type", "background")
        push.set("apns-priority", "10")
        for (value, wrong) in [("1", false), ("0", false), ("true", true), ("1.0", true), ("\"1\"", true)] {
            push.body = [UInt8]("{\"aps\":{\"content-available\":\(value)}}".utf8)
            let expected: PushWarnings = wrong ? .contentAvailable : []
            push.rules.isForDevelopment = false
            #expect(try push.check().get().warnings == expected, "\(value)")
            push.rules.isForDevelopment = true
            let warnings = try push.check().get().warnings
            #expect(warnings == expected.union(.backgroundPriority), "\(value)")
            #expect(warnings.texts.count == (wrong ? 2 : 1))
        }
        push.set("apns-priority", "5")
        push.body = [UInt8]("{\"aps\":{\"content-available\":1}}".utf8)
        #expect(try push.check().get().warnings.isEmpty)
        push.set("apns-push-type", "alert")
        push.set("apns-priority", "10")
        #expect(try push.check().get().warnings.isEmpty)
    }
}
