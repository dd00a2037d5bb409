import Wire

/// Reads the lines of a trace, one at a time.
package struct TraceReader {
    private static let kindNames = ["push", "conditions", "submit", "finished", "cancel"]
    private static let headerNames = ["policy", "worker", "until", "tasks", "permitted"]
    private static let eventNames = ["t", "device"] + Self.kindNames
    private static let parameterNames = PolicyParameter.allCases.map(\.rawValue)
    private static let stepRequirement = "pairs such as [\"newData\", 1.0]: an answer and its seconds after the launch"

    /// Returns the content of line number `line`, counted from 1.
    package static func read(_ text: String, line: Int) throws(TraceError) -> TraceLine {
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
            let fault = "\"\(headers[0])\" stands in one line with keys of an event"
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
            header.worker = try Self.script(worker, "worker", in: object, "pair", 2...2, must: Self.stepRequirement)
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

    /// - `what`: the name of a step in messages. A step is an array of `parts` elements.
    /// - `requirement`: the requirement on a step, for messages.
    fileprivate static func script<Answer>(
        _ value: JSONValue,
        _ name: String,
        in object: TraceObject,
        _ what: String,
        _ parts: ClosedRange<Int>,
        must requirement: String
    ) throws(TraceError) -> WakeScript<Answer> {
        guard case .array(let elements) = value, !elements.isEmpty else {
            throw object.wrong(name, "has no steps", must: requirement)
        }
        var steps: [WakeScript<Answer>.Step] = []
        for (index, element) in elements.enumerated() {
            let name = "\(name)[\(index)]"
            guard case .array(let found) = element, parts.contains(found.count), case .string(let text) = found[0],
                case .number(let seconds) = found[1]
            else { throw object.wrong(name, "is no such \(what)", must: requirement) }
            guard let answer = Answer(rawValue: text) else {
                let remedy = NearestMatch.remedy(for: text, among: Answer.allCases.map(\.rawValue))
                let fault = "\"\(object.path)\(name)\" answers \"\(text)\""
                throw TraceError(line: object.line, fault: fault, remedy: remedy)
            }
            var step = WakeScript.Step(answer: answer, delay: try object.duration(name, seconds))
            if found.count == 3 {
                guard case .number(let every) = found[2] else {
                    throw object.wrong(name, "is no such \(what)", must: requirement)
                }
                let advance = try object.duration(name, every)
                guard advance > 0 else {
                    let fault = "advances every \(every.text) seconds"
                    throw object.wrong(name, fault, must: "at least every 0.001 seconds")
                }
                step.advance = advance
            }
            steps.append(step)
        }
        return WakeScript(steps: steps)
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
        let expiration: Expiration =
            switch try object.time("expiration") {
            case nil: .absent
            case 0?: .nowOrNever
            case let time?: .at(Instant(milliseconds: time))
            }
        return TracePush(apnsID: apnsID, priority: priority, expiration: expiration)
    }

    private static func conditions(_ value: JSONValue, line: Int) throws(TraceError) -> ConditionsReport {
        let known = [
            "appState", "backgroundRefresh", "batteryLevel", "charging", "lowPowerMode", "thermalState",
            "memoryPressure", "network",
        ]
        let object = try TraceObject(value, line: line, path: "conditions.", known: known)
        var report = ConditionsReport()
        report.appState = try object.choice("appState", of: Conditions.AppState.allCases)
        report.backgroundRefresh = try object.choice("backgroundRefresh", of: Conditions.BackgroundRefresh.allCases)
        report.thermalState = try object.choice("thermalState", of: Conditions.ThermalState.allCases)
        report.memoryPressure = try object.choice("memoryPressure", of: Conditions.MemoryPressure.allCases)
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

/// The reason why a trace cannot be simulated.
package struct TraceError: Error, Hashable, CustomStringConvertible {
    /// The line of the trace, counted from 1; nil if the fault is in an override.
    package let line: Int?
    /// The fault.
    package let fault: String
    /// The remedy.
    package let remedy: String

    /// "line 3: the fault; the remedy".
    package var description: String {
        let place = self.line.map { "line \($0): " } ?? ""
        return "\(place)\(self.fault); \(self.remedy)"
    }
}

extension NearestMatch {
    /// Returns a remedy for an unknown name: the nearest known name, or all known names.
    static func remedy(for name: String, among names: [String]) -> String {
        guard let nearest = Self.find(name, in: names) else {
            return "use one of \(names.joined(separator: ", "))"
        }
        return "did you mean \"\(nearest)\"?"
    }
}

// MARK: - Background tasks in traces

extension TraceReader {
    private static let taskStepRequirement =
        "steps such as [\"success\", 300, 20]: an answer, its seconds after the launch, and, if a continued task "
        + "advances, every how many seconds"

    /// Reads the scripted outcomes of wakes, by identifier or session name.
    static func tasks(_ value: JSONValue, line: Int) throws(TraceError) -> [String: TaskScript] {
        guard case .object(let members) = value else {
            throw TraceError(
                line: line,
                fault: "\"tasks\" is \(value.kind)",
                remedy: "it must be an object, {\"<identifier>\": [...]}"
            )
        }
        let object = try TraceObject(value, line: line, path: "tasks.", known: members.map(\.name))
        var scripts: [String: TaskScript] = [:]
        for member in members {
            scripts[member.name] = try Self.script(
                member.value,
                member.name,
                in: object,
                "step",
                2...3,
                must: Self.taskStepRequirement
            )
        }
        return scripts
    }

    /// Reads the patterns of permitted identifiers.
    static func permitted(_ value: JSONValue, in object: TraceObject) throws(TraceError) -> [IdentifierPattern] {
        let must = "an array of identifiers, each perhaps with .* at its end"
        guard case .array(let elements) = value else {
            throw object.wrong("permitted", "is \(value.kind)", must: must)
        }
        var patterns: [IdentifierPattern] = []
        for element in elements {
            guard case .string(let text) = element, !text.isEmpty else {
                throw object.wrong("permitted", "has something else in it", must: must)
            }
            patterns.append(IdentifierPattern(text))
        }
        return patterns
    }

    /// Reads a submitted request.
    static func request(_ value: JSONValue, line: Int) throws(TraceError) -> TraceRequest {
        let needs = ["requiresNetworkConnectivity", "requiresExternalPower"]
        let ofPersons = ["strategy", "title", "subtitle", "resources"]
        let known = ["identifier", "kind", "earliestBegin"] + needs + ofPersons
        let object = try TraceObject(value, line: line, path: "submit.", known: known)
        guard let identifier = try object.string("identifier") else {
            throw object.missing("identifier", remedy: "name the task, as a string")
        }
        guard let kind = try object.choice("kind", of: TaskKind.requestable) else {
            throw object.missing("kind", remedy: "say \"appRefresh\", \"processing\" or \"continued\"")
        }
        let others = (kind == .processing ? [] : needs) + (kind == .continued ? [] : ofPersons)
        if let other = others.first(where: { object[$0] != nil }) {
            let owner = needs.contains(other) ? TaskKind.processing : .continued
            throw TraceError(
                line: line,
                fault: "\"submit.\(other)\" does not belong to the kind \(kind.rawValue)",
                remedy: "leave it out: \(owner.rawValue) requests alone have it"
            )
        }
        return TraceRequest(
            identifier: identifier,
            kind: try Self.options(of: kind, object),
            earliestBegin: try object.time("earliestBegin").map { Instant(milliseconds: $0) }
        )
    }

    private static func options(of kind: TaskKind, _ object: TraceObject) throws(TraceError) -> TaskSubmission.Kind {
        switch kind {
        case .appRefresh: return .appRefresh
        case .processing:
            var needs: TaskNeeds = []
            if try object.bool("requiresNetworkConnectivity") == true { needs.insert(.network) }
            if try object.bool("requiresExternalPower") == true { needs.insert(.externalPower) }
            return .processing(needs)
        case .continued:
            _ = try object.string("title")
            _ = try object.string("subtitle")
            if let resources = object["resources"] {
                guard case .array(let names) = resources,
                    names.allSatisfy({ if case .string = $0 { true } else { false } })
                else { throw object.wrong("resources", "is \(resources.kind)", must: "an array of names") }
            }
            return .continued(try object.choice("strategy", of: TaskSubmission.Strategy.allCases) ?? .queue)
        case .urlSession: preconditionFailure("no request is of this kind")
        }
    }

    /// Reads an event that reports finished transfers of a session.
    static func finished(_ value: JSONValue, line: Int) throws(TraceError) -> TraceEvent.Kind {
        let object = try TraceObject(value, line: line, path: "finished.", known: ["session", "count"])
        guard let session = try object.string("session") else {
            throw object.missing("session", remedy: "name the session, as a string")
        }
        let must = "a whole number from 1 to \(Parameters.countMax)"
        guard let number = try object.number("count", must: must) else { return .finished(session: session, count: 1) }
        guard (1...Double(Parameters.countMax)).contains(number.double) else {
            throw object.wrong("count", "is \(number.text)", must: must)
        }
        let count = UInt64(number.double)
        guard Double(count) == number.double else { throw object.wrong("count", "is \(number.text)", must: must) }
        return .finished(session: session, count: count)
    }
}

/// An object in a trace line, read field by field. Each error contains its line, its field and a remedy.
struct TraceObject {
    let line: Int
    /// The path of the object in the line: "" or "push.".
    let path: String
    private let members: [JSONMember]

    /// - Throws: if `value` is not an object, or if a name is not in `known` or is duplicated.
    init(_ value: JSONValue, line: Int, path: String = "", known: [String]) throws(TraceError) {
        self.line = line
        self.path = path
        guard case .object(let members) = value else {
            let name = path.isEmpty ? "the line" : "\"\(path.dropLast())\""
            throw TraceError(line: line, fault: "\(name) is \(value.kind)", remedy: "it must be an object, {...}")
        }
        self.members = members
        for (index, member) in members.enumerated() {
            let isKnown = known.contains(member.name)
            guard isKnown, !members[..<index].contains(where: { $0.name == member.name }) else {
                throw TraceError(
                    line: line,
                    fault: isKnown
                        ? "\"\(path)\(member.name)\" is there twice" : "unknown key \"\(path)\(member.name)\"",
                    remedy: isKnown ? "leave one out" : NearestMatch.remedy(for: member.name, among: known)
                )
            }
        }
    }

    var names: [String] { self.members.map(\.name) }

    subscript(name: String) -> JSONValue? {
        self.members.first { $0.name == name }?.value
    }

    func missing(_ name: String, remedy: String) -> TraceError {
        TraceError(line: self.line, fault: "\"\(self.path)\(name)\" is missing", remedy: remedy)
    }

    func wrong(_ name: String, _ fault: String, must: String) -> TraceError {
        TraceError(line: self.line, fault: "\"\(self.path)\(name)\" \(fault)", remedy: "it must be \(must)")
    }

    /// Returns a nonempty string; nil if it is absent.
    func string(_ name: String) throws(TraceError) -> String? {
        guard let value = self[name] else { return nil }
        guard case .string(let text) = value else {
            throw self.wrong(name, "is \(value.kind)", must: "a string")
        }
        guard !text.isEmpty else { throw self.wrong(name, "is empty", must: "a string with something in it") }
        return text
    }

    func bool(_ name: String) throws(TraceError) -> Bool? {
        guard let value = self[name] else { return nil }
        guard case .bool(let isTrue) = value else {
            throw self.wrong(name, "is \(value.kind)", must: "true or false")
        }
        return isTrue
    }

    func number(_ name: String, must: String) throws(TraceError) -> JSONNumber? {
        guard let value = self[name] else { return nil }
        guard case .number(let number) = value else { throw self.wrong(name, "is \(value.kind)", must: must) }
        return number
    }

    /// Returns the one of `choices` whose name is the value; nil if the member is absent.
    func choice<Choice: RawRepresentable<String>>(
        _ name: String,
        of choices: [Choice]
    ) throws(TraceError) -> Choice? {
        guard let text = try self.string(name) else { return nil }
        guard let choice = choices.first(where: { $0.rawValue == text }) else {
            let names = choices.map(\.rawValue)
            throw TraceError(
                line: self.line,
                fault: "\"\(self.path)\(name)\" is \"\(text)\"",
                remedy: NearestMatch.remedy(for: text, among: names)
            )
        }
        return choice
    }

    /// Returns a time in milliseconds, converted from seconds; nil if it is absent.
    func time(_ name: String) throws(TraceError) -> Int64? {
        guard let number = try self.number(name, must: Self.timeRequirement) else { return nil }
        return try self.time(name, number)
    }

    /// Converts the duration `number` from seconds to milliseconds and rounds half up. Messages call it `name`.
    func duration(_ name: String, _ number: JSONNumber) throws(TraceError) -> Int64 {
        guard number.milliseconds == .tooFine, (0...Double(Parameters.secondsMax)).contains(number.double) else {
            return try self.time(name, number)
        }
        return Int64(number.double * 1000 + 0.5)
    }

    /// Converts the time `number` from seconds to milliseconds. Messages call it `name`.
    private func time(_ name: String, _ number: JSONNumber) throws(TraceError) -> Int64 {
        switch number.milliseconds {
        case .tooFine:
            throw self.wrong(name, "is \(number.text), with more than three decimals", must: "in whole milliseconds")
        case .exact(let milliseconds) where (0...Self.timeMax).contains(milliseconds):
            return milliseconds
        case .exact, .tooLarge:
            throw self.wrong(name, "is \(number.text)", must: Self.timeRequirement)
        }
    }

    /// The latest time in a trace, in milliseconds: the maximum duration.
    static let timeMax = Int64(Parameters.secondsMax) * 1000
    static let timeRequirement = "a number of seconds from 0 to \(Parameters.secondsMax)"
}
