/// One place that breaks a rule.
struct Violation: Hashable, CustomStringConvertible {
    let path: String
    /// Counted from 1.
    let line: Int
    /// What is wrong, and what to do instead.
    let message: String

    var description: String { "\(self.path):\(self.line): \(self.message)" }
}
