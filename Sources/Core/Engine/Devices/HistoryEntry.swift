package import Policy

/// Something that happened to a device, with the name of what it happened to.
package struct HistoryEntry: Hashable, Sendable {
    package let event: HistoryEvent
    /// The identifier of the task, or the session's name; nil of everything else, and when the history has it no more.
    package let name: String?

    package init(_ event: HistoryEvent, name: String? = nil) {
        self.event = event
        self.name = name
    }
}

/// Makes entries of the events of one device, which come the newest first: each is whole when its name is, or when the
/// event before it is there.
package struct HistoryEntries {
    private var entries: [HistoryEntry] = []
    /// An event whose name is missing yet, wholly or partly.
    private var open: HistoryEvent?
    /// The parts of the open event's name, the last first.
    private var parts: [[UInt8]] = []
    /// The length and the place of the part that was taken last.
    private var last: (length: UInt8, place: UInt8)?

    package init() {}

    /// How many things happened, whole or not.
    package var count: Int { self.entries.count + (self.open == nil ? 0 : 1) }

    /// Takes the event before the one that was taken last.
    package mutating func append(_ event: HistoryEvent) {
        guard case .namePart(let length, let place) = event.kind else {
            self.close(nil)
            self.open = event
            if event.kind.task == nil { self.close(nil) }
            return
        }
        guard let open = self.open else { return }
        let isNext =
            if let last = self.last {
                length == last.length && Int(place) == Int(last.place) - 1
            } else {
                Int(place) == NameParts.count(ofBytes: Int(length)) - 1
            }
        guard isNext, event.at == open.at, event.device == open.device,
            let bytes = NameParts.bytes(of: event, length: Int(length), place: Int(place))
        else { return self.close(nil) }
        self.parts.append(bytes)
        self.last = (length, place)
        if place == 0 { self.close(String(validating: self.parts.reversed().joined(), as: UTF8.self)) }
    }

    /// Takes what is there for all there is.
    ///
    /// - Returns: the entries, the newest first.
    package mutating func finish() -> [HistoryEntry] {
        self.close(nil)
        return self.entries
    }

    private mutating func close(_ name: String?) {
        if let open = self.open { self.entries.append(HistoryEntry(open, name: name)) }
        self.open = nil
        self.parts.removeAll(keepingCapacity: true)
        self.last = nil
    }
}

extension HistoryEvent.Kind {
    /// Of what happened to a task or a session its kind, which an event with a name before it has; else nil.
    package var task: TaskKind? {
        switch self {
        case .taskLaunch(let kind, _), .taskResult(let kind, _), .taskSubmitted(let kind, _), .taskDropped(let kind, _),
            .taskExtended(let kind, _):
            kind
        case .transfersFinished: .urlSession
        case .registered, .removed, .push, .launch, .result, .discard, .conditions, .extended, .namePart: nil
        }
    }
}
