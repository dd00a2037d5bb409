import Engine
import Policy
package import Wire

/// A replay of a device's recorded pushes and tasks in the simulator, under the active policy or a changed one.
///
/// The simulated device starts as one that was never launched, and has only the recorded conditions. Its workers give
/// the recorded answers, with the recorded delays, in the recorded order.
struct PolicyReplay: Sendable {
    /// The maximum number of recorded events to replay per device: the latest ones.
    static let eventsMax = 2048
    /// The maximum number of launches in the replay of one device.
    private static let launchesMax = 16 * Self.eventsMax

    /// The active policy.
    let parameters: Parameters
    let now: Instant

    /// Returns the record of a device from its latest events.
    func recorded(_ token: String, _ recent: [HistoryEntry], _ offset: WallOffset) -> RecordedDevice {
        RecordedDevice(token, recent: recent, self.parameters, until: self.now, offset)
    }

    /// Appends the recorded, the replayed and the changed outcome of one device as an object.
    ///
    /// - `isWhole`: true if the record contains all recorded events of the device.
    /// - Throws: `APIError` if the record cannot be simulated; nothing is appended then.
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
        recorded.outcome.write("recorded", to: &writer)
        replayed.write("replayed", to: &writer)
        changed.write("whatIf", to: &writer)
        writer.endObject()
    }

    /// Appends the members `policy`, the active policy, and `changes`, the values to try.
    func writePolicies(_ changes: [PolicyChange], to writer: inout JSONWriter) {
        let policy = PolicyParameter.allCases.map { ($0, $0.value(in: self.parameters)) }
        for (name, values) in [("policy", policy), ("changes", changes)] as [(StaticString, [PolicyChange])] {
            writer.beginObject(name)
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
    /// - Throws: `APIError` if the record cannot be simulated, or has too many launches under this policy.
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
            simulator.launchesLeft = Self.launchesMax
            for event in recorded.events {
                simulator.advance(to: event.moment) { outcome.take($0, from: beginning) }
                // The simulator writes no line for a report of finished transfers, nor for the cancellation of a
                // waiting task.
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
            guard simulator.isStopped else { return outcome }
        } catch {
            throw APIError(500, "ReplayFailed", "What was recorded cannot be replayed: \(error).")
        }
        throw APIError(
            400,
            "BadPolicy",
            "Under this policy a device launches \(Self.launchesMax) times or more. Try a greater launchInterval, or "
                + "a smaller dailyLaunches or maxAttempts."
        )
    }
}

extension ReplayOutcome {
    /// Counts an event of a simulation that began at `wall`, in milliseconds since 1970.
    fileprivate mutating func take(_ line: OutcomeLine, from wall: Int64) {
        let moment = wall + line.moment.milliseconds
        switch (line.event, line.subject) {
        case (.arrival(let disposition), .push):
            self.pushReceived(at: moment, isDiscarded: disposition == .discarded)
        case (.arrival, let task): self.taskSubmitted(task, at: moment)
        case (.refusal, _): self.taskRefused()
        case (.launch(.push, let coalesced, let attempt), _):
            self.launched(at: moment, attempt: Int(attempt), coalesced: Int(coalesced))
        case (.launch, let task): self.taskLaunched(task, at: moment)
        case (.result(.push(let outcome)), _): self.ended(outcome)
        case (.result(.task(_, let outcome)), let task): self.taskEnded(task, outcome)
        case (.discard, .push): self.pushDiscarded(at: moment)
        case (.discard, let task): self.taskDiscarded(task, at: moment)
        }
    }
}

/// A policy parameter and the value to try, in the unit of the configuration.
typealias PolicyChange = (parameter: PolicyParameter, value: Double)

/// The policy parameters to try in a replay of recorded pushes and tasks, written as
/// `{"policy": {"launchInterval": 600}}` or as `launchInterval=600`.
package struct WhatIf: Sendable {
    /// The changes to the active policy.
    private(set) var changes: [PolicyChange] = []
    private var parameters = Parameters()

    /// Parses the body of a request.
    ///
    /// - Throws: `APIError` with the reason `BadPolicy`, the parameter's name, the fault and the valid values.
    package init(_ body: JSONValue) throws(APIError) {
        if let other = body.members.first(where: { $0.name != "policy" }) {
            throw Self.fault("\(other.name) is not a member of a what-if; it takes policy alone.")
        }
        guard case .object(let members)? = body["policy"] else {
            throw Self.fault("policy is \(body["policy"]?.kind ?? "missing"); send an object of parameters.")
        }
        for member in members {
            if case .number(let number) = member.value {
                try self.set(member.name, number.double, number.text)
            } else {
                try self.set(member.name, nil, member.value.described)
            }
        }
    }

    /// Creates a value that changes no parameter.
    init() {}

    /// Adds a change, which replaces an earlier change of the same parameter.
    ///
    /// - `value`: the value to try; nil if the received value is not a number.
    /// - `text`: the received value, for the error.
    /// - Throws: `APIError` if the parameter does not exist, or does not allow `value`.
    mutating func set(_ name: String, _ value: Double?, _ text: String) throws(APIError) {
        guard let parameter = PolicyParameter(rawValue: name) else {
            let names = PolicyParameter.allCases.map(\.rawValue)
            let nearest = NearestMatch.find(name, in: names).map { "; did you mean \($0)?" } ?? "."
            throw Self.fault("\(name) is not a parameter\(nearest) Parameters are \(names.joined(separator: ", ")).")
        }
        guard let value, parameter.set(value, in: &self.parameters) else {
            throw Self.fault("\(name) is \(text); it takes \(parameter.requirement).")
        }
        self.changes.removeAll { $0.parameter == parameter }
        self.changes.append((parameter, value))
    }

    private static func fault(_ message: String) -> APIError { APIError(400, "BadPolicy", message) }
}
