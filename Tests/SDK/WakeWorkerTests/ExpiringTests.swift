import Foundation
import Platform
import Synchronization
import Testing
import WakeGateTestKit
import WakeWorker
import Wire

@Suite("Handlers close to their deadlines", .timeLimit(.minutes(15)))
struct ExpiringTests {
    @Test("A handler's cancellation code that blocks delays no other wake")
    func blockedCancellation() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        let (calls, source) = AsyncStream<String>.makeStream()
        let mayEnd = Latch()
        defer { mayEnd.open() }
        try worker.backgroundTask(.appRefresh("com.blocked")) { _ in
            let (never, ended) = AsyncStream<Void>.makeStream()
            await withTaskCancellationHandler {
                source.yield("begun")
                await Task { for await _ in never {} }.value
            } onCancel: {
                source.yield(Thread.current.name ?? "")
                mayEnd.wait()
                ended.finish()
            }
            try Task.checkCancellation()
        }
        try worker.backgroundTask(.appRefresh("com.next")) { _ in }
        let run = try await gateway.run(worker)
        try await gateway.wake("blocked", "appRefresh", #""task":"com.blocked""#)
        var call = calls.makeAsyncIterator()
        #expect(await call.next() == "begun")
        try await gateway.send("expired", #"{"wake":"blocked","reason":"deadline"}"#)
        // Neither the network thread nor a thread of Swift's pool, which may all be blocked.
        try #require(await call.next() == "cancellation")
        try await gateway.wake("next", "appRefresh", #""task":"com.next""#)
        #expect(try await gateway.request("/v1/wakes/next").body == #"{"success":true}"#)
        mayEnd.open()
        #expect(try await gateway.request("/v1/wakes/blocked").body == #"{"success":false}"#)
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

    @Test(
        "A delegate that works synchronously receives the warning while it works, and none after it has completed",
        arguments: [(.atWork, ["didExpire", "completed"]), (.queued, ["completed"]), (.completed, ["completed"])]
            as [(SynchronousDelegate.Moment, [String])]
    )
    func synchronousDelegate(moment: SynchronousDelegate.Moment, expected: [String]) async throws {
        let (result, calls) = try await SynchronousDelegate.run(warned: moment)
        #expect(calls == expected && result == .newData)
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

/// A delegate that completes its wake before `didReceive` returns.
final class SynchronousDelegate: RemoteNotificationDelegate {
    /// The state of the wake when its warning arrives.
    enum Moment {
        case queued, atWork, completed
    }

    private let moment: Moment
    private let lease = WakeLease(timeLeft: .seconds(600))
    private let calls = Mutex<[String]>([])

    private init(_ moment: Moment) { self.moment = moment }

    /// Passes a wake to a delegate.
    ///
    /// - Returns: the result of the wake, and the calls in order.
    static func run(warned moment: Moment) async throws -> (BackgroundFetchResult, [String]) {
        let worker = try WakeWorker(gateway: "https://a:2197", topic: "t")
        let delegate = SynchronousDelegate(moment)
        let notification = WakeNotification(deviceToken: "ab", topic: "t", payload: "{}", delegate.lease)
        let handler = Task {
            delegate.reach(.queued)
            return await worker.deliver(notification, to: delegate)
        }
        return (await handler.value, delegate.calls.withLock { $0 })
    }

    func worker(
        _ worker: WakeWorker,
        didReceiveRemoteNotification notification: WakeNotification,
        fetchCompletionHandler completionHandler: @escaping @Sendable (BackgroundFetchResult) -> Void
    ) {
        self.reach(.atWork)
        completionHandler(.newData)
        self.calls.withLock { $0.append("completed") }
        self.reach(.completed)
    }

    func worker(_ worker: WakeWorker, didExpire notification: WakeNotification) {
        self.calls.withLock { $0.append("didExpire") }
    }

    /// Warns the handler, which is the calling task, at the delegate's moment. Its cancellation code has run when this
    /// function returns.
    private func reach(_ moment: Moment) {
        guard moment == self.moment else { return }
        self.lease.expiring(.deadline, timeLeft: .seconds(600), silence: .zero)
        unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
    }
}
