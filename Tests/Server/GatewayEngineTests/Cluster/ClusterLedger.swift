import Engine
import Policy
import WakeGateTestKit
import Wire

/// What became of every push and of every wake, by what the commits of a simulated database say has happened, and what
/// the books must say of it.
struct ClusterLedger {
    enum End: Hashable {
        case completed, coalesced
        case discarded(DiscardReason)
    }

    private struct Push {
        let device: UInt64
        var isInFlight = false
        /// How many of its wakes ended without a result, though their gateways lived.
        var attempts = 0
        var end: End?
    }

    private struct Device {
        /// The last moment of something that happened to it.
        var last = Instant.distantPast
        /// How many wakes of the short lane are in flight.
        var shortWakes = 0
        var isRegistered = false
    }

    /// How many attempts a push has by the policy.
    let attemptsMax: Int
    private var pushes: [APNsID: Push] = [:]
    private var devices: [UInt64: Device] = [:]
    /// What the books must say.
    private(set) var books = Books()
    private(set) var fault: String?
    private var commitCount = 0

    init(attemptsMax: Int) { self.attemptsMax = attemptsMax }

    /// Reads the commits that it has not read yet.
    mutating func read(_ log: DatabaseLog) {
        while self.commitCount < log.commits.count, self.fault == nil {
            let commit = log.commits[self.commitCount]
            for event in commit.events { self.take(event, in: commit, log) }
            self.commitCount += 1
        }
        if let misuse = log.misuses.first { self.wrong(misuse) }
    }

    /// How a push has ended; nil when it has not, or there is none.
    func end(of push: APNsID) -> End? { self.pushes[push]?.end }

    func has(_ push: APNsID) -> Bool { self.pushes[push] != nil }

    /// Pushes that have not ended.
    var openCount: Int { self.pushes.values.count { $0.end == nil } }

    /// What is wrong with what a database has counted, all told.
    func compare(_ counted: Books) -> String? {
        guard counted.accepted == counted.accountedFor else { return "the books do not balance: \(counted)" }
        guard counted.requests.submitted.sum == counted.requestsAccountedFor else {
            return "the books of requests do not balance: \(counted.requests), \(counted.tasks)"
        }
        guard counted.sessions.finished == counted.sessions.accountedFor else {
            return "the books of sessions do not balance: \(counted.sessions)"
        }
        let pairs: [(String, Int64, Int64)] = [
            ("accepted", self.books.accepted, counted.accepted),
            ("completed", self.books.completed, counted.completed),
            ("coalesced", self.books.coalesced, counted.coalesced),
            ("pending", self.books.pending, counted.pending), ("in flight", self.books.inFlight, counted.inFlight),
            ("launched", self.books.launched, counted.launched),
            ("registered", self.books.registered, counted.registered),
        ]
        let discards = DiscardReason.allCases.map {
            ("discarded \($0)", self.books.discarded[$0], counted.discarded[$0])
        }
        let results = WakeOutcome.allCases.map { ("ended \($0)", self.books.results[$0], counted.results[$0]) }
        for (name, events, books) in pairs + discards + results where events != books {
            return "\(events) are \(name) by what happened, and \(books) by the books"
        }
        return nil
    }

    private mutating func wrong(_ what: String) { self.fault = self.fault ?? what }

    private mutating func take(_ event: HistoryEvent, in commit: DatabaseLog.Commit, _ log: DatabaseLog) {
        var device = self.devices[event.device] ?? Device()
        if case .namePart = event.kind { return }
        if event.at < device.last {
            self.wrong("time went back \(device.last.milliseconds - event.at.milliseconds) ms")
        }
        if commit.moment < event.at { self.wrong("something happened after the moment of its step") }
        device.last = event.at
        switch event.kind {
        case .registered: self.register(&device, true)
        case .removed: self.register(&device, false)
        case .push(let disposition): self.accept(event, disposition)
        case .launch:
            self.books.launched += 1
            self.launchShort(&device)
            if let push = event.apnsID { self.launch(push) }
        case .result(let outcome):
            self.books.results[outcome] += 1
            self.endShort(&device)
            if let push = event.apnsID {
                if !Self.isOfDeadGateway(event, commit, log) { self.pushes[push]?.attempts += 1 }
                self.landed(push, outcome, heir: event.related)
            }
        case .discard(let reason):
            guard let push = event.apnsID else { break }
            if reason == .exhausted, let attempts = self.pushes[push]?.attempts, attempts < self.attemptsMax {
                self.wrong("a push is given up after \(attempts) attempts: others died with their gateways")
            }
            self.end(push, .discarded(reason))
        case .taskLaunch(let kind, _): if Self.isShort(kind) { self.launchShort(&device) }
        case .taskResult(let kind, _): if Self.isShort(kind) { self.endShort(&device) }
        case .conditions, .extended, .taskSubmitted, .taskDropped, .taskExtended, .transfersFinished, .namePart: break
        }
        self.devices[event.device] = device
    }

    private static func isShort(_ kind: TaskKind) -> Bool { kind == .appRefresh || kind == .urlSession }

    /// Whether a device's wake that a commit ended was given by a gateway that had been found dead by then.
    private static func isOfDeadGateway(
        _ event: HistoryEvent,
        _ commit: DatabaseLog.Commit,
        _ log: DatabaseLog
    ) -> Bool {
        commit.ended.contains { wake in
            guard let launch = log.launches[wake].map({ log.commits[$0] }), let death = log.deaths[launch.gateway],
                death <= commit.at, let device = launch.launched.first(where: { $0.wake == wake })?.device
            else { return false }
            return HistoryEvent.device(of: device, EngineRig.historyKey) == event.device
        }
    }

    private mutating func register(_ device: inout Device, _ isRegistered: Bool) {
        if device.isRegistered != isRegistered { self.books.registered += isRegistered ? 1 : -1 }
        device.isRegistered = isRegistered
    }

    private mutating func launchShort(_ device: inout Device) {
        device.shortWakes += 1
        if device.shortWakes > 1 { self.wrong("a device has two wakes of the short lane in flight") }
    }

    private mutating func endShort(_ device: inout Device) {
        device.shortWakes -= 1
        if device.shortWakes < 0 { self.wrong("a wake has ended that was not in flight") }
    }

    private mutating func accept(_ event: HistoryEvent, _ disposition: Disposition) {
        guard let push = event.apnsID else { return self.wrong("a push has no apns-id") }
        guard self.pushes.updateValue(Push(device: event.device), forKey: push) == nil else {
            return self.wrong("a push is counted twice")
        }
        self.books.accepted += 1
        self.books.pending += 1
        if let other = event.related { self.end(other, .coalesced) }
    }

    private mutating func launch(_ push: APNsID) {
        guard self.pushes[push]?.end == nil, self.pushes[push]?.isInFlight == false else {
            return self.wrong("a push is launched that does not wait")
        }
        self.pushes[push]?.isInFlight = true
        self.books.pending -= 1
        self.books.inFlight += 1
    }

    private mutating func landed(_ push: APNsID, _ outcome: WakeOutcome, heir: APNsID?) {
        guard self.pushes[push]?.isInFlight == true else { return self.wrong("a push lands that does not fly") }
        self.pushes[push]?.isInFlight = false
        self.books.pending += 1
        self.books.inFlight -= 1
        switch outcome {
        case .newData, .noData: self.end(push, .completed)
        case .failed, .expired, .lost: if heir != nil { self.end(push, .coalesced) }
        }
    }

    private mutating func end(_ push: APNsID, _ end: End) {
        guard let known = self.pushes[push], !known.isInFlight else {
            return self.wrong("a push ends as \(end) that does not wait")
        }
        guard known.end == nil else { return self.wrong("a push ends twice") }
        self.pushes[push]?.end = end
        self.books.pending -= 1
        switch end {
        case .completed: self.books.completed += 1
        case .coalesced: self.books.coalesced += 1
        case .discarded(let reason): self.books.discarded[reason] += 1
        }
    }
}
