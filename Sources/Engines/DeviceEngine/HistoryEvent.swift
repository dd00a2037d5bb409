package import Bytes
package import LaunchPolicy

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
    }

    /// Which device: what `device(of:_:)` gives for its token.
    package let device: UInt64
    /// When, in policy time.
    package let at: Instant
    /// The push it happened to, if it happened to one.
    package let apnsID: APNsID?
    /// What happened, as a number that files may keep: it never changes its meaning.
    package let code: UInt8
    /// Of a launch: which one of its push or task. Of an extension: how many seconds were left then. Of a push: its
    /// priority; 0 when that was not kept.
    package let attempt: UInt16
    /// The other push of a coalescing: the one this push took the place of, or the one it was coalesced into.
    package let related: APNsID?
    /// Of a push's launch: how many pushes were coalesced into it. Of a push: the code of its lifetime. Of a task's
    /// launch and result: the code of its kind, and of its kind and outcome.
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
        case .registered, .removed, .result, .discard, .conditions: (self.attempt, self.coalesced) = (0, 0)
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
        if Kind.isTaskCode(code), Kind(code: code, attempt: attempt, coalesced: coalesced) == nil { return nil }
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
    static var codes: UInt32 { 0x0F1F_1FFE }

    /// Whether `code`, which stands for a kind, does so with some numbers alone.
    static func isTaskCode(_ code: UInt8) -> Bool { 6...7 ~= code }

    /// Whether `code` stands for a kind.
    package static func isCode(_ code: UInt8) -> Bool {
        code < 32 && Self.codes & (1 << UInt32(code)) != 0
    }

    /// The number that stands for it in files; below 32, and for ever the same.
    package var code: UInt8 {
        switch self {
        case .registered: 1
        case .removed: 2
        case .conditions: 3
        case .launch: 4
        case .extended: 5
        case .taskLaunch: 6
        case .taskResult: 7
        case .push(.launched): 8
        case .push(.scheduled): 9
        case .push(.coalesced): 10
        case .push(.discarded): 11
        case .push(.noWake): 12
        case .result(.newData): 16
        case .result(.noData): 17
        case .result(.failed): 18
        case .result(.expired): 19
        case .result(.lost): 20
        case .discard(.expired): 24
        case .discard(.exhausted): 25
        case .discard(.forceQuit): 26
        case .discard(.unregistered): 27
        }
    }

    /// The kind that a code stands for with these numbers; nil when it stands for none.
    package init?(code: UInt8, attempt: UInt16, coalesced: UInt16) {
        switch code {
        case 1: self = .registered
        case 2: self = .removed
        case 3: self = .conditions
        case 4: self = .launch(attempt: attempt, coalesced: coalesced)
        case 5: self = .extended(seconds: attempt)
        case 6:
            guard let task = UInt8(exactly: coalesced).flatMap({ TaskKind(storedCode: $0) }) else { return nil }
            self = .taskLaunch(task, attempt: attempt)
        case 7:
            guard attempt == 0, let stored = UInt8(exactly: coalesced),
                case .task(let task, let outcome)? = LaunchOutcome(storedCode: stored)
            else { return nil }
            self = .taskResult(task, outcome)
        case 8: self = .push(.launched)
        case 9: self = .push(.scheduled)
        case 10: self = .push(.coalesced)
        case 11: self = .push(.discarded)
        case 12: self = .push(.noWake)
        case 16: self = .result(.newData)
        case 17: self = .result(.noData)
        case 18: self = .result(.failed)
        case 19: self = .result(.expired)
        case 20: self = .result(.lost)
        case 24: self = .discard(.expired)
        case 25: self = .discard(.exhausted)
        case 26: self = .discard(.forceQuit)
        case 27: self = .discard(.unregistered)
        default: return nil
        }
    }
}
