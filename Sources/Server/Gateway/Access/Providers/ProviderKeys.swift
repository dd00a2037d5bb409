import Platform
import Synchronization

/// The keys that tokens are verified with at this moment; every loop asks, one thread changes them.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards `keys`.
package final class ProviderKeys: @unchecked Sendable {
    private let monitor = Monitor()
    private var keys: [String: ProviderKeyFile] = [:]
    private let count = Atomic<UInt64>(0)

    package init() {}

    /// Counts the changes: what was verified under another number may be true no more.
    var generation: UInt64 { self.count.load(ordering: .acquiring) }

    /// The keys by their ids, and the number of that state.
    func current() -> (generation: UInt64, keys: [String: ProviderKeyFile]) {
        self.monitor.withLock { (self.generation, self.keys) }
    }

    /// The ids of all keys, sorted.
    package var keyIDs: [String] { self.current().keys.keys.sorted() }

    /// Replaces all keys.
    package func replace(with keys: [ProviderKeyFile]) {
        self.monitor.withLock {
            self.keys = Dictionary(keys.map { ($0.keyID, $0) }) { first, _ in first }
            _ = self.count.add(1, ordering: .acquiringAndReleasing)
        }
    }
}
