package import Policy
package import Wire

/// The open streams: by address, by topic and by the devices they name, and which of them holds which wake.
///
/// Whatever changes a stream is said here, so that each stands where its wakes and its state put it.
package struct StreamTable: ~Copyable {
    private var streams: [StreamAddress: Subscription] = [:]
    /// By topic number.
    var workers: [TopicWorkers] = []
    /// Who holds which wake, and who let which one expire; of streams that ended until their wakes are lost, too.
    var holders = WakeTable<Subscription>()
    private let bounds: StreamBounds
    /// The streams that gave wakes back since they last answered one, by the order in which they came.
    private var givenBack: [UInt64: WakesGivenBack] = [:]
    /// How many streams were ever opened.
    private var opened: UInt64 = 0
    /// Topics whose streams are to hear of conditions.
    private var topicsToTell = FIFOQueue<TopicIndex>()
    /// How often a stream got no more wakes because of its bytes.
    package internal(set) var timesFull: Int64 = 0
    /// What is kept besides where the store of devices is shared.
    var shared: SharedStreams?

    /// No streams.
    ///
    /// - `wakeBytesMax`: the bytes of payloads that a stream may hold unanswered.
    package init(wakeBytesMax: Int) {
        self.bounds = StreamBounds(wakeBytesMax: wakeBytesMax)
    }

    package var count: Int { self.streams.count }

    /// Every open stream, in no particular order.
    package var all: some Sequence<Subscription> { self.streams.values }

    /// The open stream with this address.
    package subscript(address: StreamAddress) -> Subscription? { self.streams[address] }

    /// How many streams of this topic name a device, free or not.
    package func countNaming(_ device: DeviceToken, _ topic: TopicIndex) -> Int {
        let place = Int(topic.rawValue)
        return place < self.workers.count ? self.workers[place].naming.count(device) : 0
    }

    /// Workers of one topic, or of all.
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

/// The wakes that a stream gave back in a row.
struct WakesGivenBack {
    var count = 0
    /// The words of the worker about the last one.
    var reason = ""
}

// MARK: - Coming and going

extension StreamTable {
    /// Adds a stream, whose address no open one has.
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

    /// Takes out a stream that ends. It is known still as the holder of its wakes, until each is forgotten.
    package mutating func remove(_ stream: Subscription) {
        self.streams[stream.address] = nil
        stream.hasEnded = true
        self.shared?.offered.remove(stream)
        self.workers[Int(stream.topic.rawValue)].remove(stream)
        self.workers[Int(stream.topic.rawValue)].busy -= stream.wakes.count
        for wake in stream.expiredInARow { self.holders[wake] = nil }
        self.givenBack[stream.opened] = nil
        self.workers[Int(stream.topic.rawValue)].stalled[stream.opened] = nil
    }

    /// The stream's worker stops.
    package mutating func drain(_ stream: Subscription) {
        stream.isDraining = true
        self.changed(stream)
    }

    /// The stream's peer does not read, or reads again.
    package mutating func pause(_ stream: Subscription, _ isPaused: Bool) {
        stream.isPaused = isPaused
        self.changed(stream)
        guard !isPaused, stream.request.reportsConditions else { return }
        self.workers[Int(stream.topic.rawValue)].conditions.resumed(stream)
        self.tell(stream.topic)
    }

    /// The stream may hold more or fewer wakes; it keeps those it has.
    package mutating func resize(_ stream: Subscription, to slots: Int) {
        self.workers[Int(stream.topic.rawValue)].slots += slots - stream.slots
        stream.slots = slots
        self.changed(stream)
    }

    /// Every stream may hold so many bytes of payloads; it keeps those it has.
    package mutating func resizeAll(wakeBytesMax: Int) {
        // A stream that was full gets its next wake when one of its wakes ends, as it would have.
        self.bounds.wakeBytesMax = wakeBytesMax
        for stream in self.streams.values {
            if stream.request.devices.isEmpty { self.changed(stream) } else { self.shared?.offered.changed(stream) }
        }
    }
}

// MARK: - Whose turn it is

extension StreamTable {
    /// Returns the stream that a wake of this device goes to: a free one that names it, or else the next in rotation.
    ///
    /// - Parameters:
    ///   - topic: The topic of the device.
    ///   - device: The token of the device.
    ///   - target: What is launched; nil for a push.
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

    /// A free stream that names this device: the one with the fewest wakes.
    package mutating func naming(_ topic: TopicIndex, _ device: borrowing DeviceToken) -> Subscription? {
        self.workers[Int(topic.rawValue)].naming.first(device)
    }

    /// The free stream whose turn it is among those that name no device.
    package mutating func nextInRotation(_ topic: TopicIndex) -> Subscription? {
        self.workers[Int(topic.rawValue)].pushes.next()
    }

    /// Gives a stream that may have a free slot again its place in the rotation.
    package mutating func rotate(_ stream: Subscription) {
        self.workers[Int(stream.topic.rawValue)].rotate(stream)
    }

    /// The stream holds more or fewer wakes, or can take one that could not, or no more.
    mutating func changed(_ stream: Subscription) {
        self.shared?.offered.changed(stream)
        guard !stream.request.devices.isEmpty || stream.request.resources.count > 1 else { return }
        self.workers[Int(stream.topic.rawValue)].changed(stream)
    }
}

// MARK: - Tasks that wait

extension StreamTable {
    /// A task of this topic came to wait for a slot.
    ///
    /// - `key`: the secret that the shape of the trees of tasks depends on.
    /// - `isReady`: whether a task waits still.
    mutating func wait(_ task: ReadyTask, key: HashKey, isReady: (ReadyTask) -> Bool) {
        self.grow(task.topic)
        self.shared?.topicsWaiting.append(task.topic)
        self.workers[Int(task.topic.rawValue)].waiting.append(task, key: key, isReady: isReady)
    }

    /// A task waits no longer.
    mutating func waitsNoLonger(_ device: DeviceIndex, _ target: LaunchTarget, _ topic: TopicIndex) {
        guard Int(topic.rawValue) < self.workers.count else { return }
        self.workers[Int(topic.rawValue)].waiting.remove(device, target)
    }

    /// What came first of what waits for such a stream as this one; it may have ceased to.
    func firstWaiting(for stream: Subscription) -> ReadyTask? {
        self.workers[Int(stream.topic.rawValue)].waiting.first(for: stream.request)
    }

    /// How many tasks of a topic wait, those that have ceased to and were not dropped yet included.
    package func waitingCount(_ topic: TopicIndex) -> Int {
        Int(topic.rawValue) < self.workers.count ? self.workers[Int(topic.rawValue)].waiting.count : 0
    }

    private mutating func grow(_ topic: TopicIndex) {
        while self.workers.count <= Int(topic.rawValue) { self.workers.append(TopicWorkers()) }
    }

    /// Whether any stream, free or not, takes such a push or task of this device.
    func isTaken(_ topic: TopicIndex, _ device: borrowing DeviceToken, _ target: LaunchTarget) -> Bool {
        guard Int(topic.rawValue) < self.workers.count else { return false }
        return self.workers[Int(topic.rawValue)].isTaken(device, target)
    }

    /// What the streams of a topic offer, in the order of their names.
    package func resources(_ topic: TopicIndex) -> [String] {
        Int(topic.rawValue) < self.workers.count ? self.workers[Int(topic.rawValue)].resources : []
    }

    /// Returns the number of streams of a topic that were looked at one by one, for tasks that need several resources.
    package func searchedCount(_ topic: TopicIndex) -> Int64 {
        Int(topic.rawValue) < self.workers.count ? self.workers[Int(topic.rawValue)].tasks.searched : 0
    }
}

// MARK: - Conditions

extension StreamTable {
    /// Whether a stream of this topic hears of conditions.
    func isHeard(_ topic: TopicIndex) -> Bool {
        let place = Int(topic.rawValue)
        return place < self.workers.count && self.workers[place].conditions.streamCount > 0
    }

    /// Conditions of a device have changed.
    mutating func conditionsChanged(_ topic: TopicIndex, _ device: DeviceIndex, _ token: borrowing DeviceToken) {
        guard self.isHeard(topic) else { return }
        let device = self.shared?.heard.index(token, topic) ?? device
        self.workers[Int(topic.rawValue)].conditionsChanged(device, token)
        self.tell(topic)
    }

    /// Whether a stream is to hear of conditions.
    var hasConditionsToTell: Bool { !self.topicsToTell.isEmpty }

    /// Which stream is told of which device's conditions next.
    ///
    /// - `looksLeft`: how many streams and changes may still be looked at.
    mutating func nextToHear(_ looksLeft: inout Int) -> (stream: Subscription, device: DeviceIndex)? {
        while looksLeft > 0, let topic = self.topicsToTell.first {
            if let next = self.workers[Int(topic.rawValue)].conditions.next(&looksLeft) { return next }
            // Topics take turns, step by step.
            _ = self.topicsToTell.popFirst()
            self.workers[Int(topic.rawValue)].isToldOfConditions = false
            self.tell(topic)
        }
        return nil
    }

    private mutating func tell(_ topic: TopicIndex) {
        let place = Int(topic.rawValue)
        guard !self.workers[place].isToldOfConditions, !self.workers[place].conditions.isDone else { return }
        self.workers[place].isToldOfConditions = true
        self.topicsToTell.append(topic)
    }
}

// MARK: - Wakes

extension StreamTable {
    /// The open stream that holds a wake, or let it expire.
    package func holder(of wake: WakeID) -> Subscription? {
        guard let stream = self.holders[wake], !stream.hasEnded else { return nil }
        return stream
    }

    /// Whether the stream that held a wake has ended, and the wake was not yet lost.
    package func isHolderGone(_ wake: WakeID) -> Bool { self.holders[wake]?.hasEnded == true }

    /// A wake that a stream held before it ended is lost.
    package mutating func forget(_ wake: WakeID) { self.holders[wake] = nil }

    /// The stream has a wake, whose payload has so many bytes.
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

    /// How many continued tasks that open streams hold have not advanced for so many milliseconds.
    func stalledCount(at now: Instant, after span: Int64) -> Int {
        self.streams.values.reduce(0) { $0 + $1.stalledCount(at: now, after: span) }
    }

    /// The stream no longer holds a wake.
    ///
    /// - Returns: false when it did not hold it.
    package mutating func release(_ wake: WakeID, _ stream: Subscription) -> Bool {
        if self.shared != nil { self.noteReleased(wake, stream) }
        guard stream.remove(wake) else { return false }
        self.holders[wake] = nil
        self.workers[Int(stream.topic.rawValue)].busy -= 1
        self.changed(stream)
        return true
    }

    /// The kind of a wake that the stream holds.
    func kind(of wake: WakeID, _ stream: Subscription) -> LaunchKind? { stream.wakes[wake]?.kind }

    /// A wake that the stream held expired unanswered; a late answer to it is an answer still.
    package mutating func expired(_ wake: WakeID, _ stream: Subscription) {
        self.shared?.note(.expired(wake, stream))
        stream.expiredInARow.append(wake)
        self.holders[wake] = stream
        self.judge(stream)
    }

    /// The stream's worker gave back a wake that it could not begin.
    mutating func gaveBack(_ stream: Subscription, _ reason: String) {
        self.shared?.note(.gaveBack(stream))
        self.givenBack[stream.opened, default: WakesGivenBack()].count += 1
        self.givenBack[stream.opened]?.reason = reason
        stream.hasBeenHeard = true
        self.judge(stream)
    }

    /// The stream answered a wake: what expired or was given back before is forgotten.
    package mutating func answered(_ stream: Subscription) {
        guard !stream.isClear else { return }
        self.shared?.note(.answered(stream.expiredInARow, self.givenBack[stream.opened], stream))
        for expired in stream.expiredInARow { self.holders[expired] = nil }
        stream.expiredInARow.removeAll()
        self.givenBack[stream.opened] = nil
        stream.hasBeenHeard = true
        self.judge(stream)
        stream.isClear = true
    }
}

// MARK: - Stalls

extension StreamTable {
    /// Brings a stream's stall up to date after wakes of it expired, were given back or were answered.
    mutating func judge(_ stream: Subscription) {
        stream.isClear = false
        stream.isStalled =
            stream.expiredInARow.count >= Subscription.unansweredInARowMax
            || self.givenBack[stream.opened].map { $0.count >= Subscription.unansweredInARowMax } ?? false
        if !stream.hasEnded {
            self.workers[Int(stream.topic.rawValue)].stalled[stream.opened] = stream.isStalled ? stream : nil
        }
        self.changed(stream)
    }

    /// Forgets that the stream's worker gave back a wake.
    mutating func undoGivingBack(_ stream: Subscription) {
        guard let before = self.givenBack[stream.opened] else { return }
        self.givenBack[stream.opened] =
            before.count > 1
            ? WakesGivenBack(count: before.count - 1, reason: before.reason) : nil
        self.judge(stream)
    }

    /// Adds the wakes that a stream gave back before an answer that did not happen.
    mutating func undoAnswer(_ stream: Subscription, expired: [WakeID], _ before: WakesGivenBack?) {
        for wake in expired { self.holders[wake] = stream }
        stream.expiredInARow.insert(contentsOf: expired, at: 0)
        if let before {
            self.givenBack[stream.opened, default: WakesGivenBack(reason: before.reason)].count += before.count
        }
        self.judge(stream)
    }

    /// Returns why a stream gets no wakes, or may not have received one; nil if nothing speaks against it.
    func trouble(of stream: Subscription) -> String? {
        if let givenBack = self.givenBack[stream.opened], givenBack.count >= Subscription.unansweredInARowMax {
            let reason = givenBack.reason.isEmpty ? "" : ": \(givenBack.reason)"
            return "it gave back \(givenBack.count) wakes in a row that it could not begin\(reason)"
        }
        guard !stream.expiredInARow.isEmpty else { return nil }
        guard stream.hasBeenHeard else {
            return "a wake expired on it unanswered, and nothing was ever received from it; the worker may not have "
                + "received it: a buffering proxy?"
        }
        return stream.isStalled ? "\(stream.expiredInARow.count) wakes in a row expired on it unanswered" : nil
    }
}

extension Subscription {
    /// The worker's name, as sentences have it.
    var nameText: String { self.request.label.isEmpty ? "a worker without a name" : "worker \"\(self.request.label)\"" }
}

/// The wakes of streams that have ended, until they are lost: some streams held thousands.
package struct EndedStreams: ~Copyable {
    private var streams = FIFOQueue<Subscription>()
    /// The wakes of the stream that was taken last, the next one last.
    private var wakes: [WakeID] = []

    /// No streams.
    package init() {}

    /// Whether nothing is left to be lost.
    package var isEmpty: Bool { self.wakes.isEmpty && self.streams.isEmpty }

    /// A stream has ended.
    package mutating func append(_ stream: Subscription) {
        if !stream.wakes.isEmpty { self.streams.append(stream) }
    }

    /// Takes the next wake that is to be lost.
    package mutating func popWake() -> WakeID? {
        while self.wakes.isEmpty, let stream = self.streams.popFirst() {
            // In the order of their ids, whatever came and went before.
            self.wakes = stream.wakes.sortedWakes.reversed()
        }
        return self.wakes.popLast()
    }
}
