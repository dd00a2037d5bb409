import Engine
import Policy
import Storage
import Wire

/// Which of the things that happened to a device somebody asks for: `GET /v1/devices/<token>/events`.
package struct EventSelection: Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case push, task, conditions

        func contains(_ kind: HistoryEvent.Kind) -> Bool {
            switch kind {
            case .push: self == .push
            case .launch, .result, .discard, .extended, .taskSubmitted, .transfersFinished:
                self == (kind.task == nil ? .push : .task)
            case .conditions: self == .conditions
            case .registered, .removed, .namePart: false
            }
        }
    }

    /// The most events of an answer, and how many there are when nobody says.
    package static let limitMax = 1000
    package static let limitByDefault = 100
    /// How many things an answer looks at: when few of them are asked for, it has fewer than there are.
    static let examinedMax = 8192

    /// nil for all.
    package var kind: Kind?
    package var limit = Self.limitByDefault
    /// Where the answer before it left off, as that said it; nil for the newest.
    package var before: EventPlace?

    package init() {}

    func contains(_ event: HistoryEvent) -> Bool { self.kind?.contains(event.kind) ?? true }
}

/// Where an answer left off, as text that callers hand back: `<milliseconds>.<count>`.
package struct EventPlace: Hashable, Sendable {
    let place: HistoryPlace

    init(_ place: HistoryPlace) {
        self.place = place
    }

    /// nil for what no answer says.
    package init?(_ text: String) {
        let isNegative = text.hasPrefix("-")
        let parts = text.dropFirst(isNegative ? 1 : 0).split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let milliseconds = Self.number(parts[0]), let count = Self.number(parts[1]),
            !parts[1].hasPrefix("0")
        else { return nil }
        let moment = Instant(milliseconds: Int64(isNegative ? -milliseconds : milliseconds))
        self.place = HistoryPlace(moment: moment, count: count)
    }

    /// A number of up to 18 digits.
    private static func number(_ text: Substring) -> Int? {
        guard 1...18 ~= text.utf8.count, text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else {
            return nil
        }
        return Int(text)
    }

    package var text: String { "\(self.place.moment.milliseconds).\(self.place.count)" }
}

extension HistoryPage {
    /// Appends the events and where they leave off, as members of the object that is open.
    func writeMembers(to writer: inout JSONWriter, _ offset: WallOffset, _ policies: PolicyVersions) {
        writer.key("events")
        writer.beginArray()
        for entry in self.entries { entry.write(to: &writer, offset, policies) }
        writer.endArray()
        writer.key("next")
        writer.optional(self.next) { writer, next in writer.string(EventPlace(next).text) }
    }
}
