import Engine
import Policy
import WakeGateTestKit
import Wire

/// An action of a worker on a wake.
enum SimulatedDeed {
    case report(WakeReport)
    case progress(UInt64)
}

/// Operations of devices, workers and operators on requests and sessions.
extension DispatchSimulation {
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
        item.isStrict = request.kind == .continued(.fail)
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
            self.coverage.note("submitted \(item.kind)")
            self.coverage.note("request \(answer.disposition)")
        } catch {
            if error != refusal.map({ .policy($0) }) {
                self.fail("\(item.name) is refused: \(error), not \(refusal as Any)")
            }
            if let refusal { self.models.tasks.ledger.refused(refusal) }
            if let refusal { self.coverage.note("refused \(refusal)") }
        }
        self.settle()
    }

    /// Returns the refusal of a request with the strategy `fail` that cannot launch immediately.
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

    /// - Parameter id: the id of the event. A known id changes nothing.
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
                self.coverage.note("repeated event")
            } else {
                self.taskCount += 1
                var item = RequestLedger.Item(number: self.taskCount, name: session, kind: .urlSession)
                item.transfers = count
                self.models.tasks.ledger.finished(item, token)
                if let id { self.models.tasks.remember(id, token) }
            }
        } catch {
            if error != .tooManySessions || !isRefused { self.fail("transfers of \(session) are refused: \(error)") }
            self.models.tasks.ledger.refusedTransfers(count)
            self.coverage.note("ninth session")
        }
        self.settle()
    }

    /// - Parameter identifier: the identifier; nil cancels every request.
    func cancel(_ device: Int, _ identifier: String?) {
        guard let index = self.rig.rig.find(device) else { return }
        let token = self.tokens[device]
        let before = self.models.tasks.ledger[token].waiting.count
        self.cancelledWakes = self.models.tasks.ledger.cancelled(identifier, token)
        if self.models.tasks.ledger[token].waiting.count < before { self.coverage.note("cancelled while waiting") }
        self.rig.dispatcher.cancelTask(identifier, index)
        self.took()
        if !self.cancelledWakes.isEmpty { self.fail("a cancelled task continues") }
        self.check()
    }

    func progress(_ completed: UInt64, _ wake: WakeID) {
        let outcome = self.rig.dispatcher.progress(TaskProgress(completed: completed, total: 100), wake: wake)
        let window = self.models.checker.open[wake].map { self.parameters($0.token).progressWindow } ?? 0
        self.models.checker.progressed(wake, completed, at: self.now, window, outcome)
        switch outcome {
        case .lasts: self.coverage.note("progress")
        case .notContinued: self.coverage.note("progress of another kind")
        case .ended, .unknown: self.coverage.note("late progress")
        }
        self.settle()
    }
}

/// Random operations on requests and sessions.
extension DispatchSimulation {
    private static let identifiers =
        ["a.r0", "a.r1"] + (0..<11).map { "a.p\($0)" } + (0..<11).map { "b.c\($0)" } + ["b.none"]
    /// A session may have the same name as an identifier without being related.
    private static let sessions = (0..<9).map { "s.\($0)" } + ["a.r0", "b.c0"]

    func actOnTasks() {
        guard self.hasTasks else { return }
        for _ in 0..<self.generator.number(in: 0...3) where self.fault == nil { self.actOnTask() }
    }

    private func actOnTask() {
        // A few devices and names occur often.
        let devices = self.generator.once(in: 3) ? self.deviceCount : min(2, self.deviceCount)
        let device = self.generator.number(below: devices)
        let identifier = self.generator.pick(self.generator.once(in: 3) ? ["a.r0", "a.p0", "b.c0"] : Self.identifiers)
        switch self.generator.number(below: 40) {
        case 0..<15: self.submitSomething(device, identifier)
        case 15..<20: self.finishSomething(device)
        case 20..<22: self.cancel(device, self.someName(device, identifier))
        case 22: if self.generator.once(in: 3) { self.cancel(device, nil) }
        case 23..<25: self.progressSomething()
        case 25..<27: self.simulateLaunch(device, self.someName(device, identifier))
        case 27..<29: self.simulateExpiration(device, self.someName(device, identifier))
        case 29..<36: self.reportSomething(device)
        case 36: if self.generator.once(in: 3) { self.reload() }
        case 37: if self.generator.once(in: 2) { self.misreport() } else { self.cancelAndLose() }
        default: self.submitBurst(device)
        }
    }

    /// Returns usually a name that the device has.
    private func someName(_ device: Int, _ other: String) -> String {
        let known = self.models.tasks.ledger[self.tokens[device]]
        let names = known.waiting.map(\.name) + known.inFlight.map(\.item.name)
        return names.isEmpty || self.generator.once(in: 5) ? other : self.generator.pick(names)
    }

    private func submitSomething(_ device: Int, _ identifier: String) {
        let kind: TaskSubmission.Kind
        switch self.generator.once(in: 12) ? self.generator.pick(["a.r", "a.p", "b.c"]) : String(identifier.prefix(3)) {
        case "a.r": kind = .appRefresh
        case "a.p":
            let needs: [TaskNeeds] = [[], [], .network, .externalPower, [.network, .externalPower]]
            kind = .processing(self.generator.pick(needs))
        default: kind = .continued(self.generator.once(in: 3) ? .fail : .queue)
        }
        if case .continued = kind, !self.generator.once(in: 4) {
            var report = Self.wellBeing
            report.appState = .active
            self.conditions(device, report)
        }
        let after = self.generator.pick([nil, nil, nil, 0, 1, 5000, 61_000, 1_800_000] as [Int64?])
        let earliest = after.map { self.now + $0 }
        var details = TaskDetails()
        if case .continued = kind {
            details.title = self.generator.pick([nil, "Export", "A title that is longer than others"])
            details.resources = self.generator.pick([[], [], [], ["gpu"], ["disk", "gpu"]])
        }
        self.submit(device, IncomingTask(identifier: identifier, kind: kind, earliestBegin: earliest, details: details))
    }

    /// Submits more requests of one kind than are allowed.
    private func submitBurst(_ device: Int) {
        guard self.generator.once(in: 3) else { return }
        for number in 0..<11 {
            if self.generator.once(in: 2) {
                self.submit(device, IncomingTask(identifier: "a.p\(number)", kind: .processing([])))
            } else {
                self.finish(device, Self.sessions[number % Self.sessions.count], count: 1, id: nil)
            }
        }
    }

    private func finishSomething(_ device: Int) {
        let session = self.generator.pick(self.generator.once(in: 2) ? ["s.0", "a.r0"] : Self.sessions)
        let count = self.generator.pick([1, 1, 2, 100_000] as [UInt64])
        var id: String?
        if self.generator.once(in: 2) {
            let (models, token) = (self.models.tasks, self.tokens[device])
            let known = (models.eventIDs[token] ?? []) + (models.formerEventIDs[token] ?? [])
            id = known.isEmpty || self.generator.once(in: 2) ? "event-\(self.taskCount)" : self.generator.pick(known)
        }
        self.finish(device, session, count: count, id: id)
    }

    /// The wakes that workers hold, in an order that the seed determines.
    private var openWakes: [Delivery] {
        self.models.checker.open.values.sorted {
            ($0.wake.first, $0.wake.second) < ($1.wake.first, $1.wake.second)
        }
    }

    private func progressSomething() {
        let open = self.openWakes
        let continued = open.filter { $0.kind == .continued }
        let meant = self.generator.once(in: 3) || continued.isEmpty ? open : continued
        guard !meant.isEmpty else { return }
        self.progress(UInt64(self.generator.number(below: 8)), self.generator.pick(meant).wake)
    }

    private func reportSomething(_ device: Int) {
        var report = ConditionsReport()
        switch self.generator.number(below: 10) {
        case 0, 1: report.appState = .active
        case 2, 3: report.appState = .background
        case 4: report.appState = self.generator.once(in: 2) ? .forceQuit : .background
        case 5: report.charging = self.generator.once(in: 2)
        case 6: report.backgroundRefresh = self.generator.pick([.available, .available, .denied, .restricted])
        case 7 where self.generator.once(in: 2):
            report.memoryPressure = self.generator.pick([.normal, .warning, .critical])
        case 7: report.thermalState = self.generator.pick([.nominal, .serious, .critical])
        default:
            report = Self.wellBeing
            report.charging = true
        }
        self.conditions(device, report)
    }

    /// Cancels a request in flight, then ends its stream.
    private func cancelAndLose() {
        let open = self.openWakes
        let meant = open.filter { $0.kind == .appRefresh || $0.kind == .processing }
        guard !meant.isEmpty else { return }
        let delivery = self.generator.pick(meant)
        guard let device = self.tokens.firstIndex(of: delivery.token), let task = delivery.task else { return }
        self.cancel(device, task.name)
        if self.models.checker.open[delivery.wake] != nil { self.endStream(delivery.stream) }
    }

    /// Reports a result of the wrong kind.
    private func misreport() {
        let open = self.openWakes
        guard !open.isEmpty else { return }
        let delivery = self.generator.pick(open)
        self.report(delivery.kind == .push ? .task(.success) : .push(.newData), delivery.wake)
    }
}

// MARK: - Streams and configurations

extension DispatchSimulation {
    var allTakes: StreamTakes {
        guard self.hasTasks else { return .pushes }
        return StreamTakes(tasks: ["a.*", "b.*"], sessions: ["s.*", "a.*", "b.c0"], resources: ["gpu", "disk"])
    }

    /// Returns the parameters of a new subscription.
    func someTakes() -> StreamTakes {
        guard self.hasTasks else { return .pushes }
        var takes = self.generator.once(in: 3) ? StreamTakes() : self.allTakes
        takes.isForPushes = !self.generator.once(in: 4)
        if self.generator.once(in: 2) {
            takes.tasks = self.generator.pick([[], ["a.*"], ["b.*"], ["a.r0", "b.c0"], ["a.*", "a.r0", "b.c0"]])
            takes.sessions = self.generator.pick([[], ["s.*"], ["s.0"], ["a.r0"], ["s.*", "a.*"]])
            takes.resources = self.generator.pick([[], ["gpu"], ["disk", "gpu", "net"]])
        }
        takes.receivesConditions = self.generator.once(in: 4)
        if !takes.isForPushes, takes.tasks.isEmpty, takes.sessions.isEmpty { takes.isForPushes = true }
        return takes
    }

    /// Changes the policy of background tasks and the permitted identifiers.
    func reload() {
        var configuration = self.configuration
        Self.change(&configuration.policy, &self.generator)
        for topic in configuration.topicPolicies.keys.sorted() {
            guard var policy = configuration.topicPolicies[topic] else { continue }
            Self.change(&policy, &self.generator)
            configuration.topicPolicies[topic] = policy
        }
        configuration.permittedTasks = .all
        if self.generator.once(in: 4) {
            configuration.permittedTasks[EngineRig.topicName(0)] = ["a.*", "b.c0"].map { IdentifierPattern($0) }
        }
        self.reconfigure(configuration)
        self.coverage.note("reload")
        self.pass(0)
    }

    private static func change(_ parameters: inout Parameters, _ generator: inout SeededGenerator) {
        let values: [(PolicyParameter, [Double])] = [
            (.processingWindow, [5, 60, 600]), (.processingInterval, [5, 60, 600]), (.progressWindow, [5, 60]),
            (.continuedMax, [1, 1, 2, 3]), (.usageWindow, [0, 0, 60, 3600]), (.refreshFlex, [0, 600, 14_400]),
            (.refreshLead, [0, 900]),
        ]
        for (name, choices) in values {
            precondition(name.set(generator.pick(choices), in: &parameters), "\(name) must be \(name.requirement)")
        }
    }

    /// Removes everything that can delay a launch indefinitely.
    func calmTasks() {
        guard self.hasTasks else { return }
        var configuration = self.configuration
        let names: [PolicyParameter] = [.usageWindow, .refreshFlex]
        for name in names {
            _ = name.set(0, in: &configuration.policy)
            for topic in configuration.topicPolicies.keys {
                _ = name.set(0, in: &configuration.topicPolicies[topic, default: Parameters()])
            }
        }
        self.reconfigure(configuration)
        self.pass(0)
        var report = Self.wellBeing
        report.charging = true
        report.backgroundRefresh = .available
        for device in 0..<self.deviceCount { self.conditions(device, report) }
    }
}
