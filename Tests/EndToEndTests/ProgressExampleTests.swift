import Foundation
import Glibc
import Testing

@Suite("Examples of continued tasks in other languages", .serialized, .timeLimit(.minutes(15)))
struct ProgressExampleTests {
    private let topic = "com.example.examples"
    private let task = "com.example.examples.export"
    private let token = String(repeating: "e9", count: 32)
    private static let steps = 50

    private func submit(_ gateway: RunningGateway) throws {
        let body = #"{"identifier":"\#(self.task)","kind":"continued","title":"Export"}"#
        #expect(try gateway.edge("/v1/devices/\(self.token)/tasks", "-d", body).status == 201)
    }

    /// Starts a worker in the language and waits until it has subscribed.
    private func start(_ language: ExampleTests.Language, _ gateway: RunningGateway) throws -> ChildProcess {
        let environment = ExampleTests.environment(gateway) + ["PYTHONUNBUFFERED=1", ExampleTests.pythonLibrary]
        let worker = try ChildProcess("env", environment + language.command("progress") + [self.topic, self.task])
        try gateway.eventually("a worker: \(worker.errors)") { try gateway.workerCount() == 1 }
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

    @Test(
        "A bar grows here and at the gateway, a cancelled task stops, and a lost one resumes from its last progress",
        arguments: ExampleTests.Language.allCases
    )
    func progress(language: ExampleTests.Language) throws {
        let gateway = try RunningGateway()
        #expect(try gateway.wakegate("device", "register", self.token, "--topic", self.topic).status == 0)
        #expect(try gateway.wakegate("device", "conditions", self.token, "appState=active").status == 0)
        let lost = try self.start(language, gateway)
        try self.submit(gateway)
        #expect(try self.bar(lost) == 1)
        #expect(try gateway.edge("/v1/devices/\(self.token)/tasks/\(self.task)", "-X", "DELETE").status == 204)
        try gateway.eventually("a word of it: \(lost.errors)") { lost.errors.contains("cancelled") }
        #expect(try gateway.stats().integer("tasks", "results", "cancelled") == 1)

        try self.submit(gateway)
        // Skip the lines that the worker wrote before it learned that the first task had ended.
        while try self.bar(lost) != 1 {}
        for step in 2...5 { #expect(try self.bar(lost) == step) }
        var told = 0
        try gateway.eventually("progress: \(lost.errors)") {
            guard let progress = try self.progress(gateway) else { return false }
            told = progress["completed"] as? Int ?? 0
            #expect(progress["total"] as? Int == Self.steps && progress["subtitle"] as? String == "step \(told)")
            return told >= 5
        }
        // Processes that curl starts in the shell end with the worker's group. At SIGTERM, the Python library lets the
        // task finish.
        lost.send(language == .python ? SIGKILL : SIGTERM)
        try gateway.eventually("a loss") { try gateway.workerCount() == 0 }
        let next = try self.start(language, gateway)
        let first = try self.bar(next)
        #expect(first > told)
        for step in first..<Self.steps { #expect(try self.bar(next) == step + 1) }
        try gateway.eventually("a success: \(next.errors)") {
            try gateway.stats().integer("tasks", "results", "success") == 1
        }
        let metrics = try gateway.admin("/metrics").body
        let reports = metrics.firstMatch(of: /\nwakegate_task_progress_reports_total (\d+)\n/).flatMap {
            Int($0.output.1)
        }
        // Progress is reported less often than there are steps.
        #expect((3..<Self.steps).contains(try #require(reports)))
    }
}
