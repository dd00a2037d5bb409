import TransferAgent
import Wire

/// What callers were promised, and what they and the gateway were told since: each transfer ends once, and the events
/// of a session stand for each end once.
struct RoomLedger {
    /// A transfer whose submission was answered, or that was seen in a list.
    struct Entry {
        let session: String
        let url: String
        var end: String?
        var isDownload = false
        /// Whether its cancellation was answered, or the removal of its record.
        var isGone = false
        /// Whether the removal of its record was asked for, and not answered.
        var mayBeGone = false
        var isTaken = false
    }

    private(set) var entries: [TransferID: Entry] = [:]
    /// The events that the gateway has taken, by session and name.
    private(set) var events: [String: [String: Int]] = [:]
    private(set) var violations: [String] = []
    /// How often a transfer was promised, and seen to end.
    private(set) var endCounts: [String: Int] = [:]

    mutating func fault(_ text: String) { self.violations.append(text) }

    mutating func submitted(_ id: TransferID, _ session: String, _ url: String) {
        if self.entries[id] == nil { self.entries[id] = Entry(session: session, url: url) }
    }

    /// The gateway has taken an event, which may be one that it knows.
    mutating func told(_ entry: OutboxEntry) {
        let before = self.events[entry.session]?[entry.event]
        if let before, before != entry.finished {
            self.fault("event \(entry.event) stood for \(before) transfers and now for \(entry.finished)")
        }
        self.events[entry.session, default: [:]][entry.event] = entry.finished
    }

    /// A session's whole list has come.
    mutating func listed(_ session: String, _ transfers: [JSONValue]) {
        var seen: Set<TransferID> = []
        for shown in transfers {
            guard let id = shown["transfer"]?.word.flatMap({ TransferID($0) }), let state = shown["state"]?.word else {
                self.fault("a list has \(shown)")
                continue
            }
            if !seen.insert(id).inserted { self.fault("\(id) is listed twice") }
            self.submitted(id, session, shown["url"]?.word ?? "")
            self.seen(id, state, shown)
        }
        for (id, entry) in self.entries where entry.session == session && !entry.isGone && !seen.contains(id) {
            if !entry.mayBeGone { self.fault("\(id) was promised and is not there") }
            self.entries[id]?.isGone = true
        }
    }

    private mutating func seen(_ id: TransferID, _ state: String, _ shown: JSONValue) {
        guard var entry = self.entries[id] else { return }
        if entry.isGone { self.fault("\(id) was removed and is there") }
        if let end = entry.end {
            if state != end { self.fault("\(id) had ended as \(end) and is \(state)") }
        } else if ["finished", "failed", "cancelled"].contains(state) {
            entry.end = state
            self.endCounts[state, default: 0] += 1
        }
        entry.isDownload = shown["kind"]?.word == "download"
        let isTaken = shown["taken"] == .bool(true)
        if entry.isTaken, !isTaken { self.fault("\(id) was taken and is not") }
        entry.isTaken = isTaken
        if let bytes = shown["bytes"]?.number, let total = shown["total"]?.number, bytes > total {
            self.fault("\(id) has \(bytes) of \(total) bytes")
        }
        self.entries[id] = entry
    }

    /// The removal of a transfer's record is asked for, which is in this state.
    mutating func askedToCancel(_ id: TransferID, was state: String) {
        guard ["finished", "failed", "cancelled"].contains(state) else { return }
        if self.entries[id]?.end == nil { self.endCounts[state, default: 0] += 1 }
        self.entries[id]?.end = state
        self.entries[id]?.mayBeGone = true
    }

    /// The answer to a cancellation of a transfer that was, just before, in this state.
    mutating func cancelled(_ id: TransferID, was state: String) {
        let hadEnded = ["finished", "failed", "cancelled"].contains(state)
        let end = hadEnded ? state : "cancelled"
        let before = self.entries[id]?.end
        if let before, before != end { self.fault("\(id) had ended as \(before) and is \(end)") }
        if before == nil { self.endCounts[end, default: 0] += 1 }
        self.entries[id]?.end = end
        self.entries[id]?.isGone = hadEnded
    }

    /// The downloads whose files nobody has taken.
    var untaken: [TransferID] {
        self.entries.filter { _, entry in
            entry.end == "finished" && entry.isDownload && !entry.isGone && !entry.isTaken
        }.map(\.key)
    }

    /// At the end: everything has ended, and the events of these sessions stand for each end that is told once.
    mutating func close(sessions: [String]) {
        for (id, entry) in self.entries where entry.end == nil { self.fault("\(id) has not ended") }
        for session in sessions {
            let ends = self.entries.values.count {
                $0.session == session && ($0.end == "finished" || $0.end == "failed")
            }
            let told = self.events[session, default: [:]].values.reduce(0, +)
            if told != ends { self.fault("\(ends) transfers of \(session) have ended, and \(told) were told") }
        }
    }
}
