import Synchronization

/// Where the engine leaves what it has for one loop.
final class LoopMailbox: Sendable {
    private let incoming = Mutex(EffectBatch())
    private let wake = Mutex<(@Sendable () -> Void)?>(nil)

    /// Says how the loop is woken.
    func attach(wake: @escaping @Sendable () -> Void) {
        self.wake.withLock { $0 = wake }
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
        let wake = self.wake.withLock { $0 }
        wake?()
    }

    /// Takes everything there is into `batch`, which must be empty.
    func take(into batch: inout EffectBatch) {
        self.incoming.withLock { swap(&$0, &batch) }
    }
}
