package import Engine
import Platform

/// Where the engine leaves what it has for one outlet: a loop, or the webhooks.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards every field.
package final class LoopMailbox: @unchecked Sendable {
    private let monitor = Monitor()
    private var incoming = EffectBatch()
    private var settings: LoopSettings?
    private var ring: @Sendable () -> Void = {}

    package init() {}

    /// Says how the outlet is woken.
    package func attach(wake: @escaping @Sendable () -> Void) {
        self.monitor.withLock { self.ring = wake }
    }

    /// Leaves everything of `batch`, which is empty afterwards, and wakes the outlet.
    package func deliver(_ batch: inout EffectBatch) {
        self.monitor.lock()
        if self.incoming.isEmpty {
            swap(&self.incoming, &batch)
        } else {
            self.incoming.append(batch)
            batch.removeAll()
        }
        let ring = self.ring
        self.monitor.unlock()
        ring()
    }

    /// Leaves what the loop is to go on with, and wakes it.
    package func deliver(_ settings: LoopSettings) {
        let ring = self.monitor.withLock {
            self.settings = settings
            return self.ring
        }
        ring()
    }

    /// Takes everything there is into `batch`, which must be empty.
    ///
    /// - Returns: what to go on with; nil for what there is.
    @discardableResult
    package func take(into batch: inout EffectBatch) -> LoopSettings? {
        self.monitor.lock()
        swap(&self.incoming, &batch)
        let settings = self.settings
        if settings != nil { self.settings = nil }
        self.monitor.unlock()
        return settings
    }
}

/// One thing for each outlet of the engine: every loop has its own, and the webhooks have one together.
package struct PerOutlet<Element> {
    /// By loop number.
    package var loops: [Element]
    package var webhooks: Element

    package init(loops: [Element], webhooks: Element) {
        self.loops = loops
        self.webhooks = webhooks
    }

    /// The element that what is meant for `address` goes through.
    package subscript(address: StreamAddress) -> Element {
        switch address {
        case .stream(let stream), .faulted(let stream): self.loops[Int(stream.loop)]
        case .webhook, .webhookReport: self.webhooks
        }
    }
}

extension PerOutlet: Sendable where Element: Sendable {}
