import Text

/// Why a trace cannot be simulated.
package struct TraceError: Error, Hashable, CustomStringConvertible {
    /// The line of the trace, from 1; nil when the fault is in an override and not in the trace.
    package let line: Int?
    /// What is wrong.
    package let fault: String
    /// What to do about it.
    package let remedy: String

    /// "line 3: the fault; the remedy".
    package var description: String {
        let place = self.line.map { "line \($0): " } ?? ""
        return "\(place)\(self.fault); \(self.remedy)"
    }
}

extension NearestMatch {
    /// A remedy for an unknown name: the nearest one, or all of them.
    static func remedy(for name: String, among names: [String]) -> String {
        guard let nearest = Self.find(name, in: names) else {
            return "use one of \(names.joined(separator: ", "))"
        }
        return "did you mean \"\(nearest)\"?"
    }
}
