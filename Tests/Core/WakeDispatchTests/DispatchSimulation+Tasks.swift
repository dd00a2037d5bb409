import Engine
import Policy
import WakeGateTestKit
import Wire

/// What a worker does with a wake.
enum SimulatedDeed {
    case report(WakeReport)
    case progress(UInt64)
}

/// Requests and sessions, as devices, workers and operators speak of them.
extension DispatchSimulation {
    var hasTasks: Bool { self.tasks != nil }

    func isPermitted(_ identifier: String, topic: Int) -> Bool {
        guard let patterns = self.configuration.permittedTasks[EngineRig.topicName(topic)] else { return true }
        return patterns.contains { $0.text == identifier || $0.text == "a.*" && identifier.hasPrefix("a.") }
    }

    func submit(_ device: Int, _ request: IncomingTask) {
        let token = self.tokens[device]
        guard !self.isDraining, let index = self.rig.rig.find(device), !self.models.removed.contains(token) else {
            return
        }
        var item = RequestLedger.Item(
            number: self.taskCount + 1,
            name: request.identifier,
            kind: request.kind.taskKind,
            resources: request.details.resources
        )
        if case .processing(let needs) = request.kind { item.needs = needs }
        if item.kind != .continued { item.notBefore = request.earliestBegin ?? item.notBefore }
        let isPermitted = self.isPermitted(item.name, topic: self.topic(of: device))
        let refusal =
            self.models.tasks.refusal(item, token, isPermitted: isPermitted)
            ?? self.ineligibility(item, request, device)
        do throws(TaskRejection) {
            let answer = try self.rig.dispatcher.submit(request, index)
            if let refusal { return self.fail("\(item.name) was taken, in spite of \(refusal)") }
            self.taskCount += 1
            let isDelivered = self.rig.output.deliveries.contains { $0.token == token && $0.wake == answer.wake }
            self.models.tasks.ledger.submitted(item, token, answer.disposition, deliveredAtOnce: isDelivered)
            self.tell(.taken(item.number))
            self.taskCoverage.note("submitted \(item.kind)")
            self.taskCoverage.note("\(answer.disposition)")
        } catch {
            if error != refusal.map({ .policy($0) }) {
                self.fail("\(item.name) is refused: \(error), not \(refusal as Any)")
            }
            if let refusal { self.models.tasks.ledger.refused(refusal) }
            if let refusal { self.taskCoverage.note("refused \(refusal)") }
        }
        self.took()
        self.check()
    }

    /// Whether a request that may not wait cannot launch at once.
    private func ineligibility(_ item: RequestLedger.Item, _ request: IncomingTask, _ device: Int) -> TaskRefusal? {
        guard request.kind == .continued(.fail) else { return nil }
        let token = self.tokens[device]
        let parameters = self.parameters(token)
        let isFull = self.models.checker.count(token, .continued) >= Int(parameters.continuedMax)
        let isHeld = !self.models.tasks.holds(item, token, at: self.now, parameters).isEmpty
        let topic = EngineRig.topicName(self.topic(of: device))
        let couldTake = self.models.checker.couldTake(token, topic: topic, item.target)
        return isFull || isHeld || !couldTake ? .immediateRunIneligible : nil
    }

    /// - Parameter id: the event's; one that came before changes nothing.
    func finish(_ device: Int, _ session: String, count: UInt64, id: String?) {
        let token = self.tokens[device]
        guard !self.isDraining, let index = self.rig.rig.find(device), !self.models.removed.contains(token) else {
            return
        }
        let sessions = self.models.tasks.ledger[token].waiting.filter(\.isSession)
        let isKnown = id.map { self.models.tasks.eventIDs[token]?.contains($0) ?? false } ?? false
        let isRefused = !isKnown && sessions.count >= 8 && !sessions.contains { $0.name == session }
        do throws(TaskRejection) {
            try self.rig.dispatcher.transfersFinished(session: session, count: count, id: id, index)
            if isRefused { self.fail("a ninth session was taken") }
            if isKnown {
                self.taskCoverage.note("repeated event")
            } else {
                self.taskCount += 1
                var item = RequestLedger.Item(number: self.taskCount, name: session, kind: .urlSession)
                item.transfers = count
                self.models.tasks.ledger.finished(item, token)
                if let id { self.models.tasks.remember(id, token) }
                self.tell(.taken(item.number))
            }
        } catch {
            if error != .tooManySessions || !isRefused { self.fail("transfers of \(session) are refused: \(error)") }
            self.models.tasks.ledger.refusedTransfers(count)
            self.taskCoverage.note("ninth session")
        }
        self.took()
        self.check()
    }

    /// - Parameter identifier: nil cancels every request.
    func cancel(_ device: Int, _ identifier: String?) {
        guard let index = self.rig.rig.find(device) else { return }
        let token = self.tokens[device]
        let before = self.models.tasks.ledger[token].waiting.count
        self.cancelledWakes = self.models.tasks.ledger.cancelled(identifier, token)
        if self.models.tasks.ledger[token].waiting.count < before { self.taskCoverage.note("cancelled while waiting") }
        if let identifier {
            self.rig.dispatcher.cancelTask(identifier, index)
        } else {
            self.rig.dispatcher.cancelAllTasks(index)
        }
        self.took()
        if !self.cancelledWakes.isEmpty { self.fail("a cancelled task goes on") }
        self.check()
    }

    func progress(_ completed: UInt64, _ wake: WakeID) {
        let outcome = self.rig.dispatcher.progress(TaskProgress(completed: completed, total: 100), wake: wake)
        let window = self.models.checker.open[wake].map { self.parameters($0.token).progressWindow } ?? 0
        self.models.checker.progressed(wake, completed, at: self.now, window, outcome)
        switch outcome {
        case .lasts: self.taskCoverage.note("progress")
        case .notContinued: self.taskCoverage.note("progress of another kind")
        case .ended, .unknown: self.taskCoverage.note("late progress")
        }
        self.took()
        self.check()
    }

    func simulateTaskLaunch(_ device: Int, _ identifier: String) {
        guard let index = self.rig.rig.find(device) else { return }
        let token = self.tokens[device]
        let expected: Dispatcher.SimulatedTaskLaunch
        if let item = self.models.tasks.ledger.request(identifier, token) {
            let lane = item.kind.lane
            let most = lane == .continued ? Int(self.parameters(token).continuedMax) : 1
            let isFull = self.models.checker.count(token, lane) >= most
            let topic = EngineRig.topicName(self.topic(of: device))
            let couldTake = self.models.checker.couldTakeForced(token, topic: topic, item.target)
            expected = isFull ? .laneIsFull : couldTake ? .launched : .noWorker
        } else {
            expected = .notWaiting
        }
        self.forcedTask = (token, identifier)
        let outcome = self.rig.dispatcher.simulateTaskLaunch(identifier, index)
        if outcome != expected { self.fail("launching \(identifier) answered \(outcome), and not \(expected)") }
        self.taskCoverage.note("simulated launch: \(outcome)")
        self.took()
        self.forcedTask = nil
        self.check()
    }

    func simulateTaskExpiration(_ device: Int, _ identifier: String) {
        guard let index = self.rig.rig.find(device) else { return }
        let token = self.tokens[device]
        let isInFlight = self.models.tasks.ledger[token].inFlight.contains { $0.item.name == identifier }
        let happened = self.rig.dispatcher.simulateTaskExpiration(identifier, index)
        if happened != isInFlight { self.fail("expiring \(identifier) answered \(happened)") }
        if happened { self.taskCoverage.note("simulated expiration") }
        self.took()
        self.check()
    }
}
