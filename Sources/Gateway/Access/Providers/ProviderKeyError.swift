/// Why a provider's key, or the folder of them, cannot be used.
package struct ProviderKeyError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong and what to do about it.
    package let message: String

    package var description: String { self.message }
}
