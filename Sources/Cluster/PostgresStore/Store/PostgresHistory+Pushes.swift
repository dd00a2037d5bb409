package import Engine
import Platform
package import Policy
package import Storage
package import Wire

/// Lists of the pushes and latest events of many devices. Page summaries find a range of times but do not sort rows, so
/// the search reads one time span after the other, starting with the newest.
extension PostgresHistory {
    /// The first time span that is searched, in milliseconds; each further span is eight times as long.
    private static let spanMilliseconds: Int64 = 1000
    /// The longest span, longer than any history.
    private static let spanMillisecondsMax: Int64 = 1 << 50
    /// The maximum number of bundles read at a time.
    private static let bundlesPerPage: Int64 = 64
    /// The maximum numbers of event rows and of bundles that a list examines. A bundle has dozens of events.
    private static let eventRowsMax: Int64 = 65_536
    private static let eventBundlesMax: Int64 = 8_192
    /// The first span that is read for the latest events of devices, in milliseconds; each further span is eight times
    /// as long. The search ends after a query that takes `latestMillisecondsMax` or longer.
    private static let latestSpanMilliseconds: Int64 = 60_000
    private static let latestMillisecondsMax: Int64 = 1_000
    /// The maximum number of tokens read at a time.
    private static let tokensPerPage: Int32 = 8192
    /// The maximum number of devices in `remembered`.
    private static let rememberedMax = 65_536

    package func pushes(behind place: LoggedPush?, notBefore oldest: Instant, countMax: Int) -> LoggedPushes {
        var collector = LoggedPushCollector(behind: place, notBefore: oldest, countMax: countMax)
        guard let newest = self.query(Self.newestMoment), newest.count == 1 else {
            return collector.finish(unseen: nil)
        }
        // Events may be deleted late, by up to an eighth of their maximum age.
        let age = self.limits.ageMillisecondsMax
        let end = max(oldest.milliseconds, newest.int64(0, 0) - age - age / 8) - 1
        if let place { self.collect(at: place.at.milliseconds, &collector) }
        var upper = place.map { $0.at.milliseconds - 1 } ?? .max
        var span = Self.spanMilliseconds
        while upper > end, upper >= collector.bound.milliseconds {
            let lower = max(end, min(upper, newest.int64(0, 0)) - span)
            upper = self.collect(after: lower, notAfter: upper, countMax: countMax, &collector)
            // After a completely searched span, the next span is longer. Otherwise, it has the same length.
            if upper == lower, span < Self.spanMillisecondsMax { span *= 8 }
        }
        return collector.finish(unseen: nil)
    }

    /// Collects the newest pushes of a span, and all other pushes with the same time as the oldest of these.
    ///
    /// - Returns: the latest time that was not examined.
    private func collect(
        after lower: Int64,
        notAfter upper: Int64,
        countMax: Int,
        _ collector: inout LoggedPushCollector
    ) -> Int64 {
        guard
            let rows = self.query(Self.newestPushes, lower, upper, Int64(countMax)),
            let bundles = self.query(Self.newestBundles, lower, upper, Self.bundlesPerPage)
        else { return .min }
        Self.collect(rows, bundles, &collector)
        // If a limit cut off rows or bundles, both are complete only down to the later of their last times.
        let cutRow = rows.count == countMax ? rows.int64(rows.count - 1, 2) : nil
        let cutBundle = bundles.count == Self.bundlesPerPage ? bundles.int64(bundles.count - 1, 1) : nil
        guard let last = [cutRow, cutBundle].compactMap(\.self).max() else { return lower }
        self.collect(at: last, &collector)
        return last - 1
    }

    /// Collects all pushes at one time.
    private func collect(at moment: Int64, _ collector: inout LoggedPushCollector) {
        guard let rows = self.query(Self.pushesOfMoment, moment),
            let bundles = self.query(Self.bundlesOfMoment, moment)
        else { return }
        Self.collect(rows, bundles, &collector)
    }

    /// Collects the pushes of rows and of bundles.
    private static func collect(
        _ rows: PostgresRows,
        _ bundles: PostgresRows,
        _ collector: inout LoggedPushCollector
    ) {
        for row in 0..<rows.count {
            let apns = rows.bytes(row, 0)
            let push = LoggedPush(
                at: Instant(milliseconds: rows.int64(row, 2)),
                device: UInt64(bitPattern: rows.int64(row, 1)),
                first: apns.word(at: 0),
                second: apns.word(at: 8)
            )
            collector.append(push)
        }
        for row in 0..<bundles.count {
            for push in Self.events(bundles.bytes(row, 0)).compactMap(LoggedPush.init) { collector.append(push) }
        }
    }

    package func visitDevices(since pushes: [LoggedPush], _ body: ([HistoryEvent]) -> Void) {
        guard let oldest = pushes.last?.at else { return }
        let wanted = Set(pushes.map(\.device))
        var parameters = PostgresParameters()
        parameters.append(wanted) { Int64(bitPattern: $0) }
        parameters.append(oldest.milliseconds)
        parameters.append(Self.eventRowsMax)
        Self.append(keysOf: Array(wanted), to: &parameters)
        parameters.append(Self.eventBundlesMax)
        guard let rows = self.query(Self.eventsOfDevices, parameters) else { return }
        var events: [UInt64: [HistoryEvent]] = [:]
        for row in 0..<rows.count {
            for event in Self.events(rows.bytes(row, 0)) where wanted.contains(event.device) {
                events[event.device, default: []].append(event)
            }
        }
        events.values.forEach(body)
    }

    /// Reads the events of all devices together, one time span after the other, the newest first. It ends at
    /// `eventRowsMax` events, or after a slow query, because the next query might exceed the timeout.
    package func entries(devices: some Collection<UInt64>, since oldest: Instant, countEach: Int) -> LoggedEntries {
        var (found, entries) = (LoggedEntries(), [UInt64: HistoryEntries]())
        guard let newest = self.query(Self.newestMoment), newest.count == 1 else { return found }
        for device in devices { entries[device] = HistoryEntries() }
        var (upper, span) = (Int64.max, Self.latestSpanMilliseconds)
        while found.from == nil, upper >= oldest.milliseconds {
            let lower = max(oldest.milliseconds - 1, min(upper, newest.int64(0, 0)) - span)
            let begunAt = SystemClock.monotonic
            guard let cut = self.collect(after: lower, notAfter: upper, countEach, &entries) else { return found }
            let isLong = SystemClock.monotonic - begunAt >= Self.latestMillisecondsMax
            let count = entries.values.reduce(0) { $0 + $1.count }
            let isLast = lower >= oldest.milliseconds && (isLong || count >= Int(Self.eventRowsMax))
            if cut > lower || isLast { found.from = Instant(milliseconds: cut + 1) }
            (upper, span) = (lower, span * 8)
        }
        for device in devices { found.entries.append(entries[device]?.finish() ?? []) }
        return found
    }

    /// Collects the events of some devices in a span.
    ///
    /// - Returns: the time up to which the span is incomplete; nil if the query failed.
    private func collect(
        after lower: Int64,
        notAfter upper: Int64,
        _ countEach: Int,
        _ entries: inout [UInt64: HistoryEntries]
    ) -> Int64? {
        var parameters = PostgresParameters(lower, upper, Self.eventRowsMax, Self.eventBundlesMax)
        parameters.append(entries.keys) { Int64(bitPattern: $0) }
        guard let rows = self.query(Self.latestOfDevices, parameters) else { return nil }
        var (counts, ends) = ([Int64](repeating: 0, count: 2), [Int64](repeating: .max, count: 2))
        for row in 0..<rows.count {
            let isBundle = Int(rows.int64(row, 3))
            counts[isBundle] += 1
            ends[isBundle] = min(ends[isBundle], rows.int64(row, 1))
        }
        var cut = lower
        if counts[0] == Self.eventRowsMax { cut = max(cut, ends[0]) }
        if counts[1] == Self.eventBundlesMax { cut = max(cut, ends[1]) }
        for row in 0..<rows.count where rows.int64(row, 1) > cut {
            for event in Self.events(rows.bytes(row, 2)).reversed() {
                guard let count = entries[event.device]?.count, event.isNamePart || count < countEach else { continue }
                entries[event.device]?.append(event)
            }
        }
        return cut
    }

    package func devices(of numbers: Set<UInt64>, _ key: HashKey) -> [UInt64: LoggedDevice]? {
        var found = self.remembered.filter { numbers.contains($0.key) }
        guard found.count < numbers.count else { return found }
        let new = self.find(numbers.filter { found[$0] == nil }, key)
        found.merge(new) { old, _ in old }
        if self.remembered.count + new.count > Self.rememberedMax { self.remembered.removeAll() }
        self.remembered.merge(new) { old, _ in old }
        return found
    }

    /// Returns the devices with these numbers. It computes the number of each stored token, because numbers are hashes.
    private func find(_ numbers: Set<UInt64>, _ key: HashKey) -> [UInt64: LoggedDevice] {
        var tokens: [DeviceToken] = []
        var after: [UInt8] = []
        while tokens.count < numbers.count {
            guard let rows = self.query(Self.tokensInOrder, after, Self.tokensPerPage) else { return [:] }
            for row in 0..<rows.count {
                guard let token = DeviceToken(bytes: rows.bytes(row, 0)) else { continue }
                if numbers.contains(HistoryEvent.device(of: token, key)) { tokens.append(token) }
            }
            guard rows.count == Int(Self.tokensPerPage) else { break }
            after = rows.bytes(rows.count - 1, 0).array
        }
        guard !tokens.isEmpty, let rows = self.query(Self.topicsOfTokens, PostgresList(tokens)) else { return [:] }
        var found: [UInt64: LoggedDevice] = [:]
        for row in 0..<rows.count {
            guard let token = DeviceToken(bytes: rows.bytes(row, 0)) else { continue }
            found[HistoryEvent.device(of: token, key)] = LoggedDevice(token: token, topic: rows.text(row, 1))
        }
        return found
    }
}

// MARK: - Statements

extension PostgresHistory {
    private static let newestMoment = "SELECT max(moment) FROM wakegate.connection"

    private static let newestPushes = """
        SELECT apns, device, at FROM wakegate.push WHERE at > $1::bigint AND at <= $2::bigint
        ORDER BY at DESC LIMIT $3::bigint
        """

    private static let pushesOfMoment = "SELECT apns, device, at FROM wakegate.push WHERE at = $1::bigint"

    private static let newestBundles = """
        SELECT body, at FROM wakegate.bundle WHERE at > $1::bigint AND at <= $2::bigint
        ORDER BY at DESC LIMIT $3::bigint
        """

    private static let bundlesOfMoment = "SELECT body FROM wakegate.bundle WHERE at = $1::bigint"

    private static let eventsOfDevices = """
        SELECT body FROM (
            (SELECT id, body FROM wakegate.event WHERE device = ANY($1::bigint[]) AND at >= $2::bigint
                ORDER BY id LIMIT $3::bigint)
            UNION ALL
            (SELECT b.id, b.body FROM wakegate.bundle b WHERE b.at >= $2::bigint AND EXISTS (
                SELECT FROM unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]) p(one, two, three, four)
                WHERE \(holds(["p.one", "p.two", "p.three", "p.four"])))
                ORDER BY b.id LIMIT $8::bigint)) e
        ORDER BY id
        """

    private static let latestOfDevices = """
        (SELECT id, at, body, 0::bigint FROM wakegate.event
            WHERE device = ANY($5::bigint[]) AND at > $1::bigint AND at <= $2::bigint
            ORDER BY at DESC LIMIT $3::bigint)
        UNION ALL
        (SELECT id, at, body, 1::bigint FROM wakegate.bundle WHERE at > $1::bigint AND at <= $2::bigint
            ORDER BY at DESC LIMIT $4::bigint)
        ORDER BY id DESC
        """

    private static let tokensInOrder = """
        SELECT token FROM wakegate.device WHERE token > $1::bytea ORDER BY token LIMIT $2::integer
        """

    private static let topicsOfTokens = """
        SELECT d.token, t.name FROM wakegate.device d JOIN wakegate.topic t ON t.id = d.topic
        WHERE d.token = ANY($1::bytea[])
        """
}
