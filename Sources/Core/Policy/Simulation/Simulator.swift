import Wire

/// Runs the launch policy on a trace in virtual time. The article "Traces" describes the format of a trace.
///
/// A simulator reads one line at a time and emits outcomes in order of time. Its memory therefore does not depend on
/// the length of the trace.
///
/// At each instant, the due events of devices come first. Devices are processed in the order in which the trace first
/// named them. Then the trace's events of that instant follow in order, each with its immediate effects.
package struct Simulator {
    private let overrides: [(parameter: PolicyParameter, value: Double)]
    private(set) var parameters = Parameters()
    private(set) var script = WorkerScript.reliable
    /// Scripted outcomes by identifier or session name. The default is `TaskScript.reliable`.
    private(set) var taskScripts: [String: TaskScript] = [:]
    /// The patterns of permitted identifiers; nil permits all.
    private(set) var permitted: [IdentifierPattern]?
    private var until: Instant?
    private var line = 0
    /// The time of the latest event; nil before the first.
    private var latest: Instant?
    /// The time of the simulation.
    var now = Instant(milliseconds: 0)

    var devices: [SimulatedDevice] = []
    private var numbers: [String: Int] = [:]
    private var due = MomentQueue<Int>()
    /// The apns-ids of the pushes that are pending or in flight.
    var identifiers: [PushHandle: String] = [:]
    var lastHandle: UInt64 = 0
    /// The identifiers and session names in the trace, indexed by their numbers in the policy.
    var taskNames: [String] = []
    var taskNumbers: [String: TaskName] = [:]
    var summary = Summary()
    /// The lines that were not passed to the output yet.
    private var lines: [OutcomeLine] = []
    /// The number of launches after which the simulation stops. Without a limit, a wake that is lost at its launch
    /// could be launched again and again at the same instant.
    package var launchesLeft = Int.max
    /// True if the simulation has stopped because of `launchesLeft`.
    package var isStopped: Bool { self.launchesLeft <= 0 }

    /// - Parameter overrides: parameters by name (`launchInterval` or `policy.launchInterval`), in seconds. They take
    ///   precedence over the trace's header lines.
    /// - Throws: if a name or a value is not valid.
    package init(overrides: [(String, Double)] = []) throws(TraceError) {
        var known: [(parameter: PolicyParameter, value: Double)] = []
        var parameters = Parameters()
        for (key, value) in overrides {
            let key = key.hasPrefix("policy.") ? String(key.dropFirst("policy.".count)) : key
            guard let parameter = PolicyParameter(rawValue: key) else {
                let remedy = NearestMatch.remedy(for: key, among: PolicyParameter.allCases.map(\.rawValue))
                throw TraceError(line: nil, fault: "unknown key \"policy.\(key)\"", remedy: remedy)
            }
            guard parameter.set(value, in: &parameters) else {
                let remedy = "it must be \(parameter.requirement)"
                throw TraceError(line: nil, fault: "\"policy.\(key)\" is \(value)", remedy: remedy)
            }
            known.append((parameter, value))
        }
        self.overrides = known
        self.parameters = parameters
    }

    /// Simulates a whole trace.
    ///
    /// - `trace`: the lines of the trace.
    /// - `output`: called immediately with each line of output, without its line end. The summary is the last line.
    /// - Throws: at the first invalid line, after the output of earlier lines.
    package static func run(
        trace: some Sequence<String>,
        overrides: [(String, Double)] = [],
        output: (String) -> Void
    ) throws(TraceError) {
        var simulator = try Simulator(overrides: overrides)
        for line in trace { try simulator.take(line) { output($0.json) } }
        output(simulator.finish { output($0.json) }.json)
    }

    /// Processes the next line of the trace. `output` gets the outcomes up to the line's time, and the line's immediate
    /// effects.
    package mutating func take(_ text: String, _ output: (OutcomeLine) -> Void) throws(TraceError) {
        self.line += 1
        switch try TraceReader.read(text, line: self.line) {
        case .blank: break
        case .header(let header): try self.take(header)
        case .event(let event): try self.take(event, output)
        }
    }

    /// Finishes the trace: simulates until the header's `until`, or until nothing more can happen.
    package mutating func finish(_ output: (OutcomeLine) -> Void) -> Summary {
        self.advance(to: self.until ?? .distantFuture, output)
        var summary = self.summary
        for device in self.devices {
            if device.lanes.device.pending != nil { summary["pending"] += 1 }
            if device.lanes.device.inFlight != nil { summary["inFlight"] += 1 }
            for task in device.lanes.tasks.waiting { summary.count("waiting", task) }
            for wake in device.lanes.tasks.inFlight { summary.count("inFlight", wake.task) }
        }
        return summary
    }
}

// MARK: - Lines

extension Simulator {
    /// Applies a header, which must precede the first event.
    package mutating func take(_ header: TraceHeader) throws(TraceError) {
        guard self.latest == nil else {
            let remedy = "move it before the first event"
            throw TraceError(line: self.line, fault: "a header comes after the first event", remedy: remedy)
        }
        for (parameter, value) in header.parameters + self.overrides {
            precondition(
                parameter.set(value, in: &self.parameters),
                "\(parameter.rawValue) was checked when it was read"
            )
        }
        self.script = header.worker ?? self.script
        self.taskScripts.merge(header.tasks) { $1 }
        self.permitted = header.permitted ?? self.permitted
        self.until = header.until ?? self.until
    }

    /// Applies the next event. `output` gets the outcomes up to the event's time, and the event's immediate effects.
    package mutating func take(_ event: TraceEvent, _ output: (OutcomeLine) -> Void) throws(TraceError) {
        if let latest = self.latest, event.moment < latest {
            throw TraceError(
                line: self.line,
                fault: "time runs backwards, by \(latest.milliseconds - event.moment.milliseconds) ms",
                remedy: "sort the events by \"t\""
            )
        }
        self.latest = event.moment
        if let until = self.until, event.moment > until { return }
        self.advance(to: event.moment, output)
        self.now = event.moment
        let device = self.number(event.device)
        switch event.kind {
        case .push(let push): self.pushReceived(push, device)
        case .conditions(let report): self.conditionsReported(report, device)
        case .submit(let request): self.submitted(request, device)
        case .finished(let session, let count): self.transfersFinished(session, count, device)
        case .cancel(let identifier): self.cancelled(identifier, device)
        }
        self.settle(device, output)
    }

    private mutating func number(_ name: String) -> Int {
        if let known = self.numbers[name] { return known }
        let number = self.devices.count
        self.numbers[name] = number
        self.devices.append(SimulatedDevice(name: name))
        return number
    }

    private mutating func conditionsReported(_ report: ConditionsReport, _ device: Int) {
        let action = self.devices[device].lanes.conditionsReported(report, at: self.now, self.parameters)
        if let discarded = action.discardedPush { self.discard(discarded, .forceQuit, device) }
        for task in action.discarded { self.discard(task, .forceQuit, device) }
        for wake in action.ended { self.taskEnded(wake, .interrupted, nil, device) }
    }
}

// MARK: - Time

extension Simulator {
    /// Applies the due events of all devices up to and including `limit`.
    package mutating func advance(to limit: Instant, _ output: (OutcomeLine) -> Void) {
        while !self.isStopped, let moment = self.due.first?.moment, moment <= limit.milliseconds {
            self.now = Instant(milliseconds: moment)
            var devices: [Int] = []
            while let entry = self.due.popDue(moment) { devices.append(entry.value) }
            // Devices that are due at the same instant are processed in the order in which the trace first named them.
            for device in devices.sorted() where self.devices[device].due == self.now { self.settle(device, output) }
        }
    }

    private mutating func schedule(_ device: Int, at next: Instant?) {
        guard self.devices[device].due != next else { return }
        self.devices[device].due = next
        if let next { self.due.insert(device, at: next.milliseconds) }
        guard self.due.count > 64, self.due.count > 4 * self.devices.count else { return }
        let devices = self.devices
        self.due.removeAll { devices[$0.value].due?.milliseconds != $0.moment }
    }

    /// Applies the events of one device that are due now, until none is left.
    private mutating func settle(_ device: Int, _ output: (OutcomeLine) -> Void) {
        repeat {
            for line in self.lines { output(line) }
            self.lines.removeAll(keepingCapacity: true)
        } while !self.isStopped && self.step(device)
        guard !self.isStopped else { return }
        let next = self.devices[device].nextMoment(from: self.now, self.parameters)
        precondition(next ?? .distantFuture > self.now, "a device that settled has nothing left to do")
        self.schedule(device, at: next)
    }

    /// Applies one event of a device: ends a wake, drops an expired push, or launches, in this order.
    ///
    /// - Returns: true if there was an event.
    private mutating func step(_ device: Int) -> Bool {
        switch self.devices[device].dueEnd(self.now) {
        case .push(let answer):
            self.answered(answer, device)
            return true
        case .task(let wake, let answer):
            self.answered(wake, answer, device)
            return true
        case .expiry, nil: break
        }
        let wake = self.devices[device].lanes.device.inFlight
        switch self.devices[device].lanes.timePassed(self.now, self.parameters) {
        case .pushExpired(let action):
            guard let wake else { preconditionFailure("no wake was in flight") }
            self.wakeEnded(wake, .expired, action, device)
        case .taskExpired(let wake, let action): self.taskEnded(wake, .expired, action, device)
        case .taskEndedByPressure(let wake, let outcome, let action): self.taskEnded(wake, outcome, action, device)
        case .pendingExpired(let handle): self.discard(handle, .expired, device)
        case .nothing: return self.launch(device)
        }
        return true
    }

    /// Launches the next push or task that may launch now. Returns false if there is none.
    private mutating func launch(_ device: Int) -> Bool {
        let parameters = self.parameters
        switch self.devices[device].lanes.nextLaunch(at: self.now, parameters, hasSlot: { _ in true }) {
        case .push:
            self.devices[device].lanes.pushLaunched(at: self.now, parameters)
            self.launched(device)
        case .task(let task):
            let wake = self.devices[device].lanes.taskLaunched(task.arrival, at: self.now, parameters)
            self.taskLaunched(wake, device)
        case nil: return false
        }
        self.launchesLeft -= 1
        return true
    }

    /// Adds a line of output.
    mutating func emit(_ event: OutcomeLine.Event, _ subject: OutcomeLine.Subject, _ device: Int) {
        let line = OutcomeLine(moment: self.now, device: self.devices[device].name, subject: subject, event: event)
        self.lines.append(line)
    }
}

// MARK: - Events of pushes

extension Simulator {
    private mutating func pushReceived(_ push: TracePush, _ device: Int) {
        self.lastHandle += 1
        let handle = PushHandle(rawValue: self.lastHandle)
        self.identifiers[handle] = push.apnsID
        self.summary["accepted"] += 1
        let action = self.devices[device].lanes.pushReceived(
            handle,
            push.priority,
            push.expiration,
            at: self.now,
            workerIsFree: true,
            self.parameters
        )
        switch action {
        case .launched(let absorbed):
            self.emit(.arrival(.launched), handle, device)
            self.coalesce(absorbed)
            self.launched(device)
        case .waits(let absorbed):
            self.emit(.arrival(absorbed == nil ? .scheduled : .coalesced), handle, device)
            self.coalesce(absorbed)
        case .discarded:
            self.emit(.arrival(.discarded), handle, device)
            self.discard(handle, .expired, device)
        }
    }

    private mutating func launched(_ device: Int) {
        guard let wake = self.devices[device].lanes.device.inFlight else { preconditionFailure("nothing was launched") }
        self.devices[device].launched(wake, self.script)
        self.summary["launched"] += 1
        let event = OutcomeLine.Event.launch(
            .push,
            count: UInt64(wake.push.coalesced),
            attempt: wake.push.attempts
        )
        self.emit(event, wake.push.handle, device)
    }

    private mutating func answered(_ answer: PushScriptAnswer, _ device: Int) {
        guard let wake = self.devices[device].lanes.device.inFlight else { preconditionFailure("no wake is in flight") }
        guard let outcome = WakeOutcome(rawValue: answer.rawValue) else {
            preconditionFailure("an answer that never comes has no moment")
        }
        let action = self.devices[device].lanes.pushEnded(outcome, at: self.now, self.parameters)
        self.wakeEnded(wake, outcome, action, device)
    }

    private mutating func wakeEnded(
        _ wake: WakeInFlight,
        _ outcome: WakeOutcome,
        _ action: WakeEndedAction,
        _ device: Int
    ) {
        self.devices[device].answer = nil
        self.summary["results.\(outcome.rawValue)"] += 1
        self.emit(.result(.push(outcome)), wake.push.handle, device)
        switch action {
        case .completed(let handle):
            self.summary["completed"] += 1
            self.identifiers[handle] = nil
        case .retries: break
        case .absorbed(let handle): self.coalesce(handle)
        case .discarded(let handle, let reason): self.discard(handle, reason, device)
        case .nothing: preconditionFailure("the simulator launches no empty wakes")
        }
    }

    private mutating func coalesce(_ absorbed: PushHandle?) {
        guard let absorbed else { return }
        self.summary["coalesced"] += 1
        self.identifiers[absorbed] = nil
    }

    private mutating func discard(_ handle: PushHandle, _ reason: DiscardReason, _ device: Int) {
        self.summary["discarded.\(reason.rawValue)"] += 1
        self.emit(.discard(reason), handle, device)
        self.identifiers[handle] = nil
    }

    private mutating func emit(_ event: OutcomeLine.Event, _ handle: PushHandle, _ device: Int) {
        guard let apnsID = self.identifiers[handle] else { preconditionFailure("the push has ended already") }
        self.emit(event, .push(apnsID), device)
    }
}
