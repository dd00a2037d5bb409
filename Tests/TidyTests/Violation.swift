/// A place that breaks a rule.
struct Violation: Hashable, CustomStringConvertible {
    let path: String
    /// Counted from 1.
    let line: Int
    /// A description of the problem and of its solution.
    let message: String

    var description: String { "\(self.path):\(self.line): \(self.message)" }
}
