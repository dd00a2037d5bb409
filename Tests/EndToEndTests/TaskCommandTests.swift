import Foundation
import Glibc
import Testing

@Suite("The commands of background tasks against a running gateway", .serialized, .timeLimit(.minutes(15)))
struct TaskCommandTests {
    private let topic = "com.example.tasks"
    private let refresh = "com.example.tasks.refresh"
    private let export = "com.example.tasks.export"
    private let token = String(repeating: "7a5c", count: 16)

    private func gateway(_ options: [String] = []) throws -> RunningGateway {
        let gateway = try RunningGateway(options)
        let registered = try gateway.wakegate("device", "register", self.token, "--topic", self.topic)
        #expect(registered.status == 0, "\(registered.errors)")
        return gateway
    }

    /// Runs a command, which must succeed, and returns the JSON object that it prints.
    private func json(_ gateway: RunningGateway, _ arguments: [String]) throws -> [String: Any] {
        let ended = try ChildProcess.run(RunningGateway.program, arguments, folder: gateway.folder)
        #expect(ended.status == 0, "\(ended.errors)")
        return try #require(try JSONSerialization.jsonObject(with: Data(ended.output.utf8)) as? [String: Any])
    }

    private func lists(_ gateway: RunningGateway) throws -> (waiting: [String], running: [String]) {
        let lists = try self.json(gateway, ["task", "list", self.token, "--json"])
        func names(_ state: String) -> [String] {
            (lists[state] as? [[String: Any]] ?? []).compactMap { ($0["identifier"] ?? $0["session"]) as? String }
        }
        return (names("waiting"), names("running"))
    }

    @Test("A task is submitted, listed with the reason that it waits for, replaced and cancelled")
    func submit() throws {
        let gateway = try self.gateway()
        let line = ["task", "submit", self.token, self.refresh, "--kind", "appRefresh"]
        let first = try self.json(gateway, line + ["--earliest-begin", "1h", "--json"])
        #expect(first["identifier"] as? String == self.refresh)
        #expect(first["disposition"] as? String == "scheduled")
        let eligible = try #require(first["eligibleAt"] as? Double)
        #expect(abs(eligible / 1000 - Date(timeIntervalSinceNow: 3600).timeIntervalSince1970) < 600)
        let again = try ChildProcess.run(RunningGateway.program, line, folder: gateway.folder)
        #expect(again.status == 0)
        #expect(again.output.hasPrefix("replaced"), "\(again.output)")
        #expect(try self.lists(gateway).waiting == [self.refresh])
        let all = try gateway.wakegate("task", "list", "--topic", self.topic, "--state", "waiting")
        #expect(all.output.contains(self.token) && all.output.contains(self.refresh), "\(all.output)")
        let device = try gateway.wakegate("stats", "--device", self.token)
        #expect(device.output.contains("tasks, running ones first:\n  \(self.refresh)"), "\(device.output)")
        let stats = try gateway.wakegate("stats")
        #expect(stats.output.contains("tasks submitted           2\n"), "\(stats.output)")
        #expect(try gateway.wakegate("task", "cancel", self.token, self.refresh).status == 0)
        let absent = try gateway.wakegate("task", "cancel", self.token, self.refresh)
        #expect(absent.status == 1 && absent.errors.contains("has no task \(self.refresh)"), "\(absent.errors)")
        #expect(try gateway.wakegate("task", "cancel", self.token, "--all").status == 0)
        #expect(try gateway.wakegate("task", "list", self.token).output == "no tasks\n")
    }

    @Test("A task without --earliest-begin launches on a worker that names it, and its command's exit status counts")
    func launched() throws {
        let gateway = try self.gateway()
        let script = #"echo "$WAKEGATE_KIND $WAKEGATE_TASK $WAKEGATE_DEVICE"; exit $(cat status)"#
        let status = gateway.folder.appendingPathComponent("status")
        let worker = try WorkerProcess(gateway, topic: self.topic, ["--task", "com.example.tasks.*"], script: script)
        try worker.says("the gateway warns: every-task-permitted; ")
        for (number, outcome) in [(0, "success"), (1, "failure")] {
            try Data("\(number)".utf8).write(to: status)
            // Each task has its own identifier, because the processing lane has an interval.
            let kind = number == 0 ? "appRefresh" : "processing"
            let submitted = try gateway.wakegate(
                "task",
                "submit",
                self.token,
                "\(self.refresh).\(number)",
                "--kind",
                kind
            )
            #expect(submitted.output == "launched\n", "\(submitted.output)\(submitted.errors)")
            #expect(try worker.line() == "\(kind) \(self.refresh).\(number) \(self.token)")
            try gateway.eventually("one \(outcome)") {
                try gateway.stats().integer("tasks", "results", outcome) == 1
            }
        }
    }

    @Test("A waiting task is launched by hand, and a running one expires by hand")
    func simulated() throws {
        let gateway = try self.gateway()
        let script = "trap 'echo stopped; exit 0' TERM; echo running; while :; do read -t 1 <> <(:); done"
        let options = ["--task", self.refresh, "--no-pushes"]
        let worker = try WorkerProcess(gateway, topic: self.topic, options, script: script)
        let line = ["task", "submit", self.token, self.refresh, "--kind", "appRefresh", "--earliest-begin", "1d"]
        #expect(try ChildProcess.run(RunningGateway.program, line, folder: gateway.folder).status == 0)
        let launch = try gateway.wakegate("task", "launch", self.token, self.refresh)
        #expect(launch.status == 0, "\(launch.errors)")
        #expect(try worker.line() == "running")
        #expect(try self.lists(gateway).running == [self.refresh])
        let expire = try gateway.wakegate("task", "expire", self.token, self.refresh)
        #expect(expire.status == 0, "\(expire.errors)")
        #expect(try worker.line() == "stopped")
        try worker.says("has ended (operator): ")
        #expect(try gateway.stats().integer("tasks", "results", "expired") == 1)
        let none = try gateway.wakegate("task", "expire", self.token, self.refresh)
        #expect(none.status == 1)
        #expect(none.errors.contains("409"), "\(none.errors)")
    }

    @Test("A continued task reports its progress, which lists show, and continues past the first deadline")
    func continued() throws {
        let gateway = try self.gateway(["--set", "policy.progressWindow=4"])
        let script = #"""
            for n in 1 2 3 4 5 6; do
                echo "progress $n/6 part $n" >&$WAKEGATE_PROGRESS_FD
                echo $n; read -t 1.2 <> <(:)
            done; until [ -e go ]; do tail -n 0 /dev/null; done
            """#
        let worker = try WorkerProcess(gateway, topic: self.topic, ["--task", self.export], script: script)
        let line = ["task", "submit", self.token, self.export, "--kind", "continued", "--title", "Export"]
        let background = try ChildProcess.run(RunningGateway.program, line, folder: gateway.folder)
        #expect(background.status == 1)
        #expect(background.errors.contains("409 NotForeground"), "\(background.errors)")
        #expect(try gateway.wakegate("device", "conditions", self.token, "appState=active").status == 0)
        let submitted = try ChildProcess.run(RunningGateway.program, line, folder: gateway.folder)
        #expect(submitted.output == "launched\n", "\(submitted.errors)")
        for number in 1...6 { #expect(try worker.line() == "\(number)") }
        try gateway.eventually("the last progress") {
            try gateway.wakegate("task", "list", self.token).output.contains("6/6 part 6")
        }
        try Data().write(to: gateway.folder.appendingPathComponent("go"))
        try gateway.eventually("a success") { try gateway.stats().integer("tasks", "results", "success") == 1 }
    }

    @Test("Finished transfers wake a worker that names their session, with their number, and an id counts once")
    func finished() throws {
        let gateway = try self.gateway()
        let line = ["task", "finished", self.token, "photos", "--count", "3", "--id", "one"]
        for _ in 0..<2 {
            let told = try ChildProcess.run(RunningGateway.program, line, folder: gateway.folder)
            #expect(told.status == 0, "\(told.errors)")
        }
        #expect(try gateway.stats().integer("sessions", "finished") == 3)
        let script = #"echo "$WAKEGATE_KIND $WAKEGATE_SESSION $WAKEGATE_COUNT""#
        let options = ["--session", "photos", "--no-pushes"]
        let worker = try WorkerProcess(gateway, topic: self.topic, options, script: script)
        #expect(try worker.line() == "urlSession photos 3")
        try gateway.eventually("three completed") { try gateway.stats().integer("sessions", "completed") == 3 }
    }

    @Test("device watch shows a change of conditions as the gateway knows them then")
    func watch() throws {
        let gateway = try self.gateway()
        let line = ["device", "watch", "--topic", self.topic]
        let watch = try ChildProcess(RunningGateway.program, line, folder: gateway.folder)
        try gateway.eventually("a subscription; \(watch.errors)") { watch.errors.contains("subscribed at") }
        #expect(try gateway.wakegate("device", "conditions", self.token, "thermalState=serious").status == 0)
        let text = try #require(try watch.line())
        let change = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(change?["device"] as? String == self.token)
        #expect(change?["thermalState"] as? String == "serious")
        #expect(change?["appState"] as? String == "background")
        watch.send(SIGTERM)
        #expect(try watch.finish().status == 0)
    }
}
