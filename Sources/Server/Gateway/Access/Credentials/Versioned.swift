import Synchronization

/// A value that one thread replaces and all event loops read.
package final class Versioned<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    private let count = Atomic<UInt64>(0)

    package init(_ value: Value) { self.value = Mutex(value) }

    /// The number of replacements so far. Results computed from an earlier generation may be out of date.
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
