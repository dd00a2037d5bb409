import Foundation
import Glibc
import Testing

@Suite("A gateway that is killed in the middle of continued tasks", .serialized, .timeLimit(.minutes(15)))
struct TaskCrashTests {
    private let devices = (0..<10).map { String(repeating: String(format: "%04x", 0x7A00 + $0), count: 16) }
    private let options = ["--set", "policy.continuedMax=10", "--set", "policy.progressWindow=600"]

    private static func name(_ number: Int) -> String { "com.example.sdk.\(number).count" }

    /// Returns the progress of each running task, by identifier.
    private func told(_ gateway: RunningGateway) throws -> [String: Int] {
        let tasks = try gateway.admin("/v1/tasks?kind=continued&state=running").value("tasks") as? [[String: Any]]
        return (tasks ?? []).reduce(into: [:]) { told, task in
            guard let name = task["identifier"] as? String else { return }
            told[name] = (task["progress"] as? [String: Any])?["completed"] as? Int ?? 0
        }
    }

    private func start(_ gateway: RunningGateway) throws {
        for device in self.devices {
            let registration = #"{"token":"\#(device)"}"#
            #expect(try gateway.edge("/v1/topics/\(SDKWorker.topic)/devices", "-d", registration).status == 201)
            let active = #"{"appState":"active"}"#
            let answer = try gateway.edge("/v1/devices/\(device)/conditions", "-X", "PATCH", "-d", active)
            #expect(answer.status == 200)
        }
        for number in 0..<100 {
            let body = #"{"identifier":"\#(Self.name(number))","kind":"continued"}"#
            let answer = try gateway.edge("/v1/devices/\(self.devices[number % 10])/tasks", "-d", body)
            #expect(answer.status == 201 && answer.value("disposition") as? String == "launched", "\(answer.body)")
        }
    }

    @Test("Each of a hundred tasks resumes from its last progress, ends once, and the counters balance")
    func hundred() throws {
        let folder = try RestartFolder()
        let first = try folder.start(self.options)
        let worker = try SDKWorker(
            "https://\(first.edge)",
            authority: first.certificateAuthority,
            ["--tasks", "com.example.sdk.*", "--slots", "128", "--form", "tasks"]
        )
        try worker.wait(for: "subscribed")
        try self.start(first)
        // The values that were shown, with their times. Only values shown at least two seconds before the kill count: a
        // crash may cost one second, and a slow disk another. All tasks continue to report at that time.
        var shown: [(at: ContinuousClock.Instant, told: [String: Int])] = []
        let span = Duration.seconds(2)
        var told: [String: Int] = [:]
        try first.eventually("progress of each: \(told)", within: 180) {
            let now = try self.told(first)
            shown.append((.now, now))
            while shown.count > 1, shown[1].at.duration(to: .now) >= span { shown.removeFirst() }
            guard shown[0].at.duration(to: .now) >= span else { return false }
            told = shown[0].told
            return told.count == 100 && told.values.allSatisfy { $0 >= 5 }
        }
        for _ in 0..<100 { #expect(try worker.wait(for: "counting").integer("from") == 0) }
        try folder.end(first, SIGKILL)
        for _ in 0..<100 { try worker.wait(for: "lost") }

        let next = try folder.start(self.options, edge: first.edge)
        var launches: [String: Int] = [:]
        for _ in 0..<100 {
            let event = try worker.wait(for: "counting", within: 120)
            let name = try #require(event.text("task"))
            #expect(launches[name] == nil, "\(name) runs twice")
            launches[name] = event.integer("from")
        }
        for (name, from) in launches {
            // A crash loses at most the reports of the last second.
            let least = try #require(told[name])
            #expect((least...50).contains(from), "\(name) resumed from \(from)")
        }
        for _ in 0..<100 { #expect(try worker.wait(for: "taskDelivered", within: 120).text("success") == "true") }
        let stats = try next.stats()
        #expect(stats.integer("tasks", "submitted") == 100 && stats.integer("tasks", "results", "success") == 100)
        #expect(stats.integer("tasks", "results", "lost") == 100)
        #expect(stats.integer("tasks", "waiting") == 0 && stats.integer("tasks", "inFlight") == 0)
        #expect(try next.admin("/metrics").body.contains("\nwakegate_tasks_unaccounted 0\n"))
        #expect(try worker.stop() == 0)
    }
}
