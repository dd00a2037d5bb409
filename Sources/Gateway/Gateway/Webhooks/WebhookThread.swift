import EventLog
import Foundation
import HTTPClient
import Platform
import Synchronization

/// Runs the webhooks on a thread of their own.
final class WebhookThread: Sendable {
    private let waker: HTTPWaker
    private let hasStarted = Atomic(false)
    private let isStopping = Atomic(false)
    private let ended = DispatchSemaphore(value: 0)
    private let begin: @Sendable (WebhookThread) -> Void
    /// What the driver is to go on with; nil for what it has.
    private let replacement = Mutex<[Webhook]?>(nil)

    /// - Parameters:
    ///   - hooks: those to begin with.
    ///   - loop: the number of its mailbox among the loops'.
    ///   - onDrained: called once, during a shutdown, when no webhook holds a wake.
    /// - Throws: `HTTPClientError` when libcurl cannot be set up.
    init(
        _ hooks: [Webhook],
        loop: Int,
        mailbox: LoopMailbox,
        engine: Mailbox<CommandBatch>,
        log: GatewayLog,
        onDrained: @escaping @Sendable () -> Void
    ) throws(HTTPClientError) {
        let driver = WebhookDriver(
            client: try HTTPClient(),
            hooks: hooks,
            loop: loop,
            mailbox: mailbox,
            engine: engine,
            log: log,
            onDrained: onDrained
        )
        let waker = driver.waker
        self.waker = waker
        mailbox.attach { waker.wake() }
        // The driver moves to the thread, and nobody else keeps it.
        nonisolated(unsafe) let moved = driver
        self.begin = { thread in unsafe thread.run(moved) }
    }

    /// Subscribes the webhooks, the first time.
    ///
    /// - Returns: whether it was the first time.
    func start() -> Bool {
        guard !self.hasStarted.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        let thread = Thread { self.begin(self) }
        thread.name = "webhooks"
        thread.start()
        return true
    }

    /// Gives up what is under way, ends the thread, and waits for that.
    func stop() {
        guard self.hasStarted.load(ordering: .acquiring) else { return }
        self.isStopping.store(true, ordering: .releasing)
        self.waker.wake()
        self.ended.wait()
    }

    /// Has the driver go on with other webhooks; from any thread.
    func replace(with hooks: [Webhook]) {
        self.replacement.withLock { $0 = hooks }
        self.waker.wake()
    }

    private func run(_ driver: WebhookDriver) {
        driver.begin()
        while !self.isStopping.load(ordering: .acquiring) {
            if let hooks = self.replacement.withLock({ $0.take() }) { driver.replace(with: hooks) }
            driver.turn()
        }
        self.ended.signal()
    }
}
