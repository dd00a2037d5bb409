import Policy
import Storage

/// Which pushes somebody wants listed, the newest first: `GET /v1/pushes`.
package struct PushQuestion: Hashable, Sendable {
    /// How many pushes an answer shows.
    package static let limits = 1...1000
    package static let limitUsual = 100
    /// The most pushes that are looked at for one answer, which may be shorter for that.
    static let examinedMax = 1000

    /// The words for what became of a push.
    package static let outcomes =
        ["pending", "inFlight", "completed", "coalesced", "noWake"] + DiscardReason.ofPushes.map(\.rawValue)

    /// nil for any.
    package var topic: String?
    /// One of `outcomes`; nil for any.
    package var outcome: String?
    /// Only those that came at this moment or later, in milliseconds since 1970.
    package var since: Int64?
    package var limit = Self.limitUsual
    /// Only those that stand behind this one.
    package var after: PushPlace?

    package init() {}

    /// How many pushes are looked at: as many as are shown where all are wanted.
    var examined: Int { self.topic == nil && self.outcome == nil ? self.limit : Self.examinedMax }
}

/// Where an answer left off, as text that callers hand back: moment, device and push in numbers.
package struct PushPlace: Hashable, Sendable {
    let push: LoggedPush

    init(_ push: LoggedPush) { self.push = push }

    /// nil for what no answer says.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let numbers = parts.dropFirst().compactMap { UInt64($0, radix: 16) }
        guard parts.count == 4, numbers.count == 3, let moment = Int64(parts[0]),
            (-PushPlace.momentMax...PushPlace.momentMax).contains(moment)
        else { return nil }
        self.push = LoggedPush(
            at: Instant(milliseconds: moment),
            device: numbers[0],
            first: numbers[1],
            second: numbers[2]
        )
        // There is one way to write a place.
        guard self.text == text else { return nil }
    }

    /// Some thirty million years.
    private static let momentMax: Int64 = 1_000_000_000_000_000_000

    package var text: String {
        let numbers = [self.push.device, self.push.first, self.push.second].map { String($0, radix: 16) }
        return "\(self.push.at.milliseconds)." + numbers.joined(separator: ".")
    }
}
