/// An instant of policy time: whole milliseconds on a clock that never jumps.
///
/// `distantPast` is minus infinity, and stays so in every sum. Sums saturate, so that no configured duration can
/// overflow.
@usableFromInline
package struct Instant: BitwiseCopyable, Hashable, Sendable {
    /// Milliseconds since 1970 in the gateway, and since the start of the trace in the simulator.
    @usableFromInline
    package var milliseconds: Int64

    @inlinable
    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// Minus infinity: before every other instant.
    @inlinable
    package static var distantPast: Instant { Instant(milliseconds: .min) }

    /// After every other instant.
    @inlinable
    package static var distantFuture: Instant { Instant(milliseconds: .max) }

    /// Returns the instant `milliseconds` later; minus infinity stays minus infinity.
    @inlinable
    package static func + (instant: Instant, milliseconds: Int64) -> Instant {
        guard instant != .distantPast else { return instant }
        let (sum, overflow) = instant.milliseconds.addingReportingOverflow(milliseconds)
        guard overflow else { return Instant(milliseconds: sum) }
        return milliseconds > 0 ? .distantFuture : .distantPast
    }

    /// Returns the instant `milliseconds` earlier; minus infinity stays minus infinity.
    @inlinable
    package static func - (instant: Instant, milliseconds: Int64) -> Instant {
        instant + (milliseconds == .min ? .max : -milliseconds)
    }
}

extension Instant: Comparable {
    @inlinable
    package static func < (left: Instant, right: Instant) -> Bool {
        left.milliseconds < right.milliseconds
    }
}
