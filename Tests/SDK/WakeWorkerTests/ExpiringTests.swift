import Synchronization
import Testing
import WakeGateTestKit
import WakeWorker

@Suite("Handlers whose deadlines are near", .timeLimit(.minutes(15)))
struct ExpiringTests {
    /// Waits until the worker runs the handler of this wake.
    private static func started(_ wake: String, _ worker: WakeWorker) async {
        for await event in worker.events {
            if case .started(wake) = event { return }
        }
    }

    @Test("A warned handler is cancelled, and its result until the deadline counts", arguments: [true, false])
    func cancelled(isDone: Bool) async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        let (reasons, source) = AsyncStream<BackgroundTaskExpiration?>.makeStream()
        try worker.backgroundTask(.processing("com.a")) { context in
            let (never, _) = AsyncStream<Void>.makeStream()
            for await _ in never {}
            source.yield(context.expirationReason)
            source.finish()
            if !isDone { throw CancellationError() }
        }
        let run = Task { try await worker.runTasks() }
        try await gateway.request("/wakes")
        try await gateway.wake("w", "processing", #""task":"com.a""#, timeLeft: 30_000)
        await Self.started("w", worker)
        // A wake that arrived late has less time than it stated.
        try await gateway.send("expiring", #"{"wake":"w","deadline":99,"timeLeft":\#(isDone ? 5000 : 30_000)}"#)
        for await found in reasons { #expect(found == .deadline) }
        #expect(try await gateway.request("/v1/wakes/w").body == #"{"success":\#(isDone)}"#)
        try await gateway.end(worker, run)
    }

    @Test("A warned callback handler may complete its task until the deadline, and fails after it")
    func callbacks() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        let held = Mutex<[ScheduledTask]>([])
        try worker.scheduler.register(forTaskWithIdentifier: "com.*") { task in
            if task.identifier == "com.tidy" {
                task.expirationHandler = { task.setTaskCompleted(success: true) }
            }
            held.withLock { $0.append(task) }
        }
        let run = Task { try await worker.runTasks() }
        try await gateway.request("/wakes")
        for (name, outcome) in [("tidy", true), ("silent", false)] {
            try await gateway.wake(name, "appRefresh", #""task":"com.\#(name)""#, timeLeft: 1000)
            try await gateway.send("expiring", #"{"wake":"\#(name)","deadline":99,"timeLeft":1000}"#)
            if !outcome { try await gateway.send("expired", #"{"wake":"\#(name)","reason":"deadline"}"#) }
            #expect(try await gateway.request("/v1/wakes/\(name)").body == #"{"success":\#(outcome)}"#)
        }
        try await gateway.end(worker, run)
    }

    @Test("A queued handler whose warning has arrived is cancelled when it starts")
    func queued() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        let (reasons, source) = AsyncStream<BackgroundTaskExpiration?>.makeStream()
        try worker.backgroundTask(.processing("com.a")) { _ in
            let (never, _) = AsyncStream<Void>.makeStream()
            for await _ in never {}
        }
        try worker.backgroundTask(.processing("com.b")) { context in
            // A warning that arrived earlier is followed by the cancellation.
            while !Task.isCancelled { await Task.yield() }
            source.yield(context.expirationReason)
            source.finish()
        }
        let run = Task { try await worker.runTasks() }
        try await gateway.request("/wakes")
        let running = ["w0", "w1", "w2", "w3"]
        for name in running { try await gateway.wake(name, "processing", #""task":"com.a""#) }
        await Self.started("w3", worker)
        // One more than the worker's slots: when a wake expires, the gateway's slot is free, even if its handler still
        // runs.
        try await gateway.wake("w", "processing", #""task":"com.b""#, timeLeft: 30_000)
        try await gateway.send("expiring", #"{"wake":"w","deadline":99,"timeLeft":30000}"#)
        for name in running { try await gateway.send("expired", #"{"wake":"\#(name)","reason":"operator"}"#) }
        for await found in reasons { #expect(found == .deadline) }
        #expect(try await gateway.request("/v1/wakes/w").body == #"{"success":true}"#)
        try await gateway.end(worker, run)
    }

    @Test("A task continues when its time was extended elsewhere, and a late warning for the old deadline is ignored")
    func extendedElsewhere() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        let (goes, source) = AsyncStream<Void>.makeStream()
        try worker.backgroundTask(.processing("com.a")) { _ in
            for await _ in goes {}
            try Task.checkCancellation()
        }
        let run = Task { try await worker.runTasks() }
        try await gateway.request("/wakes")
        try await gateway.answer("POST", "/w/extend", 200, #"{"timeLeft":60000}"#)
        try await gateway.wake("w", "processing", #""task":"com.a""#, timeLeft: 100)
        #expect(try await gateway.request("/w/extend").body == #"{"seconds":1}"#)
        try await gateway.send("expiring", #"{"wake":"w","deadline":99,"timeLeft":50}"#)
        source.finish()
        #expect(try await gateway.request("/v1/wakes/w").body == #"{"success":true}"#)
        try await gateway.end(worker, run)
    }

    /// A request that is in progress when a warning arrives, and its answer.
    struct Request: Sendable {
        let action: String
        let status: Int
        let answer: String
        let isExtended: Bool

        static let all = [
            Request(action: "extend", status: 200, answer: #"{"deadline":60099,"timeLeft":60000}"#, isExtended: true),
            Request(action: "extend", status: 200, answer: #"{"deadline":99,"timeLeft":1}"#, isExtended: false),
            Request(action: "extend", status: 409, answer: #"{"reason":"ExtensionLimit"}"#, isExtended: false),
            Request(action: "progress", status: 200, answer: #"{"deadline":60099}"#, isExtended: true),
            Request(action: "progress", status: 200, answer: #"{"deadline":99}"#, isExtended: false),
            Request(action: "progress", status: 500, answer: #"{"reason":"Fault"}"#, isExtended: false),
        ]
    }

    @Test("A warning that arrives while more time is requested is held until the answer", arguments: Request.all)
    func warnedWhileAsking(request: Request) async throws {
        let gateway = try await TaskGateway()
        // The request must still be in progress when its answer arrives, even on a slow machine.
        var timing = WorkerTiming()
        timing.extensionTimeout = 600_000
        timing.reportTimeout = 600_000
        let worker = try gateway.worker(timing: timing)
        let (goes, source) = AsyncStream<Void>.makeStream()
        let (ends, ended) = AsyncStream<BackgroundTaskExpiration?>.makeStream()
        try worker.backgroundTask(.appRefresh("com.other")) { _ in }
        try worker.backgroundTask(.continued("com.a")) { context in
            defer {
                ended.yield(context.expirationReason)
                ended.finish()
            }
            if request.action == "extend" {
                _ = try? await context.extend()
            } else {
                context.progress.completedUnitCount = 1
            }
            for await _ in goes {}
            try Task.checkCancellation()
        }
        let run = Task { try await worker.runTasks() }
        try await gateway.request("/wakes")
        try await gateway.answer("POST", "/w/\(request.action)", request.status, request.answer, isHeld: true)
        let kind = request.action == "extend" ? "processing" : "continued"
        try await gateway.wake("w", kind, #""task":"com.a""#, timeLeft: 600_000)
        try await gateway.request("/w/\(request.action)")
        try await gateway.send("expiring", #"{"wake":"w","deadline":99,"timeLeft":5000}"#)
        // This event comes after the warning. Its effect shows that the worker has read the warning.
        try await gateway.wake("other", "appRefresh", #""task":"com.other""#)
        #expect(try await gateway.request("/v1/wakes/other").body == #"{"success":true}"#)
        try await gateway.release()
        if request.isExtended { source.finish() }
        let reason: BackgroundTaskExpiration = request.action == "extend" ? .deadline : .progress
        for await found in ends { #expect(found == (request.isExtended ? nil : reason)) }
        #expect(try await gateway.request("/v1/wakes/w").body == #"{"success":\#(request.isExtended)}"#)
        try await gateway.end(worker, run)
    }

    @Test("A delegate receives the notification before its expiration, even if the warning came first")
    func delegateOrder() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker(slots: 1)
        let (calls, source) = AsyncStream<String>.makeStream()
        let delegate = NotedDelegate(source)
        let run = Task { try await worker.runDelegate(delegate) }
        try await gateway.request("/wakes")
        try await gateway.wake("first", "push", #""payload":{}"#)
        var call = calls.makeAsyncIterator()
        #expect(await call.next() == "received first")
        try await gateway.wake("late", "push", #""payload":{}"#, timeLeft: 30_000)
        try await gateway.send("expiring", #"{"wake":"late","deadline":99,"timeLeft":30000}"#)
        // The worker reads its stream in order, so it reads the warning before the slot is free.
        try await gateway.send("expired", #"{"wake":"first","reason":"deadline"}"#)
        #expect(await call.next() == "expired first")
        #expect(await call.next() == "received late")
        #expect(await call.next() == "expired late")
        delegate.complete("late")
        #expect(try await gateway.request("/v1/wakes/late").body == #"{"result":"newData"}"#)
        try await gateway.end(worker, run)
    }
}

/// A delegate that records its calls.
private final class NotedDelegate: RemoteNotificationDelegate {
    private let calls: AsyncStream<String>.Continuation
    private let completions = Mutex<[String: @Sendable (BackgroundFetchResult) -> Void]>([:])

    init(_ calls: AsyncStream<String>.Continuation) { self.calls = calls }

    func worker(
        _ worker: WakeWorker,
        didReceiveRemoteNotification notification: WakeNotification,
        fetchCompletionHandler completionHandler: @escaping @Sendable (BackgroundFetchResult) -> Void
    ) {
        self.completions.withLock { $0[notification.id] = completionHandler }
        self.calls.yield("received \(notification.id)")
    }

    func worker(_ worker: WakeWorker, didExpire notification: WakeNotification) {
        self.calls.yield("expired \(notification.id)")
    }

    func complete(_ wake: String) { self.completions.withLock { $0[wake] }?(.newData) }
}
