import Engine
import Policy
package import Storage
import Wire

/// A page of the list of pushes. When the page is written, the engine looks up the devices.
package struct PushListing: Sendable {
    private let topic: String?
    private let limit: Int
    private let lines: [(place: LoggedPush, history: PushHistory)]
    /// The last push of the page; nil at the end of the log.
    private let next: LoggedPush?

    /// Reads the pushes of a page and their histories.
    ///
    /// - `offset`: the difference between wall clock and policy time.
    init(_ question: PushQuestion, _ source: any HistorySource, _ offset: WallOffset) {
        let page = source.pushes(
            behind: question.start(offset),
            notBefore: question.since.map { offset.instant(wallMilliseconds: $0) } ?? .distantPast,
            countMax: question.examined
        )
        var histories: [LoggedPush: PushHistory] = [:]
        let wanted = Set(page.pushes)
        source.visitDevices(since: page.pushes) { events in
            for (push, history) in PushHistory.all(in: events, where: wanted.contains) { histories[push] = history }
        }
        self.topic = question.topic
        self.limit = question.limit
        self.lines = page.pushes.compactMap { push in
            guard let history = histories[push] ?? Self.history(of: push, source) else { return nil }
            return question.takes(history) ? (push, history) : nil
        }
        self.next = page.next
    }

    /// The numbers of the devices.
    var devices: Set<UInt64> { Set(self.lines.map(\.place.device)) }

    /// Returns the history of a push whose device has more events after the push than were examined.
    private static func history(of push: LoggedPush, _ source: any HistorySource) -> PushHistory? {
        let events = source.push(APNsID(first: push.first, second: push.second, upperCase: 0))
        return PushHistory.all(in: events.filter { $0.device == push.device }) { $0 == push }.last?.history
    }

    /// Writes the pushes of the page that belong to the requested topic.
    ///
    /// - `find`: returns the device with a number; nil if the device does not exist.
    func write(to writer: inout JSONWriter, _ offset: WallOffset, find: (UInt64) -> LoggedDevice?) {
        var next = self.next
        var count = 0
        writer.beginObject()
        writer.beginArray("pushes")
        for (number, line) in self.lines.enumerated() {
            let device = find(line.place.device)
            if let topic, device?.topic != topic { continue }
            Self.write(line.place, line.history, device, to: &writer, offset)
            count += 1
            guard count < self.limit else {
                if number + 1 < self.lines.count { next = line.place }
                break
            }
        }
        writer.endArray()
        writer.member("next", next?.text)
        writer.endObject()
    }

    private static func write(
        _ place: LoggedPush,
        _ history: PushHistory,
        _ device: LoggedDevice?,
        to writer: inout JSONWriter,
        _ offset: WallOffset
    ) {
        writer.beginObject()
        writer.hex("apnsID") { history.apnsID.write(to: &$0) }
        writer.member("device", device) { writer, device in writer.hex { device.token.writeHex(to: &$0) } }
        writer.member("topic", device?.topic)
        writer.member("priority", history.priority.map { Int($0.rawValue) })
        writer.member("receivedAt", place.at, offset)
        writer.member("outcome", history.outcome)
        writer.member("outcomeAt", history.endedAt, offset)
        writer.member("lost", history.lost)
        writer.endObject()
    }
}

/// A request for a list of pushes, the newest first: `GET /v1/pushes`.
package struct PushQuestion: Hashable, Sendable {
    /// The valid numbers of pushes in an answer.
    package static let limits = 1...1000
    package static let limitUsual = 100
    /// The maximum number of pushes examined for one answer. An answer may therefore have fewer pushes than its limit.
    static let examinedMax = 1000

    /// The names of the states and outcomes of pushes. A push with a lost wake is also `lost`, regardless of its
    /// outcome.
    package static let outcomes =
        ["pending", "inFlight", "completed", "coalesced", "noWake"] + DiscardReason.ofPushes.map(\.rawValue) + ["lost"]

    /// The topic; nil for any.
    package var topic: String?
    /// The requested outcomes, from `PushQuestion.outcomes`; empty for any.
    package var outcomes: Set<String> = []
    /// The start of the period in which the pushes arrived, in milliseconds since 1970, inclusive.
    package var since: Int64?
    /// The end of the period in which the pushes arrived, in milliseconds since 1970, exclusive.
    package var until: Int64?
    package var limit = Self.limitUsual
    /// The push after which the list continues.
    package var after: LoggedPush?

    package init() {}

    /// Returns the push after which the list begins; nil to begin with the newest push.
    func start(_ offset: WallOffset) -> LoggedPush? {
        let end = self.until.map {
            LoggedPush(at: offset.instant(wallMilliseconds: $0), device: 0, first: 0, second: 0)
        }
        guard let after = self.after, let end else { return end ?? self.after }
        return end.precedes(after) ? after : end
    }

    /// The number of pushes to examine. Equals the limit if every push matches.
    var examined: Int { self.topic == nil && self.outcomes.isEmpty ? self.limit : Self.examinedMax }

    /// Returns true if the push has one of the outcomes.
    func takes(_ push: PushHistory) -> Bool {
        self.outcomes.isEmpty || self.outcomes.contains(push.outcome) || push.lost > 0 && self.outcomes.contains("lost")
    }
}

/// The last push of a page as text, which the caller passes to get the next page. Contains the time, device and push as
/// numbers.
extension LoggedPush {
    /// Parses the text of a push; returns nil if no answer contains this text.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let numbers = parts.dropFirst().compactMap { UInt64($0, radix: 16) }
        guard parts.count == 4, numbers.count == 3, let moment = Int64(parts[0]),
            (-Self.momentMax...Self.momentMax).contains(moment)
        else { return nil }
        self.init(at: Instant(milliseconds: moment), device: numbers[0], first: numbers[1], second: numbers[2])
        // Only one text is valid for each push.
        guard self.text == text else { return nil }
    }

    /// About thirty million years, in milliseconds.
    static let momentMax: Int64 = 1_000_000_000_000_000_000

    package var text: String {
        let numbers = [self.device, self.first, self.second].map { String($0, radix: 16) }
        return "\(self.at.milliseconds)." + numbers.joined(separator: ".")
    }
}
