import HTTPClient
import Platform
import Wire

extension WorkerSession {
    /// Processes the wake of a push.
    ///
    /// - Returns: false if the gateway has sent more wakes than the worker has slots.
    func wakeReceived(_ message: WakeMessage, on loop: HTTPLoop) -> Bool {
        guard let handler = self.handlers.pushes else {
            self.wakeRefused(message.wake, .push)
            return true
        }
        let timeLeft = message.timeLeft(wallClock: SystemClock.wall)
        let deadline = (here: loop.now + timeLeft, gateway: message.deadline)
        return self.take(message.wake, deadline: deadline, isTask: false, on: loop) { lease in
            try await handler(WakeNotification(message, lease))
        }
    }

    /// Processes the wake of a background task or session.
    ///
    /// - Returns: false if the gateway has sent more wakes than the worker has slots.
    func taskReceived(_ message: TaskMessage, on loop: HTTPLoop) -> Bool {
        guard let work = self.handlers.work(for: message) else {
            self.wakeRefused(message.wake, message.kind)
            return true
        }
        let timeLeft = message.timeLeft(wallClock: SystemClock.wall)
        let deadline = (here: loop.now + timeLeft, gateway: message.deadline)
        let reporting = message.kind == .continued ? self.reporting(of: message) : nil
        return self.take(message.wake, deadline: deadline, isTask: true, reporting: reporting, on: loop, work: work)
    }

    private func take(
        _ id: String,
        deadline: (here: Int64, gateway: Int64),
        isTask: Bool,
        reporting: TaskReporting? = nil,
        on loop: HTTPLoop,
        work: @escaping WorkerHandlers.Work
    ) -> Bool {
        guard self.wakes[id] == nil else { return true }
        // The gateway frees a slot when the result arrives, but the worker frees it only when the answer to the result
        // arrives. The worker therefore permits more wakes than slots.
        guard self.wakes.count < self.wakesMax else { return false }
        let lease = WakeLease(
            deadline: .now + .milliseconds(deadline.here - loop.now),
            extender: self,
            reporting: reporting
        )
        self.wakes[id] = ActiveWake(
            machine: WakeStateMachine(deadline: deadline.here, timing: self.request.timing),
            lease: lease,
            firstDeadline: deadline,
            gatewayDeadline: deadline.gateway,
            isTask: isTask,
            work: work,
            reports: ProgressStateMachine(timing: self.request.timing)
        )
        // Finished wakes are removed from the queue, because the queue may grow while no handler is free.
        if self.queue.count >= 2 * self.wakesMax { self.queue.removeAll { self.wakes[$0]?.machine.isQueued != true } }
        self.queue.append(id)
        self.schedule(id)
        self.startHandlers(on: loop)
        return true
    }

    /// Reports a wake without a handler. The worker does not answer it, because the gateway would treat an answer as
    /// the result of the work.
    func wakeRefused(_ id: String, _ kind: WakeKind) {
        guard self.refusedKinds.isFirst(kind) else { return }
        self.events.yield(.refused(wake: id, kind: kind.name))
    }

    /// The maximum number of unfinished wakes.
    private var wakesMax: Int { 2 * self.request.slots + 16 }

    private func startHandlers(on loop: HTTPLoop) {
        while !self.stop.isCancelled, self.runningHandlers < self.request.slots, let id = self.queue.first {
            self.queue.removeFirst()
            guard let wake = self.wakes[id], wake.machine.isQueued else { continue }
            self.wakes[id]?.machine.handlerStarted()
            self.runningHandlers += 1
            self.events.yield(.started(wake: id))
            let isExpiring = self.takeWarning(id, on: loop)
            self.wakes[id]?.task = Task { [thread, lease = wake.lease, work = wake.work] in
                let outcome: Outcome
                do {
                    outcome = .success(try await work(lease))
                } catch {
                    outcome = .failure(error)
                }
                thread.submit { self.handlerEnded(id, outcome, on: $0) }
            }
            if isExpiring { self.cancelTask(id) }
        }
    }

    private func handlerEnded(_ id: String, _ outcome: Outcome, on loop: HTTPLoop) {
        self.runningHandlers -= 1
        self.wakes[id]?.task = nil
        if self.isHeldForReport(id, on: loop) {
            self.wakes[id]?.heldOutcome = outcome
        } else {
            self.outcomeKnown(id, outcome, on: loop)
        }
        self.schedule(id)
        self.startHandlers(on: loop)
        self.settle(on: loop)
    }

    /// Processes the outcome of a handler, after its last progress report.
    func outcomeKnown(_ id: String, _ outcome: Outcome, on loop: HTTPLoop) {
        if case .failure(let error) = outcome, self.wakes[id]?.machine.isRunning == true {
            self.wakes[id]?.release = error as? WakeRelease
            if !(error is WakeRelease) { self.events.yield(.handlerFailed(wake: id, error: error)) }
        }
        self.perform(self.wakes[id]?.machine.handlerEnded(try? outcome.get()), id, on: loop)
    }

    /// Processes the end of a wake that ended at the gateway before its result arrived.
    ///
    /// - `reason`: the reason; nil if unknown.
    func wakeEnded(_ id: String, _ reason: ExpirationReason?, on loop: HTTPLoop) {
        self.perform(self.wakes[id]?.machine.ended(reason == .lost ? .lost : .expired), id, reason: reason, on: loop)
        self.releaseOutcome(id, on: loop)
        self.schedule(id)
    }

    /// Processes the warning that the deadline of a wake is near. If the handler has not started yet, it is cancelled
    /// when it starts.
    func wakeExpiring(_ id: String, gatewayDeadline: Int64, timeLeft: Int64, on loop: HTTPLoop) {
        guard let wake = self.wakes[id], wake.task != nil || wake.machine.isQueued else { return }
        self.wakes[id]?.heldWarning = ActiveWake.Warning(end: loop.now + timeLeft, gatewayDeadline: gatewayDeadline)
        self.heedWarning(id, on: loop)
    }

    /// Cancels the running handler of a wake, because the deadline is near.
    private func heedWarning(_ id: String, on loop: HTTPLoop) {
        if self.wakes[id]?.task != nil, self.takeWarning(id, on: loop) { self.cancelTask(id) }
    }

    /// Applies the stored warning of a wake: informs its handler that the deadline is near.
    ///
    /// The warning stays stored while a request for more time is in flight. If the answer moves the deadline, the
    /// warning is void, and the gateway sends another one before the new deadline.
    ///
    /// - Returns: true if the caller must cancel the handler.
    private func takeWarning(_ id: String, on loop: HTTPLoop) -> Bool {
        guard let wake = self.wakes[id], let warning = wake.heldWarning, wake.timeRequests == 0 else { return false }
        self.wakes[id]?.heldWarning = nil
        // The worker's deadline is later than the gateway's by the latency of the message that contained it. The
        // gateway's deadline moves back only if its clock was set back.
        let isFirst = wake.machine.deadline == wake.firstDeadline.here
        let isCurrent = isFirst || warning.gatewayDeadline >= wake.gatewayDeadline
        let latestEnd = isCurrent ? max(warning.end, wake.machine.deadline) : warning.end
        guard self.wakes[id]?.machine.deadlineNears(latestEnd) == true else { return false }
        wake.lease.expiring(
            wake.lease.reporting == nil ? .deadline : .progress,
            timeLeft: .milliseconds(max(0, warning.end - loop.now)),
            silence: .milliseconds(2 * self.request.timing.grace)
        )
        self.events.yield(.expiring(wake: id))
        self.schedule(id)
        return true
    }

    func wakeMoment(_ id: String, on loop: HTTPLoop) {
        let now = loop.now
        self.perform(self.wakes[id]?.machine.momentReached(now: now), id, on: loop)
        if self.wakes[id]?.machine.isRunning == true, self.wakes[id]?.keepAlive.momentReached(now: now) == true {
            self.extend(id, milliseconds: KeepAlive.extensionLength, nil, on: loop)
        }
        if self.wakes[id]?.machine.isRunning == true { self.reportMoment(id, on: loop) }
        self.releaseOutcome(id, on: loop)
        self.schedule(id)
    }

    /// Performs an action of a wake's state machine.
    ///
    /// - Parameters:
    ///   - action: the action; nil if the wake is over.
    ///   - id: the wake.
    ///   - reason: the reason why a handler is cancelled; nil if unknown.
    ///   - error: the reason why a result is dropped; nil if the wake has ended.
    ///   - loop: the loop of the session's thread.
    private func perform(
        _ action: WakeStateMachine.Action?,
        _ id: String,
        reason: ExpirationReason? = .deadline,
        error: WakeWorkerError? = nil,
        on loop: HTTPLoop
    ) {
        switch action {
        case .send(let result): self.send(result, id, on: loop)
        case .cancelHandler: self.cancelHandler(id, reason)
        // Another process may have extended the deadline, such as a command that the handler runs.
        case .ask: self.extend(id, milliseconds: 1000, nil, on: loop)
        case .forget: self.forget(id)
        case .delivered(let result): self.delivered(id, result, on: loop)
        case .dropped(let result): self.dropped(id, result, error ?? Self.noSuchWake)
        case .nothing, nil: break
        }
    }

    private func cancelHandler(_ id: String, _ reason: ExpirationReason?) {
        self.wakes[id]?.lease.expired(reason)
        self.cancelTask(id)
        self.events.yield(
            reason == .lost
                ? .lost(wake: id) : .expired(wake: id, reason: BackgroundTaskExpiration(reason ?? .deadline))
        )
    }

    func forget(_ id: String) {
        self.wakes[id] = nil
        self.timers.set(.wake(id), to: nil)
    }

    func schedule(_ id: String) {
        guard let wake = self.wakes[id], !wake.machine.isOver else { return self.forget(id) }
        var moments = [wake.machine.nextMoment]
        if wake.machine.isRunning { moments += [wake.keepAlive.nextMoment, wake.reports.nextMoment] }
        self.timers.set(.wake(id), to: moments.compactMap { $0 }.min())
    }
}

// MARK: - Results

extension WorkerSession {
    private func send(_ result: BackgroundFetchResult, _ id: String, on loop: HTTPLoop) {
        do throws(WakeWorkerError) {
            var request: HTTPRequest
            if let release = self.wakes[id]?.release {
                request = try self.request.release(id, release)
            } else {
                request = try self.request.result(result, wake: id, isTask: self.wakes[id]?.isTask == true)
            }
            request.isFresh = self.wakes[id]?.isConnectionDoubtful == true
            self.purposes[try self.start(request, on: loop)] = .result(wake: id)
        } catch {
            self.resultAnswered(id, error.isPassing ? .failed(retryAfter: 0) : .refused, error, on: loop)
        }
    }

    func answered(_ purpose: Purpose, _ result: Result<HTTPResponse, HTTPClientError>, on loop: HTTPLoop) {
        switch purpose {
        case .drain: self.drainAnswered(result, on: loop)
        case .extend(let wake, let waiter):
            self.wakes[wake]?.timeRequests -= 1
            self.extensionAnswered(wake, result, waiter, on: loop)
            self.heedWarning(wake, on: loop)
        case .progress(let wake):
            self.wakes[wake]?.timeRequests -= 1
            self.progressAnswered(wake, result, on: loop)
            self.heedWarning(wake, on: loop)
        case .result(let wake):
            var (answer, error) = self.outcome(of: result, wake)
            // Gateways of earlier versions do not support returned wakes. The wake then fails instead.
            if self.wakes[wake]?.release != nil, error?.refusal?.reason == "BadPath" {
                self.wakes[wake]?.release = nil
                answer = .failed(retryAfter: 0)
            }
            self.resultAnswered(wake, answer, error, on: loop)
        }
    }

    /// Returns the outcome of sending a result or a progress report, and the error unless it was accepted.
    func outcome(
        of result: Result<HTTPResponse, HTTPClientError>,
        _ wake: String
    ) -> (WakeStateMachine.Answer, WakeWorkerError?) {
        guard let failure = self.request.endpoint.failure(of: result) else { return (.accepted, nil) }
        if failure.error.code == .timedOut { self.wakes[wake]?.isConnectionDoubtful = true }
        return (failure.isPassing ? .failed(retryAfter: failure.retryAfter) : .refused, failure.error)
    }

    private func resultAnswered(
        _ id: String,
        _ answer: WakeStateMachine.Answer,
        _ error: WakeWorkerError?,
        on loop: HTTPLoop
    ) {
        let action = self.wakes[id]?.machine.answered(answer, now: loop.now, using: &self.generator)
        self.perform(action, id, error: error, on: loop)
        self.schedule(id)
    }

    private func delivered(_ id: String, _ result: BackgroundFetchResult, on loop: HTTPLoop) {
        if let release = self.wakes[id]?.release {
            self.releases.released(now: loop.now, using: &self.generator)
            self.events.yield(.released(wake: id, reason: release.reason))
            return
        }
        self.releases.answered()
        let isTask = self.wakes[id]?.isTask == true
        self.events.yield(
            isTask ? .taskDelivered(wake: id, success: result.isSuccess) : .delivered(wake: id, result: result)
        )
    }

    /// Emits the event for a result that was refused or could not be delivered.
    func dropped(_ id: String, _ result: BackgroundFetchResult, _ reason: WakeWorkerError) {
        let isTask = self.wakes[id]?.isTask == true
        self.events.yield(
            isTask
                ? .taskDropped(wake: id, success: result.isSuccess, reason: reason)
                : .dropped(wake: id, result: result, reason: reason)
        )
    }
}

extension WorkerSession: WakeExtender {
    func extend(_ wake: String, by duration: Duration) async throws(WakeWorkerError) -> Duration {
        let milliseconds = min(max(.seconds(1), duration), .seconds(86_400)).milliseconds
        let waiter = ExtensionWaiter()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.thread.submit { loop in
                    waiter.awaited(by: continuation)
                    guard self.wakes[wake]?.machine.isRunning == true else {
                        waiter.complete(.failure(Self.noSuchWake))
                        return
                    }
                    guard !waiter.isCompleted else { return }
                    self.extend(wake, milliseconds: milliseconds, waiter, on: loop)
                    self.settle(on: loop)
                }
            }
        } onCancel: {
            // The gateway may still grant the time, but the caller does not wait for it.
            self.thread.submit { _ in _ = waiter.complete(.failure(Self.cancelled)) }
        }
        return try result.get()
    }

    func beginKeepingAlive(_ wake: String) {
        self.thread.submit { loop in
            guard let deadline = self.wakes[wake]?.machine.deadline else { return }
            self.wakes[wake]?.keepAlive.begun(deadline: deadline)
            self.schedule(wake)
            self.settle(on: loop)
        }
    }

    func endKeepingAlive(_ wake: String) {
        self.thread.submit { loop in
            self.wakes[wake]?.keepAlive.ended()
            self.schedule(wake)
            self.settle(on: loop)
        }
    }

    /// Starts a request that may move the deadline of a wake.
    func askForTime(
        _ request: HTTPRequest,
        _ purpose: Purpose,
        of wake: String,
        on loop: HTTPLoop
    ) throws(WakeWorkerError) {
        self.purposes[try self.start(request, on: loop)] = purpose
        self.wakes[wake]?.timeRequests += 1
    }

    func extend(_ id: String, milliseconds: Int64, _ waiter: ExtensionWaiter?, on loop: HTTPLoop) {
        do throws(WakeWorkerError) {
            let request = try self.request.extend(id, milliseconds: milliseconds)
            try self.askForTime(request, .extend(wake: id, waiter), of: id, on: loop)
        } catch {
            if error.isPassing {
                self.wakes[id]?.keepAlive.unanswered(now: loop.now)
                self.schedule(id)
            } else {
                self.wakes[id]?.keepAlive.refused()
            }
            self.perform(self.wakes[id]?.machine.gotNoTime(), id, on: loop)
            waiter?.complete(.failure(error))
        }
    }

    /// Applies the remaining time in the answer to a request for more time, or to a progress report.
    ///
    /// - Returns: the error if the answer does not contain it.
    @discardableResult
    func timeAnswered(
        _ id: String,
        _ answer: HTTPResponse,
        _ waiter: ExtensionWaiter?,
        on loop: HTTPLoop
    ) -> WakeWorkerError? {
        let wake = self.wakes[id]
        let instant = JSONValue(object: answer.body)?["deadline"]?.integer.map {
            max(0, min($0, WakeMessage.instantMax))
        }
        // Earlier gateways answer a progress report with the deadline alone. It is a time by the gateway's clock, so
        // only its difference from the wake's original deadline is used.
        let computed = instant.flatMap { instant in
            wake.map { $0.firstDeadline.here + (instant - $0.firstDeadline.gateway) - loop.now }
        }
        let left = WakeMessage.timeLeft(answer.body) ?? computed.map { max(0, min($0, WakeMessage.timeLeftMax)) }
        guard let left else {
            let error = WakeWorkerError(.badAnswer, "the gateway does not say how much time is left; see its version")
            waiter?.complete(.failure(error))
            return error
        }
        let deadline = loop.now + left
        if let warning = wake?.heldWarning {
            let isLater = instant.map { $0 > warning.gatewayDeadline } ?? false
            if isLater || deadline > warning.end + WakeStateMachine.tolerance { self.wakes[id]?.heldWarning = nil }
        }
        if let instant { self.wakes[id]?.gatewayDeadline = instant }
        self.wakes[id]?.machine.extended(to: deadline)
        self.wakes[id]?.keepAlive.extended(to: deadline)
        wake?.lease.extended(to: .now + .milliseconds(left))
        waiter?.complete(.success(.milliseconds(left)))
        return nil
    }

    func extensionAnswered(
        _ id: String,
        _ result: Result<HTTPResponse, HTTPClientError>,
        _ waiter: ExtensionWaiter?,
        on loop: HTTPLoop
    ) {
        let error: WakeWorkerError
        switch result {
        case .success(let response) where response.isSuccess:
            guard let fault = self.timeAnswered(id, response, waiter, on: loop) else { return self.schedule(id) }
            error = fault
            self.wakes[id]?.keepAlive.refused()
        case .success(let response):
            error = GatewayEndpoint.refusal(response)
            if self.request.endpoint.isPassing(response.status) {
                self.wakes[id]?.keepAlive.unanswered(now: loop.now)
            } else {
                self.wakes[id]?.keepAlive.refused()
            }
        case .failure(let failure):
            error = self.request.endpoint.error(failure)
            self.wakes[id]?.keepAlive.unanswered(now: loop.now)
        }
        if error.code == .extensionLimitReached, self.wakes[id]?.lease.reporting != nil {
            // Only progress moves the deadline of a continued task. This answer means that the task continues.
            self.wakes[id]?.machine.continues(now: loop.now)
        } else {
            self.perform(self.wakes[id]?.machine.gotNoTime(), id, on: loop)
        }
        self.releaseOutcome(id, on: loop)
        self.schedule(id)
        waiter?.complete(.failure(error))
    }
}
