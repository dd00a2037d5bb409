import LaunchPolicy
import Text

/// Reads the lines of a trace, one at a time.
struct TraceReader {
    private static let headerNames = ["policy", "worker", "until"]
    private static let eventNames = ["t", "device", "push", "conditions"]
    private static let parameterNames = Parameters.Name.allCases.map(\.rawValue)
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
        header.until = try object.time("until").map { Instant(milliseconds: $0) }
        return header
    }

    private static func parameters(
        _ value: JSONValue,
        line: Int
    ) throws(TraceError) -> [(name: Parameters.Name, value: Double)] {
        let object = try TraceObject(value, line: line, path: "policy.", known: Self.parameterNames)
        var parameters: [(name: Parameters.Name, value: Double)] = []
        var checked = Parameters()
        for name in Parameters.Name.allCases {
            guard let number = try object.number(name.rawValue, must: name.requirement) else { continue }
            if name.isDuration, number.milliseconds == .tooFine {
                _ = try object.time(name.rawValue, number)
            }
            do {
                try checked.set(name, to: number.double)
            } catch {
                throw object.wrong(name.rawValue, "is \(number.text)", must: name.requirement)
            }
            parameters.append((name, number.double))
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
            steps.append(WorkerScript.Step(answer, delay: try object.time(name, seconds)))
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
        let moment = Instant(milliseconds: time)
        switch (object["push"], object["conditions"]) {
        case (let push?, nil):
            return TraceEvent(moment: moment, device: device, kind: .push(try Self.push(push, line: object.line)))
        case (nil, let report?):
            let report = try Self.conditions(report, line: object.line)
            return TraceEvent(moment: moment, device: device, kind: .conditions(report))
        case (nil, nil):
            throw object.missing("push", remedy: "an event needs \"push\" or \"conditions\"")
        case (.some, .some):
            throw TraceError(
                line: object.line,
                fault: "\"push\" and \"conditions\" stand in one line",
                remedy: "give each a line of its own"
            )
        }
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

extension Parameters.Name {
    /// Whether the parameter is a number of seconds.
    fileprivate var isDuration: Bool {
        switch self {
        case .launchInterval, .budgetWindow, .immediateRefill, .executionWindow, .maxInterval, .defaultTTL,
            .maxExtension:
            true
        case .dailyLaunches, .immediateBurst, .maxAttempts, .maxPenalty, .criticalBattery: false
        }
    }
}
