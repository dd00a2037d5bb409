package import Policy

/// How a push was sent, as far as it decides what would have become of it under another policy.
package struct PushTerms: Hashable, Sendable {
    package let priority: Priority
    package let lifetime: Lifetime

    package init(priority: Priority, lifetime: Lifetime) {
        self.priority = priority
        self.lifetime = lifetime
    }

    /// The terms of a push that arrives at `now`.
    package init(_ priority: Priority, _ expiration: ArrivingPush.Expiration, at now: Instant) {
        self.priority = priority
        self.lifetime =
            switch expiration {
            case .absent: .unlimited
            case .nowOrNever: .nowOrNever
            case .at(let expiry): .seconds(max(0, (expiry.milliseconds - now.milliseconds) / 1000))
            }
    }

    /// How long a push may wait.
    package enum Lifetime: Hashable, Sendable {
        /// As long as the policy gives to pushes that say nothing.
        case unlimited
        case nowOrNever
        case seconds(Int64)

        /// Seconds that are kept exactly; longer ones in whole minutes, up to 22 days, and what is longer as that.
        static let exactMax: Int64 = 32_767

        /// The number that stands for it in files, and never changes its meaning.
        package var code: UInt16 {
            switch self {
            case .unlimited: 0
            case .nowOrNever: 1
            case .seconds(let seconds) where seconds <= Self.exactMax - 2: UInt16(max(0, seconds)) + 2
            case .seconds(let seconds): UInt16(clamping: Self.exactMax + 1 + seconds / 60)
            }
        }

        package init(code: UInt16) {
            switch Int64(code) {
            case 0: self = .unlimited
            case 1: self = .nowOrNever
            case ...Self.exactMax: self = .seconds(Int64(code) - 2)
            default: self = .seconds((Int64(code) - Self.exactMax - 1) * 60)
            }
        }
    }
}
