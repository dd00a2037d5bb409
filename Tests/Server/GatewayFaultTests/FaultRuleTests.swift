import Foundation
import Gateway
import HTTPTransport
import Testing
import Wire

@Suite("Reading fault rules")
struct FaultRuleReaderTests {
    private func read(_ text: String) throws(ConfigurationError) -> FaultRuleReader.Rules {
        try FaultRuleReader.rules(Data(text.utf8), name: "faults.json5")
    }

    /// Returns the faults of one rule, one per line.
    private func faults(ofRule text: String) -> [String] {
        let error = #expect(throws: ConfigurationError.self) {
            try FaultRuleReader.rule(Data(text.utf8), name: "the body")
        }
        return error?.faults.map(\.description) ?? []
    }

    private func effect(_ then: String) throws -> FaultEffect {
        let read = try FaultRuleReader.rule(Data("{then: \(then)}".utf8), name: "the body")
        #expect(read.warnings == [])
        return try #require(read.rules.first).effect
    }

    @Test("Every valid rule is accepted")
    func whole() throws {
        let token = String(repeating: "aB", count: 16)
        let read = try self.read(
            """
            { // The first one.
              rules: [
                { id: 'first', times: 3,
                  when: { token: ["\(token)"], topic: "a.b", keyID: ["K1", "K2"], pushType: ["alert", "voip"],
                          priority: [5, 1], from: 2, to: 9, every: 2, probability: .25, seed: 7, per: "device" },
                  then: { reason: "Unregistered", timestamp: 12, retryAfter: 4, delay: 250 } },
                { then: { stuck: true } },
              ],
            }
            """
        )
        #expect(read.warnings == [])
        let rule = try #require(read.rules.first)
        #expect(rule.id == "first")
        #expect(rule.times == 3)
        #expect(rule.isPerDevice)
        #expect(rule.condition.tokens == [try #require(token.withByteView { DeviceToken(hex: $0) })])
        #expect(rule.condition.topics == ["a.b"])
        #expect(rule.condition.keyIDs == ["K1", "K2"])
        #expect(rule.condition.types == [.alert, .voip])
        #expect(rule.condition.priorities == [.considerate, .passive])
        #expect(rule.occasion.from == 2 && rule.occasion.to == 9 && rule.occasion.every == 2)
        #expect(rule.occasion.probability == 0.25 && rule.occasion.seed == 7)
        var answer = FaultAnswer(status: 410, reason: "Unregistered")
        answer.timestamp = .at(12)
        answer.retryAfterSeconds = 4
        #expect(rule.effect.outcome == .refused(answer))
        #expect(rule.effect.delayMilliseconds == 250)
        #expect(read.rules.last?.id == nil)
        #expect(read.rules.last?.condition == FaultCondition())
        #expect(read.rules.last?.occasion == FaultOccasion())
        #expect(read.rules.last?.text == #"{"then":{"stuck":true}}"#)
    }

    @Test("Each outcome has its spelling")
    func outcomes() throws {
        var goAway = FaultGoAway(reason: "Shutdown")
        var table: [(String, FaultOutcome)] = [
            ("{delay: 5}", .passed),
            ("{reason: 'BadTopic'}", .refused(FaultAnswer(status: 400, reason: "BadTopic"))),
            ("{status: 503, reason: 'Shutdown'}", .refused(FaultAnswer(status: 503, reason: "Shutdown"))),
            ("{reset: 'REFUSED_STREAM'}", .reset(code: 7)), ("{reset: 'HTTP_1_1_REQUIRED'}", .reset(code: 13)),
            ("{goaway: 'Shutdown'}", .goneAway(goAway)), ("{goaway: {}}", .goneAway(goAway)),
            ("{stuck: true}", .stuck), ("{expireToken: true}", .tokenExpired), ("{close: true}", .closed),
            ("{dropReply: 'close'}", .replyLost(.close)), ("{dropReply: 'reset'}", .replyLost(.reset)),
            ("{dropReply: 'stuck'}", .replyLost(.stuck)),
        ]
        goAway = FaultGoAway(reason: "IdleTimeout")
        goAway.code = 11
        goAway.inFlight = .refuse
        let text = "{goaway: {reason: 'IdleTimeout', code: 'ENHANCE_YOUR_CALM', inFlight: 'refuse'}}"
        table.append((text, .goneAway(goAway)))
        for (then, outcome) in table { #expect(try self.effect(then).outcome == outcome, "\(then)") }
        for reason in APNSReason.allCases {
            let answer = FaultAnswer(status: reason.status, reason: reason.rawValue)
            #expect(try self.effect("{reason: '\(reason.rawValue)'}").outcome == .refused(answer))
        }
        var without = FaultAnswer(status: 410, reason: "ExpiredToken")
        without.timestamp = .absent
        #expect(try self.effect("{reason: 'ExpiredToken', timestamp: null}").outcome == .refused(without))
    }

    @Test("A stream limit ends with the connection, after a time or with a success, a window not with a success")
    func streamLimits() throws {
        let limits: [(String, FaultStreamLimit)] = [
            ("{streamLimit: 1}", FaultStreamLimit(limit: 1, end: .connection)),
            ("{streamLimit: {limit: 0, for: 250}}", FaultStreamLimit(limit: 0, end: .milliseconds(250))),
            ("{streamLimit: {limit: 3, until: 'success'}}", FaultStreamLimit(limit: 3, end: .success)),
        ]
        for (then, limit) in limits { #expect(try self.effect(then).streamLimit == limit, "\(then)") }
        let lasting = try self.effect("{streamWindow: 0}")
        #expect(lasting.streamWindow == FaultStreamWindow(bytes: 0, milliseconds: nil))
        #expect(lasting.outcome == .passed && lasting.streamLimit == nil)
        let timed = try self.effect("{streamWindow: {bytes: 4095, for: 250}, streamLimit: 1, reason: 'BadTopic'}")
        #expect(timed.streamWindow == FaultStreamWindow(bytes: 4_095, milliseconds: 250))
        #expect(timed.streamLimit != nil && timed.outcome != .passed)
    }

    @Test("nth and first are short for a range", arguments: [("{nth: 4}", 4), ("{first: 4}", 1)] as [(String, UInt64)])
    func ranges(when: String, from: UInt64) throws {
        let read = try FaultRuleReader.rule(Data("{when: \(when), then: {stuck: true}}".utf8), name: "the body")
        let occasion = try #require(read.rules.first).occasion
        #expect(occasion.from == from && occasion.to == 4)
    }

    @Test("A chance without a seed gets one, which the rule then shows")
    func seeds() throws {
        let text = "{when: {probability: 0.5, topic: 'a'}, then: {stuck: true}}"
        let rule = try #require(try FaultRuleReader.rule(Data(text.utf8), name: "the body").rules.first)
        #expect(rule.text.contains(#""seed":\#(rule.occasion.seed)"#))
        let again = try #require(try FaultRuleReader.rule(Data(rule.text.utf8), name: "the body").rules.first)
        #expect(again.occasion == rule.occasion)
        #expect(again.condition == rule.condition)
    }

    @Test(
        "Unusual but valid rules cause a warning",
        arguments: [
            (
                "{status: 418, reason: 'Teapot'}",
                "then.reason: \"Teapot\" is not a reason of APNs; clients may not know it"
            ),
            (
                "{status: 400, reason: 'BadTopics'}",
                "then.reason: \"BadTopics\" is not a reason of APNs; did you mean BadTopic?"
            ),
            ("{status: 403, reason: 'BadTopic'}", "then.status: APNs answers BadTopic with 400, not 403"),
            ("{goaway: 'Bye'}", "then.goaway.reason: \"Bye\" is not a reason of APNs; clients may not know it"),
        ]
    )
    func warnings(then: String, warning: String) throws {
        #expect(try FaultRuleReader.rule(Data("{then: \(then)}".utf8), name: "the body").warnings == [warning])
    }

    @Test(
        "A faulty rule is refused by the name of its key, with the remedy",
        arguments: [
            ("{}", "then: is missing; say what happens: then: { reason: \"ServiceUnavailable\" }"),
            ("{tehn: {stuck: true}, then: {stuck: true}}", "tehn: is not a key; did you mean then?"),
            ("{then: 5}", "then: is 5; write an object: { ... }"),
            ("{then: {sutck: true}}", "then.sutck: is not a key; did you mean stuck?"),
            (
                "{then: {}}",
                "then: does nothing; write one of reason, status, timestamp, retryAfter, delay, reset, goaway, "
                    + "streamLimit, streamWindow, stuck, expireToken, dropReply, close"
            ),
            (
                "{then: {stuck: true, close: true}}",
                "then: has stuck and close; write one of them; delay, streamLimit and streamWindow go with any"
            ),
            ("{then: {stuck: false}}", "then.stuck: is false; write true, or leave it out"),
            ("{then: {delay: -1}}", "then.delay: is -1; write a whole number from 0 to 3600000"),
            ("{then: {delay: '1'}}", "then.delay: is \"1\"; write a whole number from 0 to 3600000"),
            ("{then: {reset: 'REFUSED'}}", Self.codes),
            ("{then: {reset: 'CANCLE'}}", "then.reset: is \"CANCLE\"; did you mean CANCEL?"),
            ("{then: {dropReply: true}}", "then.dropReply: is true; write close, reset, stuck"),
            (
                "{then: {goaway: {inFlight: 'drpo'}}}",
                "then.goaway.inFlight: is \"drpo\"; did you mean drop?"
            ),
            (
                "{then: {streamLimit: {for: 1}}}",
                "then.streamLimit.limit: is missing; write the number of streams, such as 1"
            ),
            (
                "{then: {streamLimit: {limit: 1, for: 1, until: 'success'}}}",
                "then.streamLimit: has for and until; write one of them"
            ),
            (
                "{then: {streamLimit: {limit: 0, until: 'success'}}}",
                "then.streamLimit.limit: is 0; write a whole number from 1 to 1000000"
            ),
            ("{then: {streamWindow: 4096}}", "then.streamWindow.bytes: is 4096; write a whole number from 0 to 4095"),
            (
                "{then: {streamWindow: {for: 1}}}",
                "then.streamWindow.bytes: is missing; write the number of bytes, such as 0"
            ),
            (
                "{then: {streamWindow: {bytes: 1, for: 0}}}",
                "then.streamWindow.for: is 0; write a whole number from 1 to 3600000"
            ),
            (
                "{then: {streamWindow: {bytes: 1, until: 'success'}}}",
                "then.streamWindow.until: is not a key; the keys here are bytes, for"
            ),
            ("{then: {status: 503}}", "then.reason: is missing; write ServiceUnavailable, Shutdown"),
            ("{then: {status: 418}}", "then.reason: is missing; write any text"),
            ("{then: {status: 200, reason: 'BadTopic'}}", "then.status: is 200; write a whole number from 400 to 599"),
            (
                "{then: {reason: 'BadTopics'}}",
                "then.reason: is \"BadTopics\", which is not a reason of APNs; did you mean BadTopic?"
            ),
            (
                "{then: {reason: 'Teapot'}}",
                "then.reason: is \"Teapot\", which is not a reason of APNs; give a status with a reason of your own"
            ),
            ("{when: {tokn: 1}, then: {stuck: true}}", "when.tokn: is not a key; did you mean token?"),
            (
                "{when: {token: 'xyz'}, then: {stuck: true}}",
                "when.token: holds \"xyz\"; write a device token, 32 to 200 hexadecimal digits, or a list of them"
            ),
            ("{when: {priority: 7}, then: {stuck: true}}", "when.priority: holds 7; write 10, 5 or 1"),
            ("{when: {topic: []}, then: {stuck: true}}", Self.noTopic),
            ("{when: {nth: 0}, then: {stuck: true}}", "when.nth: is 0; write a whole number from 1 to 1000000000"),
            ("{when: {nth: 1, every: 2}, then: {stuck: true}}", "when: has nth and every; write one of them"),
            ("{when: {first: 1, to: 2}, then: {stuck: true}}", "when: has first and to; write one of them"),
            ("{when: {from: 5, to: 2}, then: {stuck: true}}", "when.to: is less than from; write from: 2, to: 5"),
            (
                "{when: {probability: 2}, then: {stuck: true}}",
                "when.probability: is 2; write a number above 0, at most 1"
            ),
            ("{when: {seed: 2}, then: {stuck: true}}", "when.seed: stands without probability; add probability: 0.1"),
            ("{when: {per: 'devise'}, then: {stuck: true}}", "when.per: is \"devise\"; did you mean device?"),
            ("{times: 0, then: {stuck: true}}", "times: is 0; write a whole number from 1 to 1000000000"),
            (
                "{id: 'reset', then: {stuck: true}}",
                "id: is \"reset\"; write 1 to 64 letters, digits, '.', '_' and '-', but not reset"
            ),
            ("[]", "the body: holds a list; write an object: { rules: [] }"),
        ]
    )
    func faults(text: String, expected: String) {
        #expect(self.faults(ofRule: text) == [expected])
    }

    private static let codes =
        "then.reset: is \"REFUSED\"; write NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, "
        + "SETTINGS_TIMEOUT, STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, "
        + "CONNECT_ERROR, ENHANCE_YOUR_CALM, INADEQUATE_SECURITY, HTTP_1_1_REQUIRED"
    private static let noTopic =
        "when.topic: is an empty list; write a topic such as \"com.example.app\", or a list of them"

    @Test("Every fault of a file is named, with its rule")
    func file() {
        func faults(_ text: String) -> [String] {
            let error = #expect(throws: ConfigurationError.self) { try self.read(text) }
            return error?.faults.map(\.description) ?? []
        }
        #expect(
            faults("{rules: [{then: {stuck: 1}}, {then: {close: true}, when: {nht: 2}}], rulez: 1}") == [
                "rulez: is not a key; did you mean rules?",
                "rules[0].then.stuck: is 1; write true, or leave it out",
                "rules[1].when.nht: is not a key; did you mean nth?",
            ]
        )
        let twice = "{rules: [{id: 'a', then: {stuck: true}}, {id: 'a', then: {stuck: true}}]}"
        #expect(faults(twice) == ["rules[1].id: is \"a\" again; give each rule an id of its own, or none"])
        #expect(faults("{}") == ["rules: is missing; write rules: [{ then: ... }]"])
        #expect(faults("{rules: [").count == 1)
        #expect(faults("{rules: [").first?.hasPrefix("faults.json5: is not JSON5") == true)
    }
}

@Suite("Delayed tasks of fault rules")
struct LoopFaultsTests {
    @Test("The number of delayed tasks is limited")
    func bounded() {
        let faults = LoopFaults(FaultService([]))
        let connection = ConnectionID(index: 1, generation: 1)
        let areTaken = (0...LoopFaults.delayedMax).map {
            faults.delay(.ends(.streamLimit, connection, change: UInt64($0)), dueAt: Int64($0 * 7919 % 997))
        }
        #expect(areTaken.filter { $0 }.count == LoopFaults.delayedMax)
        #expect(areTaken.last == false)
    }
}
