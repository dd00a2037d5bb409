package import Bytes

/// Until when a push that cannot be delivered is kept.
package enum PushExpiration: Hashable, Sendable {
    /// The header is absent: as long as the gateway keeps any push.
    case absent
    /// One attempt; nothing is kept.
    case zero
    /// Seconds since 1970, 1 to `secondsMax`; they may lie in the past.
    case seconds(Int64)

    /// Later instants count as this one, some 31,700 years on: its milliseconds still leave room for sums in `Int64`.
    package static let secondsMax: Int64 = 1_000_000_000_000

    /// The expiration that `text` spells in decimal digits, however many; nil when there is none, or anything else.
    package init?(_ text: ByteView) {
        guard !text.isEmpty else { return nil }
        var seconds: Int64 = 0
        for index in 0..<text.count {
            let digit = text[index] &- 0x30
            guard digit <= 9 else { return nil }
            seconds = min(seconds * 10 + Int64(digit), PushExpiration.secondsMax)
        }
        self = seconds == 0 ? .zero : .seconds(seconds)
    }
}
