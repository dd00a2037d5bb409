package import Engine
package import Policy
package import Wire

/// A source of the history of devices and pushes.
package protocol HistorySource: AnyObject {
    /// Calls `body` with the events of a device, including parts of names, the newest first. Stops when `body` returns
    /// false.
    ///
    /// - `device`: the number by `HistoryEvent.device(of:_:)`.
    /// - `latest`: events after this time are skipped.
    func visit(device: UInt64, notAfter latest: Instant, _ body: (HistoryEvent) -> Bool)

    /// Returns the events that name a push, the oldest first: its own events, and events of pushes with which it was
    /// coalesced. Returns only the last `HistoryFile.pushEventsMax` events.
    func push(_ apnsID: APNsID) -> [HistoryEvent]

    /// Returns pushes to all devices, the newest first. May return fewer than `countMax` although more exist.
    ///
    /// - `place`: only pushes that follow this push in the list; nil to start with the newest.
    /// - `oldest`: only pushes received at this time or later.
    /// - `countMax`: the maximum number of pushes, at least 1.
    func pushes(behind place: LoggedPush?, notBefore oldest: Instant, countMax: Int) -> LoggedPushes

    /// Calls `body` once for each device in `pushes` with its events, the oldest first, starting with the device's
    /// oldest push in `pushes`. Names may be missing.
    func visitDevices(since pushes: [LoggedPush], _ body: ([HistoryEvent]) -> Void)

    /// Returns the latest events of devices, with the names of tasks and sessions. A call reads only the first devices;
    /// the source decides their number.
    ///
    /// - Parameters:
    ///   - devices: the numbers by `HistoryEvent.device(of:_:)`.
    ///   - oldest: only events that happened at this time or later.
    ///   - countEach: the maximum number of events of one device.
    func entries(devices: some Collection<UInt64>, since oldest: Instant, countEach: Int) -> LoggedEntries

    /// Returns the devices with these numbers; nil if the source cannot look devices up by number.
    ///
    /// - `key`: the key that hashes devices to numbers.
    func devices(of numbers: Set<UInt64>, _ key: HashKey) -> [UInt64: LoggedDevice]?

    /// Returns the reason of a failed read since the last call. Returns nil if no read failed, or if the source reports
    /// failures in another way.
    func takeFailure() -> StoreError?
}

extension HistorySource {
    package func takeFailure() -> StoreError? { nil }

    package func devices(of numbers: Set<UInt64>, _ key: HashKey) -> [UInt64: LoggedDevice]? { nil }

    package func visitDevices(since pushes: [LoggedPush], _ body: ([HistoryEvent]) -> Void) {
        var oldest: [UInt64: LoggedPush] = [:]
        // The oldest push of a device is the last one.
        for push in pushes { oldest[push.device] = push }
        for push in oldest.values {
            var events: [HistoryEvent] = []
            self.visit(device: push.device, notAfter: .distantFuture) { event in
                guard event.at >= push.at, events.count < HistoryFile.deviceEventsMax else { return false }
                events.append(event)
                return LoggedPush(event) != push
            }
            body(events.reversed())
        }
    }

    /// Returns the newest events of a device that satisfy `isWanted`, the newest first, without names.
    ///
    /// - `device`: the number by `HistoryEvent.device(of:_:)`.
    /// - `examinedMax`: the maximum number of events to examine.
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

    /// Calls `body` like `visit`, but merges the latest events of other numbers by time.
    ///
    /// - `othersMax`: the maximum number of events of each other number that `body` needs. Events at the time `latest`,
    ///   where a page may begin, do not count. The last millisecond is read completely.
    private func visit(
        device: UInt64,
        and others: [UInt64],
        othersMax: Int,
        notAfter latest: Instant,
        _ body: (HistoryEvent) -> Bool
    ) {
        var between: [HistoryEvent] = []
        for other in others {
            var (count, last) = (0, latest)
            self.visit(device: other, notAfter: latest) { event in
                guard count < othersMax || event.at == last else { return false }
                if !event.isNamePart, event.at < latest { count += 1 }
                last = event.at
                between.append(event)
                return true
            }
        }
        // The sort is stable: the parts of a name remain behind their event.
        between.sort { $0.at > $1.at }
        var rest = between[...]
        var continues = true
        self.visit(device: device, notAfter: latest) { event in
            while continues, let next = rest.first, next.at > event.at { continues = body(rest.removeFirst()) }
            if continues { continues = body(event) }
            return continues
        }
        while continues, let next = rest.popFirst() { continues = body(next) }
    }

    /// Returns the newest events of a device, the newest first, with the names of tasks and sessions.
    ///
    /// - `others`: further numbers whose latest events are included.
    package func entries(device: UInt64, and others: [UInt64] = [], count: Int) -> [HistoryEntry] {
        var entries = HistoryEntries()
        self.visit(device: device, and: others, othersMax: count, notAfter: .distantFuture) { event in
            if !event.isNamePart, entries.count >= count { return false }
            entries.append(event)
            return true
        }
        return entries.finish()
    }

    /// Returns a page of a device's history before a place: the events that satisfy `isWanted`, the newest first.
    ///
    /// - `others`: further numbers whose latest events are included.
    /// - `place`: the `next` value of the previous page; nil for the newest events.
    /// - `oldest`: only events that happened at this time or later.
    /// - `countMax`: the maximum number of entries; at least 1.
    /// - `examinedMax`: the maximum number of events to examine. Events of the same millisecond are examined together.
    package func page(
        device: UInt64,
        and others: [UInt64] = [],
        before place: HistoryCursor?,
        notBefore oldest: Instant = .distantPast,
        countMax: Int,
        examinedMax: Int = .max,
        where isWanted: (HistoryEvent) -> Bool = { _ in true }
    ) -> HistoryPage {
        var page = HistoryPageMaker(before: place, countMax: countMax, examinedMax: examinedMax)
        let latest = place?.moment ?? .distantFuture
        // One more than on the page, at which the next page begins.
        self.visit(device: device, and: others, othersMax: countMax + 1, notAfter: latest) { event in
            event.at >= oldest && page.append(event, isWanted)
        }
        return page.finish(isWanted)
    }
}

/// A device that events identify by a number.
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
    /// The events of each device that was read, the newest first.
    package var entries: [[HistoryEntry]] = []
    /// The time since which the entries are complete; nil if no events were left out.
    package var from: Instant?

    package init() {}
}

/// A position between two events of a device. It stays valid while events are added and the oldest are dropped.
package struct HistoryCursor: Hashable, Sendable {
    /// The time of the events around the place. Earlier events are all before the place.
    package let moment: Instant
    /// The number of events at this time that are before the place.
    package let count: Int

    package init(moment: Instant, count: Int) {
        self.moment = moment
        self.count = count
    }
}

/// A page of the events of a device.
package struct HistoryPage: Hashable, Sendable {
    /// The entries, the newest first.
    package var entries: [HistoryEntry] = []
    /// The place where the next page continues; nil if this is the last page.
    package var next: HistoryCursor?
}

/// Builds a page from events in order, the newest first.
struct HistoryPageMaker {
    private let place: HistoryCursor?
    private let countMax: Int
    private let examinedMax: Int
    private var page = HistoryPage()
    private var examined = 0
    /// The events at one instant, which are added to the page together.
    private var moment: (at: Instant, entries: HistoryEntries)?

    init(before place: HistoryCursor?, countMax: Int, examinedMax: Int) {
        self.place = place
        self.countMax = countMax
        self.examinedMax = examinedMax
    }

    /// - Returns: true if more events are needed.
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

    /// Adds the events at one instant that are before the place, as long as the page has fewer than `countMax` entries.
    private mutating func endMoment(_ isWanted: (HistoryEvent) -> Bool) {
        guard self.page.next == nil, var moment = self.moment else { return }
        self.moment = nil
        let all = moment.entries.finish()
        let entries = self.place?.moment == moment.at ? all.suffix(self.place?.count ?? 0) : all[...]
        for (number, entry) in entries.enumerated() {
            let isOnPage = isWanted(entry.event)
            guard isOnPage && self.page.entries.count < self.countMax || !isOnPage && self.examined < self.examinedMax
            else {
                self.page.next = HistoryCursor(moment: moment.at, count: entries.count - number)
                return
            }
            self.examined += 1
            if isOnPage { self.page.entries.append(entry) }
        }
    }
}

/// A push in the log: its device, time and identifier.
package struct LoggedPush: Hashable, Sendable {
    /// The time at which it was received, in policy time.
    package let at: Instant
    /// The number of the device by `HistoryEvent.device(of:_:)`.
    package let device: UInt64
    /// The push's identifier, regardless of the case of its letters.
    package let first: UInt64
    package let second: UInt64

    package init(at: Instant, device: UInt64, first: UInt64, second: UInt64) {
        self.at = at
        self.device = device
        self.first = first
        self.second = second
    }

    /// Creates the push of an event; nil if the event is not the receipt of a push.
    package init?(_ event: HistoryEvent) {
        guard case .push = event.kind, let apnsID = event.apnsID else { return nil }
        self.init(at: event.at, device: event.device, first: apnsID.first, second: apnsID.second)
    }

    /// Returns true if this push is before the other push in a list, the newest first. Pushes of the same millisecond
    /// also have a fixed order.
    package func precedes(_ other: LoggedPush) -> Bool {
        (self.at, self.device, self.first, self.second) > (other.at, other.device, other.first, other.second)
    }

    /// Returns a place in the list before every push that was received at `moment` or earlier.
    static func end(of moment: Instant) -> LoggedPush {
        LoggedPush(at: Instant(milliseconds: moment.milliseconds + 1), device: 0, first: 0, second: 0)
    }
}

/// A page of the pushes to all devices.
package struct LoggedPushes: Hashable, Sendable {
    /// The pushes, the newest first.
    package var pushes: [LoggedPush]
    /// The push after which the next page continues; nil if this is the last page.
    package var next: LoggedPush?
}

/// The pushes that were received last. The first pages of a list come from them: the events in the file are sorted by
/// device, so a page from the file takes as long as reading a hundred thousand events.
struct RecentPushes {
    static let countMax = 2048

    /// A ring, whose oldest push is at `next` once it is full.
    private var pushes: [LoggedPush] = []
    private var next = 0
    /// The time of the newest push that may be missing.
    private(set) var unseen = Instant.distantPast

    mutating func append(_ push: LoggedPush) {
        guard self.pushes.count == Self.countMax else { return self.pushes.append(push) }
        self.unseen = max(self.unseen, self.pushes[self.next].at)
        self.pushes[self.next] = push
        self.next = (self.next + 1) % Self.countMax
    }

    /// Forgets all pushes.
    ///
    /// - `newest`: the time of the newest push that exists.
    mutating func removeAll(newest: Instant) {
        self.pushes.removeAll(keepingCapacity: true)
        self.next = 0
        self.unseen = max(self.unseen, newest)
    }

    /// Passes the pushes after `dropped` to `collector`, the newest first.
    ///
    /// - `dropped`: the time of the newest event that the file has dropped.
    /// - Returns: true if no wanted push is missing.
    func collect(_ collector: inout LoggedPushCollector, dropped: Instant) -> Bool {
        let unseen = max(self.unseen, dropped)
        for push in self.pushes[..<self.next].reversed() where push.at > unseen { collector.append(push) }
        for push in self.pushes[self.next...].reversed() where push.at > unseen { collector.append(push) }
        return collector.hasAll(after: unseen)
    }
}

/// Collects the newest pushes that follow a place in the list.
package struct LoggedPushCollector {
    private let place: LoggedPush?
    private let oldest: Instant
    private let countMax: Int
    private var found: [LoggedPush] = []
    /// The pushes of `found` as a set. A push that is found twice is added once.
    private var known: Set<LoggedPush> = []
    /// The last of the first `countMax` found pushes. Later pushes in the list are not wanted.
    private var last: LoggedPush?

    /// - Parameters:
    ///   - place: only pushes that follow this push in the list.
    ///   - oldest: only pushes received at this time or later.
    ///   - countMax: the maximum number of pushes, at least 1.
    package init(behind place: LoggedPush?, notBefore oldest: Instant, countMax: Int) {
        self.place = place
        self.oldest = oldest
        self.countMax = countMax
    }

    /// The time of the oldest wanted push.
    package var bound: Instant { max(self.oldest, self.last?.at ?? .distantPast) }

    /// Returns true if all wanted pushes were received after `moment`.
    fileprivate mutating func hasAll(after moment: Instant) -> Bool {
        self.shorten()
        return self.bound > moment
    }

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

    /// Returns the pushes found, the newest first.
    ///
    /// - `unseen`: the time of the newest event that was not examined; nil if all events were examined.
    package mutating func finish(unseen: Instant?) -> LoggedPushes {
        self.shorten()
        guard let unseen, unseen >= self.bound else {
            return LoggedPushes(pushes: self.found, next: self.last)
        }
        // Unexamined pushes may belong between the pushes that are removed here.
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
