import Engine
package import HTTPClient
package import Platform
package import ServiceManager
import Synchronization

/// The service that posts wakes to the webhooks. A `WebhookDriver` does so on a thread of its own, which is created
/// when the first webhook is configured.
package final class WebhookService: Sendable {
    private let mailbox: LoopMailbox
    private let engine: Mailbox<CommandBatch>
    private let log: GatewayLog
    private let onBegun: @Sendable () -> Void
    private let onDrained: @Sendable () -> Void

    private let thread = Mutex<(thread: NamedThread, waker: HTTPWaker)?>(nil)
    private let isStopping = Atomic(false)
    /// The webhooks that replace the driver's webhooks, which are none at first; nil for no change.
    private let replacement = Mutex<[Webhook]?>(nil)

    /// - `onBegun`: called once, on the new thread.
    /// - `onDrained`: called once, during a shutdown, when no webhook holds a wake.
    package init(
        mailbox: LoopMailbox,
        engine: Mailbox<CommandBatch>,
        log: GatewayLog,
        onBegun: @escaping @Sendable () -> Void,
        onDrained: @escaping @Sendable () -> Void
    ) {
        self.mailbox = mailbox
        self.engine = engine
        self.log = log
        self.onBegun = onBegun
        self.onDrained = onDrained
    }

    /// Returns the webhooks of a configuration, in the order of their topics.
    ///
    /// - Throws: `CredentialError` if a secret cannot be read.
    package static func webhooks(_ configuration: GatewayConfiguration) throws(CredentialError) -> [Webhook] {
        try configuration.webhooks.sorted { $0.key < $1.key }.map { hook throws(CredentialError) in
            try Webhook(topic: hook.key, hook.value)
        }
    }

    /// Creates the thread if it does not exist and `hooks` is not empty. It posts nothing before `begin`.
    ///
    /// - Throws: `HTTPClientError` if libcurl cannot be set up, or no thread can be created.
    package func prepare(_ hooks: [Webhook]) throws(HTTPClientError) {
        guard !hooks.isEmpty, self.thread.withLock({ $0 == nil }) else { return }
        let driver = WebhookDriver(
            client: try HTTPClient(),
            mailbox: self.mailbox,
            engine: self.engine,
            log: self.log,
            onDrained: self.onDrained
        )
        let waker = driver.waker
        self.mailbox.attach { waker.wake() }
        // Moves the driver to the thread, which then has the only reference.
        let moved = Handover(driver)
        do throws(ThreadFailure) {
            let thread = try NamedThread("webhooks") { [self] in self.run(moved.take()) }
            self.thread.withLock { $0 = (thread, waker) }
        } catch {
            throw HTTPClientError(.unavailable, error.message)
        }
    }

    /// Replaces the webhooks. Does nothing if `prepare` created no thread.
    package func begin(_ hooks: [Webhook]) {
        guard let waker = self.thread.withLock({ $0?.waker }) else { return }
        self.replacement.withLock { $0 = hooks }
        waker.wake()
    }

    /// Abandons the open requests, ends the thread, and waits for its end.
    package func stop() {
        guard let (thread, waker) = self.thread.withLock({ $0 }) else { return }
        self.isStopping.store(true, ordering: .releasing)
        waker.wake()
        thread.join()
    }

    private func run(_ driver: WebhookDriver) {
        self.onBegun()
        while !self.isStopping.load(ordering: .acquiring) {
            if let hooks = self.replacement.withLock({ $0.take() }) { driver.replace(with: hooks) }
            driver.turn()
        }
    }
}

/// A webhook of one topic.
package struct Webhook {
    let topic: String
    let configuration: WebhookConfiguration
    let settings: HTTPClientSettings
    let secret: [UInt8]?
    /// The status of a webhook that has no wakes yet.
    let initialStatus: WebhookStatus

    /// - Throws: `CredentialError` if the URL is invalid or the secret cannot be read.
    init(topic: String, _ configuration: WebhookConfiguration) throws(CredentialError) {
        guard let url = HTTPURL(configuration.url) else {
            throw CredentialError(message: "topics.\(topic).webhook.url is not a URL; write an https URL")
        }
        self.topic = topic
        self.configuration = configuration
        self.settings = configuration.settings(for: url)
        var secret: [UInt8]?
        if let file = configuration.secretFile { secret = try WebhookSecret.read(file) }
        self.secret = secret
        self.initialStatus = WebhookStatus(url: url.shown, slots: configuration.slots)
    }

    /// Returns true if the other webhook has the same topic, configuration and secret.
    func isSame(as other: Webhook) -> Bool {
        self.topic == other.topic && self.configuration == other.configuration && self.secret == other.secret
    }
}

/// A webhook that the driver has begun, with its state.
final class LiveWebhook {
    let webhook: Webhook
    /// The number that identifies the webhook to the engine.
    let number: UInt32
    var breaker = WebhookBreaker()
    var status: WebhookStatus
    /// The last status sent to the engine.
    var published: WebhookStatus
    /// The number of wakes delivered to the webhook that the dispatcher has not released.
    var held = 0
    /// The number of open requests.
    var open = 0
    /// The requests whose wakes ended before an answer, in order of the wakes' ends. Some may have been answered since.
    var outlived: [HTTPRequestID] = []
    /// True if the engine has answered the webhook's subscription.
    var isAnswered = false
    /// True if a reload has replaced the webhook. It gets no further wakes, and ends when it holds none.
    var isRetired = false
    /// True if the engine was notified that the webhook's stream has ended. A wake that arrives afterwards is
    /// dropped, because the engine treats it as lost.
    var hasEnded = false

    init(_ webhook: Webhook, number: UInt32) {
        self.webhook = webhook
        self.number = number
        self.status = webhook.initialStatus
        self.published = webhook.initialStatus
    }

    /// True if the webhook has ended and waits for no answer, neither to its subscription nor to a request.
    var isOver: Bool { self.hasEnded && self.isAnswered && self.open == 0 }

    /// The number of wakes that the webhook may hold now.
    var slotsNow: Int {
        guard !self.isRetired else { return 0 }
        return switch self.breaker.state {
        case .active: self.webhook.configuration.slots
        case .resting: 0
        case .probing: 1
        }
    }
}
