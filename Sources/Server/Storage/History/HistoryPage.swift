package import Engine
package import Policy

/// A place between two things that happened to a device, which stays where it is while more happens and the oldest is
/// dropped.
package struct HistoryPlace: Hashable, Sendable {
    /// What happened before this moment lies before it, ...
    package let moment: Instant
    /// ... and so do the first of those at this moment, so many.
    package let count: Int

    package init(moment: Instant, count: Int) {
        self.moment = moment
        self.count = count
    }
}

/// A part of what happened to a device.
package struct HistoryPage: Hashable, Sendable {
    /// The newest first.
    package var entries: [HistoryEntry] = []
    /// Where the next page goes on; nil when nothing is left.
    package var next: HistoryPlace?
}

/// Makes a page of events that come the newest first.
struct HistoryPageMaker {
    private let place: HistoryPlace?
    private let countMax: Int
    private let examinedMax: Int
    private var page = HistoryPage()
    private var examined = 0
    /// What happened at one moment.
    private var moment: (at: Instant, entries: HistoryEntries)?

    init(before place: HistoryPlace?, countMax: Int, examinedMax: Int) {
        self.place = place
        self.countMax = countMax
        self.examinedMax = examinedMax
    }

    /// - Returns: whether more is needed.
    mutating func append(_ event: HistoryEvent, _ isWanted: (HistoryEvent) -> Bool) -> Bool {
        if self.moment?.at != event.at {
            self.endMoment(isWanted)
            guard self.page.next == nil else { return false }
            self.moment = (event.at, HistoryEntries())
        }
        self.moment?.entries.append(event)
        return true
    }

    mutating func finish(_ isWanted: (HistoryEvent) -> Bool) -> HistoryPage {
        self.endMoment(isWanted)
        return self.page
    }

    /// Takes what happened at a moment, as far as it lies before the place and there is room for it.
    private mutating func endMoment(_ isWanted: (HistoryEvent) -> Bool) {
        guard self.page.next == nil, var moment = self.moment else { return }
        self.moment = nil
        let all = moment.entries.finish()
        let entries = self.place?.moment == moment.at ? all.suffix(self.place?.count ?? 0) : all[...]
        for (number, entry) in entries.enumerated() {
            let isOnPage = isWanted(entry.event)
            guard isOnPage && self.page.entries.count < self.countMax || !isOnPage && self.examined < self.examinedMax
            else {
                self.page.next = HistoryPlace(moment: moment.at, count: entries.count - number)
                return
            }
            self.examined += 1
            if isOnPage { self.page.entries.append(entry) }
        }
    }
}
