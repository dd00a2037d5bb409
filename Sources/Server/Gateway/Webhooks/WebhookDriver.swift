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
        let hook: LiveWebhook
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
    /// The webhooks that are not over, by number. Numbers are not reused, because effects and commands in transit may
    /// contain them.
    private var hooks: [UInt32: LiveWebhook] = [:]
    private var nextNumber: UInt32 = 0
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
    }

    /// A waker that ends a wait in `turn` from any thread.
    var waker: HTTPWaker { self.client.waker }

    private var orderedHooks: [LiveWebhook] { self.hooks.values.sorted { $0.number < $1.number } }

    /// Replaces the webhooks. Unchanged webhooks continue. All others get no new wakes and end after their last wake.
    func replace(with hooks: [Webhook]) {
        let current = self.orderedHooks.filter { !$0.isRetired }
        for hook in current where !hooks.contains(where: { $0.isSame(as: hook.webhook) }) {
            hook.isRetired = true
            self.batch.append(.slotsChanged(.webhook(hook.number), 0))
            self.batch.append(.webhookChanged(topic: hook.webhook.topic, nil))
            self.endIfRetired(hook)
        }
        for webhook in hooks where !current.contains(where: { $0.webhook.isSame(as: webhook) }) {
            self.subscribe(webhook)
        }
        self.submit()
    }

    /// Subscribes a webhook under the next number.
    private func subscribe(_ webhook: Webhook) {
        let hook = LiveWebhook(webhook, number: self.nextNumber)
        self.hooks[hook.number] = hook
        self.nextNumber += 1
        let request = SubscriptionRequest(
            slots: webhook.configuration.slots,
            tasks: webhook.configuration.tasks,
            sessions: webhook.configuration.sessions,
            devices: [],
            stallsWhenSilent: false,
            label: "webhook"
        )
        self.batch.append(.webhookChanged(topic: webhook.topic, hook.status))
        self.ask(.webhook(hook.number), .subscribe(topic: Array(webhook.topic.utf8), request))
    }

    private func endIfRetired(_ hook: LiveWebhook) {
        guard hook.isRetired, hook.held == 0, !hook.hasEnded else { return }
        // The wakes of the remaining open requests have ended. Cancel these requests, because they might stay open
        // forever.
        for _ in 0..<hook.open { self.giveUpEnded(hook) }
        hook.hasEnded = true
        self.batch.append(.streamEnded(.webhook(hook.number)))
        self.dropIfOver(hook)
    }

    /// Removes a webhook if it is over.
    private func dropIfOver(_ hook: LiveWebhook) {
        if hook.isOver { self.hooks[hook.number] = nil }
    }

    /// Handles the effects of the engine, and waits for network events.
    func turn() {
        self.mailbox.take(into: &self.effects)
        self.effects.handOver { self.take($0) }
        self.effects.removeAll()
        let now = SystemClock.boot
        for hook in self.orderedHooks { self.act(on: hook.breaker.timePassed(now), hook) }
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
        let moments = self.hooks.values.compactMap { hook -> Int64? in
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

    /// Returns the webhook of an address; nil if it is over.
    private func hook(_ address: StreamAddress) -> LiveWebhook? {
        switch address {
        case .webhook(let number), .webhookReport(let number): self.hooks[number]
        case .stream, .faulted: preconditionFailure("what is for a loop goes to no webhook")
        }
    }
}

// MARK: - Wakes

extension WebhookDriver {
    private func deliver(_ wake: Wake, to address: StreamAddress) {
        guard let hook = self.hook(address), !hook.hasEnded else { return }
        hook.held += 1
        if hook.open >= hook.webhook.configuration.slots { self.giveUpEnded(hook) }
        let round = hook.breaker.round
        let delivery = Delivery(hook: hook, wake: wake.id, kind: wake.kind, round: round)
        do {
            let request = try self.client.start(try self.request(hook, wake))
            self.deliveries[request] = delivery
            self.requests[wake.id] = request
            hook.open += 1
        } catch {
            self.ended(delivery, .undelivered(cause: "\(error)", retryAfter: nil))
        }
    }

    private func forget(_ delivery: Delivery) {
        self.requests[delivery.wake] = nil
        delivery.hook.open -= 1
        self.dropIfOver(delivery.hook)
    }

    /// Cancels the open request whose wake ended longest ago, because it might stay open forever. Called when the
    /// number of open requests has reached the number of slots. Requests whose wakes are in flight are kept, because
    /// only their answers report results.
    private func giveUpEnded(_ hook: LiveWebhook) {
        let outlived = hook.outlived
        guard let place = outlived.firstIndex(where: { self.deliveries[$0] != nil }) else { return }
        let request = outlived[place]
        hook.outlived.removeFirst(place + 1)
        guard let delivery = self.deliveries.removeValue(forKey: request) else { return }
        self.forget(delivery)
        self.client.cancel(request)
    }

    /// Records that the wake of an open request has ended.
    private func outlived(_ request: HTTPRequestID) {
        guard let hook = self.deliveries[request]?.hook else { return }
        self.deliveries[request]?.hasEnded = true
        hook.outlived.append(request)
        // The number of open requests is at most the number of slots, so this at least halves the list.
        guard hook.outlived.count > 2 * hook.webhook.configuration.slots else { return }
        hook.outlived.removeAll { self.deliveries[$0] == nil }
    }

    private func request(_ hook: LiveWebhook, _ wake: Wake) throws -> HTTPRequest {
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
        if let secret = hook.webhook.secret {
            let signature = try WebhookSignature.make(body: body, timestamp: timestamp, secret: secret)
            headers.append((name: "wakegate-signature", value: signature))
        }
        headers += wake.trace.headers
        // The request has no timeout, because the engine reports the end of the wake as an effect.
        let url = hook.webhook.configuration.url
        var request = HTTPRequest("POST", url, headers: headers, body: body, timeoutMilliseconds: nil)
        request.settings = hook.webhook.settings
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
            self.ask(.webhookReport(delivery.hook.number), .report(Named(wake), result))
        case .accepted:
            // The answer says nothing about the webhook's state if the result of the accepted wake is still pending.
            if delivery.hasEnded { self.succeeded(delivery) } else { self.accepted[wake] = delivery }
        case .refused(let cause):
            self.failed(delivery, cause)
            let failure = delivery.kind == .push ? WakeReport.push(.failed) : .task(.failure)
            self.ask(.webhookReport(delivery.hook.number), .report(Named(wake), failure))
        case .lost(let cause):
            self.failed(delivery, cause)
            self.batch.append(.lost(.webhook(delivery.hook.number), wake, takingBackAttempt: false))
        case .undelivered(let cause, let retryAfter):
            self.failed(delivery, cause, retryAfter: retryAfter)
            self.batch.append(.lost(.webhook(delivery.hook.number), wake, takingBackAttempt: true))
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
        self.act(on: delivery.hook.breaker.succeeded(round: delivery.round), delivery.hook)
        self.publish(delivery.hook)
    }

    private func failed(_ delivery: Delivery, _ cause: String, retryAfter: Int64? = nil) {
        let hook = delivery.hook
        hook.status.lastError = cause
        let action = hook.breaker.failed(
            round: delivery.round,
            at: SystemClock.boot,
            retryAfter: retryAfter,
            using: &self.generator
        )
        self.act(on: action, hook)
        self.publish(hook)
    }

    private func act(on action: WebhookBreaker.Action, _ hook: LiveWebhook) {
        var status = hook.status
        switch action {
        case .nothing: return
        case .pause(let until):
            let milliseconds = until - SystemClock.boot
            status.restingUntil = SystemClock.wall + milliseconds
            self.log.write(
                .webhookResting,
                [
                    "topic": hook.webhook.topic, "url": status.url, "milliseconds": "\(milliseconds)",
                    "failures": "\(hook.breaker.failures)", "cause": status.lastError ?? "",
                ]
            )
        case .probe: status.restingUntil = nil
        case .recover:
            self.log.write(.webhookRecovered, ["topic": hook.webhook.topic, "url": status.url])
        }
        hook.status = status
        self.batch.append(.slotsChanged(.webhook(hook.number), hook.slotsNow))
        self.publish(hook)
    }

    /// Sends the status of a webhook to the engine if it has changed.
    private func publish(_ hook: LiveWebhook) {
        let breaker = hook.breaker
        let before = hook.published
        hook.status.state = breaker.state
        hook.status.failures = breaker.failures
        guard hook.status != before, !hook.isRetired else { return }
        hook.published = hook.status
        self.batch.append(.webhookChanged(topic: hook.webhook.topic, hook.status))
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
        guard case .webhook = address, let hook = self.hook(address) else { return }
        var body = JSONWriter()
        outcome.write(to: &body)
        self.log.write(
            .webhookRefused,
            ["topic": hook.webhook.topic, "status": "\(outcome.status)", "answer": body.buffer.view.string]
        )
        self.answered(address)
    }

    /// Records that the engine has answered a webhook's subscription.
    private func answered(_ address: StreamAddress) {
        guard let hook = self.hook(address) else { return }
        hook.isAnswered = true
        self.dropIfOver(hook)
    }

    private func released(_ address: StreamAddress, _ wake: WakeID) {
        if let request = self.requests[wake] { self.outlived(request) }
        // Expired wakes have been removed, so an accepted wake that ends here ended with a result.
        if let delivery = self.accepted.removeValue(forKey: wake) { self.succeeded(delivery) }
        guard let hook = self.hook(address), !hook.hasEnded else { return }
        hook.held -= 1
        self.endIfRetired(hook)
        self.checkDrained()
    }

    private func checkDrained() {
        guard self.isDraining, !self.isDrained, self.hooks.values.allSatisfy({ $0.held == 0 }) else { return }
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
