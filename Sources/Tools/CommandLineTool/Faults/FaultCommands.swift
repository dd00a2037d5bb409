import HTTPClient
package import Wire

extension CommandDefinition {
    package static let faultsList = CommandDefinition(
        "faults list",
        "show the fault rules of the running `wakegate dev`, and how often each fired",
        options: [OptionDefinition("--json", "", "the gateway's answer as it is")] + OptionDefinition.client,
        example: "wakegate faults list",
        run: FaultCommands.list
    )

    package static let faultsSet = CommandDefinition(
        "faults set",
        "replace the fault rules of the running `wakegate dev`, all or none",
        arguments: [ArgumentDefinition("FILE", "the rules, JSON5, as `wakegate dev --faults` takes them")],
        options: OptionDefinition.client,
        example: "wakegate faults set faults.json5",
        notes: [
            "What the old rules did to provider tokens and stream limits ends. `wakegate dev --help` has an example."
        ],
        run: FaultCommands.set
    )

    package static let faultsClear = CommandDefinition(
        "faults clear",
        "remove every fault rule of the running `wakegate dev`",
        options: OptionDefinition.client,
        example: "wakegate faults clear",
        run: FaultCommands.clear
    )
}

/// `wakegate faults`.
package enum FaultCommands {
    private static let path = "/v1/faults"
    /// The most of a file that is read, in bytes; past what any gateway takes.
    private static let bytesMax = 4 << 20

    static func list(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let response = try location.answer(location.request("GET", self.path), with: try location.client())
        let answer = try GatewayAnswer.object(response)
        if parsed.isSet("--json") { Console.out(json: response.text) } else { Console.out(self.table(answer)) }
        return 0
    }

    static func set(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let request = location.request("PUT", self.path, body: try self.contents(of: parsed.arguments[0]))
        let answer = try GatewayAnswer.object(try location.answer(request, with: try location.client()))
        for warning in answer["warnings"]?.elements ?? [] {
            Console.error("wakegate: warning: \(TerminalText.harmless(warning.text ?? ""))")
        }
        Console.out(self.table(answer))
        return 0
    }

    static func clear(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let request = location.request("DELETE", self.path)
        try GatewayAnswer.check(try location.answer(request, with: try location.client()))
        return 0
    }

    private static func contents(of path: String) throws(CommandFailure) -> [UInt8] {
        try CommandFile.contents(path, bytesMax: self.bytesMax, remedy: "name the file with the rules")
    }

    /// A line for each rule: its id, counts, and itself; a spent one is marked.
    package static func table(_ answer: JSONValue) -> String {
        let rows = (answer["rules"]?.elements ?? []).map { rule in
            [
                rule["id"]?.text ?? "-", self.count(rule["matched"]),
                self.count(rule["fired"]) + (rule["spent"] == .bool(true) ? " (spent)" : ""),
                self.line(rule["rule"] ?? .null),
            ]
        }
        guard !rows.isEmpty else { return "no fault rules\n" }
        return TaskText.table([["id", "matched", "fired", "rule"]] + rows)
    }

    private static func count(_ value: JSONValue?) -> String { JSONNumber.text(of: value?.number ?? 0) }

    /// A rule as one would write it, without quotes that JSON5 does not need: `when: {every: 3}, then: {stuck: true}`.
    private static func line(_ rule: JSONValue) -> String {
        let names = ["when", "then", "times"]
        return names.compactMap { name in rule[name].map { "\(name): \(self.written($0))" } }.joined(separator: ", ")
    }

    private static func written(_ value: JSONValue) -> String {
        switch value {
        case .object(let members):
            "{" + members.map { "\($0.name): \(self.written($0.value))" }.joined(separator: ", ") + "}"
        case .array(let values): "[" + values.map { self.written($0) }.joined(separator: ", ") + "]"
        case .null, .bool, .number, .string: value.described
        }
    }
}
