package import FoundationEssentials
package import Wire

/// Reads fault rules from JSON5 and reports all errors in them.
package struct FaultRuleReader {
    /// The maximum size of the rules in a file or a request's body, in bytes.
    package static let bytesMax = 262_144

    /// The rules, and warnings about them.
    package struct Rules: Sendable {
        package var rules: [FaultRule] = []
        /// The warnings about settings that are valid but possibly unintended, with one sentence per warning.
        package var warnings: [String] = []
    }

    private static let ruleKeys = ["id", "when", "then", "times"]

    var faults: [ConfigurationFault] = []
    var warnings: [String] = []

    private init() {}

    /// Reads a file of rules.
    ///
    /// - Throws: `ConfigurationError` with every fault, each with the name of its key.
    package static func load(file path: String) throws(ConfigurationError) -> Rules {
        let text = try ConfigurationLoader.contents(of: path, bytesMax: self.bytesMax, option: "--faults")
        return try self.rules(text, name: path)
    }

    /// Parses `{rules: [...]}`. `name` identifies the text in messages.
    package static func rules(_ text: Data, name: String) throws(ConfigurationError) -> Rules {
        try self.read(text, name: name) { reader, value in
            let members = reader.members(of: value, "", ["rules"])
            guard case .array(let elements)? = members["rules"] else {
                reader.fault("rules", "is \(members["rules"]?.described ?? "missing")", "write rules: [{ then: ... }]")
                return []
            }
            if elements.count > FaultScript.rulesMax {
                reader.fault("rules", "has \(elements.count) rules", "write at most \(FaultScript.rulesMax)")
            }
            let rules = elements.prefix(FaultScript.rulesMax).enumerated().map { reader.rule($1, "rules[\($0)]") }
            var seen: Set<String> = []
            for (index, rule) in rules.enumerated() {
                guard let id = rule.id, !seen.insert(id).inserted else { continue }
                reader.fault("rules[\(index)].id", "is \"\(id)\" again", "give each rule an id of its own, or none")
            }
            return rules
        }
    }

    /// Parses one rule.
    package static func rule(_ text: Data, name: String) throws(ConfigurationError) -> Rules {
        try self.read(text, name: name) { reader, value in [reader.rule(value, "")] }
    }

    private static func read(
        _ text: Data,
        name: String,
        _ body: (inout FaultRuleReader, JSONValue) -> [FaultRule]
    ) throws(ConfigurationError) -> Rules {
        let value = try ConfigurationLoader.object(text, name: name, example: "{ rules: [] }")
        var reader = FaultRuleReader()
        let rules = body(&reader, value)
        guard reader.faults.isEmpty else { throw ConfigurationError(faults: reader.faults) }
        return Rules(rules: rules, warnings: reader.warnings)
    }

    private mutating func rule(_ value: JSONValue, _ path: String) -> FaultRule {
        let members = self.members(of: value, path, Self.ruleKeys)
        var rule = FaultRule()
        if let id = self.text(members["id"], Self.join(path, "id")) {
            let isName = (1...64).contains(id.utf8.count) && id.utf8.allSatisfy { $0.isLetterOrDigit(or: "._-") }
            if isName, id != "reset" {
                rule.id = id
            } else {
                let remedy = "write 1 to 64 letters, digits, '.', '_' and '-', but not reset"
                self.fault(Self.join(path, "id"), "is \"\(id)\"", remedy)
            }
        }
        rule.times = self.whole(members["times"], Self.join(path, "times"), 1...1_000_000_000).map { UInt64($0) }
        self.readWhen(members["when"], Self.join(path, "when"), into: &rule)
        self.readThen(members["then"], Self.join(path, "then"), into: &rule)
        rule.text = value.adding(seed: rule.occasion).written
        return rule
    }
}

// MARK: - Values

extension FaultRuleReader {
    static func join(_ path: String, _ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

    mutating func fault(_ key: String, _ problem: String, _ remedy: String) {
        self.faults.append(ConfigurationFault(key: key, problem: problem, remedy: remedy))
    }

    /// Returns the members of an object by name. Reports members that are not in `names`.
    mutating func members(of value: JSONValue, _ path: String, _ names: [String]) -> [String: JSONValue] {
        guard case .object(let members) = value else {
            self.fault(path.isEmpty ? "the rule" : path, "is \(value.described)", "write an object: { ... }")
            return [:]
        }
        for member in members where !names.contains(member.name) {
            let near = NearestMatch.find(member.name, in: names).map { "did you mean \($0)?" }
            let remedy = near ?? "the keys here are \(names.joined(separator: ", "))"
            self.fault(Self.join(path, member.name), "is not a key", remedy)
        }
        return Dictionary(members.map { ($0.name, $0.value) }) { _, last in last }
    }

    /// Returns an integer; nil if the value is missing or invalid. Reports an invalid value.
    mutating func whole(_ value: JSONValue?, _ path: String, _ range: ClosedRange<Int>) -> Int? {
        guard let value else { return nil }
        if case .number(let number) = value, let whole = Int(exactly: number.double), range.contains(whole) {
            return whole
        }
        let requirement = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        self.fault(path, "is \(value.described)", "write \(requirement)")
        return nil
    }

    mutating func text(_ value: JSONValue?, _ path: String) -> String? {
        guard let value else { return nil }
        if case .string(let text) = value, !text.isEmpty { return text }
        self.fault(path, "is \(value.described)", "write a text in quotes")
        return nil
    }

    /// Returns true if the key is present. Its only valid value is `true`.
    mutating func isSet(_ value: JSONValue?, _ path: String) -> Bool {
        guard let value else { return false }
        if value == .bool(true) { return true }
        self.fault(path, "is \(value.described)", "write true, or leave it out")
        return false
    }

    /// Returns the case of `Choice` with a name.
    mutating func choice<Choice: CaseIterable>(
        _ value: JSONValue?,
        _ path: String,
        _: Choice.Type,
        _ name: (Choice) -> String
    ) -> Choice? {
        guard let value else { return nil }
        if let choice = Choice.allCases.first(where: { name($0) == value.text }) { return choice }
        let names = Choice.allCases.map(name)
        var remedy = "write \(names.joined(separator: ", "))"
        if case .string(let text) = value, let near = NearestMatch.find(text, in: names) {
            remedy = "did you mean \(near)?"
        }
        self.fault(path, "is \(value.described)", remedy)
        return nil
    }

    /// Returns the elements of a list, or a single value as one element. `read` parses each element.
    mutating func list<Element: Hashable>(
        _ value: JSONValue?,
        _ path: String,
        _ requirement: String,
        _ read: (JSONValue) -> Element?
    ) -> Set<Element> {
        guard let value else { return [] }
        var values = [value]
        if case .array(let elements) = value { values = elements }
        if values.isEmpty { self.fault(path, "is an empty list", "write \(requirement)") }
        var found: Set<Element> = []
        for value in values {
            if let element = read(value) {
                found.insert(element)
            } else {
                self.fault(path, "holds \(value.described)", "write \(requirement)")
            }
        }
        return found
    }
}
