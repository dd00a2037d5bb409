package import Policy
package import Wire

/// The open streams by address, topic and named device, and the stream of each wake.
///
/// Every change of a stream goes through this table, which updates the stream's positions in queues and rotations.
package struct StreamTable: ~Copyable {
    private var streams: [StreamAddress: Subscription] = [:]
    /// Workers by topic number.
    var workers: [TopicWorkers] = []
    /// The stream of each unanswered wake, and of each wake that expired on its stream. Includes ended streams until
    /// their wakes are lost.
    var holders = WakeTable<Subscription>()
    private let bounds: StreamBounds
    /// The number of streams ever opened.
    private var opened: UInt64 = 0
    /// Topics with condition changes to send.
    private var topicsToSend = FIFOQueue<TopicIndex>()
    /// The number of times a stream reached its limit of unanswered bytes.
    package internal(set) var timesFull: Int64 = 0
    var durations = WakeDurations()
    /// Additional state if the store is shared; nil otherwise.
    var shared: SharedStreams?

    /// Creates an empty table.
    ///
    /// - `wakeBytesMax`: the maximum bytes of unanswered payloads per stream.
    package init(wakeBytesMax: Int) {
        self.bounds = StreamBounds(wakeBytesMax: wakeBytesMax)
    }

    package var count: Int { self.streams.count }

    /// Every open stream, in no particular order.
    package var all: some Sequence<Subscription> { self.streams.values }

    /// The open stream with this address.
    package subscript(address: StreamAddress) -> Subscription? { self.streams[address] }

    /// Returns the workers of a topic; nil if it never had a stream or a waiting task.
    func workers(of topic: TopicIndex) -> TopicWorkers? {
        Int(topic.rawValue) < self.workers.count ? self.workers[Int(topic.rawValue)] : nil
    }

    /// Returns worker counts of one topic, or of all topics together.
    package func counts(_ topic: TopicIndex?) -> Dispatcher.WorkerCounts {
        let places = topic.map { Int($0.rawValue)..<Int($0.rawValue) + 1 } ?? self.workers.indices
        var counts = Dispatcher.WorkerCounts()
        for workers in self.workers[places.clamped(to: self.workers.indices)] {
            counts.connected += workers.connected
            counts.slots += workers.slots
            counts.busy += workers.busy
            counts.stalled += workers.stalled.count
            guard counts.stallReason == nil, let first = workers.stalled.min(by: { $0.key < $1.key })?.value else {
                continue
            }
            counts.stallReason = self.trouble(of: first).map { "\(first.nameText): \($0)" }
        }
        return counts
    }
}

/// The wakes that a stream gave back in a row, at least one.
struct WakesGivenBack {
    let count: Int
    /// The worker's reason for the last of them.
    let reason: String
}

// MARK: - Opening and closing

extension StreamTable {
    /// Adds a stream. Its address must be unused.
    package mutating func insert(
        _ address: StreamAddress,
        _ topic: TopicIndex,
        _ request: SubscriptionRequest
    ) -> Subscription {
        self.grow(topic)
        self.opened += 1
        let stream = Subscription(
            address: address,
            topic: topic,
            request: request,
            bounds: self.bounds,
            opened: self.opened
        )
        self.streams[address] = stream
        self.workers[Int(topic.rawValue)].insert(stream)
        self.shared?.offered.insert(stream)
        return stream
    }

    /// Removes a stream that ends. `holders` refers to it until each of its wakes is forgotten.
    package mutating func remove(_ stream: Subscription) {
        self.streams[stream.address] = nil
        stream.hasEnded = true
        self.shared?.offered.remove(stream)
        self.workers[Int(stream.topic.rawValue)].remove(stream)
        self.workers[Int(stream.topic.rawValue)].busy -= stream.wakes.count
        for wake in stream.expiredInARow { self.holders[wake] = nil }
        self.workers[Int(stream.topic.rawValue)].stalled[stream.opened] = nil
    }

    /// Drains a stream whose worker is stopping.
    package mutating func drain(_ stream: Subscription) {
        stream.isDraining = true
        self.changed(stream)
    }

    /// Notes that the stream's peer does not read, or reads again.
    package mutating func pause(_ stream: Subscription, _ isPaused: Bool) {
        stream.isPaused = isPaused
        self.changed(stream)
        guard !isPaused, stream.request.reportsConditions else { return }
        self.workers[Int(stream.topic.rawValue)].conditions.resumed(stream)
        self.enqueueConditions(stream.topic)
    }

    /// Changes the number of slots. The stream keeps all of its wakes.
    package mutating func resize(_ stream: Subscription, to slots: Int) {
        self.workers[Int(stream.topic.rawValue)].slots += slots - stream.slots
        stream.slots = slots
        self.changed(stream)
    }

    /// Changes the limit of unanswered payload bytes per stream. Streams keep all of their wakes.
    package mutating func resizeAll(wakeBytesMax: Int) {
        // A stream that was full gets its next wake when one of its wakes ends.
        self.bounds.wakeBytesMax = wakeBytesMax
        for stream in self.streams.values { self.changed(stream) }
    }
}

// MARK: - Turns

extension StreamTable {
    /// Returns the stream for a wake of this device: a free stream that names the device, or else the next in rotation.
    ///
    /// - Parameters:
    ///   - topic: the topic of the device.
    ///   - device: the token of the device.
    ///   - target: the launch; nil for a push.
    package mutating func free(
        _ topic: TopicIndex,
        _ device: borrowing DeviceToken,
        _ target: LaunchTarget? = nil
    ) -> Subscription? {
        let place = Int(topic.rawValue)
        guard place < self.workers.count, self.workers[place].connected > 0 else { return nil }
        if let target, target.kind != .push { return self.workers[place].free(device, target) }
        if let naming = self.workers[place].naming.first(device) { return naming }
        return self.workers[place].pushes.next()
    }

    /// Returns the free stream with the fewest wakes that names this device.
    package mutating func naming(_ topic: TopicIndex, _ device: borrowing DeviceToken) -> Subscription? {
        self.workers[Int(topic.rawValue)].naming.first(device)
    }

    /// Returns the next free stream in rotation among those that name no device.
    package mutating func nextInRotation(_ topic: TopicIndex) -> Subscription? {
        self.workers[Int(topic.rawValue)].pushes.next()
    }

    /// Puts a stream that may have a free slot again back into the rotation.
    package mutating func rotate(_ stream: Subscription) {
        self.workers[Int(stream.topic.rawValue)].rotate(stream)
    }

    /// Updates the stream's positions after a change of its wakes or of its readiness.
    mutating func changed(_ stream: Subscription) {
        self.shared?.offered.changed(stream)
        guard stream.request.devices.isEmpty, stream.request.resources.count > 1 else { return }
        self.workers[Int(stream.topic.rawValue)].tasks.changed(stream)
    }
}

// MARK: - Waiting tasks

extension StreamTable {
    /// Adds a task of this topic that has begun to wait for a slot.
    ///
    /// - `key`: the secret that determines the shape of the trees of tasks.
    /// - `isReady`: returns true if a task still waits.
    mutating func wait(_ task: ReadyTask, key: HashKey, isReady: (ReadyTask) -> Bool) {
        self.grow(task.topic)
        self.shared?.topicsWaiting.append(task.topic)
        self.workers[Int(task.topic.rawValue)].waiting.append(task, key: key, isReady: isReady)
    }

    /// Removes a task that no longer waits.
    mutating func waitsNoLonger(_ device: DeviceIndex, _ target: LaunchTarget, _ topic: TopicIndex) {
        guard Int(topic.rawValue) < self.workers.count else { return }
        self.workers[Int(topic.rawValue)].waiting.remove(device, target)
    }

    /// Returns the first waiting task that this stream accepts. The task may no longer wait.
    func firstWaiting(for stream: Subscription) -> ReadyTask? {
        self.workers[Int(stream.topic.rawValue)].waiting.first(for: stream.request)
    }

    private mutating func grow(_ topic: TopicIndex) {
        while self.workers.count <= Int(topic.rawValue) { self.workers.append(TopicWorkers()) }
    }
}

// MARK: - Conditions

extension StreamTable {
    /// Returns true if a stream of this topic receives condition changes.
    func hasConditionsReader(_ topic: TopicIndex) -> Bool {
        self.workers(of: topic)?.conditions.streamCount ?? 0 > 0
    }

    /// Adds a condition change of a device.
    mutating func conditionsChanged(_ topic: TopicIndex, _ device: DeviceIndex, _ token: borrowing DeviceToken) {
        guard self.hasConditionsReader(topic) else { return }
        let device = self.shared?.remembered.index(token, topic) ?? device
        self.workers[Int(topic.rawValue)].conditionsChanged(device, token)
        self.enqueueConditions(topic)
    }

    /// True if there are condition changes to send.
    var hasConditionsToSend: Bool { !self.topicsToSend.isEmpty }

    /// Returns the next device whose conditions must be sent, and the stream to which they go.
    ///
    /// - `checksLeft`: the number of streams and changes that may still be examined.
    mutating func nextConditions(_ checksLeft: inout Int) -> (stream: Subscription, device: DeviceIndex)? {
        while checksLeft > 0, let topic = self.topicsToSend.first {
            if let next = self.workers[Int(topic.rawValue)].conditions.next(&checksLeft) { return next }
            // Topics take turns.
            _ = self.topicsToSend.popFirst()
            self.workers[Int(topic.rawValue)].hasQueuedConditions = false
            self.enqueueConditions(topic)
        }
        return nil
    }

    private mutating func enqueueConditions(_ topic: TopicIndex) {
        let place = Int(topic.rawValue)
        guard !self.workers[place].hasQueuedConditions, !self.workers[place].conditions.isDone else { return }
        self.workers[place].hasQueuedConditions = true
        self.topicsToSend.append(topic)
    }
}

// MARK: - Wakes

extension StreamTable {
    /// Returns the open stream of an unanswered wake, or of a wake that expired on it.
    package func holder(of wake: WakeID) -> Subscription? {
        guard let stream = self.holders[wake], !stream.hasEnded else { return nil }
        return stream
    }

    /// Returns true if the stream of a wake has ended and the wake is not lost yet.
    package func isHolderGone(_ wake: WakeID) -> Bool { self.holders[wake]?.hasEnded == true }

    /// Forgets the stream of a wake, which is lost with its ended stream.
    package mutating func forget(_ wake: WakeID) { self.holders[wake] = nil }

    /// Adds a wake with a payload of `bytes` to the stream.
    package mutating func give(
        _ wake: WakeID,
        _ kind: LaunchKind = .push,
        bytes: Int,
        to stream: Subscription,
        at now: Instant,
        deadline: Instant? = nil
    ) {
        let place = Int(stream.topic.rawValue)
        let turn = self.shared == nil ? nil : self.turn(stream, kind)
        stream.add(wake, kind, bytes: bytes, at: now, deadline: deadline ?? now)
        if stream.isFull { self.timesFull += 1 }
        self.holders[wake] = stream
        self.workers[place].busy += 1
        self.workers[place].turnEnded(stream, isPush: kind == .push)
        self.changed(stream)
        if let turn { self.noteGiven(wake, stream, turn) }
    }

    /// Returns the number of continued tasks on open streams that have made no progress for `span` milliseconds.
    func stalledCount(at now: Instant, after span: Int64) -> Int {
        self.streams.values.reduce(0) { $0 + $1.stalledCount(at: now, after: span) }
    }

    /// Removes a wake from the stream.
    ///
    /// - `endedAt`: the end of the wake; nil if its duration does not depend on the worker.
    /// - Returns: false if the wake was not on the stream.
    package mutating func release(_ wake: WakeID, _ stream: Subscription, endedAt: Instant? = nil) -> Bool {
        guard let held = stream.remove(wake) else { return false }
        let took = endedAt.map { max(0, $0.milliseconds - held.givenAt.milliseconds) }
        if let took { self.durations.record(took, held.kind, stream) }
        if self.shared != nil { self.noteReleased(wake, held, took: took, stream) }
        self.holders[wake] = nil
        self.workers[Int(stream.topic.rawValue)].busy -= 1
        self.changed(stream)
        return true
    }

    /// Returns the kind of an unanswered wake of the stream; nil if the wake is not on the stream.
    func kind(of wake: WakeID, _ stream: Subscription) -> LaunchKind? { stream.wakes[wake]?.kind }

    /// Notes that a wake of the stream expired unanswered. A late answer still counts as an answer.
    package mutating func expired(_ wake: WakeID, _ stream: Subscription) {
        self.shared?.note(.expired(wake, stream))
        stream.expiredInARow.append(wake)
        self.holders[wake] = stream
        self.judge(stream)
    }

    /// Notes that the stream's worker gave back a wake that it could not start.
    mutating func gaveBack(_ stream: Subscription, _ reason: String) {
        self.shared?.note(.gaveBack(stream))
        stream.givenBack = WakesGivenBack(count: (stream.givenBack?.count ?? 0) + 1, reason: reason)
        stream.hasResponded = true
        self.judge(stream)
    }

    /// Notes that the stream answered a wake, which clears the record of expired and returned wakes.
    package mutating func answered(_ stream: Subscription) {
        guard !stream.isClear else { return }
        self.shared?.note(.answered(stream.expiredInARow, stream.givenBack, stream))
        for expired in stream.expiredInARow { self.holders[expired] = nil }
        stream.expiredInARow.removeAll()
        stream.givenBack = nil
        stream.hasResponded = true
        self.judge(stream)
    }
}

// MARK: - Stalls

extension StreamTable {
    /// Updates the stalled state of a stream after wakes expired, were given back or were answered.
    mutating func judge(_ stream: Subscription) {
        stream.isStalled =
            stream.expiredInARow.count >= Subscription.unansweredInARowMax
            || stream.givenBack?.count ?? 0 >= Subscription.unansweredInARowMax
        if !stream.hasEnded {
            self.workers[Int(stream.topic.rawValue)].stalled[stream.opened] = stream.isStalled ? stream : nil
        }
        self.changed(stream)
    }

    /// Undoes `gaveBack`.
    mutating func undoGivingBack(_ stream: Subscription) {
        guard let before = stream.givenBack else { return }
        stream.givenBack = before.count > 1 ? WakesGivenBack(count: before.count - 1, reason: before.reason) : nil
        self.judge(stream)
    }

    /// Undoes `answered`: restores the record of expired and returned wakes.
    mutating func undoAnswer(_ stream: Subscription, expired: [WakeID], _ before: WakesGivenBack?) {
        for wake in expired { self.holders[wake] = stream }
        stream.expiredInARow.insert(contentsOf: expired, at: 0)
        if let before {
            let since = stream.givenBack ?? WakesGivenBack(count: 0, reason: before.reason)
            stream.givenBack = WakesGivenBack(count: before.count + since.count, reason: since.reason)
        }
        self.judge(stream)
    }

    /// Returns the reason why a stream gets no wakes or may have missed a wake; nil if there is none.
    func trouble(of stream: Subscription) -> String? {
        if let givenBack = stream.givenBack, givenBack.count >= Subscription.unansweredInARowMax {
            let reason = givenBack.reason.isEmpty ? "" : ": \(givenBack.reason)"
            return "it gave back \(givenBack.count) wakes in a row that it could not begin\(reason)"
        }
        guard !stream.expiredInARow.isEmpty else { return nil }
        guard stream.hasResponded else {
            return "a wake expired on it unanswered, and nothing was ever received from it; the worker may not have "
                + "received it: a buffering proxy?"
        }
        return stream.isStalled ? "\(stream.expiredInARow.count) wakes in a row expired on it unanswered" : nil
    }
}

extension Subscription {
    /// The worker's name for use in a sentence.
    var nameText: String { self.request.label.isEmpty ? "a worker without a name" : "worker \"\(self.request.label)\"" }
}

/// The wakes of ended streams, until they are lost. A stream may have had thousands.
package struct EndedStreams: ~Copyable {
    private var streams = FIFOQueue<Subscription>()
    /// The wakes of the last stream removed from `streams`, in reverse order.
    private var wakes: [WakeID] = []

    /// Creates a value without streams.
    package init() {}

    /// True if no wakes must be lost.
    package var isEmpty: Bool { self.wakes.isEmpty && self.streams.isEmpty }

    /// Adds a stream that has ended.
    package mutating func append(_ stream: Subscription) {
        if !stream.wakes.isEmpty { self.streams.append(stream) }
    }

    /// Removes and returns the next wake to be lost.
    package mutating func popWake() -> WakeID? {
        while self.wakes.isEmpty, let stream = self.streams.popFirst() {
            // Sorted by id, so that the order is the same in every process.
            self.wakes = stream.wakes.sortedWakes.reversed()
        }
        return self.wakes.popLast()
    }
}
