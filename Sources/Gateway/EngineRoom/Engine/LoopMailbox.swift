import Foundation
package import Settings

/// Where the engine leaves what it has for one outlet: a loop, or the webhooks.
///
/// It is `Sendable` without the compiler's proof: `lock` guards every field. The thread sanitizer sees such a lock, and
/// not all that `Mutex` does when two threads meet in it.
package final class LoopMailbox: @unchecked Sendable {

    package init() {}
    private let lock = NSLock()
    private var incoming = EffectBatch()
    private var settings: LoopSettings?
    private var ring: @Sendable () -> Void = {}

    /// Says how the outlet is woken.
    package func attach(wake: @escaping @Sendable () -> Void) {
        self.lock.withLock { self.ring = wake }
    }

    /// Leaves everything of `batch`, which is empty afterwards, and wakes the outlet.
    package func deliver(_ batch: inout EffectBatch) {
        self.lock.lock()
        if self.incoming.isEmpty {
            swap(&self.incoming, &batch)
        } else {
            self.incoming.append(batch)
            batch.removeAll()
        }
        let ring = self.ring
        self.lock.unlock()
        ring()
    }

    /// Leaves what the loop is to go on with, and wakes it.
    package func deliver(_ settings: LoopSettings) {
        let ring = self.lock.withLock {
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
        self.lock.lock()
        swap(&self.incoming, &batch)
        let settings = self.settings
        if settings != nil { self.settings = nil }
        self.lock.unlock()
        return settings
    }
}
