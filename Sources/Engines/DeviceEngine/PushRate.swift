import LaunchPolicy

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

extension EmbeddedEngine {
    /// Why this device takes no push now; nil while there is room in its window. Changes nothing.
    package func rateRefusal(_ device: DeviceIndex) -> Refusal? {
        let rate = self.configuration.pushRate
        guard rate.pushesMax > 0, !self.isRateWindowOver(device),
            Int(self.devices[device].rateWindowCount) >= rate.pushesMax
        else { return nil }
        let end = Int64(self.devices[device].rateWindowStart) + Int64(rate.seconds)
        return .tooMany(until: Instant(milliseconds: end * 1000))
    }

    /// Counts a push.
    ///
    /// - Throws: `tooMany` when the window has no room for it; it is then not counted.
    func countRate(_ device: DeviceIndex) throws(Refusal) {
        guard self.configuration.pushRate.pushesMax > 0 else { return }
        if self.isRateWindowOver(device) {
            self.devices[device].rateWindowStart = self.nowSeconds
            self.devices[device].rateWindowCount = 0
        } else if let refusal = self.rateRefusal(device) {
            throw refusal
        }
        self.devices[device].rateWindowCount += 1
    }

    private var nowSeconds: UInt32 { UInt32(truncatingIfNeeded: self.now.milliseconds / 1000) }

    private func isRateWindowOver(_ device: DeviceIndex) -> Bool {
        Int(self.nowSeconds &- self.devices[device].rateWindowStart) >= self.configuration.pushRate.seconds
    }
}
