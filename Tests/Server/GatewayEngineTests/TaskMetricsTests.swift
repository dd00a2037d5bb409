import Engine
import Foundation
import Gateway
import Policy
import Testing
import WakeGateTestKit

@Suite("Metrics of background tasks", .timeLimit(.minutes(15)))
struct TaskMetricsTests {
    private func metrics(_ rig: GatewayEngineRig, _ request: Int = 900) throws -> MetricsReading {
        try MetricsReading(rig.ask(request) { $0.metrics(request) }.text)
    }

    /// A gateway where a refresh has ended, and everything else has become of requests and transfers that may.
    private func busy() throws -> GatewayEngineRig {
        let rig = try GatewayEngineRig(SimulatedStore(), EngineRig.openToTasks())
        try rig.ask(1...5) { requests in
            requests.subscribe(1, tasks: ["refresh"], sessions: ["downloads"])
            for device in 1...4 { requests.register(device + 1, device) }
        }
        try rig.ask(6) { $0.submit(6, 1) }
        try rig.waitForWakes(1)
        let wake = try rig.lastWake()
        try rig.ask(7...16) { requests in
            requests.finish(7, 1, "downloads", 2)
            requests.report(8, wake, TaskResult.success)
            requests.submit(9, 2, "clean", .processing([]))
            requests.submit(10, 2, "clean", .processing([]))
            requests.submit(11, 2, "gone", .processing([]))
            requests.cancel(12, 2, "gone")
            requests.submit(13, 2, "export", .continued(.queue))
            requests.submit(14, 3, "clean", .processing([]))
            requests.unregister(15, 3)
            requests.finish(16, 4, "downloads", 3)
        }
        try rig.waitForWakes(2)
        return rig
    }

    @Test("Requests are told by kind and reason, each is in one place, and so is each transfer")
    func counts() throws {
        let rig = try self.busy()
        defer { rig.stop() }
        let reading = try self.metrics(rig)
        #expect(reading["wakegate_tasks_submitted_total", "kind", "appRefresh"] == 1)
        #expect(reading["wakegate_tasks_submitted_total", "kind", "processing"] == 4)
        #expect(reading["wakegate_tasks_submitted_total", "kind", "continued"] == 0)
        #expect(reading["wakegate_tasks_refused_total", "reason", "NotForeground"] == 1)
        #expect(reading["wakegate_tasks_replaced_total"] == 1)
        #expect(reading["wakegate_tasks_cancelled_total"] == 1)
        #expect(reading["wakegate_tasks_discarded_total", "reason", "unregistered"] == 1)
        #expect(reading["wakegate_tasks_waiting", "kind", "processing"] == 1)
        #expect(reading["wakegate_tasks_in_flight", "kind", "appRefresh"] == 0)
        #expect(reading["wakegate_tasks_held", "reason", "worker"] == 1)
        #expect(reading["wakegate_tasks_unaccounted"] == 0)
        #expect((reading["wakegate_task_memory_bytes"] ?? 0) > 0)
        #expect(reading["wakegate_sessions_finished_total"] == 5)
        #expect(reading["wakegate_sessions_waiting"] == 2)
        #expect(reading["wakegate_sessions_in_flight"] == 3)
        #expect(reading["wakegate_sessions_unaccounted"] == 0)
        #expect(reading["wakegate_wakes_launched_total"] == 0, "of pushes alone")
    }

    @Test("Ends of wakes are told by kind and result, and how long they took by kind")
    func wakes() throws {
        let rig = try self.busy()
        defer { rig.stop() }
        let reading = try self.metrics(rig)
        #expect(reading["wakegate_task_wakes_launched_total", "kind", "appRefresh"] == 1)
        #expect(reading["wakegate_task_wakes_launched_total", "kind", "urlSession"] == 1)
        let ended = reading.samples(of: "wakegate_task_wakes_ended_total")
        #expect(ended.count == TaskKind.allCases.count * TaskOutcome.allCases.count)
        #expect(ended.filter { $0.value > 0 }.map(\.labels) == [["kind": "appRefresh", "result": "success"]])
        #expect(reading["wakegate_task_wake_duration_seconds_count", "kind", "appRefresh"] == 1)
        #expect(reading["wakegate_task_wake_duration_seconds_count", "kind", "urlSession"] == 0)
    }

    @Test("The bound of the memory of tasks is the one in force")
    func memoryBound() throws {
        var configuration = EngineRig.openToTasks()
        configuration.taskBytesMax = 5000
        let rig = try GatewayEngineRig(SimulatedStore(), configuration)
        defer { rig.stop() }
        #expect(try self.metrics(rig, 900)["wakegate_task_memory_max_bytes"] == 5000)
        configuration.taskBytesMax = 7000
        rig.step { $0.configure(configuration) }
        #expect(try self.metrics(rig, 901)["wakegate_task_memory_max_bytes"] == 7000)
    }
}
