import Wire

/// Reads the lines of a trace, one at a time.
struct TraceReader {
    private static let kindNames = ["push", "conditions", "submit", "finished", "cancel"]
    private static let headerNames = ["policy", "worker", "until", "tasks", "permitted"]
    private static let eventNames = ["t", "device"] + Self.kindNames
    private static let parameterNames = PolicyParameter.allCases.map(\.rawValue)
    private static let stepRequirement = "pairs such as [\"newData\", 1.0]: an answer and its seconds after the launch"

    /// What line number `line`, from 1, says.
    static func read(_ text: String, line: Int) throws(TraceError) -> TraceLine {
        guard !text.utf8.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }) else { return .blank }
        let value: JSONValue
        do {
            value = try JSONReader.read(text)
        } catch {
            let fault = "not JSON at column \(error.column): \(error.what)"
            throw TraceError(line: line, fault: fault, remedy: "each line must be one whole JSON object")
        }
        let object = try TraceObject(value, line: line, known: Self.eventNames + Self.headerNames)
        let headers = object.names.filter(Self.headerNames.contains)
        guard !headers.isEmpty else { return .event(try Self.event(object)) }
        guard headers.count == object.names.count else {
            let fault = "\"\(headers[0])\" stands beside keys of an event"
            throw TraceError(line: line, fault: fault, remedy: "give headers a line of their own")
        }
        return .header(try Self.header(object))
    }

    // MARK: Headers

    private static func header(_ object: TraceObject) throws(TraceError) -> TraceHeader {
        var header = TraceHeader()
        if let policy = object["policy"] {
            header.parameters = try Self.parameters(policy, line: object.line)
        }
        if let worker = object["worker"] {
            header.worker = try Self.worker(worker, in: object)
        }
        if let tasks = object["tasks"] { header.tasks = try Self.tasks(tasks, line: object.line) }
        if let permitted = object["permitted"] { header.permitted = try Self.permitted(permitted, in: object) }
        header.until = try object.time("until").map { Instant(milliseconds: $0) }
        return header
    }

    private static func parameters(
        _ value: JSONValue,
        line: Int
    ) throws(TraceError) -> [(parameter: PolicyParameter, value: Double)] {
        let object = try TraceObject(value, line: line, path: "policy.", known: Self.parameterNames)
        var parameters: [(parameter: PolicyParameter, value: Double)] = []
        var checked = Parameters()
        for parameter in PolicyParameter.allCases {
            let requirement = parameter.requirement
            guard let number = try object.number(parameter.rawValue, must: requirement) else { continue }
            guard parameter.set(number.double, in: &checked) else {
                throw object.wrong(parameter.rawValue, "is \(number.text)", must: requirement)
            }
            parameters.append((parameter, number.double))
        }
        return parameters
    }

    private static func worker(_ value: JSONValue, in object: TraceObject) throws(TraceError) -> WorkerScript {
        guard case .array(let elements) = value, !elements.isEmpty else {
            throw object.wrong("worker", "has no steps", must: Self.stepRequirement)
        }
        var steps: [WorkerScript.Step] = []
        for (index, element) in elements.enumerated() {
            let name = "worker[\(index)]"
            guard case .array(let pair) = element, pair.count == 2, case .string(let answer) = pair[0],
                case .number(let seconds) = pair[1]
            else { throw object.wrong(name, "is no such pair", must: Self.stepRequirement) }
            guard let answer = WorkerScript.Answer(rawValue: answer) else {
                let names = WorkerScript.Answer.allCases.map(\.rawValue)
                let remedy = NearestMatch.remedy(for: answer, among: names)
                throw TraceError(line: object.line, fault: "\"\(name)\" answers \"\(answer)\"", remedy: remedy)
            }
            steps.append(WorkerScript.Step(answer, delay: try object.duration(name, seconds)))
        }
        return WorkerScript(steps)
    }

    // MARK: Events

    private static func event(_ object: TraceObject) throws(TraceError) -> TraceEvent {
        guard let time = try object.time("t") else {
            throw object.missing("t", remedy: "say when it happens, in seconds")
        }
        guard let device = try object.string("device") else {
            throw object.missing("device", remedy: "name the device, as a string")
        }
        let kinds = Self.kindNames.filter { object[$0] != nil }
        guard let kind = kinds.first else {
            let remedy = "an event needs \"push\", \"conditions\", \"submit\", \"finished\" or \"cancel\""
            throw object.missing("push", remedy: remedy)
        }
        guard kinds.count == 1 else {
            let fault = "\"\(kind)\" and \"\(kinds[1])\" stand in one line"
            throw TraceError(line: object.line, fault: fault, remedy: "give each a line of its own")
        }
        return TraceEvent(moment: Instant(milliseconds: time), device: device, kind: try Self.kind(object))
    }

    private static func kind(_ object: TraceObject) throws(TraceError) -> TraceEvent.Kind {
        if let push = object["push"] { return .push(try Self.push(push, line: object.line)) }
        if let report = object["conditions"] { return .conditions(try Self.conditions(report, line: object.line)) }
        if let request = object["submit"] { return .submit(try Self.request(request, line: object.line)) }
        if let finished = object["finished"] { return try Self.finished(finished, line: object.line) }
        guard let identifier = try object.string("cancel") else { preconditionFailure("a kind is there") }
        return .cancel(identifier)
    }

    private static func push(_ value: JSONValue, line: Int) throws(TraceError) -> TracePush {
        let object = try TraceObject(value, line: line, path: "push.", known: ["apnsID", "priority", "expiration"])
        guard let apnsID = try object.string("apnsID") else {
            throw object.missing("apnsID", remedy: "name the push, as a string")
        }
        var priority = Priority.immediate
        if let number = try object.number("priority", must: "1, 5 or 10") {
            guard let known = Priority.allCases.first(where: { Double($0.rawValue) == number.double }) else {
                throw object.wrong("priority", "is \(number.text)", must: "1, 5 or 10")
            }
            priority = known
        }
        let expiration: ArrivingPush.Expiration =
            switch try object.time("expiration") {
            case nil: .absent
            case 0?: .nowOrNever
            case let time?: .at(Instant(milliseconds: time))
            }
        return TracePush(apnsID: apnsID, priority: priority, expiration: expiration)
    }

    private static func conditions(_ value: JSONValue, line: Int) throws(TraceError) -> ConditionsReport {
        let known = [
            "appState", "backgroundRefresh", "batteryLevel", "charging", "lowPowerMode", "thermalState", "network",
        ]
        let object = try TraceObject(value, line: line, path: "conditions.", known: known)
        var report = ConditionsReport()
        report.appState = try object.choice("appState", Conditions.AppState.self)
        report.backgroundRefresh = try object.choice("backgroundRefresh", Conditions.BackgroundRefresh.self)
        report.thermalState = try object.choice("thermalState", Conditions.ThermalState.self)
        report.charging = try object.bool("charging")
        report.lowPowerMode = try object.bool("lowPowerMode")
        report.network = try object.bool("network")
        if let number = try object.number("batteryLevel", must: "a number from 0 to 1") {
            guard (0...1).contains(number.double) else {
                throw object.wrong("batteryLevel", "is \(number.text)", must: "a number from 0 to 1")
            }
            report.batteryLevel = number.double
        }
        return report
    }
}

/// Why a trace cannot be simulated.
package struct TraceError: Error, Hashable, CustomStringConvertible {
    /// The line of the trace, from 1; nil when the fault is in an override and not in the trace.
    package let line: Int?
    /// What is wrong.
    package let fault: String
    /// What to do about it.
    package let remedy: String

    /// "line 3: the fault; the remedy".
    package var description: String {
        let place = self.line.map { "line \($0): " } ?? ""
        return "\(place)\(self.fault); \(self.remedy)"
    }
}

extension NearestMatch {
    /// A remedy for an unknown name: the nearest one, or all of them.
    static func remedy(for name: String, among names: [String]) -> String {
        guard let nearest = Self.find(name, in: names) else {
            return "use one of \(names.joined(separator: ", "))"
        }
        return "did you mean \"\(nearest)\"?"
    }
}
