import LaunchPolicy
import Text

/// Runs the launch policy on a trace in virtual time; the article "Traces" has the format.
///
/// Lines go in one at a time and outcomes come out in the order of time, so that memory holds the devices and
/// their waiting pushes and not the trace. At one moment, what devices do by themselves comes first, in the order
/// in which the trace first named them; then come the trace's events of that moment, in their order, each with all
/// that it causes at once.
package struct Simulator {
    private let overrides: [(name: Parameters.Name, value: Double)]
    private var parameters = Parameters()
    private var script = WorkerScript.reliable
    private var until: Instant?
    private var line = 0
    /// The moment of the latest event; nil before the first.
    private var latest: Instant?

    private var devices: [SimulatedDevice] = []
    private var numbers: [String: Int] = [:]
    private var due = DueHeap()
    /// The apns-ids of the pushes that wait or are in flight.
    private var identifiers: [PushHandle: String] = [:]
    private var lastHandle: UInt64 = 0
    private var summary = Summary()

    /// - Parameter overrides: parameters by name (`launchInterval` or `policy.launchInterval`), in seconds; they
    ///   win over the trace's header lines.
    /// - Throws: when a name or a value is not possible.
    package init(overrides: [(String, Double)] = []) throws(TraceError) {
        var known: [(name: Parameters.Name, value: Double)] = []
        var parameters = Parameters()
        for (key, value) in overrides {
            let key = key.hasPrefix("policy.") ? String(key.dropFirst("policy.".count)) : key
            guard let name = Parameters.Name(rawValue: key) else {
                let names = Parameters.Name.allCases.map(\.rawValue)
                let remedy = NearestMatch.remedy(for: key, among: names)
                throw TraceError(line: nil, fault: "unknown key \"policy.\(key)\"", remedy: remedy)
            }
            do {
                try parameters.set(name, to: value)
            } catch {
                let remedy = "it must be \(name.requirement)"
                throw TraceError(line: nil, fault: "\"policy.\(key)\" is \(value)", remedy: remedy)
            }
            known.append((name, value))
        }
        self.overrides = known
        self.parameters = parameters
    }

    /// Simulates a whole trace.
    ///
    /// - `trace`: the lines of the trace.
    /// - `output`: takes each line of the outcome, without a line end, as soon as it is known; the summary is the last.
    /// - Throws: at the first line that is not possible; what happened before it has been put out.
    package static func run(
        trace: some Sequence<String>,
        overrides: [(String, Double)] = [],
        output: (String) -> Void
    ) throws(TraceError) {
        var simulator = try Simulator(overrides: overrides)
        for line in trace { try simulator.take(line) { output($0.json) } }
        output(simulator.finish { output($0.json) }.json)
    }

    /// Takes the trace's next line; `output` gets what happens until then, and at once because of it.
    package mutating func take(_ text: String, output: (OutcomeLine) -> Void) throws(TraceError) {
        self.line += 1
        switch try TraceReader.read(text, line: self.line) {
        case .blank: break
        case .header(let header): try self.take(header)
        case .event(let event): try self.take(event, output)
        }
    }

    /// The trace is at its end: goes on until nothing more can happen, or to `until`.
    package mutating func finish(output: (OutcomeLine) -> Void) -> Summary {
        self.advance(to: self.until ?? .distantFuture, output)
        var summary = self.summary
        summary.pending = self.devices.count { $0.state.pending != nil }
        summary.inFlight = self.devices.count { $0.state.inFlight != nil }
        return summary
    }
}

// MARK: - Lines

extension Simulator {
    private mutating func take(_ header: TraceHeader) throws(TraceError) {
        guard self.latest == nil else {
            let remedy = "move it before the first event"
            throw TraceError(line: self.line, fault: "a header comes after the first event", remedy: remedy)
        }
        for (name, value) in header.parameters + self.overrides {
            do {
                try self.parameters.set(name, to: value)
            } catch {
                preconditionFailure("\(name) was checked when it was read")
            }
        }
        self.script = header.worker ?? self.script
        self.until = header.until ?? self.until
    }

    private mutating func take(_ event: TraceEvent, _ output: (OutcomeLine) -> Void) throws(TraceError) {
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
        let device = self.number(event.device)
        switch event.kind {
        case .push(let push): self.pushReceived(push, device, event.moment, output)
        case .conditions(let report):
            if let discarded = self.devices[device].state.conditionsReported(report) {
                self.discard(discarded, .forceQuit, device, event.moment, output)
            }
        }
        self.settle(device, event.moment, output)
    }

    private mutating func number(_ name: String) -> Int {
        if let known = self.numbers[name] { return known }
        let number = self.devices.count
        self.numbers[name] = number
        self.devices.append(SimulatedDevice(name: name))
        self.due.addDevice()
        return number
    }
}

// MARK: - Time

extension Simulator {
    /// Lets every device do what it does by itself up to `limit`, the moment itself included.
    private mutating func advance(to limit: Instant, _ output: (OutcomeLine) -> Void) {
        while let (device, moment) = self.due.first, moment <= limit {
            self.settle(device, moment, output)
        }
    }

    /// Lets one device do what it does at `now`, until nothing more happens.
    private mutating func settle(_ device: Int, _ now: Instant, _ output: (OutcomeLine) -> Void) {
        while self.step(device, now, output) {}
        let next = self.devices[device].nextMoment(self.parameters)
        precondition(next ?? .distantFuture > now, "a device that settled has nothing left to do")
        self.due.schedule(device, at: next)
    }

    /// Lets one device do one thing: end a wake, drop what expired, or launch, in this order.
    ///
    /// - Returns: whether it did something.
    private mutating func step(_ device: Int, _ now: Instant, _ output: (OutcomeLine) -> Void) -> Bool {
        if let answer = self.devices[device].answer, answer.moment <= now {
            self.answered(answer.answer, device, now, output)
            return true
        }
        let wake = self.devices[device].state.inFlight
        switch self.devices[device].state.timePassed(now, self.parameters) {
        case .wakeExpired(let action):
            guard let wake else { preconditionFailure("no wake was in flight") }
            self.wakeEnded(wake, .expired, action, device, now, output)
            return true
        case .pendingExpired(let handle):
            self.discard(handle, .expired, device, now, output)
            return true
        case .nothing:
            guard self.devices[device].state.isLaunchable(now, self.parameters) else { return false }
            self.devices[device].state.launched(at: now, self.parameters)
            self.launched(device, now, output)
            return true
        }
    }
}

// MARK: - What happens to a push

extension Simulator {
    private mutating func pushReceived(
        _ push: TracePush,
        _ device: Int,
        _ now: Instant,
        _ output: (OutcomeLine) -> Void
    ) {
        self.lastHandle += 1
        let handle = PushHandle(rawValue: self.lastHandle)
        self.identifiers[handle] = push.apnsID
        let arriving = ArrivingPush(handle: handle, priority: push.priority, expiration: push.expiration)
        let action = self.devices[device].state.pushReceived(
            arriving,
            at: now,
            workerIsFree: true,
            self.parameters
        )
        switch action {
        case .launched(let absorbed):
            self.emit(.push(.launched), handle, device, now, output)
            self.coalesce(absorbed)
            self.launched(device, now, output)
        case .waits(let absorbed):
            self.emit(.push(absorbed == nil ? .scheduled : .coalesced), handle, device, now, output)
            self.coalesce(absorbed)
        case .discarded:
            self.emit(.push(.discarded), handle, device, now, output)
            self.discard(handle, .expired, device, now, output)
        }
    }

    private mutating func launched(_ device: Int, _ now: Instant, _ output: (OutcomeLine) -> Void) {
        guard let wake = self.devices[device].state.inFlight else { preconditionFailure("nothing was launched") }
        self.devices[device].launched(wake, self.script)
        let event = OutcomeLine.Event.launch(coalesced: wake.push.coalesced, attempt: wake.push.attempts)
        self.emit(event, wake.push.handle, device, now, output)
    }

    private mutating func answered(
        _ answer: WorkerScript.Answer,
        _ device: Int,
        _ now: Instant,
        _ output: (OutcomeLine) -> Void
    ) {
        guard let wake = self.devices[device].state.inFlight else { preconditionFailure("no wake is in flight") }
        func reported(_ result: FetchResult) -> WakeEndedAction {
            self.devices[device].state.resultReported(result, at: now, self.parameters)
        }
        switch answer {
        case .newData: self.wakeEnded(wake, .newData, reported(.newData), device, now, output)
        case .noData: self.wakeEnded(wake, .noData, reported(.noData), device, now, output)
        case .failed: self.wakeEnded(wake, .failed, reported(.failed), device, now, output)
        case .lost:
            let action = self.devices[device].state.wakeLost(at: now, takingBackAttempt: false, self.parameters)
            self.wakeEnded(wake, .lost, action, device, now, output)
        case .none: preconditionFailure("an answer that never comes has no moment")
        }
    }

    private mutating func wakeEnded(
        _ wake: WakeInFlight,
        _ outcome: WakeOutcome,
        _ action: WakeEndedAction,
        _ device: Int,
        _ now: Instant,
        _ output: (OutcomeLine) -> Void
    ) {
        self.devices[device].answer = nil
        self.emit(.result(outcome), wake.push.handle, device, now, output)
        switch action {
        case .completed(let handle):
            self.summary.completed += 1
            self.identifiers[handle] = nil
        case .retries: break
        case .absorbed(let handle): self.coalesce(handle)
        case .discarded(let handle, let reason): self.discard(handle, reason, device, now, output)
        case .nothing: preconditionFailure("the simulator launches no empty wakes")
        }
    }

    private mutating func coalesce(_ absorbed: PushHandle?) {
        guard let absorbed else { return }
        self.summary.coalesced += 1
        self.identifiers[absorbed] = nil
    }

    private mutating func discard(
        _ handle: PushHandle,
        _ reason: DiscardReason,
        _ device: Int,
        _ now: Instant,
        _ output: (OutcomeLine) -> Void
    ) {
        self.emit(.discard(reason), handle, device, now, output)
        self.identifiers[handle] = nil
    }

    private mutating func emit(
        _ event: OutcomeLine.Event,
        _ handle: PushHandle,
        _ device: Int,
        _ now: Instant,
        _ output: (OutcomeLine) -> Void
    ) {
        guard let apnsID = self.identifiers[handle] else { preconditionFailure("the push has ended already") }
        self.summary.count(event)
        output(OutcomeLine(moment: now, device: self.devices[device].name, apnsID: apnsID, event: event))
    }
}
