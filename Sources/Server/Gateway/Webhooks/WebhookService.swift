import Engine
package import HTTPClient
package import Platform
package import ServiceManager
import Synchronization

/// The webhooks, and their thread once there are any.
package final class WebhookService: Sendable {
    private let makeThread: @Sendable ([Webhook]) throws(HTTPClientError) -> WebhookThread
    private let thread = Mutex<WebhookThread?>(nil)

    private let onBegun: @Sendable () -> Void

    /// - Parameters:
    ///   - makeThread: creates the thread, which begins with `start`.
    ///   - onBegun: called once, when there are webhooks for the first time.
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

    /// Creates the thread for `hooks` if there are any. Nothing is posted before `begin`.
    ///
    /// - Throws: `HTTPClientError` if libcurl cannot be set up.
    package func prepare(_ hooks: [Webhook]) throws(HTTPClientError) {
        guard !hooks.isEmpty, self.thread.withLock({ $0 == nil }) else { return }
        let thread = try self.makeThread(hooks)
        self.thread.withLock { $0 = thread }
    }

    /// Replaces the webhooks after `prepare`; starts the thread if there were none before.
    package func begin(_ hooks: [Webhook]) {
        guard let thread = self.thread.withLock({ $0 }) else { return }
        thread.replace(with: hooks)
        if thread.start() { self.onBegun() }
    }

    /// Gives up the open requests, and ends the thread.
    package func stop() {
        self.thread.withLock { $0 }?.stop()
    }
}

/// Runs the webhooks on a separate thread.
package final class WebhookThread: Sendable {
    private let waker: HTTPWaker
    private let hasStarted = Atomic(false)
    private let orders = Orders()
    private let thread: NamedThread

    /// The orders to the thread from other threads.
    private final class Orders: Sendable {
        let mayBegin = Latch()
        let isStopping = Atomic(false)
        /// The next webhooks of the driver; nil for no change.
        let replacement = Mutex<[Webhook]?>(nil)
    }

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
        // The driver moves to the thread; no other reference to it remains.
        let moved = Handover(driver)
        let orders = self.orders
        do throws(ThreadFailure) {
            self.thread = try NamedThread("webhooks") { Self.run(moved.take(), orders) }
        } catch {
            throw HTTPClientError(.unavailable, error.message)
        }
    }

    /// Subscribes the webhooks, at the first call.
    ///
    /// - Returns: true at the first call.
    func start() -> Bool {
        guard !self.hasStarted.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        self.orders.mayBegin.open()
        return true
    }

    /// Gives up the open requests, ends the thread, and waits for it.
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

/// The webhook of one topic.
package struct Webhook {
    let topic: String
    let configuration: WebhookConfiguration
    let slots: Int
    /// The URL that wakes are posted to.
    let url: String
    let settings: HTTPClientSettings
    let secret: [UInt8]?
    var breaker = WebhookBreaker()
    var status: WebhookStatus
    /// The status that the engine received last.
    var published: WebhookStatus
    /// The number of wakes it holds, as counted by the dispatcher.
    var held = 0
    /// The number of open requests.
    var open = 0
    /// The open requests whose wakes have ended, in order of their end. Some may have been answered since.
    var outlived: [HTTPRequestID] = []
    /// The number by which the engine knows it, once it is subscribed.
    var number: UInt32 = 0
    /// True if the engine has answered its subscription.
    var isAnswered = false
    /// True if another configuration has replaced it, so that it ends once it holds no wake.
    var isRetired = false
    /// True if the engine was notified of its end. A wake that still arrives is lost with it.
    var hasEnded = false

    /// - Throws: `CredentialError` if the secret cannot be read.
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

    /// True if nothing more can arrive for it.
    var isOver: Bool { self.hasEnded && self.isAnswered && self.open == 0 }

    /// The number of wakes that it may hold now.
    var slotsNow: Int {
        guard !self.isRetired else { return 0 }
        return switch self.breaker.state {
        case .active: self.slots
        case .resting: 0
        case .probing: 1
        }
    }
}
