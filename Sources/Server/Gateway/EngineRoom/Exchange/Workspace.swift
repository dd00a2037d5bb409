package import Engine
package import Policy
package import Wire

/// What a batch is performed on: devices in memory, the streams their wakes go to, and how the wall clock stands.
///
/// Who has put the devices there, and which of all there are, is not seen from here.
package struct Workspace {
    let engine: EmbeddedEngine
    let dispatcher: Dispatcher
    /// Wall clock minus policy time.
    let offset: WallOffset
    /// Why nothing is taken any more; nil as long as everything can be stored.
    let failure: StoreFailure?
    /// The workers of other gateways on the same store; nil where there is but one.
    let remote: RemoteWorkers?
    /// The device that was read last, when it has the rows of some devices in memory and not of all there are.
    var lastRead: DeviceToken?
    /// The devices of a list in the order `recent`, when not all devices there are were in memory at once.
    var recent: [DeviceToken]?

    package init(
        engine: EmbeddedEngine,
        dispatcher: Dispatcher,
        offset: WallOffset,
        failure: StoreFailure? = nil,
        remote: RemoteWorkers? = nil
    ) {
        self.engine = engine
        self.dispatcher = dispatcher
        self.offset = offset
        self.failure = failure
        self.remote = remote
    }

    /// Workers of one topic, or of all; after a failure those there were.
    func workerCounts(_ topic: TopicIndex?) -> Dispatcher.WorkerCounts {
        var counts = self.failure?.workers[topic] ?? self.dispatcher.workerCounts(topic)
        self.remote?.add(topic, to: &counts)
        return counts
    }

    /// Everything that is known of a device, the streams of other gateways included.
    func snapshot(_ device: DeviceIndex) -> DeviceSnapshot {
        var snapshot = self.dispatcher.snapshot(device)
        let topic = self.engine.topic(of: device)
        snapshot.pushTakers = self.takersShown(snapshot.pushTakers, of: .push, topic)
        for index in snapshot.tasks.indices { self.noteRemoteTakers(of: &snapshot.tasks[index], topic) }
        return snapshot
    }

    /// Says of a task whether streams of other gateways take it, as far as that is known here.
    func noteRemoteTakers(of task: inout TaskSnapshot, _ topic: TopicIndex) {
        if !task.isTaken, let remote = self.remote, remote.takers(of: task.target, topic) != .none {
            task.isTaken = true
        }
    }

    /// Whether streams take a wake; after a failure as far as those tell that there were.
    ///
    /// - Parameter takers: how it is with the streams of this gateway.
    func takersShown(_ takers: Takers, of target: LaunchTarget, _ topic: TopicIndex) -> Takers {
        if let workers = self.failure?.workers[topic] {
            return workers.connected == 0 ? .none : workers.busy < workers.slots ? .free : .busy
        }
        return takers == .free ? takers : max(takers, self.remote?.takers(of: target, topic) ?? .none)
    }

    /// How many devices wait for a worker of this topic: none while it is paused.
    func readyCount(_ topic: TopicIndex) -> Int {
        guard !self.engine.isPaused(topic) else { return 0 }
        guard self.remote != nil else { return self.engine.readyCount(topic) }
        return Int(clamping: self.engine.booksShown(topic).held[.worker])
    }

    /// How long the device has waited that waits longest for a worker, or for an engine, in milliseconds.
    var oldestDueMilliseconds: Int64 { self.remote?.oldestDueMilliseconds ?? self.engine.oldestDueMilliseconds }

    /// The counters of all topics together.
    func statistics(_ records: GatewayRecords, _ limits: LimitCounts) -> Statistics {
        Statistics(
            books: self.engine.totalsShown,
            rejected: records.rejectionsShown.total,
            workers: self.workerCounts(nil),
            since: records.countingSince,
            limits: limits.met(self.dispatcher),
            acceptedLoss: records.acceptedLoss,
            cluster: self.remote.map { $0.status ?? ClusterStatus(nil, own: nil) }
        )
    }

    /// The counters of one topic.
    func statistics(_ topic: TopicIndex, _ records: GatewayRecords) -> Statistics {
        Statistics(
            books: self.engine.booksShown(topic),
            rejected: records.rejectionsShown[topic],
            workers: self.workerCounts(topic),
            since: records.countingSince
        )
    }
}

// MARK: - Lists

extension Workspace {
    /// The most tasks of all devices that are listed.
    static let tasksMax = 1000

    /// The devices in memory that a list is about.
    func devices(of subject: ListedRows, for caller: Caller) -> [DeviceToken] {
        switch subject {
        case .tasks(let question): self.devices(of: question, for: caller)
        case .devices(let question): self.devices(of: question, for: caller)
        }
    }

    /// The devices of the tasks that a question is about, as far as they are in memory: each once for each task.
    private func devices(of question: TaskQuestion, for caller: Caller) -> [DeviceToken] {
        let topics = self.topics(question.topic, for: caller)
        let filter = TaskFilter(topics: topics, kind: question.kind, state: question.state)
        return self.engine.tasks(filter, countMax: Self.tasksMax).map(\.device)
    }

    /// The search for the devices that a question is about, as far as a caller reaches them.
    func search(_ question: DeviceQuestion, for caller: Caller) -> DeviceSearch {
        DeviceSearch(
            topics: self.topics(question.topic, for: caller),
            order: question.order,
            after: question.start,
            countMax: question.examined
        )
    }

    /// The devices in memory that a question is about, in its order.
    private func devices(of question: DeviceQuestion, for caller: Caller) -> [DeviceToken] {
        let filter = question.filter
        var search = self.search(question, for: caller)
        _ = self.engine.look(&search, placesMax: .max, filter: question.searchFilter)
        return search.tokens.filter { token in
            self.engine.find(token).map { filter.takes(self.engine.snapshot($0)) } ?? false
        }
    }

    /// The topics that a question is about, without those that are unknown; nil stands for all of them.
    func topics(_ name: String?, for caller: Caller) -> Set<TopicIndex>? {
        let names: Set<String>
        switch (name, caller.topics) {
        case (nil, .all): return nil
        case (nil, .only(let own)): names = Set(own)
        case (let name?, _): names = caller.reaches(name) ? [name] : []
        }
        return Set(names.compactMap { name in name.withByteView { self.engine.findTopic($0) } })
    }
}

/// Nothing can be stored, any more or for now: why, and what is still known.
package final class StoreFailure {
    let error: StoreError
    let workers: WorkersAtFailure
    /// Why the last durable state could not be read either; nil when it was.
    let durableError: StoreError?
    /// Whether it passes, as a connection to a database comes again.
    let isPassing: Bool

    package init(error: StoreError, workers: WorkersAtFailure, durableError: StoreError?, isPassing: Bool = false) {
        self.error = error
        self.workers = workers
        self.durableError = durableError
        self.isPassing = isPassing
    }

    /// What somebody is answered whose request this is the cause for not doing.
    func refusal(_ cause: StoreError) -> APIError {
        self.isPassing ? .storeUnavailable(cause) : .storeFailed(cause)
    }
}

/// The workers there were when a commit failed; the dispatcher that knew them is gone.
package struct WorkersAtFailure {
    private let total: Dispatcher.WorkerCounts
    private let byTopic: [TopicIndex: Dispatcher.WorkerCounts]

    package init(_ dispatcher: Dispatcher, _ engine: EmbeddedEngine) {
        self.total = dispatcher.workerCounts(nil)
        let topics = engine.topicSnapshots.map { ($0.index, dispatcher.workerCounts($0.index)) }
        self.byTopic = Dictionary(uniqueKeysWithValues: topics)
    }

    /// - Parameter topic: nil for all together.
    subscript(topic: TopicIndex?) -> Dispatcher.WorkerCounts {
        guard let topic else { return self.total }
        return self.byTopic[topic] ?? Dispatcher.WorkerCounts()
    }
}

/// The workers of the other gateways on a shared store, as these said last; one thread uses it.
package final class RemoteWorkers {
    private var total = Dispatcher.WorkerCounts()
    private var byTopic: [TopicIndex: Dispatcher.WorkerCounts] = [:]
    /// The kinds of these workers by what they take.
    private var offers: [TopicIndex: [(request: SubscriptionRequest, offer: StreamOffer)]] = [:]
    /// The readiness for a push of a topic, once it was asked for: pushes that are now or never ask for each.
    private var pushTakers: [TopicIndex: Takers] = [:]
    /// Topics of which a stream of another gateway hears of conditions.
    private var hearing: Set<TopicIndex> = []
    /// How long the device has waited that waits longest for a worker, or for an engine, in milliseconds.
    var oldestDueMilliseconds: Int64 = 0
    /// How the gateways are, this one included, as of the last second; nil before the first time.
    var status: ClusterStatus?
    /// The locks of other sessions of the database that devices wait for.
    var locks: [DeviceLocks] = []

    package init() {}

    /// Forgets the workers.
    func removeAll() {
        self.total = Dispatcher.WorkerCounts()
        self.byTopic = [:]
        self.offers = [:]
        self.pushTakers = [:]
        self.hearing = []
    }

    /// Another gateway has these workers of a topic.
    func append(_ counts: Dispatcher.WorkerCounts, of topic: TopicIndex, hearsConditions: Bool) {
        Self.add(counts, to: &self.total)
        Self.add(counts, to: &self.byTopic[topic, default: Dispatcher.WorkerCounts()])
        if hearsConditions { self.hearing.insert(topic) }
    }

    /// Streams of another gateway, which are counted besides, take this.
    func append(_ offer: StreamOffer) {
        let request = SubscriptionRequest(
            slots: 1,
            takesPushes: offer.takesPushes,
            tasks: offer.tasks.map { IdentifierPattern($0) },
            sessions: offer.sessions.map { IdentifierPattern($0) },
            resources: offer.resources,
            devices: []
        )
        self.offers[offer.topic, default: []].append((request, offer))
    }

    /// Returns the readiness of the streams of other gateways to take a push or a task of a topic. It is unknown for
    /// streams that name devices, as reports do not say which.
    func takers(of target: LaunchTarget, _ topic: TopicIndex) -> Takers {
        guard case .push = target else { return self.takersFound(of: target, topic) }
        if let known = self.pushTakers[topic] { return known }
        let takers = self.takersFound(of: target, topic)
        self.pushTakers[topic] = takers
        return takers
    }

    private func takersFound(of target: LaunchTarget, _ topic: TopicIndex) -> Takers {
        guard let counts = self.byTopic[topic], counts.connected > 0 else { return .none }
        let known = self.offers[topic] ?? []
        var takers = known.reduce(0) { $0 + $1.offer.streams } < counts.connected ? Takers.unknown : .none
        for (request, offer) in known where request.takes(target) {
            takers = max(takers, offer.namesDevices ? .unknown : offer.freeSlots > 0 ? .free : .busy)
        }
        return takers
    }

    /// Adds the workers of one topic, or of all, to `counts`.
    func add(_ topic: TopicIndex?, to counts: inout Dispatcher.WorkerCounts) {
        Self.add(topic.map { self.byTopic[$0] ?? Dispatcher.WorkerCounts() } ?? self.total, to: &counts)
    }

    /// Whether another gateway has streams of a topic.
    func hasStreams(_ topic: TopicIndex) -> Bool { (self.byTopic[topic]?.connected ?? 0) > 0 }

    /// Returns true if another gateway has a slot that may be free for a push of a topic.
    func mayTakePush(_ topic: TopicIndex) -> Bool {
        let takers = self.takers(of: .push, topic)
        return takers == .free || takers == .unknown && self.byTopic[topic].map { $0.busy < $0.slots } ?? false
    }

    /// Whether a stream of another gateway hears of conditions of a topic.
    func hearsConditions(_ topic: TopicIndex) -> Bool { self.hearing.contains(topic) }

    private static func add(_ more: Dispatcher.WorkerCounts, to counts: inout Dispatcher.WorkerCounts) {
        counts.connected += more.connected
        counts.slots += more.slots
        counts.busy += more.busy
    }
}

/// Which devices somebody wants listed, and in which order; nil is any.
package struct DeviceQuestion: Hashable, Sendable {
    /// How many devices an answer shows.
    package static let limits = 1...1000
    package static let limitUsual = 100
    /// The most devices that are looked at for one answer, which may be shorter for that.
    static let examinedMax = 1024

    package var topic: String?
    package var state: DeviceFilter.State?
    package var hold: Hold?
    /// The first digits of their tokens.
    package var prefix: TokenPrefix?
    /// The most devices of the answer.
    package var limit = Self.limitUsual
    /// Only devices behind this one.
    package var after: DeviceToken?
    package var order = DeviceSearch.Order.token

    package init() {}

    /// The state, the hold and the first digits that are asked for.
    var filter: DeviceFilter { DeviceFilter(state: self.state, hold: self.hold, prefix: self.prefix) }

    /// The token behind which the list begins: tokens with a common prefix are adjacent in their order.
    var start: DeviceToken? {
        guard let first = self.prefix?.predecessor else { return self.after }
        guard let after, first.isBefore(after) else { return first }
        return after
    }

    /// Returns true if a token from `start` on comes after every token with the prefix.
    func isPast(_ token: DeviceToken) -> Bool { self.prefix.map { !$0.begins(token) } ?? false }

    /// The filter of a search whose order cannot be gone on with: there it must not find others.
    var searchFilter: DeviceFilter? {
        let isAny = self.state == nil && self.hold == nil && self.prefix == nil
        return self.order == .waiting && !isAny ? self.filter : nil
    }

    /// How many devices are looked at: as many as are shown where all are wanted.
    var examined: Int {
        self.order != .token || (self.state == nil && self.hold == nil) ? self.limit : Self.examinedMax
    }
}
