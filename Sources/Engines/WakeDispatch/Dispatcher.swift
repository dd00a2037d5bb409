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
    private var subscriptions: [StreamAddress: Subscription] = [:]
    /// By topic number.
    private var workers: [TopicWorkers] = []
    /// Who holds which wake, and who let which one expire.
    private var holders = WakeTable<Subscription>()
    /// Streams that may have a free slot again; those before `firstFreed` have been looked at.
    private var freed: [Subscription] = []
    private var firstFreed = 0
    /// Streams that ended with wakes that are to be lost; those before `firstEnding` have been.
    private var ending: [Subscription] = []
    private var firstEnding = 0
    /// The wakes of the stream that is before `firstEnding`, the next one last.
    private var losing: [WakeID] = []
    /// The most wakes that are launched from queues, or lost with their streams, between two calls of `advance`.
    private let workPerStepMax: Int
    /// How many of them are left.
    private var workLeft: Int
    /// The gateway is shutting down: nothing new is launched.
    private var isDraining = false
    private let bounds: StreamBounds
    /// How often a stream got no more wakes because of it.
    package private(set) var timesStreamWasFull: Int64 = 0

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
        self.bounds = StreamBounds(wakeBytesMax: wakeBytesPerStreamMax)
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
        self.isLosing
            || (!self.isDraining && (self.firstFreed < self.freed.count || self.engine.hasNewlyReady))
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
            if let topic { isFree = self.isWorkerFree(topic, token) }
            return .answered(self.engine.acceptDryRun(push, device: nil, topic: topic, workerIsFree: isFree))
        case .device(let device):
            self.catchUp(device)
            let topic = self.engine.identity(device).topic
            let isFree = self.isWorkerFree(topic, token)
            guard !isDryRun else {
                if let refusal = self.engine.memoryRefusal(push, device, topic) ?? self.engine.rateRefusal(device) {
                    return .refused(refusal)
                }
                return .answered(self.engine.acceptDryRun(push, device: device, topic: topic, workerIsFree: isFree))
            }
            do throws(Refusal) {
                let answer = try self.engine.accept(push, device: device, workerIsFree: isFree)
                if let wake = answer.wake, let stream = self.freeStream(topic, token) { self.hand(wake, to: stream) }
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
        while self.workers.count <= Int(topic.rawValue) { self.workers.append(TopicWorkers()) }
        let subscription = Subscription(
            address: address,
            topic: topic,
            request: request,
            bounds: self.bounds
        )
        self.subscriptions[address] = subscription
        self.workers[Int(topic.rawValue)].insert(subscription)
        self.freed.append(subscription)
        self.flow()
        return nil
    }

    /// The bound that a subscription would go beyond; nil when there is room for it.
    package func limitMet(topic name: ByteView, _ request: SubscriptionRequest) -> EngineLimit? {
        guard self.engine.mayAddTopic(name) else { return .topicsMax }
        let streamsMax = self.engine.streamsPerDeviceMax
        guard streamsMax > 0, let topic = self.engine.findTopic(name),
            Int(topic.rawValue) < self.workers.count
        else { return nil }
        let isFull = request.devices.contains { self.workers[Int(topic.rawValue)].countNaming($0) >= streamsMax }
        return isFull ? .streamsPerDeviceMax : nil
    }

    /// A worker's stream ended: the wakes it holds are lost.
    package func streamEnded(_ address: StreamAddress) {
        guard let subscription = self.subscriptions[address] else { return }
        self.forget(subscription)
        if !subscription.wakes.isEmpty { self.ending.append(subscription) }
        self.flow()
    }

    /// The worker on a stream stops: the stream gets no new wake, and ends once it holds none.
    ///
    /// - `isAdmitted`: whether the caller reaches the stream's topic.
    /// - Returns: false when there is no such stream.
    package func streamDraining(_ address: StreamAddress, isAdmitted: (TopicIndex) -> Bool) -> Bool {
        guard let subscription = self.subscriptions[address], isAdmitted(subscription.topic) else { return false }
        subscription.isDraining = true
        self.changed(subscription)
        self.endIfDrained(subscription)
        return true
    }

    /// The worker's peer reads too slowly, or reads again.
    package func streamPaused(_ address: StreamAddress, _ isPaused: Bool) {
        guard let subscription = self.subscriptions[address] else { return }
        subscription.isPaused = isPaused
        self.changed(subscription)
        if !isPaused { self.freed.append(subscription) }
        self.flow()
    }

    /// A stream may hold more or fewer wakes from now on; it keeps those it has.
    package func slotsChanged(_ address: StreamAddress, to slots: Int) {
        guard let subscription = self.subscriptions[address] else { return }
        self.workers[Int(subscription.topic.rawValue)].slots += slots - subscription.slots
        subscription.slots = slots
        self.changed(subscription)
        self.freed.append(subscription)
        self.flow()
    }

    /// Every stream may hold so many bytes of payloads from now on; it keeps those it has.
    package func wakeBytesPerStreamChanged(to bytesMax: Int) {
        // A stream that was full gets its next wake when one of its wakes ends, as it would have.
        self.bounds.wakeBytesMax = bytesMax
    }

    /// A wake that a stream holds was lost, while the stream goes on.
    ///
    /// - `takingBackAttempt`: its worker never got it, so that its attempt does not count.
    package func lose(_ wake: WakeID, on address: StreamAddress, takingBackAttempt: Bool) {
        guard let subscription = self.subscriptions[address], subscription.wakes[wake] != nil else { return }
        self.engine.lose(wake, takingBackAttempt: takingBackAttempt)
        // Its deadline may have passed unseen until now: then it expired first, and was not lost.
        self.takeExpiredWakes()
        if subscription.wakes[wake] != nil {
            self.release(wake, subscription)
            self.freed.append(subscription)
            self.endIfDrained(subscription)
        }
        self.flow()
    }

    /// A worker reported the result of a wake.
    package func report(_ result: FetchResult, wake: WakeID) -> ReportOutcome {
        let outcome = self.engine.report(result, wake: wake)
        // Its deadline may have passed unseen until now: then it expired first, and this is a late answer.
        self.takeExpiredWakes()
        if let subscription = self.holder(of: wake) {
            if case .ended = outcome { self.release(wake, subscription) }
            for expired in subscription.expiredInARow where expired != wake { self.holders[expired] = nil }
            if subscription.expiredInARow.contains(wake) { self.holders[wake] = nil }
            subscription.expiredInARow.removeAll()
            self.changed(subscription)
            self.freed.append(subscription)
            self.endIfDrained(subscription)
        }
        self.flow()
        return outcome
    }

    /// A worker asked for more time, in milliseconds from now.
    package func extend(_ wake: WakeID, by milliseconds: Int64) -> ExtensionOutcome {
        defer { self.flow() }
        return self.engine.extend(wake, by: milliseconds)
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
        guard !self.isDraining, let stream = self.freeStream(identity.topic, identity.token) else {
            self.flow()
            return .noWorker
        }
        defer { self.flow() }
        switch self.engine.launchForced(device) {
        case .launched(let wake):
            self.hand(wake, to: stream)
            return .launched
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
    package func workerCounts(_ topic: TopicIndex?) -> WorkerCounts {
        let places = topic.map { Int($0.rawValue)..<Int($0.rawValue) + 1 } ?? self.workers.indices
        return self.workers[places.clamped(to: self.workers.indices)].reduce(into: WorkerCounts()) {
            $0.connected += $1.connected
            $0.slots += $1.slots
            $0.busy += $1.busy
        }
    }

    /// The open streams and how each is: those that hold the most wakes, when there are more than `countMax`.
    package func streams(countMax: Int) -> [StreamSnapshot] {
        var listed: [(busy: Int, stream: Subscription)] = []
        for stream in self.subscriptions.values { listed.append((stream.wakes.count, stream)) }
        return listed.most(countMax) { $0.busy }.map { StreamSnapshot($0.stream) }
    }

    /// Everything that is known of a device, once what is due of it is done.
    package func snapshot(_ device: DeviceIndex) -> DeviceSnapshot {
        self.catchUp(device)
        return self.engine.snapshot(device)
    }

    /// How many streams are open.
    package var streamCount: Int { self.subscriptions.count }
}

// MARK: - Steps

extension Dispatcher {
    /// Does what is due of a device before something happens to it, its launch too, though a bounded step may not have
    /// come to it yet: at one moment a launch goes before what comes from outside.
    private func catchUp(_ device: DeviceIndex) {
        if self.isLosing, let wake = self.engine.wakeInFlight(device), self.holders[wake]?.hasEnded == true {
            self.holders[wake] = nil
            self.engine.lose(wake)
        }
        if self.engine.catchUp(device) { self.flow() }
        // A step that has done all it may leaves the device in its queue, and what is about to happen would go first.
        guard self.workLeft <= 0, !self.isDraining else { return }
        let identity = self.engine.identity(device)
        guard let stream = self.freeStream(identity.topic, identity.token), let wake = self.engine.claim(device)?.id else {
            return
        }
        self.hand(wake, to: stream)
    }

    /// Wakes of streams that have ended are still to be lost.
    private var isLosing: Bool { !self.losing.isEmpty || self.firstEnding < self.ending.count }

    /// Takes back slots and gives them out until nothing more happens.
    private func flow() {
        if !self.ending.isEmpty { self.loseWakes() }
        while true {
            self.takeExpiredWakes()
            guard self.workLeft > 0 else { return }
            if let device = self.engine.popNewlyReady() {
                self.offer(device)
            } else if self.firstFreed < self.freed.count {
                guard self.fill(self.freed[self.firstFreed]) else { return }
                self.firstFreed += 1
            } else {
                // Even of an empty array it would make another one.
                if !self.freed.isEmpty { self.freed.removeAll(keepingCapacity: true) }
                self.firstFreed = 0
                return
            }
        }
    }

    /// Loses the wakes of streams that have ended.
    private func loseWakes() {
        while self.workLeft > 0 {
            if let wake = self.losing.popLast() {
                self.workLeft -= 1
                self.holders[wake] = nil
                self.engine.lose(wake)
            } else if self.firstEnding < self.ending.count {
                // In an order that does not hang on the process: a simulation replays the same from the same seed.
                self.losing = self.ending[self.firstEnding].wakes.keys.sorted {
                    ($0.first, $0.second) > ($1.first, $1.second)
                }
                self.firstEnding += 1
            } else {
                self.ending.removeAll(keepingCapacity: true)
                self.firstEnding = 0
                return
            }
        }
    }

    /// The open stream that holds a wake, or let it expire.
    private func holder(of wake: WakeID) -> Subscription? {
        guard let subscription = self.holders[wake], !subscription.hasEnded else { return nil }
        return subscription
    }

    private func takeExpiredWakes() {
        while let wake = self.engine.popExpiredWake() { self.wakeExpired(wake) }
    }

    private func wakeExpired(_ wake: WakeID) {
        guard let subscription = self.holder(of: wake) else { return }
        self.output.expire(wake, on: subscription.address)
        self.release(wake, subscription)
        if subscription.request.stallsWhenSilent {
            subscription.expiredInARow.append(wake)
            self.holders[wake] = subscription
            self.changed(subscription)
        }
        self.freed.append(subscription)
        self.endIfDrained(subscription)
    }

    private func endIfDrained(_ subscription: Subscription) {
        guard subscription.isDraining, subscription.wakes.isEmpty, !subscription.hasEnded else { return }
        self.forget(subscription)
        self.output.drained(subscription.address)
    }

    /// Takes a stream out; what becomes of its wakes is the caller's business.
    private func forget(_ subscription: Subscription) {
        self.subscriptions[subscription.address] = nil
        subscription.hasEnded = true
        self.workers[Int(subscription.topic.rawValue)].remove(subscription)
        self.workers[Int(subscription.topic.rawValue)].busy -= subscription.wakes.count
        for wake in subscription.expiredInARow { self.holders[wake] = nil }
    }

    private func release(_ wake: WakeID, _ subscription: Subscription) {
        self.holders[wake] = nil
        subscription.remove(wake)
        self.changed(subscription)
        self.workers[Int(subscription.topic.rawValue)].busy -= 1
        self.output.released(wake, on: subscription.address)
    }

    /// Launches a device that came to wait, if a stream can take it; its topic's longest waiting one otherwise.
    private func offer(_ device: DeviceIndex) {
        guard !self.isDraining else { return }
        let identity = self.engine.identity(device)
        guard let stream = self.freeStream(identity.topic, identity.token) else { return }
        if stream.request.devices.isEmpty {
            self.claimNext(identity.topic, for: stream)
        } else if let wake = self.engine.claim(device)?.id {
            self.workLeft -= 1
            self.hand(wake, to: stream)
        }
    }

    /// Launches a topic's longest waiting device on the stream whose turn it is, unless a free one names the device.
    ///
    /// - Returns: false when no device waits.
    @discardableResult
    private func claimNext(_ topic: TopicIndex, for stream: Subscription) -> Bool {
        guard let wake = self.engine.claim(topic)?.id else { return false }
        self.workLeft -= 1
        guard let token = self.engine.wake(wake)?.token else {
            preconditionFailure("a wake just launched is in flight")
        }
        self.hand(wake, to: self.workers[Int(topic.rawValue)].naming(token) ?? stream)
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
                    self.engine.identity(device).topic == subscription.topic,
                    let wake = self.engine.claim(device)?.id
                else { continue }
                self.workLeft -= 1
                self.hand(wake, to: subscription)
            }
            return true
        }
        self.workers[Int(subscription.topic.rawValue)].rotate(subscription)
        while let stream = self.workers[Int(subscription.topic.rawValue)].nextInRotation() {
            guard self.workLeft > 0 else { return false }
            guard self.claimNext(subscription.topic, for: stream) else { return true }
        }
        return true
    }

    private func hand(_ wake: WakeID, to subscription: Subscription) {
        let place = Int(subscription.topic.rawValue)
        guard let launched = self.engine.wake(wake) else { preconditionFailure("a wake just launched is in flight") }
        precondition(subscription.request.kinds.contains(launched.kind), "a stream is sent what it asked for")
        subscription.add(wake, bytes: launched.content?.payload.count ?? 0, at: self.engine.now)
        if subscription.isFull { self.timesStreamWasFull += 1 }
        self.holders[wake] = subscription
        self.workers[place].busy += 1
        self.workers[place].turnEnded(subscription)
        self.changed(subscription)
        self.output.deliver(launched, to: subscription.address)
    }

    /// A stream holds more or fewer wakes, or can take one that could not, or no more.
    private func changed(_ subscription: Subscription) {
        guard !subscription.request.devices.isEmpty else { return }
        self.workers[Int(subscription.topic.rawValue)].changed(subscription)
    }

    private func isWorkerFree(_ topic: TopicIndex, _ token: borrowing DeviceToken) -> Bool {
        guard !self.isDraining else { return false }
        return self.freeStream(topic, token) != nil
    }

    private func freeStream(_ topic: TopicIndex, _ token: borrowing DeviceToken) -> Subscription? {
        let place = Int(topic.rawValue)
        guard place < self.workers.count, self.workers[place].connected > 0 else { return nil }
        if let naming = self.workers[place].naming(token) { return naming }
        return self.workers[place].nextInRotation()
    }
}
