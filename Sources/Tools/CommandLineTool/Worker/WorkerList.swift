import HTTPClient
package import Wire

extension CommandDefinition {
    package static let workerList = CommandDefinition(
        "worker list",
        "list the workers of the gateway, with the wakes that each accepts",
        options: [
            OptionDefinition("--topic TOPIC", "only workers of one topic"),
            OptionDefinition("--json", "print the gateway's list of topics unchanged"),
        ] + OptionDefinition.client,
        example: "wakegate worker list --topic com.example.app",
        notes: """
            It lists the 100 workers of this gateway with the most unanswered wakes. `wakegate stats` has the durations
            of their wakes.
            """,
        run: WorkerListCommand.run
    )
}

/// The command `wakegate worker list`.
package enum WorkerListCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let topic = parsed.text("--topic")
        let location = try GatewayLocation(parsed, side: .admin)
        let client = try location.client()
        var isEmpty = false
        let response = try location.answer(location.request("GET", "/v1/topics"), with: client)
        let status = try parsed.show(response) { answer in
            let text = self.text(answer, topic: topic)
            isEmpty = text.isEmpty
            return text
        }
        if isEmpty { try parsed.noteUnknown(location, client) }
        return status
    }

    /// Returns a table with a line for each worker; empty without workers.
    ///
    /// - `topic`: the topic to show; nil for all topics.
    package static func text(_ answer: JSONValue, topic: String?) -> String {
        var rows: [[String]] = []
        for entry in answer["topics"]?.elements ?? [] where topic == nil || entry["topic"]?.text == topic {
            let streams = entry["streams"]?.elements ?? []
            for stream in streams {
                let name = stream["name"]?.text ?? ""
                let busy = "\(StatsText.number(stream["busy"])) of \(StatsText.number(stream["slots"]))"
                let state = stream["state"]?.text ?? "-"
                rows.append([name.isEmpty ? "-" : name, entry["topic"]?.text ?? "-", busy, state, self.takes(stream)])
            }
            let others = (entry["workers"]?.integer ?? 0) - Int64(streams.count)
            if others > 0 { rows.append(["\(others) more", entry["topic"]?.text ?? "-", "-", "-", "-"]) }
        }
        return rows.isEmpty ? "" : TableText.lines([["worker", "topic", "slots busy", "state", "takes"]] + rows)
    }

    private static func takes(_ stream: JSONValue) -> String {
        let takes = stream["takes"] ?? .null
        var parts = takes["pushes"] == .bool(true) ? ["pushes"] : []
        for (key, word) in [("tasks", "task"), ("sessions", "session"), ("resources", "resource")] {
            parts += (takes[key]?.elements ?? []).compactMap(\.text).map { "\(word)=\($0)" }
        }
        let wakes = parts.isEmpty ? "nothing" : parts.joined(separator: ", ")
        guard let devices = takes["devices"]?.number else { return wakes }
        return "\(wakes) of \(JSONNumber.text(of: devices)) \(devices == 1 ? "device" : "devices")"
    }
}
