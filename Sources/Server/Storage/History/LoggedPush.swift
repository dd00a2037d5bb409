package import Engine
package import Policy
import Wire

/// A push as the log has it: of which device it was, and when it came.
package struct LoggedPush: Hashable, Sendable {
    /// When it came, in policy time.
    package let at: Instant
    /// As of `HistoryEvent.device(of:_:)`.
    package let device: UInt64
    /// The push's identifier without the case of its letters.
    package let first: UInt64
    package let second: UInt64

    package init(at: Instant, device: UInt64, first: UInt64, second: UInt64) {
        self.at = at
        self.device = device
        self.first = first
        self.second = second
    }

    /// nil when the event tells of no push that came.
    package init?(_ event: HistoryEvent) {
        guard case .push = event.kind, let apnsID = event.apnsID else { return nil }
        self.init(at: event.at, device: event.device, first: apnsID.first, second: apnsID.second)
    }

    /// Whether it stands before the other in a list, the newest first; those of one millisecond have an order of their
    /// own, which stays.
    package func precedes(_ other: LoggedPush) -> Bool {
        (self.at, self.device, self.first, self.second) > (other.at, other.device, other.first, other.second)
    }

    /// Every push that came at `moment` or before stands behind it in a list.
    static func end(of moment: Instant) -> LoggedPush {
        LoggedPush(at: Instant(milliseconds: moment.milliseconds + 1), device: 0, first: 0, second: 0)
    }
}

/// A part of the pushes to all devices.
package struct LoggedPushes: Hashable, Sendable {
    /// The newest first.
    package var pushes: [LoggedPush]
    /// What the next part stands behind; nil when nothing is left.
    package var next: LoggedPush?

    package init(pushes: [LoggedPush], next: LoggedPush?) {
        self.pushes = pushes
        self.next = next
    }
}

/// Collects the newest pushes that stand behind one.
package struct LoggedPushCollector {
    private let place: LoggedPush?
    private let oldest: Instant
    private let countMax: Int
    private var found: [LoggedPush] = []
    /// The same ones: a push that is met twice is one.
    private var known: Set<LoggedPush> = []
    /// The last of as many as are wanted; what stands behind it is not.
    private var last: LoggedPush?

    /// - Parameters:
    ///   - place: only pushes that stand behind this one.
    ///   - oldest: only those that came at this moment or later.
    ///   - countMax: how many are wanted, at least one.
    package init(behind place: LoggedPush?, notBefore oldest: Instant, countMax: Int) {
        self.place = place
        self.oldest = oldest
        self.countMax = countMax
    }

    /// The moment before which nothing more is wanted.
    package var bound: Instant { max(self.oldest, self.last?.at ?? .distantPast) }

    mutating func append(_ event: HistoryEvent) {
        guard let push = LoggedPush(event) else { return }
        self.append(push)
    }

    package mutating func append(_ push: LoggedPush) {
        if let place, !place.precedes(push) { return }
        if let last, !push.precedes(last) { return }
        guard push.at >= self.oldest, self.known.insert(push).inserted else { return }
        self.found.append(push)
        if self.found.count >= 2 * self.countMax { self.shorten() }
    }

    /// What was found, the newest first.
    ///
    /// - `unseen`: the newest moment of what was not looked at; nil when everything was.
    package mutating func finish(unseen: Instant?) -> LoggedPushes {
        self.shorten()
        guard let unseen, unseen >= self.bound else {
            return LoggedPushes(pushes: self.found, next: self.last)
        }
        // Those that were not looked at may stand among these.
        self.found.removeAll { $0.at <= unseen }
        return LoggedPushes(pushes: self.found, next: .end(of: unseen))
    }

    private mutating func shorten() {
        self.found.sort { $0.precedes($1) }
        guard self.found.count >= self.countMax else { return }
        for push in self.found[self.countMax...] { self.known.remove(push) }
        self.found.removeLast(self.found.count - self.countMax)
        self.last = self.found.last
    }
}
