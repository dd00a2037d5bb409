import Engine
import Policy
package import Storage
import Wire

/// The selection of a device's events in a request: `GET /v1/devices/<token>/events`.
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

    /// The maximum of `limit`.
    package static let limitMax = 1000
    package static let limitByDefault = 100
    /// The maximum number of events examined for an answer. If few of them match, the answer may have fewer than
    /// `limit` events although more exist.
    static let examinedMax = 8192

    /// The kind of the events; nil for all kinds.
    package var kind: Kind?
    package var limit = Self.limitByDefault
    /// The earliest time of an event, in milliseconds since 1970; nil for no limit.
    package var since: Int64?
    /// The time before which all events must be, in milliseconds since 1970; nil for no limit.
    package var until: Int64?
    /// The `next` value of the previous page; nil for the first page.
    package var before: HistoryCursor?

    package init() {}

    func contains(_ event: HistoryEvent) -> Bool { self.kind?.contains(event.kind) ?? true }

    /// Returns the place before which the page begins; nil if the page begins with the newest event.
    func start(_ offset: WallOffset) -> HistoryCursor? {
        let end = self.until.map { HistoryCursor(moment: offset.instant(wallMilliseconds: $0), count: 0) }
        guard let before = self.before, let end else { return end ?? self.before }
        return before.moment < end.moment ? before : end
    }
}

/// The end of a page as text, `<milliseconds>.<count>`: the `next` value of the page.
extension HistoryCursor {
    /// Parses a `next` value; returns nil if the text cannot be one.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let moment = Int64(parts[0]), let count = Int(parts[1]), count > 0,
            max(Int64(count), Int64(clamping: moment.magnitude)) < LoggedPush.momentMax
        else { return nil }
        self.init(moment: Instant(milliseconds: moment), count: count)
        // Only one text is valid for each place.
        guard self.text == text else { return nil }
    }

    package var text: String { "\(self.moment.milliseconds).\(self.count)" }
}

extension HistoryPage {
    /// Appends the events and the end of the page, `next`, to the open object.
    func writeMembers(to writer: inout JSONWriter, _ offset: WallOffset, _ policies: PolicyVersions) {
        writer.array("events", self.entries) { $1.write(to: &$0, offset, policies) }
        writer.member("next", self.next?.text)
    }
}

extension HistoryEntry {
    /// Writes the event as an object, in the form for both explanations and event lists.
    ///
    /// - `policies`: the known policy versions. A launch shows the version that was in effect.
    func write(to writer: inout JSONWriter, _ offset: WallOffset, _ policies: PolicyVersions) {
        writer.beginObject()
        writer.member("at", self.event.at, offset)
        let (name, detail) = self.text
        writer.member("event", name)
        writer.member("apnsID", self.event.apnsID)
        if let kind = self.event.kind.task {
            writer.member("kind", kind.rawValue)
            writer.member(kind == .urlSession ? "session" : "task", self.name)
        }
        writer.member("detail", detail)
        if case .discard = self.event.kind { writer.member("held", self.event.waited?.held?.name) }
        if let waited = self.event.waited {
            writer.key("waited")
            waited.write(to: &writer)
        }
        if let changed = self.event.changed {
            writer.beginObject("changed")
            changed.writeMembers(to: &writer)
            writer.endObject()
        }
        writer.member("worker", ifPresent: self.worker)
        if case .launch = self.event.kind, let number = policies.number(at: self.event.at) {
            writer.member("policyVersion", number)
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
        // Unreachable: the parts of names, and the names of workers, are not entries of their own.
        case .worker, .namePart: ("name", nil)
        }
    }
}

extension Waited {
    /// Writes the wait as an object, in milliseconds: the interval, each hold other than `worker`, and the wait for a
    /// worker.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("interval", self.interval)
        writer.beginObject("hold")
        for span in self.spans where span.hold != .worker { writer.member(span.hold.name, span.milliseconds) }
        writer.endObject()
        writer.member("worker", self.milliseconds(.worker))
        writer.endObject()
    }

    /// The wait as text, for the end of an event's detail; empty if there was none.
    var detail: String {
        let held = self.held.map { ", held by \($0.name)" } ?? ""
        return held + (self.text.map { ", waited \($0)" } ?? "")
    }
}
