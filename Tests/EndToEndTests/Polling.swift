import Glibc

/// Asking again and again for what no event tells of.
enum Polling {
    /// The first rest between two questions, and the longest, to which each is twice the last.
    ///
    /// Without rests those who ask take the cores from what they wait for.
    private static let restMillisecondsMin: Int32 = 5
    private static let restMillisecondsMax: Int32 = 80

    /// Asks until it is so, and says whether it was in time: within a minute, or as long as is given.
    static func isSo(within seconds: Double = 60, _ ask: () throws -> Bool) rethrows -> Bool {
        let deadline = ContinuousClock.now + .seconds(seconds)
        var rest = Self.restMillisecondsMin
        while try !ask() {
            guard ContinuousClock.now < deadline else { return false }
            _ = poll(nil, 0, rest)
            rest = min(rest * 2, Self.restMillisecondsMax)
        }
        return true
    }
}
