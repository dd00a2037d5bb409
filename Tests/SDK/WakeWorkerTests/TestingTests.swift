import Foundation
import Testing
import WakeWorker
import WakeWorkerTesting

@Suite("Handlers without a gateway", .timeLimit(.minutes(15)))
struct TestingTests {
    private struct Fault: Error {}

    /// Waits until the calling task is cancelled.
    private static func untilCancelled() async {
        let (never, _) = AsyncStream<Void>.makeStream()
        for await _ in never {}
    }

    @Test("A task's handler runs with its context, and its outcome is seen")
    func outcome() async throws {
        let task = TestTask(.continued("com.a"), topic: "t", title: "First")
        try await task.run { context in
            context.progress.totalUnitCount = 2
            context.progress.completedUnitCount = 1
            context.update(subtitle: "half")
        }
        #expect(task.context.progress.fractionCompleted == 0.5)
        #expect(task.context.title == "First" && task.context.subtitle == "half" && task.context.topic == "t")
        await #expect(throws: Fault.self) { try await TestTask(.processing("com.a")).run { _ in throw Fault() } }
    }

    @Test("A warning cancels a handler, whose result counts", arguments: [true, false])
    func expired(isEarly: Bool) async throws {
        let task = TestTask(.processing("com.a"))
        let (begins, begun) = AsyncStream<Void>.makeStream()
        if isEarly { task.expire(.conditions) }
        async let outcome: Void = task.run { context in
            begun.finish()
            await Self.untilCancelled()
            _ = try await context.extend(by: .seconds(60))
        }
        for await _ in begins {}
        if !isEarly { task.expire(.conditions) }
        try await outcome
        #expect(task.context.expirationReason == .conditions && task.context.progress.isCancelled)
        #expect(task.extensions == [.seconds(60)])
    }

    @Test("A task in the form of callbacks may complete after the warning, and not after the end")
    func callbacks() async {
        let tidy = TestTask(.appRefresh("com.a"))
        let (begins, begun) = AsyncStream<Void>.makeStream()
        async let outcome = tidy.runCallbacks { task in
            task.expirationHandler = { task.setTaskCompleted(success: true) }
            begun.finish()
        }
        for await _ in begins {}
        tidy.expire()
        #expect(await outcome)
        let silent = TestTask(.appRefresh("com.a"))
        silent.expire()
        silent.end(.cancelled)
        #expect(await silent.runCallbacks { task in task.expirationHandler = {} } == false)
        #expect(silent.context.expirationReason == .cancelled)
    }

    @Test("Extensions are granted up to the limit, and none after the end")
    func extensions() async throws {
        let push = TestNotification(payload: #"{"edition":7}"#, timeLeft: .seconds(600), extensionLimit: .seconds(3000))
        let result = try await push.run { notification in
            let short = try await notification.extend(by: .seconds(1))
            let long = try await notification.extend(by: .seconds(1800))
            #expect(short <= .seconds(600) && short > .seconds(1) && long > .seconds(600) && long <= .seconds(1800))
            #expect(notification.timeLeft > .seconds(600))
            _ = try await notification.extend()
            _ = try await notification.extend(by: .seconds(7200))
            let full = await #expect(throws: WakeWorkerError.self) { try await notification.extend() }
            #expect(full?.code == .extensionLimitReached)
            return .newData
        }
        #expect(result == .newData)
        #expect(push.extensions == [.seconds(1), .seconds(1800), .seconds(30), .seconds(7200)])
        push.end()
        let ended = await #expect(throws: WakeWorkerError.self) { try await push.notification.extend() }
        #expect(ended?.code == .wakeEnded)
    }

    @Test("A scheduler records submissions and cancellations, and refuses requests on demand")
    func scheduler() async throws {
        let test = TestScheduler()
        let scheduler = test.scheduler
        #expect(try await scheduler.submit(.appRefresh("a")).disposition == .scheduled)
        #expect(try await scheduler.submit(.appRefresh("a")).disposition == .replaced)
        try await scheduler.submit(.processing("b", requiresExternalPower: true))
        #expect(try await scheduler.pendingRequests().map(\.identifier) == ["a", "b"])
        #expect(try await scheduler.pendingRequests().last?.requiresExternalPower == true)
        try await scheduler.cancel("a")
        try await scheduler.cancelAll()
        #expect(test.cancelledIdentifiers == ["a", "b"])
        #expect(try await scheduler.pendingRequests().isEmpty)
        try await scheduler.transfersFinished(session: "s", count: 2)
        try await scheduler.transfersFinished(session: "s")
        for session in ["s", "s", "t"] {
            try await scheduler.transfersFinished(session: session, count: 4, id: "batch-1")
        }
        #expect(test.finishedTransfers == ["s": 7, "t": 4])
        test.refusal = .notPermitted
        await #expect(throws: BackgroundTaskError.self) { try await scheduler.submit(.appRefresh("c")) }
        #expect(test.submittedRequests.map(\.identifier) == ["a", "a", "b"])
        test.refusal = nil
        let error = await #expect(throws: BackgroundTaskError.self) { try await scheduler.submit(.appRefresh("c d")) }
        #expect(error?.code == .badTaskRequest)
    }
}
