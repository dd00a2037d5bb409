/// A push's priority, as `apns-priority` gives it.
package enum Priority: UInt8, Sendable, CaseIterable {
    /// Never wakes a device by itself.
    case passive = 1
    /// Waits its turn.
    case considerate = 5
    /// May jump the interval while the device's allowance lasts.
    case immediate = 10
}

extension Priority: Comparable {
    package static func < (left: Priority, right: Priority) -> Bool {
        left.rawValue < right.rawValue
    }
}
