package import EventLog
import LaunchPolicy
import Settings

/// Logs which bounds were met, from the counts alone, once a second.
package struct LimitWatch {
    private static let intervalMilliseconds: Int64 = 1000

    private let log: GatewayLog?
    private var nextLook = Instant.distantPast
    private var told: [String: Int64] = [:]

    /// - Parameter log: nil to tell nobody.
    package init(_ log: GatewayLog? = nil) {
        self.log = log
    }

    /// Looks, if it is time.
    ///
    /// - Parameter counts: how often each bound was met so far.
    mutating func look(_ now: Instant, _ counts: () -> [(name: String, count: Int64)]) {
        guard let log = self.log, now >= self.nextLook else { return }
        self.nextLook = now + Self.intervalMilliseconds
        for (name, count) in counts() {
            let before = self.told[name] ?? 0
            guard count > before else { continue }
            self.told[name] = count
            let event = GatewayLimit.routineNames.contains(name) ? GatewayEvent.routineLimitMet : .limitMet
            log.write(event, ["limit": name, "times": "\(count - before)", "total": "\(count)"])
        }
    }
}
