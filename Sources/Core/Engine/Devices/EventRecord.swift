package import Policy
package import Wire

/// Events of one commit as a store keeps them, until the history has made them durable.
///
/// A record is a version (1 byte), its sequence number (8), the mark of the history's key (8), the number of its events
/// (4), and the events. An event is its code (1), flags (1), and what the flags say that it does not share with the
/// event before it: device (8), time (8), attempt and coalesced count (2 each), the identifiers of the push and the
/// related one (16 each, and 4 where letters are in upper case). The parts of a name are written as events that name
/// pushes are, and are none that an event before them named. All integers are little-endian.
package struct EventRecord {
    /// What is wrong with a record, as a clause.
    package struct Fault: Error, Hashable {
        package let clause: String

        package init(clause: String) {
            self.clause = clause
        }
    }

    /// The most bytes that `write` makes one record of.
    package static let bytesMax = 65_536
    /// The most events that `write` puts into one record.
    package static let eventsMax = 4096

    fileprivate static let version: UInt8 = 1
    fileprivate static let headerBytes = 21
    /// The most bytes that one event takes.
    fileprivate static let eventBytesMax = 2 + 8 + 8 + 4 + 2 * 20

    /// The highest number that a record can have: from there on its followers can be counted for ever.
    package static let sequenceMax: UInt64 = 1 << 62
    /// The numbers that a second has for records, where they begin anew with those of the second.
    package static let sequencesOfSecond: UInt64 = 1 << 30

    /// Grows by one from each record of a store to the next; from 1 to `sequenceMax`.
    package let sequence: UInt64
    /// The mark of the key that its devices are numbered with: `HistoryEvent.mark(of:)`.
    package let keyMark: UInt64
    package let eventCount: Int
    private let content: ByteView

    /// Reads the header; the events are read by `read`.
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

    /// Whether the numbers began anew between two that follow one another: records are not missing in such numbers.
    package static func isBeginning(_ sequence: UInt64, after last: UInt64) -> Bool {
        sequence > last && sequence - last > self.sequencesOfSecond / 2
    }

    /// The key of the record in a batch.
    package static func key(_ sequence: UInt64) -> RecordKey {
        RecordKey(.events, UInt32(truncatingIfNeeded: sequence))
    }

    /// Appends the content of a record with the events from `start` on, as many as one record takes.
    ///
    /// - `bytesMax`: the most bytes of the record, more than one event and its name take.
    /// - Returns: the place of the first event that it did not take; no name is cut off from its event.
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
            // A name and its event are in one record: no event is found without its name, nor with another's.
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

    /// Hands over every event in order.
    ///
    /// - Throws: when there is something that `write` does not write; what was handed over may then not be used.
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

/// Which parts of an event are written.
private struct EventParts: OptionSet {
    let rawValue: UInt8

    static let device = EventParts(rawValue: 1 << 0)
    static let time = EventParts(rawValue: 1 << 1)
    static let numbers = EventParts(rawValue: 1 << 2)
    static let apnsID = EventParts(rawValue: 1 << 3)
    /// The push is the one that an event before it named last.
    static let sameAPNsID = EventParts(rawValue: 1 << 4)
    static let related = EventParts(rawValue: 1 << 5)
    /// The related push is the one that an event before it named last.
    static let sameRelated = EventParts(rawValue: 1 << 6)
    /// Behind every identifier that is written stand four bytes of upper-case bits.
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

    /// nil when there is no whole event that a writer writes.
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

/// What happened to devices and was not yet taken for the history, which knows each by a number.
package struct EventQueue: ~Copyable {
    /// Makes the numbers of devices, by which they are found, too.
    package let key: HashKey
    /// The device that was found or had an event last, and its number: what is asked of one device is asked several
    /// times in a row.
    private var lastNumbered: (device: DeviceIndex, number: UInt64) = (.none, 0)
    private var events: [HistoryEvent] = []

    /// No events.
    ///
    /// - `key`: the key of the history that they go to.
    package init(key: HashKey) {
        self.key = key
    }

    /// Something happened since `take` was last called.
    package var isEmpty: Bool { self.events.isEmpty }

    /// A device was found, and by this number.
    package mutating func found(_ device: DeviceIndex, number: UInt64) { self.lastNumbered = (device, number) }

    /// Something happened to a device.
    package mutating func append(
        _ device: DeviceIndex,
        _ kind: HistoryEvent.Kind,
        _ apnsID: APNsID?,
        related: APNsID? = nil,
        terms: PushTerms? = nil,
        at now: Instant,
        in devices: borrowing DeviceTable
    ) {
        let number = self.number(device, devices)
        self.events.append(
            HistoryEvent(device: number, at: now, kind: kind, apnsID: apnsID, related: related, terms: terms)
        )
    }

    /// Something happened to a task or a session of a device.
    ///
    /// - `name`: the identifier, or the session's name, of 1...255 bytes; one of another length is not kept.
    package mutating func append(
        _ device: DeviceIndex,
        _ kind: HistoryEvent.Kind,
        name: String,
        at now: Instant,
        in devices: borrowing DeviceTable
    ) {
        let number = self.number(device, devices)
        NameParts.append(name, device: number, at: now, to: &self.events)
        self.events.append(HistoryEvent(device: number, at: now, kind: kind))
    }

    private mutating func number(_ device: DeviceIndex, _ devices: borrowing DeviceTable) -> UInt64 {
        if self.lastNumbered.device != device {
            self.lastNumbered = (device, HistoryEvent.device(of: devices[device].token.token, self.key))
        }
        return self.lastNumbered.number
    }

    /// Devices have other places from here on.
    package mutating func forgetDevices() { self.lastNumbered = (.none, 0) }

    /// Appends to `events` what happened since the last call, in its order.
    package mutating func take(into events: inout [HistoryEvent]) {
        if events.isEmpty { swap(&events, &self.events) } else { events += self.events }
        self.events.removeAll(keepingCapacity: true)
    }
}

/// One thing that happened, for those who follow what happens: with names, where the history has numbers.
package struct WatchedEvent: Sendable {
    package enum Kind: Hashable, Sendable {
        /// Something that the history keeps, too.
        case kept(HistoryEvent.Kind)
        /// A push was refused, for the reason of this number.
        case refused(reason: Int)
        /// A topic launches nothing by itself from now on.
        case paused
        case resumed
    }

    /// In milliseconds since 1970.
    package let at: Int64
    package let kind: Kind
    /// Empty when none was named.
    package let topic: String
    /// nil of what happens to no device.
    package let device: DeviceToken?
    package let apnsID: APNsID?
    /// The other push of a coalescing.
    package let related: APNsID?
    package let wake: WakeID?
    /// The identifier of a task, or the name of a session.
    package let name: String?

    package init(
        at: Int64,
        kind: Kind,
        topic: String,
        device: DeviceToken? = nil,
        apnsID: APNsID? = nil,
        related: APNsID? = nil,
        wake: WakeID? = nil,
        name: String? = nil
    ) {
        self.at = at
        self.kind = kind
        self.topic = topic
        self.device = device
        self.apnsID = apnsID
        self.related = related
        self.wake = wake
        self.name = name
    }
}

/// Events for those who follow them, in their order, and how many there was no room for behind these.
package struct WatchedEvents: Sendable {
    /// The most that wait for the end of a commit, some 2 MB.
    private static let countMax = 8192

    package private(set) var events: [WatchedEvent] = []
    package private(set) var missed = 0

    package init() {}

    package var isEmpty: Bool { self.events.isEmpty && self.missed == 0 }

    /// Takes an event, or counts it where there is no room.
    package mutating func append(_ event: WatchedEvent) {
        if self.missed == 0, self.events.count < Self.countMax {
            self.events.append(event)
        } else {
            self.missed += 1
        }
    }

    /// Takes over everything of others, which are empty afterwards.
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
        // Nobody may come to follow events for months.
        self.events = []
        self.missed = 0
    }
}

extension EmbeddedEngine {
    /// Somebody follows what happens, or nobody does.
    ///
    /// - `offset`: wall clock minus policy time; nil when nobody follows.
    /// - `now`: the present, which a step of a shared store does not go on to by itself.
    package func watch(_ offset: WallOffset?, at now: Instant) {
        self.watchOffset = offset
        self.watchedAt = now
    }

    /// Hands over what happened since the last call, for those who follow it.
    package func takeWatched(into events: inout WatchedEvents) {
        if !self.watched.isEmpty { events.append(&self.watched) }
    }

    /// A push was refused, which somebody may follow.
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

    /// A topic was paused, or launches by itself again, which somebody may follow.
    package func notePaused(_ topic: TopicIndex, _ isPaused: Bool) {
        guard let offset = self.watchOffset else { return }
        let kind: WatchedEvent.Kind = isPaused ? .paused : .resumed
        // In a shared store the present of the engine is that of its last transaction.
        let moment = offset.wall(max(self.now, self.watchedAt))
        self.watched.append(WatchedEvent(at: moment, kind: kind, topic: self.topics.name(topic)))
    }

    /// Something happened that the history keeps, and somebody follows it.
    func watch(
        _ device: DeviceIndex,
        _ kind: HistoryEvent.Kind,
        _ apnsID: APNsID?,
        related: APNsID? = nil,
        wake: WakeID? = nil,
        name: String? = nil,
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
                name: name
            )
        )
    }
}
