import Engine
import Gateway
import Policy
import Storage
import WakeGateTestKit
import Wire

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
