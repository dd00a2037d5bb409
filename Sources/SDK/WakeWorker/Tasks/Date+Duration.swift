public import FoundationEssentials
import Wire

extension Duration {
    /// So many minutes.
    ///
    /// - Parameter minutes: how many.
    public static func minutes(_ minutes: Int) -> Duration { .seconds(60) * minutes }

    /// So many hours.
    ///
    /// - Parameter hours: how many.
    public static func hours(_ hours: Int) -> Duration { .seconds(3600) * hours }
}

extension Date {
    /// The moment that comes so long after another.
    ///
    /// - Parameters:
    ///   - date: a moment.
    ///   - duration: how long after it; before it when it is negative.
    public static func + (date: Date, duration: Duration) -> Date {
        let (seconds, attoseconds) = duration.components
        return date.addingTimeInterval(Double(seconds) + Double(attoseconds) / 1e18)
    }

    /// Rounded to the nearest; nil for a moment before 1970 or after the year 9999.
    var millisecondsSince1970: Int64? {
        let milliseconds = (self.timeIntervalSince1970 * 1000).rounded()
        guard (0...Double(WakeMessage.instantMax)).contains(milliseconds) else { return nil }
        return Int64(milliseconds)
    }

    init(millisecondsSince1970 milliseconds: Int64) {
        self.init(timeIntervalSince1970: Double(milliseconds) / 1000)
    }
}
