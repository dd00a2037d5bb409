import Engine
import Foundation
import Gateway
import Platform
import Storage
import Synchronization
import WakeGateTestKit
import Wire

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
