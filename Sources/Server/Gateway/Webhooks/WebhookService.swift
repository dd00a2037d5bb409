package import HTTPClient
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
