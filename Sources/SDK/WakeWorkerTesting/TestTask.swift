public import WakeWorker
import Wire

/// A launch of a background task for a test: its context, and the end of its time.
///
/// ```swift
/// let task = TestTask(.appRefresh("com.example.news.refresh"))
/// try await task.run { context in try await refresh(context) }
/// #expect(task.scheduler.submittedRequests.map(\.identifier) == ["com.example.news.refresh"])
/// ```
public struct TestTask: Sendable {
    /// The context that the handler gets; its progress, title and subtitle are those that the handler set last.
    public let context: BackgroundTaskContext
    /// The requests that the handler submits and cancels.
    public let scheduler: TestScheduler
    private let wake: TestWake

    /// Makes a launch whose handler has not begun.
    ///
    /// - Parameters:
    ///   - task: the task that the handler is registered for.
    ///   - deviceToken: the device that it is for.
    ///   - topic: the topic that the device belongs to.
    ///   - title: the title of the request of a continued task.
    ///   - subtitle: the subtitle of that request.
    ///   - finishedTransferCount: the number of transfers of a session that have finished.
    ///   - resumedFrom: the progress of an earlier launch of a continued task; nil for the first launch.
    ///   - timeLeft: the time until the deadline. Only the test ends the launch.
    ///   - extensionLimit: the most time that the handler gets after that, when it asks for more.
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

    /// The durations for which the handler asked and got more time.
    public var extensions: [Duration] { self.wake.extensions }

    /// Runs a handler as a worker does, in a task of its own.
    ///
    /// - Parameter action: the handler.
    /// - Throws: the handler's error: the task has failed.
    public func run(_ action: @escaping @Sendable (BackgroundTaskContext) async throws -> Void) async throws {
        try await self.wake.run { [context = self.context] in try await action(context) }
    }

    /// Runs a handler in the form of callbacks as a worker does.
    ///
    /// - Parameter launchHandler: the handler.
    /// - Returns: true if it completed the task with success.
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

    /// Warns the handler that its time is nearly over, as the gateway does `policy.expirationLead` before the deadline:
    /// its task is cancelled, and its outcome counts until the deadline.
    ///
    /// - Parameters:
    ///   - reason: the reason that the context gives.
    ///   - timeLeft: the time that is left to clean up.
    public func expire(_ reason: BackgroundTaskExpiration = .deadline, timeLeft: Duration = .seconds(5)) {
        self.wake.expire(ExpirationReason(reason), timeLeft: timeLeft)
        self.context.progress.cancel()
    }

    /// Ends the launch, as the gateway does at the deadline, when a person cancels the task, or when its conditions are
    /// no longer met: its task is cancelled.
    ///
    /// - Parameter reason: the reason that the context gives.
    public func end(_ reason: BackgroundTaskExpiration = .cancelled) {
        self.wake.end(ExpirationReason(reason))
        self.context.progress.cancel()
    }
}

/// A silent push for a test: its notification, and the end of its time.
///
/// ```swift
/// let push = TestNotification(topic: "com.example.news", payload: #"{"edition":7}"#)
/// #expect(try await push.run(handle) == .newData)
/// ```
public struct TestNotification: Sendable {
    /// The notification that the handler gets.
    public let notification: WakeNotification
    private let wake: TestWake

    /// Makes a push whose handler has not begun.
    ///
    /// - Parameters:
    ///   - deviceToken: the device that it is for.
    ///   - topic: the topic that the device belongs to.
    ///   - payload: the JSON text of the push.
    ///   - timeLeft: the time until the deadline. Only the test ends the wake.
    ///   - extensionLimit: the most time that the handler gets after that, when it asks for more.
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

    /// The durations for which the handler asked and got more time.
    public var extensions: [Duration] { self.wake.extensions }

    /// Runs a handler as a worker does, in a task of its own.
    ///
    /// - Parameter handler: the handler.
    /// - Returns: the handler's result.
    /// - Throws: the handler's error: the wake has failed, or is given back for a `WakeRelease`.
    public func run(
        _ handler: @escaping @Sendable (WakeNotification) async throws -> BackgroundFetchResult
    ) async throws -> BackgroundFetchResult {
        try await self.wake.run { [notification = self.notification] in try await handler(notification) }
    }

    /// Warns the handler that its time is nearly over: its task is cancelled, and its result counts until the deadline.
    ///
    /// - Parameter timeLeft: the time that is left to clean up.
    public func expire(timeLeft: Duration = .seconds(5)) { self.wake.expire(.deadline, timeLeft: timeLeft) }

    /// Ends the wake, as the gateway does at the deadline: the handler's task is cancelled.
    public func end() { self.wake.end(.deadline) }
}
