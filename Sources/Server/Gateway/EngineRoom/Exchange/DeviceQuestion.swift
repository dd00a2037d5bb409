package import Engine
package import Policy
package import Wire

/// Which devices somebody wants listed, in the order of their tokens; nil is any.
package struct DeviceQuestion: Hashable, Sendable {
    /// How many devices an answer shows.
    package static let limits = 1...1000
    package static let limitUsual = 100
    /// The most devices that are looked at for one answer, which may be shorter for that.
    static let examinedMax = 1024

    package var topic: String?
    package var state: DeviceFilter.State?
    package var hold: Hold?
    /// The most devices of the answer.
    package var limit = Self.limitUsual
    /// Only devices behind this one.
    package var after: DeviceToken?

    package init() {}

    /// How many devices are looked at: as many as are shown where all are wanted.
    var examined: Int { self.state == nil && self.hold == nil ? self.limit : Self.examinedMax }
}
