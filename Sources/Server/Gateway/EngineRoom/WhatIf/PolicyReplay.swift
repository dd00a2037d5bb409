import Engine
import Policy
import Wire

/// Replays the recorded pushes and tasks of a device with the simulator, under the active policy and under another.
///
/// The simulator begins with a device that was never launched, and knows the recorded conditions alone; the answers of
/// workers, and their delays, are taken in the order they were recorded.
struct PolicyReplay: Sendable {
    /// The maximum number of events that are looked back over.
    static let eventsMax = 2048

    /// The active policy.
    let parameters: Parameters
    let now: Instant

    /// The record of a device, from its latest events.
    func recorded(_ token: String, _ recent: [HistoryEntry], _ offset: WallOffset) -> RecordedDevice {
        RecordedDevice(token, recent: recent, self.parameters, until: self.now, offset)
    }

    /// Appends the answer of one device as an object.
    ///
    /// - Parameter isWhole: true if nothing that was recorded is left out.
    /// - Throws: `APIError` when what was recorded cannot be simulated; nothing is appended then.
    func write(
        _ token: DeviceToken,
        _ recorded: RecordedDevice,
        _ changes: [PolicyChange],
        isWhole: Bool,
        to writer: inout JSONWriter,
        _ offset: WallOffset
    ) throws(APIError) {
        let replayed = try self.outcome(of: recorded, [], offset)
        let changed = changes.isEmpty ? replayed : try self.outcome(of: recorded, changes, offset)
        writer.beginObject()
        writer.hex("token") { token.writeHex(to: &$0) }
        writer.member("from", recorded.beginning, offset)
        writer.member("until", self.now, offset)
        writer.member("pushes", recorded.pushes)
        writer.member("tasks", recorded.tasks)
        writer.member("assumed", recorded.assumed)
        writer.member("conditionReports", recorded.conditionReports)
        writer.member("isWhole", isWhole)
        self.writePolicies(changes, to: &writer)
        writer.key("recorded")
        recorded.outcome.write(to: &writer)
        writer.key("replayed")
        replayed.write(to: &writer)
        writer.key("whatIf")
        changed.write(to: &writer)
        writer.endObject()
    }

    /// Appends the active policy and the changes to it as members.
    func writePolicies(_ changes: [PolicyChange], to writer: inout JSONWriter) {
        let policy = PolicyParameter.allCases.map { ($0, $0.value(in: self.parameters)) }
        for (name, values) in [("policy", policy), ("changes", changes)] as [(StaticString, [PolicyChange])] {
            writer.key(name)
            writer.beginObject()
            for (parameter, value) in values {
                writer.key(parameter.rawValue)
                writer.number(value)
            }
            writer.endObject()
        }
    }

    /// Returns the record as a trace for `wakegate simulate`, under the active policy.
    static func trace(_ recorded: RecordedDevice) -> Outcome {
        let lines = [recorded.header().json] + recorded.events.map(\.json)
        return .document(Outcome.Document(kind: .trace, bytes: Array(lines.map { $0 + "\n" }.joined().utf8)))
    }

    /// Replays the record of a device.
    ///
    /// - Throws: `APIError` when it cannot be simulated.
    func outcome(
        of recorded: RecordedDevice,
        _ changes: [PolicyChange],
        _ offset: WallOffset
    ) throws(APIError) -> ReplayOutcome {
        var outcome = ReplayOutcome()
        guard let beginning = recorded.beginning.map({ offset.wall($0) }) else { return outcome }
        do throws(TraceError) {
            var simulator = try Simulator()
            try simulator.take(recorded.header(changes))
            for event in recorded.events {
                simulator.advance(to: event.moment) { outcome.take($0, from: beginning) }
                // Neither has a line in the simulator's output.
                let wall = beginning + event.moment.milliseconds
                switch event.kind {
                case .finished(let session, _): outcome.taskSubmitted(.session(session), at: wall)
                case .cancel(let identifier): outcome.taskDiscarded(.task(identifier), at: wall)
                case .push, .conditions, .submit: break
                }
                try simulator.take(event) { outcome.take($0, from: beginning) }
            }
            _ = simulator.finish { outcome.take($0, from: beginning) }
            outcome.finish(at: offset.wall(self.now))
        } catch {
            throw APIError(500, "ReplayFailed", "What was recorded cannot be replayed: \(error).")
        }
        return outcome
    }
}

extension ReplayOutcome {
    /// Takes an event of a simulation that began at `wall`, in milliseconds since 1970.
    fileprivate mutating func take(_ line: Simulator.Line, from wall: Int64) {
        switch line {
        case .push(let line):
            let moment = wall + line.moment.milliseconds
            switch line.event {
            case .push(let disposition): self.pushReceived(at: moment, isDiscarded: disposition == .discarded)
            case .launch(let coalesced, let attempt):
                self.launched(at: moment, attempt: Int(attempt), coalesced: Int(coalesced))
            case .result(let outcome): self.ended(outcome)
            case .discard: self.pushDiscarded(at: moment)
            }
        case .task(let line):
            let moment = wall + line.moment.milliseconds
            switch line.event {
            case .submit(.refused): self.taskRefused()
            case .submit: self.taskSubmitted(line.subject, at: moment)
            case .launch: self.taskLaunched(line.subject, at: moment)
            case .result(let outcome): self.taskEnded(line.subject, outcome)
            case .discard: self.taskDiscarded(line.subject, at: moment)
            }
        }
    }
}
