import HTTPClient
import Policy
package import Wire

extension CommandDefinition {
    package static let whatIf = CommandDefinition(
        "what-if",
        "replay the recorded pushes of a device under another policy",
        arguments: [ArgumentDefinition("DEVICE", "the device token, hexadecimal")],
        options: [
            OptionDefinition(
                "--set",
                "KEY=VALUE",
                "a policy parameter to try: a number, or a duration such as 10m",
                value: .setting,
                isRepeatable: true,
                words: PolicyParameter.allCases.map { "policy.\($0.rawValue)=" }
            ),
            OptionDefinition("--json", "", "show the gateway's answer unchanged"),
        ] + OptionDefinition.client,
        example: "wakegate what-if 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe"
            + " --set policy.launchInterval=10m",
        notes: [
            """
            The columns are the record, a replay under the device's own policy, and a replay with the parameters of
            --set. Each push counts once: completed, coalesced, discarded or waiting. Its wait ends with its first
            launch or its discard; a push that still waits has waited until now. Nothing of the device changes.
            """
        ],
        run: WhatIfCommand.run
    )
}

/// `wakegate what-if`.
package enum WhatIfCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let body = try self.body(parsed.all("--set"))
        let path = "/v1/devices/\(URLPath.component(parsed.arguments[0]))/what-if"
        return try parsed.show(try parsed.ask("POST", path, body: Array(body.utf8))) { self.text($0) }
    }

    /// Returns the JSON body of the request. Durations are in seconds.
    package static func body(_ settings: [String]) throws(CommandFailure) -> String {
        let members = try SimulateCommand.overrides(settings).map { key, value in
            let name = key.hasPrefix("policy.") ? String(key.dropFirst("policy.".count)) : key
            return "\(JSONText.quoted(name)):\(JSONNumber.text(of: value))"
        }
        return "{\"policy\":{\(members.joined(separator: ","))}}"
    }

    /// Returns the outcomes in adjacent columns.
    package static func text(_ answer: JSONValue) -> String {
        var outcomes = [("recorded", answer["recorded"]), ("own policy", answer["replayed"])]
        if answer["changes"]?.members.isEmpty == false { outcomes.append(("what if", answer["whatIf"])) }
        func row(_ title: String, _ value: (JSONValue?) -> String) -> [String] {
            [title] + outcomes.map { value($0.1) }
        }
        func count(_ name: String) -> (JSONValue?) -> String {
            { $0?[name]?.number.map { JSONNumber.text(of: $0) } ?? "-" }
        }
        func time(_ name: String) -> (JSONValue?) -> String {
            { $0?[name]?.number.map { "\(JSONNumber.text(of: ($0 / 1000).rounded())) s" } ?? "-" }
        }
        let rows = [
            [""] + outcomes.map { $0.0 }, row("launches", count("launched")), row("completed", count("completed")),
            row("coalesced", count("coalesced")), row("discarded", count("discarded")),
            row("waiting", count("waiting")), row("mean wait", time("meanWait")), row("longest wait", time("maxWait")),
        ]
        let pushes = answer["pushes"]?.number.map { JSONNumber.text(of: $0) } ?? "-"
        return "\(pushes) pushes since \(TableText.moment(answer["from"]))\n\n" + TableText.lines(rows)
    }
}
