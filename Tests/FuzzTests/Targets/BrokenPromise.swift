/// An input for which something did not hold that must always hold.
struct BrokenPromise: Error, CustomStringConvertible {
    /// What did not hold.
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Throws, saying what did not hold, unless it does.
func promise(_ holds: Bool, _ what: @autoclosure () -> String) throws(BrokenPromise) {
    guard holds else { throw BrokenPromise(what()) }
}
