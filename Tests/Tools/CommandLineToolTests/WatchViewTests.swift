import CommandLineTool
import Testing
import Wire

@Suite("The view of stats --watch")
struct WatchViewTests {
    private func event(
        second: Int,
        topics: Int = 1,
        window: Int = 30_000,
        perLaunch: Double = 5
    ) throws -> JSONValue {
        let listed = (0..<topics).map {
            """
            {"topic":"com.example.app\($0)","devices":3,"workers":1,"slots":4,"busy":1,"accepted":\(second * 10),
             "launched":\(second * 2),"pending":7,"waiting":2}
            """
        }
        return try JSONReader.read(
            """
            {"at":\(1_800_000_000_000 + second * 1000),
             "stats":{"pushes":{"accepted":\(second * 10),"rejected":{"BadDeviceToken":2},"completed":\(second * 2),
               "coalesced":\(second * 8),"discarded":{},"pending":0,"inFlight":0},
              "wakes":{"launched":\(second * 2),"results":{"newData":\(second * 2),"failed":0}},
              "workers":{"connected":1,"slots":4,"busy":1},"devices":{"registered":3,"held":{"battery":5,"worker":2}},
              "pushesPerLaunch":\(perLaunch)},
             "topics":{"count":\(topics),"listed":[\(listed.joined(separator: ","))]},
             "streams":{"count":1,"listed":[{"stream":"0-0-1-1","name":"edge-1","topic":"com.example.app0","slots":4,
               "busy":1,"wakes":\(second * 2),"lag":22000,"executionWindow":\(window),
               "state":"stalled"}]},
             "gateway":{"state":"ready","problem":null,"uptime":7260,"connections":3,"memory":42000000,"cpu":1}}
            """
        )
    }

    private func model(seconds: Int = 8, topics: Int = 1) throws -> WatchModel {
        var model = WatchModel(title: "127.0.0.1:9197")
        for second in 1...seconds { model.take(try self.event(second: second, topics: topics)) }
        return model
    }

    private func text(_ model: WatchModel, width: Int = 120, height: Int = 30) -> [String] {
        WatchView(model, size: Terminal.Size(width: width, height: height)).lines.map {
            $0.text(width: width, isColoured: false)
        }
    }

    @Test("The view shows rates, bars, holds, topics and workers")
    func whole() throws {
        let lines = self.text(try self.model())
        #expect(lines[0].hasPrefix("WakeGate 127.0.0.1:9197  ready  up 2 h 1 min  3 connections  42 MB"))
        #expect(lines[0].contains("all pushes accounted for"))
        let pushes = try #require(lines.first { $0.hasPrefix("pushes") })
        #expect(pushes.contains("10/s") && pushes.contains("███████") && pushes.contains("80 accepted"))
        #expect(lines.contains { $0.hasPrefix("coalesced") && $0.contains("80 %") && $0.contains("5 pushes a launch") })
        #expect(lines.contains { $0.hasPrefix("held") && $0.contains("battery 5   worker 2") })
        let topic = try #require(lines.first { $0.hasPrefix("com.example.app0") })
        #expect(topic.split(separator: " ").map(String.init) == ["com.example.app0", "3", "10", "2", "7", "2", "1/4"])
        let worker = try #require(lines.first { $0.hasPrefix("edge-1") })
        #expect(worker.contains("22 s") && worker.contains("stalled"))
        #expect(lines.last == "q quits")
    }

    @Test("Fewer pushes than launches are shown with both counts, if 80 columns have space for them")
    func few() throws {
        var model = WatchModel(title: "127.0.0.1:9197")
        model.take(try self.event(second: 1, perLaunch: 0.25))
        #expect(self.text(model, width: 80).contains { $0.hasSuffix("0.25 pushes a launch: 10 ended, 2 launches") })
    }

    @Test("The oldest wake is red past half of the execution window", arguments: [30_000, 43_999, 44_001, 3_600_000])
    func late(window: Int) throws {
        var model = WatchModel(title: "127.0.0.1:9197")
        model.take(try self.event(second: 1, window: window))
        let lines = WatchView(model, size: Terminal.Size(width: 120, height: 30)).lines.map {
            $0.text(width: 120, isColoured: true)
        }
        let worker = try #require(lines.first { $0.hasPrefix("edge-1") })
        #expect(worker.contains("\u{1B}[31m      22 s \u{1B}[0m") == (window < 44_000), "\(worker)")
    }

    @Test("The view never has more lines than the terminal, and says how many it leaves out", arguments: 1...40)
    func height(rows: Int) throws {
        let lines = self.text(try self.model(topics: 20), height: rows)
        #expect(lines.count <= rows)
        if rows > 15, rows < 35 { #expect(lines.contains { $0.hasPrefix("and ") && $0.hasSuffix(" more") }) }
        if rows >= 35 { #expect(!lines.contains { $0.hasPrefix("and ") }) }
    }

    @Test("A line is cut to the terminal's width", arguments: [1, 20, 80, 300])
    func width(columns: Int) throws {
        #expect(self.text(try self.model(), width: columns).allSatisfy { $0.count <= columns })
    }

    @Test("The view says that the gateway is gone, and its data stays")
    func lost() throws {
        var model = try self.model()
        model.lost("connection refused")
        let lines = self.text(model)
        #expect(lines[0].contains("gone, last heard of at 2027-01-15T08:00:08Z"))
        #expect(lines[1] == "connection refused")
        #expect(lines.contains { $0.hasPrefix("com.example.app0") })
        #expect(WatchView(model, size: Terminal.Size(width: 0, height: 0)).line == "connection refused")
        model.take(try self.event(second: 9))
        #expect(!self.text(model)[0].contains("gone"))
    }

    @Test("Without a terminal everything is in one line")
    func line() throws {
        let line = WatchView(try self.model(), size: Terminal.Size(width: 0, height: 0)).line
        #expect(
            line == "2027-01-15T08:00:08Z  pushes/s 10  launches/s 2  refused/s 0  waiting 0  inFlight 0  busy 1/4  "
                + "held battery 5, worker 2  state ready"
        )
    }

    @Test("Past samples fill the bars immediately; restarted counters are not shown as a rate")
    func past() throws {
        var model = WatchModel(title: "x")
        let fields = #"["at","accepted","launched","completed","coalesced","rejected","pending","inFlight"]"#
        let rows = (1...5).map { "[\(1_800_000_000_000 + $0 * 1000),\($0 * 10),0,0,0,0,0,0]" }
        model.past(try JSONReader.read("{\"fields\":\(fields),\"samples\":[\(rows.joined(separator: ","))]}"))
        #expect(model.rates(of: .accepted) == [10, 10, 10, 10])
        model.take(try self.event(second: 6))
        #expect(model.rates(of: .accepted).count == 5)
        var restarted = try self.model(seconds: 9)
        restarted.take(try self.event(second: 2))
        #expect(restarted.rates(of: .accepted).allSatisfy { $0 == 10 })
    }

    @Test(
        "Numbers of any size are shown, in any position",
        arguments: [
            "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e308", "-1e308", "1e999", "-1e999",
            "-0", "1e-400", "0.5",
        ]
    )
    func anyNumber(number: String) throws {
        let counts = #"{"a":\#(number),"b":\#(number)}"#
        func event(_ at: String, _ number: String) throws -> JSONValue {
            try JSONReader.read(
                """
                {"at":\(at),"stats":{"pushes":{"accepted":\(number),"rejected":\(counts),"completed":\(number),
                  "coalesced":\(number),"discarded":\(counts),"pending":\(number),"inFlight":\(number)},
                 "wakes":{"launched":\(number),"results":\(counts)},"limits":\(counts),"pushesPerLaunch":\(number),
                 "workers":{"connected":\(number),"slots":\(number),"busy":\(number)},
                 "devices":{"registered":\(number),"held":\(counts)}},
                 "topics":{"count":\(number),"listed":[{"topic":"t","devices":\(number),"accepted":\(number),
                  "launched":\(number),"pending":\(number),"waiting":\(number)},{"topic":"u"}]},
                 "streams":{"count":\(number),"listed":[{"stream":"1","wakes":\(number),"lag":\(number),
                  "executionWindow":\(number),"busy":\(number),"slots":\(number)}]},
                 "gateway":{"state":"ready","uptime":\(number),"connections":\(number),"memory":\(number)}}
                """
            )
        }
        for times in [["1000", "2000", "3000"], [number, number, "2000"], ["0", number, "5"]] {
            var model = WatchModel(title: "any")
            for (second, at) in times.enumerated() { model.take(try event(at, second == 1 ? number : "\(second)")) }
            model.take(try event(number, number))
            for height in [0, 3, 12, 40] { #expect(self.text(model, height: height).count <= max(1, height)) }
            #expect(WatchView(model, size: Terminal.Size(width: 0, height: 0)).line.contains("pushes/s"))
        }
        var past = WatchModel(title: "any")
        let fields = #"["at","accepted","launched","completed","coalesced","rejected","pending","inFlight"]"#
        let row = "[\(Array(repeating: number, count: 8).joined(separator: ","))]"
        past.past(try JSONReader.read("{\"fields\":\(fields),\"samples\":[\(row),\(row),[0,0,0,0,0,0,0,0],\(row)]}"))
        past.take(try self.event(second: 1))
        #expect(!self.text(past).isEmpty)
        #expect(StatsText.totals(try event("1", number)["stats"] ?? .null).contains("pushes accepted"))
    }

    @Test(
        "Bars are as high as their values, and missing ones are gaps",
        arguments: [
            ([0, 1, 2, 3, 4, 5, 6, 7], 8, nil, "▁▂▃▄▅▆▇█"), ([7, nil, 0], 3, nil, "█ ▁"), ([1, 2], 4, nil, "  ▅█"),
            ([1, 1, 1], 2, nil, "██"), ([0.5], 1, 1, "▅"), ([0, 0], 2, nil, "▁▁"), ([], 3, nil, "   "),
            ([.infinity, 1, -1], 3, nil, "▁▁▁"), ([.nan, 1e308], 2, nil, "▁▁"), ([9, -.infinity], 2, 1, "█▁"),
        ] as [([Double?], Int, Double?, String)]
    )
    func bars(values: [Double?], width: Int, maximum: Double?, text: String) {
        #expect(Sparkline.text(values, width: width, maximum: maximum) == text)
    }
}
