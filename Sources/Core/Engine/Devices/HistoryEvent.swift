package import Policy
package import Wire

/// One thing that happened to one device, as the history keeps it: 64 bytes of plain memory.
package struct HistoryEvent: BitwiseCopyable, Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case registered
        case removed
        case push(Disposition)
        case launch(attempt: UInt16, coalesced: UInt16)
        case result(WakeOutcome)
        case discard(DiscardReason)
        case conditions
        /// A worker was given more time for its wake, which then had so many seconds left.
        case extended(seconds: UInt16)
        /// A wake of a task or a session.
        case taskLaunch(TaskKind, attempt: UInt16)
        case taskResult(TaskKind, TaskOutcome)
        /// A request was taken.
        case taskSubmitted(TaskKind, TaskDisposition)
        /// A request, or the transfers of a session, went without a result.
        case taskDropped(TaskKind, TaskDrop)
        /// A worker was given more time for the wake of a task or a session, which then had so many seconds left.
        case taskExtended(TaskKind, seconds: UInt16)
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
        self.code = kind.code
        switch kind {
        case .launch(let attempt, let coalesced): (self.attempt, self.coalesced) = (attempt, coalesced)
        case .extended(let seconds): (self.attempt, self.coalesced) = (seconds, 0)
        case .push:
            (self.attempt, self.coalesced) = (UInt16(terms?.priority.rawValue ?? 0), terms?.lifetime.code ?? 0)
        case .taskLaunch(let kind, let attempt): (self.attempt, self.coalesced) = (attempt, UInt16(kind.storedCode))
        case .taskResult(let kind, let outcome):
            (self.attempt, self.coalesced) = (0, UInt16(LaunchOutcome.task(kind, outcome).storedCode))
        case .taskSubmitted(let kind, let disposition):
            (self.attempt, self.coalesced) = (0, Self.code(kind, disposition.storedCode))
        case .taskDropped(let kind, let drop):
            (self.attempt, self.coalesced) = (0, Self.code(kind, drop.storedCode))
        case .taskExtended(let kind, let seconds):
            (self.attempt, self.coalesced) = (seconds, UInt16(kind.storedCode))
        case .transfersFinished(let count): (self.attempt, self.coalesced) = (count, 0)
        case .namePart(let length, let place): (self.attempt, self.coalesced) = (UInt16(length), UInt16(place))
        case .registered, .removed, .result, .discard, .conditions: (self.attempt, self.coalesced) = (0, 0)
        }
    }

    /// A kind and what is told of it in one number, the kind in the upper half of a byte.
    private static func code(_ kind: TaskKind, _ lower: UInt8) -> UInt16 {
        UInt16(kind.storedCode << 4 | lower)
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
