import Foundation
import HTTPTransport
import Platform
import ServiceManager
import Storage
import Synchronization
import Testing
import TransferAgent
import WakeGateTestKit
import Wire

/// An agent's room in a simulated world, on a state directory that outlives it.
final class AgentRig {
    let world: ScriptedAgentWorld
    var settings = AgentSettings()
    let folder: String
    /// The answers to callers, by the number of the request.
    private(set) var answers: [Int32: AgentAnswer] = [:]
    private(set) var events: [(stream: Int32, text: String)] = []
    /// The number of the last announced end, by follower number.
    private(set) var announcements: [Int32: Int] = [:]
    private(set) var stateFiles: StateFiles?
    private var engine: AgentEngine?
    /// The items that the last start has restored.
    private(set) var found: AgentEngine.RestoreSummary?
    private var inbox = AgentInbox()
    private var nextStream: Int32 = 1
    /// The conditions of the machine at each start; nil if they are not known yet.
    var conditionsAtStart: MachineState? = MachineState()
    private let sink = RecordedLog()
    private let log: GatewayLog
    /// The identifier of the simulated boot.
    private var bootNumber = 1

    static let device = String(repeating: "0badcafe", count: 8)

    /// The events in the log.
    var logged: [GatewayEvent] {
        self.log.flush()
        return self.sink.events.withLock(\.self)
    }

    /// - Parameters:
    ///   - seed: the seed of all random numbers.
    ///   - level: the level of the log.
    init(seed: UInt64 = 1, level: LogLevel = .error) throws {
        self.world = ScriptedAgentWorld(seed: seed)
        self.log = GatewayLog(level: level, format: .text, sink: self.sink)
        // In memory if possible, because the tests do not depend on a real disk.
        let memory = "/dev/shm"
        let base = FileSystem.exists(memory) ? memory : FileManager.default.temporaryDirectory.path
        self.folder = "\(base)/wg-room-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: self.state, withIntermediateDirectories: true)
        self.settings.stateFolder = self.state
        self.settings.gateway = "http://127.0.0.1:9"
        self.settings.spaceReserve = 0
    }

    deinit { try? FileManager.default.removeItem(atPath: self.folder) }

    /// The state directory. Finished files are never moved into it.
    var state: String { "\(self.folder)/state" }

    var boot: String { "00000000-0000-0000-0000-" + String(format: "%012d", self.bootNumber) }

    /// Starts a process, which restores the stored state.
    func start() throws {
        self.engine = nil
        self.world.store = nil
        self.world.liveAgain()
        self.inbox = AgentInbox()
        let files = try StateFiles(
            folder: "\(self.state)/files",
            bytesMax: self.settings.limits.stateBytesMax,
            reserve: 0,
            boot: self.boot
        )
        let store = try TransferStore(path: "\(self.state)/transfers.sqlite")
        self.world.store = store
        let engine = AgentEngine(
            settings: self.settings,
            files: files,
            store: store,
            world: self.world,
            log: self.log,
            post: { [inbox = self.inbox] in inbox.leave($0) },
            emit: { [weak self] in self?.take($0) }
        )
        self.stateFiles = files
        self.engine = engine
        self.found = try engine.restore()
        if let conditions = self.conditionsAtStart { self.report(conditions) }
        self.turn()
    }

    /// Ends the process, as a kill does.
    func end() {
        self.engine = nil
        self.stateFiles = nil
        self.world.store = nil
    }

    /// Restarts the machine and the process after this many milliseconds.
    func reboot(after milliseconds: Int64) throws {
        self.world.clock.pass(milliseconds)
        self.world.clock.reboot()
        self.bootNumber += 1
        try self.start()
    }

    private func take(_ outputs: [AgentOutput]) {
        guard !self.world.isDead else { return }
        for output in outputs {
            switch output {
            case .answer(let stream, let answer): self.answers[stream.number] = answer
            case .begin(let stream, let bytes), .write(let stream, let bytes):
                self.events.append((stream.number, String(decoding: bytes, as: UTF8.self)))
            case .confirm(let stream, let announcement): self.announcements[stream.number] = announcement
            case .finish: ()
            }
        }
    }

    /// Delivers the received messages and makes the room handle everything that is due.
    func turn() {
        self.engine?.turn(self.inbox.take())
    }

    /// Lets time pass. The room turns as often as it requests.
    func pass(_ milliseconds: Int64) {
        var left = milliseconds
        while left > 0, let engine = self.engine {
            // Otherwise the thread would begin one turn after another.
            #expect(engine.wait > 0, "after a turn nothing is due")
            let step = min(left, max(1, engine.wait))
            self.world.clock.pass(step)
            left -= step
            self.turn()
        }
    }

    /// Submits a request for the next turn.
    func submit(_ command: AgentCommand) -> Int32 {
        let stream = self.stream(self.nextStream)
        self.nextStream += 1
        self.inbox.leave(.command(stream, command))
        return stream.number
    }

    private func stream(_ number: Int32) -> StreamID {
        StreamID(connection: ConnectionID(index: 1, generation: 1), number: number)
    }

    /// Simulates that a follower has read everything that was sent to it and has then disconnected.
    func leave(_ number: Int32) {
        self.inbox.leave(.gone(self.stream(number), hasRead: self.announcements[number]))
    }

    /// Simulates that a follower has disconnected without reading anything.
    func lose(_ number: Int32) { self.inbox.leave(.gone(self.stream(number), hasRead: nil)) }

    func report(_ state: MachineState) { self.inbox.leave(.machine(state)) }

    /// Reports the default conditions of a machine with a change, and runs one turn.
    func report(_ change: (inout TransferConditions) -> Void) {
        var state = MachineState()
        change(&state.conditions)
        self.report(state)
        self.turn()
    }

    /// Submits a request, runs one turn and returns the answer.
    func ask(_ command: AgentCommand) -> (status: Int, body: JSONValue?) {
        let stream = self.submit(command)
        self.turn()
        guard let answer = self.answers[stream] else { return (0, nil) }
        return (answer.status, JSONValue(answer.body))
    }

    // MARK: Shortcuts

    /// Makes or changes a session. Unless `change` says so, it follows no force-quit.
    func put(_ name: String = "s", _ change: @escaping SessionChange = { _ in }) -> Int {
        let asked: SessionChange = { session in
            session.device = Self.device
            session.continuesAfterForceQuit = true
            change(&session)
        }
        return self.ask(.putSession(name, asked)).status
    }

    static func download(_ url: String, earliestBegin: Int64 = 0) -> TransferSubmission {
        let host = url.split(separator: "/").prefix(2).joined(separator: "//")
        return TransferSubmission(
            kind: .download,
            spec: TransferSpec(url: url),
            host: host,
            earliestBegin: earliestBegin
        )
    }

    func download(
        _ url: String = "http://192.0.2.1:80/a",
        in session: String = "s",
        earliestBegin: Int64 = 0
    ) throws -> TransferID {
        let answer = self.ask(.submit(session, Self.download(url, earliestBegin: earliestBegin)))
        return try #require(answer.body?["transfer"]?.text.flatMap { TransferID($0) })
    }

    func shown(_ id: TransferID, in session: String = "s") throws -> JSONValue {
        try #require(self.ask(.transfer(session, id)).body)
    }

    /// Creates the file of an attempt and reports that the attempt has begun to write it.
    @discardableResult
    func begin(_ attempt: ScriptedAgentWorld.Attempt, total: Int64 = 9) throws -> StateFiles.Writing {
        let writing = try #require(try self.stateFiles?.create(attempt.plan.freshFile))
        let part = PartFile(file: writing.name, validator: "\"v\"", total: total, synced: 0, boot: self.boot)
        attempt.report(.began(part))
        self.turn()
        return writing
    }

    /// Writes a complete file for an attempt and reports that the attempt is complete.
    func finish(_ attempt: ScriptedAgentWorld.Attempt, _ content: String = "abc") throws {
        let count = Int64(content.utf8.count)
        let writing = try self.begin(attempt, total: count)
        // A closure that throws `SystemError` crashes the compiler here (Swift 6.3.1).
        let isWritten = content.withByteView { (try? writing.write($0)) != nil }
        try #require(isWritten)
        self.stateFiles?.used(content.utf8.count)
        attempt.gauge.bytes.store(count, ordering: .relaxed)
        attempt.report(.succeeded(bytes: count, status: 200, sha256: nil))
        self.world.end(attempt.number)
        self.turn()
    }

    func fail(_ attempt: ScriptedAgentWorld.Attempt, _ fault: TransferFault = .connectionFailed("cut")) {
        attempt.report(.failed(fault, hasProgressed: false))
        self.world.end(attempt.number)
        self.turn()
    }

    /// Returns a download that has finished.
    func finished() throws -> TransferID {
        let id = try self.download()
        try self.finish(self.world.attempts[0])
        return id
    }

    /// Requests a finished file at a path and moves it there.
    ///
    /// - Returns: the status of the answer; nil if there was no answer.
    func take(_ id: TransferID, in session: String = "s", to place: String) -> Int? {
        let stream = self.submit(.take(session, id, to: place, replaces: false))
        self.turn()
        self.world.doMove()
        self.turn()
        return self.answers[stream]?.status
    }

    /// The names in the `files` folder of the state directory.
    func fileNames() -> [String] { FileSystem.names(in: "\(self.state)/files", countMax: .max) ?? [] }

    var wait: Int64 { self.engine?.wait ?? 0 }
}

/// The world of a room in a test: the test advances its clocks, decides the results of its attempts, and can make the
/// disk fail.
final class ScriptedAgentWorld: AgentWorld {
    /// An attempt that has begun and has not ended.
    struct Attempt {
        let number: Int
        let plan: AttemptPlan
        let gauge: AttemptGauge
        let report: @Sendable (AttemptNews) -> Void
    }

    /// An outbox entry that is being sent to the gateway.
    struct Sending {
        let entry: OutboxEntry
        let report: @Sendable (OutboxEntry.Outcome) -> Void
    }

    /// The fault that is injected into the next commit.
    enum CommitFault {
        case none
        /// This commit fails, and the next one succeeds.
        case once
        /// The process ends before the commit, or after it.
        case deathBefore, deathAfter
    }

    var clock = VirtualClock(boot: 5_000_000, wall: 1_790_000_000_000)
    var generator: SeededGenerator
    var store: TransferStore?
    var fault = CommitFault.none
    /// Returns true if the disk is full now.
    var isDiskFull: () -> Bool = { false }
    /// True if the process has ended. After that, its calls have no effect.
    private(set) var isDead = false
    private(set) var attempts: [Attempt] = []
    private(set) var sendings: [Sending] = []
    private(set) var moves: [@Sendable () -> Bool] = []
    /// The questions to the gateway about force-quits that have no answer yet.
    private(set) var questions: [(device: String, report: @Sendable (Result<Bool, GatewayFault>) -> Void)] = []
    /// The number of updates of stored transfers in all commits.
    private(set) var updateCount = 0
    private var nextNumber = 0

    init(seed: UInt64) {
        self.generator = SeededGenerator(seed: seed)
    }

    var wall: Int64 { self.clock.wall }
    var boot: Int64 { self.clock.boot }

    func random() -> UInt64 { self.generator.next() }

    func commit(_ writes: [StoreWrite]) throws(SQLiteError) {
        let failure = SQLiteError(kind: .full, message: "the disk of the test is full")
        let death = SQLiteError(kind: .io, message: "the process of the test has ended")
        guard !self.isDead else { throw death }
        if self.isDiskFull() { throw failure }
        let fault = self.fault
        self.fault = .none
        switch fault {
        case .none: try self.store?.commit(writes)
        case .once: throw failure
        case .deathBefore:
            self.isDead = true
            throw death
        case .deathAfter:
            try self.store?.commit(writes)
            self.isDead = true
            throw death
        }
        self.updateCount += writes.count { if case .updateTransfer = $0 { true } else { false } }
    }

    func begin(_ plan: AttemptPlan, _ report: @escaping @Sendable (AttemptNews) -> Void) -> AttemptHandle {
        let gauge = AttemptGauge()
        self.nextNumber += 1
        let number = self.nextNumber
        if !self.isDead {
            self.attempts.append(Attempt(number: number, plan: plan, gauge: gauge, report: report))
        }
        return AttemptHandle(plan: plan, gauge: gauge) { [weak self] in self?.end(number) }
    }

    /// Handles that an attempt has ended or has been stopped.
    func end(_ number: Int) {
        self.attempts.removeAll { $0.number == number }
    }

    func send(_ entry: OutboxEntry, _ report: @escaping @Sendable (OutboxEntry.Outcome) -> Void) {
        if !self.isDead { self.sendings.append(Sending(entry: entry, report: report)) }
    }

    func askForceQuit(_ device: String, _ report: @escaping @Sendable (Result<Bool, GatewayFault>) -> Void) {
        if !self.isDead { self.questions.append((device, report)) }
    }

    /// Answers the oldest question; nil for a fault.
    func answerQuestion(_ isForceQuit: Bool?) {
        let fault = GatewayFault(cause: "the gateway of the test is silent")
        self.questions.removeFirst().report(isForceQuit.map { .success($0) } ?? .failure(fault))
    }

    /// Removes and returns a pending sending. The caller must report its outcome.
    func takeSending(at index: Int = 0) -> Sending { self.sendings.remove(at: index) }

    func move(_ step: @escaping @Sendable () -> Bool) {
        if !self.isDead { self.moves.append(step) }
    }

    /// Runs the first piece of work that waits for the disk.
    func doMove() {
        guard !self.moves.isEmpty else { return }
        let step = self.moves.removeFirst()
        while step() {}
    }

    /// Starts another process. The pending work of the previous process is discarded.
    func liveAgain() {
        self.isDead = false
        self.fault = .none
        self.attempts.removeAll()
        self.sendings.removeAll()
        self.questions.removeAll()
        self.moves.removeAll()
    }
}

/// A log sink that keeps the events.
final class RecordedLog: LogSink {
    let events = Mutex<[GatewayEvent]>([])

    func write(_ line: LogLine, _ format: LogFormat) -> Bool {
        self.events.withLock { $0.append(line.event) }
        return true
    }
}

/// An inbox that collects messages for a room.
final class AgentInbox: Sendable {
    private let messages = Mutex<[AgentMessage]>([])

    func leave(_ message: AgentMessage) { self.messages.withLock { $0.append(message) } }

    func take() -> [AgentMessage] {
        self.messages.withLock { messages in
            defer { messages = [] }
            return messages
        }
    }
}
