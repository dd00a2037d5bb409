public import WakeWorker
import Wire

/// A launch of a background task in a test. The test controls the context and the expiration of the task.
///
/// ```swift
/// let task = TestTask(.appRefresh("com.example.news.refresh"))
/// try await task.run { context in try await refresh(context) }
/// #expect(task.scheduler.submittedRequests.map(\.identifier) == ["com.example.news.refresh"])
/// ```
public struct TestTask: Sendable {
    /// The context that the handler receives, with the progress, title and subtitle that it last set.
    public let context: BackgroundTaskContext
    /// The scheduler, which records the requests that the handler submits and cancels.
    public let scheduler: TestScheduler
    private let wake: TestWake

    /// Creates a launch whose handler has not started.
    ///
    /// - Parameters:
    ///   - task: the task with which the handler is registered.
    ///   - deviceToken: the token of the device, in hexadecimal digits.
    ///   - topic: the device's topic.
    ///   - title: the title of the request of a continued task.
    ///   - subtitle: the subtitle of the request.
    ///   - finishedTransferCount: the number of finished transfers of a session.
    ///   - resumedFrom: the progress of an earlier launch of a continued task; nil for the first launch.
    ///   - timeLeft: the time until the deadline. Only the test ends the launch.
    ///   - extensionLimit: the maximum time that extensions can add to `timeLeft`.
    ///   - scheduler: the scheduler of the context.
    public init(
        _ task: BackgroundTask,
        deviceToken: String = "00000000000000000000000000000000",
        topic: String = "com.example.app",
        title: String? = nil,
        subtitle: String? = nil,
        finishedTransferCount: Int = 0,
        resumedFrom: BackgroundTaskResumption? = nil,
        timeLeft: Duration = .seconds(30),
        extensionLimit: Duration = .seconds(270),
        scheduler: TestScheduler = TestScheduler()
    ) {
        self.wake = TestWake(timeLeft: timeLeft, extensionLimit: extensionLimit)
        self.scheduler = scheduler
        self.context = BackgroundTaskContext(
            task,
            deviceToken: deviceToken,
            topic: topic,
            finishedTransferCount: finishedTransferCount,
            resumedFrom: resumedFrom,
            texts: (title, subtitle),
            scheduler: scheduler.scheduler,
            self.wake.lease
        )
    }

    /// The extensions that were granted to the handler.
    public var extensions: [Duration] { self.wake.extensions }

    /// Runs a handler in its own task, like a worker.
    ///
    /// - Parameter action: the handler.
    /// - Throws: the handler's error, which means that the task has failed.
    public func run(_ action: @escaping @Sendable (BackgroundTaskContext) async throws -> Void) async throws {
        try await self.wake.run { [context = self.context] in try await action(context) }
    }

    /// Runs a handler that uses callbacks, like a worker.
    ///
    /// - Parameter launchHandler: the handler.
    /// - Returns: true if the handler completed the task successfully.
    public func runCallbacks(_ launchHandler: @escaping @Sendable (ScheduledTask) -> Void) async -> Bool {
        do {
            try await self.wake.run { [context = self.context] in
                try await ScheduledTask.run(context, on: nil, launchHandler)
            }
            return true
        } catch {
            return false
        }
    }

    /// Warns the handler of a near deadline, as the gateway does before the deadline; `policy.expirationLead` is the
    /// time between the two. The handler's task is cancelled, and its outcome counts until the deadline.
    ///
    /// - Parameters:
    ///   - reason: the expiration reason in the context.
    ///   - timeLeft: the remaining time for cleanup.
    public func expire(_ reason: BackgroundTaskExpiration = .deadline, timeLeft: Duration = .seconds(5)) {
        self.wake.expire(ExpirationReason(reason), timeLeft: timeLeft)
        self.context.progress.cancel()
    }

    /// Ends the launch, as the gateway does at the deadline, after a cancellation, or when the device's conditions no
    /// longer permit the task. The handler's task is cancelled.
    ///
    /// - Parameter reason: the expiration reason in the context.
    public func end(_ reason: BackgroundTaskExpiration = .cancelled) {
        self.wake.end(ExpirationReason(reason))
        self.context.progress.cancel()
    }
}

/// A silent push in a test. The test controls the notification and the expiration of the wake.
///
/// ```swift
/// let push = TestNotification(topic: "com.example.news", payload: #"{"edition":7}"#)
/// #expect(try await push.run(handle) == .newData)
/// ```
public struct TestNotification: Sendable {
    /// The notification that the handler receives.
    public let notification: WakeNotification
    private let wake: TestWake

    /// Creates a push whose handler has not started.
    ///
    /// - Parameters:
    ///   - deviceToken: the token of the device, in hexadecimal digits.
    ///   - topic: the device's topic.
    ///   - payload: the JSON text of the push.
    ///   - timeLeft: the time until the deadline. Only the test ends the wake.
    ///   - extensionLimit: the maximum time that extensions can add to `timeLeft`.
    public init(
        deviceToken: String = "00000000000000000000000000000000",
        topic: String = "com.example.app",
        payload: String = "{}",
        timeLeft: Duration = .seconds(30),
        extensionLimit: Duration = .seconds(270)
    ) {
        self.wake = TestWake(timeLeft: timeLeft, extensionLimit: extensionLimit)
        self.notification = WakeNotification(
            deviceToken: deviceToken,
            topic: topic,
            payload: payload,
            self.wake.lease
        )
    }

    /// The extensions that were granted to the handler.
    public var extensions: [Duration] { self.wake.extensions }

    /// Runs a handler in its own task, like a worker.
    ///
    /// - Parameter handler: the handler.
    /// - Returns: the handler's result.
    /// - Throws: the handler's error. A `WakeRelease` returns the wake, and any other error means that the wake has
    ///   failed.
    public func run(
        _ handler: @escaping @Sendable (WakeNotification) async throws -> BackgroundFetchResult
    ) async throws -> BackgroundFetchResult {
        try await self.wake.run { [notification = self.notification] in try await handler(notification) }
    }

    /// Warns the handler of a near deadline. The handler's task is cancelled, and its result counts until the deadline.
    ///
    /// - Parameter timeLeft: the remaining time for cleanup.
    public func expire(timeLeft: Duration = .seconds(5)) { self.wake.expire(.deadline, timeLeft: timeLeft) }

    /// Ends the wake, as the gateway does at the deadline. The handler's task is cancelled.
    public func end() { self.wake.end(.deadline) }
}
