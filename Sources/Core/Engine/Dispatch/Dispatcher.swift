package import Policy
package import Wire

/// Pairs devices that are due with free worker slots, on the engine's thread.
///
/// Every verb leaves nothing undone: afterwards no device waits that a free slot could take. Only what is more than
/// `workPerStepMax` between two calls of `advance` is left for the next ones, so that no crowd keeps others waiting. A
/// device that a stream names goes to that stream first; the others take turns. A stream that comes free is given what
/// has waited longest of all that it takes.
package final class Dispatcher {
    let engine: EmbeddedEngine
    let output: any DispatchOutput
    var streams: StreamTable
    /// Streams that have ended with wakes that are to be lost.
    var ended = EndedStreams()
    /// Streams that may have a free slot again.
    var freed = FIFOQueue<Subscription>()
    /// The most wakes that are launched from queues, or lost with their streams, between two calls of `advance`.
    let workPerStepMax: Int
    /// How many of them are left.
    var workLeft: Int
    /// How many streams and changes may still be looked at before the next call of `advance` for what streams are to
    /// hear of conditions: as many as wakes, and apart from them, so that neither keeps the other waiting.
    var looksLeft: Int
    /// The gateway is shutting down: nothing new is launched.
    var isDraining = false
    /// True while devices are in memory only to be read: nothing is launched, and streams hear of nothing.
    package var isReading = false
    /// How many reports of continued tasks' progress were taken here.
    package internal(set) var progressReports: Int64 = 0

    /// A dispatcher without streams.
    ///
    /// - `wakeBytesPerStreamMax`: the bytes of payloads that a stream may hold unanswered; it gets wakes until
    ///   it has as many.
    /// - `workPerStepMax`: the most wakes that are launched from queues, or lost with their streams, between two calls
    ///   of `advance`.
    package init(
        engine: EmbeddedEngine,
        output: any DispatchOutput,
        wakeBytesPerStreamMax: Int = 4_194_304,
        workPerStepMax: Int = 4096
    ) {
        self.workPerStepMax = workPerStepMax
        self.workLeft = workPerStepMax
        self.looksLeft = workPerStepMax
        self.engine = engine
        self.output = output
        self.streams = StreamTable(wakeBytesMax: wakeBytesPerStreamMax)
    }
}

// MARK: - Time and pushes

extension Dispatcher {
    /// Goes on to `now`.
    ///
    /// - Returns: whether everything that is due was done; otherwise call again soon.
    package func advance(to now: Instant, devicesMax: Int) -> Bool {
        self.workLeft = self.workPerStepMax
        self.looksLeft = self.workPerStepMax
        let isDone = self.engine.advance(to: now, devicesMax: devicesMax)
        self.flow()
        return isDone && !self.isBehind
    }

    /// Whether more was to do than a step may: call `advance` again soon.
    package var isBehind: Bool {
        if !self.ended.isEmpty || self.streams.hasConditionsToTell { return true }
        let isWaiting = self.engine.ready.hasNewcomer || !self.engine.readyTasks.isEmpty
        return !self.isDraining && (isWaiting || !self.freed.isEmpty)
    }

    /// A push arrived.
    ///
    /// - `expiration`: its own, in policy time.
    package func push(_ push: Push, _ expiration: Expiration) throws(Refusal) -> PushAnswer {
        switch self.engine.admit(push.token, topic: push.topic, isDryRun: push.isDryRun) {
        case .refused(let refusal): throw refusal
        case .newcomer(let topic):
            if let refusal = self.engine.memoryRefusal(push, nil, topic) { throw refusal }
            var isFree = false
            if let topic { isFree = self.freeStream(topic, push.token) != nil }
            return self.engine.acceptDryRun(push, expiration, device: nil, topic: topic, workerIsFree: isFree)
        case .device(let device):
            self.catchUp(device)
            let topic = self.engine.topic(of: device)
            let stream = self.freeStream(topic, push.token)
            let isFree = stream != nil
            guard !push.isDryRun else {
                if let refusal = self.engine.memoryRefusal(push, device, topic) ?? self.engine.rateRefusal(device) {
                    throw refusal
                }
                return self.engine.acceptDryRun(push, expiration, device: device, topic: topic, workerIsFree: isFree)
            }
            let answer = try self.engine.accept(push, expiration, device: device, workerIsFree: isFree)
            if let wake = answer.wake { self.launched(wake, for: stream) }
            self.flow()
            return answer
        }
    }

    /// A verb has launched a wake, as `stream` was free for one.
    ///
    /// - Returns: whether the stream got it.
    @discardableResult
    func launched(_ id: WakeID, for stream: Subscription?) -> Bool {
        // A wake that is no longer in flight has ended elsewhere: nobody is to hear of it.
        guard let wake = self.engine.launchedWake(id) else { return false }
        guard let stream, stream.isFree else {
            // No worker ever gets it.
            self.engine.lose(id, takingBackAttempt: true)
            return false
        }
        self.hand(wake, to: stream)
        return true
    }

    func hand(_ wake: borrowing LaunchedWake, to subscription: Subscription) {
        let kind = wake.kind
        let isTaken = kind == .push ? subscription.request.takesPushes : subscription.request.takes(wake.target)
        precondition(isTaken, "a stream is sent what it asked for")
        self.streams.give(
            wake.id,
            kind,
            bytes: wake.byteCount,
            to: subscription,
            at: self.engine.now,
            deadline: wake.deadline
        )
        self.output.deliver(wake, to: subscription.address)
    }
}

// MARK: - Questions

extension Dispatcher {
    /// Workers of one topic, or of all.
    package struct WorkerCounts: Hashable, Sendable {
        package var connected = 0
        package var slots = 0
        package var busy = 0
        /// The streams that get no wakes: those that this gateway has.
        package var stalled = 0
        /// Which stream is stalled and why; one of them if there are several.
        package var stallReason: String?

        package init(connected: Int = 0, slots: Int = 0, busy: Int = 0) {
            self.connected = connected
            self.slots = slots
            self.busy = busy
        }
    }

    /// - Parameter topic: nil for all topics together.
    package func workerCounts(_ topic: TopicIndex?) -> WorkerCounts { self.streams.counts(topic) }

    /// The open streams and how each is: those that hold the most wakes, when there are more than `countMax`.
    package func streams(countMax: Int) -> [StreamSnapshot] {
        Array(self.streams.all).most(countMax) { $0.wakes.count }.map {
            StreamSnapshot($0, trouble: self.streams.trouble(of: $0))
        }
    }

    /// The open streams of each topic that has some: those that hold the most wakes, if there are more than
    /// `countMax`.
    package func streamsByTopic(countMax: Int) -> [TopicIndex: [StreamSnapshot]] {
        Dictionary(grouping: self.streams.all, by: \.topic).mapValues { streams in
            streams.most(countMax) { $0.wakes.count }.map { StreamSnapshot($0, trouble: self.streams.trouble(of: $0)) }
        }
    }

    /// What the connected streams of a topic offer, in the order of the names.
    package func resources(_ topic: TopicIndex) -> [String] { self.streams.resources(topic) }

    /// How often a stream got no more wakes because of the bytes it held.
    package var timesStreamWasFull: Int64 { self.streams.timesFull }

    /// Everything that is known of a device, once what is due of it is done.
    package func snapshot(_ device: DeviceIndex) -> DeviceSnapshot {
        self.catchUp(device)
        var snapshot = self.engine.snapshot(device)
        snapshot.pushTakers = self.takers(of: .push, device)
        for index in snapshot.tasks.indices { self.noteTakers(of: &snapshot.tasks[index], device) }
        if let wake = self.engine.expiredWake(device), let stream = self.streams.holder(of: wake), !stream.hasBeenHeard
        {
            snapshot.silentWorker = stream.nameText
        }
        return snapshot
    }

    /// Whether the streams here take such a push or task of this device.
    package func takers(of target: LaunchTarget, _ device: DeviceIndex) -> Takers {
        let identity = self.engine.identity(device)
        if !self.isDraining, self.streams.free(identity.topic, identity.token, target) != nil { return .free }
        return self.streams.isTaken(identity.topic, identity.token, target) ? .busy : .none
    }

    /// What keeps a request of this identifier back, once what is due of its device is done.
    package func outlook(ofTask name: String, _ device: DeviceIndex) -> TaskOutlook {
        self.catchUp(device)
        var outlook = self.engine.outlook(ofTask: name, device)
        outlook.launch.takers = self.takers(of: outlook.target, device)
        return outlook
    }

    /// Says of a task of this device that waits whether any stream takes it.
    package func noteTakers(of task: inout TaskSnapshot, _ device: DeviceIndex) {
        guard case .waiting = task.state else { return }
        task.isTaken = self.streams.isTaken(self.engine.topic(of: device), task.device, task.target)
    }

    /// How many tasks of a topic are kept as waiting for a slot; some may have ceased to, never most of them.
    package func waitingTaskCount(_ topic: TopicIndex) -> Int { self.streams.waitingCount(topic) }

    /// Returns the number of streams of a topic that were looked at one by one, for tasks that need several resources.
    package func searchedStreamCount(_ topic: TopicIndex) -> Int64 { self.streams.searchedCount(topic) }

    /// How many streams are open.
    package var streamCount: Int { self.streams.count }
}

/// What every verb begins and ends with.
extension Dispatcher {
    /// Does what is due of a device before something happens to it, its launches too, though a bounded step may not
    /// have come to it yet: at one moment a launch goes before what comes from outside.
    func catchUp(_ device: DeviceIndex) {
        if !self.ended.isEmpty {
            for wake in self.engine.wakesInFlight(device) where self.streams.isHolderGone(wake) {
                self.streams.forget(wake)
                self.engine.lose(wake)
            }
        }
        if self.engine.catchUp(device) { self.flow() }
        // A step that has done all it may leaves the device in its queue, and what is about to happen would go first.
        guard self.workLeft <= 0, !self.isReading else { return }
        if self.engine.hasTasks(device) {
            while self.launchNext(device) {}
            return
        }
        let identity = self.engine.identity(device)
        guard let stream = self.freeStream(identity.topic, identity.token), let wake = self.engine.claim(device) else {
            return
        }
        self.hand(wake, to: stream)
    }

    /// Takes back slots and gives them out until nothing more happens, and tells streams of conditions.
    func flow() {
        guard !self.isReading else { return }
        if !self.ended.isEmpty { self.loseWakes() }
        while let wake = self.engine.popExpiringWake() { self.warn(wake.id, deadline: wake.deadline) }
        if self.engine.hasNews || !self.freed.isEmpty { while self.launchOrFill() {} }
        if self.streams.hasConditionsToTell { self.tellConditions() }
    }

    /// Offers one device or task that came to wait, or fills one stream that came free.
    ///
    /// - Returns: false when nothing more is to be done, or no more may be.
    private func launchOrFill() -> Bool {
        self.takeExpiredWakes()
        guard self.workLeft > 0 else { return false }
        if let device = self.engine.ready.popNewcomer() {
            self.offer(device)
        } else if let task = self.engine.readyTasks.popFirst() {
            self.offer(task)
        } else if let subscription = self.freed.first {
            guard self.fill(subscription) else { return false }
            _ = self.freed.popFirst()
        } else {
            return false
        }
        return true
    }

    /// Loses the wakes of streams that have ended.
    private func loseWakes() {
        while self.workLeft > 0, let wake = self.ended.popWake() {
            self.workLeft -= 1
            self.streams.forget(wake)
            self.engine.lose(wake)
        }
    }

    /// Warns the stream that holds a wake whose deadline is near, once for each deadline.
    package func warn(_ wake: WakeID, deadline: Instant) {
        guard let stream = self.streams.holder(of: wake), stream.warned(wake, of: deadline) else { return }
        let timeLeft = deadline.milliseconds - self.engine.now.milliseconds
        self.output.warn(wake, on: stream.address, deadline: deadline, timeLeft: timeLeft)
    }

    func takeExpiredWakes() {
        while let wake = self.engine.popExpiredWake() { self.wakeExpired(wake.id, wake.reason) }
    }

    /// A wake ended without its worker's doing: the stream that holds it is told.
    func wakeExpired(_ wake: WakeID, _ reason: ExpirationReason) {
        guard let subscription = self.streams.holder(of: wake) else {
            self.streams.shared?.noteEndedElsewhere(wake, reason)
            return
        }
        let kind = self.streams.kind(of: wake, subscription)
        self.output.expire(wake, on: subscription.address, reason: reason)
        _ = self.release(wake, subscription)
        // Tasks of minutes say little of a worker that is silent, the less so as what interrupts them is not its fault.
        if subscription.request.stallsWhenSilent, kind?.lane == .short { self.streams.expired(wake, subscription) }
        self.slotFreed(subscription)
    }

    /// A stream no longer holds a wake, and is told so.
    ///
    /// - Returns: false when it did not hold it.
    func release(_ wake: WakeID, _ subscription: Subscription) -> Bool {
        guard self.streams.release(wake, subscription) else { return false }
        self.output.released(wake, on: subscription.address)
        return true
    }

    /// A stream may take another wake, or has none left and may end.
    func slotFreed(_ subscription: Subscription) {
        self.freed.append(subscription)
        self.endIfDrained(subscription)
    }

    func endIfDrained(_ subscription: Subscription) {
        guard subscription.isDraining, subscription.wakes.isEmpty, !subscription.hasEnded,
            subscription.releasesInDoubt == 0
        else { return }
        self.streams.remove(subscription)
        self.output.drained(subscription.address)
    }
}

/// A worker's open stream, at one moment.
package struct StreamSnapshot: Sendable {
    /// Whether a stream takes wakes, and what keeps it from that.
    package enum State: String, Sendable {
        /// The stream has a free slot.
        case free
        /// Every slot holds a wake.
        case busy
        /// The payloads it holds are as large as they may be.
        case full
        /// The stream's peer does not read.
        case paused
        /// Three wakes in a row expired on it unanswered, or were given back.
        case stalled
        /// The stream's worker stops.
        case draining
    }

    package let address: StreamAddress
    package let topic: TopicIndex
    /// What its worker calls itself; may be empty.
    package let label: String
    package let slots: Int
    /// The wakes that it asked for.
    package let request: SubscriptionRequest
    /// The wakes it holds.
    package let busy: Int
    /// The wakes it was given since it was opened.
    package let wakesGiven: Int64
    /// When it was given the oldest of the wakes it holds; nil when it holds none.
    package let oldestGivenAt: Instant?
    /// The oldest of the wakes it holds.
    package let oldestWake: WakeID?
    package let state: State
    /// Why it gets no wakes, or may not have received one; nil if nothing speaks against it.
    package let trouble: String?

    init(_ subscription: Subscription, trouble: String?) {
        self.trouble = trouble
        self.address = subscription.address
        self.topic = subscription.topic
        self.label = subscription.request.label
        self.slots = subscription.slots
        self.request = subscription.request
        self.busy = subscription.wakes.count
        self.wakesGiven = subscription.wakesGiven
        let oldest = subscription.wakes.all.min { left, right in
            (left.value.givenAt, left.wake.first) < (right.value.givenAt, right.wake.first)
        }
        self.oldestGivenAt = oldest?.value.givenAt
        self.oldestWake = oldest?.wake
        self.state =
            if subscription.isDraining {
                .draining
            } else if subscription.isPaused {
                .paused
            } else if subscription.isStalled {
                .stalled
            } else if subscription.isFull {
                .full
            } else if subscription.wakes.count >= subscription.slots {
                .busy
            } else {
                .free
            }
    }
}

extension TaskSnapshot {
    /// The kind, name and resources that a stream must take to get this task.
    package var target: LaunchTarget {
        LaunchTarget(kind: LaunchKind(self.task.kind), name: self.name, resources: self.details.resources)
    }
}

/// What the dispatcher tells workers. Whoever takes it keeps it back until the step is durable.
package protocol DispatchOutput: AnyObject {
    /// A wake for the stream; its content is valid during the call.
    func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress)

    /// The deadline of a wake the stream holds is near: its worker should come to an end.
    ///
    /// - `timeLeft`: how long until the deadline, in milliseconds.
    func warn(_ wake: WakeID, on stream: StreamAddress, deadline: Instant, timeLeft: Int64)

    /// A wake the stream holds has expired: its worker should stop.
    func expire(_ wake: WakeID, on stream: StreamAddress, reason: ExpirationReason)

    /// The stream no longer holds a wake it held, however that ended; not said of a stream that ended itself. Of a wake
    /// that has expired `expire` was said before.
    func released(_ wake: WakeID, on stream: StreamAddress)

    /// The stream was asked to end, and holds no wake any more: it is forgotten, and may be ended.
    func drained(_ stream: StreamAddress)

    /// Conditions of a device have changed, of which the stream hears: all of them as they are now. What changed
    /// several times before it could be told is told once.
    func conditionsChanged(_ token: DeviceToken, _ conditions: Conditions, on stream: StreamAddress)
}

/// Where a worker's stream, or a request that waits for its answer, is found.
///
/// The dispatcher carries it and never looks inside.
package enum StreamAddress: Hashable, BitwiseCopyable, Sendable {
    /// A stream of a connection.
    case stream(LoopStream)
    /// The stream of a push whose answer fault rules get before it is sent.
    case faulted(LoopStream)
    /// The wakes of the webhook with this number.
    case webhook(UInt32)
    /// The results that the webhook with this number reports: nobody waits for their answers.
    case webhookReport(UInt32)
}

/// A stream of a connection: which loop has the connection, and which of its streams it is.
package struct LoopStream: Hashable, BitwiseCopyable, Sendable {
    package let connectionIndex: UInt32
    package let connectionGeneration: UInt32
    package let number: Int32
    package let loop: UInt16

    package init(loop: UInt16, connectionIndex: UInt32, connectionGeneration: UInt32, number: Int32) {
        self.connectionIndex = connectionIndex
        self.connectionGeneration = connectionGeneration
        self.number = number
        self.loop = loop
    }
}
