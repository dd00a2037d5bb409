import Foundation
import Glibc
import Testing

@Suite("Continued tasks in a terminal", .serialized, .timeLimit(.minutes(15)))
struct TaskWaitTests {
    private let topic = "com.example.tasks"
    private let export = "com.example.tasks.export"
    private let token = String(repeating: "7a5d", count: 16)

    /// Starts a gateway with a device that is in use.
    private func gateway(in folder: RestartFolder? = nil) throws -> RunningGateway {
        let gateway = try folder?.start() ?? RunningGateway()
        #expect(try gateway.wakegate("device", "register", self.token, "--topic", self.topic).status == 0)
        #expect(try gateway.wakegate("device", "conditions", self.token, "appState=active").status == 0)
        return gateway
    }

    /// Starts a worker whose command depends on the name of the task: it reports "part N" of four and waits for the
    /// file "goN", or ends with exit status 3 for `fail`, or reports nothing for `hang`.
    private func worker(_ gateway: RunningGateway) throws -> WorkerProcess {
        let script = #"""
            case $WAKEGATE_TASK in
                *fail) exit 3 ;;
                *hang) exec tail -f /dev/null ;;
            esac
            for n in 1 2 3 4; do
                echo "progress $n/4 part $n" >&$WAKEGATE_PROGRESS_FD
                until [ -e go$n ]; do tail -n 0 /dev/null; done
            done
            """#
        return try WorkerProcess(
            gateway,
            topic: self.topic,
            ["--task", "com.example.tasks.*", "--no-pushes"],
            script: script
        )
    }

    private func submit(_ gateway: RunningGateway, _ identifier: String, _ options: [String] = []) throws
        -> ChildProcess
    {
        let line = ["task", "submit", self.token, identifier, "--kind", "continued", "--wait"]
        return try ChildProcess(wakegate: line + options, folder: gateway.folder)
    }

    private func go(_ gateway: RunningGateway, _ number: Int) throws {
        try Data().write(to: gateway.folder.appendingPathComponent("go\(number)"))
    }

    @Test(
        "A terminal shows live bars that follow its size; Control-C ends the view, and cancels a waited-for task",
        arguments: ["watch", "wait", "cancel"]
    )
    func terminal(scene: String) throws {
        let gateway = try self.gateway()
        let worker = try self.worker(gateway)
        let settings = ["device": self.token, "folder": gateway.folder.path]
        let script = try PlayedScene.terminal([scene], of: gateway, settings)
        let faults = try PlayedScene.faults(script, scene)
        #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
        #expect(try script.finish().status == 0)
        let outcome = scene == "cancel" ? "cancelled" : "success"
        #expect(try gateway.stats().integer("tasks", "results", outcome) == 1)
        withExtendedLifetime(worker) {}
    }

    @Test("task submit --wait prints each step as a line, and exits with the task's status")
    func lines() throws {
        let gateway = try self.gateway()
        let wait = try self.submit(gateway, self.export, ["--title", "Export"])
        #expect(try wait.line()?.hasPrefix("scheduled, waits for a free slot") == true)
        #expect(try wait.line()?.hasPrefix("waiting  The continued task is due, but no stream") == true)
        let worker = try self.worker(gateway)
        for number in 1...4 {
            // The task may be seen before its first report.
            var line = try #require(try wait.line())
            if line.contains("no progress told yet") { line = try #require(try wait.line()) }
            #expect(line == "running  \(number * 25) %  \(number) of 4  Export: part \(number)")
            try self.go(gateway, number)
        }
        let ended = try wait.finish()
        #expect(ended.output == "success\n" && ended.status == 0, "\(ended.errors)")
        let failed = try self.submit(gateway, "\(self.export).fail", ["--json"])
        #expect(try failed.line()?.contains(#""disposition":"#) == true)
        #expect(try failed.line() == #"{"identifier":"\#(self.export).fail","ending":"failure"}"#)
        #expect(try failed.finish().status == 3)
        let hangs = try self.submit(gateway, "\(self.export).hang")
        try gateway.eventually("it runs") { try gateway.stats().integer("tasks", "inFlight") == 1 }
        #expect(try gateway.wakegate("task", "expire", self.token, "\(self.export).hang").status == 0)
        #expect(try hangs.finish().status == 4)
        withExtendedLifetime(worker) {}
    }

    @Test("A signal cancels the task in any state, and the exit status reports it")
    func cancelled() throws {
        let gateway = try self.gateway()
        let waiting = try self.submit(gateway, self.export)
        #expect(try waiting.line()?.hasPrefix("scheduled") == true)
        let dropped = try waiting.end(SIGINT)
        #expect(dropped.status == 5 && dropped.output.hasSuffix("cancelled\n"), "\(dropped.errors)")
        #expect(try gateway.stats().integer("tasks", "cancelled") == 1)
        let worker = try self.worker(gateway)
        let running = try self.submit(gateway, "\(self.export).hang")
        try gateway.eventually("it runs") { try gateway.stats().integer("tasks", "inFlight") == 1 }
        let ended = try running.end()
        #expect(ended.status == 5 && ended.output.hasSuffix("cancelled\n"), "\(ended.errors)")
        #expect(try gateway.stats().integer("tasks", "results", "cancelled") == 1)
        try worker.says("has ended (cancelled): ")
    }

    @Test("A task is not submitted if its end cannot be observed, and the error names the remedy")
    func edge() throws {
        let gateway = try self.gateway()
        let wait = try self.submit(gateway, self.export, gateway.edgeOptions)
        let ended = try wait.finish()
        #expect(ended.status == 1 && ended.errors.contains("name it with --gateway"), "\(ended.errors)")
        #expect(try gateway.stats().integer("tasks", "submitted") == 0)
    }

    @Test("The client waits for a gateway that goes away, and the task resumes from its last reported progress")
    func gone() throws {
        let folder = try RestartFolder()
        let first = try self.gateway(in: folder)
        let script = #"""
            echo "from ${WAKEGATE_RESUMED_FROM:-nothing}"
            [ -z "$WAKEGATE_RESUMED_FROM" ] || exit 0
            echo "progress 3/4" >&$WAKEGATE_PROGRESS_FD; exec tail -f /dev/null
            """#
        let options = ["--task", "com.example.tasks.*", "--no-pushes"]
        let worker = try WorkerProcess(first, topic: self.topic, options, script: script)
        let wait = try self.submit(first, self.export)
        #expect(try worker.line() == "from nothing")
        var line = try #require(try wait.line())
        while !line.contains("3 of 4") { line = try #require(try wait.line()) }
        // Progress is stored within a second, or together with another change of the device's tasks.
        let other = try first.wakegate("task", "submit", self.token, "com.example.other", "--kind", "processing")
        #expect(other.status == 0)
        try first.process.end(SIGKILL)
        try wait.says("does not answer")
        let next = try folder.start(edge: first.edge, admin: first.admin)
        let ended = try wait.finish()
        #expect(ended.status == 0 && ended.output.hasSuffix("success\n"), "\(ended.errors)")
        #expect(try worker.line() == "from 3/4")
        #expect(try next.stats().integer("tasks", "results", "lost") == 1)
    }

    @Test("A signal while the gateway is away cancels the task once it is back")
    func cancelledWhileGone() throws {
        let folder = try RestartFolder()
        let first = try self.gateway(in: folder)
        let wait = try self.submit(first, self.export)
        _ = try wait.line()
        try first.process.end(SIGKILL)
        try wait.says("does not answer")
        wait.send(SIGINT)
        try wait.says("is being cancelled")
        let next = try folder.start(edge: first.edge, admin: first.admin)
        let ended = try wait.finish()
        #expect(ended.status == 5 && ended.output.hasSuffix("cancelled\n"), "\(ended.errors)")
        #expect(try next.stats().integer("tasks", "cancelled") == 1)
    }

    @Test("Without a terminal the list prints a line for each change, or the gateway's JSON unchanged")
    func watch() throws {
        let gateway = try self.gateway()
        let list = ["task", "list", "--watch"]
        let lines = try ChildProcess(wakegate: list + [self.token], folder: gateway.folder)
        let worker = try self.worker(gateway)
        let wait = try self.submit(gateway, self.export)
        var line = try #require(try lines.line())
        while !line.contains("1 of 4") { line = try #require(try lines.line()) }
        #expect(line == "\(self.export)  continued  running  25 %  1 of 4  part 1" && !line.contains("\u{1B}"))
        let json = try ChildProcess(wakegate: list + ["--json"], folder: gateway.folder)
        #expect((try json.object()["tasks"] as? [Any])?.count == 1)
        for number in 1...4 { try self.go(gateway, number) }
        while line != "\(self.export) is over" { line = try #require(try lines.line()) }
        #expect(try wait.finish().status == 0)
        for process in [lines, json] {
            #expect(try process.end(SIGINT).status == 0)
        }
        withExtendedLifetime(worker) {}
    }
}
