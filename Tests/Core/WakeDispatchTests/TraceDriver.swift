import Engine
import Policy
import WakeGateTestKit
import Wire

/// Plays a trace of the simulator to the production dispatcher and engine. Each device has its own stream. The driver
/// derives the outcome from the engine's messages and events.
final class TraceDriver {
    private var configuration = EngineRig.open()
    /// The answers to wakes of pushes.
    private var script = WorkerScript.reliable
    /// The answers to those of requests and sessions, by their names.
    private var taskScripts: [String: TaskScript] = [:]
    private var until: Instant?
    private lazy var rig = DispatchRig(self.configuration, start: 0)
    private var names: [String] = []
    private var streams: [Int] = []
    private var streamCount = 0
    /// The number of launches of each device, by subject.
    private var launches: [[String: Int]] = []
    private var planned = PlannedDeeds()
    private var identifiers: [APNsID: String] = [:]
    /// The names of requests and of sessions in the trace, all of which every stream takes.
    private var taskNames: (requests: Set<String>, sessions: Set<String>) = ([], [])
    /// The outcome lines, by device.
    private(set) var lines: [String: [String]] = [:]
    private(set) var deliveryCount = 0
    /// The launches that are not among `lines` yet.
    private var launched: [Delivery] = []

    /// Plays a whole trace.
    init(_ trace: [TraceLine]) throws {
        self.configuration.permittedTasks = .all
        for case .event(let event) in trace {
            switch event.kind {
            case .submit(let request): self.taskNames.requests.insert(request.identifier)
            case .finished(let session, _): self.taskNames.sessions.insert(session)
            case .push, .conditions, .cancel: break
            }
        }
        for line in trace {
            switch line {
            case .blank: break
            case .header(let header): self.take(header)
            case .event(let event): try self.take(event)
            }
        }
        self.advance(to: self.until?.milliseconds ?? .max)
    }

    var counters: ActivityCounters { self.rig.engine.totals }

    private func add(_ line: String, _ device: Int) { self.lines[self.names[device], default: []].append(line) }
}

// MARK: - Lines

extension TraceDriver {
    private func take(_ header: TraceHeader) {
        for (parameter, value) in header.parameters {
            precondition(parameter.set(value, in: &self.configuration.policy), "the reader checked \(parameter)")
        }
        self.script = header.worker ?? self.script
        self.taskScripts.merge(header.tasks) { $1 }
        if let permitted = header.permitted {
            self.configuration.permittedTasks = .none
            self.configuration.permittedTasks[EngineRig.topicName(0)] = permitted
        }
        self.until = header.until ?? self.until
    }

    private func take(_ event: TraceEvent) throws {
        if let until = self.until, event.moment > until { return }
        self.advance(to: event.moment.milliseconds)
        self.rig.rig.pass(event.moment.milliseconds - self.rig.rig.now)
        _ = self.rig.dispatcher.advance(to: self.rig.rig.instant, devicesMax: .max)
        let device = self.number(event.device)
        self.collect()
        let index = self.rig.rig.index(device)
        var isCancelled = false
        switch event.kind {
        case .push(let push):
            self.identifiers[EngineRig.apnsID(self.rig.rig.lastPush + 1)] = push.apnsID
            self.rig.push(device, push.priority, push.expiration)
        case .conditions(let report): _ = self.rig.dispatcher.conditions(report, index)
        case .submit(let request): try self.submit(request, device, index)
        case .finished(let session, let count):
            do throws(TaskRejection) {
                try self.rig.dispatcher.transfersFinished(session: session, count: count, id: nil, index)
            } catch {
                // A ninth session is counted but has no line.
                guard error == .tooManySessions else { throw error }
            }
        case .cancel(let identifier):
            self.rig.dispatcher.cancelTask(identifier, index)
            isCancelled = true
        }
        self.collect(isCancelled: isCancelled)
        self.settle()
    }

    private func submit(_ request: TraceRequest, _ device: Int, _ index: DeviceIndex) throws {
        let task = IncomingTask(
            identifier: request.identifier,
            kind: request.kind,
            earliestBegin: request.earliestBegin
        )
        do throws(TaskRejection) {
            _ = try self.rig.dispatcher.submit(task, index)
        } catch {
            guard case .policy(let refusal) = error else { throw error }
            self.add("\(self.rig.rig.now) task \(request.identifier) submit \(refusal.rawValue)", device)
        }
    }

    private func number(_ name: String) -> Int {
        if let number = self.names.firstIndex(of: name) { return number }
        let number = self.names.count
        self.names.append(name)
        self.streams.append(0)
        self.launches.append([:])
        self.rig.rig.register(number)
        self.subscribe(number)
        return number
    }

    private func subscribe(_ device: Int) {
        self.streamCount += 1
        self.streams[device] = self.streamCount
        self.rig.subscribe(
            self.streamCount,
            slots: SubscriptionRequest.slotsMax,
            tasks: self.taskNames.requests.sorted(),
            sessions: self.taskNames.sessions.sorted(),
            devices: [device]
        )
    }
}

// MARK: - Time

extension TraceDriver {
    /// Applies everything that is due up to `limit`, at each millisecond separately.
    private func advance(to limit: Int64) {
        while let next = [self.rig.engine.nextDue?.milliseconds, self.planned.next].compactMap({ $0 }).min(),
            next <= limit
        {
            self.rig.rig.pass(max(0, next - self.rig.rig.now))
            self.settle()
        }
    }

    /// Applies everything that is due now, answers first.
    private func settle() {
        // The engine gets the time, but processes nothing before the answers.
        _ = self.rig.dispatcher.advance(to: self.rig.rig.instant, devicesMax: 0)
        repeat {
            let due = self.planned.takeDue(at: self.rig.rig.now)
            // The engine processes all answers of the same time before the dispatcher launches anything.
            if due.count > 1 { for deed in due { self.tellEngine(deed) } }
            for deed in due { self.tellDispatcher(deed) }
            _ = self.rig.dispatcher.advance(to: self.rig.rig.instant, devicesMax: .max)
            self.collect()
        } while self.planned.next.map { $0 <= self.rig.rig.now } ?? false
    }

    private func tellDispatcher(_ deed: PlannedDeeds.Deed) {
        switch deed.what {
        case .report(let report): _ = self.rig.dispatcher.report(report, wake: deed.wake)
        case .advance(let completed):
            _ = self.rig.dispatcher.progress(TaskProgress(completed: completed, total: .max), wake: deed.wake)
        case .loss:
            let stream = DispatchRig.address(self.streams[deed.device])
            guard deed.isAlone, !self.planned.hasOthers(deed.device) else {
                return self.rig.dispatcher.lose(deed.wake, on: stream, takingBackAttempt: false)
            }
            self.rig.dispatcher.streamEnded(stream)
            self.subscribe(deed.device)
        }
    }

    private func tellEngine(_ deed: PlannedDeeds.Deed) {
        switch deed.what {
        case .report(let report): _ = self.rig.engine.report(report, wake: deed.wake)
        case .advance(let completed):
            _ = self.rig.engine.progress(TaskProgress(completed: completed, total: .max), wake: deed.wake)
        case .loss: self.rig.engine.lose(deed.wake)
        }
    }
}

// MARK: - Events

extension TraceDriver {
    /// Notes the events since the last call, and plans the answers to launches.
    ///
    /// - Parameter isCancelled: true if a pending request was just cancelled.
    private func collect(isCancelled: Bool = false) {
        // Late answers do not change a device, but prevent a stall of its stream. Streams of the simulator never stall.
        for wake in self.rig.output.expirations { self.planned.end(wake).map { self.reportLate($0, wake) } }
        for delivery in self.rig.takeDeliveries() {
            self.deliveryCount += 1
            guard let device = self.names.indices.first(where: { EngineRig.token($0) == delivery.token }) else {
                continue
            }
            self.launched.append(delivery)
            let subject = delivery.subject
            let turn = self.launches[device][subject, default: 0]
            self.launches[device][subject] = turn + 1
            if let task = delivery.task {
                let step = (self.taskScripts[task.name] ?? .reliable).step(turn)
                self.planned.plan(step, delivery, device, at: self.rig.rig.now)
            } else {
                self.planned.plan(self.script.step(turn), delivery, device, at: self.rig.rig.now)
            }
        }
        var events: [HistoryEvent] = []
        self.rig.engine.takeEvents(into: &events)
        var entries = HistoryEntries()
        for event in events.reversed() { entries.append(event) }
        for entry in entries.finish().reversed() {
            let device = self.names.indices.first {
                HistoryEvent.device(of: EngineRig.token($0), EngineRig.historyKey) == entry.event.device
            }
            if let device { self.note(entry, device, isCancelled: isCancelled) }
        }
    }

    private func reportLate(_ kind: LaunchKind, _ wake: WakeID) {
        _ = self.rig.dispatcher.report(kind == .push ? .push(.noData) : .task(.failure), wake: wake)
    }

    /// Adds the simulator's line for an event, if it has one.
    private func note(_ entry: HistoryEntry, _ device: Int, isCancelled: Bool) {
        let event = entry.event
        let id = event.apnsID.flatMap { self.identifiers[$0] } ?? "nobody"
        let name = entry.name ?? "nobody"
        let task = (event.kind.task == .urlSession ? "session " : "task ") + name
        let line: String
        switch event.kind {
        case .push(let disposition): line = "\(id) push \(disposition)"
        case .launch(.push, let attempt, let coalesced): line = "\(id) launch \(coalesced) \(attempt)"
        case .result(.push(let outcome)): line = "\(id) result \(outcome.rawValue)"
        case .discard(.push, let reason): line = "\(id) discard \(reason.rawValue)"
        case .taskSubmitted(_, let disposition): line = "\(task) submit \(disposition.rawValue)"
        case .launch(_, let attempt, _):
            if let kind = event.kind.task, let wake = self.takeLaunched(name, kind),
                wake.task.attempts == UInt32(attempt)
            {
                line = "\(task) launch \(kind.rawValue) \(wake.task.transfers) \(attempt)"
            } else {
                line = "\(name) was launched, and no stream got it"
            }
        case .result(let outcome): line = "\(task) result \(outcome.name)"
        case .discard(_, .replaced): return
        case .discard(_, .cancelled) where isCancelled: return
        case .discard(_, let reason): line = "\(task) discard \(reason.rawValue)"
        case .registered, .removed, .conditions, .extended, .worker, .subscribed, .taskRefused, .transfersFinished,
            .namePart:
            return
        }
        self.add("\(event.at.milliseconds) \(line)", device)
    }

    /// Returns and removes the first launch of this name that no line reports yet.
    private func takeLaunched(_ name: String, _ kind: TaskKind) -> LaunchedTask? {
        let index = self.launched.firstIndex { delivery in
            delivery.task?.name == name && delivery.task?.task.kind == kind
        }
        return index.flatMap { self.launched.remove(at: $0).task }
    }
}

extension OutcomeLine {
    /// The line in the format of `TraceDriver`.
    var driverText: String {
        let subject =
            switch self.subject {
            case .push(let id): id
            case .task(let name): "task \(name)"
            case .session(let name): "session \(name)"
            }
        let what =
            switch (self.event, self.subject) {
            case (.arrival(let disposition), .push): "push \(disposition.rawValue)"
            case (.arrival(let disposition), _): "submit \(disposition.rawValue)"
            case (.refusal(let refusal), _): "submit \(refusal.rawValue)"
            case (.launch(.push, let coalesced, let attempt), _): "launch \(coalesced) \(attempt)"
            case (.launch(let kind, let transfers, let attempt), _): "launch \(kind.rawValue) \(transfers) \(attempt)"
            case (.result(let outcome), _): "result \(outcome.name)"
            case (.discard(let reason), _): "discard \(reason.rawValue)"
            }
        return "\(self.moment.milliseconds) \(subject) \(what)"
    }
}

extension Delivery {
    /// The key of the answers' turns. A session and a request with the same name are counted separately.
    fileprivate var subject: String {
        guard let task = self.task else { return "" }
        return (task.task.kind == .urlSession ? "session " : "task ") + task.name
    }
}
