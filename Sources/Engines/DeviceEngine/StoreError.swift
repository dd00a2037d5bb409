/// Why a store could not keep, or not give back, what it was asked for.
package struct StoreError: Error, Hashable, Sendable {
    /// What happened, to which file, and what to do, in whole sentences.
    package let message: String

    package init(message: String) {
        self.message = message
    }
}

extension StoreError: CustomStringConvertible {
    package var description: String { self.message }
}
