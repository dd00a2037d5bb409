package import DeviceEngine
import LaunchPolicy

extension HistoryFile {
    /// What happened to a device last, the newest first, without names.
    ///
    /// - `device`: as of `HistoryEvent.device(of:_:)`.
    package func recent(device: UInt64, count: Int) -> [HistoryEvent] {
        self.recent(device: device, count: count) { _ in true }
    }

    /// What happened to a device last of which `isWanted` holds, the newest first, without names.
    ///
    /// - `examinedMax`: the most things that are looked at.
    package func recent(
        device: UInt64,
        count: Int,
        examinedMax: Int = .max,
        where isWanted: (HistoryEvent) -> Bool
    ) -> [HistoryEvent] {
        var events: [HistoryEvent] = []
        var examined = 0
        guard count > 0 else { return events }
        self.visit(device: device) { event in
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
        self.visit(device: device) { event in
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
