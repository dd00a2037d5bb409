package import Engine
package import Policy
package import Wire

/// The devices, streams and clock with which a batch is performed. Sometimes only a part of the devices is in memory.
package struct Workspace {
    let engine: DeviceEngine
    let dispatcher: Dispatcher
    /// The difference between wall clock and policy time.
    let offset: WallOffset
    /// The failure of the store; nil while everything can be stored.
    let failure: StoreFailure?
    /// The workers of other gateways on the same store; nil with a single gateway.
    let remote: RemoteWorkers?
    /// The last device read, if only a part of the devices is in memory and more devices follow.
    var lastRead: DeviceToken?
    /// The devices of a list in the order `recent`, if not all devices were in memory at the same time.
    var recent: [DeviceToken]?

    package init(
        engine: DeviceEngine,
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

    /// Returns the workers of one topic or of all topics. After a failure, returns the workers that were connected when
    /// it happened.
    func workerCounts(_ topic: TopicIndex?) -> Dispatcher.WorkerCounts {
        var counts = self.failure?.workers[topic] ?? self.dispatcher.workerCounts(topic)
        self.remote?.add(topic, to: &counts)
        return counts
    }

    /// Returns the state of a device, including the streams of other gateways that accept its wakes.
    func snapshot(_ device: DeviceIndex) -> DeviceSnapshot {
        var snapshot = self.dispatcher.snapshot(device)
        let topic = self.engine.topic(of: device)
        snapshot.pushTakers = self.takersShown(snapshot.pushTakers, of: .push, topic)
        for index in snapshot.tasks.indices { self.noteRemoteTakers(of: &snapshot.tasks[index], topic) }
        return snapshot
    }

    /// Sets `isTaken` of a task if a stream of another gateway accepts it.
    func noteRemoteTakers(of task: inout TaskSnapshot, _ topic: TopicIndex) {
        if !task.isTaken, let remote = self.remote, remote.takers(of: task.target, topic) != .none {
            task.isTaken = true
        }
    }

    /// Returns if streams accept a wake. After a failure, the answer depends on the workers that were connected when it
    /// happened.
    ///
    /// - `takers`: the state of this gateway's streams.
    func takersShown(_ takers: Takers, of target: LaunchTarget, _ topic: TopicIndex) -> Takers {
        if let workers = self.failure?.workers[topic] {
            return workers.connected == 0 ? .none : workers.busy < workers.slots ? .free : .busy
        }
        return takers == .free ? takers : max(takers, self.remote?.takers(of: target, topic) ?? .none)
    }

    /// Returns the number of devices waiting for a worker of this topic; 0 while the topic is paused.
    func readyCount(_ topic: TopicIndex) -> Int {
        guard !self.engine.isPaused(topic) else { return 0 }
        guard self.remote != nil else { return self.engine.readyCount(topic) }
        return Int(clamping: self.engine.countersShown(topic).held[.worker])
    }

    /// The longest time that a device has waited for a worker or for the engine, in milliseconds.
    var oldestDueMilliseconds: Int64 { self.remote?.oldestDueMilliseconds ?? self.engine.oldestDueMilliseconds }

    /// Returns the counters of one topic, or of all topics together.
    ///
    /// - `period`: the counted period, in milliseconds since 1970; nil for the last hour and day.
    func statistics(_ topic: TopicIndex?, _ room: RoomState, of period: Range<Int64>? = nil) -> Statistics {
        let rejections = room.records.rejectionsShown
        let since = self.offset.wall(self.dispatcher.durationsSince)
        var statistics = Statistics(
            counters: topic.map { self.engine.countersShown($0) } ?? self.engine.totalsShown,
            rejected: topic.map { rejections[$0] } ?? rejections.total,
            workers: self.workerCounts(topic),
            since: room.records.countingSince,
            durations: DurationReport(self.durations(topic), since: since) { self.engine.topicName($0) },
            recent: self.recent(topic, room, of: period)
        )
        guard topic == nil else { return statistics }
        statistics.limits = room.limits.met(self.dispatcher)
        statistics.acceptedLoss = room.records.acceptedLoss
        statistics.cluster = self.remote.map { $0.status ?? ClusterStatus(nil, own: nil) }
        return statistics
    }

    /// Returns the counts of a topic or of all topics for some periods.
    ///
    /// - `period`: the counted period, in milliseconds since 1970; nil for the last hour and day.
    func recent(
        _ topic: TopicIndex?,
        _ room: RoomState,
        of period: Range<Int64>? = nil
    ) -> [(name: StaticString, counts: PeriodCounts)] {
        let counters = topic.map { self.engine.countersShown($0) } ?? self.engine.totalsShown
        let now = max(self.engine.now, room.recent.now)
        var periods: [(StaticString, Range<Int64>)] = [
            ("hour", now.milliseconds - RecentCounts.hour..<Int64.max),
            ("day", now.milliseconds - RecentCounts.day..<Int64.max),
        ]
        if let period {
            func instant(_ wall: Int64) -> Int64 { self.offset.instant(wallMilliseconds: wall).milliseconds }
            let until = period.upperBound == .max ? .max : instant(period.upperBound)
            periods = [("since", instant(period.lowerBound)..<until)]
        }
        return periods.map { ($0, room.recent.counts(counters, of: topic, in: $1, now, self.offset)) }
    }

    /// Returns the durations of wakes on the streams of all gateways, by topic and by worker.
    ///
    /// - Parameters:
    ///   - topic: nil for every topic.
    ///   - byWorker: false to leave out the rows of worker names.
    func durations(_ topic: TopicIndex?, byWorker: Bool = true) -> [WakeDurationRow] {
        let own = self.dispatcher.durations(topic, byWorker: byWorker)
        guard let remote = self.remote?.durations, !remote.isEmpty else { return own }
        // Skip topics that another gateway has just created and that this gateway does not know.
        let others = remote.filter {
            (topic ?? $0.topic) == $0.topic && $0.topic.rawValue < self.engine.topicCount
                && (byWorker || $0.worker == nil)
        }
        return WakeDurations.merged(own + others)
    }
}

// MARK: - Lists

extension Workspace {
    /// The maximum number of tasks in a list of all devices.
    static let tasksMax = 1000

    /// Returns the devices in memory for a list, in the order of the list. In a list of tasks, each task adds its
    /// device once.
    func devices(of subject: ListedRows, for caller: Caller) -> [DeviceToken] {
        switch subject {
        case .tasks(let question):
            var search = self.search(question, for: caller)
            _ = self.engine.look(&search, placesMax: .max)
            return self.engine.tasks(search).map(\.device)
        case .devices(let question):
            let filter = question.filter
            var search = self.search(question, for: caller)
            _ = self.engine.look(&search, placesMax: .max, filter: question.searchFilter)
            return search.tokens.filter { token in
                self.engine.find(token).map { filter.takes(self.engine.snapshot($0)) } ?? false
            }
        }
    }

    /// Returns a search for the requested devices within the caller's scope.
    func search(_ question: DeviceQuestion, for caller: Caller) -> DeviceSearch {
        DeviceSearch(
            topics: self.topics(question.topic, for: caller),
            order: question.order,
            after: question.start,
            countMax: question.examined
        )
    }

    /// Returns a search for the requested tasks within the caller's scope.
    func search(_ question: TaskQuestion, for caller: Caller) -> TaskSearch {
        let topics = self.topics(question.topic, for: caller)
        let filter = TaskFilter(topics: topics, kind: question.kind, state: question.state)
        return TaskSearch(filter, countMax: Self.tasksMax)
    }

    /// Returns the known topics that the caller requests and may access; nil for all topics.
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

/// A permanent or temporary failure of the store, with the workers and the state at that time.
package final class StoreFailure {
    let error: StoreError
    let workers: WorkersAtFailure
    /// The reason why the last durable state could not be read; nil if it was read.
    let durableError: StoreError?
    /// True if the failure is temporary, such as a lost connection to a database.
    let isPassing: Bool

    package init(error: StoreError, workers: WorkersAtFailure, durableError: StoreError?, isPassing: Bool = false) {
        self.error = error
        self.workers = workers
        self.durableError = durableError
        self.isPassing = isPassing
    }

    /// Returns the error for a request that is refused because of this failure.
    func refusal(_ cause: StoreError) -> APIError {
        self.isPassing ? .storeUnavailable(cause) : .storeFailed(cause)
    }
}

/// The workers that were connected when the store failed. They are kept because the dispatcher is released.
package struct WorkersAtFailure {
    private let total: Dispatcher.WorkerCounts
    private let byTopic: [TopicIndex: Dispatcher.WorkerCounts]

    package init(_ dispatcher: Dispatcher, _ engine: DeviceEngine) {
        self.total = dispatcher.workerCounts(nil)
        let topics = engine.topicSnapshots.map { ($0.index, dispatcher.workerCounts($0.index)) }
        self.byTopic = Dictionary(uniqueKeysWithValues: topics)
    }

    /// - Parameter topic: nil for all topics.
    subscript(topic: TopicIndex?) -> Dispatcher.WorkerCounts {
        guard let topic else { return self.total }
        return self.byTopic[topic] ?? Dispatcher.WorkerCounts()
    }
}

/// The workers of other gateways on a shared store, as last reported. Used on one thread.
package final class RemoteWorkers {
    /// The workers by topic. The key nil stands for all topics together.
    private var counts: [TopicIndex?: Dispatcher.WorkerCounts] = [:]
    /// The subscriptions and offers of the workers, by topic.
    private var offers: [TopicIndex: [(request: SubscriptionRequest, offer: StreamOffer)]] = [:]
    /// The cached results of `takers` for pushes, by topic. Every pending push needs one.
    private var pushTakers: [TopicIndex: Takers] = [:]
    /// The topics with a stream of another gateway that receives conditions.
    private var hearing: Set<TopicIndex> = []
    /// The durations of wakes on the streams of the other gateways.
    var durations: [WakeDurationRow] = []
    /// The longest time that a device has waited for a worker or an engine, in milliseconds.
    var oldestDueMilliseconds: Int64 = 0
    /// The status of all gateways, at most a second old; nil before it was first read.
    var status: ClusterStatus?
    /// The locks of other sessions of the database that delay devices.
    var locks: [DeviceLocks] = []
    /// The devices whose rows could not be read, each with the time of the last attempt in milliseconds since the start
    /// of the machine.
    var unreadable: [DeviceToken: Int64] = [:]

    /// Removes all workers.
    func removeAll() {
        self.counts = [:]
        self.offers = [:]
        self.pushTakers = [:]
        self.hearing = []
        self.durations = []
    }

    /// Adds the workers of another gateway for a topic.
    func append(_ workers: GatewayReport.Workers) {
        for key in [nil, workers.topic] {
            Self.add(workers.counts, to: &self.counts[key, default: Dispatcher.WorkerCounts()])
        }
        if workers.receivesConditions { self.hearing.insert(workers.topic) }
    }

    /// Adds an offer of another gateway's streams. The other `append` adds the counts of workers.
    func append(_ offer: StreamOffer) {
        let request = SubscriptionRequest(
            slots: 1,
            takesPushes: offer.slots.takesPushes,
            tasks: offer.slots.tasks.map { IdentifierPattern($0) },
            sessions: offer.slots.sessions.map { IdentifierPattern($0) },
            resources: offer.slots.resources,
            devices: []
        )
        self.offers[offer.slots.topic, default: []].append((request, offer))
    }

    /// Returns if streams of other gateways accept a push or a task of a topic. The result may be `unknown` for streams
    /// that name devices, because reports do not contain the devices.
    func takers(of target: LaunchTarget, _ topic: TopicIndex) -> Takers {
        guard case .push = target else { return self.takersFound(of: target, topic) }
        if let known = self.pushTakers[topic] { return known }
        let takers = self.takersFound(of: target, topic)
        self.pushTakers[topic] = takers
        return takers
    }

    private func takersFound(of target: LaunchTarget, _ topic: TopicIndex) -> Takers {
        guard let counts = self.counts[topic], counts.connected > 0 else { return .none }
        let known = self.offers[topic] ?? []
        var takers = known.reduce(0) { $0 + $1.offer.streams } < counts.connected ? Takers.unknown : .none
        for (request, offer) in known where request.takes(target) {
            takers = max(takers, offer.slots.namesDevices ? .unknown : offer.slots.count > 0 ? .free : .busy)
        }
        return takers
    }

    /// Adds the workers of one topic or of all topics to `counts`.
    func add(_ topic: TopicIndex?, to counts: inout Dispatcher.WorkerCounts) {
        if let own = self.counts[topic] { Self.add(own, to: &counts) }
    }

    /// Returns true if another gateway has streams of a topic.
    func hasStreams(_ topic: TopicIndex) -> Bool { (self.counts[topic]?.connected ?? 0) > 0 }

    /// Returns true if another gateway may have a free slot for a push of a topic.
    func mayTakePush(_ topic: TopicIndex) -> Bool {
        let takers = self.takers(of: .push, topic)
        return takers == .free || takers == .unknown && self.counts[topic].map { $0.busy < $0.slots } ?? false
    }

    /// Returns true if a stream of another gateway receives conditions of a topic.
    func receivesConditions(_ topic: TopicIndex) -> Bool { self.hearing.contains(topic) }

    private static func add(_ more: Dispatcher.WorkerCounts, to counts: inout Dispatcher.WorkerCounts) {
        counts.connected += more.connected
        counts.slots += more.slots
        counts.busy += more.busy
    }
}

/// A request for a list of devices. Filters that are nil match every device.
package struct DeviceQuestion: Hashable, Sendable {
    /// The valid numbers of devices in an answer.
    package static let limits = 1...1000
    package static let limitUsual = 100
    /// The maximum number of devices examined for one answer. An answer may therefore have fewer devices than its
    /// limit.
    static let examinedMax = 1024

    package var topic: String?
    package var state: DeviceFilter.State?
    package var hold: Hold?
    /// The first digits of the tokens.
    package var prefix: TokenPrefix?
    /// The maximum number of devices in the answer.
    package var limit = Self.limitUsual
    /// The device after which the list continues.
    package var after: DeviceToken?
    package var order = DeviceSearch.Order.token

    package init() {}

    /// The requested state, hold and first digits.
    var filter: DeviceFilter { DeviceFilter(state: self.state, hold: self.hold, prefix: self.prefix) }

    /// The token after which the list begins. Tokens with the same prefix are adjacent in the order.
    var start: DeviceToken? {
        guard let first = self.prefix?.predecessor else { return self.after }
        guard let after, first.isBefore(after) else { return first }
        return after
    }

    /// Returns true if a token after `start` is beyond all tokens with the prefix.
    func isPast(_ token: DeviceToken) -> Bool { self.prefix.map { !$0.begins(token) } ?? false }

    /// The filter for a search whose order does not allow continuing later. Such a search must return only matching
    /// devices. Nil for other searches.
    var searchFilter: DeviceFilter? {
        let isAny = self.state == nil && self.hold == nil && self.prefix == nil
        return self.order == .waiting && !isAny ? self.filter : nil
    }

    /// The number of devices to examine. Equals the limit if every examined device matches.
    var examined: Int {
        self.order != .token || (self.state == nil && self.hold == nil) ? self.limit : Self.examinedMax
    }
}

/// The filter of a list of the tasks of all devices. A property that is nil matches every task.
package struct TaskQuestion: Hashable, Sendable {
    package var topic: String?
    package var kind: TaskKind?
    package var state: TaskFilter.State?

    package init(topic: String? = nil, kind: TaskKind? = nil, state: TaskFilter.State? = nil) {
        self.topic = topic
        self.kind = kind
        self.state = state
    }
}
