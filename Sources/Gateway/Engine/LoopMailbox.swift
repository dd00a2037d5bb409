import Foundation

/// Where the engine leaves what it has for one loop.
///
/// It is `Sendable` without the compiler's proof: `lock` guards every field. The thread sanitizer sees such a lock, and
/// not all that `Mutex` does when two threads meet in it.
final class LoopMailbox: @unchecked Sendable {
    private let lock = NSLock()
    private var incoming = EffectBatch()
    private var ring: @Sendable () -> Void = {}

    /// Says how the loop is woken.
    func attach(wake: @escaping @Sendable () -> Void) {
        self.lock.withLock { self.ring = wake }
    }

    /// Leaves everything of `batch`, which is empty afterwards, and wakes the loop.
    func deliver(_ batch: inout EffectBatch) {
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

    /// Takes everything there is into `batch`, which must be empty.
    func take(into batch: inout EffectBatch) {
        self.lock.lock()
        swap(&self.incoming, &batch)
        self.lock.unlock()
    }
}
