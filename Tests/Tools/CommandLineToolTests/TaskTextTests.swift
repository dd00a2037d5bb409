import CommandLineTool
import Testing
import Wire

@Suite("Text about background tasks", .timeLimit(.minutes(15)))
struct TaskTextTests {
    @Test(
        "The answer to a submission is printed as text",
        arguments: [
            (#"{"disposition":"launched","eligibleAt":null,"held":null}"#, "launched\n"),
            (
                #"{"disposition":"scheduled","eligibleAt":901000,"held":null}"#,
                "scheduled, may launch in 15 min (1970-01-01T00:15:01Z)\n"
            ),
            (#"{"disposition":"replaced","eligibleAt":null,"held":"power"}"#, "replaced, held: power\n"),
            (
                #"{"disposition":"scheduled","eligibleAt":null,"held":"worker"}"#,
                "scheduled, waits for a free slot of a worker that takes it\n"
            ),
            (
                #"{"disposition":"scheduled","eligibleAt":61000,"held":null,"hint":"It may be later."}"#,
                "scheduled, may launch in 1 min (1970-01-01T00:01:01Z)\nhint: It may be later.\n"
            ),
            (#"{"disposition":"scheduled","eligibleAt":-1e999}"#, "scheduled, may launch in 0 s (never)\n"),
            ("{}", "submitted\n"),
        ]
    )
    func submitted(answer: String, text: String) throws {
        #expect(TaskText.submitted(try JSONReader.read(answer), now: 1000) == text)
    }

    private static let ofDevice = """
        {"waiting":[{"identifier":"a.refresh","kind":"appRefresh","why":"The refresh waits.","attempts":0},
                    {"session":"photos","kind":"urlSession","count":3,"held":"network","eligibleAt":null}],
         "running":[{"identifier":"a.export","kind":"continued","deadline":60000,"attempts":1,"why":"It runs.",
                     "worker":"slow","progress":{"completed":10,"total":100,"subtitle":"frame\\u001b 10"}}]}
        """

    @Test("A device's tasks are a table, running ones first, with the reason of waiting ones")
    func device() throws {
        let text = TaskText.device(try JSONReader.read(Self.ofDevice))
        #expect(
            text == """
                identifier  kind        state
                a.export    continued   running  10/100 frame? 10, deadline 1970-01-01T00:01:00Z, attempt 1, worker slow
                a.refresh   appRefresh  waiting  The refresh waits.
                photos      urlSession  waiting  3 finished, held: network

                """
        )
        let waiting = TaskText.device(try JSONReader.read(Self.ofDevice), kind: "urlSession", state: "waiting")
        #expect(waiting.split(separator: "\n").count == 2)
        #expect(TaskText.device(.null) == "no tasks\n")
        let unknown = Self.ofDevice.replacing("\"total\":100", with: "\"total\":0")
        #expect(TaskText.device(try JSONReader.read(unknown)).contains("running  10 done frame? 10,"))
    }

    @Test("The tasks of all devices name the device and its topic")
    func all() throws {
        let answer = """
            {"tasks":[{"device":"ab","topic":"t","state":"waiting","identifier":"a","kind":"processing","why":"Wait."}]}
            """
        #expect(
            TaskText.all(try JSONReader.read(answer)) == """
                device  topic  identifier  kind        state
                ab      t      a           processing  waiting  Wait.

                """
        )
        #expect(TaskText.all(try JSONReader.read(#"{"tasks":[]}"#)) == "no tasks\n")
    }

    @Test("The explanation of a device has its tasks with their reasons, and its use")
    func explanation() throws {
        let json = """
            {"token":"ab","why":"Nothing is pending.","tasks":\(Self.ofDevice),"usage":{"lastUse":0,
            "habitualHours":[7,19]},"conditions":{},"recent":[{"at":0,"event":"launched","task":"a.refresh"}]}
            """
        let text = ExplainText.text(try JSONReader.read(json))
        #expect(text.contains("usage               last use 1970-01-01T00:00:00Z, habitually at hours 7, 19 UTC\n"))
        #expect(text.contains("\ntasks, running ones first:\n  a.export "))
        #expect(text.contains("  a.refresh  appRefresh  waiting  The refresh waits.\n"))
        #expect(text.contains("1970-01-01T00:00:00Z  launched  a.refresh\n"))
        let none = #"{"token":"ab","tasks":{"waiting":[],"running":[]},"usage":{"lastUse":null,"habitualHours":[]}}"#
        let quiet = ExplainText.text(try JSONReader.read(none))
        #expect(quiet.contains("usage               never used\n"))
        #expect(!quiet.contains("tasks"))
    }

    private static let stats = """
        {"tasks":{"submitted":9,"refused":{"NotPermitted":2,"Unavailable":0},"replaced":1,"cancelled":0,
         "discarded":{"unregistered":1},"results":{"success":4,"failure":1,"lost":0},"waiting":2,"inFlight":1},
         "sessions":{"finished":5,"refused":1,"completed":3,"discarded":{},"waiting":2,"inFlight":0,
         "results":{"success":1}}}
        """

    @Test("Statistics show tasks and sessions once there are any")
    func statistics() throws {
        let text = StatsText.totals(try JSONReader.read(Self.stats))
        #expect(text.contains("tasks submitted           9\n"))
        #expect(text.contains("  ended                   5 (failure 1, success 4)\n"))
        #expect(text.contains("  running                 1\n"))
        #expect(text.contains("tasks refused             2 (NotPermitted 2)\n"))
        #expect(text.contains("transfers finished        5\n"))
        #expect(text.contains("session wakes ended       1 (success 1)\n"))
        let none = #"{"tasks":{"submitted":0,"refused":{"NotPermitted":0}},"sessions":{"finished":0}}"#
        let quiet = StatsText.totals(try JSONReader.read(none))
        #expect(!quiet.contains("tasks") && !quiet.contains("transfers"))
    }

    @Test("The view that stays has a line each for tasks and sessions, once there are any")
    func view() throws {
        var model = WatchModel(title: "g")
        model.take(try JSONReader.read(#"{"at":1000,"stats":\#(Self.stats)}"#))
        let view = WatchView(model, size: Terminal.Size(width: 120, height: 30))
        let lines = view.lines.map { $0.text(width: 120, isColoured: false) }
        let words = lines.map { $0.split(separator: " ").joined(separator: " ") }
        #expect(words.contains("tasks 2 waiting, 1 running success 4 failure 1 refused 2"))
        #expect(words.contains("sessions 2 waiting, 0 in flight success 1 refused 1"))
        #expect(view.line.contains("  tasks waiting 2  running 1"))
        var quiet = WatchModel(title: "g")
        quiet.take(try JSONReader.read(#"{"at":1000,"stats":{"tasks":{"waiting":0,"results":{"success":0}}}}"#))
        let none = WatchView(quiet, size: Terminal.Size(width: 120, height: 30))
        #expect(!none.lines.contains { $0.text(width: 120, isColoured: false).hasPrefix("tasks") })
        #expect(!none.line.contains("tasks"))
    }
}
