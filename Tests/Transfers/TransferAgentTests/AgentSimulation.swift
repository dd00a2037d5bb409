import Foundation
import Testing
import TransferAgent
import WakeGateTestKit
import Wire

/// A room in a random world that depends only on a seed: callers, servers and a gateway behave arbitrarily, processes
/// and machines end at any moment, clocks are set, and disks fill up. Then the faults stop, and every transfer must
/// end.
struct AgentSimulation {
    /// A request that waits for its answer. There are none from a process that has ended.
    private enum Question {
        case submission(session: String, url: String)
        case take(TransferID, path: String)
    }

    private let rig: AgentRig
    private var generator: SeededGenerator
    private var server = SimulatedServer()
    private(set) var ledger = TransferLedger()
    private var questions: [Int32: Question] = [:]
    private var listeners: [Int32] = []
    private var nextName = 0
    /// The number of times that a process or a machine has ended.
    private(set) var deaths = 0
    private(set) var takenFiles = 0
    /// The number of cancellations that requested to keep the partial file.
    private var keptCount = 0

    /// The last one has followers; the others are woken.
    private static let sessions = ["first", "second", "followed"]
    private static let minute: Int64 = 60_000

    init(seed: UInt64) throws {
        self.generator = SeededGenerator(seed: seed)
        self.rig = try AgentRig(seed: seed &+ 1)
        self.rig.settings.limits.runningMax = 1 + self.generator.number(below: 8)
        try self.rig.start()
        for session in Self.sessions {
            let timeout = self.generator.pick([10, 60, 100_000]) * Self.minute
            _ = self.rig.put(session) { $0.resourceTimeout = timeout }
        }
    }

    /// Runs this many random steps, and then lets everything end.
    mutating func run(steps: Int) throws {
        for _ in 0..<steps {
            try self.step()
            try self.settle()
            if !self.ledger.violations.isEmpty { return }
        }
        try self.converge()
        try self.list()
        self.ledger.close(sessions: Array(Self.sessions.dropLast()))
        self.takeAll()
    }

    // MARK: Random steps

    private mutating func step() throws {
        switch self.generator.number(below: 100) {
        case 0..<20: self.submit()
        case 20..<62: self.moveAttempt(isReliable: false)
        case 62..<68: self.answerGateway(isReliable: false)
        case 68..<72: self.take()
        case 72..<75: self.rig.world.doMove()
        case 75..<78: try self.cancel()
        case 78..<80: self.change()
        case 80..<86: self.rig.pass(Int64(self.generator.number(below: 3000)))
        case 86: self.rig.pass(Int64(self.generator.number(below: 20)) * Self.minute)
        case 87: self.rig.world.clock.stepWall(by: Int64(self.generator.number(in: -100...100)) * Self.minute)
        case 88: self.tellConditions()
        case 89..<91: self.follow()
        case 91: self.rig.world.fault = .once
        case 92: try self.die(losesPower: false)
        case 93: try self.die(losesPower: true)
        case 94: self.rig.world.fault = self.generator.pick([.deathBefore, .deathAfter])
        default: try self.list()
        }
    }

    /// Runs a turn. If the process has ended, starts another one.
    private mutating func settle() throws {
        self.rig.turn()
        if self.rig.world.isDead { return try self.die(losesPower: self.generator.once(in: 2)) }
        self.hear()
    }

    private mutating func die(losesPower: Bool) throws {
        self.deaths += 1
        self.hear()
        self.questions.removeAll()
        self.listeners.removeAll()
        // A file that was being moved may or may not have reached its destination.
        while !self.rig.world.moves.isEmpty, self.generator.once(in: 2) { self.rig.world.doMove() }
        try self.server.processEnded(losesPower: losesPower, self.rig, using: &self.generator)
        if losesPower {
            try self.rig.reboot(after: Int64(self.generator.number(below: 5)) * Self.minute)
        } else {
            self.rig.world.clock.pass(Int64(self.generator.number(below: 5000)))
            try self.rig.start()
        }
        try self.list()
    }

    /// Handles the answers that have arrived.
    private mutating func hear() {
        for (stream, question) in self.questions {
            guard let answer = self.rig.answers[stream] else { continue }
            self.questions[stream] = nil
            switch question {
            case .submission(let session, let url):
                let body = JSONValue(answer.body)
                if answer.status == 201, let id = body?["transfer"]?.text.flatMap({ TransferID($0) }) {
                    self.ledger.submitted(id, session, url)
                } else if answer.status != 507 {
                    self.ledger.fault("a submission is answered \(answer.status)")
                }
            case .take(let id, let path):
                if answer.status == 200 { self.check(id, at: path) }
                if answer.status == 400 {
                    self.ledger.fault("\(id) is asked for and answered \(answer.status)")
                }
            }
        }
    }

    private mutating func check(_ id: TransferID, at path: String) {
        guard let url = self.ledger.entries[id]?.url else { return self.ledger.fault("\(id) was taken unseen") }
        guard let found = try? Data(contentsOf: URL(fileURLWithPath: path)) else {
            return self.ledger.fault("\(id) was taken, and is not at its place")
        }
        self.takenFiles += 1
        if !self.server.isEntity(Array(found), of: url) { self.ledger.fault("\(id) differs from the server's entity") }
    }

    // MARK: Callers

    private mutating func submit() {
        let session = self.generator.pick(Self.sessions)
        let host = self.generator.number(in: 1...3)
        let url =
            "http://192.0.2.\(host):80/\(self.generator.number(below: 9))/\(self.generator.pick([0, 1, 700, 3000]))"
        let later = Int64(self.generator.number(below: 5)) * Self.minute
        let earliest = self.generator.once(in: 6) ? self.rig.world.wall + later : 0
        var submission = AgentRig.download(url, earliestBegin: earliest)
        if self.generator.once(in: 6) { submission.kind = .upload }
        self.questions[self.rig.submit(.submit(session, submission))] = .submission(session: session, url: url)
    }

    private mutating func take() {
        let finished = self.ledger.entries.filter { $0.value.end == "finished" && !$0.value.isGone }
        let ids = finished.keys.sorted { "\($0)" < "\($1)" }
        if let id = ids.randomPick(using: &self.generator) { self.take(id) }
    }

    private mutating func take(_ id: TransferID) {
        guard let session = self.ledger.entries[id]?.session else { return }
        self.nextName += 1
        let path = "\(self.rig.folder)/taken-\(self.nextName)"
        self.questions[self.rig.submit(.take(session, id, to: path, replaces: false))] = .take(id, path: path)
    }

    private mutating func cancel() throws {
        let open = self.ledger.entries.filter { !$0.value.isGone }
        guard let id = open.keys.sorted(by: { "\($0)" < "\($1)" }).randomPick(using: &self.generator),
            let session = open[id]?.session
        else { return }
        let shown = self.rig.ask(.transfer(session, id))
        guard shown.status == 200, let state = shown.body?["state"]?.text, !self.rig.world.isDead else { return }
        let keeps = self.generator.once(in: 2)
        if keeps { self.keptCount += 1 }
        self.ledger.askedToCancel(id, was: state)
        let answer = self.rig.ask(.cancel(session, id, keeps: keeps))
        if answer.status == 204 {
            self.ledger.cancelled(id, was: state)
        } else if answer.status != 409, answer.status != 0, answer.status != 507 {
            self.ledger.fault("a cancellation is answered \(answer.status)")
        } else if answer.status == 0, !self.rig.world.isDead {
            // The answer is sent when the cancellation is stored.
            self.rig.turn()
            if !self.rig.world.isDead { self.ledger.cancelled(id, was: state) }
        }
    }

    private mutating func change() {
        let connections = self.generator.number(in: 1...4)
        let isDiscretionary = self.generator.once(in: 3)
        let change: SessionChange = { session in
            session.connectionsPerHost = connections
            session.isDiscretionary = isDiscretionary
        }
        _ = self.rig.submit(.putSession(self.generator.pick(Self.sessions), change))
    }

    private mutating func follow() {
        if self.listeners.isEmpty || self.generator.once(in: 2) {
            self.listeners.append(self.rig.submit(.events(Self.sessions[2])))
        } else {
            self.rig.leave(self.listeners.removeLast())
        }
    }

    private mutating func list() throws {
        for session in Self.sessions {
            let answer = self.rig.ask(.transfers(session, state: nil, limit: 10_000, after: nil))
            guard !self.rig.world.isDead, answer.status == 200 else { continue }
            self.hear()
            self.ledger.listed(session, answer.body?["transfers"]?.elements ?? [])
        }
    }

    // MARK: The world

    private mutating func moveAttempt(isReliable: Bool) {
        guard let attempt = self.rig.world.attempts.randomPick(using: &self.generator) else { return }
        self.server.step(attempt, isReliable: isReliable, self.rig, using: &self.generator)
    }

    /// The gateway handles an entry. Sometimes its answer is lost, or it accepts nothing.
    private mutating func answerGateway(isReliable: Bool) {
        let count = self.rig.world.sendings.count
        guard count > 0 else { return }
        let sending = self.rig.world.takeSending(at: self.generator.number(below: count))
        if !isReliable, self.generator.once(in: 3) { return sending.report(.retry("the gateway is away")) }
        self.ledger.told(sending.entry)
        if !isReliable, self.generator.once(in: 3) { return sending.report(.retry("the answer is lost")) }
        sending.report(.delivered)
    }

    private mutating func tellConditions(isReliable: Bool = false) {
        var state = MachineState()
        if !isReliable {
            state.conditions.hasExternalPower = !self.generator.once(in: 3)
            state.conditions.hasNetwork = self.generator.pick([true, false, nil])
        }
        self.rig.report(state)
    }

    private mutating func converge() throws {
        self.rig.world.fault = .none
        self.tellConditions(isReliable: true)
        for _ in 0..<20_000 {
            try self.settle()
            if self.rig.world.attempts.isEmpty, self.rig.world.sendings.isEmpty, self.rig.world.moves.isEmpty {
                if self.isAtRest() { return }
                self.rig.pass(max(1, self.rig.wait))
            }
            self.moveAttempt(isReliable: true)
            self.answerGateway(isReliable: true)
            self.rig.world.doMove()
        }
        self.ledger.fault("it never becomes idle")
    }

    private func isAtRest() -> Bool {
        let status = self.rig.ask(.status).body
        let counts = status?["transfers"]
        return status?["outbox"]?["waiting"]?.integer == 0 && counts?["waiting"]?.integer == 0
            && counts?["running"]?.integer == 0
    }

    /// Takes every finished file. After that, the folder must contain only files that were kept for later.
    private mutating func takeAll() {
        for id in self.ledger.untaken {
            self.take(id)
            self.rig.turn()
            self.rig.world.doMove()
            self.rig.turn()
            if self.questions.isEmpty { self.ledger.fault("\(id) was not asked for") }
            self.hear()
            if !self.questions.isEmpty { self.ledger.fault("\(id) cannot be taken") }
        }
        let left = self.rig.fileNames().count
        if left > self.keptCount { self.ledger.fault("\(left) files are left, and \(self.keptCount) were kept") }
    }
}

extension Array {
    /// Returns a random element; nil for an empty array.
    func randomPick(using generator: inout SeededGenerator) -> Element? {
        self.isEmpty ? nil : generator.pick(self)
    }
}

@Suite("Simulation of the transfer agent", .timeLimit(.minutes(15)))
struct AgentSimulationTests {
    private static let seeds: [UInt64] = {
        let replayed = ProcessInfo.processInfo.environment["WAKEGATE_SEED"].flatMap { UInt64($0) }
        return replayed.map { [$0] } ?? Array(1...8)
    }()

    @Test("Whatever crashes, each transfer ends once, is complete, and is reported once")
    func worlds() throws {
        var (deaths, taken, ends, events) = (0, 0, [String: Int](), 0)
        for seed in Self.seeds {
            var simulation = try AgentSimulation(seed: seed)
            try simulation.run(steps: 500)
            let violations = simulation.ledger.violations
            #expect(
                violations.isEmpty,
                "seed \(seed) (WAKEGATE_SEED=\(seed) replays it): \(violations.prefix(3)); \(violations.count) in all"
            )
            deaths += simulation.deaths
            taken += simulation.takenFiles
            ends.merge(simulation.ledger.endCounts, uniquingKeysWith: +)
            events += simulation.ledger.events.values.reduce(0) { $0 + $1.count }
        }
        guard Self.seeds.count > 1 else { return }
        // Worlds in which nothing happens would prove nothing.
        #expect(deaths > 60 && taken > 30 && events > 30, "\(deaths) deaths, \(taken) taken, \(events) events")
        for end in ["finished", "failed", "cancelled"] { #expect(ends[end, default: 0] > 20, "\(ends)") }
    }
}

/// Records what callers were promised, and what they and the gateway received afterwards. Checks that each transfer
/// ends once, and that the events of a session count each end once.
struct TransferLedger {
    /// A transfer whose submission was answered, or that was seen in a list.
    struct Entry {
        let session: String
        let url: String
        var end: String?
        var isDownload = false
        /// True if its cancellation or the removal of its record was confirmed.
        var isGone = false
        /// True if the removal of its record was requested and not yet confirmed.
        var mayBeGone = false
        var isTaken = false
    }

    private(set) var entries: [TransferID: Entry] = [:]
    /// The events that the gateway has taken, by session and name.
    private(set) var events: [String: [String: Int]] = [:]
    private(set) var violations: [String] = []
    /// The number of promised transfers that have ended, by state.
    private(set) var endCounts: [String: Int] = [:]

    mutating func fault(_ text: String) { self.violations.append(text) }

    mutating func submitted(_ id: TransferID, _ session: String, _ url: String) {
        if self.entries[id] == nil { self.entries[id] = Entry(session: session, url: url) }
    }

    /// Records that the gateway has received an event, possibly one that it already has.
    mutating func told(_ entry: OutboxEntry) {
        let before = self.events[entry.session]?[entry.event]
        if let before, before != entry.finished {
            self.fault("event \(entry.event) stood for \(before) transfers and now for \(entry.finished)")
        }
        self.events[entry.session, default: [:]][entry.event] = entry.finished
    }

    /// Records the whole list of a session.
    mutating func listed(_ session: String, _ transfers: [JSONValue]) {
        var seen: Set<TransferID> = []
        for shown in transfers {
            guard let id = shown["transfer"]?.text.flatMap({ TransferID($0) }), let state = shown["state"]?.text else {
                self.fault("a list has \(shown)")
                continue
            }
            if !seen.insert(id).inserted { self.fault("\(id) is listed twice") }
            self.submitted(id, session, shown["url"]?.text ?? "")
            self.seen(id, state, shown)
        }
        for (id, entry) in self.entries where entry.session == session && !entry.isGone && !seen.contains(id) {
            if !entry.mayBeGone { self.fault("\(id) was promised and is not there") }
            self.entries[id]?.isGone = true
        }
    }

    private mutating func seen(_ id: TransferID, _ state: String, _ shown: JSONValue) {
        guard var entry = self.entries[id] else { return }
        if entry.isGone { self.fault("\(id) was removed and is there") }
        if let end = entry.end {
            if state != end { self.fault("\(id) had ended as \(end) and is \(state)") }
        } else if ["finished", "failed", "cancelled"].contains(state) {
            entry.end = state
            self.endCounts[state, default: 0] += 1
        }
        entry.isDownload = shown["kind"]?.text == "download"
        let isTaken = shown["taken"] == .bool(true)
        if entry.isTaken, !isTaken { self.fault("\(id) was taken and is not") }
        entry.isTaken = isTaken
        if let bytes = shown["bytes"]?.integer, let total = shown["total"]?.integer, bytes > total {
            self.fault("\(id) has \(bytes) of \(total) bytes")
        }
        self.entries[id] = entry
    }

    /// Records a request to remove the record of a transfer that is in this state.
    mutating func askedToCancel(_ id: TransferID, was state: String) {
        guard ["finished", "failed", "cancelled"].contains(state) else { return }
        if self.entries[id]?.end == nil { self.endCounts[state, default: 0] += 1 }
        self.entries[id]?.end = state
        self.entries[id]?.mayBeGone = true
    }

    /// Records the answer to a cancellation. Just before it, the transfer was in this state.
    mutating func cancelled(_ id: TransferID, was state: String) {
        let hadEnded = ["finished", "failed", "cancelled"].contains(state)
        let end = hadEnded ? state : "cancelled"
        let before = self.entries[id]?.end
        if let before, before != end { self.fault("\(id) had ended as \(before) and is \(end)") }
        if before == nil { self.endCounts[end, default: 0] += 1 }
        self.entries[id]?.end = end
        self.entries[id]?.isGone = hadEnded
    }

    /// The finished downloads whose files have not been taken.
    var untaken: [TransferID] {
        self.entries.filter { _, entry in
            entry.end == "finished" && entry.isDownload && !entry.isGone && !entry.isTaken
        }.map(\.key)
    }

    /// Checks the end: everything has ended, and the events of these sessions count each reported end once.
    mutating func close(sessions: [String]) {
        for (id, entry) in self.entries where entry.end == nil { self.fault("\(id) has not ended") }
        for session in sessions {
            let ends = self.entries.values.count {
                $0.session == session && ($0.end == "finished" || $0.end == "failed")
            }
            let told = self.events[session, default: [:]].values.reduce(0, +)
            if told != ends { self.fault("\(ends) transfers of \(session) have ended, and \(told) were reported") }
        }
    }
}
