import Wire

/// An object of a trace line, read field by field; each fault is told with its line, its field and a remedy.
struct TraceObject {
    let line: Int
    /// Where the object is in the line: "" or "push.".
    let path: String
    private let members: [JSONMember]

    /// - Throws: when `value` is no object, or one of its names is not in `known` or is there twice.
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

    /// A string that is not empty; nil when it is absent.
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

    /// A case of `Choice` by its name.
    func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String,
        _: Choice.Type
    ) throws(TraceError) -> Choice? {
        try self.choice(name, of: Array(Choice.allCases))
    }

    /// One of `choices` by its name.
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

    /// A moment in seconds, in milliseconds.
    func time(_ name: String) throws(TraceError) -> Int64? {
        guard let number = try self.number(name, must: Self.timeRequirement) else { return nil }
        return try self.time(name, number)
    }

    /// `number`, which `name` names in messages, as a duration in seconds: the nearest milliseconds, halves up.
    func duration(_ name: String, _ number: JSONNumber) throws(TraceError) -> Int64 {
        guard number.milliseconds == .tooFine, (0...Double(Parameters.secondsMax)).contains(number.double) else {
            return try self.time(name, number)
        }
        return Int64(number.double * 1000 + 0.5)
    }

    /// `number`, which `name` names in messages, as a moment in seconds, in milliseconds.
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

    /// The latest moment of a trace, in milliseconds: as far away as the longest duration.
    static let timeMax = Int64(Parameters.secondsMax) * 1000
    static let timeRequirement = "a number of seconds from 0 to \(Parameters.secondsMax)"
}
