import HTTPClient
package import Wire

extension CommandDefinition {
    package static let reload = CommandDefinition(
        "reload",
        "have the running gateway read its configuration again",
        options: [OptionDefinition("--json", "", "the gateway's answer as it is")] + OptionDefinition.client,
        example: "wakegate reload",
        notes: [
            """
            All of the file comes into force or nothing of it, and no connection ends. Every key that has changed is
            shown with its old and its new value; those that need a restart are named, and are as they were until then.
            With a fault in the file every fault is shown, the old configuration goes on, and the exit status is 1.
            """
        ],
        run: ReloadCommand.run
    )
}

/// `wakegate reload`.
package enum ReloadCommand {
    static func run(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let response = try location.answer(location.request("POST", "/v1/reload"), with: try location.client())
        guard let faults = self.faults(response) else {
            let answer = try GatewayAnswer.object(response)
            if parsed.isSet("--json") { Console.out(json: response.text) } else { Console.out(self.text(answer)) }
            return 0
        }
        throw CommandFailure(.failed, "the old configuration is in force, as the new one has \(faults)")
    }

    /// What has changed, one line a key.
    package static func text(_ answer: JSONValue) -> String {
        var lines = self.lines(answer["changed"], "changed")
        lines += self.lines(answer["needsRestart"], "needs a restart")
        if lines.isEmpty { lines.append("nothing has changed") }
        let version = answer["policyVersion"]?.number.map { JSONNumber.text(of: $0) } ?? "unknown"
        return lines.joined(separator: "\n") + "\nlaunch policy: version \(version)\n"
    }

    private static func lines(_ changes: JSONValue?, _ what: String) -> [String] {
        (changes?.elements ?? []).map { change in
            let (old, new) = (change["old"]?.described ?? "", change["new"]?.described ?? "")
            return TerminalText.harmless("\(what): \(change["key"]?.text ?? ""): \(old) -> \(new)")
        }
    }

    /// The faults of a refused configuration, as `serve --check` shows them; nil when that is not the answer.
    private static func faults(_ response: HTTPResponse) -> String? {
        guard response.status == 400, let answer = try? JSONReader.read(response.text),
            let faults = answer["faults"]?.elements, !faults.isEmpty
        else { return nil }
        let lines = faults.map { fault in
            let parts = ["problem", "remedy"].map { fault[$0]?.text ?? "" }
            return TerminalText.harmless("  \(fault["key"]?.text ?? ""): \(parts.joined(separator: "; "))")
        }
        let count = faults.count == 1 ? "a fault" : "\(faults.count) faults"
        return "\(count):\n" + lines.joined(separator: "\n")
    }
}
