package import HTTPTransport
import Synchronization

/// Whose client certificates are trusted at this moment; every loop asks, one thread changes it.
package final class ClientTrusts: Sendable {
    private let trust: Mutex<ClientTrust>
    private let count = Atomic<UInt64>(0)

    package init(_ trust: ClientTrust) {
        self.trust = Mutex(trust)
    }

    /// Counts the changes: what was verified under another number may be true no more.
    var generation: UInt64 { self.count.load(ordering: .acquiring) }

    /// Whom to trust, and the number of that state.
    func current() -> (generation: UInt64, trust: ClientTrust) {
        self.trust.withLock { (self.generation, $0) }
    }

    package func replace(with trust: ClientTrust) {
        self.trust.withLock {
            $0 = trust
            _ = self.count.add(1, ordering: .acquiringAndReleasing)
        }
    }
}
