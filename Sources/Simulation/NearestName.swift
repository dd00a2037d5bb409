/// Finds the name that was probably meant by a misspelt one.
enum NearestName {
    /// The name nearest to `name`, when it is near enough to be a slip: a third of its letters, at least two.
    static func of(_ name: String, among names: [String]) -> String? {
        let limit = max(2, name.count / 3)
        var best: (name: String, distance: Int)?
        for candidate in names {
            let distance = Self.distance(Array(name.lowercased()), Array(candidate.lowercased()))
            if distance <= limit, distance < best?.distance ?? .max { best = (candidate, distance) }
        }
        return best?.name
    }

    /// A remedy for an unknown name: the nearest one, or all of them.
    static func remedy(for name: String, among names: [String]) -> String {
        guard let nearest = Self.of(name, among: names) else {
            return "use one of \(names.joined(separator: ", "))"
        }
        return "did you mean \"\(nearest)\"?"
    }

    /// The least number of letters to insert, delete or replace between the two (Levenshtein).
    private static func distance(_ left: [Character], _ right: [Character]) -> Int {
        var previous = Array(0...right.count)
        for (row, letter) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                let replaced = previous[column] + (letter == other ? 0 : 1)
                current.append(min(replaced, previous[column + 1] + 1, current[column] + 1))
            }
            previous = current
        }
        return previous[right.count]
    }
}
