/// The sessions that send notices, and which of them are gateways'.
///
/// Every role that may connect to the database can send notices. PostgreSQL names the session that sent one, so notices
/// are heard only from sessions whose role may write the gateways' tables. All others are dropped and counted.
package struct NoticeSenders {
    /// The most sessions that are known, and the most notices that wait until their session is checked.
    package static let countMax = 1000
    /// The most notices that are dropped in a second before the link counts as flooded.
    package static let droppedMax = 2000
    /// The interval of checks in milliseconds: the process number of a session is used again after its end.
    package static let checkMilliseconds: Int64 = 10_000

    /// By the process number of the session: true if its role is a gateway's.
    private var known: [Int32: Bool] = [:]
    /// Sessions to ask the server about, and those that it is asked about now.
    private var unchecked: Set<Int32> = []
    private var asked: Set<Int32> = []
    private var waiting: [PostgresNotification] = []
    private var droppedCount = 0
    private var secondEndsAt: Int64 = 0
    private var checkAt: Int64?

    package init() {}

    /// The next moment for `timePassed`, on the monotonic clock; nil while no session is known.
    var nextMoment: Int64? { self.checkAt }

    /// True if too many notices were dropped in the current second.
    package var isFlooded: Bool { self.droppedCount > Self.droppedMax }

    /// - Parameter now: milliseconds of the monotonic clock.
    package mutating func timePassed(_ now: Int64) {
        if now >= self.secondEndsAt {
            self.secondEndsAt = now + 1000
            self.droppedCount = 0
        }
        if self.checkAt == nil, !self.known.isEmpty { self.checkAt = now + Self.checkMilliseconds }
        guard let checkAt = self.checkAt, now >= checkAt else { return }
        self.checkAt = nil
        self.known = self.known.filter { $0.value }
        self.unchecked.formUnion(self.known.keys)
    }

    /// Returns true if a notice is a gateway's. A notice of an unknown session is kept for `checked`.
    package mutating func mayHear(_ notification: PostgresNotification) -> Bool {
        let sender = notification.sender
        if self.known[sender] == true { return true }
        guard self.known[sender] == nil, self.waiting.count < Self.countMax,
            self.known.count + self.unchecked.count < Self.countMax
        else {
            self.droppedCount += 1
            return false
        }
        self.waiting.append(notification)
        if !self.asked.contains(sender) { self.unchecked.insert(sender) }
        return false
    }

    /// Returns the sessions to ask the server about; nil when there are none, or an answer is outstanding.
    package mutating func takeUnchecked() -> [Int32]? {
        guard self.asked.isEmpty, !self.unchecked.isEmpty else { return nil }
        self.asked = self.unchecked
        self.unchecked = []
        return self.asked.sorted()
    }

    /// Takes the server's answer.
    ///
    /// - Parameter trusted: the sessions that are gateways'.
    /// - Returns: the kept notices of gateways.
    package mutating func checked(trusted: Set<Int32>) -> [PostgresNotification] {
        for sender in self.asked { self.known[sender] = trusted.contains(sender) }
        self.asked = []
        let heard = self.waiting.filter { self.known[$0.sender] == true }
        let left = self.waiting.filter { self.known[$0.sender] == nil }
        self.droppedCount += self.waiting.count - heard.count - left.count
        self.waiting = left
        return heard
    }
}
