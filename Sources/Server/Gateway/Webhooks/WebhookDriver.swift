import Engine
import HTTPClient
import Platform
import Policy
import ServiceManager
import Wire

/// Posts the wakes of all webhooks with one HTTP client, on a separate thread.
///
/// For the engine, each webhook is a worker's stream. It subscribes with a number of slots, gets wakes as effects, and
/// reports results as commands. Unlike other streams, it has fewer slots while it is paused after failures.
final class WebhookDriver {
    /// A posted wake whose request is open or whose result is pending.
    private struct Delivery {
        let hook: Int
        let wake: WakeID
        let kind: WakeKind
        /// The breaker's round at the time of the request.
        let round: UInt64
        /// True if the wake ended before the webhook answered.
        var hasEnded = false
    }

    /// The maximum wait for an event, in milliseconds.
    private static let waitMax: Int64 = 60_000

    private let client: HTTPClient
    private let mailbox: LoopMailbox
    private let engine: Mailbox<CommandBatch>
    private let log: GatewayLog
    /// Called once during a shutdown, when no webhook has a wake in flight.
    private let onDrained: @Sendable () -> Void
    /// The webhooks by index. An ended webhook stays in the array until its index is reused.
    private var hooks: [Webhook] = []
    private var numbers = WebhookNumbers()
    private var deliveries: [HTTPRequestID: Delivery] = [:]
    private var requests: [WakeID: HTTPRequestID] = [:]
    /// The wakes that webhooks accepted and whose results are pending.
    private var accepted: [WakeID: Delivery] = [:]
    private var effects = EffectBatch()
    private var batch = CommandBatch()
    /// A buffer for the body of a request; empty between requests.
    private var writer = JSONWriter()
    private var generator = RandomBits()
    private var isDraining = false
    private var isDrained = false

    init(
        client: HTTPClient,
        hooks: [Webhook],
        mailbox: LoopMailbox,
        engine: Mailbox<CommandBatch>,
        log: GatewayLog,
        onDrained: @escaping @Sendable () -> Void
    ) {
        self.client = client
        self.mailbox = mailbox
        self.engine = engine
        self.log = log
        self.onDrained = onDrained
        for hook in hooks { self.keep(hook) }
    }

    /// Adds a webhook.
    ///
    /// - Returns: the webhook's index.
    @discardableResult
    private func keep(_ hook: Webhook) -> Int {
        var hook = hook
        let (number, place) = self.numbers.begin()
        hook.number = number
        if place < self.hooks.count { self.hooks[place] = hook } else { self.hooks.append(hook) }
        return place
    }

    /// A waker that ends a wait in `turn` from any thread.
    var waker: HTTPWaker { self.client.waker }

    /// Subscribes every webhook.
    func begin() {
        for hook in self.hooks.indices { self.subscribe(hook) }
        self.submit()
    }

    /// Replaces the webhooks. Unchanged webhooks continue. All others get no new wakes and end after their last wake.
    func replace(with hooks: [Webhook]) {
        for hook in self.hooks.indices where !self.hooks[hook].isRetired {
            guard !hooks.contains(where: { $0.isSame(as: self.hooks[hook]) }) else { continue }
            self.hooks[hook].isRetired = true
            self.batch.append(.slotsChanged(self.address(hook), 0))
            self.batch.append(.webhookChanged(topic: self.hooks[hook].topic, nil))
            self.endIfRetired(hook)
        }
        for hook in hooks where !self.hooks.contains(where: { !$0.isRetired && $0.isSame(as: hook) }) {
            self.subscribe(self.keep(hook))
        }
        self.submit()
    }

    private func subscribe(_ hook: Int) {
        let request = SubscriptionRequest(
            slots: self.hooks[hook].configuration.slots,
            tasks: self.hooks[hook].configuration.tasks,
            sessions: self.hooks[hook].configuration.sessions,
            devices: [],
            stallsWhenSilent: false,
            label: "webhook"
        )
        let topic = Array(self.hooks[hook].topic.utf8)
        self.batch.append(.webhookChanged(topic: self.hooks[hook].topic, self.hooks[hook].status))
        self.ask(self.address(hook), .subscribe(topic: topic, request))
    }

    private func endIfRetired(_ hook: Int) {
        guard self.hooks[hook].isRetired, self.hooks[hook].held == 0, !self.hooks[hook].hasEnded else { return }
        // The wakes of the remaining open requests have ended. Cancel these requests, because they might stay open
        // forever.
        for _ in 0..<self.hooks[hook].open { self.giveUpEnded(hook) }
        self.hooks[hook].hasEnded = true
        self.batch.append(.streamEnded(self.address(hook)))
        self.dropIfOver(hook)
    }

    /// Frees a webhook's index if the webhook is over.
    private func dropIfOver(_ hook: Int) {
        if self.hooks[hook].isOver { self.numbers.end(self.hooks[hook].number) }
    }

    /// Handles the effects of the engine, and waits for network events.
    func turn() {
        self.mailbox.take(into: &self.effects)
        self.effects.handOver { self.take($0) }
        self.effects.removeAll()
        let now = SystemClock.boot
        for hook in self.hooks.indices where !self.hooks[hook].isOver {
            self.act(on: self.hooks[hook].breaker.timePassed(now), hook)
        }
        self.submit()
        for case .ended(let request, let result) in self.client.poll(timeoutMilliseconds: self.wait(now)) {
            guard let delivery = self.deliveries.removeValue(forKey: request) else { continue }
            self.forget(delivery)
            self.ended(delivery, WebhookVerdict(result, of: delivery.kind))
        }
        self.submit()
    }

    /// Returns the maximum time to wait for network events, in milliseconds.
    private func wait(_ now: Int64) -> Int {
        let moments = self.hooks.compactMap { hook -> Int64? in
            guard case .resting(let until) = hook.breaker.state, !hook.isRetired else { return nil }
            return until
        }
        return Int(max(0, min(Self.waitMax, (moments.min() ?? .max) - now)))
    }

    private func ask(_ reply: StreamAddress, _ work: EngineWork) {
        let request = EngineRequest(reply: reply, caller: .gateway, afterFailedStore: .refused, work)
        self.batch.append(.request(request))
    }

    private func submit() {
        if !self.batch.isEmpty { self.engine.submit(&self.batch) }
    }

    private func address(_ hook: Int) -> StreamAddress { .webhook(self.hooks[hook].number) }

    private func reportAddress(_ hook: Int) -> StreamAddress { .webhookReport(self.hooks[hook].number) }

    /// Returns the webhook of an address; nil if it has ended.
    private func hook(_ address: StreamAddress) -> Int? {
        switch address {
        case .webhook(let number), .webhookReport(let number): self.numbers.place(of: number)
        case .stream, .faulted: preconditionFailure("what is for a loop goes to no webhook")
        }
    }
}

// MARK: - Wakes

extension WebhookDriver {
    private func deliver(_ wake: Wake, to address: StreamAddress) {
        guard let hook = self.hook(address), !self.hooks[hook].hasEnded else { return }
        self.hooks[hook].held += 1
        if self.hooks[hook].open >= self.hooks[hook].configuration.slots { self.giveUpEnded(hook) }
        let round = self.hooks[hook].breaker.round
        let delivery = Delivery(hook: hook, wake: wake.id, kind: wake.kind, round: round)
        do {
            let request = try self.client.start(try self.request(self.hooks[hook], wake))
            self.deliveries[request] = delivery
            self.requests[wake.id] = request
            self.hooks[hook].open += 1
        } catch {
            self.ended(delivery, .undelivered(cause: "\(error)", retryAfter: nil))
        }
    }

    private func forget(_ delivery: Delivery) {
        self.requests[delivery.wake] = nil
        self.hooks[delivery.hook].open -= 1
        self.dropIfOver(delivery.hook)
    }

    /// Cancels the open request whose wake ended longest ago, because it might stay open forever. Called when the
    /// number of open requests has reached the number of slots. Requests whose wakes are in flight are kept, because
    /// only their answers report results.
    private func giveUpEnded(_ hook: Int) {
        let outlived = self.hooks[hook].outlived
        guard let place = outlived.firstIndex(where: { self.deliveries[$0] != nil }) else { return }
        let request = outlived[place]
        self.hooks[hook].outlived.removeFirst(place + 1)
        guard let delivery = self.deliveries.removeValue(forKey: request) else { return }
        self.forget(delivery)
        self.client.cancel(request)
    }

    /// Records that the wake of an open request has ended.
    private func outlived(_ request: HTTPRequestID) {
        guard let hook = self.deliveries[request]?.hook else { return }
        self.deliveries[request]?.hasEnded = true
        self.hooks[hook].outlived.append(request)
        // The number of open requests is at most the number of slots, so this at least halves the list.
        guard self.hooks[hook].outlived.count > 2 * self.hooks[hook].configuration.slots else { return }
        self.hooks[hook].outlived.removeAll { self.deliveries[$0] == nil }
    }

    private func request(_ hook: Webhook, _ wake: Wake) throws -> HTTPRequest {
        let timestamp = "\(SystemClock.wall / 1000)"
        var id = ByteBuffer()
        wake.id.write(to: &id)
        wake.write(to: &self.writer)
        let body = self.writer.buffer.view.array
        self.writer.removeAll()
        var headers = [
            (name: "content-type", value: "application/json"),
            (name: "user-agent", value: "wakegate/\(wakeGateVersion)"),
            (name: "wakegate-wake", value: id.view.string), (name: "wakegate-timestamp", value: timestamp),
        ]
        if let secret = hook.secret {
            let signature = try WebhookSignature.make(body: body, timestamp: timestamp, secret: secret)
            headers.append((name: "wakegate-signature", value: signature))
        }
        headers += wake.trace.headers
        // The request has no timeout, because the engine reports the end of the wake as an effect.
        let url = hook.configuration.url
        var request = HTTPRequest("POST", url, headers: headers, body: body, timeoutMilliseconds: nil)
        request.settings = hook.settings
        // A probe uses a new connection, because existing connections may be broken.
        request.isFresh = hook.breaker.state == .probing
        return request
    }

    private func ended(_ delivery: Delivery, _ verdict: WebhookVerdict) {
        let wake = delivery.wake
        // Update the breaker first. Otherwise wakes that launch when this one ends would be posted immediately.
        switch verdict {
        case .result(let result):
            self.succeeded(delivery)
            self.ask(self.reportAddress(delivery.hook), .report(Named(wake), result))
        case .accepted:
            // The answer says nothing about the webhook's state if the result of the accepted wake is still pending.
            if delivery.hasEnded { self.succeeded(delivery) } else { self.accepted[wake] = delivery }
        case .refused(let cause):
            self.failed(delivery, cause)
            let failure = delivery.kind == .push ? WakeReport.push(.failed) : .task(.failure)
            self.ask(self.reportAddress(delivery.hook), .report(Named(wake), failure))
        case .lost(let cause):
            self.failed(delivery, cause)
            self.batch.append(.lost(self.address(delivery.hook), wake, takingBackAttempt: false))
        case .undelivered(let cause, let retryAfter):
            self.failed(delivery, cause, retryAfter: retryAfter)
            self.batch.append(.lost(self.address(delivery.hook), wake, takingBackAttempt: true))
        }
    }

    private func expired(_ wake: WakeID, _ reason: ExpirationReason) {
        guard let request = self.requests[wake], let delivery = self.deliveries.removeValue(forKey: request) else {
            // If the wake was not accepted, its result is already on the way to the engine.
            guard let delivery = self.accepted.removeValue(forKey: wake), reason.isOfWorker else { return }
            self.failed(delivery, "it accepted a wake and reported no result by the deadline")
            return
        }
        self.forget(delivery)
        if reason.isOfWorker { self.failed(delivery, "it did not answer by the deadline") }
        self.client.cancel(request)
    }

    private func succeeded(_ delivery: Delivery) {
        self.act(on: self.hooks[delivery.hook].breaker.succeeded(round: delivery.round), delivery.hook)
        self.publish(delivery.hook)
    }

    private func failed(_ delivery: Delivery, _ cause: String, retryAfter: Int64? = nil) {
        let hook = delivery.hook
        self.hooks[hook].status.lastError = cause
        let action = self.hooks[hook].breaker.failed(
            round: delivery.round,
            at: SystemClock.boot,
            retryAfter: retryAfter,
            using: &self.generator
        )
        self.act(on: action, hook)
        self.publish(hook)
    }

    private func act(on action: WebhookBreaker.Action, _ hook: Int) {
        var status = self.hooks[hook].status
        switch action {
        case .nothing: return
        case .pause(let until):
            let milliseconds = until - SystemClock.boot
            status.restingUntil = SystemClock.wall + milliseconds
            self.log.write(
                .webhookResting,
                [
                    "topic": self.hooks[hook].topic, "url": status.url, "milliseconds": "\(milliseconds)",
                    "failures": "\(self.hooks[hook].breaker.failures)", "cause": status.lastError ?? "",
                ]
            )
        case .probe: status.restingUntil = nil
        case .recover:
            self.log.write(.webhookRecovered, ["topic": self.hooks[hook].topic, "url": status.url])
        }
        self.hooks[hook].status = status
        self.batch.append(.slotsChanged(self.address(hook), self.hooks[hook].slotsNow))
        self.publish(hook)
    }

    /// Sends the status of a webhook to the engine if it has changed.
    private func publish(_ hook: Int) {
        let breaker = self.hooks[hook].breaker
        let before = self.hooks[hook].published
        self.hooks[hook].status.state = breaker.state
        self.hooks[hook].status.failures = breaker.failures
        guard self.hooks[hook].status != before, !self.hooks[hook].isRetired else { return }
        self.hooks[hook].published = self.hooks[hook].status
        self.batch.append(.webhookChanged(topic: self.hooks[hook].topic, self.hooks[hook].status))
    }
}

// MARK: - Effects

extension WebhookDriver {
    private func take(_ effect: Effect) {
        switch effect {
        case .answer(let address, let outcome): self.answer(address, outcome)
        case .wake(let address, let wake): self.deliver(wake.wake, to: address)
        case .expired(_, let wake, let reason): self.expired(wake, reason)
        case .released(let address, let wake): self.released(address, wake)
        case .draining:
            self.isDraining = true
            self.checkDrained()
        case .subscribed(let address, let warning):
            // Other warnings are for workers.
            if let warning, warning.problem == .notPermitted { _ = warning.write(to: self.log) }
            self.answered(address)
        case .pushAnswer: break  // Webhooks send no pushes.
        case .asked: break  // Webhooks request no lists.
        case .conditions: break  // Webhooks do not request conditions.
        case .expiring: break  // The request contains the deadline.
        case .drained: break  // Webhooks' streams have no public names.
        }
    }

    private func answer(_ address: StreamAddress, _ outcome: Outcome) {
        // Ignore answers to reports, because a late report or a failed store cannot be corrected here.
        guard case .webhook = address, let place = self.hook(address) else { return }
        let hook = self.hooks[place]
        var body = JSONWriter()
        outcome.write(to: &body)
        self.log.write(
            .webhookRefused,
            ["topic": hook.topic, "status": "\(outcome.status)", "answer": body.buffer.view.string]
        )
        self.answered(address)
    }

    /// Records that the engine has answered a webhook's subscription.
    private func answered(_ address: StreamAddress) {
        guard let hook = self.hook(address) else { return }
        self.hooks[hook].isAnswered = true
        self.dropIfOver(hook)
    }

    private func released(_ address: StreamAddress, _ wake: WakeID) {
        if let request = self.requests[wake] { self.outlived(request) }
        // Expired wakes have been removed, so an accepted wake that ends here ended with a result.
        if let delivery = self.accepted.removeValue(forKey: wake) { self.succeeded(delivery) }
        guard let hook = self.hook(address), !self.hooks[hook].hasEnded else { return }
        self.hooks[hook].held -= 1
        self.endIfRetired(hook)
        self.checkDrained()
    }

    private func checkDrained() {
        guard self.isDraining, !self.isDrained, self.hooks.allSatisfy({ $0.held == 0 }) else { return }
        self.isDrained = true
        self.onDrained()
    }
}

extension ExpirationReason {
    /// True if the worker was too slow; false if the worker did not cause the expiration.
    fileprivate var isOfWorker: Bool {
        switch self {
        case .deadline, .progress: true
        case .conditions, .pressure, .cancelled, .operator, .lost: false
        }
    }
}
