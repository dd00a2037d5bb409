import Synchronization

/// Where the engine leaves what it has for one loop.
final class LoopMailbox: Sendable {
    private let incoming = Mutex(EffectBatch())
    private let bell = Mutex(Bell())

    /// A closure by itself would be wrapped anew, for good, each time it is read under the lock: a chain without end.
    private struct Bell {
        var ring: @Sendable () -> Void = {}
    }

    /// Says how the loop is woken.
    func attach(wake: @escaping @Sendable () -> Void) {
        self.bell.withLock { $0.ring = wake }
    }

    /// Leaves everything of `batch`, which is empty afterwards, and wakes the loop.
    func deliver(_ batch: inout EffectBatch) {
        self.incoming.withLock { incoming in
            if incoming.isEmpty {
                swap(&incoming, &batch)
            } else {
                incoming.append(batch)
                batch.removeAll()
            }
        }
        let bell = self.bell.withLock { $0 }
        bell.ring()
    }

    /// Takes everything there is into `batch`, which must be empty.
    func take(into batch: inout EffectBatch) {
        self.incoming.withLock { swap(&$0, &batch) }
    }
}
