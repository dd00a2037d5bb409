package import HTTPClient
package import Platform
package import ServiceManager
import Synchronization

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
