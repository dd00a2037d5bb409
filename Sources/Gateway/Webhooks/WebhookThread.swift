import Foundation
import HTTPClient
import Synchronization

/// Runs the webhooks on a thread of their own.
final class WebhookThread: Sendable {
    private let waker: HTTPWaker
    private let hasStarted = Atomic(false)
    private let isStopping = Atomic(false)
    private let ended = DispatchSemaphore(value: 0)
    private let begin: @Sendable (WebhookThread) -> Void

    /// - Parameters:
    ///   - webhooks: by topic.
    ///   - loop: the number of its mailbox among the loops'.
    ///   - onDrained: called once, during a shutdown, when no webhook holds a wake.
    /// - Throws: `HTTPClientError` when libcurl cannot be set up, and `CredentialError` when a secret cannot be read.
    init(
        _ webhooks: [String: WebhookConfiguration],
        loop: Int,
        mailbox: LoopMailbox,
        engine: Mailbox<CommandBatch>,
        log: GatewayLog,
        onDrained: @escaping @Sendable () -> Void
    ) throws {
        var hooks: [Webhook] = []
        for (topic, configuration) in webhooks.sorted(by: { $0.key < $1.key }) {
            hooks.append(try Webhook(topic: topic, configuration))
        }
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

    /// Subscribes the webhooks.
    func start() {
        self.hasStarted.store(true, ordering: .releasing)
        let thread = Thread { self.begin(self) }
        thread.name = "webhooks"
        thread.start()
    }

    /// Gives up what is under way, ends the thread, and waits for that.
    func stop() {
        guard self.hasStarted.load(ordering: .acquiring) else { return }
        self.isStopping.store(true, ordering: .releasing)
        self.waker.wake()
        self.ended.wait()
    }

    private func run(_ driver: WebhookDriver) {
        driver.begin()
        while !self.isStopping.load(ordering: .acquiring) { driver.turn() }
        self.ended.signal()
    }
}
