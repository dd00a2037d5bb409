import Synchronization

/// The number of rate-limited requests of each credential in the current minute, over all loops.
package final class CredentialRates: Sendable {
    /// The maximum number of credentials with a count. If it is reached, all counts restart from zero, which limits the
    /// memory.
    private static let holdersMax = 100_000
    private static let minute: Int64 = 60_000

    private struct Count {
        var maximum: Int
        /// The minute for which the counts are valid, by the monotonic clock.
        var minute: Int64 = 0
        var byHolder: [StreamHolder: Int] = [:]

        /// Counts a request.
        ///
        /// - Returns: false if the request exceeds the limit.
        mutating func count(_ holder: StreamHolder, in minute: Int64) -> Bool {
            guard self.maximum > 0 else { return true }
            if minute != self.minute || self.byHolder.count >= CredentialRates.holdersMax {
                self.minute = minute
                self.byHolder.removeAll(keepingCapacity: true)
            }
            let count = self.byHolder[holder, default: 0]
            guard count < self.maximum else { return false }
            self.byHolder[holder] = count + 1
            return true
        }
    }

    private let submissions: Mutex<Count>
    private let progress: Mutex<Count>

    package init(_ limits: GatewayLimits) {
        self.submissions = Mutex(Count(maximum: limits.submissionsPerCredentialMax))
        self.progress = Mutex(Count(maximum: limits.progressPerCredentialMax))
    }

    /// Changes the limits without resetting the counts.
    package func setLimits(_ limits: GatewayLimits) {
        self.submissions.withLock { $0.maximum = limits.submissionsPerCredentialMax }
        self.progress.withLock { $0.maximum = limits.progressPerCredentialMax }
    }

    /// Counts a request.
    ///
    /// - `now`: milliseconds of the monotonic clock.
    /// - Returns: false if the request exceeds the limit of this minute.
    package func count(_ rate: CredentialRate, of holder: StreamHolder, now: Int64) -> Bool {
        let minute = now / Self.minute
        return switch rate {
        case .submissions: self.submissions.withLock { $0.count(holder, in: minute) }
        case .progress: self.progress.withLock { $0.count(holder, in: minute) }
        }
    }
}
