import Engine
import Policy
import WakeGateTestKit
import Wire

/// The observed ends and conditions of wakes of all kinds.
extension DispatchSimulation {
    /// Records a wake that its worker's report ended.
    func ended(_ delivery: Delivery, reportedAs report: WakeReport) {
        switch report {
        case .push(.newData): self.ended(delivery, .newData)
        case .push(.noData): self.ended(delivery, .noData)
        case .push(.failed): self.ended(delivery, .failed)
        case .task(.success): self.taskEnded(delivery, .success)
        case .task(.failure): self.taskEnded(delivery, .failure)
        }
    }

    /// Records a wake that ended without its worker.
    func ended(_ delivery: Delivery, because reason: ExpirationReason) {
        guard delivery.kind != .push else {
            if reason != .deadline, reason != .operator { self.fail("a push expired because of \(reason)") }
            return self.ended(delivery, .expired)
        }
        switch reason {
        case .deadline, .progress, .operator: self.taskEnded(delivery, .expired)
        case .conditions: self.taskEnded(delivery, .interrupted)
        case .pressure:
            let isStrict = self.models.tasks.ledger.flight(delivery.wake, delivery.token)?.item.isStrict ?? false
            guard !isStrict else { return self.taskEnded(delivery, .interrupted) }
            let isCritical = self.models.tasks.isShortOfMemory(delivery.token)
            self.models.tasks.ledger.pressed(delivery.wake, delivery.token, isCritical: isCritical)
            self.taskEnded(delivery, .lost, takingBackAttempt: true)
        case .cancelled: self.taskEnded(delivery, .cancelled)
        case .lost: self.taskEnded(delivery, .lost)
        }
    }

    /// Records a wake that was lost because its stream ended or the gateway restarted.
    func lost(_ delivery: Delivery, takingBackAttempt: Bool) {
        if delivery.kind == .push {
            self.ended(delivery, .lost, takingBackAttempt: takingBackAttempt)
        } else {
            self.taskEnded(delivery, .lost, takingBackAttempt: takingBackAttempt)
        }
    }

    private func taskEnded(_ delivery: Delivery, _ outcome: TaskOutcome, takingBackAttempt: Bool = false) {
        self.coverage.note("\(delivery.kind) \(outcome)")
        self.models.remember(delivery.wake, of: delivery.token)
        self.models.tasks.ended(
            delivery,
            outcome,
            self.parameters(delivery.token),
            takingBackAttempt: takingBackAttempt
        )
    }

    /// Checks the reason with which an open wake expires.
    func expires(_ wake: WakeID, _ reason: ExpirationReason) {
        guard let delivery = self.models.checker.open[wake] else { return }
        switch reason {
        case .deadline, .progress:
            self.models.checker.reachedDeadline(wake, at: self.now)
            // A pending push that expired before the deadline does not absorb the push of the wake.
            self.models.ledger.expire(delivery.token, at: self.models.checker.deadline(delivery) - 1)
            if (reason == .progress) != (delivery.kind == .continued) {
                self.fail("a wake expired because of \(reason)")
            }
        case .conditions:
            guard let flight = self.models.tasks.ledger.flight(wake, delivery.token) else { break }
            let parameters = self.parameters(delivery.token)
            let token = delivery.token
            let hasQuit = delivery.kind == .continued && self.quitting == token
            let isDue = self.models.tasks.isInterrupted(flight, token, at: self.now, parameters)
            if !isDue, !hasQuit { self.fail("\(flight.item.name) was interrupted by nothing") }
        case .pressure:
            let count = self.models.checker.count(delivery.token, .continued)
            let isExcess = count > Int(self.parameters(delivery.token).continuedMax)
            let isShort = self.models.tasks.isShortOfMemory(delivery.token)
            if delivery.kind != .continued || !(isExcess || isShort) {
                self.fail("\(delivery.kind) \(wake) ended because of a pressure that is not there")
            }
            self.coverage.note(isShort ? "pressed by memory" : "pressed by a reload")
        case .cancelled:
            if self.cancelledWakes.remove(wake) == nil { self.fail("a wake was cancelled that had not been cancelled") }
        case .operator, .lost: break
        }
    }

    func taskDelivered(_ delivery: Delivery) {
        guard let task = delivery.task else { return self.fail("a wake is neither a push nor a task") }
        let token = delivery.token
        let isForced =
            self.forced?.token == token && self.forced?.identifier == task.name && delivery.kind != .urlSession
        let parameters = self.parameters(token)
        self.models.tasks.launched(delivery, at: self.now, isForced: isForced, parameters)
        self.coverage.note("launched \(delivery.kind)")
        if case .progress? = task.resumedFrom { self.coverage.note("resumed") }
        self.received(delivery)
    }

    /// Returns the actions of a stream's worker on the wake of a task.
    func deeds(_ delivery: Delivery) -> [(after: Int64, deed: SimulatedDeed)] {
        guard let worker = self.workers[delivery.stream] else { return [] }
        let tasks = self.parameters(delivery.topic)
        let window: Int64 =
            switch delivery.kind {
            case .continued: tasks.progressWindow
            case .processing: tasks.processingWindow
            case .push, .appRefresh, .urlSession: self.parameters(delivery.topic).executionWindow
            }
        var deeds = worker.answers(&self.generator, window: window).map { answer in
            let result: TaskResult = answer.result == .failed || self.generator.once(in: 4) ? .failure : .success
            return (after: answer.after, deed: SimulatedDeed.report(.task(result)))
        }
        guard delivery.kind == .continued, worker != .frozen else { return deeds }
        var after: Int64 = 0
        for step in 1...UInt64(self.generator.number(in: 1...6)) {
            after += Int64(self.generator.number(below: Int(window * 5 / 4))) + 1
            // Some workers repeat their progress.
            deeds.append((after, .progress(self.generator.once(in: 4) ? 1 : step)))
        }
        if self.generator.once(in: 2) { deeds.append((after + 1, .report(.task(.success)))) }
        return deeds
    }
}

// MARK: - Devices

extension DispatchSimulation {
    /// Checks a conditions report.
    ///
    /// - `former`: the conditions before the report.
    /// - `told`: the conditions that the gateway returned.
    func reported(_ report: ConditionsReport, _ token: DeviceToken, _ former: Conditions, _ told: Conditions) {
        let after = self.models.tasks.reported(report, token, at: self.now)
        if after != told { self.fail("the conditions are \(told), and were reported as \(after)") }
        if after.appState == .forceQuit, former.appState != .forceQuit { self.quitting = token }
        guard after != former else { return }
        // Streams that receive changes and read must be notified immediately.
        self.unheard = Set(self.models.checker.streams.filter { self.hears($1, of: token) }.keys)
    }

    private func hears(_ stream: WakeChecker.Stream, of token: DeviceToken) -> Bool {
        let topic = EngineRig.topicName(self.tokens.firstIndex(of: token).map { self.topic(of: $0) } ?? 0)
        let isMeant = stream.devices.isEmpty || stream.devices.contains(token)
        return stream.takes.receivesConditions && isMeant && !stream.isPaused && stream.topic == topic
    }

    /// Records that a stream received conditions.
    func heard(_ token: DeviceToken, _ conditions: Conditions, _ address: StreamAddress) {
        self.unheard.remove(address)
        self.coverage.note("conditions heard")
        guard let stream = self.models.checker.streams[address] else {
            return self.fail("a stream that has ended received conditions")
        }
        if !self.hears(stream, of: token) { self.fail("a stream that had not asked for conditions received them") }
        let mine = self.models.tasks.conditions[token] ?? Conditions()
        if conditions != mine { self.fail("a stream received \(conditions), and they are \(mine)") }
    }
}

// MARK: - After every step

extension DispatchSimulation {
    /// Checks a report of the wrong kind.
    func checkOtherKind(_ report: WakeReport, _ wake: WakeID) {
        self.coverage.note("report of another kind")
        guard let open = self.models.checker.open[wake] else { return }
        switch report {
        case .push: if open.kind == .push { self.fail("a task's wake is answered as a push") }
        case .task: if open.kind != .push { self.fail("a push's wake is answered as a task") }
        }
    }

    func checkTaskCounters(_ counters: ActivityCounters) {
        let requests = counters.requests
        if requests.submitted.sum != counters.requestsAccountedFor {
            self.fail("requests do not conserve: \(requests)")
        }
        let sessions = counters.sessions
        if sessions.finished != sessions.accountedFor { self.fail("transfers do not conserve: \(sessions)") }
    }

    func verifyTasks(_ token: DeviceToken, _ snapshot: DeviceSnapshot) {
        guard self.hasTasks else { return }
        self.models.tasks.ledger.compare(token, snapshot.tasks)
        self.models.tasks.checkHolds(token, at: self.now, self.parameters(token))
        for task in snapshot.tasks {
            guard case .waiting(let eligibleAt, let held, let laneIsFull) = task.state else { continue }
            guard held.contains(.worker) else {
                if held.isEmpty, !laneIsFull, eligibleAt == nil { self.fail("\(task.name) waits for nothing") }
                continue
            }
            if laneIsFull || eligibleAt != nil || held.count > 1 {
                self.fail("\(task.name) waits for more than a worker")
            }
            self.coverage.note("task waits for a worker")
            if self.models.checker.couldTake(token, topic: snapshot.topic, task.target) {
                self.fail("\(task.name) waits for a worker that is free")
            }
        }
    }
}

/// Operators pause and resume topics, and discard pending pushes.
extension DispatchSimulation {
    func actOnWaiting() {
        let topic = self.generator.number(below: self.topicCount)
        switch self.generator.number(below: 5) {
        case 0: self.setPaused(topic, true)
        case 1, 2: self.setPaused(topic, false)
        case 3: self.dropPending(self.generator.number(below: self.deviceCount))
        default: self.simulateLaunch(self.generator.number(below: self.deviceCount))
        }
    }

    func resumeEveryTopic() {
        for topic in 0..<self.topicCount { self.setPaused(topic, false) }
    }

    private func setPaused(_ number: Int, _ isPaused: Bool) {
        let name = EngineRig.topicName(number)
        guard let topic = name.withByteView({ self.rig.engine.findTopic($0) }) else { return }
        let wasPaused = self.models.checker.pausedTopics.contains(name)
        if self.rig.dispatcher.setPaused(topic, isPaused) != (isPaused != wasPaused) {
            self.fail("\(name) was paused: \(wasPaused), and the dispatcher disagrees")
        }
        if isPaused {
            self.models.checker.pausedTopics.insert(name)
        } else {
            self.models.checker.pausedTopics.remove(name)
        }
        let launched = self.models.launched
        self.took()
        if wasPaused, !isPaused { self.coverage.note("launch by resuming", Int(self.models.launched - launched)) }
        self.check()
    }

    private func dropPending(_ device: Int) {
        guard let index = self.rig.rig.find(device) else { return }
        let token = self.tokens[device]
        // A snapshot first applies what is due for the device.
        _ = self.rig.dispatcher.snapshot(index)
        self.took()
        self.models.ledger.expire(token, at: self.now)
        let wasPending = self.rig.engine.snapshot(index).pendingID != nil
        if self.rig.dispatcher.cancelPending(index) != wasPending { self.fail("a drop differs from the pending push") }
        if wasPending { self.models.ledger.discarded(token, .cancelled) }
        self.settle()
    }

    /// Checks that a snapshot reflects a pause.
    func verifyPause(_ token: DeviceToken, _ snapshot: DeviceSnapshot) {
        let isPaused = self.models.checker.pausedTopics.contains(snapshot.topic)
        if snapshot.isTopicPaused != isPaused { self.fail("\(snapshot.topic) is paused: \(isPaused), and not said so") }
        let isHeld = snapshot.held.first == .paused
        if isHeld != (isPaused && snapshot.state.pending != nil) { self.fail("the holds are \(snapshot.held)") }
        guard isHeld, snapshot.held.count == 1, snapshot.state.inFlight == nil,
            let priority = snapshot.state.pending?.priority,
            snapshot.state.eligibleAt(priority, snapshot.parameters) <= self.now
        else { return }
        guard self.models.checker.couldTakeForced(token, topic: snapshot.topic) else { return }
        self.coverage.note("held back by a pause")
    }
}
