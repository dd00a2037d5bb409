internal import Synchronization

/// A value on its way to another thread, which will be the only one that has it.
package final class Handover<Value>: Sendable {
    private let value: Mutex<Value?>

    package init(_ value: consuming sending Value) {
        self.value = Mutex(value)
    }

    /// The value; by one caller, once.
    package func take() -> sending Value {
        guard let value = self.value.withLock({ $0.take() }) else {
            preconditionFailure("a value was handed over twice")
        }
        return value
    }
}
