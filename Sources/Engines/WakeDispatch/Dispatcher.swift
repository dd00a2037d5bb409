package import Bytes
package import DeviceEngine
package import LaunchPolicy

/// Pairs devices that are due with free worker slots, on the engine's thread.
///
/// Every verb leaves nothing undone: afterwards no device waits that a free slot could take. Only what is more than
/// `workPerStepMax` between two calls of `advance` is left for the next ones, so that no crowd keeps others waiting. A
/// device that a stream names goes to that stream first; the others take turns.
package final class Dispatcher {
    private let engine: EmbeddedEngine
    private let output: any DispatchOutput
    private var streams: StreamTable
    /// Streams that have ended with wakes that are to be lost.
    private var ended = EndedStreams()
    /// Streams that may have a free slot again.
    private var freed = FIFOQueue<Subscription>()
    /// The most wakes that are launched from queues, or lost with their streams, between two calls of `advance`.
    private let workPerStepMax: Int
    /// How many of them are left.
    private var workLeft: Int
    /// The gateway is shutting down: nothing new is launched.
    private var isDraining = false

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
        let isDone = self.engine.advance(to: now, devicesMax: devicesMax)
        self.flow()
        return isDone && !self.isBehind
    }

    /// Whether more was to do than a step may: call `advance` again soon.
    package var isBehind: Bool {
        !self.ended.isEmpty || (!self.isDraining && (!self.freed.isEmpty || self.engine.hasNewlyReady))
    }

    /// What a push was answered.
    package enum PushOutcome: Hashable, Sendable {
        case answered(PushAnswer)
        case refused(Refusal)
    }

    /// A push arrived.
    package func push(
        _ push: IncomingPush,
        token: borrowing DeviceToken,
        topic: ByteView,
        isDryRun: Bool
    ) -> PushOutcome {
        switch self.engine.admit(token, topic: topic, isDryRun: isDryRun) {
        case .refused(let refusal): return .refused(refusal)
        case .newcomer(let topic):
            if let refusal = self.engine.memoryRefusal(push, nil, topic) { return .refused(refusal) }
            var isFree = false
            if let topic { isFree = self.freeStream(topic, token) != nil }
            return .answered(self.engine.acceptDryRun(push, device: nil, topic: topic, workerIsFree: isFree))
        case .device(let device):
            self.catchUp(device)
            let topic = self.engine.topic(of: device)
            let stream = self.freeStream(topic, token)
            guard !isDryRun else {
                if let refusal = self.engine.memoryRefusal(push, device, topic) ?? self.engine.rateRefusal(device) {
                    return .refused(refusal)
                }
                return .answered(
                    self.engine.acceptDryRun(push, device: device, topic: topic, workerIsFree: stream != nil)
                )
            }
            do throws(Refusal) {
                let answer = try self.engine.accept(push, device: device, workerIsFree: stream != nil)
                if let wake = answer.wake { self.launched(wake, device, for: stream) }
                self.flow()
                return .answered(answer)
            } catch {
                return .refused(error)
            }
        }
    }
}

// MARK: - Streams

extension Dispatcher {
    /// A worker subscribed.
    ///
    /// - Returns: the bound that was met, and the stream is then none; nil when it is one.
    package func subscribed(
        _ address: StreamAddress,
        topic name: ByteView,
        _ request: SubscriptionRequest
    ) -> EngineLimit? {
        if let limit = self.limitMet(topic: name, request) { return limit }
        self.streamEnded(address)
        let topic = self.engine.topic(name)
        self.freed.append(self.streams.insert(address, topic, request))
        self.flow()
        return nil
    }

    /// The bound that a subscription would go beyond; nil when there is room for it.
    package func limitMet(topic name: ByteView, _ request: SubscriptionRequest) -> EngineLimit? {
        guard self.engine.mayAddTopic(name) else { return .topicsMax }
        let streamsMax = self.engine.streamsPerDeviceMax
        guard streamsMax > 0, let topic = self.engine.findTopic(name) else { return nil }
        let isFull = request.devices.contains { self.streams.countNaming($0, topic) >= streamsMax }
        return isFull ? .streamsPerDeviceMax : nil
    }

    /// A worker's stream ended: the wakes it holds are lost.
    package func streamEnded(_ address: StreamAddress) {
        guard let subscription = self.streams[address] else { return }
        self.streams.remove(subscription)
        self.ended.append(subscription)
        self.flow()
    }

    /// The worker on a stream stops: the stream gets no new wake, and ends once it holds none.
    ///
    /// - `isAdmitted`: whether the caller reaches the stream's topic.
    /// - Returns: false when there is no such stream.
    package func streamDraining(_ address: StreamAddress, isAdmitted: (TopicIndex) -> Bool) -> Bool {
        guard let subscription = self.streams[address], isAdmitted(subscription.topic) else { return false }
        self.streams.drain(subscription)
        self.endIfDrained(subscription)
        return true
    }

    /// The worker's peer reads too slowly, or reads again.
    package func streamPaused(_ address: StreamAddress, _ isPaused: Bool) {
        guard let subscription = self.streams[address] else { return }
        self.streams.pause(subscription, isPaused)
        if !isPaused { self.freed.append(subscription) }
        self.flow()
    }

    /// A stream may hold more or fewer wakes from now on; it keeps those it has.
    package func slotsChanged(_ address: StreamAddress, to slots: Int) {
        guard let subscription = self.streams[address] else { return }
        self.streams.resize(subscription, to: slots)
        self.freed.append(subscription)
        self.flow()
    }

    /// Every stream may hold so many bytes of payloads from now on; it keeps those it has.
    package func wakeBytesPerStreamChanged(to bytesMax: Int) {
        self.streams.resizeAll(wakeBytesMax: bytesMax)
    }

    /// A wake that a stream holds was lost, while the stream goes on.
    ///
    /// - `takingBackAttempt`: its worker never got it, so that its attempt does not count.
    package func lose(_ wake: WakeID, on address: StreamAddress, takingBackAttempt: Bool) {
        guard let subscription = self.streams[address], subscription.holds(wake) else { return }
        self.engine.lose(wake, takingBackAttempt: takingBackAttempt)
        // Its deadline may have passed unseen until now: then it expired first, and was not lost.
        self.takeExpiredWakes()
        if self.release(wake, subscription) { self.slotFreed(subscription) }
        self.flow()
    }

    /// A worker reported the result of a wake.
    package func report(_ result: FetchResult, wake: WakeID) -> ReportOutcome {
        let outcome = self.engine.report(result, wake: wake)
        // Its deadline may have passed unseen until now: then it expired first, and this is a late answer.
        self.takeExpiredWakes()
        if let subscription = self.streams.holder(of: wake) {
            // Whatever the report came to, the wake has ended: here, or elsewhere before.
            _ = self.release(wake, subscription)
            self.streams.answered(subscription)
            self.slotFreed(subscription)
        }
        self.flow()
        return outcome
    }

    /// A worker asked for more time, in milliseconds from now.
    package func extend(_ wake: WakeID, by milliseconds: Int64) -> ExtensionOutcome {
        let outcome = self.engine.extend(wake, by: milliseconds)
        self.flow()
        switch outcome {
        case .lasts, .limitReached: break
        case .ended, .unknown:
            // A stream that holds it still was not told: the wake has ended elsewhere.
            guard let subscription = self.streams.holder(of: wake), self.release(wake, subscription) else { break }
            self.slotFreed(subscription)
            self.flow()
        }
        return outcome
    }

    /// Nothing new is launched from now on; results are still taken.
    package func drain() {
        self.isDraining = true
    }
}

// MARK: - Devices

extension Dispatcher {
    /// The engine's answer to a registration.
    package func register(_ token: borrowing DeviceToken, topic: ByteView) -> Admission {
        if let device = self.engine.find(token) { self.catchUp(device) }
        return self.engine.register(token, topic: topic)
    }

    package func unregister(_ device: DeviceIndex) {
        self.catchUp(device)
        self.engine.unregister(device)
        self.flow()
    }

    /// - Returns: all the device's conditions now.
    package func conditions(_ report: ConditionsReport, _ device: DeviceIndex) -> Conditions {
        self.catchUp(device)
        let conditions = self.engine.conditions(report, device)
        self.flow()
        return conditions
    }

    /// What an operator's wish for a launch came to.
    package enum SimulatedLaunch: Hashable, Sendable {
        case launched, wakeInFlight, noWorker
    }

    /// Launches what is pending, or an empty wake, whatever holds it.
    package func simulateLaunch(_ device: DeviceIndex) -> SimulatedLaunch {
        self.catchUp(device)
        let identity = self.engine.identity(device)
        guard self.engine.snapshot(device).wake == nil else { return .wakeInFlight }
        self.takeExpiredWakes()
        guard let stream = self.freeStream(identity.topic, identity.token) else {
            self.flow()
            return .noWorker
        }
        defer { self.flow() }
        switch self.engine.launchForced(device) {
        case .launched(let wake):
            return self.launched(wake, device, for: stream) ? .launched : .noWorker
        case .wakeInFlight: return .wakeInFlight
        }
    }

    /// Ends the wake in flight as expired.
    ///
    /// - Returns: false when none is in flight.
    package func simulateExpiration(_ device: DeviceIndex) -> Bool {
        self.catchUp(device)
        defer { self.flow() }
        guard let wake = self.engine.expireForced(device) else { return false }
        self.wakeExpired(wake)
        return true
    }
}

// MARK: - Questions

extension Dispatcher {
    /// Workers of one topic, or of all.
    package struct WorkerCounts: Hashable, Sendable {
        package var connected = 0
        package var slots = 0
        package var busy = 0

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
        Array(self.streams.all).most(countMax) { $0.wakes.count }.map { StreamSnapshot($0) }
    }

    /// How often a stream got no more wakes because of the bytes it held.
    package var timesStreamWasFull: Int64 { self.streams.timesFull }

    /// Everything that is known of a device, once what is due of it is done.
    package func snapshot(_ device: DeviceIndex) -> DeviceSnapshot {
        self.catchUp(device)
        return self.engine.snapshot(device)
    }

    /// How many streams are open.
    package var streamCount: Int { self.streams.count }
}

// MARK: - Steps

extension Dispatcher {
    /// Does what is due of a device before something happens to it, its launch too, though a bounded step may not have
    /// come to it yet: at one moment a launch goes before what comes from outside.
    private func catchUp(_ device: DeviceIndex) {
        if !self.ended.isEmpty, let wake = self.engine.wakeInFlight(device), self.streams.isHolderGone(wake) {
            self.streams.forget(wake)
            self.engine.lose(wake)
        }
        if self.engine.catchUp(device) { self.flow() }
        // A step that has done all it may leaves the device in its queue, and what is about to happen would go first.
        guard self.workLeft <= 0 else { return }
        let identity = self.engine.identity(device)
        guard let stream = self.freeStream(identity.topic, identity.token), let wake = self.engine.claim(device) else {
            return
        }
        self.hand(wake, to: stream)
    }

    /// Takes back slots and gives them out until nothing more happens.
    private func flow() {
        if !self.ended.isEmpty { self.loseWakes() }
        while true {
            self.takeExpiredWakes()
            guard self.workLeft > 0 else { return }
            if let device = self.engine.popNewlyReady() {
                self.offer(device)
            } else if let subscription = self.freed.first {
                guard self.fill(subscription) else { return }
                _ = self.freed.popFirst()
            } else {
                return
            }
        }
    }

    /// Loses the wakes of streams that have ended.
    private func loseWakes() {
        while self.workLeft > 0, let wake = self.ended.popWake() {
            self.workLeft -= 1
            self.streams.forget(wake)
            self.engine.lose(wake)
        }
    }

    private func takeExpiredWakes() {
        while let wake = self.engine.popExpiredWake() { self.wakeExpired(wake) }
    }

    private func wakeExpired(_ wake: WakeID) {
        guard let subscription = self.streams.holder(of: wake) else { return }
        self.output.expire(wake, on: subscription.address)
        _ = self.release(wake, subscription)
        if subscription.request.stallsWhenSilent { self.streams.expired(wake, subscription) }
        self.slotFreed(subscription)
    }

    /// A stream no longer holds a wake, and is told so.
    ///
    /// - Returns: false when it did not hold it.
    private func release(_ wake: WakeID, _ subscription: Subscription) -> Bool {
        guard self.streams.release(wake, subscription) else { return false }
        self.output.released(wake, on: subscription.address)
        return true
    }

    /// A stream may take another wake, or has none left and may end.
    private func slotFreed(_ subscription: Subscription) {
        self.freed.append(subscription)
        self.endIfDrained(subscription)
    }

    private func endIfDrained(_ subscription: Subscription) {
        guard subscription.isDraining, subscription.wakes.isEmpty, !subscription.hasEnded else { return }
        self.streams.remove(subscription)
        self.output.drained(subscription.address)
    }
}

// MARK: - Pairing

extension Dispatcher {
    /// The stream that a wake of this device goes to; nil when none is free, or nothing is launched any more.
    private func freeStream(_ topic: TopicIndex, _ token: borrowing DeviceToken) -> Subscription? {
        self.isDraining ? nil : self.streams.free(topic, token)
    }

    /// Launches a device that came to wait, if a stream can take it; its topic's longest waiting one otherwise.
    private func offer(_ device: DeviceIndex) {
        let identity = self.engine.identity(device)
        guard let stream = self.freeStream(identity.topic, identity.token) else { return }
        if stream.request.devices.isEmpty {
            self.claimNext(identity.topic, for: stream)
        } else if let wake = self.engine.claim(device) {
            self.workLeft -= 1
            self.hand(wake, to: stream)
        }
    }

    /// Launches a topic's longest waiting device on the stream whose turn it is, unless a free one names the device.
    ///
    /// - Returns: false when no device waits.
    @discardableResult
    private func claimNext(_ topic: TopicIndex, for stream: Subscription) -> Bool {
        guard let wake = self.engine.claim(topic) else { return false }
        self.workLeft -= 1
        self.hand(wake, to: self.streams.naming(topic, wake.token) ?? stream)
        return true
    }

    /// Gives a stream the devices that have waited for it.
    ///
    /// - Returns: false when there are more than may be launched now.
    private func fill(_ subscription: Subscription) -> Bool {
        guard !self.isDraining else { return true }
        guard subscription.request.devices.isEmpty else {
            for _ in subscription.request.devices where subscription.isFreeForPush {
                guard let device = self.engine.find(subscription.nextDevice()),
                    self.engine.topic(of: device) == subscription.topic, let wake = self.engine.claim(device)
                else { continue }
                self.workLeft -= 1
                self.hand(wake, to: subscription)
            }
            return true
        }
        self.streams.rotate(subscription)
        while let stream = self.streams.nextInRotation(subscription.topic) {
            guard self.workLeft > 0 else { return false }
            guard self.claimNext(subscription.topic, for: stream) else { return true }
        }
        return true
    }

    /// A verb has launched a wake of this device, as `stream` was free for one.
    ///
    /// - Returns: whether the stream got it.
    @discardableResult
    private func launched(_ id: WakeID, _ device: DeviceIndex, for stream: Subscription?) -> Bool {
        // A wake that is no longer in flight has ended elsewhere: nobody is to hear of it.
        guard let wake = self.engine.launchedWake(device), wake.id == id else { return false }
        guard let stream, stream.isFree else {
            // No worker ever gets it.
            self.engine.lose(id, takingBackAttempt: true)
            return false
        }
        self.hand(wake, to: stream)
        return true
    }

    private func hand(_ wake: borrowing LaunchedWake, to subscription: Subscription) {
        precondition(subscription.request.kinds.contains(wake.kind), "a stream is sent what it asked for")
        let bytes = wake.content?.payload.count ?? 0
        self.streams.give(wake.id, bytes: bytes, to: subscription, at: self.engine.now)
        self.output.deliver(wake, to: subscription.address)
    }
}
