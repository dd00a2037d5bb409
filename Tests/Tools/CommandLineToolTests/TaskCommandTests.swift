import CommandLineTool
import HTTPClient
import Testing
import wakegate

@Suite("Command lines about background tasks", .timeLimit(.minutes(15)))
struct TaskCommandTests {
    @Test(
        "A submission contains exactly its options",
        arguments: [
            ("--kind appRefresh", #"{"identifier":"a.b","kind":"appRefresh"}"#),
            (
                "--kind appRefresh --earliest-begin 15m",
                #"{"identifier":"a.b","kind":"appRefresh","earliestBegin":900005}"#
            ),
            (
                "--kind processing --requires-network --requires-power",
                #"{"identifier":"a.b","kind":"processing","requiresNetworkConnectivity":true,"#
                    + #""requiresExternalPower":true}"#
            ),
            (
                #"--kind continued --title Say"it" --subtitle \ --strategy fail --resource gpu --resource x"#,
                #"{"identifier":"a.b","kind":"continued","title":"Say\"it\"","subtitle":"\\","strategy":"fail","#
                    + #""resources":["gpu","x"]}"#
            ),
        ]
    )
    func submission(options: String, body: String) throws {
        #expect(try TaskSubmission.body(.running("task submit ab a.b \(options)"), now: 5) == body)
    }

    @Test(
        "A contradictory submission is refused before it is sent",
        arguments: [
            (
                "--kind appRefresh --requires-power",
                "--requires-power is for --kind processing, and the task is of kind "
                    + "appRefresh; leave it out"
            ),
            (
                "--kind processing --title x",
                "--title is for --kind continued, and the task is of kind processing; "
                    + "leave it out"
            ),
        ]
    )
    func faults(options: String, message: String) throws {
        let parsed = try ParsedCommand.running("task submit ab a.b \(options)")
        #expect(throws: CommandFailure.usage(message)) { try TaskSubmission.body(parsed, now: 0) }
    }

    @Test(
        "A list is requested from the right path, with its filters",
        arguments: [
            ("", "/v1/tasks"),
            ("--topic a.b --kind urlSession --state running", "/v1/tasks?topic=a.b&kind=urlSession&state=running"),
            ("ab --kind processing", "/v1/devices/ab/tasks"),
        ]
    )
    func lists(options: String, path: String) throws {
        #expect(try TaskCommands.listPath(.running("task list \(options)")) == path)
    }

    @Test(
        "A filter that does not apply, or is invalid, is refused",
        arguments: [
            ("ab --topic t", "--topic is for all devices, and DEVICE has one topic; leave it out"),
            ("ab --json --state waiting", "--json shows the gateway's answer for DEVICE unchanged; leave --state out"),
        ]
    )
    func listFaults(options: String, message: String) throws {
        let parsed = try ParsedCommand.running("task list \(options)")
        #expect(throws: CommandFailure.usage(message)) { try TaskCommands.listPath(parsed) }
    }

    @Test(
        "A refusal has the reason and what to do",
        arguments: [
            (403, "NotPermitted", "the key topics.<topic>.tasks of the gateway's configuration permits it"),
            (403, "NotPermitted", #"tasks: ["a.b"] }"#),
            (409, "Unavailable", "`wakegate device conditions ab backgroundRefresh=available`"),
            (409, "NotForeground", "`wakegate device conditions ab appState=active`"),
            (409, "TooManyPendingTaskRequests", "`wakegate task cancel ab ID`"),
            (409, "ImmediateRunIneligible", "--strategy queue"),
            (404, "UnknownDevice", "`wakegate device register ab --topic TOPIC`"),
            (409, "TaskNotWaiting", "`wakegate task list ab` shows the tasks of the device"),
            (410, "Unregistered", "`wakegate device register ab --topic TOPIC`"),
        ]
    )
    func refusals(status: Int, reason: String, remedy: String) {
        let body = Array(#"{"reason":"\#(reason)","message":"No."}"#.utf8)
        #expect {
            try TaskRefusal.check(HTTPResponse(status: status, body: body), device: "ab", identifier: "a.b")
        } throws: {
            ($0 as? CommandFailure)?.status == .failed
                && "\($0)".hasPrefix("the gateway answered \(status) \(reason): No.\n")
                && "\($0)".contains(remedy)
        }
    }

    @Test("A limit of requests and a failure of the gateway pass, and end no view and no wait", arguments: 100...599)
    func passing(status: Int) {
        #expect(HTTPResponse(status: status).isPassing == (status == 429 || status >= 500))
    }

    @Test("Other refusals are shown as the gateway's, and a success is not an error")
    func otherAnswers() throws {
        try TaskRefusal.check(HTTPResponse(status: 204), device: nil)
        let shutdown = HTTPResponse(status: 503, body: Array(#"{"reason":"Shutdown"}"#.utf8))
        #expect(throws: CommandFailure(.failed, "the gateway answered 503 Shutdown")) {
            try TaskRefusal.check(shutdown, device: "ab")
        }
    }

    @Test("Conditions are subscribed to without wakes")
    func watch() throws {
        let parsed = try ParsedCommand.running("device watch --topic a.b --device ab --device cd")
        #expect(
            try DeviceWatchCommand.path(parsed)
                == "/v1/topics/a.b/wakes?slots=1&push=0&conditions=1&name=device%20watch&device=ab&device=cd"
        )
        let many = String(repeating: " --device ab", count: 65)
        #expect(throws: CommandFailure.usage("--device was given 65 times; give it at most 64 times")) {
            try DeviceWatchCommand.path(.running("device watch --topic t\(many)"))
        }
    }

    @Test("A worker accepts pushes unless --no-pushes is set, and the tasks and sessions that it names")
    func worker() throws {
        let tasks = try WorkerTasks(.running("worker --topic t --task a.b --task a.* --session s -- true"))
        #expect(tasks.tasks == ["a.b", "a.*"])
        #expect(tasks.sessions == ["s"])
        #expect(tasks.takesPushes && !tasks.hasGPU)
        let other = try WorkerTasks(.running("worker --topic t --task a --resource gpu --no-pushes -- true"))
        #expect(!other.takesPushes && other.hasGPU)
    }

    @Test(
        "A worker that accepts nothing, or has a useless option, is refused",
        arguments: [
            ("--no-pushes", "--no-pushes leaves nothing to take"),
            ("--resource gpu", "--resource is for background tasks"),
            ("--task a --resource tpu", "--resource is \"tpu\"; write gpu"),
        ]
    )
    func workerFaults(options: String, message: String) throws {
        #expect {
            try WorkerTasks(.running("worker --topic t \(options) -- true"))
        } throws: {
            "\($0)".hasPrefix(message)
        }
    }
}
