import Text

extension NearestMatch {
    /// A remedy for an unknown name: the nearest one, or all of them.
    static func remedy(for name: String, among names: [String]) -> String {
        guard let nearest = Self.find(name, in: names) else {
            return "use one of \(names.joined(separator: ", "))"
        }
        return "did you mean \"\(nearest)\"?"
    }
}
