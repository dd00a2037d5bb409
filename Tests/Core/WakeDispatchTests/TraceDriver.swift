import Engine
import Foundation
import Policy
import WakeGateTestKit
import Wire

/// Plays a trace of the simulator to the production dispatcher and engine. Each device has its own stream. The driver
/// derives the outcome from the engine's messages and events.
final class TraceDriver {
    private(set) var configuration = EngineRig.open()
    /// The answers to wakes of pushes, in turn.
    private var script = [TraceAnswer(answer: "newData", delay: 1000)]
    /// The answers to those of requests and sessions, by their names, in turn.
    private var taskScripts: [String: [TraceAnswer]] = [:]
    private var until: Int64?
    private(set) lazy var rig = DispatchRig(self.configuration, start: 0)
    private(set) var names: [String] = []
    private var streams: [Int] = []
    private var streamCount = 0
    /// The number of launches of each device, by subject.
    private var launches: [[String: Int]] = []
    var planned = PlannedDeeds()
    private var identifiers: [APNsID: String] = [:]
    /// The names of requests and sessions in the trace, all of which every stream takes.
    private let taskNames: TraceNames
    /// The outcome lines, by device.
    private(set) var lines: [String: [String]] = [:]
    private(set) var deliveryCount = 0
    /// The launches that are not among `lines` yet.
    private var launched: [Delivery] = []

    /// - Parameter trace: the lines that will follow.
    init(_ trace: [String]) throws {
        self.taskNames = try TraceNames(trace)
        self.configuration.permittedTasks = .all
    }

    var counters: ActivityCounters { self.rig.engine.totals }

    /// Takes the next line of the trace.
    func take(_ line: String) throws {
        guard let object = try TraceNames.object(line) else { return }
        guard let time = object["t"] as? Double, let name = object["device"] as? String else {
            return try self.header(object)
        }
        let moment = Self.milliseconds(time)
        if let until = self.until, moment > until { return }
        self.advance(to: moment)
        self.rig.rig.pass(moment - self.rig.rig.now)
        _ = self.rig.dispatcher.advance(to: self.rig.rig.instant, devicesMax: .max)
        let device = self.number(name)
        self.collect()
        if let push = object["push"] as? [String: Any] { self.push(push, device) }
        if let report = object["conditions"] as? [String: Any] {
            _ = self.rig.dispatcher.conditions(Self.report(report), self.rig.rig.index(device))
        }
        let isCancelled = try self.takeTask(object, device)
        self.collect(isCancelled: isCancelled)
        self.settle()
    }

    /// Finishes the trace.
    func finish() {
        self.advance(to: self.until ?? .max)
    }

    static func milliseconds(_ seconds: Double) -> Int64 { Int64((seconds * 1000).rounded()) }

    func add(_ line: String, _ device: Int) { self.lines[self.names[device], default: []].append(line) }
}

// MARK: - Lines

extension TraceDriver {
    private func header(_ object: [String: Any]) throws {
        for (name, value) in object["policy"] as? [String: Double] ?? [:] {
            guard let parameter = PolicyParameter(rawValue: name), parameter.set(value, in: &self.configuration.policy)
            else {
                throw CocoaError(.propertyListReadCorrupt)
            }
        }
        if let steps = object["worker"] as? [[Any]] { self.script = steps.compactMap { TraceAnswer($0) } }
        for (name, steps) in object["tasks"] as? [String: [[Any]]] ?? [:] {
            self.taskScripts[name] = steps.compactMap { TraceAnswer($0) }
        }
        if let permitted = object["permitted"] as? [String] {
            self.configuration.permittedTasks = .none
            self.configuration.permittedTasks[EngineRig.topicName(0)] = permitted.map { IdentifierPattern($0) }
        }
        if let until = object["until"] as? Double { self.until = Self.milliseconds(until) }
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
        let request = SubscriptionRequest(
            slots: SubscriptionRequest.slotsMax,
            tasks: self.taskNames.tasks.map { IdentifierPattern($0) },
            sessions: self.taskNames.sessions.map { IdentifierPattern($0) },
            devices: [EngineRig.token(device)]
        )
        _ = EngineRig.topicName(0).withByteView { topic in
            self.rig.dispatcher.subscribed(DispatchRig.address(self.streamCount), topic: topic, request)
        }
    }

    private func push(_ push: [String: Any], _ device: Int) {
        guard let id = push["apnsID"] as? String,
            let priority = Priority(rawValue: UInt8(push["priority"] as? Int ?? 10))
        else { return }
        var expiration = Expiration.absent
        if let moment = push["expiration"] as? Double {
            expiration = moment == 0 ? .nowOrNever : .at(Instant(milliseconds: Self.milliseconds(moment)))
        }
        self.identifiers[EngineRig.apnsID(self.rig.rig.lastPush + 1)] = id
        self.rig.push(device, priority, expiration)
    }

    private static func report(_ object: [String: Any]) -> ConditionsReport {
        var report = ConditionsReport()
        report.appState = (object["appState"] as? String).flatMap(Conditions.AppState.init)
        report.backgroundRefresh = (object["backgroundRefresh"] as? String).flatMap(Conditions.BackgroundRefresh.init)
        report.thermalState = (object["thermalState"] as? String).flatMap(Conditions.ThermalState.init)
        report.memoryPressure = (object["memoryPressure"] as? String).flatMap(Conditions.MemoryPressure.init)
        report.batteryLevel = object["batteryLevel"] as? Double
        report.charging = object["charging"] as? Bool
        report.lowPowerMode = object["lowPowerMode"] as? Bool
        report.network = object["network"] as? Bool
        return report
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
            let script = delivery.task.map { self.taskScripts[$0.name] ?? TraceAnswer.reliable } ?? self.script
            self.planned.plan(script[turn % script.count], delivery, device, at: self.rig.rig.now)
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

    private func note(_ entry: HistoryEntry, _ device: Int, isCancelled: Bool) {
        let event = entry.event
        let what: String
        switch event.kind {
        case .registered, .removed, .conditions, .extended, .worker, .subscribed: return
        case .push(let disposition): what = "push \(disposition)"
        case .launch(.push, let attempt, let coalesced): what = "launch \(coalesced) \(attempt)"
        case .result(.push(let outcome)): what = "result \(outcome.rawValue)"
        case .discard(.push, let reason): what = "discard \(reason.rawValue)"
        case .launch, .result, .discard, .taskSubmitted, .taskRefused, .transfersFinished, .namePart:
            if let line = self.taskLine(entry, isCancelled: isCancelled) { self.add(line, device) }
            return
        }
        let id = event.apnsID.flatMap { self.identifiers[$0] } ?? "nobody"
        self.add("\(event.at.milliseconds) \(id) \(what)", device)
    }

    /// Returns and removes the first launch of this name that no line reports yet.
    func takeLaunched(_ name: String, _ kind: TaskKind) -> LaunchedTask? {
        let index = self.launched.firstIndex { delivery in
            delivery.task?.name == name && delivery.task?.task.kind == kind
        }
        return index.flatMap { self.launched.remove(at: $0).task }
    }
}

/// Requests and sessions of a trace.
extension TraceDriver {
    /// Applies the requests and sessions of a line.
    ///
    /// - Returns: true if a request was cancelled.
    func takeTask(_ object: [String: Any], _ device: Int) throws -> Bool {
        let index = self.rig.rig.index(device)
        if let submit = object["submit"] as? [String: Any] { try self.submit(Self.request(submit), device, index) }
        if let finished = object["finished"] as? [String: Any], let session = finished["session"] as? String {
            let count = UInt64(finished["count"] as? Int ?? 1)
            do throws(TaskRejection) {
                try self.rig.dispatcher.transfersFinished(session: session, count: count, id: nil, index)
            } catch {
                // A ninth session is counted but has no line.
                guard error == .tooManySessions else { throw CocoaError(.propertyListReadCorrupt) }
            }
        }
        guard let identifier = object["cancel"] as? String else { return false }
        self.rig.dispatcher.cancelTask(identifier, index)
        return true
    }

    private func submit(_ request: IncomingTask, _ device: Int, _ index: DeviceIndex) throws {
        do throws(TaskRejection) {
            _ = try self.rig.dispatcher.submit(request, index)
        } catch {
            guard case .policy(let refusal) = error else { throw CocoaError(.propertyListReadCorrupt) }
            self.add("\(self.rig.rig.now) task \(request.identifier) submit \(refusal.rawValue)", device)
        }
    }

    private static func request(_ object: [String: Any]) throws -> IncomingTask {
        guard let identifier = object["identifier"] as? String, let name = object["kind"] as? String else {
            throw CocoaError(.propertyListReadCorrupt)
        }
        var needs: TaskNeeds = []
        if object["requiresNetworkConnectivity"] as? Bool == true { needs.insert(.network) }
        if object["requiresExternalPower"] as? Bool == true { needs.insert(.externalPower) }
        let strategy = (object["strategy"] as? String).flatMap(TaskSubmission.Strategy.init) ?? .queue
        let kind: TaskSubmission.Kind
        switch name {
        case "appRefresh": kind = .appRefresh
        case "processing": kind = .processing(needs)
        case "continued": kind = .continued(strategy)
        default: throw CocoaError(.propertyListReadCorrupt)
        }
        let earliest = (object["earliestBegin"] as? Double).map { Instant(milliseconds: Self.milliseconds($0)) }
        return IncomingTask(identifier: identifier, kind: kind, earliestBegin: earliest)
    }

    /// Returns the simulator's line for an event of a request or a session; nil if it has none.
    func taskLine(_ entry: HistoryEntry, isCancelled: Bool) -> String? {
        let name = entry.name ?? "nobody"
        guard let kind = entry.event.kind.task else { return nil }
        let what: String
        switch entry.event.kind {
        case .taskSubmitted(_, let disposition): what = "submit \(disposition.rawValue)"
        case .launch(_, let attempt, _):
            guard let wake = self.takeLaunched(name, kind), wake.task.attempts == UInt32(attempt) else {
                return "\(entry.event.at.milliseconds) \(name) was launched, and no stream got it"
            }
            what = "launch \(kind.rawValue) \(wake.task.transfers) \(attempt)"
        case .result(let outcome): what = "result \(outcome.name)"
        case .discard(_, .replaced): return nil
        case .discard(_, .cancelled) where isCancelled: return nil
        case .discard(_, let reason): what = "discard \(reason.rawValue)"
        case .registered, .removed, .conditions, .extended, .push, .taskRefused, .transfersFinished, .worker,
            .subscribed, .namePart:
            return nil
        }
        let subject = kind == .urlSession ? "session" : "task"
        return "\(entry.event.at.milliseconds) \(subject) \(name) \(what)"
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
    var subject: String {
        guard let task = self.task else { return "" }
        return (task.task.kind == .urlSession ? "session " : "task ") + task.name
    }
}

/// The names of the requests and sessions of a trace.
struct TraceNames {
    private(set) var tasks: [String] = []
    private(set) var sessions: [String] = []

    init(_ trace: [String]) throws {
        for line in trace {
            let object = try Self.object(line) ?? [:]
            if let name = (object["submit"] as? [String: Any])?["identifier"] as? String, !self.tasks.contains(name) {
                self.tasks.append(name)
            }
            if let name = (object["finished"] as? [String: Any])?["session"] as? String, !self.sessions.contains(name) {
                self.sessions.append(name)
            }
        }
    }

    /// Parses a line of a trace; nil if it is blank.
    static func object(_ line: String) throws -> [String: Any]? {
        guard line.contains(where: { !$0.isWhitespace }) else { return nil }
        guard let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
            throw CocoaError(.propertyListReadCorrupt)
        }
        return object
    }
}
