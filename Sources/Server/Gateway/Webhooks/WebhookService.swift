import Engine
package import HTTPClient
package import Platform
package import ServiceManager
import Synchronization

/// The service that posts wakes to the webhooks. It creates its thread when the first webhook is configured.
package final class WebhookService: Sendable {
    private let makeThread: @Sendable ([Webhook]) throws(HTTPClientError) -> WebhookThread
    private let thread = Mutex<WebhookThread?>(nil)

    private let onBegun: @Sendable () -> Void

    /// - Parameters:
    ///   - makeThread: creates the thread, which posts nothing before `WebhookThread.start`.
    ///   - onBegun: called once, when the thread starts to post wakes.
    package init(
        makeThread: @escaping @Sendable ([Webhook]) throws(HTTPClientError) -> WebhookThread,
        onBegun: @escaping @Sendable () -> Void
    ) {
        self.makeThread = makeThread
        self.onBegun = onBegun
    }

    /// Returns the webhooks of a configuration, in the order of their topics.
    ///
    /// - Throws: `CredentialError` if a secret cannot be read.
    package static func webhooks(_ configuration: GatewayConfiguration) throws(CredentialError) -> [Webhook] {
        var hooks: [Webhook] = []
        for (topic, webhook) in configuration.webhooks.sorted(by: { $0.key < $1.key }) {
            hooks.append(try Webhook(topic: topic, webhook))
        }
        return hooks
    }

    /// Creates the thread if it does not exist and `hooks` is not empty. The thread posts nothing before `begin`.
    ///
    /// - Throws: `HTTPClientError` if libcurl cannot be set up.
    package func prepare(_ hooks: [Webhook]) throws(HTTPClientError) {
        guard !hooks.isEmpty, self.thread.withLock({ $0 == nil }) else { return }
        let thread = try self.makeThread(hooks)
        self.thread.withLock { $0 = thread }
    }

    /// Replaces the webhooks, and starts the thread at the first call. Does nothing if `prepare` created no thread.
    package func begin(_ hooks: [Webhook]) {
        guard let thread = self.thread.withLock({ $0 }) else { return }
        thread.replace(with: hooks)
        if thread.start() { self.onBegun() }
    }

    /// Abandons the open requests, and ends the thread.
    package func stop() {
        self.thread.withLock { $0 }?.stop()
    }
}

/// The thread that runs the `WebhookDriver`.
package final class WebhookThread: Sendable {
    private let waker: HTTPWaker
    private let hasStarted = Atomic(false)
    private let orders = Orders()
    private let thread: NamedThread

    /// The instructions of other threads to the thread.
    private final class Orders: Sendable {
        let mayBegin = Latch()
        let isStopping = Atomic(false)
        /// The webhooks that replace the driver's webhooks; nil for no change.
        let replacement = Mutex<[Webhook]?>(nil)
    }

    /// Creates the thread, which waits for `start`.
    ///
    /// - `hooks`: the initial webhooks.
    /// - `onDrained`: called once, during a shutdown, when no webhook holds a wake.
    /// - Throws: `HTTPClientError` if libcurl cannot be set up, or no thread can be created.
    package init(
        _ hooks: [Webhook],
        mailbox: LoopMailbox,
        engine: Mailbox<CommandBatch>,
        log: GatewayLog,
        onDrained: @escaping @Sendable () -> Void
    ) throws(HTTPClientError) {
        let driver = WebhookDriver(
            client: try HTTPClient(),
            hooks: hooks,
            mailbox: mailbox,
            engine: engine,
            log: log,
            onDrained: onDrained
        )
        let waker = driver.waker
        self.waker = waker
        mailbox.attach { waker.wake() }
        // Moves the driver to the thread, which then has the only reference.
        let moved = Handover(driver)
        let orders = self.orders
        do throws(ThreadFailure) {
            self.thread = try NamedThread("webhooks") { Self.run(moved.take(), orders) }
        } catch {
            throw HTTPClientError(.unavailable, error.message)
        }
    }

    /// Makes the thread subscribe the webhooks; later calls have no effect.
    ///
    /// - Returns: true at the first call.
    func start() -> Bool {
        guard !self.hasStarted.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        self.orders.mayBegin.open()
        return true
    }

    /// Abandons the open requests, ends the thread, and waits for its end.
    func stop() {
        self.orders.isStopping.store(true, ordering: .releasing)
        self.orders.mayBegin.open()
        self.waker.wake()
        self.thread.join()
    }

    /// Replaces the driver's webhooks. May be called on any thread.
    func replace(with hooks: [Webhook]) {
        self.orders.replacement.withLock { $0 = hooks }
        self.waker.wake()
    }

    private static func run(_ driver: WebhookDriver, _ orders: Orders) {
        orders.mayBegin.wait()
        guard !orders.isStopping.load(ordering: .acquiring) else { return }
        driver.begin()
        while !orders.isStopping.load(ordering: .acquiring) {
            if let hooks = orders.replacement.withLock({ $0.take() }) { driver.replace(with: hooks) }
            driver.turn()
        }
    }
}

/// A webhook of one topic, with its state.
package struct Webhook {
    let topic: String
    let configuration: WebhookConfiguration
    let slots: Int
    /// The URL to which wakes are posted.
    let url: String
    let settings: HTTPClientSettings
    let secret: [UInt8]?
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
    /// The number that identifies the webhook to the engine.
    var number: UInt32 = 0
    /// True if the engine has answered the webhook's subscription.
    var isAnswered = false
    /// True if a reload has replaced the webhook. It gets no further wakes, and ends when it holds none.
    var isRetired = false
    /// True if the engine was notified that the webhook's stream has ended. A wake that arrives afterwards is
    /// dropped, because the engine treats it as lost.
    var hasEnded = false

    /// - Throws: `CredentialError` if the URL is invalid or the secret cannot be read.
    init(topic: String, _ configuration: WebhookConfiguration) throws(CredentialError) {
        guard let url = HTTPURL(configuration.url) else {
            throw CredentialError(message: "topics.\(topic).webhook.url is not a URL; write an https URL")
        }
        self.topic = topic
        self.configuration = configuration
        self.slots = configuration.slots
        self.url = configuration.url
        self.settings = configuration.settings(for: url)
        var secret: [UInt8]?
        if let file = configuration.secretFile { secret = try WebhookSecret.read(file) }
        self.secret = secret
        self.status = WebhookStatus(url: url.shown, slots: configuration.slots)
        self.published = self.status
    }

    /// Returns true if the other webhook has the same topic, configuration and secret.
    func isSame(as other: Webhook) -> Bool {
        self.topic == other.topic && self.configuration == other.configuration && self.secret == other.secret
    }

    /// True if the webhook has ended and waits for no answer, neither to its subscription nor to a request.
    var isOver: Bool { self.hasEnded && self.isAnswered && self.open == 0 }

    /// The number of wakes that the webhook may hold now.
    var slotsNow: Int {
        guard !self.isRetired else { return 0 }
        return switch self.breaker.state {
        case .active: self.slots
        case .resting: 0
        case .probing: 1
        }
    }
}
