import Synchronization

/// A value that every loop reads and one thread replaces.
package final class Versioned<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    private let count = Atomic<UInt64>(0)

    package init(_ value: Value) { self.value = Mutex(value) }

    /// The number of changes. A verification under an earlier number may no longer hold.
    var generation: UInt64 { self.count.load(ordering: .acquiring) }

    /// Returns the value and its generation.
    package func current() -> (generation: UInt64, value: Value) { self.value.withLock { (self.generation, $0) } }

    package func replace(with value: Value) {
        self.value.withLock {
            $0 = value
            _ = self.count.add(1, ordering: .acquiringAndReleasing)
        }
    }
}
