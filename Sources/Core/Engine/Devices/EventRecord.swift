package import Policy
package import Wire

/// The events of one commit, as a store retains them until the history has made them durable.
///
/// Integers are little-endian, and sizes are in bytes. A record is a version (1), its sequence number (8), the
/// fingerprint of the history's key (8), the number of events (4), and the events. An event is its code (1), flags (1),
/// and the fields that differ from the previous event. The flags announce these fields:
///
/// - device (8) and time (8);
/// - attempt and coalesced count (2 each);
/// - the identifiers of the push and of the related push (16 each, and 4 if letters are in upper case).
///
/// A part of a name is written like an event with push identifiers, but no later event refers to its bytes.
package struct EventRecord {
    /// The description of a malformed record, as a clause.
    package struct Fault: Error, Hashable {
        package let clause: String

        package init(clause: String) {
            self.clause = clause
        }
    }

    /// The maximum size of a record that `write` makes, in bytes.
    package static let bytesMax = 65_536
    /// The maximum number of events that `write` puts into one record.
    package static let eventsMax = 4096

    fileprivate static let version: UInt8 = 1
    fileprivate static let headerBytes = 21
    /// The maximum size of one event, in bytes.
    fileprivate static let eventBytesMax = 2 + 8 + 8 + 4 + 2 * 20

    /// The maximum sequence number that is accepted, so that later numbers cannot overflow.
    package static let sequenceMax: UInt64 = 1 << 62
    /// The number of sequence numbers for each second. A store that restarts its numbering begins with the first number
    /// of the current second.
    package static let sequencesOfSecond: UInt64 = 1 << 30

    /// The sequence number, from 1 to `sequenceMax`. Each record of a store has the number after the previous one.
    package let sequence: UInt64
    /// The fingerprint of the key by which the devices are numbered: `HistoryEvent.mark(of:)`.
    package let keyMark: UInt64
    package let eventCount: Int
    private let content: ByteView

    /// Reads the header. `read` decodes the events.
    package init(_ content: ByteView) throws(Fault) {
        guard content.count >= Self.headerBytes else { throw Fault(clause: "is cut off after \(content.count) bytes") }
        guard content[0] == Self.version else {
            throw Fault(clause: "has version \(content[0]), and this build reads version \(Self.version)")
        }
        self.content = content
        self.sequence = content.word(at: 1)
        self.keyMark = content.word(at: 9)
        self.eventCount = Int(content.halfWord(at: 17))
        guard self.sequence > 0, self.sequence <= Self.sequenceMax else {
            throw Fault(clause: "has the sequence number \(self.sequence)")
        }
        guard self.eventCount > 0 else { throw Fault(clause: "has no events") }
    }

    /// Returns true if numbering was restarted between two consecutive records. Their gap then hides no missing
    /// records.
    package static func isBeginning(_ sequence: UInt64, after last: UInt64) -> Bool {
        sequence > last && sequence - last > self.sequencesOfSecond / 2
    }

    /// Returns the key of the record in a batch.
    package static func key(_ sequence: UInt64) -> RecordKey {
        RecordKey(.events, UInt32(truncatingIfNeeded: sequence))
    }

    /// Appends the content of a record with events from `start` on, as many as fit.
    ///
    /// - `bytesMax`: the maximum size of the record in bytes; it must exceed the size of one event with its name.
    /// - Returns: the index of the first event that did not fit. A name is never separated from its event.
    package static func write(
        _ events: [HistoryEvent],
        from start: Int,
        sequence: UInt64,
        keyMark: UInt64,
        bytesMax: Int = Self.bytesMax,
        to buffer: inout ByteBuffer
    ) -> Int {
        let offset = buffer.count
        buffer.append(self.version)
        buffer.append(word: sequence)
        buffer.append(word: keyMark)
        buffer.append(halfWord: 0)
        var writer = EventWriter()
        var place = start
        while place < events.count {
            // A name and its event are in one record, so that no event loses its name or gets another's.
            let count = 1 + events[place].followers
            guard place + count <= start + self.eventsMax,
                buffer.count - offset + count * self.eventBytesMax <= bytesMax
            else { break }
            writer.write(events[place], to: &buffer)
            place += 1
        }
        buffer.overwrite(memoryOf: UInt32(place - start).littleEndian, at: offset + 17)
        return place
    }

    /// Calls `body` with every event, in order.
    ///
    /// - Throws: if the record is malformed; events that were already passed to `body` must then be discarded.
    package func read(_ body: (HistoryEvent) -> Void) throws(Fault) {
        var reader = EventReader(self.content.dropFirst(Self.headerBytes))
        for number in 0..<self.eventCount {
            guard let event = reader.next() else {
                throw Fault(clause: "does not hold together at event \(number) of \(self.eventCount)")
            }
            body(event)
        }
        guard reader.isAtEnd else { throw Fault(clause: "has bytes after its last event") }
    }
}

/// The parts of an event that are present.
private struct EventParts: OptionSet {
    let rawValue: UInt8

    static let device = EventParts(rawValue: 1 << 0)
    static let time = EventParts(rawValue: 1 << 1)
    static let numbers = EventParts(rawValue: 1 << 2)
    static let apnsID = EventParts(rawValue: 1 << 3)
    /// The event's push is the last push named by an earlier event.
    static let sameAPNsID = EventParts(rawValue: 1 << 4)
    static let related = EventParts(rawValue: 1 << 5)
    /// The event's related push is the last push named by an earlier event.
    static let sameRelated = EventParts(rawValue: 1 << 6)
    /// Each identifier is followed by four bytes of upper-case bits.
    static let upperCase = EventParts(rawValue: 1 << 7)
}

private struct EventWriter {
    private var device: UInt64 = 0
    private var at = Instant(milliseconds: 0)
    private var named: APNsID?
    private var isFirst = true

    @inline(__always)
    mutating func write(_ event: HistoryEvent, to buffer: inout ByteBuffer) {
        let parts = self.parts(event)
        buffer.append(memoryOf: (UInt16(parts.rawValue) << 8 | UInt16(event.code)).littleEndian)
        if parts.contains(.device) { buffer.append(word: event.device) }
        if parts.contains(.time) { buffer.append(word: UInt64(bitPattern: event.at.milliseconds)) }
        if parts.contains(.numbers) {
            buffer.append(halfWord: UInt32(event.coalesced) << 16 | UInt32(event.attempt))
        }
        if let apnsID = event.apnsID {
            if parts.contains(.apnsID) { Self.write(apnsID, parts, to: &buffer) }
            if !event.isNamePart { self.named = apnsID }
        }
        if let related = event.related, parts.contains(.related) { Self.write(related, parts, to: &buffer) }
        self.device = event.device
        self.at = event.at
        self.isFirst = false
    }

    @inline(__always)
    private func parts(_ event: HistoryEvent) -> EventParts {
        var parts: EventParts = []
        if self.isFirst || event.device != self.device { parts.insert(.device) }
        if self.isFirst || event.at != self.at { parts.insert(.time) }
        if event.attempt | event.coalesced != 0 { parts.insert(.numbers) }
        var upperCase: UInt32 = 0
        if let apnsID = event.apnsID {
            if let named = self.named, apnsID.isSpelled(as: named) {
                parts.insert(.sameAPNsID)
            } else {
                parts.insert(.apnsID)
                upperCase = apnsID.upperCase
            }
        }
        if let related = event.related {
            if let named = self.named, related.isSpelled(as: named) {
                parts.insert(.sameRelated)
            } else {
                parts.insert(.related)
                upperCase |= related.upperCase
            }
        }
        if upperCase != 0 { parts.insert(.upperCase) }
        return parts
    }

    @inline(__always)
    private static func write(_ apnsID: APNsID, _ parts: EventParts, to buffer: inout ByteBuffer) {
        buffer.append(word: apnsID.first)
        buffer.append(word: apnsID.second)
        if parts.contains(.upperCase) { buffer.append(halfWord: apnsID.upperCase) }
    }
}

private struct EventReader {
    private var reader: RecordReader
    private var isFirst = true
    private var device: UInt64 = 0
    private var at = Instant(milliseconds: 0)
    private var named: APNsID?

    init(_ bytes: ByteView) {
        self.reader = RecordReader(bytes)
    }

    var isAtEnd: Bool { self.reader.isWhole }

    /// Reads the next event; nil if it is incomplete or malformed.
    mutating func next() -> HistoryEvent? {
        let first: UInt16 = self.reader.integer()
        let parts = EventParts(rawValue: UInt8(first >> 8))
        guard self.isPossible(parts) else { return nil }
        if parts.contains(.device) { self.device = self.reader.integer() }
        if parts.contains(.time) { self.at = Instant(milliseconds: self.reader.integer()) }
        let numbers: UInt32 = parts.contains(.numbers) ? self.reader.integer() : 0
        let before = self.named
        var apnsID: APNsID?
        if parts.contains(.apnsID) { apnsID = self.identifier(parts) }
        if parts.contains(.sameAPNsID) { apnsID = before }
        var related: APNsID?
        if parts.contains(.related) { related = self.identifier(parts) }
        if parts.contains(.sameRelated) { related = before }
        self.isFirst = false
        guard !self.reader.isShort else { return nil }
        let event = HistoryEvent(
            device: self.device,
            at: self.at,
            code: UInt8(truncatingIfNeeded: first),
            attempt: UInt16(truncatingIfNeeded: numbers),
            coalesced: UInt16(numbers >> 16),
            apnsID: apnsID,
            related: related
        )
        if let event, let apnsID, !event.isNamePart { self.named = apnsID }
        return event
    }

    private func isPossible(_ parts: EventParts) -> Bool {
        if self.isFirst, !parts.isSuperset(of: [.device, .time]) { return false }
        if parts.isSuperset(of: [.apnsID, .sameAPNsID]) || parts.isSuperset(of: [.related, .sameRelated]) {
            return false
        }
        if self.named == nil, !parts.isDisjoint(with: [.sameAPNsID, .sameRelated]) { return false }
        return !parts.contains(.upperCase) || !parts.isDisjoint(with: [.apnsID, .related])
    }

    private mutating func identifier(_ parts: EventParts) -> APNsID {
        let (first, second): (UInt64, UInt64) = (self.reader.integer(), self.reader.integer())
        return APNsID(first: first, second: second, upperCase: parts.contains(.upperCase) ? self.reader.integer() : 0)
    }
}

/// Events of devices for the history that `take` has not returned. The history identifies a device by a number.
package struct EventQueue: ~Copyable {
    /// The key of the hash from device tokens to numbers. The device table uses the same hash.
    package let key: HashKey
    /// The device that was found or had an event last, and its number. Consecutive queries are often about one device.
    private var lastNumbered: (device: DeviceIndex, number: UInt64) = (.none, 0)
    private var events: [HistoryEvent] = []

    /// Creates an empty queue.
    ///
    /// - `key`: the key of the history.
    package init(key: HashKey) {
        self.key = key
    }

    /// True if nothing was added since the last call of `take`.
    package var isEmpty: Bool { self.events.isEmpty }

    /// Caches the number of a device that was found.
    package mutating func found(_ device: DeviceIndex, number: UInt64) { self.lastNumbered = (device, number) }

    /// Adds an event of a device, and sets the event's number of the device.
    ///
    /// - `name`: the identifier of the event's task, or the name of its session, of 1...255 bytes; other lengths are
    ///   not stored.
    package mutating func append(
        _ event: consuming HistoryEvent,
        of device: DeviceIndex,
        name: String? = nil,
        in devices: borrowing DeviceTable
    ) {
        event.device = self.number(device, devices)
        if let name { NameParts.append(name, device: event.device, at: event.at, to: &self.events) }
        self.events.append(event)
    }

    /// Appends the name of the worker that received the wake of a push, or of the task launched last.
    mutating func append(
        _ device: DeviceIndex,
        worker name: String,
        _ push: APNsID?,
        at now: Instant,
        in devices: borrowing DeviceTable
    ) {
        NameParts.append(worker: name, push, device: self.number(device, devices), at: now, to: &self.events)
    }

    private mutating func number(_ device: DeviceIndex, _ devices: borrowing DeviceTable) -> UInt64 {
        if self.lastNumbered.device != device {
            self.lastNumbered = (device, HistoryEvent.device(of: devices[device].token.token, self.key))
        }
        return self.lastNumbered.number
    }

    /// Clears the cache, because devices get new positions.
    package mutating func forgetDevices() { self.lastNumbered = (.none, 0) }

    /// Appends the events since the last call to `events`, in order.
    package mutating func take(into events: inout [HistoryEvent]) {
        if events.isEmpty { swap(&events, &self.events) } else { events += self.events }
        self.events.removeAll(keepingCapacity: true)
    }
}

/// An event for watchers, with names where the history has numbers.
package struct WatchedEvent: Sendable {
    package enum Kind: Hashable, Sendable {
        /// An event that is also in the history.
        case kept(HistoryEvent.Kind)
        /// A push was refused for the reason with this number.
        case refused(reason: Int)
        /// The topic was paused and launches nothing.
        case paused
        case resumed
        /// A stream opened; `name` describes it. A stream that names several devices has an event for each.
        case subscribed
    }

    /// Milliseconds since 1970.
    package let at: Int64
    package let kind: Kind
    /// The name of the topic; empty if the request named none.
    package let topic: String
    /// The device; nil for events without one.
    package let device: DeviceToken?
    package let apnsID: APNsID?
    /// The other push of a coalescing; for a launch or a drop, the wait in the form of `HistoryEvent.related`.
    package let related: APNsID?
    package let wake: WakeID?
    /// The identifier of a task, the name of a session, or the description of a stream.
    package let name: String?
    /// The conditions that a report changed.
    package let changed: ConditionsReport?

    package init(
        at: Int64,
        kind: Kind,
        topic: String,
        device: DeviceToken? = nil,
        apnsID: APNsID? = nil,
        related: APNsID? = nil,
        wake: WakeID? = nil,
        name: String? = nil,
        changed: ConditionsReport? = nil
    ) {
        self.at = at
        self.kind = kind
        self.topic = topic
        self.device = device
        self.apnsID = apnsID
        self.related = related
        self.wake = wake
        self.name = name
        self.changed = changed
    }
}

/// Events for watchers, in order, and the number of events after them that were dropped.
package struct WatchedEvents: Sendable {
    /// The maximum number of events that wait for the end of a commit, about 2 MB.
    private static let countMax = 8192

    package private(set) var events: [WatchedEvent] = []
    package private(set) var missed = 0

    package init() {}

    package var isEmpty: Bool { self.events.isEmpty && self.missed == 0 }

    /// Adds an event, or counts it as missed if the buffer is full.
    package mutating func append(_ event: WatchedEvent) {
        if self.missed == 0, self.events.count < Self.countMax {
            self.events.append(event)
        } else {
            self.missed += 1
        }
    }

    /// Moves all events of `others` to this value.
    package mutating func append(_ others: inout WatchedEvents) {
        if self.isEmpty {
            swap(&self, &others)
        } else {
            for event in others.events { self.append(event) }
            self.missed += others.missed
        }
        others.removeAll()
    }

    package mutating func removeAll() {
        // Releases the memory: watchers may be absent for a long time.
        self.events = []
        self.missed = 0
    }
}

extension DeviceEngine {
    /// Starts or stops the collection of events for watchers.
    ///
    /// - `offset`: wall clock minus policy time; nil without watchers.
    /// - `now`: the current time, for events between the steps of a shared store.
    package func watch(_ offset: WallOffset?, at now: Instant) {
        self.watchOffset = offset
        self.watchedAt = now
    }

    /// Moves the events since the last call to `events`.
    package func takeWatched(into events: inout WatchedEvents) {
        if !self.watched.isEmpty { events.append(&self.watched) }
    }

    /// Records a refused push for watchers.
    package func noteRefused(_ token: DeviceToken, _ apnsID: APNsID, topic: ByteView, reason: Int) {
        guard let offset = self.watchOffset else { return }
        self.watched.append(
            WatchedEvent(
                at: offset.wall(max(self.now, self.watchedAt)),
                kind: .refused(reason: reason),
                topic: topic.string,
                device: token,
                apnsID: apnsID
            )
        )
    }

    /// Records for watchers that a topic was paused or resumed.
    package func notePaused(_ topic: TopicIndex, _ isPaused: Bool) {
        guard let offset = self.watchOffset else { return }
        let kind: WatchedEvent.Kind = isPaused ? .paused : .resumed
        // With a shared store, the engine's `now` is the time of its last transaction.
        let moment = offset.wall(max(self.now, self.watchedAt))
        self.watched.append(WatchedEvent(at: moment, kind: kind, topic: self.topics.name(topic)))
    }

    /// Records an event of the history for watchers.
    func watch(
        _ device: DeviceIndex,
        _ kind: HistoryEvent.Kind,
        _ apnsID: APNsID?,
        related: APNsID? = nil,
        wake: WakeID? = nil,
        name: String? = nil,
        changed: ConditionsReport? = nil,
        _ offset: WallOffset
    ) {
        let record = self.devices[device]
        self.watched.append(
            WatchedEvent(
                at: offset.wall(self.now),
                kind: .kept(kind),
                topic: self.topics.name(record.topic),
                device: record.token.token,
                apnsID: apnsID,
                related: related,
                wake: wake,
                name: name,
                changed: changed
            )
        )
    }
}
