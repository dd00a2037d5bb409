import CommandLineTool
import Testing
import Wire
import wakegate

struct DeviceListCommandTests {
    @Test(
        "A page is requested with the filters of the list",
        arguments: [
            ("", nil, "/v1/devices?limit=7"),
            ("--topic a.b --state held --hold battery", nil, "/v1/devices?topic=a.b&state=held&hold=battery&limit=7"),
            ("--sort waiting", nil, "/v1/devices?sort=waiting&limit=7"),
            ("--prefix 0BAD", nil, "/v1/devices?prefix=0BAD&limit=7"),
            ("--state idle", "ab", "/v1/devices?state=idle&limit=7&after=ab"),
        ] as [(String, String?, String)]
    )
    func paths(options: String, after: String?, path: String) throws {
        #expect(DeviceListCommand.path(try .running("device list \(options)"), limit: 7, after: after) == path)
    }

    @Test("Devices are a table with one head however many pages there are")
    func table() throws {
        let device = try JSONReader.read(
            """
            {"token": "ab", "topic": "a.b", "state": "held", "held": ["battery", "priority"], "eligibleAt": null,
             "lastLaunchAt": 1700000000000}
            """
        )
        let head =
            "state     held               may launch at         last launch           topic                     token\n"
        let line =
            "held      battery            -                     2023-11-14T22:13:20Z  a.b                       ab\n"
        #expect(DeviceListCommand.text([device], withHeader: true) == head + line)
        #expect(DeviceListCommand.text([device], withHeader: false) == line)
        #expect(DeviceListCommand.text([], withHeader: true).isEmpty)
    }
}

struct TopicListCommandTests {
    @Test("A paused topic says so in the table of topics")
    func table() throws {
        let counts = #""devices": 2, "workers": 1, "pending": 2, "inFlight": 0"#
        let answer = try JSONReader.read(#"{"topics": [{"topic": "a.b", \#(counts), "paused": true}]}"#)
        let text = TopicCommands.text(answer)
        #expect(text.hasSuffix("\na.b    2        1        2        0          paused\n"), "\(text)")
    }
}

struct DeviceEventsCommandTests {
    @Test("The events of a device are requested by period and kind, and continue before a place")
    func paths() throws {
        let parsed = try ParsedCommand.running("device events ab --kind task")
        let path = "/v1/devices/ab/events?since=5&kind=task&limit=9&before=1.2"
        #expect(DeviceEventsCommand.path(parsed, ["since=5"], limit: 9, after: "1.2") == path)
    }
}

struct PushShowCommandTests {
    @Test("A push is requested by its apns-id, and by its device if one is named")
    func path() throws {
        #expect(PushShowCommand.path(try .running("push show 9a")) == "/v1/pushes/9a")
        #expect(PushShowCommand.path(try .running("push show 9a --device ab")) == "/v1/pushes/9a?device=ab")
    }

    @Test("A push has a line for each member, its steps, and the command that continues")
    func text() throws {
        let waiting = """
            {"apnsID": "9a", "state": "pending", "into": null, "reason": null, "receivedAt": 1700000000000,
             "device": "ab", "topic": "a.b", "priority": 5, "payloadBytes": 228, "attempts": 1, "worker": "builder",
             "held": ["network", "battery"], "expiresAt": 1700000900000, "coalesced": 3,
             "waited": {"interval": 900000, "hold": {"thermal": 61000}, "worker": 0}, "events": [
              {"at": 1700000000000, "event": "received", "detail": "scheduled", "other": null},
              {"at": 1700000000000, "event": "absorbed", "detail": null, "other": "9b"}]}
            """
        #expect(
            PushShowCommand.text(try JSONReader.read(waiting), try JSONReader.read(waiting)) == """
                push      9a
                state     pending
                device    ab
                topic     a.b
                priority  5
                received  2023-11-14T22:13:20Z
                payload   228 bytes
                attempts  1
                worker    builder
                held by   network, battery
                waited    15 min interval, 1 min 1 s thermal
                expires   2023-11-14T22:28:20Z
                replaced  3

                2023-11-14T22:13:20Z  received  scheduled
                2023-11-14T22:13:20Z  absorbed  9b

                see also: wakegate doctor ab

                """
        )
        let merged = """
            {"apnsID": "9a", "state": "coalesced", "into": "9c", "reason": null, "receivedAt": null, "device": null,
             "topic": null, "priority": null, "attempts": 0, "events": [
              {"at": 1700000000000, "event": "coalesced", "detail": null, "other": "9c"}]}
            """
        let push = try JSONReader.read(merged)
        let text = PushShowCommand.text(push, push)
        #expect(text.contains("state     coalesced into 9c\ndevice    -\n"))
        #expect(text.hasSuffix("coalesced  into 9c\n\nsee also: wakegate push show 9c\n"))
        func state(_ heir: String) throws -> String {
            let lines = PushShowCommand.text(push, try JSONReader.read(heir)).split(separator: "\n")
            #expect(lines.last == "see also: wakegate push show 9f")
            return String(lines[1])
        }
        let launched = #""events": [{"at": 1700000000000, "event": "launched"}]"#
        let completed =
            #"{"apnsID": "9f", "state": "completed", "waited": {"hold": {"battery": 38000}}, \#(launched)}"#
        let woken = "state     coalesced; woken as 9f at 2023-11-14T22:13:20Z (completed), waited 38 s battery"
        #expect(try state(completed) == woken)
        let discarded = #"{"apnsID": "9f", "state": "discarded", "reason": "expired", "events": []}"#
        #expect(try state(discarded) == "state     coalesced; 9f is discarded: expired")
    }
}

struct WhatIfCommandTests {
    private func request(_ words: String) throws -> String {
        let request = try WhatIfCommand.request(try ParsedCommand.running("what-if \(words)"))
        return "\(request.path) \(request.body.map { String(decoding: $0, as: UTF8.self) } ?? "GET")"
    }

    @Test("Parameters are sent as numbers, and times in seconds")
    func body() throws {
        let settings = "--set policy.launchInterval=10m --set dailyLaunches=7 --set maxInterval=1.5h"
        #expect(
            try self.request("ab \(settings)") == "/v1/devices/ab/what-if "
                + #"{"policy":{"launchInterval":600,"dailyLaunches":7,"maxInterval":5400}}"#
        )
        #expect(try self.request("ab") == #"/v1/devices/ab/what-if {"policy":{}}"#)
        let query = "launchInterval=600&dailyLaunches=7&maxInterval=5400"
        #expect(try self.request("--topic a.b \(settings)") == "/v1/topics/a.b/what-if?\(query) GET")
        #expect(try self.request("--topic a.b") == "/v1/topics/a.b/what-if GET")
        for words in ["", "ab --topic a.b", "ab --set launchInterval=m", "ab --set launchInterval=1w"] {
            #expect(throws: CommandFailure.self) { try self.request(words) }
        }
    }

    @Test("The outcomes are columns, and the other policy's is left out without changes")
    func text() throws {
        func answer(_ changes: String) throws -> JSONValue {
            try JSONReader.read(
                """
                {"from": 1700000000000, "pushes": 21, "tasks": 0, "changes": \(changes),
                 "recorded": {"launched": 2, "completed": 2, "coalesced": 19, "discarded": 0, "waiting": 0,
                              "meanWait": 1500, "maxWait": 30000},
                 "replayed": {"launched": 2, "completed": 2, "coalesced": 19, "discarded": 0, "waiting": 0,
                              "meanWait": null, "maxWait": null},
                 "whatIf": {"launched": 1, "completed": 1, "coalesced": 19, "discarded": 0, "waiting": 1,
                            "meanWait": 600000, "maxWait": 600000}}
                """
            )
        }
        let text = WhatIfCommand.text(try answer(#"{"launchInterval": 600}"#))
        let head = "21 pushes and 0 tasks since 2023-11-14T22:13:20Z\n\n              recorded  own policy  what if\n"
        #expect(text.hasPrefix(head))
        #expect(text.contains("waiting       0         0           1\n"))
        #expect(text.contains("mean wait     2 s       -           600 s\n"))
        let unchanged = WhatIfCommand.text(try answer("{}"))
        #expect(!unchanged.split(separator: "\n").contains { $0.contains("recorded  own") && $0.contains("what if") })
        #expect(text.contains("\n\nA replay assumes that workers are free") && text.hasSuffix("with what if.\n"))
    }

    @Test("Of a topic it says how many devices were replayed, and tasks have rows of their own")
    func topicText() throws {
        func outcome(_ launches: Int) -> String {
            """
            {"launches": \(launches), "completed": 2, "coalesced": 1, "discarded": 0, "waiting": 0,
             "meanWaitMs": 1500, "maxWaitMs": 30000,
             "tasks": {"launches": 4, "ended": 3, "replaced": 0, "discarded": 0, "waiting": 1,
                       "meanWaitMs": 60000, "maxWaitMs": null}}
            """
        }
        func answer(_ isWhole: Bool) throws -> JSONValue {
            try JSONReader.read(
                """
                {"topic": "a.b", "from": 1700000000000, "devices": 40, "examined": 10000, "registered": 12000,
                 "pushes": 3, "tasks": 4, "isWhole": \(isWhole), "changes": {"launchInterval": 600},
                 "recorded": \(outcome(2)), "current": \(outcome(2)), "proposed": \(outcome(5))}
                """
            )
        }
        let text = WhatIfCommand.text(try answer(false))
        let head = """
            3 pushes and 4 tasks of 40 devices since 2023-11-14T22:13:20Z
            Not everything was replayed: 10000 of 12000 devices were looked at


            """
        #expect(text.hasPrefix(head), "\(text)")
        #expect(text.contains("launches             2         2           5\n"), "\(text)")
        #expect(text.contains("tasks: mean wait     60 s      60 s        60 s\n"), "\(text)")
        #expect(!WhatIfCommand.text(try answer(true)).contains("Not everything"))
    }
}

struct PushListCommandTests {
    @Test("A page of pushes is requested with the filters of the list")
    func paths() throws {
        let plain = try ParsedCommand.running("push list")
        #expect(PushListCommand.path(plain, [], limit: 7, after: nil) == "/v1/pushes?limit=7")
        let narrowed = try ParsedCommand.running("push list --topic a.b --outcome expired")
        let path = "/v1/pushes?since=5&topic=a.b&outcome=expired&limit=9&after=1.2.3.4"
        #expect(PushListCommand.path(narrowed, ["since=5"], limit: 9, after: "1.2.3.4") == path)
        for line in ["--outcome expired,lost", "--outcome expired --outcome lost"] {
            let several = try ParsedCommand.running("push list \(line)")
            let path = "/v1/pushes?outcome=expired,lost&limit=7"
            #expect(PushListCommand.path(several, [], limit: 7, after: nil) == path)
        }
    }

    @Test("The word discarded means every reason, and the pushes of a device have a route of their own")
    func words() throws {
        let discarded = try ParsedCommand.running("push list --outcome lost,discarded")
        let all = "lost,expired,exhausted,forceQuit,unregistered,cancelled"
        #expect(PushListCommand.path(discarded, [], limit: 7, after: nil) == "/v1/pushes?outcome=\(all)&limit=7")
        let device = try ParsedCommand.running("push list --device ab")
        #expect(PushListCommand.path(device, [], limit: 7, after: nil) == "/v1/devices/ab/pushes")
        let push = try JSONReader.read(#"{"apnsID": "9a", "state": "discarded", "reason": "expired"}"#)
        let text = PushListCommand.text([push], device: "ab", withHeader: false)
        #expect(text.contains(/^- +expired +- +9a +- +ab\n$/))
    }

    @Test("A device token may look like a subcommand of push")
    func push() throws {
        #expect(try ParsedCommand.running("push 0be5 --topic a.b").arguments == ["0be5"])
    }

    @Test(
        "The period of a list is a duration",
        arguments: [
            ("90s", 9_910_000), ("30m", 8_200_000), ("1h", 6_400_000), ("7d", 0), ("h", nil), ("1", 9_999_000),
            ("0m", nil),
            ("-1h", nil), ("1w", nil), ("", nil), ("1.5m", 9_910_000),
        ] as [(String, Int64?)]
    )
    func since(text: String, moment: Int64?) throws {
        for option in ["since", "until"] {
            let period = try? PushListCommand.period(
                ParsedCommand.running("push list --\(option)=\(text)"),
                now: 10_000_000
            )
            #expect(period == moment.map { ["\(option)=\($0)"] })
        }
        #expect(try PushListCommand.period(try ParsedCommand.running("push list"), now: 10_000_000) == [])
    }

    @Test("A period ends after its start, and counts are kept for a day")
    func until() throws {
        let parsed = try ParsedCommand.running("push list --since 2h --until 30m")
        #expect(try PushListCommand.period(parsed, now: 10_000_000) == ["since=2800000", "until=8200000"])
        let reversed = try ParsedCommand.running("push list --since 30m --until 30m")
        #expect(throws: CommandFailure.self) { try PushListCommand.period(reversed, now: 10_000_000) }
        for (text, isCounted) in [("24h", true), ("1d", true), ("25h", false), ("7d", false)] {
            let parsed = try ParsedCommand.running("stats --since \(text)")
            let period = try? PushListCommand.period(parsed, spanMax: 86_400_000, now: 100_000_000)
            #expect((period != nil) == isCounted, "\(text)")
        }
    }

    @Test("Pushes are a table with one head however many pages there are")
    func table() throws {
        let push = try JSONReader.read(
            """
            {"apnsID": "cf05bfb4-141d-4f97-d59a-caf0a7cfbbe1", "device": "ab", "topic": null, "priority": 5,
             "receivedAt": 1700000000000, "outcome": "noWake", "outcomeAt": null}
            """
        )
        let lines = PushListCommand.text([push], withHeader: true).split(separator: "\n")
        #expect(lines.count == 2 && lines[0].hasPrefix("received              outcome"))
        let line =
            "2023-11-14T22:13:20Z  noWake             -                     cf05bfb4-141d-4f97-d59a-caf0a7cfbbe1  "
            + "-                         ab"
        #expect(lines.last.map(String.init) == line)
        #expect(PushListCommand.text([push], withHeader: false) == line + "\n")
        #expect(PushListCommand.text([], withHeader: true).isEmpty)
    }
}
