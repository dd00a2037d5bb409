public import FoundationEssentials

// Names from Apple's frameworks that differ in this library. The compiler suggests the replacement for each.

/// The name on iOS of ``BackgroundTaskRequest/appRefresh(_:earliestBegin:)``.
@available(*, unavailable, renamed: "BackgroundTaskRequest")
public struct BGAppRefreshTaskRequest: Sendable {
    /// The name on iOS of ``BackgroundTaskRequest/earliestBegin``.
    @available(*, unavailable, renamed: "BackgroundTaskRequest.earliestBegin")
    public var earliestBeginDate: Date?

    /// The name on iOS of ``BackgroundTaskRequest/appRefresh(_:earliestBegin:)``.
    ///
    /// - Parameter identifier: the identifier of the request.
    @available(*, unavailable, renamed: "BackgroundTaskRequest.appRefresh(_:earliestBegin:)")
    public init(identifier: String) {}
}

/// The name on iOS of a request for a processing task.
@available(*, unavailable, renamed: "BackgroundTaskRequest")
public struct BGProcessingTaskRequest: Sendable {
    /// The name on iOS of ``BackgroundTaskRequest/earliestBegin``.
    @available(*, unavailable, renamed: "BackgroundTaskRequest.earliestBegin")
    public var earliestBeginDate: Date?

    /// The name on iOS of a request for a processing task.
    ///
    /// - Parameter identifier: the identifier of the request.
    @available(
        *,
        unavailable,
        renamed: "BackgroundTaskRequest.processing(_:requiresNetworkConnectivity:requiresExternalPower:earliestBegin:)"
    )
    public init(identifier: String) {}
}

/// The name on iOS of a request for a continued task.
@available(*, unavailable, renamed: "BackgroundTaskRequest")
public struct BGContinuedProcessingTaskRequest: Sendable {
    /// The name on iOS of a request for a continued task.
    ///
    /// - Parameters:
    ///   - identifier: the identifier of the request.
    ///   - title: the title that a person sees.
    ///   - subtitle: the text below the title.
    @available(
        *,
        unavailable,
        renamed: "BackgroundTaskRequest.continued(_:title:subtitle:strategy:requiredResources:)"
    )
    public init(identifier: String, title: String, subtitle: String) {}
}

/// The name on iOS of ``BackgroundTaskScheduler``. Use ``WakeWorker/WakeWorker/scheduler``.
@available(*, unavailable, message: "use the scheduler of a WakeWorker")
public typealias BGTaskScheduler = BackgroundTaskScheduler

/// The name on iOS of ``ScheduledTask``.
@available(*, unavailable, renamed: "ScheduledTask")
public typealias BGTask = ScheduledTask

/// The name on iOS of a launch of an app refresh task.
@available(*, unavailable, renamed: "ScheduledTask")
public typealias BGAppRefreshTask = ScheduledTask

/// The name on iOS of a launch of a processing task.
@available(*, unavailable, renamed: "ScheduledTask")
public typealias BGProcessingTask = ScheduledTask

/// The name on iOS of a launch of a continued task.
@available(*, unavailable, renamed: "ScheduledTask")
public typealias BGContinuedProcessingTask = ScheduledTask

/// The name on iOS of ``BackgroundFetchResult``.
@available(*, unavailable, renamed: "BackgroundFetchResult")
public typealias UIBackgroundFetchResult = BackgroundFetchResult

extension BackgroundTaskRequest {
    /// The name on iOS of ``earliestBegin``.
    @available(*, unavailable, renamed: "earliestBegin")
    public var earliestBeginDate: Date? {
        get { self.earliestBegin }
        set { self.earliestBegin = newValue }
    }
}

extension BackgroundTaskScheduler {
    /// The name on iOS of ``pendingRequests()``.
    ///
    /// - Parameter completionHandler: a function that receives the requests.
    @available(*, unavailable, renamed: "pendingRequests()")
    public func getPendingTaskRequests(completionHandler: @escaping @Sendable ([PendingTaskRequest]) -> Void) {}

    /// The name on iOS of ``cancel(_:)``.
    ///
    /// - Parameter identifier: the identifier of the request.
    @available(*, unavailable, renamed: "cancel(_:)")
    public func cancel(taskRequestWithIdentifier identifier: String) {}

    /// The name on iOS of ``cancelAll()``.
    @available(*, unavailable, renamed: "cancelAll()")
    public func cancelAllTaskRequests() {}
}

extension ScheduledTask {
    /// The name on iOS of ``update(title:subtitle:)``.
    ///
    /// - Parameters:
    ///   - title: the title that a person sees.
    ///   - subtitle: the text below the title.
    @available(*, unavailable, renamed: "update(title:subtitle:)")
    public func updateTitle(_ title: String, subtitle: String) {}
}

extension BackgroundTaskContext {
    /// The name on iOS of ``update(title:subtitle:)``.
    ///
    /// - Parameters:
    ///   - title: the title that a person sees.
    ///   - subtitle: the text below the title.
    @available(*, unavailable, renamed: "update(title:subtitle:)")
    public func updateTitle(_ title: String, subtitle: String) {}

    /// The counterpart on iOS of ``withExtendedTime(_:)``.
    ///
    /// - Parameters:
    ///   - taskName: the name that a debugger shows.
    ///   - handler: a function that is called shortly before the time expires.
    @available(*, unavailable, renamed: "withExtendedTime(_:)")
    public func beginBackgroundTask(
        withName taskName: String? = nil,
        expirationHandler handler: (@Sendable () -> Void)? = nil
    ) {}
}

extension WakeNotification {
    /// The counterpart on iOS of ``withExtendedTime(_:)``.
    ///
    /// - Parameters:
    ///   - taskName: the name that a debugger shows.
    ///   - handler: a function that is called shortly before the time expires.
    @available(*, unavailable, renamed: "withExtendedTime(_:)")
    public func beginBackgroundTask(
        withName taskName: String? = nil,
        expirationHandler handler: (@Sendable () -> Void)? = nil
    ) {}
}
