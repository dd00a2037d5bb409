import Engine
import Foundation
import Gateway
import Platform
import Policy
import Storage
import Synchronization
import Testing
import WakeGateTestKit
import Wire

/// The parts from which these tests create an engine.
struct EngineSetting {
    let configuration: EngineConfiguration
    /// Clocks controlled by the test, and random numbers from a seed.
    let world: EngineWorld
    /// The service to which the engine publishes events.
    let events = EventService()
}

/// An engine that is tested against the contract of `GatewayEngine`, and its environment.
///
/// The suites of this folder are that contract, as seen by providers, workers and operators. The input is a
/// `CommandBatch`; the output is checked as values in the mailbox of a loop. Tests know nothing of an engine beyond
/// this protocol.
///
/// To add an implementation, define a conforming type, and add an `EngineKind` to `EngineKind.all` for each of its
/// configurations. Every test of the folder then runs for it. It has one loop, and a history that answers requests. It
/// reads only the clocks of its setting, and does nothing between calls: its work on other threads is finished when
/// `commit` returns.
protocol EngineUnderTest: AnyObject {
    var engine: any GatewayEngine { get }

    /// The mailbox of the engine's only loop.
    var loop: LoopMailbox { get }

    /// Waits until no commit is in progress and all its effects are in the mailbox. An engine that commits on command
    /// commits here.
    func commit()

    /// True if no request is being processed.
    var isIdle: Bool { get }

    /// Makes the next commit fail, and the engine learns of the failure.
    func failNextCommit()

    /// Kills the process and starts another one on the durable state. The old engine is not called again.
    ///
    /// - Throws: if it does not start.
    func restart() throws
}

extension EngineUnderTest {
    /// An engine with its own store finishes every request within one commit and one step.
    var isIdle: Bool { true }
}

/// A configuration of an engine.
struct EngineKind: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// True if the durable state survives a restart, and a commit can fail.
    let keeps: Bool
    /// True if nothing becomes durable between two calls of `commit`.
    let commitsOnCommand: Bool
    /// True if others may use the store: a failed commit is one of many, each with its own answers.
    var sharesStore = false
    let make: @Sendable (EngineSetting) throws -> any EngineUnderTest

    static let all = [
        EngineKind(testDescription: "embedded, nothing kept", keeps: false, commitsOnCommand: false) {
            try EmbeddedUnderTest(.nothing, $0)
        },
        EngineKind(testDescription: "embedded, on a journal", keeps: true, commitsOnCommand: false) {
            try EmbeddedUnderTest(.journal, $0)
        },
        EngineKind(testDescription: "embedded, on a slow store", keeps: true, commitsOnCommand: true) {
            try EmbeddedUnderTest(.slow, $0)
        },
        EngineKind(testDescription: "on a shared store", keeps: true, commitsOnCommand: false, sharesStore: true) {
            SharedUnderTest($0, commitsOnCommand: false)
        },
        EngineKind(
            testDescription: "on a shared store, one transaction at a time",
            keeps: true,
            commitsOnCommand: true,
            sharesStore: true
        ) {
            SharedUnderTest($0, commitsOnCommand: true)
        },
    ]

    static let keeping = EngineKind.all.filter(\.keeps)
    static let alone = EngineKind.all.filter { !$0.sharesStore }
    static let keepingAlone = EngineKind.keeping.filter { !$0.sharesStore }
    static let sharing = EngineKind.all.filter(\.sharesStore)
    static let onCommand = EngineKind.all.filter(\.commitsOnCommand)
}

/// The embedded engine without a store, on a journal with the gateway's committer, or on a slow store in memory.
final class EmbeddedUnderTest: EngineUnderTest {
    enum Storage {
        case nothing, journal, slow
    }

    private let storage: Storage
    private let setting: EngineSetting
    private let folder: TemporaryFolder
    /// Nil between two processes.
    private var life: Life?
    private var slowStore = SimulatedStore()

    /// The state of one process.
    private struct Life {
        let engine: any GatewayEngine
        let loop: LoopMailbox
        let committer: (any Committer)?
        let journal: FailingJournal?
    }

    init(_ storage: Storage, _ setting: EngineSetting) throws {
        self.storage = storage
        self.setting = setting
        self.folder = try TemporaryFolder()
        self.life = try Self.begin(storage, setting, self.folder, self.slowStore)
    }

    deinit { self.life?.committer?.stop() }

    var engine: any GatewayEngine { self.running.engine }
    var loop: LoopMailbox { self.running.loop }

    private var running: Life {
        guard let life = self.life else { preconditionFailure("a restart that failed leaves no engine") }
        return life
    }

    func commit() { _ = self.life?.committer?.waitUntilIdle() }

    func failNextCommit() {
        self.life?.journal?.failNextCommit()
        self.slowStore.failOperation(self.slowStore.operations)
    }

    func restart() throws {
        // A committer with a thread finishes everything submitted. The engine's remaining changes are lost.
        if self.storage == .journal { self.life?.committer?.stop() }
        self.slowStore = self.slowStore.reopened(keepsUnresolved: false)
        // The old store must release its file first, on whichever thread holds the last reference.
        let closed = self.life?.journal?.closed
        self.life = nil
        closed?.wait()
        self.life = try Self.begin(self.storage, self.setting, self.folder, self.slowStore)
    }

    private static func begin(
        _ storage: Storage,
        _ setting: EngineSetting,
        _ folder: TemporaryFolder,
        _ slowStore: SimulatedStore
    ) throws -> Life {
        let loop = LoopMailbox()
        let journal = try storage == .journal ? FailingJournal(path: "\(folder.path)/journal.sqlite") : nil
        let store: (any RecordStore)? = storage == .slow ? slowStore : journal
        var committer: (any Committer)?
        let engine = try LocalEngine(
            configuration: setting.configuration,
            historyKey: EngineRig.historyKey,
            world: setting.world,
            makeCommitter: { store, output, signal throws(StoreError) in
                let made: any Committer =
                    storage == .slow
                    ? SteppedCommitter(store, output)
                    : try CommitPipeline(store: store, output: output, signal: signal)
                committer = made
                return made
            },
            store: store,
            output: GroupOutput(
                mailboxes: PerOutput(loop),
                history: SteppedHistory(MemoryMedium(), PerOutput(loop)),
                events: setting.events
            ),
            signal: {},
            onFailure: { _ in }
        )
        return Life(engine: engine, loop: loop, committer: committer, journal: journal)
    }
}

/// A journal that fails a commit on request, before anything of it is written.
///
/// The class is `@unchecked Sendable`: one thread uses it at a time, except for `failNextCommit`.
private final class FailingJournal: RecordStore, @unchecked Sendable {
    private let path: String
    /// Nil once it is closed.
    private var journal: Journal?
    let closed = Latch()
    private let isFailing = Mutex(false)

    init(path: String) throws {
        self.path = path
        self.journal = try Journal(path: path)
    }

    deinit {
        self.journal = nil
        self.closed.open()
    }

    func failNextCommit() { self.isFailing.withLock { $0 = true } }

    func load(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) {
        try self.journal?.load(take)
    }

    var loss: StoreLoss? { self.journal?.loss }

    var isFork: Bool { self.journal?.isFork ?? false }

    func begin() throws(StoreError) { try self.journal?.begin() }

    func commit(_ batch: borrowing RecordBatch) throws(StoreError) {
        guard !self.isFailing.withLock({ $0 }) else { throw StoreError(message: "The disk is full.") }
        try self.journal?.commit(batch)
    }

    func reload(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) {
        try JournalLoader.load(path: self.path, take)
    }
}

/// The engine on a shared store: a simulated database that performs everything immediately, or commits on command, one
/// transaction at a time.
final class SharedUnderTest: EngineUnderTest {
    private let setting: EngineSetting
    private let database: SimulatedDatabase
    private let commitsOnCommand: Bool
    private var gateway: GatewaysRig.Gateway

    init(_ setting: EngineSetting, commitsOnCommand: Bool) {
        let database = SimulatedDatabase(seed: 1, pace: .immediate)
        database.follow = { setting.world.wall() }
        if commitsOnCommand { database.holdCommits() }
        self.setting = setting
        self.database = database
        self.commitsOnCommand = commitsOnCommand
        self.gateway = Self.begin(setting, database, commitsOnCommand)
    }

    private static func begin(
        _ setting: EngineSetting,
        _ database: SimulatedDatabase,
        _ commitsOnCommand: Bool
    ) -> GatewaysRig.Gateway {
        let gateway = GatewaysRig.Gateway(
            database,
            setting.configuration,
            setting.world,
            transactionsMax: commitsOnCommand ? 1 : 4,
            events: setting.events
        )
        // While a stopping engine waits for its store, the commits that wait for the test complete.
        gateway.store.onWait = { _ in database.letCommitsGo() }
        return gateway
    }

    var engine: any GatewayEngine { self.gateway.engine }
    var loop: LoopMailbox { self.gateway.loop }
    var isIdle: Bool { self.gateway.engine.isIdle }

    func commit() {
        guard self.commitsOnCommand else { return }
        self.database.letCommitsGo()
        _ = self.engine.step(CommandBatch())
    }

    func failNextCommit() { self.database.refuseNextCommits() }

    func restart() {
        self.gateway.store.kill(withMachine: false)
        self.gateway = Self.begin(self.setting, self.database, self.commitsOnCommand)
        // An attached gateway finds the dead one and loses its wakes.
        for _ in 0..<10 {
            _ = self.engine.step(CommandBatch())
            self.commit()
        }
    }
}

/// A history in memory that reads the events from a simulated database at each request, and finds its devices there.
///
/// The class is `@unchecked Sendable`, because one thread uses it at a time.
final class DatabaseHistory: HistoryOutput, HistorySource, @unchecked Sendable {
    private let mailboxes: PerOutput<LoopMailbox>
    private let database: SimulatedDatabase
    /// Created for the first request.
    private lazy var file = HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in }
    /// The number of the database's events in the file.
    private var eventCount = 0

    init(_ mailboxes: PerOutput<LoopMailbox>, _ database: SimulatedDatabase) {
        self.mailboxes = mailboxes
        self.database = database
    }

    func open() {}

    func waitUntilOpened() -> OpenedHistory? { nil }

    func submit(_ batch: inout HistoryBatch) {
        if !batch.questions.isEmpty {
            self.file.append(self.database.rows.events[self.eventCount...])
            self.eventCount = self.database.rows.events.count
            for question in batch.questions { question.answer(from: self, self.mailboxes) }
        }
        batch.removeAll()
    }

    func visit(device: UInt64, notAfter latest: Instant, _ body: (HistoryEvent) -> Bool) {
        self.file.visit(device: device, notAfter: latest, body)
    }

    func entries(devices: some Collection<UInt64>, since oldest: Instant, countEach: Int) -> LoggedEntries {
        self.file.entries(devices: devices, since: oldest, countEach: countEach)
    }

    func push(_ apnsID: APNsID) -> [HistoryEvent] { self.file.push(apnsID) }

    func pushes(behind place: LoggedPush?, notBefore oldest: Instant, countMax: Int) -> LoggedPushes {
        self.file.pushes(behind: place, notBefore: oldest, countMax: countMax)
    }

    func devices(of numbers: Set<UInt64>, _ key: HashKey) -> [UInt64: LoggedDevice]? {
        var found: [UInt64: LoggedDevice] = [:]
        for (token, row) in self.database.rows.devices {
            let number = HistoryEvent.device(of: token, key)
            guard numbers.contains(number) else { continue }
            found[number] = LoggedDevice(token: token, topic: self.database.rows.topics[Int(row.topic.rawValue)])
        }
        return found
    }
}
