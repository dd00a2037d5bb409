package import Policy

/// When each device has something due, and which have still to be looked at under a policy that has changed.
package struct DueSchedule: ~Copyable {
    private var due = DueIndex()
    /// The first device that was not yet looked at under the policy; nil when all were.
    private var firstUnjudged: Int?
    /// The moment of what time alone has brought about and is being done; nil while somebody else's doing is.
    package private(set) var momentBeingDone: Instant?

    /// Nothing is due.
    package init() {}

    /// The earliest moment at which something is due.
    package var first: Instant? { self.due.first }

    /// When `device` has something due.
    package subscript(device: DeviceIndex) -> Instant? { self.due[device] }

    /// Says when `device` next has something due; nil when it has nothing.
    package mutating func set(_ device: DeviceIndex, to moment: Instant?) { self.due.set(device, to: moment) }

    /// Takes the device whose moment is the earliest, if that is at or before `now`: it is being done from here on.
    package mutating func popDue(_ now: Instant) -> DeviceIndex? {
        let moment = self.due.first
        let device = self.due.popDue(now)
        self.momentBeingDone = device == nil ? nil : moment
        return device
    }

    /// What was due at `moment` is being done, though it was not taken.
    package mutating func begin(_ moment: Instant) { self.momentBeingDone = moment }

    /// What was due is done.
    package mutating func end() { self.momentBeingDone = nil }

    /// Every device is to be looked at.
    package mutating func policyChanged() { self.firstUnjudged = 0 }

    /// Whether devices are to be looked at.
    package var isJudging: Bool { self.firstUnjudged != nil }

    /// No device has anything due, or is to be looked at, any more.
    package mutating func removeAll() {
        self.due.removeAll()
        self.firstUnjudged = nil
        self.momentBeingDone = nil
    }

    /// Takes the devices that are to be looked at next, so many at most of all of them.
    package mutating func popUnjudged(devicesMax: Int, of deviceCount: Int) -> Range<Int> {
        guard let first = self.firstUnjudged else { return 0..<0 }
        let end = min(first + devicesMax, deviceCount)
        self.firstUnjudged = end < deviceCount ? end : nil
        return first..<max(first, end)
    }
}
