import Synchronization
import Testing
import WakeGateTestKit
import WakeWorker

@Suite("Handlers of continued tasks", .serialized, .timeLimit(.minutes(15)))
struct ContinuedTaskTests {
    private struct Fault: Error {}

    /// Creates a worker of `com.*` whose continued tasks `action` handles.
    private func worker(
        of gateway: TaskGateway,
        _ action: @escaping @Sendable (BackgroundTaskContext) async throws -> Void
    ) throws -> WakeWorker {
        let worker = try gateway.worker()
        try worker.backgroundTask(.continued("com.export.*"), action: action)
        return worker
    }

    /// Returns the progress reports of a task until its result, which must be success.
    private func told(of wake: String, by gateway: TaskGateway) async throws -> [String] {
        let (progress, result) = ("/v1/wakes/\(wake)/progress", "/v1/wakes/\(wake)")
        var bodies: [String] = []
        while true {
            let request = try await gateway.request { $0 == progress || $0 == result }
            guard request.path.hasSuffix("/progress") else {
                #expect(request.body == #"{"success":true}"#)
                return bodies
            }
            bodies.append(request.body)
        }
    }

    @Test("A handler resumes from the last reported progress, and keeps the texts of its request until it sets others")
    func resumed() async throws {
        let gateway = try await TaskGateway()
        let seen = Mutex<[String: BackgroundTaskContext]>([:])
        let worker = try self.worker(of: gateway) { task in
            seen.withLock { $0[task.id] = task }
            guard let last = task.resumedFrom else { return }
            task.progress.totalUnitCount = last.totalUnitCount
            task.progress.completedUnitCount = last.completedUnitCount + 1
            task.update(subtitle: String(repeating: "é", count: 200))
        }
        let run = try await gateway.run(worker)
        try await gateway.wake("first", "continued", #""task":"com.export.a","title":"Export","resumedFrom":null"#)
        #expect(try await gateway.request("/v1/wakes/first").body == #"{"success":true}"#)
        let last = #"{"completed":40,"total":80,"subtitle":"film 4"}"#
        try await gateway.wake("next", "continued", #""task":"com.export.a","title":"Export","resumedFrom":\#(last)"#)
        let cut = String(repeating: "é", count: 128)
        // Earlier reports may show a state between two of the handler's changes.
        let bodies = try await self.told(of: "next", by: gateway)
        #expect(
            bodies.last == #"{"completed":41,"total":80,"title":"Export","subtitle":"\#(cut)"}"#,
            "\(bodies)"
        )
        let contexts = seen.withLock { $0 }
        #expect(contexts["first"]?.resumedFrom == nil && contexts["first"]?.title == "Export")
        let next = try #require(contexts["next"])
        let resumption = BackgroundTaskResumption(completedUnitCount: 40, totalUnitCount: 80, subtitle: "film 4")
        #expect(next.kind == .continued && next.resumedFrom == resumption && resumption.fractionCompleted == 0.5)
        #expect(next.title == "Export" && next.subtitle == cut)
        try await gateway.end(worker, run)
    }

    @Test("A task's progress is cancelled with the task", arguments: ["progress", "cancelled", "conditions", nil])
    func expired(reason: String?) async throws {
        let gateway = try await TaskGateway()
        let (reasons, source) = AsyncStream<(Bool, BackgroundTaskExpiration?)>.makeStream()
        let worker = try self.worker(of: gateway) { task in
            let part = BackgroundTaskProgress(totalUnitCount: 2, parent: task.progress, pendingUnitCount: 1)
            let (never, ended) = AsyncStream<Void>.makeStream()
            part.cancellationHandler = { ended.finish() }
            task.progress.totalUnitCount = 1
            // Only the part receives the cancellation. The cancellation of its own task does not end this loop.
            await Task { for await _ in never {} }.value
            source.yield((task.progress.isCancelled, task.expirationReason))
            source.finish()
            task.progress.completedUnitCount = 1
            throw Fault()
        }
        let run = try await gateway.run(worker)
        try await gateway.wake("w", "continued", #""task":"com.export.a""#)
        try await gateway.request("/w/progress")
        let member = reason.map { #","reason":"\#($0)""# } ?? ""
        try await gateway.send("expired", #"{"wake":"w"\#(member)}"#)
        for await (isCancelled, found) in reasons { #expect(isCancelled && found?.rawValue == reason) }
        // Later changes are not reported, and nothing waits for them.
        #expect(try await gateway.request("/v1/wakes/w").body == #"{"success":false}"#)
        try await gateway.end(worker, run)
    }

    @Test("A refusal of progress is reported once, and the result is still sent")
    func refused() async throws {
        let gateway = try await TaskGateway()
        let worker = try self.worker(of: gateway) { $0.progress.completedUnitCount = 1 }
        let run = try await gateway.run(worker)
        try await gateway.answer("POST", "/progress", 400, #"{"reason":"BadProgress","message":"No."}"#)
        try await gateway.wake("w", "continued", #""task":"com.export.a""#)
        #expect(try await gateway.request("/v1/wakes/w").body == #"{"success":true}"#)
        for await event in worker.events {
            guard case .progressRefused("w", let reason) = event else { continue }
            #expect(reason.code == .refused && reason.message.contains("BadProgress"))
            break
        }
        try await gateway.end(worker, run)
    }

    @Test("Progress of other kinds is not reported, and their handlers may still update it")
    func otherKinds() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        try worker.scheduler.register(forTaskWithIdentifier: "com.*") { task in
            task.progress.totalUnitCount = 2
            task.update(title: "T")
            task.progress.completedUnitCount += 1
            task.setTaskCompleted(success: task.progress.fractionCompleted == 0.5)
        }
        let run = try await gateway.run(worker)
        try await gateway.wake("w", "processing", #""task":"com.a""#)
        #expect(try await gateway.request("/v1/wakes/w").body == #"{"success":true}"#)
        try await gateway.wake("c", "continued", #""task":"com.a""#)
        // The first request about the continued task, so nothing was reported about the task before.
        let told = try await gateway.request { $0.contains("/progress") }
        #expect(told.path == "/v1/wakes/c/progress")
        #expect(try await gateway.request("/v1/wakes/c").body == #"{"success":true}"#)
        try await gateway.end(worker, run)
    }

    @Test("A handler is tested without a gateway")
    func alone() async throws {
        let last = BackgroundTaskResumption(completedUnitCount: 1, totalUnitCount: 2)
        let task = BackgroundTaskContext(.continued("com.export.a"), topic: "t", resumedFrom: last)
        task.progress.totalUnitCount = 2
        task.progress.completedUnitCount = (task.resumedFrom?.completedUnitCount ?? 0) + 1
        task.update(title: "Export")
        #expect(task.kind == .continued && task.progress.isFinished && task.title == "Export" && task.subtitle == nil)
    }

    @Test("Resources of connected workers are requested, and unknown ones are left out")
    func resources() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        try await gateway.answer("GET", "/v1/topics/t/resources", 200, #"{"resources":["gpu","npu"]}"#)
        #expect(try await worker.supportedResources() == .gpu)
        try await gateway.answer("GET", "/v1/topics/t/resources", 200, #"{"resources":[]}"#)
        #expect(try await worker.supportedResources() == [])
        try await gateway.answer("GET", "/v1/topics/t/resources", 200, "[]")
        await #expect(throws: WakeWorkerError.self) { try await worker.supportedResources() }
    }
}

@Suite("Progress, as Foundation's means it", .timeLimit(.minutes(15)))
struct BackgroundTaskProgressTests {
    @Test(
        "Counts report the completed share, completion, and indeterminacy",
        arguments: [
            (0, 0, 0, true, false), (0, 5, 1, false, true), (10, 0, 0, false, false), (10, 4, 0.4, false, false),
            (10, 10, 1, false, true), (10, 15, 1.5, false, true), (-1, 3, 0, true, false), (10, -1, 0, true, false),
        ] as [(Int64, Int64, Double, Bool, Bool)]
    )
    func counts(total: Int64, completed: Int64, fraction: Double, isIndeterminate: Bool, isFinished: Bool) {
        let progress = BackgroundTaskProgress(totalUnitCount: total)
        progress.completedUnitCount = completed
        #expect(progress.totalUnitCount == total && progress.completedUnitCount == completed)
        #expect(progress.fractionCompleted == fraction)
        #expect(progress.isIndeterminate == isIndeterminate && progress.isFinished == isFinished)
        #expect("\(progress)" == "\(completed) of \(total)")
    }

    @Test("A child's share grows with it, and its units are completed when it has finished")
    func child() {
        let whole = BackgroundTaskProgress(totalUnitCount: 10)
        let part = BackgroundTaskProgress(totalUnitCount: 4, parent: whole, pendingUnitCount: 6)
        whole.completedUnitCount += 1
        part.completedUnitCount = 2
        #expect(whole.completedUnitCount == 1 && whole.fractionCompleted == 0.4)
        let grandchild = BackgroundTaskProgress(totalUnitCount: 100)
        part.addChild(grandchild, withPendingUnitCount: 2)
        grandchild.completedUnitCount = 50
        #expect(part.fractionCompleted == 0.75 && whole.fractionCompleted == 0.55)
        grandchild.completedUnitCount += 50
        #expect(part.isFinished && part.completedUnitCount == 4)
        #expect(whole.completedUnitCount == 7 && whole.fractionCompleted == 0.7 && !whole.isFinished)
        // The object is no longer a part.
        part.completedUnitCount = 0
        #expect(whole.fractionCompleted == 0.7)
        let finished = BackgroundTaskProgress(totalUnitCount: 1)
        finished.completedUnitCount = 1
        whole.addChild(finished, withPendingUnitCount: 3)
        #expect(whole.isFinished && whole.completedUnitCount == 10)
    }

    @Test("Cancelling a progress cancels its children, and calls each handler once")
    func cancelled() {
        let whole = BackgroundTaskProgress(totalUnitCount: 2)
        let part = BackgroundTaskProgress(totalUnitCount: 2, parent: whole, pendingUnitCount: 1)
        let calls = Mutex<[String]>([])
        whole.cancellationHandler = { calls.withLock { $0.append("whole") } }
        part.cancellationHandler = { calls.withLock { $0.append("part") } }
        #expect(!whole.isCancelled && whole.cancellationHandler != nil)
        whole.cancel()
        whole.cancel()
        #expect(whole.isCancelled && part.isCancelled)
        #expect(calls.withLock { $0 } == ["whole", "part"])
        let late = BackgroundTaskProgress(totalUnitCount: 1)
        late.cancellationHandler = { calls.withLock { $0.append("late") } }
        whole.addChild(late, withPendingUnitCount: 1)
        whole.cancellationHandler = { calls.withLock { $0.append("at once") } }
        #expect(late.isCancelled && calls.withLock { $0 } == ["whole", "part", "late", "at once"])
        let other = BackgroundTaskProgress(totalUnitCount: 1)
        let ofOther = BackgroundTaskProgress(totalUnitCount: 1, parent: other, pendingUnitCount: 1)
        ofOther.cancel()
        #expect(ofOther.isCancelled && !other.isCancelled)
    }

    @Test("No addition from concurrent threads is lost")
    func threads() async {
        let whole = BackgroundTaskProgress(totalUnitCount: 8)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                let part = BackgroundTaskProgress(totalUnitCount: 4000, parent: whole, pendingUnitCount: 1)
                for _ in 0..<4 {
                    group.addTask { for _ in 0..<1000 { part.completedUnitCount += 1 } }
                }
            }
        }
        #expect(whole.isFinished && whole.completedUnitCount == 8)
    }

    @Test("Reported counts are whole and never negative, and grow with a child")
    func told() {
        let progress = BackgroundTaskProgress(totalUnitCount: -1)
        progress.completedUnitCount = -7
        #expect(progress.counts == (0, 0))
        progress.completedUnitCount = 12
        #expect(progress.counts == (12, 0))
        progress.totalUnitCount = .max
        #expect(progress.counts == (12, BackgroundTaskProgress.unitsMax))
        let whole = BackgroundTaskProgress(totalUnitCount: 3)
        whole.completedUnitCount = 1
        #expect(whole.counts == (1, 3))
        let part = BackgroundTaskProgress(totalUnitCount: 7, parent: whole, pendingUnitCount: 2)
        var last = whole.counts.completed
        #expect(whole.counts == (1000, 3000))
        for _ in 1...7 {
            part.completedUnitCount += 1
            #expect(whole.counts.completed > last)
            last = whole.counts.completed
        }
        #expect(whole.counts == (3000, 3000), "in the same unit as before, that it is more than ever")
        whole.totalUnitCount = .max
        #expect(whole.counts.total == BackgroundTaskProgress.unitsMax)
    }
}
