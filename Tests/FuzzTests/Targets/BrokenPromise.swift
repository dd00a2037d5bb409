/// An input that breaks a promise, which must hold for every input.
struct BrokenPromise: Error, CustomStringConvertible {
    /// A description of the broken promise.
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Throws an error with this description unless the promise holds.
func promise(_ holds: Bool, _ what: @autoclosure () -> String) throws(BrokenPromise) {
    guard holds else { throw BrokenPromise(what()) }
}
