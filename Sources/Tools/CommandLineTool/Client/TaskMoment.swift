import FoundationEssentials
import Wire

/// Parses the value of `--earliest-begin`: a duration from now, or an instant of RFC 3339.
package enum TaskMoment {
    /// The last instant that RFC 3339 can represent, in milliseconds since 1970.
    private static let last: Int64 = 253_402_300_799_999
    /// The longest duration without a unit, ten years in milliseconds.
    private static let plainMax: Int64 = 315_360_000_000

    /// Returns the instant in milliseconds since 1970.
    ///
    /// - Parameters:
    ///   - text: a duration from now, such as `15m`, or an instant such as `2026-11-23T17:00:00Z`.
    ///   - now: the time in milliseconds since 1970.
    /// - Throws: `badUsage` for any other text.
    package static func milliseconds(_ text: String, now: Int64) throws(CommandFailure) -> Int64 {
        if let moment = self.fromNow(text, now) ?? self.instant(text), (0...self.last).contains(moment) {
            return moment
        }
        throw .usage(
            "--earliest-begin is \"\(text)\"; write how long from now, such as 15m, "
                + "or an instant such as 2026-11-23T17:00:00Z"
        )
    }

    private static func fromNow(_ text: String, _ now: Int64) -> Int64? {
        guard let duration = DurationText.milliseconds(text) else { return nil }
        // A larger number without a unit is interpreted as a UNIX time.
        guard text.last?.isLetter == true || duration <= Self.plainMax else { return nil }
        let (moment, isTooLate) = now.addingReportingOverflow(duration)
        return isTooLate ? nil : moment
    }

    /// Parses an instant of RFC 3339, section 5.6. Digits beyond milliseconds are ignored.
    static func instant(_ text: String) -> Int64? {
        let form =
            #/
            ([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt\ ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?
            (?:[Zz]|([+\-])([0-9]{2}):([0-9]{2}))
            /#
        guard
            let (_, year, month, day, hour, minute, second, fraction, sign, hours, minutes) =
                text.wholeMatch(of: form)?.output
        else { return nil }
        let number = { (digits: Substring?) in digits.flatMap { Int64($0) } ?? 0 }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let (yearNumber, monthNumber, dayNumber) = (Int(number(year)), Int(number(month)), Int(number(day)))
        let date = DateComponents(calendar: calendar, year: yearNumber, month: monthNumber, day: dayNumber)
        guard date.isValidDate, let midnight = date.date, number(hour) < 24, number(minute) < 60,
            number(second) <= 60, number(hours) < 24, number(minutes) < 60
        else { return nil }
        let seconds = Int64(midnight.timeIntervalSince1970) + number(hour) * 3600 + number(minute) * 60 + number(second)
        let offset = (number(hours) * 60 + number(minutes)) * (sign == "-" ? -60 : 60)
        return (seconds - offset) * 1000 + number(((fraction ?? "") + "000").prefix(3))
    }
}
