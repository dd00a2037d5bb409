import Engine
import Policy
import Storage
import Wire

/// The events of a device that a caller requests: `GET /v1/devices/<token>/events`.
package struct EventSelection: Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case push, task, conditions, subscription

        func contains(_ kind: HistoryEvent.Kind) -> Bool {
            switch kind {
            case .push: self == .push
            case .launch, .result, .discard, .extended, .taskSubmitted, .taskRefused, .transfersFinished:
                self == (kind.task == nil ? .push : .task)
            case .conditions: self == .conditions
            case .subscribed: self == .subscription
            case .registered, .removed, .worker, .namePart: false
            }
        }
    }

    /// The maximum number of events in an answer, and the default.
    package static let limitMax = 1000
    package static let limitByDefault = 100
    /// The maximum number of events examined for an answer. If few of them match, the answer has fewer events than
    /// exist.
    static let examinedMax = 8192

    /// The kind of event; nil for all.
    package var kind: Kind?
    package var limit = Self.limitByDefault
    /// The earliest time of an event, in milliseconds since 1970.
    package var since: Int64?
    /// The time before which events happened, in milliseconds since 1970.
    package var until: Int64?
    /// The place at which the previous page ended; nil for the newest events.
    package var before: EventPlace?

    package init() {}

    func contains(_ event: HistoryEvent) -> Bool { self.kind?.contains(event.kind) ?? true }

    /// The place before which the page begins; nil for the newest event.
    func start(_ offset: WallOffset) -> HistoryPlace? {
        let end = self.until.map { HistoryPlace(moment: offset.instant(wallMilliseconds: $0), count: 0) }
        guard let before = self.before?.place, let end else { return end ?? self.before?.place }
        return before.moment < end.moment ? before : end
    }
}

/// The end of a page, as text that callers pass back: `<milliseconds>.<count>`.
package struct EventPlace: Hashable, Sendable {
    let place: HistoryPlace

    init(_ place: HistoryPlace) {
        self.place = place
    }

    /// Parses a place; returns nil if no answer contains such text.
    package init?(_ text: String) {
        let isNegative = text.hasPrefix("-")
        let parts = text.dropFirst(isNegative ? 1 : 0).split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let milliseconds = Self.number(parts[0]), let count = Self.number(parts[1]),
            !parts[1].hasPrefix("0")
        else { return nil }
        let moment = Instant(milliseconds: Int64(isNegative ? -milliseconds : milliseconds))
        self.place = HistoryPlace(moment: moment, count: count)
    }

    /// Parses a number of up to 18 digits.
    private static func number(_ text: Substring) -> Int? {
        guard 1...18 ~= text.utf8.count, text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else {
            return nil
        }
        return Int(text)
    }

    package var text: String { "\(self.place.moment.milliseconds).\(self.place.count)" }
}

extension HistoryPage {
    /// Appends the events and the place at which they end, as members of the open object.
    func writeMembers(to writer: inout JSONWriter, _ offset: WallOffset, _ policies: PolicyVersions) {
        writer.key("events")
        writer.beginArray()
        for entry in self.entries { entry.write(to: &writer, offset, policies) }
        writer.endArray()
        writer.key("next")
        writer.optional(self.next) { writer, next in writer.string(EventPlace(next).text) }
    }
}

extension HistoryEntry {
    /// Appends an event in the form that explanations and event lists share.
    ///
    /// - Parameter policies: the known policy versions, from which a launch takes the one that decided it.
    func write(to writer: inout JSONWriter, _ offset: WallOffset, _ policies: PolicyVersions) {
        writer.beginObject()
        writer.key("at")
        writer.moment(self.event.at, offset)
        writer.key("event")
        let (name, detail) = self.text
        writer.string(name)
        writer.key("apnsID")
        writer.optional(self.event.apnsID) { writer, apnsID in writer.hex { apnsID.write(to: &$0) } }
        if let kind = self.event.kind.task {
            writer.key("kind")
            writer.string(kind.rawValue)
            writer.key(kind == .urlSession ? "session" : "task")
            writer.optional(self.name) { writer, name in writer.string(name) }
        }
        writer.key("detail")
        writer.optional(detail) { writer, detail in writer.string(detail) }
        if case .discard = self.event.kind {
            writer.key("held")
            writer.optional(self.event.waited?.held) { writer, hold in writer.string(hold.name) }
        }
        if let waited = self.event.waited {
            writer.key("waited")
            waited.write(to: &writer)
        }
        if let changed = self.event.changed {
            writer.key("changed")
            writer.beginObject()
            changed.writeMembers(to: &writer)
            writer.endObject()
        }
        if let worker {
            writer.key("worker")
            writer.string(worker)
        }
        if case .launch = self.event.kind, let number = policies.number(at: self.event.at) {
            writer.key("policyVersion")
            writer.integer(number)
        }
        writer.endObject()
    }

    private var text: (name: StaticString, detail: String?) {
        let waited = self.event.waited?.detail ?? ""
        return switch self.event.kind {
        case .registered: ("registered", nil)
        case .removed: ("removed", nil)
        case .push(let disposition): ("push", "\(disposition.name)")
        case .launch(.push, let attempt, let coalesced):
            ("launch", "attempt \(attempt), coalesced \(coalesced)\(waited)")
        case .launch(_, let attempt, _): ("launch", "attempt \(attempt)\(waited)")
        case .result(let outcome): ("result", outcome.name)
        case .discard(_, let reason): ("discard", reason.rawValue)
        case .conditions: ("conditions", self.event.changed?.text)
        case .extended(_, let seconds): ("extended", "\(seconds) s left")
        case .taskSubmitted(_, let disposition): ("submit", disposition.rawValue)
        case .transfersFinished(let count): ("finished", "\(count) \(count == 1 ? "transfer" : "transfers")")
        case .taskRefused(_, let rejection): ("refused", rejection.reason)
        case .subscribed: ("subscribed", self.name)
        // Entries are created only from complete names, and not from those of workers.
        case .worker, .namePart: ("name", nil)
        }
    }
}

extension Waited {
    /// Appends the wait as an object: the interval, each hold but `worker`, and that, in milliseconds.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("interval")
        writer.integer(self.interval)
        writer.key("hold")
        writer.beginObject()
        for span in self.spans where span.hold != .worker {
            writer.key(span.hold.name)
            writer.integer(span.milliseconds)
        }
        writer.endObject()
        writer.key("worker")
        writer.integer(self.milliseconds(.worker))
        writer.endObject()
    }

    /// The text about the wait at the end of an event's detail.
    var detail: String {
        let held = self.held.map { ", held by \($0.name)" } ?? ""
        return held + (self.text.map { ", waited \($0)" } ?? "")
    }
}
