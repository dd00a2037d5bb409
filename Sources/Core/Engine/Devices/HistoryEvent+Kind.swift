import Policy

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
        case .namePart: 13
        case .taskSubmitted: 14
        case .transfersFinished: 15
        case .taskExtended: 21
        case .taskDropped: 28
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
        case .discard(.cancelled): 29
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
        case 6, 7, 13, 14, 15, 21, 28: self.init(boundCode: code, attempt: attempt, coalesced: coalesced)
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
        case 29: self = .discard(.cancelled)
        default: return nil
        }
    }

    /// The kind that a code stands for with some numbers alone; nil when it stands for none with these.
    private init?(boundCode: UInt8, attempt: UInt16, coalesced: UInt16) {
        guard let stored = UInt8(exactly: coalesced) else { return nil }
        let isAlone = attempt == 0
        switch boundCode {
        case 6:
            guard let task = TaskKind(storedCode: stored) else { return nil }
            self = .taskLaunch(task, attempt: attempt)
        case 7:
            guard isAlone, case .task(let task, let outcome)? = LaunchOutcome(storedCode: stored) else { return nil }
            self = .taskResult(task, outcome)
        case 13:
            guard let length = UInt8(exactly: attempt), stored < NameParts.count(ofBytes: Int(length)) else {
                return nil
            }
            self = .namePart(length: length, place: stored)
        case 14:
            guard isAlone, let task = TaskKind(storedCode: stored >> 4),
                let disposition = TaskDisposition(storedCode: stored & 0xF)
            else { return nil }
            self = .taskSubmitted(task, disposition)
        case 15:
            guard stored == 0 else { return nil }
            self = .transfersFinished(count: attempt)
        case 21:
            guard let task = TaskKind(storedCode: stored) else { return nil }
            self = .taskExtended(task, seconds: attempt)
        case 28:
            guard isAlone, let task = TaskKind(storedCode: stored >> 4), let drop = TaskDrop(storedCode: stored & 0xF)
            else { return nil }
            self = .taskDropped(task, drop)
        default: return nil
        }
    }
}
