package import Policy
package import Wire

/// The time that a push or task waited for its launch, by cause.
package struct Waited: Hashable, Sendable {
    /// The time under one hold.
    package struct Span: Hashable, Sendable {
        package let hold: Hold
        package var milliseconds: Int64

        package init(_ hold: Hold, _ milliseconds: Int64) {
            self.hold = hold
            self.milliseconds = milliseconds
        }
    }

    /// The time without a hold in milliseconds: the waits for the launch interval, the budget and earlier wakes.
    package private(set) var interval: Int64 = 0
    /// The time under each hold, `paused` and `worker` included: the longest first, at most `spansMax`.
    package private(set) var spans: [Span] = []
    /// The hold at the end of the wait; nil for a launch.
    package private(set) var held: Hold?

    /// The maximum number of spans in an event. The time of further spans is added to `interval`.
    static let spansMax = 4

    /// - Parameters:
    ///   - interval: the time without a hold, in milliseconds.
    ///   - times: the time under each hold; a hold may occur several times.
    ///   - held: the hold at the end of the wait, if it ended without a launch.
    package init(interval: Int64, times: [Span], held: Hold? = nil) {
        self.interval = interval
        self.held = held
        for span in times where span.milliseconds > 0 || span.hold == held {
            if let place = self.spans.firstIndex(where: { $0.hold == span.hold }) {
                self.spans[place].milliseconds += span.milliseconds
            } else {
                self.spans.append(span)
            }
        }
        if let held, !self.spans.contains(where: { $0.hold == held }) { self.spans.append(Span(held, 0)) }
        // The hold at the end of the wait sorts first, so that it is always among the spans.
        self.spans.sort { ($0.hold == held ? 1 : 0, $0.milliseconds) > ($1.hold == held ? 1 : 0, $1.milliseconds) }
        while self.spans.count > Self.spansMax { self.interval += self.spans.removeLast().milliseconds }
    }

    package func milliseconds(_ hold: Hold) -> Int64 { self.spans.first { $0.hold == hold }?.milliseconds ?? 0 }

    /// The wait in words, such as `10 min interval, 5 min battery`; nil if there was none.
    package var text: String? {
        let spans =
            (self.interval > 0 ? [(self.interval, "interval")] : [])
            + self.spans.map { ($0.milliseconds, "\($0.hold.name)") }
        let parts = spans.filter { $0.0 > 0 }.map { "\(DurationText.text(milliseconds: $0.0)) \($0.1)" }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }
}

// MARK: - Stored

/// The stored form of a wait, in the field for a related push. Launches and discards have no related push.
///
/// The lower half of the first word is the interval in milliseconds. Its upper half, both halves of the second word and
/// `upperCase` are a span each. Bits 0 to 3 of a span are the hold's code, and bit 4 is set for the hold at the end.
/// Bits 6 to 31 are milliseconds, or units of 64 milliseconds if bit 5 is set. Longer times are stored as the maximum.
extension Waited {
    private static let unit: Int64 = 64
    private static let amountMax: Int64 = (1 << 26) - 1

    /// The stored form of the wait; nil if there was none.
    package var stored: APNsID? {
        guard self.interval > 0 || !self.spans.isEmpty else { return nil }
        func word(_ place: Int) -> UInt64 { place < self.spans.count ? UInt64(self.code(self.spans[place])) : 0 }
        return APNsID(
            first: UInt64(UInt32(clamping: self.interval)) | word(0) << 32,
            second: word(1) | word(2) << 32,
            upperCase: UInt32(word(3))
        )
    }

    private func code(_ span: Span) -> UInt32 {
        let isCoarse = span.milliseconds > Self.amountMax
        let amount = isCoarse ? min(span.milliseconds / Self.unit, Self.amountMax) : span.milliseconds
        return UInt32(span.hold.eventCode) | (span.hold == self.held ? 1 << 4 : 0)
            | (isCoarse ? 1 << 5 : 0) | UInt32(clamping: amount) << 6
    }

    /// Decodes the stored form of a wait.
    package init(stored: APNsID) {
        self.interval = Int64(UInt32(truncatingIfNeeded: stored.first))
        let words = [stored.first >> 32, stored.second, stored.second >> 32, UInt64(stored.upperCase)]
        for word in words.map({ UInt32(truncatingIfNeeded: $0) }) {
            guard let hold = Hold.eventCodes.element(code: UInt8(word & 15)) else { continue }
            self.spans.append(Span(hold, Int64(word >> 6) * (word & 1 << 5 == 0 ? 1 : Self.unit)))
            if word & 1 << 4 != 0 { self.held = hold }
        }
    }
}

extension Hold {
    /// The holds of pushes and tasks in the order of their codes in events, which start at 1.
    static let eventCodes: [Hold] = [
        .forceQuit, .backgroundRefresh, .active, .network, .power, .lowPower, .thermal, .battery, .usage, .priority,
        .worker, .paused, .memory,
    ]
    /// The codes in the order of the raw values: every launch stores some.
    private static let codesInOrder = Hold.allCases.map { eventCodes.code($0) }

    /// The code of the hold in events.
    var eventCode: UInt8 { Self.codesInOrder[Int(self.rawValue)] }
}

// MARK: - While it waits

/// The past holds of a pending push or task.
///
/// A push gets a log when its hold first changes or its wake ends in a retry. Before that, the device's state suffices.
final class WaitLog {
    /// The start of the wait.
    let start: Instant
    private(set) var hold: Hold?
    /// The time of the last change of the hold; the start if there was none.
    private(set) var changedAt: Instant
    /// The holds that have ended.
    private var ended: [Waited.Span] = []

    /// - `hold`: the hold since the beginning of the wait.
    init(start: Instant, _ hold: Hold? = nil) {
        self.start = start
        self.hold = hold
        self.changedAt = start
    }

    /// Records that another hold applies from now on, or none.
    func change(to hold: Hold?, at now: Instant) {
        guard hold != self.hold else { return }
        self.ended = self.times(until: now)
        self.hold = hold
        self.changedAt = now
    }

    /// Returns the time under each hold.
    func times(until now: Instant) -> [Waited.Span] {
        guard let hold = self.hold else { return self.ended }
        let time = max(0, now.milliseconds - self.changedAt.milliseconds)
        return Waited(interval: 0, times: self.ended + [Waited.Span(hold, time)]).spans
    }

    /// Stores the start of the wait and of the current hold (8 bytes each) and the code of the hold (1, 0 for none).
    /// The number of ended holds (1) follows, and for each its code (1) and milliseconds (8).
    func store(to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(self.start.milliseconds)
        buffer.appendLittleEndian(self.changedAt.milliseconds)
        buffer.append(self.hold?.eventCode ?? 0)
        buffer.append(UInt8(self.ended.count))
        for span in self.ended {
            buffer.append(span.hold.eventCode)
            buffer.appendLittleEndian(span.milliseconds)
        }
    }

    /// Reads the log that `store` wrote; returns nil for anything else.
    init?(_ reader: inout RecordReader) {
        self.start = reader.moment()
        self.changedAt = reader.moment()
        let code: UInt8 = reader.integer()
        self.hold = Hold.eventCodes.element(code: code)
        guard self.hold != nil || code == 0 else { return nil }
        for _ in 0..<reader.integer(0...UInt8(Waited.spansMax)) {
            guard let hold = Hold.eventCodes.element(code: reader.integer()) else { return nil }
            self.ended.append(Waited.Span(hold, reader.count()))
        }
    }
}

extension Waited {
    /// Returns the sum of this wait and a later one of the same push.
    package func joined(_ other: Waited) -> Waited {
        Waited(interval: self.interval + other.interval, times: self.spans + other.spans, held: other.held)
    }
}

extension DeviceEngine {
    /// Records the name of the worker that received a wake.
    func given(_ wake: WakeID, to worker: String) {
        guard let device = self.wakes.device(of: wake) else { return }
        let isPush = self.devices[device].wake == wake
        let push = isPush ? self.devices[device].state.inFlight.flatMap { PushContent($0.push.handle)?.apnsID } : nil
        if !isPush || push != nil {
            self.events.append(device, worker: worker, push, at: self.now, in: self.devices)
        }
    }

    /// Returns the wait of a push that is discarded on arrival: zero milliseconds under the hold that applies to it.
    func waited(_ device: DeviceIndex, arriving priority: Priority) -> Waited {
        let record = self.devices[device]
        let (state, parameters) = (record.state, self.parameters(record.topic))
        let highest = max(priority, state.pending?.priority ?? priority)
        let answer = PushAnswer(
            .discarded,
            heldBy: state.hold(highest, parameters),
            eligibleAt: state.eligibleAt(highest, parameters),
            isLaneFull: self.isShortLaneFull(device),
            isPaused: self.isPaused(record.topic),
            at: self.now
        )
        return Waited(interval: 0, times: [], held: answer.held)
    }

    /// Returns the wait of a task whose wait ends now.
    ///
    /// - `isLaunched`: true if it is launched, false if it is dropped.
    func waited(_ device: DeviceIndex, _ task: BackgroundTask, isLaunched: Bool) -> Waited {
        let row = self.tasks.row(device)
        return self.waited(
            row.note(task)?.wait ?? WaitLog(start: task.waitsSince),
            readySince: row.readySince(task.arrival),
            self.devices[device].topic,
            isLaunched: isLaunched
        )
    }

    /// Records that the hold of a device's push was `before` and has changed.
    func noteHold(_ device: DeviceIndex, _ before: Hold?, wasPending: Bool) {
        let record = self.devices[device]
        guard let pending = record.state.pending else { return }
        let hold = record.held == .worker ? nil : record.held
        if record.wait == nil {
            let before = before == .worker ? nil : before
            // A push needs no log until its first hold changes.
            guard wasPending, hold != before else { return }
            self.devices[device].wait = WaitLog(start: pending.firstReceivedAt, before)
        }
        self.devices[device].wait?.change(to: hold, at: self.now)
    }

    /// Returns the wait of a push whose wait ends now. Call this before the device's hold is updated.
    ///
    /// - `isLaunched`: true if it is launched, false if it is discarded.
    func waited(_ device: DeviceIndex, _ push: PendingPush, isLaunched: Bool) -> Waited {
        let record = self.devices[device]
        let log = record.wait
        if log != nil { self.devices[device].wait = nil }
        let hold = record.held == .worker ? nil : record.held
        return self.waited(
            log ?? WaitLog(start: push.firstReceivedAt, hold),
            readySince: record.isReady ? self.readySince(device) : nil,
            record.topic,
            isLaunched: isLaunched
        )
    }

    /// Returns the wait that ends now.
    ///
    /// - `readySince`: the time since which only a free slot was missing; nil if anything else was missing.
    func waited(_ log: WaitLog, readySince: Instant?, _ topic: TopicIndex, isLaunched: Bool) -> Waited {
        let times = log.times(until: self.now)
        var rest = times.reduce(self.now.milliseconds - log.start.milliseconds) { $0 - $1.milliseconds }
        let paused = min(max(0, rest), self.topics.pausedMilliseconds(topic, since: log.start, until: self.now))
        rest -= paused
        var worker: Int64 = 0
        if let ready = readySince.map({ max($0, log.start) }) {
            let pausedSince = self.topics.pausedMilliseconds(topic, since: ready, until: self.now)
            worker = min(max(0, rest), self.now.milliseconds - ready.milliseconds - pausedSince)
        }
        return Waited(
            interval: max(0, rest - worker),
            times: times + [Waited.Span(.paused, paused), Waited.Span(.worker, worker)],
            held: isLaunched ? nil : self.isPaused(topic) ? .paused : log.hold ?? readySince.map { _ in .worker }
        )
    }
}
