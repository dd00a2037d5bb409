/// Finds what somebody meant to write.
package enum NearestMatch {
    /// The candidate closest to `word`, or nil when none is close enough to be meant.
    ///
    /// Letters are compared without regard to case. A candidate is close when at most one letter in three, and never
    /// more than three letters, have to change; of equally close ones the first wins.
    package static func find(_ word: String, in candidates: some Sequence<String>) -> String? {
        let letters = Array(word.lowercased().unicodeScalars)
        // A word far longer than any name is no slip of the pen, and the table would be large.
        guard letters.count <= 128 else { return nil }
        var best: (candidate: String, distance: Int)?
        for candidate in candidates {
            let distance = self.distance(letters, Array(candidate.lowercased().unicodeScalars))
            let limit = min(3, max(1, max(letters.count, candidate.unicodeScalars.count) / 3))
            guard distance <= limit, distance < best?.distance ?? Int.max else { continue }
            best = (candidate, distance)
        }
        return best?.candidate
    }

    /// The least number of letters to insert, delete, replace or swap with their neighbour that turns one word into
    /// the other.
    private static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for row in 0..<left.count {
            var current = [row + 1]
            for column in 0..<right.count {
                let replaced = last[column] + (left[row] == right[column] ? 0 : 1)
                var cost = min(replaced, last[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            beforeLast = last
            last = current
        }
        return last[right.count]
    }
}
