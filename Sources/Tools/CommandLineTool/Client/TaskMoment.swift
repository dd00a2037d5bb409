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

    // MARK: RFC 3339

    /// Parses an instant of RFC 3339, section 5.6. Digits beyond milliseconds are ignored.
    static func instant(_ text: String) -> Int64? {
        var rest = Substring(text)
        guard let year = self.number(4, of: &rest), self.take("-", of: &rest),
            let month = self.number(2, of: &rest), (1...12).contains(month), self.take("-", of: &rest),
            let day = self.number(2, of: &rest), (1...self.days(of: month, in: year)).contains(day),
            self.take("Tt ", of: &rest),
            let hour = self.number(2, of: &rest), hour < 24, self.take(":", of: &rest),
            let minute = self.number(2, of: &rest), minute < 60, self.take(":", of: &rest),
            let second = self.number(2, of: &rest), second <= 60,
            let fraction = self.fraction(of: &rest), let offset = self.offset(rest)
        else { return nil }
        let seconds = self.days(before: year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
        return (seconds - offset) * 1000 + fraction
    }

    /// Parses the fraction of the seconds, in milliseconds; nil for a dot without digits.
    private static func fraction(of rest: inout Substring) -> Int64? {
        guard rest.first == "." else { return 0 }
        let digits = rest.dropFirst().prefix { "0123456789".contains($0) }
        guard !digits.isEmpty else { return nil }
        rest = rest.dropFirst(digits.count + 1)
        return Int64((digits + "00").prefix(3))
    }

    /// Parses the offset of the time zone from UTC, in seconds.
    private static func offset(_ text: Substring) -> Int64? {
        if text == "Z" || text == "z" { return 0 }
        var rest = text.dropFirst()
        guard let sign = text.first, sign == "+" || sign == "-",
            let hours = self.number(2, of: &rest), hours < 24, self.take(":", of: &rest),
            let minutes = self.number(2, of: &rest), minutes < 60, rest.isEmpty
        else { return nil }
        return (sign == "-" ? -1 : 1) * (hours * 3600 + minutes * 60)
    }

    private static func number(_ digits: Int, of rest: inout Substring) -> Int64? {
        let text = rest.prefix(digits)
        guard text.count == digits, text.allSatisfy({ "0123456789".contains($0) }) else { return nil }
        rest = rest.dropFirst(digits)
        return Int64(text)
    }

    private static func take(_ characters: String, of rest: inout Substring) -> Bool {
        guard let first = rest.popFirst() else { return false }
        return characters.contains(first)
    }

    private static func days(of month: Int64, in year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Returns the number of days between 1970-01-01 and a day of the Gregorian calendar. It counts years from March,
    /// because a leap day is then the last day of its year.
    private static func days(before year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        // The calendar repeats after 400 years, which are added because years must not be negative.
        let years = (month > 2 ? year : year - 1) + 400
        let daysOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return years * 365 + years / 4 - years / 100 + years / 400 + daysOfYear - 719_468 - 146_097
    }
}
