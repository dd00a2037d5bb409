import HTTPClient
import Policy
package import Wire

extension CommandDefinition {
    package static let whatIf = CommandDefinition(
        "what-if",
        "replay recorded pushes and tasks under another policy",
        arguments: [ArgumentDefinition("DEVICE", "the device token, hexadecimal; or --topic", count: 0...1)],
        options: [
            OptionDefinition("--topic TOPIC", "replay the last day of a topic's devices"),
            .policy("a policy parameter to try: a number, or a duration such as 10m"),
            OptionDefinition("--json", "print the gateway's answer unchanged"),
        ] + OptionDefinition.client,
        example: "wakegate what-if --topic com.example.app --set policy.launchInterval=10m",
        notes: """
            The columns are the record, a replay under the active policy, and a replay with the parameters of --set.
            Each push counts once: completed, coalesced, discarded or waiting. Its wait ends with its first launch or
            its discard; a push that still waits has waited until now. Tasks count in the same way. No device changes.
            For a topic, up to 10,000 devices are replayed; the first line has their number.
            """,
        run: WhatIfCommand.run
    )
}

extension OptionDefinition {
    /// The option `--set policy.NAME=VALUE`.
    static func policy(_ help: String) -> OptionDefinition {
        .set(help, PolicyParameter.allCases.map { "policy.\($0.rawValue)" })
    }
}

/// `wakegate what-if`.
package enum WhatIfCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let request = try self.request(parsed)
        let response = try parsed.ask(request.body == nil ? "GET" : "POST", request.path, body: request.body)
        return try parsed.show(response) { self.text($0) }
    }

    /// Returns the path of the request, and the body of a request about one device. Durations are in seconds.
    package static func request(_ parsed: ParsedCommand) throws(CommandFailure) -> (path: String, body: [UInt8]?) {
        let changes = try SimulateCommand.overrides(parsed.all("--set")).map { key, value in
            (key.hasPrefix("policy.") ? String(key.dropFirst("policy.".count)) : key, JSONNumber.text(of: value))
        }
        for (key, value) in changes {
            guard key.hasPrefix("topics."), let end = key.ranges(of: ".policy.").last else { continue }
            let topic = key[..<end.lowerBound].dropFirst("topics.".count)
            throw .usage(
                "write \(key[end.upperBound...]) with --topic \(topic): --topic \(topic) "
                    + "--set \(key[end.upperBound...])=\(value)"
            )
        }
        switch (parsed.arguments.first, parsed.text("--topic")) {
        case (let device?, nil):
            let members = changes.map { "\(JSONText.quoted($0)):\($1)" }.joined(separator: ",")
            return ("/v1/devices/\(URLPath.component(device))/what-if", Array("{\"policy\":{\(members)}}".utf8))
        case (nil, let topic?):
            let query = changes.map { "\(URLPath.component($0))=\($1)" }.joined(separator: "&")
            let path = "/v1/topics/\(URLPath.component(topic))/what-if"
            return (query.isEmpty ? path : "\(path)?\(query)", nil)
        case (nil, nil), (_?, _?):
            throw .usage("what-if replays one device or one topic: write DEVICE or --topic TOPIC")
        }
    }

    /// Returns the assumptions of a replay.
    private static func notes(_ answer: JSONValue) -> String {
        var notes = """
            A replay assumes that workers are free and answer as they did, and that the topic is not paused. Where
            recorded and own policy differ, compare own policy with what if.

            """
        if let assumed = answer["assumed"]?.number, assumed > 0 {
            notes += "\(JSONNumber.text(of: assumed)) pushes were recorded without priority: 5 is assumed.\n"
        }
        if let reports = answer["conditionReports"]?.number, reports > 0 {
            notes += "Some conditions were recorded without values: the replay does not know their holds.\n"
        }
        return notes
    }

    /// Returns the outcomes in adjacent columns, and then the assumptions of the replay.
    package static func text(_ answer: JSONValue) -> String {
        let isOfTopic = answer["topic"] != nil
        var outcomes = [("recorded", answer["recorded"])]
        outcomes.append(("own policy", answer[isOfTopic ? "current" : "replayed"]))
        if answer["changes"]?.members.isEmpty == false {
            outcomes.append(("what if", answer[isOfTopic ? "proposed" : "whatIf"]))
        }
        func seconds(_ value: JSONValue?) -> String {
            value?.number.map { "\(JSONNumber.text(of: ($0 / 1000).rounded())) s" } ?? "-"
        }
        func rows(_ names: [(title: String, name: String)], _ part: (JSONValue?) -> JSONValue?) -> [[String]] {
            let (launches, unit) = isOfTopic ? ("launches", "Ms") : ("launched", "")
            let times = [("mean wait", "meanWait\(unit)"), ("longest wait", "maxWait\(unit)")]
            return ([("launches", launches)] + names).map { title, name in
                [title] + outcomes.map { TableText.number(part($0.1)?[name]) }
            } + times.map { title, name in [title] + outcomes.map { seconds(part($0.1)?[name]) } }
        }
        var table = [[""] + outcomes.map { $0.0 }]
        table += rows(["completed", "coalesced", "discarded", "waiting"].map { ($0, $0) }) { $0 }
        if (answer["tasks"]?.number ?? 0) > 0 {
            table += rows(["ended", "replaced", "discarded", "waiting"].map { ($0, $0) }) { $0?["tasks"] }
                .map { row in ["tasks: \(row[0])"] + row.dropFirst() }
        }
        func count(_ name: String, _ one: String) -> String {
            "\(TableText.number(answer[name])) \(answer[name]?.number == 1 ? one : name)"
        }
        var head = "\(count("pushes", "push")) and \(count("tasks", "task"))"
        if isOfTopic { head += " of \(count("devices", "device"))" }
        head += " since \(TableText.moment(answer["from"]))"
        if isOfTopic, answer["isWhole"] != .bool(true) {
            head += "\nNot everything was replayed: \(TableText.number(answer["examined"])) of "
            head += "\(TableText.number(answer["registered"])) devices were looked at"
        }
        return "\(head)\n\n" + TableText.lines(table) + "\n" + self.notes(answer)
    }
}
