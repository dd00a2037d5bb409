package import Engine
package import Policy
package import Wire

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

    /// Pushes to all devices, the newest first; there may be fewer than are wanted, although there are more.
    ///
    /// - `place`: only those that stand behind this one; nil for the newest.
    /// - `oldest`: only those that came at this moment or later.
    /// - `countMax`: the most pushes, at least one.
    func pushes(behind place: LoggedPush?, notBefore oldest: Instant, countMax: Int) -> LoggedPushes

    /// What happened to the devices of pushes from the oldest of these on, the oldest first; names may be without.
    func events(since pushes: [LoggedPush]) -> [UInt64: [HistoryEvent]]

    /// The devices of some numbers, where the log can find them; nil where it cannot.
    ///
    /// - `key`: what makes the numbers.
    func devices(of numbers: Set<UInt64>, _ key: HashKey) -> [UInt64: LoggedDevice]?

    /// Why something could not be read since the last call; nil when everything could, or is told elsewhere.
    func takeFailure() -> StoreError?
}

extension HistorySource {
    package func takeFailure() -> StoreError? { nil }

    package func devices(of numbers: Set<UInt64>, _ key: HashKey) -> [UInt64: LoggedDevice]? { nil }

    package func events(since pushes: [LoggedPush]) -> [UInt64: [HistoryEvent]] {
        var oldest: [UInt64: LoggedPush] = [:]
        // The oldest of a device comes last.
        for push in pushes { oldest[push.device] = push }
        return oldest.mapValues { push in
            var events: [HistoryEvent] = []
            self.visit(device: push.device, notAfter: .distantFuture) { event in
                guard event.at >= push.at, events.count < HistoryFile.deviceEventsMax else { return false }
                events.append(event)
                return LoggedPush(event) != push
            }
            return events.reversed()
        }
    }

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

/// A device that events know by a number.
package struct LoggedDevice: Hashable, Sendable {
    package let token: DeviceToken
    package let topic: String

    package init(token: DeviceToken, topic: String) {
        self.token = token
        self.topic = topic
    }
}
