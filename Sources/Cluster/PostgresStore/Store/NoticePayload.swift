package import Engine
import Wire

/// What a notification carries: lines, the first the number of the gateway that sends it.
///
/// `r TOPIC`, `e HOLDER WAKE REASON` (`-` for none), `a WAKE`, `c TOKEN TOPIC`, `t` (topics were made), `v` (a value
/// was kept).
/// What a line does not follow is passed over: anybody with a connection can notify, and a newer gateway may say more.
package enum NoticePayload {
    /// What is told.
    package enum Item: Hashable {
        case notice(ClusterNotice)
        /// Topics were made.
        case topics
        /// A value was kept.
        case values
    }

    /// The bytes that a payload may have: PostgreSQL takes fewer than 8,000.
    package static let bytesMax = 7900

    /// A payload with as many items as fit, from `start` on.
    ///
    /// - Returns: the payload, and the place of the first item that is not in it.
    package static func write(_ items: [Item], from start: Int, sender: GatewayNumber) -> (text: String, end: Int) {
        var text = "\(sender.rawValue)"
        var place = start
        while place < items.count {
            let line = "\n" + self.line(items[place])
            guard text.utf8.count + line.utf8.count <= self.bytesMax else { break }
            text += line
            place += 1
        }
        return (text, place)
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

    /// What another gateway tells; nothing of what this one sent itself, or what ended at a third.
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
