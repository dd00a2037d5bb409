import CommandLineTool
import Foundation
import Gateway
import HTTPClient
import Testing
import Wire

@Suite("Text of client commands")
struct ClientTextTests {
    @Test(
        "The answer to a push is printed as text",
        arguments: [
            (200, [("apns-id", "X"), ("wakegate-disposition", "launched")], "", "200 launched, apns-id X"),
            (
                200, [("wakegate-disposition", "scheduled"), ("wakegate-eligible-at", "1900")], "",
                "200 scheduled, may launch in 15 min (1970-01-01T00:31:40Z)"
            ),
            (
                200, [("wakegate-disposition", "coalesced"), ("wakegate-held", "battery")], "",
                "200 coalesced, held: battery"
            ),
            (
                200, [("wakegate-disposition", "scheduled"), ("wakegate-held", "worker")], "",
                "200 scheduled, waits for a free worker slot"
            ),
            (
                200, [("wakegate-disposition", "scheduled"), ("wakegate-eligible-at", "-9223372036854775808")], "",
                "200 scheduled, may launch in 0 s (never)"
            ),
            (
                200, [("wakegate-disposition", "scheduled"), ("wakegate-eligible-at", "9223372036854775808")], "",
                "200 scheduled"
            ),
            (400, [("apns-id", "X")], "{\"reason\":\"BadTopic\"}", "400 BadTopic, apns-id X"),
            (500, [], "<html>", "500 refused"),
        ] as [(Int, [(String, String)], String, String)]
    )
    func push(status: Int, headers: [(String, String)], body: String, text: String) {
        let response = HTTPResponse(
            status: status,
            headers: headers.map { (name: $0.0, value: $0.1) },
            body: Array(body.utf8)
        )
        let answer = PushAnswer(response, now: 1_000_000)
        #expect(answer.text == text)
        #expect(answer.isAccepted == (status == 200))
    }

    @Test(
        "Durations have two units at most",
        arguments: [
            (0, "0 s"), (59, "59 s"), (60, "1 min"), (899, "14 min 59 s"), (3600, "1 h"), (90_061, "1 d 1 h"),
            (-5, "0 s"),
        ]
    )
    func duration(seconds: Int, text: String) {
        #expect(DurationText.text(seconds: seconds) == text)
    }

    @Test(
        "Any number from a gateway can be shown for a device and a push",
        arguments: ["9223372036854775807", "-9223372036854775808", "1e308", "-1e999", "1e999", "-0", "1e-400"]
    )
    func anyNumber(number: String) throws {
        let push = #"{"priority":\#(number),"attempts":\#(number),"receivedAt":\#(number),"expiresAt":\#(number)}"#
        let event = #"{"at":\#(number),"event":"launched","detail":\#(number)}"#
        let device = try JSONReader.read(
            """
            {"registeredAt":\(number),"pending":\(push),"inFlight":\(push),"nextEligibleAt":\(number),
             "lastLaunchAt":\(number),"launchesInWindow":\(number),"windowEndsAt":\(number),"penalty":\(number),
             "conditions":{"batteryLevel":\(number)},"recent":[\(event)]}
            """
        )
        #expect(ExplainText.text(device).contains("recent"))
        var history = PushHistoryText("X")
        #expect(history.newLines(try JSONReader.read("{\"events\":[\(event)]}")).count == 1)
        let changes = #"{"changed":[{"key":"k","old":\#(number),"new":\#(number)}],"policyVersion":\#(number)}"#
        #expect(ReloadCommand.text(try JSONReader.read(changes)).contains("launch policy"))
    }

    @Test("Conditions become one JSON object, and unknown names are refused with the nearest")
    func conditions() throws {
        let report = try DeviceCommands.report(["batteryLevel=0.1", "charging=true", "appState=forceQuit"])
        #expect(report == "{\"batteryLevel\":0.1,\"charging\":true,\"appState\":\"forceQuit\"}")
        #expect(throws: CommandFailure.usage("unknown condition \"batteryLevl\"; did you mean batteryLevel?")) {
            try DeviceCommands.report(["batteryLevl=1"])
        }
        #expect(throws: CommandFailure.usage("\"charging\" has no value; write NAME=VALUE, such as batteryLevel=0.1")) {
            try DeviceCommands.report(["charging"])
        }
        // nan is not valid JSON. It is sent as text, so that the gateway does not receive broken syntax.
        // The gateway refuses a string with a message about the value; other texts would make the body malformed.
        for text in ["nan", ".5", "+1", "01", "1."] {
            #expect(try DeviceCommands.report(["batteryLevel=\(text)"]) == "{\"batteryLevel\":\"\(text)\"}")
        }
        #expect(try DeviceCommands.report(["batteryLevel=0x10"]) == "{\"batteryLevel\":\"0x10\"}")
    }

    @Test("The explanation of a device begins with the reason")
    func explain() throws {
        let json = """
            {"token":"ab","topic":"t","why":"It waits.","pending":{"apnsID":"X","priority":5,"attempts":0,"coalesced":3,
            "receivedAt":0,"expiresAt":1000},"inFlight":null,"held":["battery"],"nextEligibleAt":null,"penalty":1,
            "conditions":{"charging":false},"recent":[{"at":0,"event":"launched","apnsID":"X","detail":null}]}
            """
        let text = ExplainText.text(try JSONReader.read(json))
        #expect(text.hasPrefix("It waits.\n"))
        #expect(text.contains("apns-id X, priority 5, attempts 0, coalesced 3, received 1970-01-01T00:00:00Z"))
        #expect(text.contains("held by             battery"))
        #expect(text.contains("next eligible       at once"))
        #expect(text.contains("charging=false"))
        #expect(text.contains("1970-01-01T00:00:00Z  launched  X"))
        let discarded = #""event":"discard","detail":"expired","held":null,"waited":{"interval":5000,"worker":0}"#
        let expired = ExplainText.text(try JSONReader.read(#"{"recent":[{"at":0,\#(discarded)}]}"#))
        #expect(expired.hasSuffix("  1970-01-01T00:00:00Z  discard  expired, waited 5 s interval\n"))
    }

    @Test("A wake that was lost or returned is explained")
    func lost() throws {
        let event = #"{"at":0,"event":"result","apnsID":"X","detail":"lost"}"#
        let explained = "lost: its worker returned it or was cut off"
        #expect(ExplainText.text(try JSONReader.read("{\"recent\":[\(event)]}")).contains("result  X  \(explained)"))
        let push = try JSONReader.read("{\"events\":[\(event)]}")
        #expect(PushShowCommand.text(push, push).contains("result  \(explained)"))
        var history = PushHistoryText("X")
        #expect(history.newLines(push) == ["1970-01-01T00:00:00Z result \(explained)"])
    }

    @Test("The limits met do not include those that normal work reaches")
    func limits() throws {
        let stats = try JSONReader.read(#"{"limits":{"outputBytesMax":3,"headerListBytesMax":1}}"#)
        #expect(StatsText.totals(stats).contains("limits met                1 (headerListBytesMax 1)\n"))
        #expect(StatsText.routineLimits == GatewayLimit.routineNames)
    }

    @Test("The error for a missing gateway says how to start it")
    func unreachable() throws {
        let error = HTTPClientError(.unreachable, "connection refused")
        for (url, remedy) in [
            ("http://127.0.0.1:9197", "start one with `wakegate dev`, or name another with --gateway URL"),
            ("http://127.0.0.1:3197", "start it, or name another with --gateway URL"),
        ] {
            let location = try GatewayLocation(try ParsedCommand.running("stats --gateway \(url)"), side: .admin)
            #expect(
                location.explain(error) == "no gateway answers at \(url) (connection refused); \(remedy)"
            )
        }
    }

    @Test("Statistics list the parts of a sum")
    func stats() throws {
        let json =
            "{\"pushes\":{\"accepted\":14,\"discarded\":{\"expired\":2,\"exhausted\":0,\"forceQuit\":1}},"
            + "\"pushesPerLaunch\":1.75}"
        let text = StatsText.totals(try JSONReader.read(json))
        #expect(text.contains("pushes accepted           14\n"))
        #expect(text.contains("3 (expired 2, forceQuit 1)"))
        #expect(text.contains("1.75\n"))
    }

    @Test("Periods are columns, and the slowest workers are a table")
    func recent() throws {
        let stats = try JSONReader.read(
            """
            {"recent": {
            "hour": {"since": "2026-11-28T19:00:00Z", "accepted": 20, "completed": 3, "coalesced": 17,
            "launched": 4, "discarded": {"expired": 0}, "results": {"newData": 3, "lost": 1}},
            "day": {"since": "2026-11-27T20:00:00Z", "accepted": 200, "completed": 100, "coalesced": 98,
            "launched": 104, "discarded": {"expired": 2}, "results": {"newData": 100, "lost": 4}}},
            "durations": {"since": "2026-11-28T19:30:00Z", "count": 3, "p50Ms": 7, "p95Ms": 1240, "maxMs": 1240,
            "topics": [{"topic": "a.b", "kind": "push", "count": 3, "p50Ms": 7, "p95Ms": 1240, "maxMs": 1240}],
            "workers": [
            {"worker": "snail", "topic": "a.b", "kind": "push", "count": 1, "p50Ms": 1240, "p95Ms": 1240,
            "maxMs": 65300},
            {"worker": "", "topic": "a.b", "kind": "push", "count": 2, "p50Ms": 7, "p95Ms": 999, "maxMs": 999}]}}
            """
        )
        let periods = StatsText.recent(stats).split(separator: "\n").map(String.init)
        #expect(periods[0] == "                 last hour              last day")
        #expect(periods[3] == "  coalesced      17                     98")
        #expect(periods[4] == "  discarded      0                      2 (expired 2)")
        #expect(periods[6] == "  ended          4 (lost 1, newData 3)  104 (lost 4, newData 100)")
        #expect(periods[7] == "since            2026-11-28T19:00:00Z   2026-11-27T20:00:00Z")
        let durations = StatsText.durations(stats).split(separator: "\n").map(String.init)
        let period = #"{"recent": {"since": {"since": "2026-11-28T01:00:00Z", "until": "2026-11-28T02:00:00Z"}}}"#
        #expect(StatsText.recent(try JSONReader.read(period)).hasSuffix("until            2026-11-28T02:00:00Z\n"))
        #expect(durations[0] == "duration of wakes since 2026-11-28T19:30:00Z, slowest first")
        #expect(durations[1] == "worker         topic  kind  wakes  median  95 %    longest")
        #expect(durations[2] == "snail          a.b    push  1      1.2 s   1.2 s   65.3 s")
        #expect(durations[3] == "(no name)      a.b    push  2      7 ms    999 ms  999 ms")
        #expect(durations[4] == "(all workers)  a.b    push  3      7 ms    1.2 s   1.2 s")
        #expect(StatsText.recent(.null).isEmpty && StatsText.durations(.null).isEmpty)
    }

    @Test("A period that counts less than was asked for says so")
    func shortfall() throws {
        let parsed = try ParsedCommand.running("stats --topic a.b --since 1h")
        let stats = try JSONReader.read(#"{"recent":{"since":{"since":"1970-01-01T01:30:00Z"}}}"#)
        let text = StatsText.shortfall(stats, parsed, now: 7_200_000)
        #expect(text.hasPrefix("\ncounted since 1970-01-01T01:30:00Z, not the whole period"))
        #expect(text.contains("`wakegate push list --topic a.b --outcome coalesced --since 1h`"))
        #expect(StatsText.shortfall(stats, parsed, now: 9_000_000).isEmpty)
    }

    @Test("Less than one push per launch is explained, and zero is not shown as a number")
    func launchesWithoutPushes() throws {
        func text(_ ratio: String) throws -> String {
            let json = #"{"pushes":{"completed":1,"coalesced":0},"wakes":{"launched":4},"pushesPerLaunch":\#(ratio)}"#
            return StatsText.totals(try JSONReader.read(json))
        }
        #expect(try text("0.25").contains("pushes per launch         0.25 (1 ended, 4 launches: those again after"))
        #expect(try text("0").contains("pushes per launch         -\n"))
    }

    @Test("Gateways on one database are listed, with their differences")
    func gateways() throws {
        let json = """
            {"gateways": [
            {"number": 3, "name": "gw1:2197", "version": "1.0", "since": "2026-11-23T20:00:00Z", "workers": 2,
            "slots": 8, "busy": 1, "wakes": 1, "lag": 250, "draining": true, "own": true}],
            "configurationDifferences": ["policy.launchInterval", "topics.a.tasks"]}
            """
        let text = StatsText.totals(try JSONReader.read(json))
        #expect(text.contains("gateways                  1\n"))
        #expect(text.contains("  gw1:2197                number 3, 1.0, workers 2, slots busy 1 of 8, wakes 1, "))
        #expect(text.contains(", lag 250 ms, since 2026-11-23T20:00:00Z, stopping"))
        #expect(text.contains(", stopping, this one\n"))
        #expect(text.contains("  unlike configurations   policy.launchInterval, topics.a.tasks\n"))
        #expect(!StatsText.totals(try JSONReader.read("{}")).contains("gateways"))
    }

    @Test("A topic's webhook is shown below it, with why it rests")
    func webhooks() throws {
        let json = """
            {"topics": [{"topic": "a", "devices": 2, "workers": 1, "pending": 3, "inFlight": 0, "webhook": {
            "url": "https://a.example/", "state": "resting", "restingUntil": 1900000, "failures": 5,
            "lastError": "Connection refused"}}, {"topic": "b", "devices": 1, "workers": 0, "pending": 0,
            "inFlight": 0}, {"topic": "c", "webhook": {"url": "https://c.example/", "state": "active", "failures": 0}}]}
            """
        let lines = StatsText.topics(try JSONReader.read(json)).split(separator: "\n").map(String.init)
        #expect(lines.count == 6)
        let why = "resting until 1970-01-01T00:31:40Z, 5 failures: Connection refused"
        #expect(lines[2] == "  webhook https://a.example/ \(why)")
        #expect(lines[3].hasPrefix("b ") && lines[5] == "  webhook https://c.example/ active")
    }
}

@Suite("Text of events")
struct EventTextTests {
    private static let token = String(repeating: "0badcafe", count: 8)

    private func event(_ kind: LiveEvent.Kind, _ change: (inout LiveEvent) -> Void = { _ in }) -> String {
        var event = LiveEvent(at: 1_763_709_599_001, kind, topic: "com.example.app")
        event.device = Self.token
        change(&event)
        return EventText.line(.event(event))
    }

    @Test("Each event is a line with its time, kind, outcome and subject")
    func lines() {
        let (at, of) = ("2025-11-21T07:19:59Z", "com.example.app  \(Self.token)")
        let push = self.event(.push) {
            $0.disposition = "scheduled"
            $0.apnsID = "X"
        }
        #expect(push == "\(at) push        scheduled  \(of)  apns-id X")
        let launched = self.event(.launched) {
            $0.detail = "attempt 1, coalesced 0"
            $0.wake = "W"
        }
        #expect(launched == "\(at) launched    attempt 1, coalesced 0  \(of)  wake W")
        #expect(self.event(.result) { $0.outcome = "failed" } == "\(at) result      failed  \(of)")
        #expect(self.event(.refused) { $0.reason = "BadTopic" } == "\(at) refused     BadTopic  \(of)")
        #expect(self.event(.registered) == "\(at) registered  \(of)")
        #expect(self.event(.paused) { $0.device = nil } == "\(at) paused      com.example.app")
    }

    @Test("The number of missed events is shown, and terminal control characters are not")
    func others() {
        #expect(EventText.line(.missed(7)).contains("7 or more events were not shown"))
        #expect(self.event(.discarded) { $0.detail = "a\u{1b}[2Jb\n" }.contains("a?[2Jb?"))
    }

    @Test("The followed path has the filters of the options")
    func path() throws {
        #expect(try EventsCommand.path(.running("events --json")) == "/v1/events")
        let all = try EventsCommand.path(.running("events --outcome refused --device ab --topic a.b"))
        #expect(all == "/v1/events?topic=a.b&device=ab&outcome=refused")
    }
}
