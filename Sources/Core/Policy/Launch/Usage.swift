/// The usage pattern of a device: the time of its last use, and its habitual hours.
package struct Usage: Hashable, Sendable {
    /// The time at which a use last began or ended; `distantPast` if there was none.
    package private(set) var last = Instant.distantPast
    /// The number of the hour in which a use last began.
    package private(set) var lastHour: Int64 = 0
    /// The hours in which a use began, among the 168 hours that end with `lastHour`.
    package private(set) var hours = HourRing()
    /// The habitual hours of the day, one bit each. Only the beginning of a use changes them.
    private var habits: UInt32 = 0

    /// The number of days on which a use must begin in an hour of the day to make the hour habitual. Only the seven
    /// days that end with the latest use count.
    private static let habit = 3
    private static let hour: Int64 = 3_600_000

    /// Creates the pattern of a device that was never used.
    package init() {}

    /// Creates a pattern from stored state. `lastHour` must be between -2^40 and 2^40.
    package init(last: Instant, lastHour: Int64, hours: HourRing) {
        self.last = last
        self.lastHour = lastHour
        self.hours = hours
        self.findHabits()
    }

    /// Records the beginning of a use.
    mutating func began(at now: Instant) {
        let hour = Self.hour(of: now)
        if hour > self.lastHour || self.last == .distantPast {
            // The bits of the hours that have passed still describe hours one week earlier.
            let passed = min(hour - min(self.lastHour, hour), HourRing.count)
            for forgotten in 0..<passed { self.hours[hour - forgotten] = false }
            self.lastHour = hour
        }
        self.hours[hour] = true
        self.findHabits()
        self.last = now
    }

    private mutating func findHabits() {
        self.habits = (Int64(0)..<24).reduce(into: 0) { habits, hour in
            let days = (0..<HourRing.count / 24).count { self.hours[hour + $0 * 24] }
            if days >= Self.habit { habits |= 1 << UInt32(hour) }
        }
    }

    /// Records the end of a use.
    mutating func ended(at now: Instant) {
        self.last = now
    }

    /// The hours of the day, 0...23 of policy time, at which the device is habitually used.
    package var habitualHours: [Int] { (0..<24).filter { self.isHabitual(Int64($0)) } }

    /// Returns true if the device's last use ended at least `window` before `now`. A window of 0 never ends. Returns
    /// false if the device was never used.
    func isOver(_ window: Int64, at now: Instant) -> Bool {
        window != 0 && self.last != .distantPast && now >= self.last + window
    }

    /// Returns the time at which the device will have been unused for `window`; nil for never.
    func end(_ window: Int64) -> Instant? {
        window == 0 || self.last == .distantPast ? nil : self.last + window
    }

    /// Returns the first time between `moment` and `moment` + `flex` that is in a habitual hour or at most `lead`
    /// before one. Returns `moment` if there is none.
    func refreshMoment(_ moment: Instant, flex: Int64, lead: Int64) -> Instant {
        guard flex > 0, self.habits != 0, moment > .distantPast else { return moment }
        let hour = Self.hour(of: moment + lead)
        guard !self.isHabitual(hour) else { return moment }
        var next = hour + 1
        while !self.isHabitual(next) { next += 1 }
        let putOff = Instant(milliseconds: next.multipliedSaturating(by: Self.hour)) - lead
        return putOff <= moment + flex ? putOff : moment
    }

    private func isHabitual(_ hour: Int64) -> Bool {
        let ofDay = hour % 24
        return self.habits & (1 << UInt32(ofDay < 0 ? ofDay + 24 : ofDay)) != 0
    }

    private static func hour(of moment: Instant) -> Int64 {
        let (hours, rest) = moment.milliseconds.quotientAndRemainder(dividingBy: Self.hour)
        return rest < 0 ? hours - 1 : hours
    }
}

/// A bit for each hour of a week, indexed by the hour's number modulo 168.
package struct HourRing: Hashable, Sendable {
    static let count: Int64 = 168

    /// The bits of the hours 0..<64, 64..<128 and 128..<168.
    package private(set) var low: UInt64 = 0
    package private(set) var middle: UInt64 = 0
    package private(set) var high: UInt64 = 0

    package init() {}

    /// Creates a ring from stored words. Bits beyond hour 167 are dropped.
    package init(low: UInt64, middle: UInt64, high: UInt64) {
        self.low = low
        self.middle = middle
        self.high = high & (1 << UInt64(Self.count - 128) - 1)
    }

    subscript(_ hour: Int64) -> Bool {
        get {
            let (word, bit) = Self.place(hour)
            return self[word: word] & bit != 0
        }
        set {
            let (word, bit) = Self.place(hour)
            if newValue { self[word: word] |= bit } else { self[word: word] &= ~bit }
        }
    }

    private subscript(word word: Int64) -> UInt64 {
        get { word == 0 ? self.low : word == 1 ? self.middle : self.high }
        set {
            if word == 0 {
                self.low = newValue
            } else if word == 1 {
                self.middle = newValue
            } else {
                self.high = newValue
            }
        }
    }

    private static func place(_ hour: Int64) -> (word: Int64, bit: UInt64) {
        let rest = hour % Self.count
        let slot = rest < 0 ? rest + Self.count : rest
        return (slot / 64, 1 << UInt64(slot % 64))
    }
}
