package import Policy
package import Wire

/// An enumeration whose cases records store as one byte. Codes never change their meaning.
package protocol StoredCase: CaseIterable {
    var storedCode: UInt8 { get }
}

extension StoredCase {
    /// Returns the case with this code; nil if there is none.
    init?(storedCode: UInt8) {
        guard let found = Self.allCases.first(where: { $0.storedCode == storedCode }) else { return nil }
        self = found
    }
}

extension Array where Element: Equatable {
    /// Returns the code of an element: its one-based position, or 0 if it is not in the array.
    func code(_ element: Element) -> UInt8 { self.firstIndex(of: element).map { UInt8($0) + 1 } ?? 0 }

    /// Returns the element with this code; nil if there is none.
    func element(code: UInt8) -> Element? { 1...self.count ~= Int(code) ? self[Int(code) - 1] : nil }
}

extension WakeOutcome: StoredCase {
    package var storedCode: UInt8 {
        switch self {
        case .newData: 1
        case .noData: 2
        case .failed: 3
        case .expired: 4
        case .lost: 5
        }
    }
}

extension TaskKind: StoredCase {
    package var storedCode: UInt8 {
        switch self {
        case .appRefresh: 1
        case .processing: 2
        case .continued: 3
        case .urlSession: 4
        }
    }
}

extension TaskOutcome: StoredCase {
    package var storedCode: UInt8 {
        switch self {
        case .success: 1
        case .failure: 2
        case .expired: 3
        case .interrupted: 4
        case .cancelled: 5
        case .lost: 6
        }
    }
}

extension TaskDisposition: StoredCase {
    package var storedCode: UInt8 {
        switch self {
        case .launched: 1
        case .scheduled: 2
        case .replaced: 3
        }
    }
}

extension LaunchOutcome {
    /// For a push, the code of its outcome. For a task, the code of its kind in the upper four bits and the code of its
    /// outcome in the lower four bits.
    package var storedCode: UInt8 {
        switch self {
        case .push(let outcome): outcome.storedCode
        case .task(let kind, let outcome): kind.storedCode << 4 | outcome.storedCode
        }
    }

    /// Returns the outcome with this code; nil if there is none.
    init?(storedCode: UInt8) {
        if storedCode < 1 << 4 {
            guard let outcome = WakeOutcome(storedCode: storedCode) else { return nil }
            self = .push(outcome)
        } else {
            guard let kind = TaskKind(storedCode: storedCode >> 4),
                let outcome = TaskOutcome(storedCode: storedCode & 0xF)
            else { return nil }
            self = .task(kind, outcome)
        }
    }
}

extension DiscardReason {
    /// The discard reasons of requests and sessions, in the order of their codes in events, which start at 1.
    package static let ofRequests: [DiscardReason] = [.replaced, .cancelled, .exhausted, .forceQuit, .unregistered]
}

extension TaskRejection {
    /// The reasons of refused requests in events, in the order of their codes, from 1 on.
    static let ofEvents: [TaskRejection] = [
        .policy(.notPermitted), .policy(.unavailable), .policy(.notForeground), .policy(.tooManyPendingTaskRequests),
        .policy(.immediateRunIneligible), .tooManySessions, .bound(.taskRequestsMax), .bound(.taskBytesMax),
        .bound(.taskTopicPercentMax),
    ]
}

extension Disposition: StoredCase {
    package var storedCode: UInt8 { self.rawValue + 1 }
}

/// Holds of pushes and of tasks have separate codes in records: their one-based positions in these lists.
extension Hold {
    static let pushCodes: [Hold] = [
        .forceQuit, .backgroundRefresh, .network, .thermal, .battery, .priority, .worker, .paused,
    ]
    static let taskCodes: [Hold] = [
        .forceQuit, .backgroundRefresh, .active, .network, .power, .lowPower, .thermal, .battery, .usage, .worker,
        .paused, .memory,
    ]
}

extension Conditions.MemoryPressure: StoredCase {
    package var storedCode: UInt8 {
        switch self {
        case .normal: 0
        case .warning: 1
        case .critical: 2
        }
    }
}

/// The stored form of the conditions that a report changed: bit 0 is always set; bit 1 is set for a new battery level,
/// which is stored elsewhere; three bits for each further field are 0 if the field did not change, or else its code.
extension ConditionsReport {
    /// The stored form of the report, without the battery level.
    package var code: UInt32 {
        func number(_ flag: Bool?) -> UInt8? { flag.map { $0 ? 2 : 1 } }
        let fields = [
            self.appState?.storedCode, self.backgroundRefresh?.storedCode, self.thermalState?.storedCode,
            self.memoryPressure.map { $0.storedCode + 1 }, number(self.charging), number(self.lowPowerMode),
            number(self.network),
        ]
        let known: UInt32 = 1 | (self.batteryLevel == nil ? 0 : 2)
        return fields.enumerated().reduce(known) { $0 | UInt32($1.element ?? 0) << (2 + 3 * UInt32($1.offset)) }
    }

    /// - `level`: the battery level in the form of `HistoryEvent.related`.
    package init?(code: UInt32, _ level: APNsID?) {
        guard code & 1 != 0 else { return nil }
        func field(_ place: UInt32) -> UInt8 { UInt8(code >> (2 + 3 * place) & 7) }
        func flag(_ place: UInt32) -> Bool? { field(place) == 0 ? nil : field(place) == 2 }
        self.init()
        if code & 2 != 0, let level = level.map({ Double(bitPattern: $0.first) }), 0...1 ~= level {
            self.batteryLevel = level
        }
        self.appState = Conditions.AppState(storedCode: field(0))
        self.backgroundRefresh = Conditions.BackgroundRefresh(storedCode: field(1))
        self.thermalState = Conditions.ThermalState(storedCode: field(2))
        self.memoryPressure = field(3) == 0 ? nil : Conditions.MemoryPressure(storedCode: field(3) - 1)
        self.charging = flag(4)
        self.lowPowerMode = flag(5)
        self.network = flag(6)
    }
}

extension Conditions.AppState: StoredCase {
    package var storedCode: UInt8 {
        switch self {
        case .background: 1
        case .active: 2
        case .forceQuit: 3
        }
    }
}

extension Conditions.BackgroundRefresh: StoredCase {
    package var storedCode: UInt8 {
        switch self {
        case .available: 1
        case .denied: 2
        case .restricted: 3
        }
    }
}

extension Conditions.ThermalState: StoredCase {
    package var storedCode: UInt8 {
        switch self {
        case .nominal: 1
        case .fair: 2
        case .serious: 3
        case .critical: 4
        }
    }
}

// MARK: - Parts of tasks

extension ByteBuffer {
    /// Appends a text of at most 65,535 bytes after its byte count.
    mutating func append(text: String) {
        self.appendLittleEndian(UInt16(text.utf8.count))
        self.append(text)
    }

    /// Appends completed and total (8 bytes each), title and subtitle; a missing text is stored as empty.
    mutating func append(_ progress: TaskProgress) {
        self.appendLittleEndian(progress.completed)
        self.appendLittleEndian(progress.total)
        self.append(text: progress.title ?? "")
        self.append(text: progress.subtitle ?? "")
    }
}

extension RecordReader {
    /// Reads a text after its byte count of two bytes.
    package mutating func text() -> String { self.view(Int(self.integer(UInt16.self))).string }

    mutating func progress() -> TaskProgress {
        var progress = TaskProgress(completed: self.integer(), total: self.integer())
        let (title, subtitle) = (self.text(), self.text())
        if !title.isEmpty { progress.title = title }
        if !subtitle.isEmpty { progress.subtitle = subtitle }
        return progress
    }
}
