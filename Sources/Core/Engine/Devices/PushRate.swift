import Policy

/// How many pushes one device takes: so many within a window, which the first of them opens.
///
/// It is no part of the policy: what is refused was never accepted. Nothing of it is kept across a restart.
package struct PushRate: Hashable, Sendable {
    /// The most pushes within a window, at most 65,535; 0 is no limit.
    package var pushesMax = 6000
    /// How long a window is, in seconds.
    package var seconds = 60

    package init() {}
}

extension DeviceRecord {
    /// Why the device takes no push now; nil while there is room in its window.
    func rateRefusal(_ rate: PushRate, at now: Instant) -> Refusal? {
        guard rate.pushesMax > 0, !self.isRateWindowOver(rate, at: now), Int(self.rateWindowCount) >= rate.pushesMax
        else { return nil }
        let end = Int64(self.rateWindowStart) + Int64(rate.seconds)
        return .tooMany(until: Instant(milliseconds: end * 1000))
    }

    /// Counts a push.
    ///
    /// - Throws: `tooMany` when the window has no room for it; it is then not counted.
    mutating func countRate(_ rate: PushRate, at now: Instant) throws(Refusal) {
        guard rate.pushesMax > 0 else { return }
        if self.isRateWindowOver(rate, at: now) {
            self.rateWindowStart = Self.seconds(now)
            self.rateWindowCount = 0
        } else if let refusal = self.rateRefusal(rate, at: now) {
            throw refusal
        }
        self.rateWindowCount += 1
    }

    private func isRateWindowOver(_ rate: PushRate, at now: Instant) -> Bool {
        Int(Self.seconds(now) &- self.rateWindowStart) >= rate.seconds
    }

    private static func seconds(_ moment: Instant) -> UInt32 {
        UInt32(truncatingIfNeeded: moment.milliseconds / 1000)
    }
}
