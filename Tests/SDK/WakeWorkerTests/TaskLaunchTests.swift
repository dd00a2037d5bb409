import Synchronization
import Testing
import WakeGateTestKit
import WakeWorker
import Wire

@Suite("Launches that a program hands on", .serialized, .timeLimit(.minutes(15)))
struct TaskLaunchTests {
    private struct Fault: Error {}

    /// Creates a worker that passes every launch of `com.*` to `action`.
    private static func worker(
        of gateway: TaskGateway,
        _ action: @escaping @Sendable (TaskLaunch) async throws -> Void
    ) throws -> WakeWorker {
        let worker = try gateway.worker()
        try worker.backgroundTask(BackgroundTaskName("com.*", isSession: false), launched: action)
        return worker
    }

    @Test("Every kind is passed on, and its outcome reported", arguments: ["appRefresh", "processing", "continued"])
    func kinds(kind: String) async throws {
        let gateway = try await TaskGateway()
        let worker = try Self.worker(of: gateway) { launch in
            if launch.message.work != .task("com.a", title: "Export", subtitle: nil) { throw Fault() }
            if launch.message.wake == "bad" { throw Fault() }
        }
        let run = try await gateway.run(worker)
        try await gateway.wake("good", kind, #""task":"com.a","title":"Export""#)
        #expect(try await gateway.request("/v1/wakes/good").body == #"{"success":true}"#)
        try await gateway.wake("bad", kind, #""task":"com.a","title":"Export""#)
        #expect(try await gateway.request("/v1/wakes/bad").body == #"{"success":false}"#)
        try await gateway.end(worker, run)
    }

    @Test(
        "Progress is reported, and moves the deadline to the time left, or else to the deadline by the gateway's clock",
        // The time left counts from the answer, not from the wake, which may be some time ago on a busy machine.
        arguments: zip(
            [#"{"deadline":600099}"#, #"{"deadline":5,"timeLeft":660000}"#],
            [599..<602, 599..<660] as [Range<Int64>]
        )
    )
    func progress(answer: String, seconds: Range<Int64>) async throws {
        let gateway = try await TaskGateway()
        let ends = Mutex<[ContinuousClock.Instant]>([])
        let worker = try Self.worker(of: gateway) { launch in
            let deadline = launch.lease.deadline
            launch.report(TaskProgress(completed: 1, total: 2, title: "T\"", subtitle: "s"))
            while launch.lease.deadline == deadline { await Task.yield() }
            ends.withLock { $0 += [deadline, launch.lease.deadline] }
        }
        let run = try await gateway.run(worker)
        // By the gateway's clock, the wake's own deadline is 99. Before the second answer, that clock was set back.
        try await gateway.answer("POST", "/progress", 200, answer)
        try await gateway.wake("w", "continued", #""task":"com.a""#, timeLeft: 60_000)
        let told = try await gateway.request("/v1/wakes/w/progress")
        #expect(told.method == "POST")
        #expect(told.body == #"{"completed":1,"total":2,"title":"T\"","subtitle":"s"}"#)
        #expect(try await gateway.request("/v1/wakes/w").body == #"{"success":true}"#)
        let found = ends.withLock { $0 }
        try #require(found.count == 2)
        let moved = (found[1] - found[0]).components.seconds
        #expect(seconds.contains(moved), "\(moved) s")
        try await gateway.end(worker, run)
    }
}
