import HTTPClient
import Platform

/// One `run` of a worker: its subscription, its unfinished wakes, and its pending requests to the gateway.
///
/// `@unchecked Sendable`: accessed only on its `HTTPThread`. Other threads submit work to that thread.
final class WorkerSession: HTTPAgent, @unchecked Sendable {
    /// The continuation of `run`. It resumes with nil if the worker was stopped.
    typealias Ending = CheckedContinuation<WakeWorkerError?, Never>
    /// The outcome of a handler.
    typealias Outcome = Result<BackgroundFetchResult, any Error>
    /// An unfinished wake.
    struct ActiveWake {
        var machine: WakeStateMachine
        var keepAlive = KeepAlive()
        let lease: WakeLease
        /// The original deadline in milliseconds, by the thread's clock and by the gateway's clock.
        let firstDeadline: (here: Int64, gateway: Int64)
        /// The latest deadline that the gateway has sent, in milliseconds by the gateway's clock.
        var gatewayDeadline: Int64
        /// True for the wake of a background task or session.
        let isTask: Bool
        let work: WorkerHandlers.Work
        var task: Task<Void, Never>?
        var reports: ProgressStateMachine
        /// The outcome of the handler, stored while the last progress report is in flight.
        var heldOutcome: Outcome?
        /// The error with which the handler returned the wake.
        var release: WakeRelease?
        /// True if a result timed out before. The connection may then be dead.
        var isConnectionDoubtful = false
        /// The number of requests in flight that may move the deadline.
        var timeRequests = 0
        /// The gateway's warning that the deadline is near. It is stored until the handler runs and `timeRequests` is
        /// 0.
        var heldWarning: Warning?

        /// An `expiring` event, with the deadline that is near.
        struct Warning {
            /// The deadline in milliseconds by the thread's clock.
            let end: Int64
            /// The deadline in milliseconds by the gateway's clock.
            let gatewayDeadline: Int64
        }
    }

    /// A request for more time by a caller that waits for the answer. Only the first answer counts.
    typealias ExtensionWaiter = Completion<Result<Duration, WakeWorkerError>>

    /// The purpose of a request other than the stream.
    enum Purpose {
        case result(wake: String)
        case extend(wake: String, ExtensionWaiter?)
        case progress(wake: String)
        case drain
    }

    /// The owner of a timer.
    enum Timer: Hashable, Sendable {
        case subscription, renewal, stop, drain
        case wake(String)
    }

    let request: SubscriptionRequest
    let thread: HTTPThread
    private let cancellations: CancellationThread
    let handlers: WorkerHandlers
    let events: AsyncStream<WakeWorkerEvent>.Continuation
    /// The reports of the machine's conditions. They pause while the subscription is interrupted.
    let reports: MachineReports
    var generator = RandomBits()
    var timers = MomentHeap<Timer>()
    var purposes: [HTTPRequestID: Purpose] = [:]

    // The subscription
    var subscription = SubscriptionStateMachine(now: 0)
    var stream: HTTPRequestID?
    /// The state of returned wakes on the current stream.
    var releases = ReleaseStateMachine()
    /// True while the worker subscribes again after a stalled stream.
    var isRenewing = false
    /// The warnings of the last subscription. Only new warnings are reported.
    var warnings: [String] = []
    /// True if the last stream fell silent. Its connection may then be dead.
    var isConnectionDoubtful = false
    var reader = EventStreamReader(eventBytesMax: WorkerSession.eventBytesMax)
    /// True if the drain request failed. The worker then ignores new wakes, which launch on other workers.
    var ignoresWakes = false

    // Wakes
    var wakes: [String: ActiveWake] = [:]
    /// The wakes that wait for a free slot. Cancelled handlers still occupy slots.
    var queue: [String] = []
    var runningHandlers = 0
    var refusedKinds = RefusedKinds()

    // The end
    private var ending: Ending?
    var failure: WakeWorkerError?
    private var isStopRequested = false
    private(set) var stop: StopStateMachine
    private var isOver = false

    /// The maximum size of an event, in bytes: a VoIP push of 5 KiB plus its other fields.
    static let eventBytesMax = 1 << 16

    init(
        _ request: SubscriptionRequest,
        thread: HTTPThread,
        cancellations: CancellationThread,
        handlers: WorkerHandlers,
        events: AsyncStream<WakeWorkerEvent>.Continuation,
        reports: MachineReports
    ) {
        self.request = request
        self.thread = thread
        self.cancellations = cancellations
        self.handlers = handlers
        self.events = events
        self.reports = reports
        self.stop = StopStateMachine(limit: request.stopMax)
    }

    func begin(_ ending: Ending, on loop: HTTPLoop) {
        self.ending = ending
        self.reports.subscriptionChanged(false, on: loop)
        self.subscription = SubscriptionStateMachine(now: loop.now, timing: self.request.timing)
        if self.isStopRequested { _ = self.subscription.stopRequested() }
        self.settle(on: loop)
    }

    /// Stops the worker. It accepts no more wakes, lets handlers finish, and delivers their results.
    func stopRequested(on loop: HTTPLoop) {
        guard !self.isStopRequested else { return }
        self.isStopRequested = true
        guard self.ending != nil else { return }
        self.events.yield(.stopping)
        self.stop.stopRequested(now: loop.now)
        switch self.subscription.stopRequested() {
        case .drain: self.drain(on: loop)
        case .cancel:
            if let stream = self.stream { loop.cancel(stream) }
            self.stream = nil
        case .nothing: break
        }
        self.settle(on: loop)
    }

    /// Stops the worker faster. It accepts no more wakes, cancels the running handlers, and ends after the last
    /// handler.
    func cancelRequested(on loop: HTTPLoop) {
        self.stopRequested(on: loop)
        self.stop.cancelRequested(now: loop.now)
        guard self.ending != nil else { return }
        self.cancelHandlers(on: loop)
        self.settle(on: loop)
    }

    /// Cancels the running handlers, and removes the queued wakes, which launch on other workers.
    private func cancelHandlers(on loop: HTTPLoop) {
        for (id, wake) in self.wakes {
            wake.lease.endGrace()
            self.cancelTask(id)
            if wake.machine.isQueued { self.forget(id) }
            self.wakes[id]?.reports.abandoned()
            self.releaseOutcome(id, on: loop)
        }
    }

    /// Cancels the task of a wake's handler, and its progress, on another thread.
    func cancelTask(_ id: String) {
        guard let wake = self.wakes[id] else { return }
        self.cancellations.cancel(wake.task, wake.lease.reporting?.progress)
    }

    // MARK: Events of the loop

    func received(_ event: HTTPEvent, on loop: HTTPLoop) {
        switch event {
        case .head(let id, let head): if id == self.stream { self.streamBegan(head, on: loop) }
        case .body(let id, let bytes): if id == self.stream { self.received(bytes, on: loop) }
        case .ended(let id, let result):
            if id == self.stream {
                self.streamEnded(result, on: loop)
            } else if let purpose = self.purposes.removeValue(forKey: id) {
                self.answered(purpose, result, on: loop)
            }
        }
        self.settle(on: loop)
    }

    func momentReached(on loop: HTTPLoop) {
        let now = loop.now
        while let timer = self.timers.popDue(now) {
            switch timer {
            case .subscription: self.subscriptionMoment(on: loop)
            case .renewal: self.renewStream(on: loop)
            case .stop: self.stopMoment(on: loop)
            case .drain: if self.stream != nil { self.drain(on: loop) }
            case .wake(let wake): self.wakeMoment(wake, on: loop)
            }
            if self.isOver { return }
        }
        self.settle(on: loop)
    }

    /// Updates the timers. Ends the session if no work is left.
    func settle(on loop: HTTPLoop) {
        guard !self.isOver else { return }
        if self.ignoresWakes, self.wakes.isEmpty, self.subscription.isStopping, let stream = self.stream {
            loop.cancel(stream)
            self.stream = nil
            self.subscription.failed()
        }
        // After a refusal, the worker ends in the same way as after a stop request.
        if self.subscription.isOver { self.stop.stopRequested(now: loop.now) }
        let isDone = self.subscription.isOver && self.runningHandlers == 0 && self.wakes.isEmpty
        let action = self.stop.workChanged(handlers: self.runningHandlers, wakes: self.wakes.count, now: loop.now)
        if isDone || action == .end { return self.end(on: loop) }
        self.timers.set(.subscription, to: self.subscription.nextMoment)
        self.timers.set(.renewal, to: self.wakes.isEmpty ? self.releases.renewAt : nil)
        self.timers.set(.stop, to: self.stop.nextMoment)
        loop.setMoment(self.timers.first, for: self)
    }

    private func stopMoment(on loop: HTTPLoop) {
        switch self.stop.momentReached(now: loop.now) {
        case .nothing: break
        case .cancelHandlers: self.cancelHandlers(on: loop)
        case .end: self.end(on: loop)
        }
    }

    private func end(on loop: HTTPLoop) {
        guard !self.isOver else { return }
        self.isOver = true
        self.giveUpWakes()
        if let stream = self.stream { loop.cancel(stream) }
        self.stream = nil
        self.reports.subscriptionChanged(nil, on: loop)
        loop.setMoment(nil, for: self)
        for (id, purpose) in self.purposes {
            loop.cancel(id)
            switch purpose {
            case .extend(_, let waiter): waiter?.complete(.failure(Self.noSuchWake))
            case .progress, .result, .drain: break
            }
        }
        self.purposes = [:]
        self.ending?.resume(returning: self.failure)
        self.ending = nil
    }

    /// Abandons the remaining wakes. Those whose results have not arrived launch again on other workers.
    private func giveUpWakes() {
        for id in Array(self.wakes.keys) {
            self.cancelTask(id)
            if let result = self.wakes[id]?.machine.givenUp() {
                let reason = WakeWorkerError(.timedOut, "the worker ended before the gateway had answered to it")
                self.dropped(id, result, reason)
            }
            self.forget(id)
        }
    }

    static let noSuchWake = WakeWorkerError(
        .wakeEnded,
        "the wake has ended: its result was sent, its time is over, or its stream broke"
    )
    static let cancelled = WakeWorkerError(.cancelled, "the task that waited for more time was cancelled")
}

/// The thread that cancels the handlers of all workers of the process, one after another.
///
/// A cancellation first runs the program's own code: `onCancel` closures, expiration handlers and delegates. This code
/// may block. It must therefore not run on the network thread, and not wait for Swift's thread pool.
///
/// `@unchecked Sendable`: `monitor` guards `waiting`.
final class CancellationThread: @unchecked Sendable {
    /// A handler to cancel: its task, and the progress of a continued task.
    private typealias Handler = (task: Task<Void, Never>?, progress: BackgroundTaskProgress?)

    private let monitor = Monitor()
    private var waiting: [Handler] = []

    private static let instance = Result { () throws(ThreadFailure) in try CancellationThread() }

    /// Returns the thread of this process. It is created at the first use and never ends.
    static func shared() throws(ThreadFailure) -> CancellationThread { try self.instance.get() }

    private init() throws(ThreadFailure) {
        try NamedThread("cancellation", signals: .blocked) { [self] in self.run() }
    }

    /// Cancels a handler as soon as possible. Calls are performed in order.
    func cancel(_ task: Task<Void, Never>?, _ progress: BackgroundTaskProgress?) {
        self.monitor.withLock { self.waiting.append((task, progress)) }
        self.monitor.signal()
    }

    private func run() {
        while true {
            var handlers: [Handler] = []
            self.monitor.lock()
            while self.waiting.isEmpty { self.monitor.wait() }
            swap(&handlers, &self.waiting)
            self.monitor.unlock()
            for handler in handlers {
                handler.task?.cancel()
                handler.progress?.cancel()
            }
        }
    }
}
