package import Policy
package import Wire

/// Pairs due devices with free worker slots, on the engine's thread.
///
/// After every operation, no launch waits while a slot for it is free, with one exception: at most `workPerStepMax`
/// launches are made between two calls of `advance`, so that they do not delay other requests. A device's wake goes to
/// a free stream that names the device, if there is one; otherwise streams take turns. A stream with a freed slot gets
/// the longest waiting launch that it accepts.
package final class Dispatcher {
    let engine: DeviceEngine
    let output: any DispatchOutput
    var streams: StreamTable
    /// Ended streams whose wakes must still end as lost.
    var ended = EndedStreams()
    /// Streams that may have a free slot again.
    var freed = FIFOQueue<Subscription>()
    /// The maximum number of wakes that are launched from queues, or lost with their streams, between calls of
    /// `advance`.
    let workPerStepMax: Int
    /// The number of further such wakes before the next call of `advance`.
    var workLeft: Int
    /// The number of further streams and changes to examine for condition changes before the next call of `advance`. It
    /// also starts at `workPerStepMax`, but is counted separately, so that neither kind of work delays the other.
    var checksLeft: Int
    /// True if the gateway is shutting down and launches nothing.
    var isDraining = false
    /// True while an operation only reads devices and must not launch or send.
    package var isReading = false
    /// The number of progress reports that this gateway accepted.
    package internal(set) var progressReports: Int64 = 0

    /// Creates a dispatcher without streams.
    ///
    /// - `wakeBytesPerStreamMax`: the maximum bytes of unanswered payloads per stream. A stream that has reached it
    ///   gets no wakes.
    /// - `workPerStepMax`: the maximum number of wakes that are launched from queues, or lost with their streams,
    ///   between calls of `advance`.
    package init(
        engine: DeviceEngine,
        output: any DispatchOutput,
        wakeBytesPerStreamMax: Int = 4_194_304,
        workPerStepMax: Int = 4096
    ) {
        self.workPerStepMax = workPerStepMax
        self.workLeft = workPerStepMax
        self.checksLeft = workPerStepMax
        self.engine = engine
        self.output = output
        self.streams = StreamTable(wakeBytesMax: wakeBytesPerStreamMax)
    }
}

// MARK: - Time and pushes

extension Dispatcher {
    /// Advances to `now`.
    ///
    /// - Returns: true if all due events were applied. If false, call this again soon.
    package func advance(to now: Instant, devicesMax: Int) -> Bool {
        self.workLeft = self.workPerStepMax
        self.checksLeft = self.workPerStepMax
        let isDone = self.engine.advance(to: now, devicesMax: devicesMax)
        self.flow()
        return isDone && !self.isBehind
    }

    /// True if this step reached a limit. Call `advance` again soon.
    package var isBehind: Bool {
        if !self.ended.isEmpty || self.streams.hasConditionsToSend { return true }
        let isWaiting = self.engine.ready.hasNewlyReady || !self.engine.readyTasks.isEmpty
        return !self.isDraining && (isWaiting || !self.freed.isEmpty)
    }

    /// Applies a push that has arrived.
    ///
    /// - `expiration`: the push's expiration, in policy time.
    package func push(_ push: Push, _ expiration: Expiration) throws(Refusal) -> PushAnswer {
        switch self.engine.admit(push.token, topic: push.topic, isDryRun: push.isDryRun) {
        case .refused(let refusal): throw refusal
        case .newDevice(let topic):
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

    /// Delivers a wake that an operation launched because `stream` had a free slot.
    ///
    /// - Returns: true if the stream got the wake.
    @discardableResult
    func launched(_ id: WakeID, for stream: Subscription?) -> Bool {
        // Another operation may have ended the wake. No stream may then receive it.
        guard let wake = self.engine.launchedWake(id) else { return false }
        guard let stream, stream.isFree else {
            // No worker ever receives the wake.
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
        if !subscription.request.label.isEmpty { self.engine.given(wake.id, to: subscription.request.label) }
    }
}

// MARK: - Queries

extension Dispatcher {
    /// Worker counts of one topic, or of all topics together.
    package struct WorkerCounts: Hashable, Sendable {
        package var connected = 0
        package var slots = 0
        package var busy = 0
        /// The number of stalled streams of this gateway, which get no wakes.
        package var stalled = 0
        /// The name of one of the stalled streams, and the reason.
        package var stallReason: String?

        package init(connected: Int = 0, slots: Int = 0, busy: Int = 0) {
            self.connected = connected
            self.slots = slots
            self.busy = busy
        }
    }

    /// - Parameter topic: the topic; nil for all topics together.
    package func workerCounts(_ topic: TopicIndex?) -> WorkerCounts { self.streams.counts(topic) }

    /// Returns the open streams and their states; if there are more than `countMax`, only the streams with the most
    /// wakes.
    package func streams(countMax: Int) -> [StreamSnapshot] {
        Array(self.streams.all).top(countMax) { $0.wakes.count }.map {
            StreamSnapshot($0, trouble: self.streams.trouble(of: $0))
        }
    }

    /// Returns the open streams of each topic. If a topic has more than `countMax`, or more than its share of
    /// `totalMax`, returns only the streams with the most wakes.
    package func streamsByTopic(countMax: Int, totalMax: Int) -> [TopicIndex: [StreamSnapshot]] {
        let groups = Dictionary(grouping: self.streams.all, by: \.topic)
        let share = max(1, min(countMax, totalMax / max(1, groups.count)))
        return groups.mapValues { streams in
            streams.top(share) { $0.wakes.count }.map { StreamSnapshot($0, trouble: self.streams.trouble(of: $0)) }
        }
    }

    /// Returns the resources that connected streams of a topic offer, sorted by name.
    package func resources(_ topic: TopicIndex) -> [String] { self.streams.workers(of: topic)?.resources ?? [] }

    /// The number of times a stream reached its limit of unanswered bytes.
    package var timesStreamWasFull: Int64 { self.streams.timesFull }

    /// Returns the state of a device after applying its due events.
    package func snapshot(_ device: DeviceIndex) -> DeviceSnapshot {
        self.catchUp(device)
        var snapshot = self.engine.snapshot(device)
        snapshot.pushTakers = self.takers(of: .push, device)
        for index in snapshot.tasks.indices { self.noteTakers(of: &snapshot.tasks[index], device) }
        if let wake = self.engine.expiredWake(device), let stream = self.streams.holder(of: wake), !stream.hasResponded
        {
            snapshot.silentWorker = stream.nameText
        }
        return snapshot
    }

    /// Returns the availability of this gateway's streams for this push or task of the device.
    package func takers(of target: LaunchTarget, _ device: DeviceIndex) -> Takers {
        let identity = self.engine.identity(device)
        if !self.isDraining, self.streams.free(identity.topic, identity.token, target) != nil { return .free }
        return self.streams.workers(of: identity.topic)?.isTaken(identity.token, target) == true ? .busy : .none
    }

    /// Returns the conditions that delay a request of this identifier, after applying the device's due events.
    package func outlook(ofTask name: String, _ device: DeviceIndex) -> TaskOutlook {
        self.catchUp(device)
        var outlook = self.engine.outlook(ofTask: name, device)
        outlook.launch.takers = self.takers(of: outlook.target, device)
        return outlook
    }

    /// Sets `isTaken` of a pending task, or `worker` of a running task.
    package func noteTakers(of task: inout TaskSnapshot, _ device: DeviceIndex) {
        switch task.state {
        case .waiting:
            let workers = self.streams.workers(of: self.engine.topic(of: device))
            task.isTaken = workers?.isTaken(task.device, task.target) ?? false
        case .running(let wake, _, _, _):
            let name = self.streams.holder(of: wake)?.request.label ?? ""
            task.worker = name.isEmpty ? nil : name
        }
    }

    /// Returns the number of tasks in a topic's queues. At most half of them no longer wait.
    package func waitingTaskCount(_ topic: TopicIndex) -> Int { self.streams.workers(of: topic)?.waiting.count ?? 0 }

    /// Returns the number of streams that were examined one by one for tasks of a topic that need several resources.
    package func searchedStreamCount(_ topic: TopicIndex) -> Int64 {
        self.streams.workers(of: topic)?.tasks.searched ?? 0
    }

    package var streamCount: Int { self.streams.count }
}

/// The first and last steps of every operation.
extension Dispatcher {
    /// Applies all due events of a device, including launches, before an operation on it, even if the current step
    /// would reach them later. A launch that is due now precedes the operation.
    func catchUp(_ device: DeviceIndex) {
        if !self.ended.isEmpty {
            for wake in self.engine.wakesInFlight(device) where self.streams.isHolderGone(wake) {
                self.streams.forget(wake)
                self.engine.lose(wake)
            }
        }
        if self.engine.catchUp(device) { self.flow() }
        // A step at its work limit leaves the device in its queue, so the launch is made here, before the operation.
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

    /// Frees and fills slots as long as it has an effect, then sends condition changes.
    func flow() {
        guard !self.isReading else { return }
        if !self.ended.isEmpty { self.loseWakes() }
        while let wake = self.engine.wakes.expiring.popFirst() { self.warn(wake.id, deadline: wake.deadline) }
        if self.engine.hasNews || !self.freed.isEmpty { while self.launchOrFill() {} }
        if self.streams.hasConditionsToSend { self.sendConditions() }
    }

    /// Offers one device or task that has begun to wait, or fills one stream with a freed slot.
    ///
    /// - Returns: false if no work is left, or the work limit is reached.
    private func launchOrFill() -> Bool {
        self.takeExpiredWakes()
        guard self.workLeft > 0 else { return false }
        if let device = self.engine.ready.popNewlyReady() {
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

    /// Ends the wakes of ended streams as lost.
    private func loseWakes() {
        while self.workLeft > 0, let wake = self.ended.popWake() {
            self.workLeft -= 1
            self.streams.forget(wake)
            self.engine.lose(wake)
        }
    }

    /// Warns the stream of a wake whose deadline is near, once for each deadline.
    package func warn(_ wake: WakeID, deadline: Instant) {
        guard let stream = self.streams.holder(of: wake), stream.warned(wake, of: deadline) else { return }
        let timeLeft = deadline.milliseconds - self.engine.now.milliseconds
        self.output.warn(wake, on: stream.address, deadline: deadline, timeLeft: timeLeft)
    }

    func takeExpiredWakes() {
        while let wake = self.engine.popExpiredWake() { self.wakeExpired(wake.id, wake.reason, at: self.engine.now) }
    }

    /// Notifies the stream of a wake after the wake ended without a result of its worker.
    func wakeExpired(_ wake: WakeID, _ reason: ExpirationReason, at now: Instant) {
        guard let subscription = self.streams.holder(of: wake) else {
            self.streams.shared?.noteEndedElsewhere(wake, reason)
            return
        }
        let kind = self.streams.kind(of: wake, subscription)
        self.output.expire(wake, on: subscription.address, reason: reason)
        // Only these reasons indicate the worker's speed.
        let isOfWorker = reason == .deadline || reason == .progress
        _ = self.release(wake, subscription, endedAt: isOfWorker ? now : nil)
        // Only wakes of the short lane count. An expired continued or processing task may have been interrupted, and
        // does not indicate a silent worker.
        if subscription.request.stallsWhenSilent, kind?.lane == .short { self.streams.expired(wake, subscription) }
        self.slotFreed(subscription)
    }

    /// Releases a wake from its stream and notifies the stream.
    ///
    /// - `endedAt`: the end of the wake; nil if its duration does not depend on the worker.
    /// - Returns: false if the wake was not on the stream.
    func release(_ wake: WakeID, _ subscription: Subscription, endedAt: Instant? = nil) -> Bool {
        guard self.streams.release(wake, subscription, endedAt: endedAt) else { return false }
        self.output.released(wake, on: subscription.address)
        return true
    }

    /// Notes that a stream has a free slot. Ends the stream if it is draining and has no wakes.
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

/// The state of a worker's open stream at one instant.
package struct StreamSnapshot: Sendable {
    /// The readiness of a stream for wakes.
    package enum State: String, Sendable {
        /// The stream has a free slot.
        case free
        /// No slot is free.
        case busy
        /// The payloads of the stream's unanswered wakes have reached the limit of bytes.
        case full
        /// The stream's peer does not read.
        case paused
        /// Three wakes in a row expired unanswered or were given back.
        case stalled
        /// The stream's worker is stopping.
        case draining
    }

    package let address: StreamAddress
    package let topic: TopicIndex
    /// The worker's name for itself; may be empty.
    package let label: String
    package let slots: Int
    /// The subscription.
    package let request: SubscriptionRequest
    /// The number of unanswered wakes of the stream.
    package let busy: Int
    /// The number of wakes that the stream has received.
    package let wakesGiven: Int64
    /// The time at which the stream got its oldest unanswered wake; nil if it has none.
    package let oldestGivenAt: Instant?
    /// The oldest unanswered wake of the stream; nil if it has none.
    package let oldestWake: WakeID?
    package let state: State
    /// The reason why the stream gets no wakes or may have missed a wake; nil if there is none.
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
    /// The kind, name and resources that a stream must accept to get this task.
    package var target: LaunchTarget {
        LaunchTarget(kind: LaunchKind(self.task.kind), name: self.name, resources: self.details.resources)
    }
}

/// The messages of the dispatcher to workers. The receiver must not send them before the step is durable.
package protocol DispatchOutput: AnyObject {
    /// Sends a wake to the stream. Its content is valid during the call.
    func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress)

    /// Warns the stream that the deadline of one of its wakes is near, so that its worker finishes.
    ///
    /// - `timeLeft`: the time until the deadline, in milliseconds.
    func warn(_ wake: WakeID, on stream: StreamAddress, deadline: Instant, timeLeft: Int64)

    /// Notifies the stream that one of its wakes has expired, so that its worker stops.
    func expire(_ wake: WakeID, on stream: StreamAddress, reason: ExpirationReason)

    /// Notes that a wake has been released from the stream. Not called for a stream that has ended. For an expired
    /// wake, `expire` precedes this call.
    func released(_ wake: WakeID, on stream: StreamAddress)

    /// Notes that a draining stream has no wakes. It has been removed, and may be closed.
    func drained(_ stream: StreamAddress)

    /// Sends the current conditions of a device to a stream that receives changes. Several changes before the message
    /// are sent as one.
    func conditionsChanged(_ token: DeviceToken, _ conditions: Conditions, on stream: StreamAddress)
}

/// The address of a worker's stream, or of a request that awaits its answer.
///
/// The dispatcher does not interpret the address.
package enum StreamAddress: Hashable, BitwiseCopyable, Sendable {
    /// A stream of a connection.
    case stream(LoopStream)
    /// The stream of a push whose answer passes through fault rules before it is sent.
    case faulted(LoopStream)
    /// The wakes of the webhook with this number.
    case webhook(UInt32)
    /// The results that the webhook with this number reports. Their answers are not used.
    case webhookReport(UInt32)
}

/// A stream of a connection: the event loop, the connection, and the number of the stream.
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
