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

/// What an engine is made with in these tests.
struct EngineSetting {
    let configuration: EngineConfiguration
    /// Clocks that the test moves, and chance from a seed.
    let world: EngineWorld
    /// Where the engine leaves what happens, for those who follow it.
    let events = EventDesk()
}

/// An engine that is held to the contract of `GatewayEngine`, and what surrounds it.
///
/// The suites of this folder are that contract, as providers, workers and operators see it: what goes in is a
/// `CommandBatch`, what is judged is what lies in the mailbox of a loop afterwards, as values. No test knows more of an
/// engine than this protocol says.
///
/// An implementation joins with a type that conforms to it and with an `EngineKind` in `EngineKind.all`, one for each
/// way in which it may be set up. Everything else follows: every test of the folder runs for it. It has one loop, and a
/// history that answers what it is asked. It reads no clock but those of its setting, and does nothing while it is not
/// called: what it does on other threads is over when `commit` returns.
protocol EngineUnderTest: AnyObject {
    var engine: any GatewayEngine { get }

    /// Where the engine leaves what it has for its only loop.
    var loop: LoopMailbox { get }

    /// Waits until nothing is being made durable, and whatever was is in the mailbox. An engine that commits when the
    /// test says so commits here.
    func commit()

    /// Nothing of what it was asked for is under way.
    var isIdle: Bool { get }

    /// Nothing of the next commit becomes durable, and the engine learns that it failed.
    func failNextCommit()

    /// The process dies, and another one starts on what was durable. The old engine is called no more.
    ///
    /// - Throws: when it does not start.
    func restart() throws
}

extension EngineUnderTest {
    /// What an engine that has its store to itself was asked for is under way no longer than one commit and one step.
    var isIdle: Bool { true }
}

/// One way to set up an engine.
struct EngineKind: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// What was durable is there after a restart, and a commit can fail.
    let keeps: Bool
    /// Nothing becomes durable between two calls of `commit`.
    let commitsOnCommand: Bool
    /// Others may have the store, too: a commit that fails is one of many, each with its own answers.
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
            SharedUnderTest($0, transactionsMax: 4, commitsOnCommand: false)
        },
        EngineKind(
            testDescription: "on a shared store, one transaction at a time",
            keeps: true,
            commitsOnCommand: true,
            sharesStore: true
        ) {
            SharedUnderTest($0, transactionsMax: 1, commitsOnCommand: true)
        },
    ]

    static let keeping = EngineKind.all.filter(\.keeps)
    static let alone = EngineKind.all.filter { !$0.sharesStore }
    static let keepingAlone = EngineKind.keeping.filter { !$0.sharesStore }
    static let sharing = EngineKind.all.filter(\.sharesStore)
    static let onCommand = EngineKind.all.filter(\.commitsOnCommand)
}

/// The embedded engine without a store, on a journal with the committer of the gateway, or on a store in memory that is
/// slow.
final class EmbeddedUnderTest: EngineUnderTest {
    enum Storage {
        case nothing, journal, slow
    }

    private let storage: Storage
    private let setting: EngineSetting
    private let folder = FileManager.default.temporaryDirectory.appending(path: "wakegate-conformance-\(UUID())")
    /// nil between two processes.
    private var life: Life?
    private var slowStore = SimulatedStore()

    /// One process.
    private struct Life {
        let engine: any GatewayEngine
        let loop: LoopMailbox
        let committer: (any Committer)?
        let store: FaultyStore?
    }

    init(_ storage: Storage, _ setting: EngineSetting) throws {
        self.storage = storage
        self.setting = setting
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: false)
        self.life = try Self.begin(storage, setting, self.folder, self.slowStore)
    }

    deinit {
        self.life?.committer?.stop()
        try? FileManager.default.removeItem(at: self.folder)
    }

    var engine: any GatewayEngine { self.running.engine }
    var loop: LoopMailbox { self.running.loop }

    private var running: Life {
        guard let life = self.life else { preconditionFailure("a restart that failed leaves no engine") }
        return life
    }

    func commit() { _ = self.life?.committer?.waitUntilIdle() }

    func failNextCommit() { self.life?.store?.failNextCommit() }

    func restart() throws {
        // A committer with a thread is done with what it was given; what the engine still holds is lost.
        if self.storage == .journal { self.life?.committer?.stop() }
        self.slowStore = self.slowStore.reopened(keepsUnresolved: false)
        // The old store lets go of its file first, on whichever thread has it last.
        let closed = self.life?.store?.closed
        self.life = nil
        closed?.wait()
        self.life = try Self.begin(self.storage, self.setting, self.folder, self.slowStore)
    }

    private static func begin(
        _ storage: Storage,
        _ setting: EngineSetting,
        _ folder: URL,
        _ slowStore: SimulatedStore
    ) throws -> Life {
        let loop = LoopMailbox()
        var store: FaultyStore?
        switch storage {
        case .nothing: break
        case .slow:
            store = FaultyStore(slowStore) { take throws(StoreError) in
                try slowStore.reopened(keepsUnresolved: false).load(take)
            }
        case .journal:
            let path = folder.appending(path: "journal.sqlite").path
            store = FaultyStore(try Journal(path: path)) { take throws(StoreError) in
                try JournalReader.load(path: path, take)
            }
        }
        var committer: (any Committer)?
        let engine = try EmbeddedGatewayEngine(
            configuration: setting.configuration,
            historyKey: EngineRig.historyKey,
            world: setting.world,
            makeCommitter: { store, outlet, ring throws(StoreError) in
                let made: any Committer =
                    storage == .slow
                    ? SteppedCommitter(store, outlet)
                    : try CommitPipeline(store: store, outlet: outlet, ring: ring)
                committer = made
                return made
            },
            store: store,
            outlet: GroupOutlet(
                mailboxes: PerOutlet(loop),
                history: MemoryHistory(PerOutlet(loop)),
                events: setting.events
            ),
            ring: {},
            onFailure: { _ in }
        )
        return Life(engine: engine, loop: loop, committer: committer, store: store)
    }
}

/// A store, one of whose commits fails when the test says so, before anything of it is written.
///
/// `@unchecked Sendable`: one thread uses it at a time, but for `failNextCommit`.
private final class FaultyStore: RecordStore, @unchecked Sendable {
    /// nil when it is closed.
    private var store: (any RecordStore)?
    let closed = Latch()
    private let durable: ((RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) -> Void
    private let isFailing = Mutex(false)

    /// - Parameter durable: hands over what is durable of `store`.
    init(
        _ store: any RecordStore,
        durable: @escaping ((RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) -> Void
    ) {
        self.store = store
        self.durable = durable
    }

    deinit {
        self.store = nil
        self.closed.open()
    }

    func failNextCommit() { self.isFailing.withLock { $0 = true } }

    func load(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) {
        try self.store?.load(take)
    }

    var loss: StoreLoss? { self.store?.loss }

    var beginsAnother: Bool { self.store?.beginsAnother ?? false }

    func begin() throws(StoreError) { try self.store?.begin() }

    func commit(_ batch: borrowing RecordBatch) throws(StoreError) {
        guard !self.isFailing.withLock({ $0 }) else { throw StoreError(message: "The disk is full.") }
        try self.store?.commit(batch)
    }

    func reload(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) {
        try self.durable(take)
    }
}

/// A history in memory, written and asked by whoever hands over.
///
/// `@unchecked Sendable`: one thread uses it at a time.
private final class MemoryHistory: HistoryOutlet, @unchecked Sendable {
    private let mailboxes: PerOutlet<LoopMailbox>
    private let file: HistoryFile
    private let feed: HistoryFeed

    init(_ mailboxes: PerOutlet<LoopMailbox>) {
        self.mailboxes = mailboxes
        self.file = HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in }
        self.feed = HistoryFeed(self.file, EventRetention(), nil) { _ in }
    }

    func open() {}

    func waitUntilOpened() -> HistoryFound? { self.file.found }

    func submit(_ batch: inout HistoryBatch) {
        self.feed.take(batch)
        for question in batch.questions { question.answer(from: self.file, self.mailboxes) }
        batch.removeAll()
    }
}

/// The engine on a shared store: a simulated database in which everything is done at once, or each commit when the test
/// says so.
final class SharedUnderTest: EngineUnderTest {
    private let setting: EngineSetting
    private let database: SimulatedDatabase
    private let transactionsMax: Int
    private let commitsOnCommand: Bool
    private var life: Life

    /// One process.
    private struct Life {
        let engine: SharedGatewayEngine
        let store: SimulatedClusterStore
        let loop: LoopMailbox
    }

    init(_ setting: EngineSetting, transactionsMax: Int, commitsOnCommand: Bool) {
        let database = SimulatedDatabase(seed: 1, pace: .immediate)
        database.follow = { setting.world.wall() }
        if commitsOnCommand { database.holdCommits() }
        self.setting = setting
        self.database = database
        self.transactionsMax = transactionsMax
        self.commitsOnCommand = commitsOnCommand
        self.life = Self.begin(setting, database, transactionsMax)
    }

    var engine: any GatewayEngine { self.life.engine }
    var loop: LoopMailbox { self.life.loop }
    var isIdle: Bool { self.life.engine.isIdle }

    func commit() {
        guard self.commitsOnCommand else { return }
        self.database.letCommitsGo()
        _ = self.life.engine.step(CommandBatch())
    }

    func failNextCommit() { self.database.refuseNextCommits() }

    func restart() {
        self.life.store.kill(withMachine: false)
        self.life = Self.begin(self.setting, self.database, self.transactionsMax)
        // Whoever is attached finds the dead, and gives back their wakes.
        for _ in 0..<10 {
            _ = self.life.engine.step(CommandBatch())
            self.commit()
        }
    }

    private static func begin(
        _ setting: EngineSetting,
        _ database: SimulatedDatabase,
        _ transactionsMax: Int
    ) -> Life {
        let loop = LoopMailbox()
        let store = SimulatedClusterStore(database, transactionsMax: transactionsMax, ring: {})
        let engine = SharedGatewayEngine(
            configuration: setting.configuration,
            historyKey: EngineRig.historyKey,
            report: GatewayReport(name: "gateway", version: "1"),
            world: setting.world,
            store: store,
            waitForStore: Waiting(database).body,
            outlet: GroupOutlet(
                mailboxes: PerOutlet(loop),
                history: DatabaseHistory(PerOutlet(loop), database),
                events: setting.events
            )
        )
        return Life(engine: engine, store: store, loop: loop)
    }
}

/// Who waits for the store of an engine that stops has commits done that wait for the test.
///
/// `@unchecked Sendable`: one thread uses it at a time.
private final class Waiting: @unchecked Sendable {
    private let database: SimulatedDatabase

    init(_ database: SimulatedDatabase) { self.database = database }

    var body: @Sendable (Int64) -> Void { { _ in self.database.letCommitsGo() } }
}

/// A history in memory that reads what happened from a simulated database, whenever somebody asks.
///
/// `@unchecked Sendable`: one thread uses it at a time.
final class DatabaseHistory: HistoryOutlet, @unchecked Sendable {
    private let mailboxes: PerOutlet<LoopMailbox>
    private let database: SimulatedDatabase
    private let file: HistoryFile
    private let feed: HistoryFeed
    private var eventCount = 0

    init(_ mailboxes: PerOutlet<LoopMailbox>, _ database: SimulatedDatabase) {
        self.mailboxes = mailboxes
        self.database = database
        self.file = HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in }
        self.feed = HistoryFeed(self.file, EventRetention(), nil) { _ in }
    }

    func open() {}

    func waitUntilOpened() -> HistoryFound? { self.file.found }

    func submit(_ batch: inout HistoryBatch) {
        let news = HistoryBatch()
        news.events = Array(self.database.rows.events.dropFirst(self.eventCount))
        self.eventCount += news.events.count
        self.feed.take(news)
        let source = DatabaseSource(self.file, self.database)
        for question in batch.questions { question.answer(from: source, self.mailboxes) }
        batch.removeAll()
    }
}

/// What happened, from a file, and devices from a simulated database.
private final class DatabaseSource: HistorySource {
    private let file: HistoryFile
    private let database: SimulatedDatabase

    init(_ file: HistoryFile, _ database: SimulatedDatabase) {
        self.file = file
        self.database = database
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
