import HTTPClient
import Platform
import Wire

extension WorkerSession {
    func subscriptionMoment(on loop: HTTPLoop) {
        switch self.subscription.momentReached(now: loop.now) {
        case .nothing: break
        case .subscribe: self.subscribe(on: loop)
        case .giveUp(let silence):
            if let stream = self.stream { loop.cancel(stream) }
            self.isConnectionDoubtful = true
            let reason = WakeWorkerError(
                .timedOut,
                "nothing came from \(self.request.endpoint.url) for \(silence / 1000) s; see the network"
            )
            self.streamEnded(reason, isPassing: true, on: loop)
        }
    }

    private func subscribe(on loop: HTTPLoop) {
        self.reader = EventStreamReader(eventBytesMax: Self.eventBytesMax)
        do throws(WakeWorkerError) {
            var request = try self.request.stream(self.handlers.query)
            request.isFresh = self.isConnectionDoubtful
            self.stream = try self.start(request, on: loop)
        } catch {
            self.streamEnded(error, isPassing: error.isPassing, on: loop)
        }
    }

    /// Starts a request for this session.
    func start(_ request: HTTPRequest, on loop: HTTPLoop) throws(WakeWorkerError) -> HTTPRequestID {
        do throws(HTTPClientError) {
            return try loop.start(request, for: self)
        } catch {
            throw self.request.endpoint.error(error)
        }
    }

    func streamBegan(_ head: HTTPResponse, on loop: HTTPLoop) {
        self.reader.began(head)
        guard head.isSuccess else { return }
        guard head.header("content-type")?.hasPrefix("text/event-stream") == true else {
            if let stream = self.stream { loop.cancel(stream) }
            let reason = WakeWorkerError(
                .badAnswer,
                "what answers at \(self.request.endpoint.url) sends no wakes; see whether it is a gateway's edge"
            )
            return self.streamEnded(reason, isPassing: false, on: loop)
        }
        self.request.endpoint.accepted()
        self.subscription.accepted(now: loop.now)
        self.isConnectionDoubtful = false
        self.reports.subscriptionChanged(true, on: loop)
        if !self.isRenewing { self.events.yield(.subscribed) }
        self.isRenewing = false
        let warnings = head.headers.filter { $0.name == "wakegate-warning" }.map(\.value)
        for warning in warnings where !self.warnings.contains(warning) {
            self.events.yield(.warned(warning: warning))
        }
        self.warnings = warnings
    }

    /// Subscribes again after several returned wakes, because the gateway sends no more wakes on a stalled stream.
    func renewStream(on loop: HTTPLoop) {
        self.releases.streamEnded()
        guard let stream = self.stream, self.subscription.renewed(now: loop.now) else { return }
        loop.cancel(stream)
        self.stream = nil
        self.isRenewing = true
    }

    func received(_ bytes: [UInt8], on loop: HTTPLoop) {
        self.subscription.received(now: loop.now)
        let fault: String
        do throws(ServerSentEventParser.EventTooLarge) {
            for event in try self.reader.received(bytes) where !self.take(event, on: loop) {
                fault = "sent a wake that cannot be read, or more than allowed"
                return self.breakOff(fault, on: loop)
            }
            return
        } catch {
            fault = "sent an event of more than \(error.bytesMax) bytes"
        }
        self.breakOff(fault, on: loop)
    }

    /// - Returns: false if the event is one that no correct gateway sends.
    private func take(_ event: ServerSentEvent, on loop: HTTPLoop) -> Bool {
        switch StreamEvent(name: event.name, data: event.data) {
        case .wake(.push(let message)): return self.ignoresWakes || self.wakeReceived(message, on: loop)
        case .wake(.task(let message)): return self.ignoresWakes || self.taskReceived(message, on: loop)
        case .wake(.other(let wake, let kind)): self.wakeRefused(wake, kind)
        case .expiring(let wake, let deadline, let timeLeft):
            let timeLeft = timeLeft ?? deadline - SystemClock.wall
            self.wakeExpiring(wake, gatewayDeadline: deadline, timeLeft: timeLeft, on: loop)
        case .expired(let wake, let reason): self.wakeEnded(wake, reason, on: loop)
        case .conditions(let device, let fields):
            self.handlers.conditions?.yield(DeviceConditionsChange(device, DeviceConditions(fields)))
        case .unknown: break
        case nil: return false
        }
        return true
    }

    private func breakOff(_ fault: String, on loop: HTTPLoop) {
        if let stream = self.stream { loop.cancel(stream) }
        let reason = WakeWorkerError(.badAnswer, "\(self.request.endpoint.url) \(fault); see the gateway's version")
        self.streamEnded(reason, isPassing: true, on: loop)
    }

    func streamEnded(_ result: Result<HTTPResponse, HTTPClientError>, on loop: HTTPLoop) {
        guard let failure = self.request.endpoint.failure(of: result.map(self.reader.whole)) else {
            let reason = WakeWorkerError(.unreachable, "the gateway ended the stream; it may be restarting")
            return self.streamEnded(reason, isPassing: true, on: loop)
        }
        self.streamEnded(failure.error, isPassing: failure.isPassing, retryAfter: failure.retryAfter, on: loop)
    }

    /// Processes the end of the stream. Its unanswered wakes launch on other workers, so their handlers are cancelled.
    private func streamEnded(_ reason: WakeWorkerError, isPassing: Bool, retryAfter: Int64 = 0, on loop: HTTPLoop) {
        self.stream = nil
        self.isRenewing = false
        self.releases.streamEnded()
        self.reports.subscriptionChanged(false, on: loop)
        for wake in Array(self.wakes.keys) { self.wakeEnded(wake, .lost, on: loop) }
        guard isPassing else {
            if !self.subscription.isStopping { self.failure = reason }
            return self.subscription.failed()
        }
        let now = loop.now
        switch self.subscription.streamEnded(retryAfter: retryAfter, now: now, using: &self.generator) {
        case .retry(let wait):
            self.events.yield(.disconnected(reason: reason, retryIn: .milliseconds(wait)))
        case .over: break
        }
    }

    // MARK: Stopping

    /// Asks the gateway to send no more wakes. The gateway ends the stream after the last result.
    func drain(on loop: HTTPLoop) {
        guard let name = self.reader.header("wakegate-stream") else {
            self.ignoresWakes = true
            return
        }
        do throws(WakeWorkerError) {
            let request = try self.request.drain(name)
            self.purposes[try self.start(request, on: loop)] = .drain
        } catch {
            self.drainFailed(isPassing: error.isPassing, on: loop)
        }
    }

    func drainAnswered(_ result: Result<HTTPResponse, HTTPClientError>, on loop: HTTPLoop) {
        guard let failure = self.request.endpoint.failure(of: result) else { return }
        self.drainFailed(isPassing: failure.isPassing, on: loop)
    }

    /// Ignores the wakes that arrive from now on. They launch on other workers, but only after the stream ends. To
    /// delay fewer wakes, the drain request is retried after temporary errors.
    private func drainFailed(isPassing: Bool, on loop: HTTPLoop) {
        self.ignoresWakes = true
        if isPassing { self.timers.set(.drain, to: loop.now + Self.drainRetry) }
    }

    /// The wait before the drain request is retried, in milliseconds.
    private static let drainRetry: Int64 = 1000
}
