import Foundation
import Testing
import WakeGateTestKit
import WakeWorker

@Suite("The forms in which iOS has background tasks", .timeLimit(.minutes(15)))
struct AppleNameTests {
    private static let token = String(repeating: "ab", count: 16)

    /// An executor that runs its jobs on its own queue.
    private final class QueueExecutor: TaskExecutor {
        private let queue = DispatchQueue(label: "executor")
        private let key = DispatchSpecificKey<Bool>()

        init() { self.queue.setSpecific(key: self.key, value: true) }

        /// True in a job of this executor.
        var isCurrent: Bool { DispatchQueue.getSpecific(key: self.key) == true }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            let executor = unsafe self.asUnownedTaskExecutor()
            self.queue.async { unsafe job.runSynchronously(on: executor) }
        }
    }

    @Test("A function that is not async submits a request, and its handler gets the refusal", arguments: [201, 409])
    func synchronous(status: Int) async throws {
        let gateway = try await TaskGateway()
        let scheduler = try gateway.worker(devices: [Self.token]).scheduler
        let answer = #"{"identifier":"a","disposition":"scheduled","reason":"Unavailable","message":"No."}"#
        try await gateway.answer("POST", "/tasks", status, answer)
        let (errors, source) = AsyncStream<BackgroundTaskError?>.makeStream()
        scheduler.submitTaskRequest(.appRefresh("a")) { error in
            source.yield(error)
            source.finish()
        }
        for await error in errors { #expect(error?.code == (status == 201 ? nil : .unavailable)) }
        #expect(try await gateway.request("/tasks").body == #"{"identifier":"a","kind":"appRefresh"}"#)
    }

    @Test("A launch handler runs on the executor that was registered with it")
    func executor() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        let executor = QueueExecutor()
        try worker.scheduler.register(forTaskWithIdentifier: "com.a", using: executor) { task in
            task.setTaskCompleted(success: executor.isCurrent)
        }
        try worker.scheduler.register(forTaskWithIdentifier: "com.b") { task in
            task.setTaskCompleted(success: !executor.isCurrent)
        }
        let run = try await gateway.run(worker)
        for name in ["a", "b"] {
            try await gateway.wake(name, "appRefresh", #""task":"com.\#(name)""#)
            #expect(try await gateway.request("/v1/wakes/\(name)").body == #"{"success":true}"#)
        }
        try await gateway.end(worker, run)
    }

    @Test("A handler that is registered after run is refused, with the pattern to use")
    func late() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        try worker.backgroundTask(.continued("com.export.*")) { _ in }
        let run = try await gateway.run(worker)
        for (identifier, pattern) in [("com.other.film", "com.other.*"), ("com.other.*", "com.other.*"), ("a", "a.*")] {
            let error = try #require(throws: WakeWorkerError.self) {
                try worker.backgroundTask(.continued(identifier)) { _ in }
            }
            #expect(error.code == .alreadyRunning && error.message.contains("task \(identifier) is"), "\(error)")
            #expect(error.message.contains("; \(pattern) stands for"), "\(error)")
        }
        let error = try #require(throws: WakeWorkerError.self) {
            try worker.backgroundTask(.urlSession("photos.new")) { _ in }
        }
        #expect(!error.message.contains("stands for"), "\(error)")
        // The gateway can drain an open stream.
        try await gateway.wake("w", "continued", #""task":"com.export.film""#)
        try await gateway.request("/v1/wakes/w")
        try await gateway.end(worker, run)
    }
}
