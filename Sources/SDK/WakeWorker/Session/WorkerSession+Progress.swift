import HTTPClient
import Wire

extension WorkerSession {
    func progressAnswered(_ id: String, _ result: Result<HTTPResponse, HTTPClientError>, on loop: HTTPLoop) {
        let (answer, error) = self.outcome(of: result, id)
        self.reportAnswered(id, answer, error, on: loop)
        if case .success(let response) = result, response.isSuccess { self.timeAnswered(id, response, nil, on: loop) }
        self.releaseOutcome(id, on: loop)
        self.schedule(id)
    }
}

// MARK: - Progress reports of handlers

extension WorkerSession {
    /// Returns an object for the progress of a continued task. This session reports its changes.
    func reporting(of message: TaskMessage) -> TaskReporting {
        var (title, subtitle): (String?, String?) = (nil, nil)
        if case .task(_, let first, let second) = message.work { (title, subtitle) = (first, second) }
        return TaskReporting(title: title, subtitle: subtitle) { [weak self, id = message.wake] in
            guard let session = self else { return }
            session.thread.submit { session.progressChanged(id, on: $0) }
        }
    }

    private func progressChanged(_ id: String, on loop: HTTPLoop) {
        guard self.wakes[id] != nil else { return }
        self.wakes[id]?.reports.changed()
        self.schedule(id)
        self.settle(on: loop)
    }

    /// Sends the current progress if a report is due.
    func reportMoment(_ id: String, on loop: HTTPLoop) {
        if self.wakes[id]?.reports.momentReached(now: loop.now) == true { self.report(id, on: loop) }
    }

    private func report(_ id: String, on loop: HTTPLoop) {
        guard let wake = self.wakes[id], let reporting = wake.lease.reporting else { return }
        do throws(WakeWorkerError) {
            var request = try self.request.progress(reporting.newest(), wake: id)
            request.isFresh = wake.isConnectionDoubtful
            request.timeoutMilliseconds = Int(ProgressStateMachine.lastReportTimeout)
            try self.askForTime(request, .progress(wake: id), of: id, on: loop)
        } catch {
            self.reportAnswered(id, error.isPassing ? .failed(retryAfter: 0) : .refused, error, on: loop)
        }
    }

    private func reportAnswered(
        _ id: String,
        _ answer: WakeStateMachine.Answer,
        _ error: WakeWorkerError?,
        on loop: HTTPLoop
    ) {
        // The `expired` event already reports that a wake has ended.
        if answer == .refused, let error, error.code != .wakeEnded, self.wakes[id] != nil {
            self.events.yield(.progressRefused(wake: id, reason: error))
        }
        self.wakes[id]?.reports.answered(answer, now: loop.now, using: &self.generator)
    }

    /// Returns true if the handler's outcome must wait for the last progress report. Sends that report immediately.
    func isHeldForReport(_ id: String, on loop: HTTPLoop) -> Bool {
        guard let wake = self.wakes[id], wake.machine.isRunning, let reporting = wake.lease.reporting else {
            return false
        }
        // This thread may not have processed the last change yet.
        if reporting.isChanged { self.wakes[id]?.reports.changed() }
        self.wakes[id]?.reports.handlerEnded(now: loop.now)
        self.reportMoment(id, on: loop)
        return self.wakes[id]?.reports.holdsResult == true
    }

    /// Sends the handler's outcome unless it must wait for the last report.
    func releaseOutcome(_ id: String, on loop: HTTPLoop) {
        guard let wake = self.wakes[id], let outcome = wake.heldOutcome,
            !wake.machine.isRunning || !wake.reports.holdsResult
        else { return }
        self.wakes[id]?.heldOutcome = nil
        self.outcomeKnown(id, outcome, on: loop)
    }
}

/// The state machine that determines when the progress of a continued task is reported: at most once per interval, and
/// always before the result.
///
/// All times are milliseconds on the caller's clock, and the caller supplies randomness.
package struct ProgressStateMachine: Sendable {
    private enum State: Hashable, Sendable {
        /// No report is in flight. Can move to: telling, over.
        case quiet
        /// A report is in flight. Can move to: quiet, over.
        case telling
        /// The gateway accepts no more reports. Terminal.
        case over
    }

    /// The timeout of a report, and the maximum time that a result waits for the last one, in milliseconds.
    package static let lastReportTimeout: Int64 = 5000
    /// The maximum wait that the gateway may request, in milliseconds. A task without a report for `progressWindow`, a
    /// minute by default, is ended, and a gateway that counts requests by the minute requests as much.
    package static let requestedWaitMax: Int64 = 10_000

    private let interval: Int64
    private var state = State.quiet
    /// True if the gateway has not received the latest changes.
    private var isBehind = false
    private var reportsAt = Int64.min
    /// The time until which the result waits; nil while the handler runs.
    private var resultWaitsUntil: Int64?
    /// True if the latest answered report failed.
    private var hasFailed = false
    private var backoff = Backoff(firstMilliseconds: 500, lastMilliseconds: 5000)

    package init(timing: WorkerTiming = WorkerTiming()) {
        self.interval = timing.progressInterval
    }

    /// True if the handler has ended and its result waits for the last report.
    package var holdsResult: Bool {
        self.resultWaitsUntil != nil && (self.state == .telling || (self.state == .quiet && self.isBehind))
    }

    /// The time of the next call of `momentReached`; nil for never.
    package var nextMoment: Int64? {
        switch self.state {
        case .over: nil
        case .telling: self.resultWaitsUntil
        case .quiet: self.isBehind ? min(self.reportsAt, self.resultWaitsUntil ?? .max) : nil
        }
    }
}

// MARK: - Events

extension ProgressStateMachine {
    /// Records that the progress or the texts have changed.
    package mutating func changed() { self.isBehind = true }

    /// Records that the handler ended. The last changes are then due immediately.
    package mutating func handlerEnded(now: Int64) {
        self.resultWaitsUntil = now + Self.lastReportTimeout
        // After a failed report, the backoff determines the time of the next report.
        if !self.hasFailed { self.reportsAt = now }
    }

    /// Ends all reports, so the result no longer waits for them.
    package mutating func abandoned() { self.state = .over }

    /// If the last report did not arrive in time, the result no longer waits for it.
    ///
    /// - Returns: true if a report must be sent.
    package mutating func momentReached(now: Int64) -> Bool {
        guard let moment = self.nextMoment, moment <= now else { return false }
        if let end = self.resultWaitsUntil, end <= now {
            self.state = .over
            return false
        }
        guard self.state == .quiet else { return false }
        self.state = .telling
        self.isBehind = false
        self.reportsAt = now + self.interval
        return true
    }

    package mutating func answered(
        _ answer: WakeStateMachine.Answer,
        now: Int64,
        using generator: inout some RandomNumberGenerator
    ) {
        guard self.state == .telling else { return }
        switch answer {
        case .accepted:
            self.state = .quiet
            self.hasFailed = false
            self.backoff.succeeded()
        case .refused: self.state = .over
        case .failed(let retryAfter):
            self.state = .quiet
            // The next report will contain the latest values.
            self.isBehind = true
            self.hasFailed = true
            let wait = max(Int64(self.backoff.failed(using: &generator)), min(retryAfter, Self.requestedWaitMax))
            self.reportsAt = max(self.reportsAt, now + wait)
        }
    }
}
