import CommandLineTool
import Testing
import Wire

@Suite("Bars of continued tasks", .timeLimit(.minutes(15)))
struct TaskProgressTests {
    private func status(
        _ progress: String = #"{"completed":40,"total":100}"#,
        state: String = "running",
        more: String = ""
    ) throws -> TaskStatus {
        let text = """
            {"device":"0badcafe0badcafe","topic":"t","identifier":"a.export","kind":"continued","state":"\(state)",
             "submittedAt":1000,"wake":"w","deadline":61000,"why":"It waits.","progress":\(progress)\(more)}
            """
        return TaskStatus(try JSONReader.read(text))
    }

    @Test(
        "A bar has the given length, in eighths of a character",
        arguments: [
            (0, 10, "", "··········"), (0.5, 10, "█████", "·····"), (0.51, 10, "█████", "·····"),
            (0.5125, 10, "█████▏", "····"), (0.99, 10, "█████████▉", ""), (1, 10, "██████████", ""),
            (7, 3, "███", ""), (-1, 3, "", "···"), (.nan, 3, "", "···"), (0.5, 0, "", ""), (nil, 4, "", "····"),
        ] as [(Double?, Int, String, String)]
    )
    func bar(share: Double?, length: Int, done: String, left: String) {
        let bar = ProgressBar.bar(share, length)
        #expect(bar.done == done && bar.left == left)
        #expect(bar.done.count + bar.left.count == length)
    }

    @Test("The text says how much is done, how fast, and how much time is left")
    func facts() throws {
        var pace = RateMeter()
        pace.saw(20, at: 0)
        #expect(ProgressBar.facts(try self.status(), pace, now: 1000) == "40 %  40 of 100")
        pace.saw(40, at: 8000)
        #expect(ProgressBar.facts(try self.status(), pace, now: 1000) == "40 %  40 of 100  2.5/s  0:24 left")
        let open = try self.status(#"{"completed":7,"total":0}"#)
        #expect(ProgressBar.facts(open, RateMeter(), now: 1000) == "7 done" && open.progress?.share == nil)
        let silent = try self.status("null")
        #expect(ProgressBar.facts(silent, RateMeter(), now: 1000) == "no progress told yet  1:00 to its deadline")
        let finished = try self.status().finished
        #expect(silent.finished == silent && finished.progress?.share == 1)
    }

    @Test("A task without an advance for fifteen seconds has stalled, until it advances")
    func stall() throws {
        var pace = RateMeter()
        for second in 0...14 { pace.saw(40, at: Int64(second) * 1000) }
        #expect(!pace.isStalled)
        pace.saw(40, at: 15_000)
        #expect(pace.isStalled && pace.rate == 0)
        #expect(
            ProgressBar.facts(try self.status(), pace, now: 20_000)
                == "40 %  40 of 100  stalled  0:41 to its deadline"
        )
        #expect(!ProgressBar.facts(try self.status().finished, pace, now: 0).contains("stalled"))
        pace.saw(41, at: 16_000)
        #expect(!pace.isStalled && (pace.rate ?? 0) > 0)
        // Old progress does not reduce the current rate.
        for second in 17...40 { pace.saw(41 + Double(second - 16) * 10, at: Int64(second) * 1000) }
        #expect(abs((pace.rate ?? 0) - 10) < 0.01)
    }

    @Test("A line is never wider than the terminal, and has no bar without space for one", arguments: 0...120)
    func widths(width: Int) throws {
        let line = ProgressBar.line(try self.status(), RateMeter(), width: width, now: 0)
        let text = line.text(width: width, isColoured: false)
        #expect(text.count <= width)
        #expect(text.contains("█") == (width >= "40 %  40 of 100".count + 2 + ProgressBar.widths.lowerBound))
    }

    @Test(
        "Durations are printed as clock times",
        arguments: [(0.4, "0:00"), (7, "0:07"), (750, "12:30"), (11_100, "3:05:00")]
    )
    func clock(seconds: Double, text: String) {
        #expect(ProgressBar.clock(seconds) == text)
        #expect(ProgressBar.clock(-seconds) == "0:00" && ProgressBar.clock(.infinity) == "99:59:59")
    }

    // MARK: Lists

    private static let all = """
        {"tasks":[{"device":"cd","topic":"t","state":"waiting","identifier":"a.clean","kind":"processing",
           "why":"Wait."},
          {"device":"0badcafe0badcafe","topic":"t","state":"running","identifier":"a.export","kind":"continued",
           "title":"Export\\u001b[2J","subtitle":"first","submittedAt":1,"wake":"w","deadline":60000,
           "progress":{"completed":COUNT,"total":100,"subtitle":"film 3"}},
          {"device":"ef","topic":"t","state":"running","identifier":"a.refresh","kind":"appRefresh","wake":"x",
           "deadline":60000,"attempts":1}]}
        """

    private func model(_ counts: [Int], kind: String? = nil, state: String? = nil) throws -> TaskListModel {
        var model = TaskListModel(title: "here", kind: kind, state: state)
        for (second, count) in counts.enumerated() {
            let answer = try JSONReader.read(Self.all.replacing("COUNT", with: "\(count)"))
            model.take(answer, at: Int64(second) * 1000)
        }
        return model
    }

    private func lines(_ model: TaskListModel, width: Int = 100, height: Int = 20) -> [String] {
        TaskListView(model, size: Terminal.Size(width: width, height: height), now: 0).lines.map {
            $0.text(width: width, isColoured: false)
        }
    }

    @Test("The view shows a bar for each running continued task, then other running tasks, then waiting ones")
    func view() throws {
        let lines = self.lines(try self.model([40, 44]))
        #expect(lines.count == 6)
        #expect(lines[0] == "WakeGate here  2 running, 1 waiting")
        #expect(lines[1] == "Export?[2J  film 3  a.export  0badcafe0b…")
        #expect(lines[2].hasPrefix("█████████████████▌") && lines[2].hasSuffix("·  44 %  44 of 100  4.0/s  0:14 left"))
        #expect(lines[3].hasPrefix("a.refresh  appRefresh  running  ef  deadline "))
        #expect(lines[4] == "a.clean  processing  waiting  cd  Wait.")
        #expect(lines[5] == "q quits")
    }

    @Test("A reason without room behind its task is below it, wrapped")
    func reason() throws {
        var model = TaskListModel(title: "here")
        let why = "The task waits until the device is charging, and its interval has passed since the last launch."
        let task = #"{"identifier":"a.clean","kind":"processing","state":"waiting","device":"cd","why":"\#(why)"}"#
        model.take(try JSONReader.read(#"{"tasks":[\#(task)]}"#), at: 0)
        let lines = self.lines(model, width: 80)
        #expect(lines[1] == "a.clean  processing  waiting  cd")
        #expect(lines[2...3].map { $0.drop { $0 == " " } }.joined(separator: " ") == why)
    }

    @Test("The view fits any terminal, and says how many it does not show", arguments: 1...8)
    func small(height: Int) throws {
        let lines = self.lines(try self.model([40]), width: 30, height: height)
        #expect(lines.count <= height && lines.allSatisfy { $0.count <= 30 } && lines.last == "q quits")
        if height == 5 { #expect(lines[3] == "and 2 more") }
    }

    @Test("The view says that the gateway is gone, and keeps its data")
    func gone() throws {
        var model = try self.model([40])
        model.lost("The gateway does not answer.")
        let lines = self.lines(model)
        #expect(lines[0].contains("gone") && lines[1] == "The gateway does not answer." && lines[2].contains("film 3"))
        #expect(self.lines(TaskListModel(title: "here"))[1] == "waiting for the gateway")
        var empty = TaskListModel(title: "here")
        empty.take(try JSONReader.read(#"{"waiting":[],"running":[]}"#), at: 0)
        #expect(self.lines(empty)[1] == "no tasks")
    }

    @Test("Without a terminal each change and each end is one line")
    func changes() throws {
        var model = try self.model([40])
        let first = model.changes()
        #expect(first.split(separator: "\n").count == 3)
        let bar = "a.export  0badcafe0badcafe  continued  running  40 %  40 of 100  Export?[2J: film 3\n"
        #expect(first.hasPrefix(bar), "\(first)")
        #expect(model.changes() == "", "no changes")
        model.take(try JSONReader.read(Self.all.replacing("COUNT", with: "41")), at: 1000)
        #expect(model.changes() == bar.replacing("40 %  40", with: "41 %  41"))
        model.take(try JSONReader.read(#"{"tasks":[]}"#), at: 2000)
        #expect(
            model.changes() == "a.clean  cd is over\na.export  0badcafe0badcafe is over\na.refresh  ef is over\n"
        )
    }

    @Test("A device's list is narrowed to a kind and a state")
    func narrowed() throws {
        #expect(try self.model([1], kind: "continued").tasks?.map(\.key.name) == ["a.export"])
        #expect(try self.model([1], state: "waiting").tasks?.map(\.key.name) == ["a.clean"])
        #expect(try self.model([1], kind: "continued", state: "waiting").tasks == [])
    }
}
