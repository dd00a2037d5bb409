import Wire

// MARK: - What traces say of background tasks

extension TraceReader {
    private static let taskStepRequirement =
        "steps such as [\"success\", 300, 20]: an answer, its seconds after the launch, and, if a continued task "
        + "advances, every how many seconds"

    /// How the wakes of identifiers and sessions end.
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
            guard case .array(let elements) = member.value, !elements.isEmpty else {
                throw object.wrong(member.name, "has no steps", must: Self.taskStepRequirement)
            }
            var steps: [TaskScript.Step] = []
            for (index, element) in elements.enumerated() {
                steps.append(try Self.step(element, "\(member.name)[\(index)]", in: object))
            }
            scripts[member.name] = TaskScript(steps)
        }
        return scripts
    }

    private static func step(
        _ value: JSONValue,
        _ name: String,
        in object: TraceObject
    ) throws(TraceError) -> TaskScript.Step {
        guard case .array(let parts) = value, (2...3).contains(parts.count), case .string(let text) = parts[0],
            case .number(let seconds) = parts[1]
        else { throw object.wrong(name, "is no such step", must: Self.taskStepRequirement) }
        guard let answer = TaskScript.Answer(rawValue: text) else {
            let remedy = NearestMatch.remedy(for: text, among: TaskScript.Answer.allCases.map(\.rawValue))
            throw TraceError(line: object.line, fault: "\"\(object.path)\(name)\" answers \"\(text)\"", remedy: remedy)
        }
        var step = TaskScript.Step(answer, delay: try object.duration(name, seconds))
        guard parts.count == 3 else { return step }
        guard case .number(let every) = parts[2] else {
            throw object.wrong(name, "is no such step", must: Self.taskStepRequirement)
        }
        let advance = try object.duration(name, every)
        guard advance > 0 else {
            throw object.wrong(name, "advances every \(every.text) seconds", must: "at least every 0.001 seconds")
        }
        step.advance = advance
        return step
    }

    /// The patterns of permitted identifiers.
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

    /// A request that is submitted.
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
                fault: "\"submit.\(other)\" stands beside the kind \(kind.rawValue)",
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
            return .continued(try object.choice("strategy", TaskSubmission.Strategy.self) ?? .queue)
        case .urlSession: preconditionFailure("no request is of this kind")
        }
    }

    /// Transfers of a session that finished.
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
