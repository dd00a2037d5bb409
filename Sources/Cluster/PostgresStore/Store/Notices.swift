package import Engine
import Wire

/// The payload of a notification. The first line is the number of the sending gateway.
///
/// Each further line is one notice. Other lines, such as lines of newer gateways or other clients, are ignored.
///
/// - `r TOPIC`: `ClusterNotice.ready`.
/// - `e HOLDER WAKE REASON`: `ClusterNotice.ended`, with `-` for no reason.
/// - `a WAKE`: `ClusterNotice.answeredLate`.
/// - `c TOKEN TOPIC`: `ClusterNotice.conditions`.
/// - `t`: topics were added.
/// - `v`: a value was stored.
package enum NoticePayload {
    /// One line of a payload.
    package enum Item: Hashable {
        case notice(ClusterNotice)
        /// Topics were added.
        case topics
        /// A value was stored.
        case values
    }

    /// The maximum size of a payload, in bytes: PostgreSQL accepts fewer than 8,000.
    package static let bytesMax = 7900

    /// Writes as many items as fit.
    ///
    /// - Returns: the payload, and the index of the first item that did not fit.
    package static func write(_ items: [Item], sender: GatewayNumber) -> (text: String, end: Int) {
        var text = "\(sender.rawValue)"
        for (place, item) in items.enumerated() {
            let line = "\n" + self.line(item)
            guard text.utf8.count + line.utf8.count <= self.bytesMax else { return (text, place) }
            text += line
        }
        return (text, items.count)
    }

    private static func line(_ item: Item) -> String {
        switch item {
        case .topics: return "t"
        case .values: return "v"
        case .notice(.ready(let topic)): return "r \(topic.rawValue)"
        case .notice(.conditions(let token, let topic)): return "c \(token.hex) \(topic.rawValue)"
        case .notice(.answeredLate(let wake)): return "a \(self.text(wake))"
        case .notice(.ended(let holder, let wake, let reason)):
            return "e \(holder.rawValue) \(self.text(wake)) \(reason?.rawValue ?? "-")"
        }
    }

    private static func text(_ wake: WakeID) -> String {
        var buffer = ByteBuffer()
        wake.write(to: &buffer)
        return buffer.view.string
    }

    /// Returns the items of a payload; none if the receiver sent it. Ended wakes of other holders are omitted.
    package static func read(_ text: String, receiver: GatewayNumber) -> [Item] {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: true)
        guard let first = lines.first, let sender = Int32(first), sender != receiver.rawValue else { return [] }
        lines.removeFirst()
        return lines.compactMap { line in
            let item = self.item(line.split(separator: " "))
            if case .notice(.ended(let holder, _, _)) = item, holder != receiver { return nil }
            return item
        }
    }

    private static func item(_ words: [Substring]) -> Item? {
        switch (words.first, words.count) {
        case ("t", 1): return .topics
        case ("v", 1): return .values
        case ("r", 2):
            guard let topic = UInt32(words[1]) else { return nil }
            return .notice(.ready(TopicIndex(rawValue: topic)))
        case ("c", 3):
            guard let token = String(words[1]).withByteView({ DeviceToken(hex: $0) }), let topic = UInt32(words[2])
            else { return nil }
            return .notice(.conditions(token, TopicIndex(rawValue: topic)))
        case ("a", 2):
            guard let wake = String(words[1]).withByteView({ WakeID($0) }) else { return nil }
            return .notice(.answeredLate(wake))
        case ("e", 4):
            guard let holder = Int32(words[1]), let wake = String(words[2]).withByteView({ WakeID($0) }) else {
                return nil
            }
            let reason = ExpirationReason(rawValue: String(words[3]))
            guard reason != nil || words[3] == "-" else { return nil }
            return .notice(.ended(holder: GatewayNumber(rawValue: holder), wake, reason: reason))
        case (_, _): return nil
        }
    }
}

/// Notices to send to other gateways; equal notices are sent once.
package struct NoticeQueue {
    /// The maximum number of notices in the queue. Further notices are dropped, so no code may depend on a notice.
    package static let countMax = 20_000

    package private(set) var items: [NoticePayload.Item] = []
    private var known: Set<NoticePayload.Item> = []

    package init() {}

    package mutating func append(_ item: NoticePayload.Item) {
        guard self.items.count < Self.countMax, self.known.insert(item).inserted else { return }
        self.items.append(item)
    }

    /// Returns the next payload; nil if the queue is empty.
    package mutating func takePayload(sender: GatewayNumber) -> String? {
        guard !self.items.isEmpty else { return nil }
        let (text, end) = NoticePayload.write(self.items, sender: sender)
        for item in self.items[..<end] { self.known.remove(item) }
        self.items.removeFirst(end)
        return text
    }

    package mutating func removeAll() {
        self.items.removeAll()
        self.known.removeAll()
    }
}

/// The sessions that send notices. Only gateways are trusted.
///
/// Every role that may connect to the database can send notices. PostgreSQL reports the sender's session. Notices are
/// accepted only if the role of this session may write the gateways' tables. Other notices are dropped and counted.
package struct NoticeSenders {
    /// The maximum number of known sessions. It also limits the notices whose sessions are not yet checked.
    package static let countMax = 1000
    /// The number of notices dropped in a second above which the connection counts as flooded.
    package static let droppedMax = 2000
    /// The interval of checks in milliseconds. Checks repeat because the process id of an ended session may be reused.
    package static let checkMilliseconds: Int64 = 10_000

    /// The known sessions by process id: true if the session has the role of gateways.
    private var known: [Int32: Bool] = [:]
    /// The sessions to check next. `asked` has the sessions that are being checked.
    private var unchecked: Set<Int32> = []
    private var asked: Set<Int32> = []
    private var waiting: [PostgresNotification] = []
    private var droppedCount = 0
    private var secondEndsAt: Int64 = 0
    private var checkAt: Int64?

    package init() {}

    /// The time of the next `timePassed`, on the monotonic clock; nil while no session is known.
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

    /// Returns true if a notice is from a gateway. A notice of an unknown session is retained until `checked`.
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

    /// Returns the sessions to check; nil if there are none, or an answer is outstanding.
    package mutating func takeUnchecked() -> [Int32]? {
        guard self.asked.isEmpty, !self.unchecked.isEmpty else { return nil }
        self.asked = self.unchecked
        self.unchecked = []
        return self.asked.sorted()
    }

    /// Applies the server's answer.
    ///
    /// - Parameter trusted: the sessions of gateways.
    /// - Returns: the retained notices that gateways have sent.
    package mutating func checked(trusted: Set<Int32>) -> [PostgresNotification] {
        for sender in self.asked { self.known[sender] = trusted.contains(sender) }
        self.asked = []
        let delivered = self.waiting.filter { self.known[$0.sender] == true }
        let left = self.waiting.filter { self.known[$0.sender] == nil }
        self.droppedCount += self.waiting.count - delivered.count - left.count
        self.waiting = left
        return delivered
    }
}
