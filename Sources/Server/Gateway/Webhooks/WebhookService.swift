import Engine
package import HTTPClient
package import Platform
package import ServiceManager
import Synchronization

/// The webhooks there are, and their thread from the first one on.
package final class WebhookService: Sendable {
    private let makeThread: @Sendable ([Webhook]) throws(HTTPClientError) -> WebhookThread
    private let thread = Mutex<WebhookThread?>(nil)

    private let onBegun: @Sendable () -> Void

    /// - Parameters:
    ///   - makeThread: makes the thread, which begins with `start`.
    ///   - onBegun: called once, when there are webhooks for the first time.
    package init(
        makeThread: @escaping @Sendable ([Webhook]) throws(HTTPClientError) -> WebhookThread,
        onBegun: @escaping @Sendable () -> Void
    ) {
        self.makeThread = makeThread
        self.onBegun = onBegun
    }

    /// The webhooks of a configuration, in the order of their topics.
    ///
    /// - Throws: `CredentialError` when a secret cannot be read.
    package static func webhooks(_ configuration: GatewayConfiguration) throws(CredentialError) -> [Webhook] {
        var hooks: [Webhook] = []
        for (topic, webhook) in configuration.webhooks.sorted(by: { $0.key < $1.key }) {
            hooks.append(try Webhook(topic: topic, webhook))
        }
        return hooks
    }

    /// Makes what `hooks` need, if there are any; nothing is posted before `begin`.
    ///
    /// - Throws: `HTTPClientError` when libcurl cannot be set up.
    package func prepare(_ hooks: [Webhook]) throws(HTTPClientError) {
        guard !hooks.isEmpty, self.thread.withLock({ $0 == nil }) else { return }
        let thread = try self.makeThread(hooks)
        self.thread.withLock { $0 = thread }
    }

    /// Goes on with these, after `prepare`; begins when there were none before.
    package func begin(_ hooks: [Webhook]) {
        guard let thread = self.thread.withLock({ $0 }) else { return }
        thread.replace(with: hooks)
        if thread.start() { self.onBegun() }
    }

    /// Gives up what is under way, and ends the thread.
    package func stop() {
        self.thread.withLock { $0 }?.stop()
    }
}

/// Runs the webhooks on a thread of their own.
package final class WebhookThread: Sendable {
    private let waker: HTTPWaker
    private let hasStarted = Atomic(false)
    private let orders = Orders()
    private let thread: NamedThread

    /// What the thread is told from others.
    private final class Orders: Sendable {
        let mayBegin = Latch()
        let isStopping = Atomic(false)
        /// What the driver is to go on with; nil for what it has.
        let replacement = Mutex<[Webhook]?>(nil)
    }

    /// - `hooks`: those to begin with.
    /// - `onDrained`: called once, during a shutdown, when no webhook holds a wake.
    /// - Throws: `HTTPClientError` when libcurl cannot be set up, or no thread can be made.
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
        // The driver moves to the thread, and nobody else keeps it.
        let moved = Handover(driver)
        let orders = self.orders
        do throws(ThreadFailure) {
            self.thread = try NamedThread("webhooks") { Self.run(moved.take(), orders) }
        } catch {
            throw HTTPClientError(.unavailable, error.message)
        }
    }

    /// Subscribes the webhooks, the first time.
    ///
    /// - Returns: whether it was the first time.
    func start() -> Bool {
        guard !self.hasStarted.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        self.orders.mayBegin.open()
        return true
    }

    /// Gives up what is under way, ends the thread, and waits for that.
    func stop() {
        self.orders.isStopping.store(true, ordering: .releasing)
        self.orders.mayBegin.open()
        self.waker.wake()
        self.thread.join()
    }

    /// Has the driver go on with other webhooks; from any thread.
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

/// One topic's webhook at work.
package struct Webhook {
    let topic: String
    let configuration: WebhookConfiguration
    let slots: Int
    /// What is posted to.
    let url: String
    let settings: HTTPClientSettings
    let secret: [UInt8]?
    var breaker = WebhookBreaker()
    var status: WebhookStatus
    /// What the engine was told last.
    var published: WebhookStatus
    /// The wakes it holds, as the dispatcher counts them.
    var held = 0
    /// The requests that are under way.
    var open = 0
    /// The requests whose wakes ended before them, the oldest end first; others that have been answered since.
    var outlived: [HTTPRequestID] = []
    /// What the engine knows it by, once it is subscribed.
    var number: UInt32 = 0
    /// The engine has answered its subscription.
    var isAnswered = false
    /// Another configuration has taken its place: it ends once it holds no wake.
    var isRetired = false
    /// The engine was told that it has ended: a wake that comes all the same was on its way, and is lost with it.
    var hasEnded = false

    /// - Throws: `CredentialError` when the secret cannot be read.
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

    /// Whether the other one would do all that this one does.
    func isSame(as other: Webhook) -> Bool {
        self.topic == other.topic && self.configuration == other.configuration && self.secret == other.secret
    }

    /// Whether nothing is to come any more that is about it.
    var isOver: Bool { self.hasEnded && self.isAnswered && self.open == 0 }

    /// How many wakes it may hold now.
    var slotsNow: Int {
        guard !self.isRetired else { return 0 }
        return switch self.breaker.state {
        case .active: self.slots
        case .resting: 0
        case .probing: 1
        }
    }
}
