package import Policy
package import Wire

/// One event of one device in the history: 64 bytes of plain memory.
package struct HistoryEvent: BitwiseCopyable, Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case registered
        case removed
        case push(Disposition)
        /// - `coalesced`: the number of pushes coalesced into the launched push; 0 for other kinds.
        case launch(LaunchKind, attempt: UInt16, coalesced: UInt16 = 0)
        case result(LaunchOutcome)
        /// A push, a request, or the transfers of a session ended without a result.
        case discard(LaunchKind, DiscardReason)
        case conditions
        /// A worker extended its wake, which then had `seconds` left.
        case extended(LaunchKind, seconds: UInt16)
        /// A request was accepted.
        case taskSubmitted(TaskKind, TaskDisposition)
        /// A request, or finished transfers, were refused.
        case taskRefused(TaskKind, TaskRejection)
        /// Transfers of a session finished.
        case transfersFinished(count: UInt16)
        /// Up to 16 bytes of the name of the worker that received the wake of the event's push; without a push, the
        /// wake of the task launched last.
        ///
        /// - `length`: the length of the whole name, in bytes.
        /// - `place`: the number of the part, from 0.
        case worker(length: UInt8, place: UInt8)
        /// A worker's stream opened. The event's name describes the stream. `device` is a number from
        /// `HistoryEvent.streams`, and readers add the event to the logs of the stream's devices.
        case subscribed
        /// Up to 32 bytes of the name that belongs to the next event.
        ///
        /// - `length`: the length of the whole name, in bytes.
        /// - `place`: the zero-based number of the part.
        case namePart(length: UInt8, place: UInt8)
    }

    /// The number of the device: `device(of:_:)` of its token.
    package var device: UInt64
    /// The time, in policy time.
    package let at: Instant
    /// The push of the event, if there is one. In a part of a name: the first 16 bytes of the part.
    package let apnsID: APNsID?
    /// The kind of event, as a number that may be stored in files. Codes never change their meaning.
    package let code: UInt8
    /// A number whose meaning depends on the kind:
    ///
    /// - for a launch: the attempt of its push or task;
    /// - for an extension: the seconds left;
    /// - for a push: its priority in the lowest four bits (0 if not recorded), above them the size of its payload minus
    ///   one;
    /// - for finished transfers: their count;
    /// - for a part of a name: the length of the name;
    /// - for conditions: the lower half of the changed fields.
    package let attempt: UInt16
    /// The other push of a coalescing: the push that the event's push replaced, or the push that absorbed it. Other
    /// kinds:
    ///
    /// - for a part of a name: the bytes after the first 16; for a part of a worker's name: all bytes;
    /// - for a launch or a drop: the wait (`Waited`);
    /// - for conditions: the battery level in the first word, if it changed.
    package let related: APNsID?
    /// A second number whose meaning depends on the kind:
    ///
    /// - for the launch of a push: the number of pushes coalesced into it;
    /// - for a push: the code of its lifetime;
    /// - for the launch or extension of a task: the code of its kind;
    /// - for the result, submission or drop of a task: the codes of its kind and of the outcome, disposition or reason;
    /// - for a part of a name: its number;
    /// - for conditions: the upper half of the changed fields.
    package let coalesced: UInt16

    /// Creates an event of a device.
    ///
    /// - `terms`: the terms on which a push was sent; nil for other kinds.
    /// - `payloadBytes`: the size of the payload of a push, at most 4,096; 0 if it is not recorded.
    /// - `changed`: the conditions that a report changed.
    package init(
        device: UInt64,
        at: Instant,
        kind: Kind,
        apnsID: APNsID? = nil,
        related: APNsID? = nil,
        terms: PushTerms? = nil,
        payloadBytes: Int = 0,
        changed: ConditionsReport? = nil
    ) {
        self.device = device
        self.at = at
        self.apnsID = apnsID
        let stored = kind.stored
        if let changed {
            self.related = changed.batteryLevel.map { APNsID(first: $0.bitPattern, second: 0, upperCase: 0) }
            self.code = stored.code
            self.attempt = UInt16(truncatingIfNeeded: changed.code)
            self.coalesced = UInt16(changed.code >> 16)
            return
        }
        self.related = related
        self.code = stored.code
        if case .push = kind, let terms {
            self.attempt = UInt16(terms.priority.rawValue) | UInt16(min(max(1, payloadBytes), 4096) - 1) << 4
            self.coalesced = terms.lifetime.code
        } else {
            self.attempt = stored.attempt
            self.coalesced = stored.coalesced
        }
    }

    /// Creates an event from its stored parts; nil if no kind has this code with these numbers.
    package init?(
        device: UInt64,
        at: Instant,
        code: UInt8,
        attempt: UInt16,
        coalesced: UInt16,
        apnsID: APNsID?,
        related: APNsID?
    ) {
        guard Kind(code: code, attempt: attempt, coalesced: coalesced) != nil else { return nil }
        self.device = device
        self.at = at
        self.apnsID = apnsID
        self.related = related
        self.code = code
        self.attempt = attempt
        self.coalesced = coalesced
    }

    /// The terms on which a push was sent; nil for other events, and if they were not recorded.
    package var terms: PushTerms? {
        guard case .push = self.kind, let priority = Priority(rawValue: UInt8(self.attempt & 15)) else { return nil }
        return PushTerms(priority: priority, lifetime: PushTerms.Lifetime(code: self.coalesced))
    }

    /// The size of the payload of a push; nil for other events, and if it was not recorded.
    package var payloadBytes: Int? {
        guard case .push = self.kind, self.attempt >> 4 != 0 else { return nil }
        return Int(self.attempt >> 4) + 1
    }

    /// The other push of a coalescing; nil for events without one.
    package var relatedPush: APNsID? {
        switch self.code {
        case 8...12, 16...20: self.related
        default: nil
        }
    }

    /// The wait of a push or task that was launched or dropped; nil if there was none, or if it was not recorded.
    package var waited: Waited? {
        switch self.kind {
        case .launch, .discard: self.related.map { Waited(stored: $0) }
        default: nil
        }
    }

    /// The conditions that a report changed; nil for other events, and if they were not recorded.
    package var changed: ConditionsReport? {
        // The codes are compared because decoding the kind costs more, and a cluster asks this of every event.
        guard self.code == Kind.conditions.stored.code else { return nil }
        return ConditionsReport(code: UInt32(self.coalesced) << 16 | UInt32(self.attempt), self.related)
    }

    package var kind: Kind {
        guard let kind = Kind(code: self.code, attempt: self.attempt, coalesced: self.coalesced) else {
            preconditionFailure("an event is made with the code of a kind")
        }
        return kind
    }

    /// Returns the number by which the history knows a device.
    ///
    /// Because of the key, a client cannot compute a token that has the number of another client's device, whose events
    /// it could then read. A million random tokens hit one of a million devices with a probability of 2^-24.
    package static func device(of token: borrowing DeviceToken, _ key: HashKey) -> UInt64 {
        key.hash(token)
    }

    /// Returns the number by which the history knows the subscriptions to a topic: those for all devices, or those that
    /// name `device`.
    package static func streams(_ topic: String, naming device: DeviceToken? = nil, _ key: HashKey) -> UInt64 {
        let number = device.map { self.device(of: $0, key) } ?? 0
        // The complement differs from the number of a token with the same bytes.
        return ~(topic.withByteView { key.hash($0) } ^ (number << 1 | number >> 63))
    }

    /// Returns a fingerprint of the key. Device numbers made with one key are meaningless with another.
    package static func mark(of key: HashKey) -> UInt64 {
        // A token is longer, so no device has this number.
        "history".withByteView { key.hash($0) }
    }
}

extension HistoryEvent.Kind {
    /// The stored numbers: the code, which is below 32 and never changes, and its two arguments.
    package var stored: (code: UInt8, attempt: UInt16, coalesced: UInt16) {
        switch self {
        case .registered: (1, 0, 0)
        case .removed: (2, 0, 0)
        case .conditions: (3, 0, 0)
        case .launch(.push, let attempt, let coalesced): (4, attempt, coalesced)
        case .launch(let kind, let attempt, _): (6, attempt, Self.numbers(kind))
        case .extended(.push, let seconds): (5, seconds, 0)
        case .extended(let kind, let seconds): (21, seconds, Self.numbers(kind))
        case .push(let disposition): (7 + disposition.storedCode, 0, 0)
        case .result(.push(let outcome)): (15 + outcome.storedCode, 0, 0)
        case .result(let outcome): (7, 0, UInt16(outcome.storedCode))
        case .discard(.push, .cancelled): (29, 0, 0)
        case .discard(.push, let reason): (23 + DiscardReason.ofPushes.code(reason), 0, 0)
        case .discard(let kind, let reason):
            (28, 0, Self.numbers(kind) << 4 | UInt16(DiscardReason.ofRequests.code(reason)))
        case .taskSubmitted(let kind, let disposition):
            (14, 0, UInt16(kind.storedCode << 4 | disposition.storedCode))
        case .transfersFinished(let count): (15, count, 0)
        case .taskRefused(let kind, let rejection):
            (22, 0, UInt16(kind.storedCode << 4 | TaskRejection.ofEvents.code(rejection)))
        case .subscribed: (30, 0, 0)
        case .worker(let length, let place): (23, UInt16(length), UInt16(place))
        case .namePart(let length, let place): (13, UInt16(length), UInt16(place))
        }
    }

    private static func numbers(_ kind: LaunchKind) -> UInt16 { UInt16(kind.task?.storedCode ?? 0) }

    /// Creates the kind with this code and these numbers; nil if there is none.
    package init?(code: UInt8, attempt: UInt16, coalesced: UInt16) {
        switch code {
        case 1: self = .registered
        case 2: self = .removed
        case 3: self = .conditions
        case 4: self = .launch(.push, attempt: attempt, coalesced: coalesced)
        case 5: self = .extended(.push, seconds: attempt)
        case 6, 7, 13, 14, 15, 21, 22, 23, 28: self.init(boundCode: code, attempt: attempt, coalesced: coalesced)
        case 8...12:
            guard let disposition = Disposition(storedCode: code - 7) else { return nil }
            self = .push(disposition)
        case 16...20:
            guard let outcome = WakeOutcome(storedCode: code - 15) else { return nil }
            self = .result(.push(outcome))
        case 24...27:
            guard let reason = DiscardReason.ofPushes.element(code: code - 23) else { return nil }
            self = .discard(.push, reason)
        case 29: self = .discard(.push, .cancelled)
        case 30: self = .subscribed
        default: return nil
        }
    }

    /// Creates the kind of a code that is valid only with certain numbers; nil for other numbers.
    private init?(boundCode: UInt8, attempt: UInt16, coalesced: UInt16) {
        guard let stored = UInt8(exactly: coalesced) else { return nil }
        // The code of the kind of task is the whole number, or its upper four bits.
        let (whole, upper) = (TaskKind(storedCode: stored), TaskKind(storedCode: stored >> 4))
        switch (boundCode, attempt) {
        case (6, _):
            guard let whole else { return nil }
            self = .launch(LaunchKind(whole), attempt: attempt)
        case (7, 0):
            guard upper != nil, let outcome = LaunchOutcome(storedCode: stored) else { return nil }
            self = .result(outcome)
        case (13, _):
            guard let length = UInt8(exactly: attempt), stored < NameParts.count(ofBytes: Int(length)) else {
                return nil
            }
            self = .namePart(length: length, place: stored)
        case (14, 0):
            guard let upper, let disposition = TaskDisposition(storedCode: stored & 0xF) else { return nil }
            self = .taskSubmitted(upper, disposition)
        case (15, _):
            guard stored == 0 else { return nil }
            self = .transfersFinished(count: attempt)
        case (21, _):
            guard let whole else { return nil }
            self = .extended(LaunchKind(whole), seconds: attempt)
        case (22, 0):
            guard let upper, let rejection = TaskRejection.ofEvents.element(code: stored & 0xF) else { return nil }
            self = .taskRefused(upper, rejection)
        case (23, _):
            guard let length = UInt8(exactly: attempt), Int(stored) * 16 < Int(length) else { return nil }
            self = .worker(length: length, place: stored)
        case (28, 0):
            guard let upper, let reason = DiscardReason.ofRequests.element(code: stored & 0xF) else { return nil }
            self = .discard(LaunchKind(upper), reason)
        default: return nil
        }
    }
}

/// The terms of a push that may change its outcome under another launch policy.
package struct PushTerms: Hashable, Sendable {
    package let priority: Priority
    package let lifetime: Lifetime

    package init(priority: Priority, lifetime: Lifetime) {
        self.priority = priority
        self.lifetime = lifetime
    }

    /// Creates the terms of a push that arrives at `now`.
    package init(_ priority: Priority, _ expiration: Expiration, at now: Instant) {
        self.priority = priority
        self.lifetime =
            switch expiration {
            case .absent: .unlimited
            case .nowOrNever: .nowOrNever
            case .at(let expiry): .seconds(max(0, (expiry.milliseconds - now.milliseconds) / 1000))
            }
    }

    /// The time for which a push may be pending.
    package enum Lifetime: Hashable, Sendable {
        /// The default of the policy for pushes without an expiration.
        case unlimited
        case nowOrNever
        case seconds(Int64)

        /// The maximum number of seconds stored exactly. Longer times are stored in whole minutes, up to a maximum of
        /// 22 days.
        static let exactMax: Int64 = 32_767

        /// The code of the lifetime in files. Codes never change their meaning.
        package var code: UInt16 {
            switch self {
            case .unlimited: 0
            case .nowOrNever: 1
            case .seconds(let seconds) where seconds <= Self.exactMax - 2: UInt16(max(0, seconds)) + 2
            case .seconds(let seconds): UInt16(clamping: Self.exactMax + 1 + seconds / 60)
            }
        }

        package init(code: UInt16) {
            switch Int64(code) {
            case 0: self = .unlimited
            case 1: self = .nowOrNever
            case ...Self.exactMax: self = .seconds(Int64(code) - 2)
            default: self = .seconds((Int64(code) - Self.exactMax - 1) * 60)
            }
        }
    }
}

/// The stored form of an identifier or session name: parts of 32 bytes, stored as events of the same device and time
/// immediately before the event.
package enum NameParts {
    /// The size of every part but the last, in bytes.
    private static let partBytes = 32
    /// The maximum length of a name, in bytes.
    package static let bytesMax = 255

    /// Returns the number of parts of a name with this number of bytes.
    package static func count(ofBytes bytes: Int) -> Int { (bytes + self.partBytes - 1) / self.partBytes }

    /// Appends the parts of a name; none if its length is not 1...255 bytes.
    package static func append(_ name: String, device: UInt64, at: Instant, to events: inout [HistoryEvent]) {
        guard let length = UInt8(exactly: name.utf8.count) else { return }
        var bytes = name.utf8.makeIterator()
        for place in 0..<self.count(ofBytes: Int(length)) {
            let isLong = Int(length) - place * self.partBytes > 16
            events.append(
                HistoryEvent(
                    device: device,
                    at: at,
                    kind: .namePart(length: length, place: UInt8(truncatingIfNeeded: place)),
                    apnsID: self.nextBytes(&bytes),
                    related: isLong ? self.nextBytes(&bytes) : nil
                )
            )
        }
    }

    /// Appends the name of the worker that received the wake of `push` or, if it is nil, of the task launched last.
    static func append(
        worker name: String,
        _ push: APNsID?,
        device: UInt64,
        at: Instant,
        to events: inout [HistoryEvent]
    ) {
        guard let length = UInt8(exactly: name.utf8.count) else { return }
        var bytes = name.utf8.makeIterator()
        for place in 0..<UInt8((Int(length) + 15) / 16) {
            let kind = HistoryEvent.Kind.worker(length: length, place: place)
            let part = self.nextBytes(&bytes)
            events.append(HistoryEvent(device: device, at: at, kind: kind, apnsID: push, related: part))
        }
    }

    private static func nextBytes(_ bytes: inout String.UTF8View.Iterator) -> APNsID {
        APNsID(first: self.nextWord(&bytes), second: self.nextWord(&bytes), upperCase: 0)
    }

    /// Returns the next eight bytes, the first in the lowest bits, padded with zeros.
    private static func nextWord(_ bytes: inout String.UTF8View.Iterator) -> UInt64 {
        var word: UInt64 = 0
        for shift in stride(from: 0, to: UInt64.bitWidth, by: 8) {
            guard let byte = bytes.next() else { break }
            word |= UInt64(byte) << UInt64(shift)
        }
        return word
    }

    /// Returns the bytes of a part of a name of `length` bytes; nil if some are missing.
    static func bytes(of part: HistoryEvent, length: Int, place: Int) -> [UInt8]? {
        let count = min(length - place * self.partBytes, self.partBytes)
        guard let apnsID = part.apnsID else { return nil }
        var words = [apnsID.first, apnsID.second]
        if let related = part.related { words += [related.first, related.second] }
        guard count <= words.count * 8 else { return nil }
        return (0..<count).map { UInt8(truncatingIfNeeded: words[$0 / 8] >> UInt64($0 % 8 * 8)) }
    }
}

extension HistoryEvent {
    /// The bytes of a part of a worker's name, padded with zeros.
    package var workerBytes: [UInt8] {
        let words = self.related.map { [$0.first, $0.second] } ?? []
        return words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
    }

    /// True if this is a part of a name, and not an event.
    package var isNamePart: Bool { self.code == 13 }

    /// The number of following events that must not be separated from this one. For a part of a name: the remaining
    /// parts and the event of the name.
    package var followers: Int {
        guard self.isNamePart, case .namePart(let length, let place) = self.kind else { return 0 }
        return NameParts.count(ofBytes: Int(length)) - Int(place)
    }
}

/// An event of a device with the names that belong to it.
package struct HistoryEntry: Hashable, Sendable {
    package let event: HistoryEvent
    /// The identifier of the task, or the name of the session; nil for other events, and if the history no longer has
    /// it.
    package let name: String?
    /// The name of the worker that received the wake of a launch; nil if the name is unknown, and for other events.
    package let worker: String?

    package init(_ event: HistoryEvent, name: String? = nil, worker: String? = nil) {
        self.event = event
        self.name = name
        self.worker = worker
    }
}

/// Assembles the entries of one device from its events, which arrive newest first. An entry is complete once its whole
/// name, or the event before it, is read.
package struct HistoryEntries {
    private var entries: [HistoryEntry] = []
    /// An event whose name is not complete yet.
    private var open: HistoryEvent?
    /// The parts of the name of `open`, the last part first.
    private var parts: [[UInt8]] = []
    /// The length of the name, and the number of the part that was appended last.
    private var last: (length: UInt8, place: UInt8)?
    /// The parts of a worker's name, the last part first. The launch to which they belong is read after them.
    private var worker: [HistoryEvent] = []

    package init() {}

    /// The number of entries, complete or not.
    package var count: Int { self.entries.count + (self.open == nil ? 0 : 1) }

    /// Appends the next older event. The name of a worker becomes part of the entry of its launch.
    package mutating func append(_ event: HistoryEvent) {
        if case .worker(_, let place) = event.kind {
            guard let last = self.worker.last, case .worker(_, place + 1) = last.kind else {
                self.worker = [event]
                return
            }
            self.worker.append(event)
            return
        }
        guard case .namePart(let length, let place) = event.kind else {
            self.close(nil)
            self.open = event
            if event.kind.task == nil, event.kind != .subscribed { self.close(nil) }
            return
        }
        guard let open = self.open else { return }
        let isNext =
            if let last = self.last {
                length == last.length && Int(place) == Int(last.place) - 1
            } else {
                Int(place) == NameParts.count(ofBytes: Int(length)) - 1
            }
        guard isNext, event.at == open.at, event.device == open.device,
            let bytes = NameParts.bytes(of: event, length: Int(length), place: Int(place))
        else { return self.close(nil) }
        self.parts.append(bytes)
        self.last = (length, place)
        if place == 0 { self.close(String(validating: self.parts.reversed().joined(), as: UTF8.self)) }
    }

    /// Completes the last entry with the parts read so far.
    ///
    /// - Returns: the entries, the newest first.
    package mutating func finish() -> [HistoryEntry] {
        self.close(nil)
        return self.entries
    }

    private mutating func close(_ name: String?) {
        if let open = self.open {
            self.entries.append(HistoryEntry(open, name: name, worker: self.takeWorker(of: open)))
        }
        self.open = nil
        self.parts.removeAll(keepingCapacity: true)
        self.last = nil
    }
}

extension HistoryEntries {
    /// Returns the name of the worker of a launch, if the parts read last belong to this launch.
    private mutating func takeWorker(of event: HistoryEvent) -> String? {
        guard case .launch(let kind, _, _) = event.kind, let first = self.worker.last,
            case .worker(let length, 0) = first.kind, first.at == event.at, first.device == event.device,
            kind == .push ? first.apnsID == event.apnsID : first.apnsID == nil
        else { return nil }
        defer { self.worker = [] }
        return String(validating: self.worker.reversed().flatMap(\.workerBytes).prefix(Int(length)), as: UTF8.self)
    }
}

extension HistoryEvent.Kind {
    /// The kind of the task or session, for kinds of events that follow a name; nil for other kinds.
    package var task: TaskKind? {
        switch self {
        case .launch(let kind, _, _), .discard(let kind, _), .extended(let kind, _): kind.task
        case .result(let outcome): outcome.kind.task
        case .taskSubmitted(let kind, _), .taskRefused(let kind, _): kind
        case .transfersFinished: .urlSession
        case .registered, .removed, .push, .conditions, .worker, .subscribed, .namePart: nil
        }
    }
}
