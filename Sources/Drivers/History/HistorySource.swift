package import Bytes
package import DeviceEngine
package import LaunchPolicy

/// Where it is found what happened to devices and pushes.
package protocol HistorySource: AnyObject {
    /// Calls `body` with the events of a device, parts of names too, the newest first, until it returns false.
    ///
    /// - `device`: as of `HistoryEvent.device(of:_:)`.
    /// - `latest`: those that happened later are passed over.
    func visit(device: UInt64, notAfter latest: Instant, _ body: (HistoryEvent) -> Bool)

    /// What happened to a push, the oldest first, and to those it was coalesced with as far as the event names both;
    /// of more than `HistoryFile.pushEventsMax` events the last.
    func push(_ apnsID: APNsID) -> [HistoryEvent]

    /// Why something could not be read since the last call; nil when everything could, or is told elsewhere.
    func takeFailure() -> StoreError?
}

extension HistorySource {
    package func takeFailure() -> StoreError? { nil }

    /// What happened to a device last of which `isWanted` holds, the newest first, without names.
    ///
    /// - `device`: as of `HistoryEvent.device(of:_:)`.
    /// - `examinedMax`: the most things that are looked at.
    package func recent(
        device: UInt64,
        count: Int,
        examinedMax: Int = .max,
        where isWanted: (HistoryEvent) -> Bool = { _ in true }
    ) -> [HistoryEvent] {
        var events: [HistoryEvent] = []
        var examined = 0
        guard count > 0 else { return events }
        self.visit(device: device, notAfter: .distantFuture) { event in
            guard !event.isNamePart else { return true }
            if isWanted(event) { events.append(event) }
            examined += 1
            return events.count < count && examined < examinedMax
        }
        return events
    }

    /// What happened to a device last, the newest first, with the names of tasks and sessions.
    package func entries(device: UInt64, count: Int) -> [HistoryEntry] {
        var entries = HistoryEntries()
        self.visit(device: device, notAfter: .distantFuture) { event in
            if !event.isNamePart, entries.count >= count { return false }
            entries.append(event)
            return true
        }
        return entries.finish()
    }

    /// What happened to a device before a place in its history, the newest first, as far as `isWanted` holds.
    ///
    /// - `place`: where the page before it left off; nil for the newest.
    /// - `countMax`: the most entries; at least one.
    /// - `examinedMax`: the most things that are looked at; what happened in one millisecond is looked at together.
    package func page(
        device: UInt64,
        before place: HistoryPlace?,
        countMax: Int,
        examinedMax: Int = .max,
        where isWanted: (HistoryEvent) -> Bool = { _ in true }
    ) -> HistoryPage {
        var page = HistoryPageMaker(before: place, countMax: countMax, examinedMax: examinedMax)
        self.visit(device: device, notAfter: place?.moment ?? .distantFuture) { event in
            page.append(event, isWanted)
        }
        return page.finish(isWanted)
    }
}
