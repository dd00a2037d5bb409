import Engine
import Wire

/// Commands from the loops.
extension ClusterEngine: StoredEngine {
    /// Queues the commands of a batch and empties it.
    func enqueue(_ batch: CommandBatch) {
        let arrivals = batch.arrivals
        var arrival = 0
        var left = arrivals.first?.count ?? 0
        batch.forEach(
            push: { push, stream in
                while left == 0, arrival + 1 < arrivals.count {
                    arrival += 1
                    left = arrivals[arrival].count
                }
                left = max(0, left - 1)
                self.take(push, from: stream, leftAt: arrivals.isEmpty ? 0 : arrivals[arrival].at)
            },
            command: { self.take($0, self.workspace) }
        )
        batch.removeAll()
    }

    private func take(_ push: Push, from stream: StreamAddress, leftAt: Int64) {
        guard self.isAttached, !self.isSilent, self.queue.count < CommandQueue.pushesMax else {
            return self.stage.answer(self.pushes.refuseUnstored(push, from: stream, self.workspace))
        }
        self.queue.append(.push(KeptPush(push, from: stream)), .device(push.token), leftAt: leftAt)
    }

    func take(_ request: EngineRequest, _ workspace: Workspace) {
        guard self.isAttached else { return self.requests.performAfterFailure(request, workspace) }
        if self.isSilent, request.afterFailedStore == .refused {
            return self.requests.performAfterFailure(request, self.workspace(failed: Self.silence))
        }
        switch request.work.rows {
        case .nothing: self.requests.perform(request, self.trouble.map(self.workspace(failed:)) ?? workspace)
        case .topic(let name): self.subscribe(request, name)
        case .pause(let topic, let isPaused): self.pause(request, topic, isPaused)
        case .row(let row):
            guard self.queue.count < 2 * CommandQueue.pushesMax else { return self.refuse(request) }
            self.queue.append(.request(request), self.row(row))
        case .reading(let device):
            guard self.deviceQuestionCount < CommandQueue.pushesMax else { return self.refuse(request) }
            let last = self.queue.last(of: .device(device))
            self.deviceQuestions.append(ClusterQuestion(request: request, wait: self.wait(behind: last, isOfRow: true)))
        case .counts:
            let counted = self.countedQuestions?.count ?? 0
            guard self.countQuestions.count + counted < CommandQueue.pushesMax else { return self.refuse(request) }
            self.countQuestions.append(ClusterQuestion(request: request, wait: self.wait(behind: self.queue.last)))
        case .list(let subject):
            guard self.listings.count + (self.isListing ? 1 : 0) < DeviceListing.countMax else {
                return self.stage.answer(request.reply, .refused(.tooManyLists(limit: DeviceListing.countMax)))
            }
            self.listings.append(DeviceListing(request, subject, self.wait(behind: self.queue.last)))
        }
    }

    func rejected(_ reason: Int, _ topic: [UInt8], _: Workspace) {
        self.rejected.append(RejectedPush(reason: reason, topic: topic, behind: self.queue.last))
        if self.rejected.count >= CommandQueue.pushesMax { self.countRejected(all: true) }
    }

    func hasFreeSlots() { self.claims.recheckAll() }

    func lose(_ wake: WakeID, on stream: StreamAddress, takingBackAttempt: Bool) {
        self.lose(wake, .loseOn(stream, wake, takingBackAttempt: takingBackAttempt))
    }

    func requireWorkerAuthentication() {
        self.records.requireWorkerAuthentication()
        self.storeValue(SharedValues.workerAuthentication, SharedValues.written(moment: self.records.countingSince))
    }

    /// Refuses requests that can be repeated later.
    func refuse(_ requests: [EngineRequest], _ error: StoreError) {
        for request in requests { self.stage.answer(request.reply, .refused(.storeUnavailable(error))) }
    }

    /// Refuses a request because too many requests are pending.
    private func refuse(_ request: EngineRequest) {
        self.refuse([request], StoreError(message: "More requests wait for the database than the gateway keeps."))
    }

    /// Returns the row that a command needs. For a wake on a stream of this gateway, returns the row of its device.
    private func row(_ row: RequestedRow) -> RequestedRow {
        guard case .wake(let wake) = row, let device = self.held.device(of: wake) else { return row }
        return .device(device)
    }

    /// Queues the work that records a lost wake.
    func lose(_ wake: WakeID, _ work: QueuedCommand.Work? = nil) {
        // A new attachment records all earlier wakes as lost anyway.
        guard self.isAttached || !self.open.isEmpty else { return }
        self.queue.append(work ?? .lose(wake), self.row(.wake(wake)))
    }

    /// Returns the wait of a request that arrives now.
    func wait(behind number: UInt64, isOfRow: Bool = false) -> CommandWait {
        CommandWait(behind: number, isOfRow: isOfRow, until: self.clock.boot + CommandWait.milliseconds)
    }

    /// The number of unanswered requests for single devices.
    private var deviceQuestionCount: Int {
        var count = self.deviceQuestions.count
        func add(_ transaction: ClusterTransaction) {
            if case .devices(let questions) = transaction.purpose { count += questions.count }
        }
        self.open.values.forEach(add)
        self.waitingForTopics.forEach(add)
        return count
    }

    /// Counts pushes that the loops refused. First waits for all earlier commands, which may create the pushes' topics.
    func countRejected(all: Bool = false) {
        guard let last = self.rejected.last else { return }
        let waiting =
            all || self.queue.hasEnded(upTo: last.behind)
            ? [] : self.rejected.filter { !self.queue.hasEnded(upTo: $0.behind) }
        for push in self.rejected.dropLast(waiting.count) {
            push.topic.withByteView { self.pushes.countRejected(push.reason, $0, self.workspace) }
        }
        self.rejected = waiting
    }

    // MARK: Locked rows

    /// Refuses commands that have waited too long for rows locked by other sessions.
    ///
    /// - Parameter timeout: milliseconds.
    func refuseOverdue(after timeout: Int64 = DeviceLocks.timeout) {
        guard !self.queue.locked.isEmpty else { return }
        let boot = self.clock.boot
        let overdue = self.queue.takeOverdue(before: boot - timeout, at: boot)
        guard !overdue.isEmpty else { return }
        self.refuse(overdue.filter { !$0.isOfOperator }.map(\.command), .lockedDevice)
        for command in overdue where command.isOfOperator {
            self.refuse([command.command], .lockedDevice(by: command.holder))
        }
    }

    // MARK: Streams

    /// Begins a stream immediately, and then claims waiting devices for it.
    func subscribe(_ request: EngineRequest, _ name: [UInt8]) {
        if let topic = name.withByteView({ self.engine.findTopic($0) }) {
            self.end(request.reply)
            self.requests.perform(request, self.workspace)
            self.claims.noticed(topic)
        } else if self.engine.topicCount < self.configuration.topicsMax, !self.room.isDraining {
            self.subscriptions.append(request)
            self.store.submit(.addTopics([name.withByteView { $0.string }]))
        } else {
            self.requests.perform(request, self.workspace)
        }
    }

    func streamEnded(_ stream: StreamAddress) {
        // Every request must be answered, even after the client has closed the stream.
        for request in self.subscriptions where request.reply == stream {
            self.stage.answer(stream, .refused(.unknownStream))
        }
        self.subscriptions.removeAll { $0.reply == stream }
        self.end(stream)
    }

    private func end(_ stream: StreamAddress) {
        for wake in self.dispatcher.removeStream(stream) { self.lose(wake) }
    }

    // MARK: Configuration

    func configured(isPolicyChanged: Bool) {
        self.members.configured(self.configuration)
        self.beginPolicies()
        guard isPolicyChanged else { return }
        self.held.policyChanged(at: self.clock.now)
        // Uncommitted transactions have set times according to the previous policy. Read their wakes again now.
        for transaction in self.open.values where transaction.step.isPerformed {
            let wakes = transaction.step.launched.map(\.wake) + transaction.step.looks.map(\.wake)
            transaction.step.looks = wakes.map { ($0, self.clock.now) }
        }
    }

    /// Activates the policies of the configuration, and shares them with all gateways.
    func beginPolicies() {
        let before = self.records.policies
        self.records.begin(self.configuration, at: self.clock.now)
        guard self.records.policies != before else { return }
        self.sweep.start()
        self.storeValue(SharedValues.policies, SharedValues.written(self.records.policies))
    }

    /// Stores a value that all gateways share. If that is impossible now, the next attachment stores it.
    func storeValue(_ name: String, _ content: [UInt8]) {
        self.unstoredValues[name] = nil
        if self.isAttached { self.store.submit(.storeValue(name: name, content)) }
    }
}

/// The paused topics. They are shared values. A caller is answered when this gateway receives the change, which the
/// store sends to every gateway.
extension ClusterEngine {
    /// Pauses or resumes a topic. The caller is answered when the change is durable.
    func pause(_ request: EngineRequest, _ name: [UInt8], _ isPaused: Bool) {
        let topic = name.withByteView { $0.string }
        let isKnown = name.withByteView { self.engine.findTopic($0) } != nil
        guard isKnown, request.caller.reaches(topic) else {
            return self.requests.perform(request, self.workspace)
        }
        guard self.pauses.count < CommandQueue.pushesMax else { return self.refuse(request) }
        self.pauses.append(request)
        self.storeValue(SharedValues.pause(topic), SharedValues.written(isPaused: isPaused))
    }

    /// Applies a change of a topic's pause, made by any gateway, and answers the callers here who requested it.
    func pauseStored(_ topic: String, _ isPaused: Bool) {
        self.storedPauses[topic] = isPaused
        self.apply(topic, isPaused)
        let answered = self.pauses.filter { $0.requestedPause == (topic, isPaused) }
        self.pauses.removeAll { $0.requestedPause == (topic, isPaused) }
        for request in answered { self.requests.perform(request, self.workspace) }
    }

    /// Refuses the callers who wait for a topic to be paused or resumed, because this cannot be stored. Nil means every
    /// topic.
    func refusePauses(_ error: StoreError, of topic: String? = nil) {
        self.refuse(self.pauses.filter { topic == nil || $0.requestedPause.topic == topic }, error)
        self.pauses.removeAll { topic == nil || $0.requestedPause.topic == topic }
    }

    /// Applies a stored pause to its topic if it is known.
    func apply(_ name: String, _ isPaused: Bool) {
        guard let topic = name.withByteView({ self.engine.findTopic($0) }),
            self.dispatcher.setPaused(topic, isPaused), !isPaused
        else { return }
        // Claim the devices that waited during the pause.
        self.claims.noticed(topic)
    }
}

extension EngineRequest {
    /// The topic that the request pauses or resumes; empty for any other request.
    fileprivate var requestedPause: (topic: String, isPaused: Bool) {
        guard case .pause(let topic, let isPaused) = self.work.rows else { return ("", false) }
        return (topic.withByteView { $0.string }, isPaused)
    }
}

/// A push that was refused by a loop.
struct RejectedPush {
    /// The number of the reason.
    let reason: Int
    let topic: [UInt8]
    /// The number of the last command before the push.
    let behind: UInt64
}
