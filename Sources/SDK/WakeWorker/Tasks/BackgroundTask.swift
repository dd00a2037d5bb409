import Wire

/// What a handler is registered for: see ``WakeWorker/backgroundTask(_:action:)``.
///
/// An identifier is 1 to 255 letters, digits, full stops, hyphens and underscores. One that ends in `.*` is a pattern:
/// `com.example.export.*` stands for every identifier that begins with `com.example.export.` and goes on. Of several
/// patterns that fit, the longest counts, and an identifier of its own counts before all of them.
///
/// ```swift
/// try worker.backgroundTask(.appRefresh("com.example.app.refresh")) { context in try await refresh() }
/// ```
public struct BackgroundTask: Hashable, Sendable, CustomStringConvertible {
    /// The kind that is meant.
    public let kind: BackgroundTaskKind
    /// The identifier or pattern; of a `urlSession` the session's name, or a pattern for names.
    public let identifier: String

    /// A short task, such as fetching what is new.
    ///
    /// - Parameter identifier: the identifier that its requests have, or a pattern.
    public static func appRefresh(_ identifier: String) -> BackgroundTask {
        BackgroundTask(kind: .appRefresh, identifier: identifier)
    }

    /// A task of minutes, for when the device is idle.
    ///
    /// - Parameter identifier: the identifier that its requests have, or a pattern.
    public static func processing(_ identifier: String) -> BackgroundTask {
        BackgroundTask(kind: .processing, identifier: identifier)
    }

    /// A task that a person started and waits for, which has time as long as it makes progress.
    ///
    /// - Parameter identifier: the identifier that its requests have, or a pattern.
    public static func continued(_ identifier: String) -> BackgroundTask {
        BackgroundTask(kind: .continued, identifier: identifier)
    }

    /// Transfers of a background session that have finished.
    ///
    /// - Parameter name: the session's name, or a pattern.
    public static func urlSession(_ name: String) -> BackgroundTask {
        BackgroundTask(kind: .urlSession, identifier: name)
    }

    /// The kind and the identifier.
    public var description: String { "\(self.kind.rawValue) \(self.identifier)" }

    /// How it is found.
    var name: BackgroundTaskName {
        BackgroundTaskName(self.identifier, isSession: self.kind == .urlSession)
    }
}

/// What kinds of background work there are.
public enum BackgroundTaskKind: String, Hashable, Sendable, CaseIterable {
    /// A short task, such as fetching what is new.
    case appRefresh
    /// A task of minutes, for when the device is idle.
    case processing
    /// A task that a person started and waits for.
    case continued
    /// The transfers of a background session that have finished.
    case urlSession
}

/// What a worker's machine has that some background tasks need; such a task goes to no other worker.
public struct BackgroundTaskResources: OptionSet, Hashable, Sendable {
    /// A graphics processor.
    public static let gpu = BackgroundTaskResources(rawValue: 1)

    /// One bit for each.
    public let rawValue: Int

    /// A set of the resources whose bits are set.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// As the gateway calls them.
    var names: [String] { self.contains(.gpu) ? ["gpu"] : [] }

    /// The resources of these names that this version knows.
    init(names: [String]) {
        self = names.contains("gpu") ? .gpu : []
    }
}

/// One launch of a background task, or the word that transfers of a session have finished, for its handler.
///
/// ```swift
/// try worker.backgroundTask(.appRefresh("com.example.app.refresh")) { context in
///     try await context.scheduler.submit(.appRefresh(context.identifier, earliestBegin: .now + .minutes(15)))
///     try await refresh(context.deviceToken)
/// }
/// ```
public struct BackgroundTaskContext: Identifiable, Sendable {
    /// The wake's id: 128 random bits, new for every launch.
    public let id: String
    /// The kind that its request has, which need not be the one that the handler was registered for.
    public let kind: BackgroundTaskKind
    /// The identifier of the task; of a `urlSession` the session's name.
    public let identifier: String
    /// The device it is for, in hexadecimal digits.
    public let deviceToken: String
    /// The topic the device belongs to.
    public let topic: String
    /// Which launch of this request it is, from 1.
    public let attempt: Int
    /// When the gateway took the request, or first heard of the transfers, in milliseconds since 1970 by the gateway's
    /// clock.
    public let submittedAt: Int64
    /// How many transfers of the session have finished; 0 for a task.
    public let finishedTransferCount: Int
    /// The trace that the request belongs to, as the `traceparent` header of its submission said (W3C Trace Context);
    /// nil when it had none.
    public let traceparent: String?
    /// What its `tracestate` header said; nil when there was none.
    public let tracestate: String?
    /// What requests of the same device are submitted and cancelled with.
    public let scheduler: BackgroundTaskScheduler
    /// How far a continued task was by what an earlier launch told last, which was lost: what is left may be done from
    /// there. Nil in the first launch, when no launch told of progress, and for other kinds.
    public let resumedFrom: BackgroundTaskResumption?
    private let lease: WakeLease
    private let reporting: TaskReporting

    /// A context that no gateway sent, to test a handler with.
    ///
    /// - Parameters:
    ///   - task: what the handler is registered for.
    ///   - deviceToken: the device it is for.
    ///   - topic: the topic the device belongs to.
    ///   - finishedTransferCount: how many transfers of a session have finished.
    ///   - timeLeft: how long until its deadline. Nobody extends it, and nobody cancels the handler.
    ///   - resumedFrom: how far a continued task was in an earlier launch; nil for its first. Nobody is told of its
    ///     progress in this one.
    ///   - scheduler: a worker's scheduler; without one, what the handler submits is an error.
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

    /// A context that no gateway sent, with this lease.
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

    /// - Parameter kind: the message's.
    init(
        _ message: TaskMessage,
        _ kind: BackgroundTaskKind,
        _ lease: WakeLease,
        _ scheduler: BackgroundTaskScheduler
    ) {
        self.id = message.wake
        self.kind = kind
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
    /// How far the task is, for its handler to say. It begins at nothing in every launch.
    ///
    /// The gateway is told of a continued task's, four times a second at most, and of what was said last before the
    /// task ends; each time more is completed than ever before in this launch, the task has its time anew. It is
    /// cancelled `policy.expirationLead` before that is over. Of other kinds nobody is told.
    ///
    /// ```swift
    /// task.progress.totalUnitCount = 100
    /// task.progress.completedUnitCount += 1
    /// ```
    public var progress: BackgroundTaskProgress { self.reporting.progress }

    /// What a person sees of it: the request's, or what ``update(title:subtitle:)`` said last.
    public var title: String? { self.reporting.title }

    /// What a person sees below the title.
    public var subtitle: String? { self.reporting.subtitle }

    /// Shows a person other texts, which are told with the progress, as often.
    ///
    /// - Parameters:
    ///   - title: the title; nil leaves it as it is. What is longer than 256 bytes is cut.
    ///   - subtitle: the subtitle; as the title.
    ///
    /// ```swift
    /// task.update(subtitle: "Film 3 of 7")
    /// ```
    public func update(title: String? = nil, subtitle: String? = nil) {
        self.reporting.update(title: title, subtitle: subtitle)
    }
}

/// How far a continued task was in an earlier launch: see ``BackgroundTaskContext/resumedFrom``.
public struct BackgroundTaskResumption: Hashable, Sendable {
    /// How many units were done; of a progress that had children, thousandths of its units.
    public let completedUnitCount: Int64
    /// How many there were to be done, in the same unit; 0 when that was not known.
    public let totalUnitCount: Int64
    /// The title that was shown; nil for the request's.
    public let title: String?
    /// The subtitle that was shown; nil for the request's.
    public let subtitle: String?

    /// What an earlier launch may have told, to test a handler with.
    ///
    /// - Parameters:
    ///   - completedUnitCount: how many units were done.
    ///   - totalUnitCount: how many there were to be done.
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

    /// The share that was done, from 0 to 1; 0 when the total was not known.
    public var fractionCompleted: Double {
        self.totalUnitCount > 0 ? min(1, Double(self.completedUnitCount) / Double(self.totalUnitCount)) : 0
    }
}

// MARK: - Time

extension BackgroundTaskContext {
    /// Until when the handler's outcome counts; an extension moves it. The handler's task is cancelled
    /// `policy.expirationLead` before. By this machine's clock, whatever the gateway's says.
    public var deadline: ContinuousClock.Instant { self.lease.deadline }

    /// How long until the deadline; never negative.
    public var timeLeft: Duration { self.lease.timeLeft }

    /// True if the handler's task was cancelled because the deadline is near.
    var isExpiring: Bool { self.lease.graceLeft != nil }

    /// Has `completion` fail when the wake ends.
    func fail(_ completion: Completion) { self.lease.fail(completion) }

    /// Why the handler's task was cancelled; nil when it was not, or the worker was stopped.
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

    /// Asks for more time.
    ///
    /// - Parameter duration: how long from now the handler still needs; whole seconds, rounded up.
    /// - Returns: the time that is left now. It may be less than was asked for, when the gateway's
    ///   `policy.maxExtension` does not give as much.
    /// - Throws: ``WakeWorkerError``: `extensionLimitReached` when the gateway gives no more, `wakeEnded` when it is
    ///   too late, `cancelled`, and what keeps a request from the gateway.
    ///
    /// ```swift
    /// let left = try await context.extend(by: .seconds(60))
    /// ```
    @discardableResult
    public func extend(by duration: Duration = .seconds(30)) async throws(WakeWorkerError) -> Duration {
        try await self.lease.extend(self.id, by: duration)
    }

    /// Keeps the wake alive while `body` runs: asks for more time whenever half of it has passed, until the gateway
    /// gives no more. After that the handler's task is cancelled before the deadline, as always.
    ///
    /// - Parameter body: what takes longer.
    /// - Returns: what `body` does.
    /// - Throws: what `body` does.
    ///
    /// ```swift
    /// try await context.withExtendedTime { try await cleanUp() }
    /// ```
    public func withExtendedTime<Value: Sendable>(_ body: () async throws -> Value) async rethrows -> Value {
        try await self.lease.withExtendedTime(self.id, body)
    }
}

extension BackgroundTaskContext: CustomStringConvertible {
    /// The wake's id and what it is for; not the token.
    public var description: String { "wake \(self.id) of \(self.kind.rawValue) \(self.identifier)" }
}

/// Why the handler of a background task was cancelled. More cases may come; give a `switch` a `default`.
public enum BackgroundTaskExpiration: String, Hashable, Sendable, CaseIterable {
    /// The deadline is near, or has passed.
    case deadline
    /// A continued task made no progress for too long.
    case progress
    /// The device's conditions no longer allow it: somebody uses it, it lost its power, or it is too hot.
    case conditions
    /// Memory is short, or fewer continued tasks may run than before: one that may wait launches again later.
    case pressure
    /// Whoever submitted it has cancelled it.
    case cancelled
    /// An operator has ended it.
    case `operator`
    /// The connection that brought it broke, or the gateway gave it up: it launches again.
    case lost

    init(_ reason: ExpirationReason) {
        self =
            switch reason {
            case .deadline: .deadline
            case .progress: .progress
            case .conditions: .conditions
            case .pressure: .pressure
            case .cancelled: .cancelled
            case .operator: .operator
            case .lost: .lost
            }
    }
}
