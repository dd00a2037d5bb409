/// Why a text is not JSON.
package struct JSONFault: Error, Hashable {
    /// The byte at which reading stopped, from 1.
    package let column: Int
    package let what: String
}
