import HTTPClient
import Platform
import Text
import WakeFormat

extension WorkerSession {
    /// - Returns: false when the gateway sends more wakes than the worker has slots.
    func wakeReceived(_ message: WakeMessage, on loop: HTTPLoop) -> Bool {
        guard self.wakes[message.wake] == nil else { return true }
        // A slot is free for the gateway as soon as it has a result, which we learn later.
        guard self.wakes.count < self.wakesMax else { return false }
        let timeLeft = message.timeLeft(wallClock: SystemClock.wall)
        let lease = WakeLease(deadline: .now + .milliseconds(timeLeft), extender: self)
        self.wakes[message.wake] = ActiveWake(
            machine: WakeStateMachine(deadline: loop.now + timeLeft),
            notification: WakeNotification(message, lease)
        )
        // Of a queue that no handler takes from, those that are over are dropped.
        if self.queue.count >= 2 * self.wakesMax { self.queue.removeAll { self.wakes[$0]?.machine.isQueued != true } }
        self.queue.append(message.wake)
        self.schedule(message.wake)
        self.startHandlers()
        return true
    }

    /// A wake came that has no handler. It is left alone: an answer would tell the gateway that somebody did its work.
    func wakeRefused(_ id: String, _ kind: WakeKind) {
        guard self.refusedKinds.isFirst(kind) else { return }
        self.events.yield(.refused(wake: id, kind: kind.name))
    }

    /// The most wakes in its hands.
    private var wakesMax: Int { 2 * self.request.slots + 16 }

    private func startHandlers() {
        while !self.stop.isCancelled, self.runningHandlers < self.request.slots, let id = self.queue.first {
            self.queue.removeFirst()
            guard let wake = self.wakes[id], wake.machine.isQueued else { continue }
            self.wakes[id]?.machine.handlerStarted()
            self.runningHandlers += 1
            self.events.yield(.started(wake: id))
            self.wakes[id]?.task = Task { [handler, thread, notification = wake.notification] in
                let outcome: Result<BackgroundFetchResult, any Error>
                do {
                    outcome = .success(try await handler.run(notification))
                } catch {
                    outcome = .failure(error)
                }
                thread.submit { self.handlerEnded(id, outcome, on: $0) }
            }
        }
    }

    private func handlerEnded(_ id: String, _ outcome: Result<BackgroundFetchResult, any Error>, on loop: HTTPLoop) {
        self.runningHandlers -= 1
        self.wakes[id]?.task = nil
        if case .failure(let error) = outcome, self.wakes[id]?.machine.isRunning == true {
            self.events.yield(.handlerFailed(wake: id, error: error))
        }
        switch self.wakes[id]?.machine.handlerEnded(try? outcome.get()) {
        case .send(let result): self.send(result, id, on: loop)
        case .forget: self.forget(id)
        case nil: break
        }
        self.schedule(id)
        self.startHandlers()
        self.settle(on: loop)
    }

    /// A wake ended at the gateway before its result came.
    func wakeEnded(_ id: String, _ ending: WakeStateMachine.Ending, on loop: HTTPLoop) {
        switch self.wakes[id]?.machine.ended(ending) {
        case .cancelHandler: self.cancelHandler(id, ending)
        case .forget: self.forget(id)
        case .nothing, nil: break
        }
        self.schedule(id)
    }

    func wakeMoment(_ id: String, on loop: HTTPLoop) {
        let now = loop.now
        switch self.wakes[id]?.machine.momentReached(now: now) {
        case .send(let result): self.send(result, id, on: loop)
        case .cancelHandler: self.cancelHandler(id, .expired)
        case .forget: self.forget(id)
        case .nothing, nil: break
        }
        if self.wakes[id]?.machine.isRunning == true, self.wakes[id]?.keepAlive.momentReached(now: now) == true {
            self.extend(id, milliseconds: KeepAlive.extensionLength, nil, on: loop)
        }
        self.schedule(id)
    }

    private func cancelHandler(_ id: String, _ ending: WakeStateMachine.Ending) {
        self.wakes[id]?.task?.cancel()
        switch ending {
        case .expired: self.events.yield(.expired(wake: id))
        case .lost: self.events.yield(.lost(wake: id))
        }
    }

    func forget(_ id: String) {
        self.wakes[id] = nil
        self.timers.set(.wake(id), to: nil)
    }

    private func schedule(_ id: String) {
        guard let wake = self.wakes[id], !wake.machine.isOver else { return self.forget(id) }
        let moments = [wake.machine.nextMoment, wake.machine.isRunning ? wake.keepAlive.nextMoment : nil]
        self.timers.set(.wake(id), to: moments.compactMap { $0 }.min())
    }
}

// MARK: - Results

extension WorkerSession {
    private func send(_ result: BackgroundFetchResult, _ id: String, on loop: HTTPLoop) {
        do throws(WakeWorkerError) {
            var request = try self.request.result(result, wake: id)
            request.isFresh = self.wakes[id]?.isConnectionDoubtful == true
            self.purposes[try self.start(request, on: loop)] = .result(wake: id)
        } catch {
            self.resultAnswered(id, error.isPassing ? .failed(retryAfter: 0) : .refused, error, on: loop)
        }
    }

    func answered(_ purpose: Purpose, _ result: Result<HTTPResponse, HTTPClientError>, on loop: HTTPLoop) {
        switch purpose {
        case .drain: self.drainAnswered(result, on: loop)
        case .extend(let wake, let wish): self.extensionAnswered(wake, result, wish, on: loop)
        case .result(let wake):
            switch result {
            case .success(let response) where response.isSuccess: self.resultAnswered(wake, .accepted, nil, on: loop)
            case .success(let response):
                let answer: WakeStateMachine.Answer =
                    self.request.endpoint.isPassing(response.status)
                    ? .failed(retryAfter: Self.retryAfter(response)) : .refused
                self.resultAnswered(wake, answer, GatewayEndpoint.refusal(response), on: loop)
            case .failure(let error):
                if error.code == .timedOut { self.wakes[wake]?.isConnectionDoubtful = true }
                let answer: WakeStateMachine.Answer =
                    self.request.endpoint.isPassing(error) ? .failed(retryAfter: 0) : .refused
                self.resultAnswered(wake, answer, self.request.endpoint.error(error), on: loop)
            }
        }
    }

    private func resultAnswered(
        _ id: String,
        _ answer: WakeStateMachine.Answer,
        _ error: WakeWorkerError?,
        on loop: HTTPLoop
    ) {
        switch self.wakes[id]?.machine.answered(answer, now: loop.now, using: &self.generator) {
        case .delivered(let result): self.events.yield(.delivered(wake: id, result: result))
        case .dropped(let result):
            let reason = error ?? Self.noSuchWake
            self.events.yield(.dropped(wake: id, result: result, reason: reason))
        case .retry, .nothing, nil: break
        }
        self.schedule(id)
    }
}

// MARK: - More time

extension WorkerSession: WakeExtender {
    func extend(_ wake: String, by duration: Duration) async throws(WakeWorkerError) -> Duration {
        let milliseconds = Self.milliseconds(duration)
        let wish = ExtensionWish()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.thread.submit { loop in
                    wish.awaited(by: continuation)
                    self.extensionRequested(wake, milliseconds, wish, on: loop)
                }
            }
        } onCancel: {
            // The gateway may give the time all the same; nobody is left to use it.
            self.thread.submit { _ in wish.answer(.failure(Self.cancelled)) }
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

    private func extensionRequested(
        _ id: String,
        _ milliseconds: Int64,
        _ wish: ExtensionWish,
        on loop: HTTPLoop
    ) {
        guard self.wakes[id]?.machine.isRunning == true else { return wish.answer(.failure(Self.noSuchWake)) }
        guard !wish.isAnswered else { return }
        self.extend(id, milliseconds: milliseconds, wish, on: loop)
        self.settle(on: loop)
    }

    private func extend(_ id: String, milliseconds: Int64, _ wish: ExtensionWish?, on loop: HTTPLoop) {
        do throws(WakeWorkerError) {
            let request = try self.request.extend(id, milliseconds: milliseconds)
            self.purposes[try self.start(request, on: loop)] = .extend(wake: id, wish)
        } catch {
            if error.isPassing {
                self.wakes[id]?.keepAlive.unanswered(now: loop.now)
                self.schedule(id)
            } else {
                self.wakes[id]?.keepAlive.refused()
            }
            wish?.answer(.failure(error))
        }
    }

    private func extensionAnswered(
        _ id: String,
        _ result: Result<HTTPResponse, HTTPClientError>,
        _ wish: ExtensionWish?,
        on loop: HTTPLoop
    ) {
        let error: WakeWorkerError
        switch result {
        case .success(let response) where response.isSuccess:
            guard let timeLeft = WakeMessage.timeLeft(response.body) else {
                error = WakeWorkerError(.badAnswer, "the gateway does not say how much time is left; see its version")
                self.wakes[id]?.keepAlive.refused()
                break
            }
            let deadline = loop.now + timeLeft
            self.wakes[id]?.machine.extended(to: deadline)
            self.wakes[id]?.keepAlive.extended(to: deadline)
            self.wakes[id]?.notification.lease.extended(to: .now + .milliseconds(timeLeft))
            self.schedule(id)
            wish?.answer(.success(.milliseconds(timeLeft)))
            return
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
        self.schedule(id)
        wish?.answer(.failure(error))
    }

    /// At least a second and at most a day.
    private static func milliseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        guard seconds < 86_400 else { return 86_400_000 }
        guard seconds > 0 else { return 1000 }
        return max(1000, seconds * 1000 + attoseconds / 1_000_000_000_000_000)
    }
}

/// Whoever waits for more time: the first answer counts.
///
/// `@unchecked Sendable`: it is touched on its `HTTPThread` alone.
final class ExtensionWish: @unchecked Sendable {
    typealias Answer = Result<Duration, WakeWorkerError>

    private var continuation: CheckedContinuation<Answer, Never>?
    private var first: Answer?

    var isAnswered: Bool { self.first != nil }

    func awaited(by continuation: CheckedContinuation<Answer, Never>) {
        if let first = self.first { return continuation.resume(returning: first) }
        self.continuation = continuation
    }

    func answer(_ answer: Answer) {
        guard self.first == nil else { return }
        self.first = answer
        self.continuation?.resume(returning: answer)
        self.continuation = nil
    }
}
