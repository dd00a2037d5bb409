import Wire

/// A task or session for which a handler is registered: see ``WakeWorker/backgroundTask(_:action:)``.
///
/// An identifier is 1 to 255 letters, digits, periods, hyphens and underscores. An identifier that ends in `.*` is a
/// pattern. For example, `com.example.export.*` matches every longer identifier that begins with `com.example.export.`.
/// If several patterns match, the longest is used. An exact identifier takes precedence over all patterns.
///
/// ```swift
/// try worker.backgroundTask(.appRefresh("com.example.app.refresh")) { context in try await refresh() }
/// ```
public struct BackgroundTask: Hashable, Sendable, CustomStringConvertible {
    /// The kind of the task.
    public let kind: BackgroundTaskKind
    /// The identifier or pattern. For a `urlSession`, the name of the session or a pattern for names.
    public let identifier: String

    /// Creates a short task, such as fetching new data.
    ///
    /// - Parameter identifier: the identifier of its requests, or a pattern.
    public static func appRefresh(_ identifier: String) -> BackgroundTask {
        BackgroundTask(kind: .appRefresh, identifier: identifier)
    }

    /// Creates a task that takes minutes and runs while the device is idle.
    ///
    /// - Parameter identifier: the identifier of its requests, or a pattern.
    public static func processing(_ identifier: String) -> BackgroundTask {
        BackgroundTask(kind: .processing, identifier: identifier)
    }

    /// Creates a task that a person started and waits for. It may run as long as it makes progress.
    ///
    /// - Parameter identifier: the identifier of its requests, or a pattern.
    public static func continued(_ identifier: String) -> BackgroundTask {
        BackgroundTask(kind: .continued, identifier: identifier)
    }

    /// Creates a task that handles the finished transfers of a background session.
    ///
    /// - Parameter name: the name of the session, or a pattern.
    public static func urlSession(_ name: String) -> BackgroundTask {
        BackgroundTask(kind: .urlSession, identifier: name)
    }

    /// The kind and the identifier.
    public var description: String { "\(self.kind.rawValue) \(self.identifier)" }

    /// The key under which the handler is registered.
    var name: BackgroundTaskName {
        BackgroundTaskName(self.identifier, isSession: self.kind == .urlSession)
    }
}

/// The kinds of background work.
public enum BackgroundTaskKind: String, Hashable, Sendable, CaseIterable {
    /// A short task, such as fetching new data.
    case appRefresh
    /// A task that takes minutes and runs while the device is idle.
    case processing
    /// A task that a person started and waits for.
    case continued
    /// The finished transfers of a background session.
    case urlSession
}

/// The resources of a worker's machine that a background task may require. The gateway launches the task only on
/// workers with all required resources.
public struct BackgroundTaskResources: OptionSet, Hashable, Sendable {
    /// A graphics processor.
    public static let gpu = BackgroundTaskResources(rawValue: 1)

    /// The raw value: one bit for each resource.
    public let rawValue: Int

    /// Creates a set from its raw value.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// The gateway's names of the resources.
    var names: [String] { self.contains(.gpu) ? ["gpu"] : [] }

    /// Creates a set from the gateway's names. Unknown names are ignored.
    init(names: [String]) {
        self = names.contains("gpu") ? .gpu : []
    }
}

/// The context of a handler: one launch of a background task, or a wake for the finished transfers of a session.
///
/// ```swift
/// try worker.backgroundTask(.appRefresh("com.example.app.refresh")) { context in
///     try await context.scheduler.submit(.appRefresh(context.identifier, earliestBegin: .now + .minutes(15)))
///     try await refresh(context.deviceToken)
/// }
/// ```
public struct BackgroundTaskContext: Identifiable, Sendable {
    /// The wake's identifier: 128 random bits, new for every launch.
    public let id: String
    /// The kind of the request. The handler may be registered with another kind.
    public let kind: BackgroundTaskKind
    /// The identifier of the task; for a `urlSession`, the name of the session.
    public let identifier: String
    /// The token of the device, in hexadecimal digits.
    public let deviceToken: String
    /// The device's topic.
    public let topic: String
    /// The number of this attempt of the request, starting at 1.
    public let attempt: Int
    /// The time at which the gateway accepted the request or the first report of finished transfers, in milliseconds
    /// since 1970 by the gateway's clock.
    public let submittedAt: Int64
    /// The number of finished transfers of the session; 0 for a task.
    public let finishedTransferCount: Int
    /// The trace context of the request, from the `traceparent` header of its submission (W3C Trace Context); nil if
    /// the submission had none.
    public let traceparent: String?
    /// The `tracestate` header of the submission; nil if the submission had none.
    public let tracestate: String?
    /// The scheduler for requests of this device.
    public let scheduler: BackgroundTaskScheduler
    /// The progress that an earlier, lost launch of this continued task last reported; nil if none was reported. The
    /// handler may resume the work at this point.
    public let resumedFrom: BackgroundTaskResumption?
    let lease: WakeLease
    private let reporting: TaskReporting

    /// Creates a context for the test of a handler. No gateway is involved.
    ///
    /// - Parameters:
    ///   - task: the task with which the handler is registered.
    ///   - deviceToken: the token of the device, in hexadecimal digits.
    ///   - topic: the device's topic.
    ///   - finishedTransferCount: the number of finished transfers of a session.
    ///   - timeLeft: the time until the deadline. The deadline cannot be extended, and the handler is not cancelled.
    ///   - resumedFrom: the progress of an earlier launch of a continued task; nil for the first launch. Progress in
    ///     this launch is not reported.
    ///   - scheduler: a worker's scheduler. Without one, submitting a request throws an error.
    ///
    /// ```swift
    /// try await refresh(BackgroundTaskContext(.appRefresh("com.example.app.refresh"), topic: "com.example.app"))
    /// ```
    public init(
        _ task: BackgroundTask,
        deviceToken: String = "00000000000000000000000000000000",
        topic: String,
        finishedTransferCount: Int = 0,
        timeLeft: Duration = .seconds(30),
        resumedFrom: BackgroundTaskResumption? = nil,
        scheduler: BackgroundTaskScheduler? = nil
    ) {
        self.init(
            task,
            deviceToken: deviceToken,
            topic: topic,
            finishedTransferCount: finishedTransferCount,
            resumedFrom: resumedFrom,
            texts: (nil, nil),
            scheduler: scheduler ?? BackgroundTaskScheduler(.none, registry: BackgroundTaskRegistry()),
            WakeLease(timeLeft: timeLeft)
        )
    }

    /// Creates a context with this lease, for tests. No gateway is involved.
    package init(
        _ task: BackgroundTask,
        deviceToken: String,
        topic: String,
        finishedTransferCount: Int,
        resumedFrom: BackgroundTaskResumption?,
        texts: (title: String?, subtitle: String?),
        scheduler: BackgroundTaskScheduler,
        _ lease: WakeLease
    ) {
        self.id = "00000000000000000000000000000000"
        self.kind = task.kind
        self.identifier = task.identifier
        self.deviceToken = deviceToken
        self.topic = topic
        self.attempt = 1
        self.submittedAt = 0
        self.finishedTransferCount = finishedTransferCount
        self.traceparent = nil
        self.tracestate = nil
        self.scheduler = scheduler
        self.resumedFrom = resumedFrom
        self.lease = lease
        self.reporting = TaskReporting(title: texts.title, subtitle: texts.subtitle)
    }

    init(_ launch: TaskLaunch, _ scheduler: BackgroundTaskScheduler) {
        let (message, lease) = (launch.message, launch.lease)
        self.id = message.wake
        // A task's message has one of the known kinds.
        self.kind = BackgroundTaskKind(rawValue: message.kind.name) ?? .processing
        switch message.work {
        case .task(let identifier, let title, let subtitle):
            (self.identifier, self.finishedTransferCount) = (identifier, 0)
            self.reporting = lease.reporting ?? TaskReporting(title: title, subtitle: subtitle)
        case .session(let name, let count):
            (self.identifier, self.finishedTransferCount) = (name, count)
            self.reporting = lease.reporting ?? TaskReporting(title: nil, subtitle: nil)
        }
        self.resumedFrom = message.resumedFrom.map { BackgroundTaskResumption($0) }
        self.deviceToken = message.device
        self.topic = message.topic
        self.attempt = message.attempt
        self.submittedAt = message.submittedAt
        self.traceparent = message.traceparent
        self.tracestate = message.tracestate
        self.scheduler = scheduler
        self.lease = lease
    }
}

// MARK: - Progress

extension BackgroundTaskContext {
    /// The progress of the task. The handler sets it, and it starts at zero in every launch.
    ///
    /// The worker reports the progress of a continued task to the gateway at most four times a second. It always
    /// reports the last values before the task ends. Whenever the completed amount exceeds its maximum in this launch,
    /// the task gets its full time again. The progress of other kinds of tasks is not reported.
    ///
    /// ```swift
    /// task.progress.totalUnitCount = 100
    /// task.progress.completedUnitCount += 1
    /// ```
    public var progress: BackgroundTaskProgress { self.reporting.progress }

    /// The title that a person sees: from the request, or from the last ``update(title:subtitle:)``.
    public var title: String? { self.reporting.title }

    /// The text that a person sees below the title.
    public var subtitle: String? { self.reporting.subtitle }

    /// Changes the texts that a person sees. They are reported with the progress.
    ///
    /// - Parameters:
    ///   - title: the title; nil leaves it unchanged. A text longer than 256 bytes is truncated.
    ///   - subtitle: the subtitle; the same rules apply.
    ///
    /// ```swift
    /// task.update(subtitle: "Film 3 of 7")
    /// ```
    public func update(title: String? = nil, subtitle: String? = nil) {
        self.reporting.update(title: title, subtitle: subtitle)
    }
}

/// The progress of a continued task in an earlier launch: see ``BackgroundTaskContext/resumedFrom``.
public struct BackgroundTaskResumption: Hashable, Sendable {
    /// The number of completed units. If the progress had children, the number is in thousandths of units.
    public let completedUnitCount: Int64
    /// The total number of units, in the same unit; 0 if unknown.
    public let totalUnitCount: Int64
    /// The title that was shown; nil for the title of the request.
    public let title: String?
    /// The subtitle that was shown; nil for the subtitle of the request.
    public let subtitle: String?

    /// Creates the progress of an earlier launch, for the test of a handler.
    ///
    /// - Parameters:
    ///   - completedUnitCount: the number of completed units.
    ///   - totalUnitCount: the total number of units; 0 if unknown.
    ///   - title: the title that was shown.
    ///   - subtitle: the subtitle that was shown.
    public init(completedUnitCount: Int64, totalUnitCount: Int64, title: String? = nil, subtitle: String? = nil) {
        self.completedUnitCount = completedUnitCount
        self.totalUnitCount = totalUnitCount
        self.title = title
        self.subtitle = subtitle
    }

    init(_ resumption: TaskMessage.Resumption) {
        self.init(
            completedUnitCount: resumption.completed,
            totalUnitCount: resumption.total,
            title: resumption.title,
            subtitle: resumption.subtitle
        )
    }

    /// The completed fraction, from 0 to 1; 0 if the total was unknown.
    public var fractionCompleted: Double {
        self.totalUnitCount > 0 ? min(1, Double(self.completedUnitCount) / Double(self.totalUnitCount)) : 0
    }
}

// MARK: - Time

extension BackgroundTaskContext {
    /// The time until which the handler's outcome counts, by this machine's clock. An extension moves it. The handler's
    /// task is cancelled earlier; `policy.expirationLead` is the time between the two.
    public var deadline: ContinuousClock.Instant { self.lease.deadline }

    /// The time until the deadline; never negative.
    public var timeLeft: Duration { self.lease.timeLeft }

    /// The reason why the handler's task was cancelled. It is nil if the task was not cancelled or the worker was
    /// stopped.
    ///
    /// ```swift
    /// try await withTaskCancellationHandler {
    ///     try await export()
    /// } onCancel: {
    ///     if context.expirationReason == .conditions { log("the machine is in use again") }
    /// }
    /// ```
    public var expirationReason: BackgroundTaskExpiration? {
        self.lease.expiration.map { BackgroundTaskExpiration($0) }
    }

    /// Requests more time.
    ///
    /// - Parameter duration: the time that the handler needs from now, rounded up to whole seconds.
    /// - Returns: the remaining time. It is shorter than the requested time if the gateway's `policy.maxExtension` does
    ///   not permit more.
    /// - Throws: ``WakeWorkerError``: `extensionLimitReached` if the gateway grants no more time, `wakeEnded` if the
    ///   wake has ended, `cancelled`, and the errors of a failed request.
    ///
    /// ```swift
    /// let left = try await context.extend(by: .seconds(60))
    /// ```
    @discardableResult
    public func extend(by duration: Duration = .seconds(30)) async throws(WakeWorkerError) -> Duration {
        try await self.lease.extend(self.id, by: duration)
    }

    /// Extends the wake repeatedly while `body` runs, until the gateway grants no more time. After that, the handler's
    /// task is cancelled before the deadline as usual.
    ///
    /// - Parameter body: the work that needs more time.
    /// - Returns: the result of `body`.
    /// - Throws: the error of `body`.
    ///
    /// ```swift
    /// try await context.withExtendedTime { try await cleanUp() }
    /// ```
    public func withExtendedTime<Value: Sendable>(_ body: () async throws -> Value) async rethrows -> Value {
        try await self.lease.withExtendedTime(self.id, body)
    }
}

extension BackgroundTaskContext: CustomStringConvertible {
    /// The wake's identifier, and the kind and identifier of the task. The device's token is not included.
    public var description: String { "wake \(self.id) of \(self.kind.rawValue) \(self.identifier)" }
}

/// The reason why the handler of a background task was cancelled. Later versions may add cases, so a `switch` needs a
/// `default`.
public enum BackgroundTaskExpiration: String, Hashable, Sendable, CaseIterable {
    /// The deadline is near or has passed.
    case deadline
    /// A continued task made no progress for too long.
    case progress
    /// The device's conditions no longer permit the task: for example, the device is in use, has lost external power,
    /// or is too hot.
    case conditions
    /// Memory is short, or the limit of concurrent continued tasks was lowered. A task with the strategy `queue`
    /// launches again later.
    case pressure
    /// The submitter of the request has cancelled it.
    case cancelled
    /// An operator has ended the task.
    case `operator`
    /// The stream of the wake broke, or the gateway considers the wake lost. The task launches again.
    case lost

    init(_ reason: ExpirationReason) { self = Self(rawValue: reason.rawValue) ?? .lost }
}
