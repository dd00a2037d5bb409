import HTTPClient
import Platform
import Wire

/// Submits and cancels requests of background tasks for one device.
///
/// The gateway launches a request once and then removes it. To run again, a handler submits a new request, preferably
/// when it starts. A submission replaces a pending request with the same identifier.
///
/// ```swift
/// try await worker.scheduler.submit(.processing("com.example.app.db-cleanup", requiresExternalPower: true))
/// ```
public struct BackgroundTaskScheduler: Sendable {
    /// The device of a scheduler.
    enum Device: Sendable {
        case token(String, GatewayCaller)
        /// Several devices or none. The associated value is the number of devices.
        case several(Int)
        /// No device, as in a test.
        case none
        /// A recorder of requests, for tests.
        case test(any TaskRequestRecorder)
    }

    private let device: Device
    private let registry: BackgroundTaskRegistry

    init(_ device: Device, registry: BackgroundTaskRegistry) {
        self.device = device
        self.registry = registry
    }

    /// Creates a scheduler for tests, which passes its requests to a recorder.
    package init(_ recorder: any TaskRequestRecorder) {
        self.init(.test(recorder), registry: BackgroundTaskRegistry())
    }

    private var recorder: (any TaskRequestRecorder)? {
        if case .test(let recorder) = self.device { recorder } else { nil }
    }

    /// Submits a request.
    ///
    /// - Parameter request: the request.
    /// - Returns: the outcome, after the gateway has stored the request durably.
    /// - Throws: ``BackgroundTaskError``.
    ///
    /// ```swift
    /// try await scheduler.submit(.appRefresh("com.example.app.refresh", earliestBegin: .now + .minutes(15)))
    /// ```
    @discardableResult
    public func submit(_ request: BackgroundTaskRequest) async throws(BackgroundTaskError) -> BackgroundTaskSubmission {
        let body = try request.json()
        if let recorder = self.recorder { return try recorder.submit(request) }
        let response = try await self.ask("POST", "/tasks", body)
        guard let submission = JSONValue(object: response.body).flatMap({ BackgroundTaskSubmission($0) }) else {
            throw Self.unreadable
        }
        return submission
    }

    /// Submits a request from synchronous code, like `submitTaskRequest(_:completionHandler:)` on iOS.
    ///
    /// Cancelling the task that calls this function does not cancel the submission.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - completionHandler: called with nil after the gateway has stored the request durably, or with the error.
    ///
    /// ```swift
    /// func scheduleAppRefresh() {
    ///     scheduler.submitTaskRequest(.appRefresh("com.example.app.refresh", earliestBegin: .now + .minutes(15))) {
    ///         if let error = $0 { log("\(error)") }
    ///     }
    /// }
    /// ```
    public func submitTaskRequest(
        _ request: BackgroundTaskRequest,
        completionHandler: @escaping @Sendable (BackgroundTaskError?) -> Void = { _ in }
    ) {
        Task {
            do throws(BackgroundTaskError) {
                try await self.submit(request)
                completionHandler(nil)
            } catch {
                completionHandler(error)
            }
        }
    }

    /// Returns the pending requests, in an unspecified order.
    ///
    /// - Returns: the requests.
    /// - Throws: ``BackgroundTaskError``.
    ///
    /// ```swift
    /// for request in try await scheduler.pendingRequests() { log("\(request.identifier): \(request.why)") }
    /// ```
    public func pendingRequests() async throws(BackgroundTaskError) -> [PendingTaskRequest] {
        if let recorder = self.recorder { return recorder.pendingRequests() }
        let response = try await self.ask("GET", "/tasks", nil)
        guard let waiting = JSONValue(object: response.body)?["waiting"] else { throw Self.unreadable }
        return waiting.elements.compactMap { PendingTaskRequest($0) }
    }

    /// Cancels the pending request with this identifier, and ends a running continued task. Other running tasks are not
    /// affected.
    ///
    /// - Parameter identifier: the request's identifier.
    /// - Throws: ``BackgroundTaskError``.
    ///
    /// ```swift
    /// try await scheduler.cancel("com.example.app.db-cleanup")
    /// ```
    public func cancel(_ identifier: String) async throws(BackgroundTaskError) {
        try BackgroundTaskError.checkIdentifier(identifier, "identifier")
        if let recorder = self.recorder { return recorder.cancel(identifier) }
        _ = try await self.ask("DELETE", "/tasks/\(URLPath.component(identifier))", nil)
    }

    /// Cancels all pending requests, and ends running continued tasks. Other running tasks are not affected.
    ///
    /// - Throws: ``BackgroundTaskError``.
    ///
    /// ```swift
    /// try await scheduler.cancelAll()
    /// ```
    public func cancelAll() async throws(BackgroundTaskError) {
        if let recorder = self.recorder { return recorder.cancel(nil) }
        _ = try await self.ask("DELETE", "/tasks", nil)
    }

    /// Reports that transfers of a background session have finished. The gateway then launches the session's
    /// `urlSession` handler.
    ///
    /// - Parameters:
    ///   - session: the name of the session, with the syntax of an identifier.
    ///   - count: the number of finished transfers, 1 to 100,000.
    ///   - id: an idempotency key of up to 64 characters. Reports with the same key count once. The default is a random
    ///     key, so a retry of the same report does not count again.
    /// - Throws: ``BackgroundTaskError``: `tooManySessions` if eight other sessions have pending transfers.
    ///
    /// ```swift
    /// try await scheduler.transfersFinished(session: "photos", count: 3)
    /// ```
    public func transfersFinished(
        session: String,
        count: Int = 1,
        id: String? = nil
    ) async throws(BackgroundTaskError) {
        try BackgroundTaskError.checkIdentifier(session, "session")
        guard 1...100_000 ~= count else {
            throw BackgroundTaskError(.badTaskRequest, "count is \(count); it is 1 to 100000")
        }
        if let id, !(1...64 ~= id.count) {
            throw BackgroundTaskError(.badTaskRequest, "id has \(id.count) characters; it has 1 to 64")
        }
        if let recorder = self.recorder { return recorder.transfersFinished(session: session, count: count, id: id) }
        let body = "{\"finished\":\(count),\"id\":\(JSONText.quoted(id ?? Self.randomID()))}"
        let path = "/sessions/\(URLPath.component(session))"
        _ = try await self.ask("POST", path, Array(body.utf8), isIdempotent: true)
    }

    /// Registers a handler that uses callbacks, like `BGTaskScheduler` on iOS.
    ///
    /// - Parameters:
    ///   - identifier: the identifier or pattern, as in ``BackgroundTask``.
    ///   - executor: the executor that calls `launchHandler`; by default Swift's global executor.
    ///   - launchHandler: the function that receives each launch. It must call
    ///     ``ScheduledTask/setTaskCompleted(success:)``, on any thread.
    /// - Throws: ``WakeWorkerError``, as ``WakeWorker/backgroundTask(_:action:)`` does.
    ///
    /// ```swift
    /// try worker.scheduler.register(forTaskWithIdentifier: "com.example.app.refresh") { task in
    ///     let download = Download { isComplete in task.setTaskCompleted(success: isComplete) }
    ///     task.expirationHandler = { download.cancel() }
    /// }
    /// ```
    public func register(
        forTaskWithIdentifier identifier: String,
        using executor: (any TaskExecutor)? = nil,
        launchHandler: @escaping @Sendable (ScheduledTask) -> Void
    ) throws(WakeWorkerError) {
        try self.registry.register(BackgroundTask.appRefresh(identifier).name) {
            try await ScheduledTask.run(BackgroundTaskContext($0, $1), on: executor, launchHandler)
        }
    }

    private func ask(
        _ method: String,
        _ path: String,
        _ body: [UInt8]?,
        isIdempotent: Bool? = nil
    ) async throws(BackgroundTaskError) -> HTTPResponse {
        switch self.device {
        case .token(let token, let caller):
            do throws(WakeWorkerError) {
                let device = "/v1/devices/\(try GatewayCaller.hexadecimal(token))"
                return try await caller.answer(method, device + path, body, isIdempotent: isIdempotent)
            } catch {
                throw BackgroundTaskError(error)
            }
        case .several(let count):
            throw BackgroundTaskError(
                .noDevice,
                "this worker names \(count) devices; name one to it, or take worker.scheduler(for: token)"
            )
        case .none, .test:
            throw BackgroundTaskError(.noDevice, "no gateway sent this task; give its context a scheduler")
        }
    }

    private static let unreadable = BackgroundTaskError(
        WakeWorkerError(.badAnswer, "the gateway's answer about background tasks cannot be read; see its version")
    )

    private static func randomID() -> String {
        var generator = RandomBits()
        let (high, low) = generator.pair()
        return String(high, radix: 36) + String(low, radix: 36)
    }
}

/// The recorder of a scheduler's requests in a test. It replaces the gateway.
package protocol TaskRequestRecorder: Sendable {
    func submit(_ request: BackgroundTaskRequest) throws(BackgroundTaskError) -> BackgroundTaskSubmission
    func pendingRequests() -> [PendingTaskRequest]

    /// Cancels the request with this identifier; all requests if it is nil.
    func cancel(_ identifier: String?)
    func transfersFinished(session: String, count: Int, id: String?)
}

/// One launch of a background task, for a handler that uses callbacks: the counterpart of `BGTask` on iOS.
///
/// See ``BackgroundTaskScheduler/register(forTaskWithIdentifier:using:launchHandler:)``. If the task object is released
/// before ``setTaskCompleted(success:)`` is called, the task fails.
public final class ScheduledTask: Sendable {
    /// The context of the launch.
    public let context: BackgroundTaskContext
    private let call: CompletionCall

    /// The identifier of the task.
    public var identifier: String { self.context.identifier }

    /// The progress of the task. The handler sets it: see ``BackgroundTaskContext/progress``.
    public var progress: BackgroundTaskProgress { self.context.progress }

    /// Changes the texts that a person sees: see ``BackgroundTaskContext/update(title:subtitle:)``.
    ///
    /// - Parameters:
    ///   - title: the title; nil leaves it unchanged.
    ///   - subtitle: the subtitle; nil leaves it unchanged.
    public func update(title: String? = nil, subtitle: String? = nil) {
        self.context.update(title: title, subtitle: subtitle)
    }

    /// The function that is called before the deadline if the task is not completed; `policy.expirationLead` is the
    /// time between the two. It should clean up and call ``setTaskCompleted(success:)``, which counts until the
    /// deadline.
    ///
    /// The function is also called if the gateway ended the task or the connection broke. Completing the task then has
    /// no effect. A function that is set after the expiration is called immediately.
    public var expirationHandler: (@Sendable () -> Void)? {
        get { self.call.expirationHandler }
        set { self.call.expirationHandler = newValue }
    }

    private init(_ context: BackgroundTaskContext, _ call: CompletionCall) {
        self.context = context
        self.call = call
    }

    /// Completes the task. Only the first call has an effect.
    ///
    /// - Parameter success: true if the task has succeeded.
    public func setTaskCompleted(success: Bool) {
        self.call.complete(success ? .newData : .failed)
    }

    /// Passes a launch to a handler and waits until the task is completed.
    ///
    /// - Throws: ``Failed`` if the task was not completed successfully.
    package static func run(
        _ context: BackgroundTaskContext,
        on executor: (any TaskExecutor)?,
        _ handler: @Sendable (ScheduledTask) -> Void
    ) async throws {
        let result = await context.lease.runCallbacks(on: executor) { handler(ScheduledTask(context, $0)) }
        guard result == .newData else { throw Failed() }
    }

    /// The error of a task whose handler reported failure, reported no outcome, or exceeded the deadline.
    struct Failed: Error, CustomStringConvertible {
        var description: String { "the task was completed without success, or not at all" }
    }
}
