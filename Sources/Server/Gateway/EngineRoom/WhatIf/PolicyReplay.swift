import Engine
import Policy
import Wire

/// Replays the recorded pushes of a device in the simulator, under the active policy and under another.
///
/// The simulation starts with a device that was never launched, and has no holds. The workers' results and response
/// times are used in the recorded order.
package struct PolicyReplay: Sendable {
    /// The maximum number of events used; each costs some microseconds.
    static let eventsMax = 2048

    let token: DeviceToken
    let whatIf: WhatIf
    /// The policy in effect for the device.
    let parameters: Parameters
    let now: Instant

    /// Appends the answer as an object.
    ///
    /// - Parameter recent: the recent events of the device, the newest first.
    /// - Throws: `APIError` if the recorded pushes cannot be simulated; nothing is appended then.
    func write(_ recent: [HistoryEvent], to writer: inout JSONWriter, _ offset: WallOffset) throws(APIError) {
        let recorded = RecordedPushes(recent: recent, until: self.now, offset)
        let replayed = try self.outcome(of: recorded, changes: [], offset)
        let changed = try self.outcome(of: recorded, changes: self.whatIf.changes, offset)
        writer.beginObject()
        writer.key("token")
        writer.hex { self.token.writeHex(to: &$0) }
        writer.key("from")
        writer.moment(recorded.pushes.first?.at, offset)
        writer.key("until")
        writer.moment(self.now, offset)
        writer.key("pushes")
        writer.integer(recorded.pushes.count)
        writer.key("assumed")
        writer.integer(recorded.pushes.count { $0.terms == nil })
        writer.key("conditionReports")
        writer.integer(recorded.conditionReports)
        writer.key("isWhole")
        writer.bool(recent.count < Self.eventsMax)
        writer.key("policy")
        Self.write(PolicyParameter.allCases.map { ($0, $0.value(in: self.parameters)) }, to: &writer)
        writer.key("changes")
        Self.write(self.whatIf.changes, to: &writer)
        writer.key("recorded")
        recorded.outcome.write(to: &writer)
        writer.key("replayed")
        replayed.write(to: &writer)
        writer.key("whatIf")
        changed.write(to: &writer)
        writer.endObject()
    }

    /// Returns the recorded pushes as a trace for `wakegate simulate`, under the active policy.
    ///
    /// - Parameter recent: the latest events of the device, the newest first.
    func trace(_ recent: [HistoryEvent], _ offset: WallOffset) -> Outcome {
        let recorded = RecordedPushes(recent: recent, until: self.now, offset)
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("policy")
        Self.write(PolicyParameter.allCases.map { ($0, $0.value(in: self.parameters)) }, to: &writer)
        writer.endObject()
        let lines = [writer.buffer.view.string] + self.trace(of: recorded, from: recorded.pushes.first?.at ?? self.now)
        return .document(Outcome.Document(kind: .trace, bytes: Array(lines.map { $0 + "\n" }.joined().utf8)))
    }

    private static func write(_ values: [(parameter: PolicyParameter, value: Double)], to writer: inout JSONWriter) {
        writer.beginObject()
        for (parameter, value) in values {
            writer.key(parameter.rawValue)
            writer.number(value)
        }
        writer.endObject()
    }

    // MARK: Simulation

    private func outcome(
        of recorded: RecordedPushes,
        changes: [(parameter: PolicyParameter, value: Double)],
        _ offset: WallOffset
    ) throws(APIError) -> ReplayOutcome {
        var outcome = ReplayOutcome()
        guard let beginning = recorded.pushes.first?.at else { return outcome }
        let changed = Set(changes.map(\.parameter))
        let kept = PolicyParameter.allCases.filter { !changed.contains($0) }.map { ($0, $0.value(in: self.parameters)) }
        let overrides = (kept + changes).map { ($0.0.rawValue, $0.1) }
        let wall = offset.wall(beginning)
        do throws(TraceError) {
            var simulator = try Simulator(overrides: overrides)
            for line in self.trace(of: recorded, from: beginning) {
                try simulator.take(line) { outcome.take($0, from: wall) }
            }
            _ = simulator.finish { outcome.take($0, from: wall) }
            outcome.finish(at: offset.wall(self.now))
        } catch {
            throw APIError(500, "ReplayFailed", "What was recorded cannot be replayed: \(error).")
        }
        return outcome
    }

    /// Returns the trace: the workers' results, the end, and one line per push.
    private func trace(of recorded: RecordedPushes, from beginning: Instant) -> [String] {
        func seconds(_ milliseconds: Int64) -> String {
            let rest = String(1000 + milliseconds % 1000).dropFirst()
            return "\(milliseconds / 1000).\(rest)"
        }
        var lines: [String] = []
        if !recorded.answers.isEmpty {
            let steps = recorded.answers.map { answer in
                let word = answer.outcome == .expired ? "none" : answer.outcome.rawValue
                let delayMax = answer.wasExtended ? self.parameters.executionWindow - 1 : answer.delay
                return "[\"\(word)\",\(seconds(min(answer.delay, delayMax)))]"
            }
            lines.append("{\"worker\":[\(steps.joined(separator: ","))]}")
        }
        lines.append("{\"until\":\(seconds(max(0, self.now.milliseconds - beginning.milliseconds)))}")
        let device = self.token.hex
        var moment: Int64 = 0
        for (number, push) in recorded.pushes.enumerated() {
            moment = max(moment, push.at.milliseconds - beginning.milliseconds)
            var members = "\"apnsID\":\"\(number)\",\"priority\":\(push.terms?.priority.rawValue ?? 5)"
            switch push.terms?.lifetime ?? .unlimited {
            case .unlimited: break
            case .nowOrNever: members += ",\"expiration\":0"
            case .seconds(let lifetime): members += ",\"expiration\":\(seconds(max(1, moment + lifetime * 1000)))"
            }
            lines.append("{\"t\":\(seconds(moment)),\"device\":\"\(device)\",\"push\":{\(members)}}")
        }
        return lines
    }
}

extension ReplayOutcome {
    /// Takes an event of a simulation that began at `wall`, in milliseconds since 1970.
    fileprivate mutating func take(_ line: OutcomeLine, from wall: Int64) {
        let moment = wall + line.moment.milliseconds
        switch line.event {
        case .push(let disposition): self.pushReceived(at: moment, isDiscarded: disposition == .discarded)
        case .launch(let coalesced, let attempt):
            self.launched(at: moment, attempt: Int(attempt), coalesced: Int(coalesced))
        case .result(let outcome): self.ended(outcome)
        case .discard: self.pushDiscarded(at: moment)
        }
    }
}
