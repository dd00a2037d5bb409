import Foundation
import Glibc
import Testing

@Suite("Examples of continued tasks in other languages", .serialized, .timeLimit(.minutes(15)))
struct ProgressExampleTests {
    private let topic = "com.example.examples"
    private let task = "com.example.examples.export"
    private let token = String(repeating: "e9", count: 32)
    private static let steps = 50

    private func prepare(_ gateway: RunningGateway) throws {
        #expect(try gateway.wakegate("device", "register", self.token, "--topic", self.topic).status == 0)
        #expect(try gateway.wakegate("device", "conditions", self.token, "appState=active").status == 0)
    }

    private func submit(_ gateway: RunningGateway) throws {
        let body = #"{"identifier":"\#(self.task)","kind":"continued","title":"Export"}"#
        #expect(try gateway.edge("/v1/devices/\(self.token)/tasks", "-d", body).status == 201)
    }

    /// Starts a worker in the language and waits until it has subscribed.
    private func start(_ language: ExampleTests.Language, _ gateway: RunningGateway) throws -> ChildProcess {
        let environment = ExampleTests.environment(gateway) + ["PYTHONUNBUFFERED=1", ExampleTests.pythonLibrary]
        let worker = try ChildProcess("env", environment + language.command("progress") + [self.topic, self.task])
        try gateway.eventually("a worker: \(worker.errors)") {
            try gateway.stats().integer("workers", "connected") == 1
        }
        return worker
    }

    /// Returns the position of the bar in the next line with a bar.
    private func bar(_ worker: ChildProcess) throws -> Int {
        while true {
            let line = try #require(try worker.line(), "\(worker.errors)")
            guard let match = line.firstMatch(of: /Export (█*)(·*) (\d+)\/50/) else { continue }
            let done = try #require(Int(match.output.3))
            #expect(match.output.1.count == done * 30 / Self.steps, "\(line)")
            #expect(match.output.1.count + match.output.2.count == 30, "\(line)")
            return done
        }
    }

    private func progress(_ gateway: RunningGateway) throws -> [String: Any]? {
        let answer = try gateway.edge("/v1/devices/\(self.token)/tasks")
        return (answer.value("running") as? [[String: Any]])?.first?["progress"] as? [String: Any]
    }

    @Test("A bar grows here and at the gateway, to the end", arguments: ExampleTests.Language.allCases)
    func whole(language: ExampleTests.Language) throws {
        let gateway = try RunningGateway()
        try self.prepare(gateway)
        let worker = try self.start(language, gateway)
        try self.submit(gateway)
        for step in 1...Self.steps {
            #expect(try self.bar(worker) == step)
            guard step == 5 else { continue }
            try gateway.eventually("progress: \(worker.errors)") {
                guard let progress = try self.progress(gateway), let done = progress["completed"] as? Int else {
                    return false
                }
                #expect(progress["total"] as? Int == Self.steps && progress["subtitle"] as? String == "step \(done)")
                return done > 1
            }
        }
        try gateway.eventually("a success: \(worker.errors)") {
            try gateway.stats().integer("tasks", "results", "success") == 1
        }
        let metrics = try gateway.admin("/metrics").body
        let reports = metrics.firstMatch(of: /\nwakegate_task_progress_reports_total (\d+)\n/).flatMap {
            Int($0.output.1)
        }
        // Progress is reported less often than there are steps.
        let count = try #require(reports)
        #expect((3..<Self.steps).contains(count))
    }

    @Test("A task that is cancelled stops, and the next one runs", arguments: ExampleTests.Language.allCases)
    func cancelled(language: ExampleTests.Language) throws {
        let gateway = try RunningGateway()
        try self.prepare(gateway)
        let worker = try self.start(language, gateway)
        try self.submit(gateway)
        #expect(try self.bar(worker) == 1)
        #expect(try gateway.edge("/v1/devices/\(self.token)/tasks/\(self.task)", "-X", "DELETE").status == 204)
        try gateway.eventually("a word of it: \(worker.errors)") { worker.errors.contains("cancelled") }
        #expect(try gateway.stats().integer("tasks", "results", "cancelled") == 1)
        try self.submit(gateway)
        // Skip the lines that the first worker wrote before it learned of its end.
        var done = try self.bar(worker)
        while done != 1 { done = try self.bar(worker) }
        #expect(try self.bar(worker) == 2)
        #expect(try gateway.stats().integer("tasks", "inFlight") == 1)
    }

    @Test("A worker resumes from the last progress of the previous one", arguments: ExampleTests.Language.allCases)
    func resumed(language: ExampleTests.Language) throws {
        let gateway = try RunningGateway()
        try self.prepare(gateway)
        let lost = try self.start(language, gateway)
        try self.submit(gateway)
        var told = 0
        try gateway.eventually("progress: \(lost.errors)") {
            told = try self.progress(gateway)?["completed"] as? Int ?? 0
            return told >= 5
        }
        // Processes that curl starts in the shell end with the worker's group. At SIGTERM, the Python library lets the
        // task finish.
        lost.send(language == .python ? SIGKILL : SIGTERM)
        try gateway.eventually("a loss") { try gateway.stats().integer("workers", "connected") == 0 }
        let next = try self.start(language, gateway)
        #expect(try self.bar(next) > told)
        try gateway.eventually("a success: \(next.errors)") {
            try gateway.stats().integer("tasks", "results", "success") == 1
        }
    }
}
