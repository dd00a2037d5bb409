import Foundation
import Glibc
import Testing

@Suite("The life of a worker's commands", .serialized, .timeLimit(.minutes(15)))
struct WorkerCommandTests {
    private let topic = "com.example.processes"
    private let token = String(repeating: "9c", count: 32)

    @Test("A command gets SIGTERM before its deadline, and its exit status counts until then")
    func expiring() throws {
        let gateway = try RunningGateway(["--set", "policy.executionWindow=8", "--set", "policy.maxAttempts=1"])
        let script = """
            trap 'echo stopped; sleep 0.5; exit 3' TERM; echo running; while :; do read -t 0.1 <> <(:); done
            """
        let worker = try WorkerProcess(gateway, topic: self.topic, script: script)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        #expect(try worker.line() == "running")
        #expect(try worker.line() == "stopped")
        try gateway.eventually("a result") { try gateway.results("noData") == 1 }
        #expect(try gateway.results("expired") == 0)
        try worker.says("is near; its command gets SIGTERM")
    }

    @Test("A command finds the gateway of its worker's options, and runs beyond its first deadline with more time")
    func extended() throws {
        // SIGTERM would come one second before the first deadline.
        let settings = ["policy.executionWindow=6", "policy.expirationLead=1", "policy.maxAttempts=1"]
        let gateway = try RunningGateway(settings.flatMap { ["--set", $0] })
        let authority = URL(fileURLWithPath: gateway.certificateAuthority)
        try FileManager.default.copyItem(at: authority, to: gateway.folder.appendingPathComponent("authority.pem"))
        let options = ["--gateway", "https://\(gateway.edge)", "--ca", "authority.pem"]
        let script = "cd / && '\(RunningGateway.program)' wake extend --seconds 30 && sleep 7 && echo done"
        let worker = try WorkerProcess(gateway, topic: self.topic, options, script: script)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        #expect(try worker.line()?.hasPrefix("the wake has ") == true)
        #expect(try worker.line() == "done")
        try gateway.eventually("a result") { try gateway.results("newData") == 1 }
        #expect(!worker.process.errors.contains("gets SIGTERM"))
    }

    @Test(
        "A command that ignores SIGTERM is killed at its deadline or two seconds later, with all that it started",
        arguments: ["policy.expirationLead=5", "policy.expirationLead=0"]
    )
    func killed(setting: String) throws {
        let gateway = try RunningGateway(
            ["--set", "policy.executionWindow=3", "--set", "policy.maxAttempts=1", "--set", setting]
        )
        let worker = try WorkerProcess(gateway, topic: self.topic, script: WorkerProcess.stubborn)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let group = try #require(try worker.line().flatMap { Int32($0) })
        #expect(WorkerProcess.isGroupThere(group))
        try gateway.eventually("the end of the group") { !WorkerProcess.isGroupThere(group) }
        try worker.says("has ended (deadline): it brought no result before its deadline; its command is stopped")
    }

    @Test("Processes that a command leaves behind are killed, and its result counts")
    func leftBehind() throws {
        let gateway = try RunningGateway()
        let worker = try WorkerProcess(gateway, topic: self.topic, script: "tail -f /dev/null & echo $$")
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let group = try #require(try worker.line().flatMap { Int32($0) })
        try gateway.eventually("a result") { try gateway.results("newData") == 1 }
        try gateway.eventually("the end of the group") { !WorkerProcess.isGroupThere(group) }
    }

    @Test("When the worker is killed its commands end, too, and so does their guard")
    func orphans() throws {
        let gateway = try RunningGateway()
        let worker = try WorkerProcess(gateway, topic: self.topic, ["--slots", "3"], script: WorkerProcess.stubborn)
        let groups = try (1...3).map { number in
            #expect(try gateway.push(String(repeating: "0\(number)", count: 32), topic: self.topic).status == 200)
            return try #require(try worker.line().flatMap { Int32($0) })
        }
        let children = try Self.children(of: worker.process.identifier)
        let commandGuard = try #require(children.first { !groups.contains($0) })
        #expect(children.count == 4)
        worker.process.send(SIGKILL)
        try gateway.eventually("the end of the groups") { !groups.contains(where: WorkerProcess.isGroupThere) }
        try gateway.eventually("the end of the guard") { !WorkerProcess.isGroupThere(commandGuard) }
        try gateway.eventually("three lost wakes") { try gateway.results("lost") == 3 }
    }

    @Test("A killed guard is replaced, and the new one knows the running commands")
    func guardKilled() throws {
        let gateway = try RunningGateway()
        let worker = try WorkerProcess(gateway, topic: self.topic, script: WorkerProcess.stubborn)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let group = try #require(try worker.line().flatMap { Int32($0) })
        let children = try Self.children(of: worker.process.identifier)
        let commandGuard = try #require(children.first { $0 != group })
        kill(commandGuard, SIGKILL)
        try worker.says("another is started")
        worker.process.send(SIGKILL)
        try gateway.eventually("the end of the group") { !WorkerProcess.isGroupThere(group) }
    }

    @Test("On SIGTERM no new wake is taken, the command may finish, its result arrives, and the exit status is 0")
    func stop() throws {
        let gateway = try RunningGateway()
        let worker = try WorkerProcess(
            gateway,
            topic: self.topic,
            ["--slots", "2"],
            script: "echo running; until [ -e go ]; do read -t 0.05 <> <(:); done; echo done"
        )
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        #expect(try worker.line() == "running")
        worker.process.send(SIGTERM)
        try worker.says("stopping; 1 running commands may end")
        #expect(try gateway.push(String(repeating: "77", count: 32), topic: self.topic).status == 200)
        try Data().write(to: gateway.folder.appendingPathComponent("go"))
        #expect(try worker.line() == "done")
        let ended = try worker.process.finish()
        #expect(ended.status == 0)
        // The second wake may have been sent before the gateway knew; then it was handled like the first.
        let count = 1 + ended.output.split(separator: "\n").filter { $0.hasSuffix("done") }.count
        let stats = try gateway.stats()
        #expect(stats.integer("wakes", "results", "newData") == count)
        #expect(stats.integer("pushes", "completed") == count)
    }

    @Test("A second SIGTERM stops the commands, too")
    func stopTwice() throws {
        let gateway = try RunningGateway()
        let worker = try WorkerProcess(gateway, topic: self.topic, script: WorkerProcess.stubborn)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let group = try #require(try worker.line().flatMap { Int32($0) })
        worker.process.send(SIGTERM)
        try worker.says("stopping")
        #expect(WorkerProcess.isGroupThere(group))
        #expect(try worker.process.end().status == 0)
        #expect(!WorkerProcess.isGroupThere(group))
        try gateway.eventually("a result") { try gateway.results("failed") == 1 }
    }

    @Test("A worker whose command cannot start uses up no attempts, says why, and recovers")
    func cannotStart() throws {
        let gateway = try RunningGateway(["--set", "policy.maxAttempts=1"])
        let script = gateway.folder.appendingPathComponent("handle")
        func write(interpreter: String) throws {
            try "#!\(interpreter)\necho handled\n".write(to: script, atomically: true, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: script.path)
        }
        try write(interpreter: "/missing/interpreter")
        let broken = try WorkerProcess(
            gateway,
            topic: self.topic,
            ["--name", "broken", "--slots", "4"],
            command: ["./handle"]
        )
        let healthy = try WorkerProcess(gateway, topic: self.topic, ["--slots", "4"], script: "exit 0")
        for number in 10..<50 {
            #expect(try gateway.push(String(repeating: "\(number)", count: 32), topic: self.topic).status == 200)
        }
        try gateway.eventually("40 results") { try gateway.results("newData") == 40 }
        var stats = try gateway.stats()
        #expect(stats.integer("wakes", "results", "failed") == 0 && stats.integer("pushes", "completed") == 40)
        #expect(try #require(stats.integer("wakes", "results", "lost")) >= 3)
        #expect(try healthy.process.end().status == 0)
        // A worker with a stalled stream subscribes again after a while, so only pending pushes stall it permanently.
        let waiting = (0..<3).map { String(repeating: "a\($0)", count: 32) }
        for token in waiting + [self.token] {
            #expect(try gateway.push(token, topic: self.topic).status == 200)
        }
        try gateway.eventually("a stall") {
            let stats = try gateway.stats()
            let reason = stats.value("workers", "stallReason") as? String ?? ""
            return stats.integer("workers", "stalled") == 1 && reason.contains("worker \"broken\"")
                && reason.contains("./handle cannot be started: No such file")
        }
        try gateway.eventually("a push that is held") {
            try gateway.push(self.token, topic: self.topic).headers["wakegate-held"] == "worker"
        }
        try gateway.eventually("the reason") {
            let why = try gateway.admin("/v1/devices/\(self.token)").value("why") as? String
            return why?.contains("./handle cannot be started") == true
        }
        // After the interpreter exists, the worker handles the push without a restart.
        try write(interpreter: "/bin/sh")
        #expect(try broken.line(within: 120) == "handled")
        try broken.says("./handle can be started again")
        #expect(broken.process.errors.components(separatedBy: "cannot be started").count == 2, "it is said once")
        #expect(broken.process.errors.components(separatedBy: "subscribed at").count == 2)
        try gateway.eventually("no stall") { try gateway.stats().integer("workers", "stalled") == 0 }
        stats = try gateway.stats()
        #expect(stats.integer("wakes", "results", "failed") == 0)
    }

    private static func children(of process: Int32) throws -> [Int32] {
        let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")
        return try threads.flatMap { thread in
            try String(contentsOfFile: "/proc/\(process)/task/\(thread)/children", encoding: .utf8)
                .split(separator: " ").compactMap { Int32($0) }
        }
    }
}

@Suite("Input and output of a worker's commands", .serialized, .timeLimit(.minutes(15)))
struct WorkerOutputTests {
    private let topic = "com.example.output"
    private let token = String(repeating: "07", count: 32)

    @Test("Each line of a command, on either output, begins with the id of its wake")
    func lines() throws {
        let gateway = try RunningGateway()
        let script = #"printf 'one\ntwo\n'; printf 'wrong\nleft' >&2; printf 'three'; echo "$WAKEGATE_WAKE" >id"#
        let worker = try WorkerProcess(gateway, topic: self.topic, script: script)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        try gateway.eventually("a result") { try gateway.results("newData") == 1 }
        let id = try String(contentsOf: gateway.folder.appendingPathComponent("id"), encoding: .utf8).dropLast()
        for text in ["one", "two", "three"] { #expect(try worker.process.line() == "\(id) \(text)") }
        try worker.says("\(id) wrong\n\(id) left\n")
    }

    @Test("With --output inherit the commands write directly to the worker's output")
    func inherit() throws {
        let gateway = try RunningGateway()
        let options = ["--output", "inherit"]
        let worker = try WorkerProcess(gateway, topic: self.topic, options, script: "echo plain; echo wrong >&2")
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        #expect(try worker.process.line() == "plain")
        try worker.says("\nwrong\n")
        let bad = try gateway.wakegate("worker", "--topic", self.topic, "--output", "x", "--", "true")
        #expect(bad.status == EX_USAGE)
        #expect(bad.errors.contains("write log or inherit"))
    }

    @Test("A command that writes endlessly is not blocked, the worker's memory is bounded, and dropped lines count")
    func loud() throws {
        let gateway = try RunningGateway()
        // The worker's output has no reader while the command writes 4 MB and then one long line.
        let script = "yes 0123456789012345678901234567890123456789 | head -c 4000000; head -c 100000 /dev/zero; echo"
        let worker = try WorkerProcess(gateway, topic: self.topic, script: script)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        try gateway.eventually("a result") { try gateway.results("newData") == 1 }
        let status = try String(contentsOfFile: "/proc/\(worker.process.identifier)/status", encoding: .utf8)
        let peak = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        let kilobytes = try #require(peak?.split(separator: " ").dropFirst().first.flatMap { Int($0) })
        #expect(kilobytes < 100_000)
        let ended = try worker.process.end()
        #expect(ended.status == 0)
        #expect(ended.output.contains("lines of the commands' output were dropped"))
        let longest = ended.output.split(separator: "\n").map(\.utf8.count).max() ?? 0
        #expect((40...4096 + 33).contains(longest))
    }

    @Test("A command that does not read its standard input, or closes it, gets its wake answered")
    func unread() throws {
        let gateway = try RunningGateway()
        let worker = try WorkerProcess(gateway, topic: self.topic, script: "exec 0<&-; echo closed")
        let filler = String(repeating: "x", count: 3900)
        let payload = #"{"aps":{"content-available":1},"filler":"\#(filler)"}"#
        #expect(try gateway.push(self.token, topic: self.topic, payload: payload).status == 200)
        #expect(try worker.line() == "closed")
        try gateway.eventually("a result") { try gateway.results("newData") == 1 }
    }

    @Test("A payload that grows when it is escaped reaches an SDK worker complete")
    func growth() throws {
        let gateway = try RunningGateway()
        let script = "read -r payload; echo ${#payload}"
        let worker = try WorkerProcess(gateway, topic: self.topic, script: script)
        let beginning = #"{"aps":{"content-available":1},"text":""#
        let count = (4096 - beginning.utf8.count - 2) / 2
        let payload = beginning + String(repeating: "\u{85}", count: count) + #""}"#
        #expect(try gateway.push(self.token, topic: self.topic, payload: payload).status == 200)
        #expect(try worker.line() == "\(beginning.utf8.count + 2 + 6 * count)")
        try gateway.eventually("a result") { try gateway.results("newData") == 1 }
    }
}
