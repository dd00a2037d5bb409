import Foundation
import Glibc
import Testing

@Suite("The examples of refresh and processing tasks", .serialized, .timeLimit(.minutes(15)))
struct TaskExampleTests {
    private let topic = "com.example.examples"
    private let token = String(repeating: "ea", count: 32)

    /// A running example whose worker has subscribed.
    private func start(
        _ name: String,
        _ language: ExampleTests.Language,
        _ gateway: RunningGateway,
        _ argument: String
    ) throws -> ChildProcess {
        let environment = ExampleTests.environment(gateway) + [RunningGateway.path, ExampleTests.pythonLibrary]
        let command = language.command(name) + [self.topic, "\(self.topic).\(name)", self.token, argument]
        let worker = try ChildProcess("env", environment + command)
        try gateway.eventually("a worker: \(worker.errors)") { try gateway.workerCount() == 1 }
        return worker
    }

    private func waiting(_ gateway: RunningGateway) throws -> Int? {
        try gateway.stats().integer("tasks", "waiting")
    }

    @Test(
        "A refresh submits its next launch, and a worker that starts again leaves the pending one",
        arguments: [ExampleTests.Language.python, .shell]
    )
    func refresh(language: ExampleTests.Language) throws {
        let gateway = try RunningGateway(["--set", "policy.launchInterval=1"])
        #expect(try gateway.wakegate("device", "register", self.token, "--topic", self.topic).status == 0)
        let worker = try self.start("refresh", language, gateway, "1")
        for _ in 1...3 {
            #expect(try worker.line() == "\(self.topic).refresh launched, attempt 1", "\(worker.errors)")
        }
        #expect(try worker.end().status == 0)
        #expect(try self.waiting(gateway) == 1)
        let next = try self.start("refresh", language, gateway, "1")
        #expect(try next.line() == "\(self.topic).refresh launched, attempt 1", "\(next.errors)")
        #expect(try gateway.stats().integer("tasks", "replaced") == 0)
        #expect(try gateway.stats().integer("tasks", "results", "failure") == 0)
    }

    @Test(
        "Processing waits for a charger, stops when the device is used, and the next launch does the rest",
        arguments: [ExampleTests.Language.python, .shell]
    )
    func processing(language: ExampleTests.Language) throws {
        let gateway = try RunningGateway(["--set", "policy.processingInterval=1"])
        let folder = gateway.folder.appendingPathComponent("logs")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        for name in ["a", "c"] { try Data(name.utf8).write(to: folder.appendingPathComponent("\(name).log")) }
        // The handler waits in the middle until a test writes there.
        let pipe = folder.appendingPathComponent("b.log").path
        let made = unsafe mkfifo(pipe, 0o600)
        #expect(made == 0)
        #expect(try gateway.wakegate("device", "register", self.token, "--topic", self.topic).status == 0)
        func report(_ conditions: String...) throws {
            let arguments = ["device", "conditions", self.token] + conditions
            #expect(try ChildProcess.wakegate(arguments, folder: gateway.folder).status == 0)
        }
        func results(_ outcome: String) throws -> Int? { try gateway.stats().integer("tasks", "results", outcome) }
        try report("charging=false")
        let worker = try self.start("processing", language, gateway, folder.path)
        #expect(try gateway.wakegate("task", "list", self.token).output.contains("requires external power"))
        try report("charging=true")
        #expect(try worker.line() == "\(self.topic).processing compressed a.log", "\(worker.errors)")
        try report("appState=active")
        try gateway.eventually("an interruption: \(worker.errors)") { try results("interrupted") == 1 }
        let writer = try ChildProcess("bash", ["-c", "printf b >\"$1\"", "bash", pipe])
        var lines: [String] = []
        while lines.last?.contains(" stops before ") != true {
            lines.append(try #require(try worker.line(), "\(worker.errors)"))
        }
        try report("appState=background")
        while lines.last != "\(self.topic).processing compressed c.log" {
            lines.append(try #require(try worker.line(), "\(worker.errors)"))
        }
        #expect(try writer.finish().status == 0)
        try gateway.eventually("a success: \(worker.errors)") { try results("success") ?? 0 >= 1 }
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(left.sorted() == ["a.log.gz", "b.log.gz", "c.log.gz"])
    }

    @Test("The demonstrations of tasks and transfers go as they promise", arguments: ["tasks", "transfers"])
    func demonstration(name: String) throws {
        let path = RunningGateway.root.appendingPathComponent("deploy/lib/demo/\(name)").path
        // Threads of libdispatch leave signals blocked, by which the demonstration ends its processes.
        let variables = [RunningGateway.path, "WAKEGATE_DEMO_TIMEOUT_FACTOR=60"]
        let ended = try ChildProcess("env", ["--default-signal"] + variables + [path]).finish(within: 800)
        #expect(ended.status == 0, "\(ended.output) \(ended.errors)")
        #expect(ended.output.contains("\nok ") && !ended.output.contains("FAILED"), "\(ended.output)")
    }

    @Test("A variable multiplies the time limits of the demonstrations", arguments: [1, 2])
    func timeoutFactor(factor: Int) throws {
        // Each attempt takes 5 seconds by the shell's clock.
        let script = """
            work=$(mktemp -d) processes=""
            source \(RunningGateway.root.path)/deploy/lib/demo/common
            third() { SECONDS=$((SECONDS + 5)); ((++count == 3)); }
            eventually 10 third
            """
        let command = ["WAKEGATE_DEMO_TIMEOUT_FACTOR=\(factor)", "bash", "-c", script]
        #expect(try ChildProcess("env", command).finish().status == (factor == 1 ? 1 : 0))
    }
}
