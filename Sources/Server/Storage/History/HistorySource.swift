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

    /// Returns the latest events of devices, with the names of tasks and sessions.
    ///
    /// - Parameters:
    ///   - devices: as of `HistoryEvent.device(of:_:)`.
    ///   - oldest: only events that happened at this moment or later.
    ///   - countEach: the most events of one device.
    ///   - countMax: about the most events of all together. A source that looks at one device after the other leaves the
    ///     last ones out.
    func entries(devices: [UInt64], since oldest: Instant, countEach: Int, countMax: Int) -> LoggedEntries

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

/// The latest events of devices.
package struct LoggedEntries {
    /// The newest first of each device, in the order that the devices were asked for; there may be fewer devices.
    package var entries: [[HistoryEntry]] = []
    /// True if older events than these were left out, because there were too many to read.
    package var isCut = false

    package init() {}
}

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

/// A push as the log has it: of which device it was, and when it came.
package struct LoggedPush: Hashable, Sendable {
    /// When it came, in policy time.
    package let at: Instant
    /// As of `HistoryEvent.device(of:_:)`.
    package let device: UInt64
    /// The push's identifier without the case of its letters.
    package let first: UInt64
    package let second: UInt64

    package init(at: Instant, device: UInt64, first: UInt64, second: UInt64) {
        self.at = at
        self.device = device
        self.first = first
        self.second = second
    }

    /// nil when the event tells of no push that came.
    package init?(_ event: HistoryEvent) {
        guard case .push = event.kind, let apnsID = event.apnsID else { return nil }
        self.init(at: event.at, device: event.device, first: apnsID.first, second: apnsID.second)
    }

    /// Whether it stands before the other in a list, the newest first; those of one millisecond have an order of their
    /// own, which stays.
    package func precedes(_ other: LoggedPush) -> Bool {
        (self.at, self.device, self.first, self.second) > (other.at, other.device, other.first, other.second)
    }

    /// Every push that came at `moment` or before stands behind it in a list.
    static func end(of moment: Instant) -> LoggedPush {
        LoggedPush(at: Instant(milliseconds: moment.milliseconds + 1), device: 0, first: 0, second: 0)
    }
}

/// A part of the pushes to all devices.
package struct LoggedPushes: Hashable, Sendable {
    /// The newest first.
    package var pushes: [LoggedPush]
    /// What the next part stands behind; nil when nothing is left.
    package var next: LoggedPush?

    package init(pushes: [LoggedPush], next: LoggedPush?) {
        self.pushes = pushes
        self.next = next
    }
}

/// Collects the newest pushes that stand behind one.
package struct LoggedPushCollector {
    private let place: LoggedPush?
    private let oldest: Instant
    private let countMax: Int
    private var found: [LoggedPush] = []
    /// The same ones: a push that is met twice is one.
    private var known: Set<LoggedPush> = []
    /// The last of as many as are wanted; what stands behind it is not.
    private var last: LoggedPush?

    /// - Parameters:
    ///   - place: only pushes that stand behind this one.
    ///   - oldest: only those that came at this moment or later.
    ///   - countMax: how many are wanted, at least one.
    package init(behind place: LoggedPush?, notBefore oldest: Instant, countMax: Int) {
        self.place = place
        self.oldest = oldest
        self.countMax = countMax
    }

    /// The moment before which nothing more is wanted.
    package var bound: Instant { max(self.oldest, self.last?.at ?? .distantPast) }

    mutating func append(_ event: HistoryEvent) {
        guard let push = LoggedPush(event) else { return }
        self.append(push)
    }

    package mutating func append(_ push: LoggedPush) {
        if let place, !place.precedes(push) { return }
        if let last, !push.precedes(last) { return }
        guard push.at >= self.oldest, self.known.insert(push).inserted else { return }
        self.found.append(push)
        if self.found.count >= 2 * self.countMax { self.shorten() }
    }

    /// What was found, the newest first.
    ///
    /// - `unseen`: the newest moment of what was not looked at; nil when everything was.
    package mutating func finish(unseen: Instant?) -> LoggedPushes {
        self.shorten()
        guard let unseen, unseen >= self.bound else {
            return LoggedPushes(pushes: self.found, next: self.last)
        }
        // Those that were not looked at may stand among these.
        self.found.removeAll { $0.at <= unseen }
        return LoggedPushes(pushes: self.found, next: .end(of: unseen))
    }

    private mutating func shorten() {
        self.found.sort { $0.precedes($1) }
        guard self.found.count >= self.countMax else { return }
        for push in self.found[self.countMax...] { self.known.remove(push) }
        self.found.removeLast(self.found.count - self.countMax)
        self.last = self.found.last
    }
}
