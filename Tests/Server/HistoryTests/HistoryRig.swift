import Engine
import Foundation
import Policy
import Storage
import WakeGateTestKit
import Wire

/// A history in a separate folder, and a plain list of everything that was appended.
final class HistoryRig {
    let folder: TemporaryFolder
    var limits: HistoryLimits
    private(set) var history: HistoryFile?
    /// The events passed to the history, in order; `close` removes unwritten ones.
    private(set) var events: [HistoryEvent] = []
    private(set) var troubles: [HistoryFailure] = []
    private var flushedCount = 0
    /// The indices in `events` of each device's events, in order, without parts of names.
    private var places: [UInt64: [Int]] = [:]
    /// The names of tasks and sessions, by the index of their event in `events`.
    private var names: [Int: String] = [:]
    /// True if random events include those of tasks and sessions.
    var hasNames = false
    var now = Instant(milliseconds: 1_700_000_000_000)

    var path: String { "\(self.folder.path)/history.sqlite" }
    var asidePath: String { self.path + ".set-aside" }

    init(limits: HistoryLimits = HistoryLimits(bytesMax: 4 << 20)) throws {
        self.folder = try TemporaryFolder()
        self.limits = limits
    }

    // The history is closed before its folder is removed.
    deinit { self.history = nil }

    /// Returns the history, which is opened at the first call.
    func open() -> HistoryFile {
        if let history = self.history { return history }
        let history = HistoryFile(path: self.path, limits: self.limits) { [unowned self] in self.troubles.append($0) }
        self.history = history
        return history
    }

    func append(_ event: HistoryEvent) {
        self.open().append(event)
        if !event.isNamePart { self.places[event.device, default: []].append(self.events.count) }
        self.events.append(event)
        if self.open().collectedEvents == 1 { self.flushedCount = self.events.count - 1 }
    }

    /// Appends an event of a task or a session, and its name before it.
    func append(_ kind: HistoryEvent.Kind, of device: UInt64, name: String) {
        var events: [HistoryEvent] = []
        NameParts.append(name, device: device, at: self.now, to: &events)
        for event in events { self.append(event) }
        self.append(HistoryEvent(device: device, at: self.now, kind: kind))
        self.names[self.events.count - 1] = name
    }

    func flush() {
        self.open().flush()
        self.flushedCount = self.events.count
    }

    func tidyAll() {
        while self.open().tidy() {}
    }

    /// Closes the history. Events that were not flushed are lost.
    func close() {
        self.history = nil
        self.events.removeSubrange(self.flushedCount...)
        for device in self.places.keys { self.places[device]?.removeAll { $0 >= self.flushedCount } }
        self.names = self.names.filter { $0.key < self.flushedCount }
    }

    func closeKeepingEvents() {
        self.history = nil
    }

    /// Expects the history to be empty from now on.
    func forget() {
        self.events = []
        self.places = [:]
        self.names = [:]
        self.flushedCount = 0
    }

    func forgetTroubles() {
        self.troubles = []
    }

    func recent(_ device: UInt64, _ count: Int = 32) -> [HistoryEvent] {
        self.newest(device, count).map { self.events[$0] }
    }

    func entries(_ device: UInt64, _ count: Int = .max) -> [HistoryEntry] {
        self.newest(device, count).map { HistoryEntry(self.events[$0], name: self.names[$0]) }
    }

    private func newest(_ device: UInt64, _ count: Int) -> [Int] {
        (self.places[device] ?? []).suffix(count).reversed()
    }

    func push(_ apnsID: APNsID) -> [HistoryEvent] {
        self.events.filter { ($0.apnsID == apnsID || $0.relatedPush == apnsID) && !$0.isNamePart }
    }

    /// Returns the number of bytes in the file and its log.
    func fileBytes() -> Int {
        [self.path, self.path + "-wal"].reduce(0) {
            let attributes = try? FileManager.default.attributesOfItem(atPath: $1)
            return $0 + ((attributes?[.size] as? Int) ?? 0)
        }
    }

    /// Appends a random event, some time after the previous one.
    func appendRandom(_ random: inout SeededGenerator, devices: Int, millisecondsMax: Int = 2000) {
        self.now = self.now + Int64(random.number(below: millisecondsMax))
        let device = UInt64(random.number(below: devices)) &* 0x9E37_79B9_7F4A_7C15
        if self.hasNames, random.once(in: 4) {
            let length = random.number(in: 1...random.pick([30, 64, 255]))
            let name = String((0..<length).map { _ in random.pick(Self.letters) })
            return self.append(random.pick(Self.taskKinds), of: device, name: name)
        }
        self.append(
            HistoryEvent(
                device: device,
                at: self.now,
                kind: random.pick(Self.kinds),
                apnsID: self.identifier(&random, device),
                related: random.once(in: 8) ? self.identifier(&random, device) : nil,
                terms: random.once(in: 2) ? Self.terms(&random) : nil
            )
        )
    }

    /// Returns random terms of a push; only events of pushes keep them.
    private static func terms(_ random: inout SeededGenerator) -> PushTerms {
        let lifetime = PushTerms.Lifetime(code: UInt16(random.number(below: 65_536)))
        return PushTerms(priority: random.pick(Priority.allCases), lifetime: lifetime)
    }

    /// Returns nil, a new id, or one that recent events of the device contain.
    private func identifier(_ random: inout SeededGenerator, _ device: UInt64) -> APNsID? {
        switch random.number(below: 4) {
        case 0: nil
        case 1: self.events.suffix(50).last { $0.device == device && $0.apnsID != nil }?.apnsID
        default:
            APNsID(
                first: random.next(),
                second: random.next(),
                upperCase: random.once(in: 10) ? UInt32(truncatingIfNeeded: random.next()) : 0
            )
        }
    }

    private static let letters = Array("abcdefghijklmnopqrstuvwxyz.-_ABC0123")

    static let taskKinds: [HistoryEvent.Kind] = {
        var kinds: [HistoryEvent.Kind] = [.transfersFinished(count: 3), .extended(.processing, seconds: 30)]
        for task in TaskKind.allCases {
            kinds.append(.launch(LaunchKind(task), attempt: 2))
            kinds += TaskOutcome.allCases.map { .result(.task(task, $0)) }
            kinds += TaskDisposition.allCases.map { .taskSubmitted(task, $0) }
            kinds += DiscardReason.ofRequests.map { .discard(LaunchKind(task), $0) }
            kinds.append(.taskRefused(task, .tooManySessions))
        }
        return kinds
    }()

    static let kinds: [HistoryEvent.Kind] = {
        var kinds: [HistoryEvent.Kind] = [
            .registered, .removed, .conditions, .launch(.push, attempt: 1),
            .launch(.push, attempt: 3, coalesced: .max), .launch(.push, attempt: .max, coalesced: 7),
            .extended(.push, seconds: 30), .launch(.appRefresh, attempt: 1), .launch(.urlSession, attempt: .max),
            .result(.task(.processing, .interrupted)), .result(.task(.continued, .lost)),
        ]
        kinds += Disposition.allCases.map { .push($0) }
        kinds += WakeOutcome.allCases.map { .result(.push($0)) }
        kinds += DiscardReason.ofPushes.map { .discard(.push, $0) }
        return kinds
    }()
}

extension HistoryFile {
    /// Creates a history with the key of all tests.
    convenience init(
        path: String?,
        limits: HistoryLimits,
        vfs: String? = nil,
        onFailure: @escaping (HistoryFailure) -> Void
    ) {
        self.init(path: path, key: EngineRig.historyKey, limits: limits, vfs: vfs, onFailure: onFailure)
    }
}
