import Synchronization
import Testing
import WakeGateTestKit
import WakeWorker
import Wire

@Suite("Launches that a program hands on", .serialized, .timeLimit(.minutes(15)))
struct TaskLaunchTests {
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
        let worker = try gateway.worker()
        let name = BackgroundTaskName("com.*", isSession: false)
        try worker.backgroundTask(name) { (launch: TaskLaunch) in
            #expect(launch.message.work == .task("com.a", title: "Export", subtitle: nil))
            let deadline = launch.lease.deadline
            launch.report(TaskProgress(completed: 1, total: 2, title: "T\"", subtitle: "s"))
            while launch.lease.deadline == deadline { await Task.yield() }
            ends.withLock { $0 += [deadline, launch.lease.deadline] }
        }
        let run = try await gateway.run(worker)
        // By the gateway's clock, the wake's own deadline is 99. Before the second answer, that clock was set back.
        try await gateway.answer("POST", "/progress", 200, answer)
        try await gateway.wake("w", "continued", #""task":"com.a","title":"Export""#, timeLeft: 60_000)
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
