package import Policy
package import Wire

/// One thing that happened to one device, as the history keeps it: 64 bytes of plain memory.
package struct HistoryEvent: BitwiseCopyable, Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case registered
        case removed
        case push(Disposition)
        /// - `coalesced`: how many pushes were coalesced into the one launched; 0 of everything else.
        case launch(LaunchKind, attempt: UInt16, coalesced: UInt16 = 0)
        case result(LaunchOutcome)
        /// A push, a request, or the transfers of a session, went without a result.
        case discard(LaunchKind, DiscardReason)
        case conditions
        /// A worker was given more time for its wake, which then had so many seconds left.
        case extended(LaunchKind, seconds: UInt16)
        /// A request was taken.
        case taskSubmitted(TaskKind, TaskDisposition)
        /// Transfers of a session finished.
        case transfersFinished(count: UInt16)
        /// Nothing that happened: up to 32 bytes of the identifier, or of the session's name, that the next event has.
        ///
        /// - `length`: of the whole name, in bytes.
        /// - `place`: the part's, from 0.
        case namePart(length: UInt8, place: UInt8)
    }

    /// Which device: what `device(of:_:)` gives for its token.
    package let device: UInt64
    /// When, in policy time.
    package let at: Instant
    /// The push it happened to, if it happened to one. Of a name's part: its first bytes.
    package let apnsID: APNsID?
    /// What happened, as a number that files may keep: it never changes its meaning.
    package let code: UInt8
    /// Of a launch: which one of its push or task. Of an extension: how many seconds were left then. Of a push: its
    /// priority; 0 when that was not kept. Of finished transfers: their count. Of a name's part: the name's length.
    package let attempt: UInt16
    /// The other push of a coalescing: the one this push took the place of, or the one it was coalesced into.
    /// Of a name's part: its bytes behind the sixteenth.
    package let related: APNsID?
    /// Of a push's launch: how many pushes were coalesced into it. Of a push: the code of its lifetime. Of a task's
    /// launch and extension: the code of its kind; of its result, submission and drop: those of its kind and of the
    /// outcome, disposition or cause. Of a name's part: its place.
    package let coalesced: UInt16

    /// Something that happened to a device.
    ///
    /// - `terms`: how a push was sent; of everything else nil.
    package init(
        device: UInt64,
        at: Instant,
        kind: Kind,
        apnsID: APNsID? = nil,
        related: APNsID? = nil,
        terms: PushTerms? = nil
    ) {
        self.device = device
        self.at = at
        self.apnsID = apnsID
        self.related = related
        let stored = kind.stored
        self.code = stored.code
        if case .push = kind, let terms {
            self.attempt = UInt16(terms.priority.rawValue)
            self.coalesced = terms.lifetime.code
        } else {
            self.attempt = stored.attempt
            self.coalesced = stored.coalesced
        }
    }

    /// An event from its stored parts; nil when no kind has this code, or not with these numbers.
    package init?(
        device: UInt64,
        at: Instant,
        code: UInt8,
        attempt: UInt16,
        coalesced: UInt16,
        apnsID: APNsID?,
        related: APNsID?
    ) {
        guard Kind.isCode(code) else { return nil }
        if Kind.hasBoundNumbers(code), Kind(code: code, attempt: attempt, coalesced: coalesced) == nil { return nil }
        self.device = device
        self.at = at
        self.apnsID = apnsID
        self.related = related
        self.code = code
        self.attempt = attempt
        self.coalesced = coalesced
    }

    /// How a push was sent; nil of everything else, and where it was not kept.
    package var terms: PushTerms? {
        guard case .push = self.kind, let priority = Priority(rawValue: UInt8(clamping: self.attempt)) else {
            return nil
        }
        return PushTerms(priority: priority, lifetime: PushTerms.Lifetime(code: self.coalesced))
    }

    package var kind: Kind {
        guard let kind = Kind(code: self.code, attempt: self.attempt, coalesced: self.coalesced) else {
            preconditionFailure("an event is made with the code of a kind")
        }
        return kind
    }

    /// The number the history knows a device by.
    ///
    /// Who registers devices is shown what happened to them. Without the key nobody finds a token with the number of
    /// another: a million of tokens tried hit one of a million devices once in 2^24 times.
    package static func device(of token: borrowing DeviceToken, _ key: HashKey) -> UInt64 {
        key.hash(token)
    }

    /// What tells keys apart: events that were numbered under one are of no use under another.
    package static func mark(of key: HashKey) -> UInt64 {
        // No token is as short.
        "history".withByteView { key.hash($0) }
    }
}

extension HistoryEvent.Kind {
    /// The codes that have a meaning, one bit each.
    static var codes: UInt32 { 0x3F3F_FFFE }

    /// The codes of tasks, sessions and names, one bit each.
    private static let codesWithBoundNumbers: UInt32 = 0x1020_E0C0

    /// Whether `code`, which stands for a kind, does so with some numbers alone.
    static func hasBoundNumbers(_ code: UInt8) -> Bool {
        Self.codesWithBoundNumbers & (1 << UInt32(code)) != 0
    }

    /// Whether `code` stands for a kind.
    package static func isCode(_ code: UInt8) -> Bool {
        code < 32 && Self.codes & (1 << UInt32(code)) != 0
    }

    /// The numbers that are stored for it: its code, which is below 32 and never changes, and the two that go with it.
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
        case .namePart(let length, let place): (13, UInt16(length), UInt16(place))
        }
    }

    private static func numbers(_ kind: LaunchKind) -> UInt16 { UInt16(kind.task?.storedCode ?? 0) }

    /// The kind that a code stands for with these numbers; nil when it stands for none.
    package init?(code: UInt8, attempt: UInt16, coalesced: UInt16) {
        switch code {
        case 1: self = .registered
        case 2: self = .removed
        case 3: self = .conditions
        case 4: self = .launch(.push, attempt: attempt, coalesced: coalesced)
        case 5: self = .extended(.push, seconds: attempt)
        case 6, 7, 13, 14, 15, 21, 28: self.init(boundCode: code, attempt: attempt, coalesced: coalesced)
        case 8: self = .push(.launched)
        case 9: self = .push(.scheduled)
        case 10: self = .push(.coalesced)
        case 11: self = .push(.discarded)
        case 12: self = .push(.noWake)
        case 16: self = .result(.push(.newData))
        case 17: self = .result(.push(.noData))
        case 18: self = .result(.push(.failed))
        case 19: self = .result(.push(.expired))
        case 20: self = .result(.push(.lost))
        case 24: self = .discard(.push, .expired)
        case 25: self = .discard(.push, .exhausted)
        case 26: self = .discard(.push, .forceQuit)
        case 27: self = .discard(.push, .unregistered)
        case 29: self = .discard(.push, .cancelled)
        default: return nil
        }
    }

    /// The kind that a code stands for with some numbers alone; nil when it stands for none with these.
    private init?(boundCode: UInt8, attempt: UInt16, coalesced: UInt16) {
        guard let stored = UInt8(exactly: coalesced) else { return nil }
        // The kind of task alone, or in the upper half.
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
        case (28, 0):
            guard let upper, let reason = DiscardReason.ofRequests.element(code: stored & 0xF) else { return nil }
            self = .discard(LaunchKind(upper), reason)
        default: return nil
        }
    }
}

/// How a push was sent, as far as it decides what would have become of it under another policy.
package struct PushTerms: Hashable, Sendable {
    package let priority: Priority
    package let lifetime: Lifetime

    package init(priority: Priority, lifetime: Lifetime) {
        self.priority = priority
        self.lifetime = lifetime
    }

    /// The terms of a push that arrives at `now`.
    package init(_ priority: Priority, _ expiration: Expiration, at now: Instant) {
        self.priority = priority
        self.lifetime =
            switch expiration {
            case .absent: .unlimited
            case .nowOrNever: .nowOrNever
            case .at(let expiry): .seconds(max(0, (expiry.milliseconds - now.milliseconds) / 1000))
            }
    }

    /// How long a push may wait.
    package enum Lifetime: Hashable, Sendable {
        /// As long as the policy gives to pushes that say nothing.
        case unlimited
        case nowOrNever
        case seconds(Int64)

        /// Seconds that are kept exactly; longer ones in whole minutes, up to 22 days, and what is longer as that.
        static let exactMax: Int64 = 32_767

        /// The number that stands for it in files, and never changes its meaning.
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

/// An identifier, or a session's name, as the history keeps it: as parts of 32 bytes, which are events of the same
/// device and moment right before the event that it belongs to.
package enum NameParts {
    /// The bytes of every part but the last.
    private static let partBytes = 32
    /// The most bytes of a name.
    package static let bytesMax = 255

    /// How many parts a name of so many bytes has.
    package static func count(ofBytes bytes: Int) -> Int { (bytes + self.partBytes - 1) / self.partBytes }

    /// Appends the parts of a name; none of one that has not 1...255 bytes.
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

    private static func nextBytes(_ bytes: inout String.UTF8View.Iterator) -> APNsID {
        APNsID(first: self.nextWord(&bytes), second: self.nextWord(&bytes), upperCase: 0)
    }

    /// The next eight bytes, the first lowest; zeros behind the last.
    private static func nextWord(_ bytes: inout String.UTF8View.Iterator) -> UInt64 {
        var word: UInt64 = 0
        for shift in stride(from: 0, to: UInt64.bitWidth, by: 8) {
            guard let byte = bytes.next() else { break }
            word |= UInt64(byte) << UInt64(shift)
        }
        return word
    }

    /// The bytes of a part of a name of `length` bytes; nil when some are missing.
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
    /// Whether it is a part of a name, and nothing that happened.
    package var isNamePart: Bool { self.code == 13 }

    /// How many events right behind this one are not to be cut off from it: of a name's part the parts that follow, and
    /// the event that has the name.
    package var followers: Int {
        guard self.isNamePart, case .namePart(let length, let place) = self.kind else { return 0 }
        return NameParts.count(ofBytes: Int(length)) - Int(place)
    }
}

/// Something that happened to a device, with the name of what it happened to.
package struct HistoryEntry: Hashable, Sendable {
    package let event: HistoryEvent
    /// The identifier of the task, or the session's name; nil of everything else, and when the history has it no more.
    package let name: String?

    package init(_ event: HistoryEvent, name: String? = nil) {
        self.event = event
        self.name = name
    }
}

/// Makes entries of the events of one device, which come the newest first: each is whole when its name is, or when the
/// event before it is there.
package struct HistoryEntries {
    private var entries: [HistoryEntry] = []
    /// An event whose name is missing yet, wholly or partly.
    private var open: HistoryEvent?
    /// The parts of the open event's name, the last first.
    private var parts: [[UInt8]] = []
    /// The length and the place of the part that was taken last.
    private var last: (length: UInt8, place: UInt8)?

    package init() {}

    /// How many things happened, whole or not.
    package var count: Int { self.entries.count + (self.open == nil ? 0 : 1) }

    /// Takes the event before the one that was taken last.
    package mutating func append(_ event: HistoryEvent) {
        guard case .namePart(let length, let place) = event.kind else {
            self.close(nil)
            self.open = event
            if event.kind.task == nil { self.close(nil) }
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

    /// Takes what is there for all there is.
    ///
    /// - Returns: the entries, the newest first.
    package mutating func finish() -> [HistoryEntry] {
        self.close(nil)
        return self.entries
    }

    private mutating func close(_ name: String?) {
        if let open = self.open { self.entries.append(HistoryEntry(open, name: name)) }
        self.open = nil
        self.parts.removeAll(keepingCapacity: true)
        self.last = nil
    }
}

extension HistoryEvent.Kind {
    /// Of what happened to a task or a session its kind, which an event with a name before it has; else nil.
    package var task: TaskKind? {
        switch self {
        case .launch(let kind, _, _), .discard(let kind, _), .extended(let kind, _): kind.task
        case .result(let outcome): outcome.kind.task
        case .taskSubmitted(let kind, _): kind
        case .transfersFinished: .urlSession
        case .registered, .removed, .push, .conditions, .namePart: nil
        }
    }
}
