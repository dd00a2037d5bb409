import HTTPClient
package import Wire

extension CommandDefinition {
    package static let pushShow = CommandDefinition(
        "push show",
        "show a push: its device, its state, and each step with its time",
        arguments: [ArgumentDefinition("ID", "the apns-id of the push")],
        options: [
            OptionDefinition("--device", "TOKEN", "the device, when pushes to several have this apns-id"),
            OptionDefinition("--json", "", "show the gateway's answer unchanged"),
        ] + OptionDefinition.client,
        example: "wakegate push show 9a96d8fb-4351-8e93-6f91-0f7f9be3cc0f",
        notes: [
            """
            The push is read from the delivery log, GET /v1/pushes/<apns-id> of the admin listener. The device and the
            topic are missing when the device has been removed, and the priority when the log does not have it.
            """
        ],
        run: PushShowCommand.run
    )
}

/// `wakegate push show`.
package enum PushShowCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        try parsed.show(try parsed.ask("GET", self.path(parsed))) { self.text($0) }
    }

    package static func path(_ parsed: ParsedCommand) -> String {
        let device = parsed.text("--device").map { "?device=\(URLPath.component($0))" } ?? ""
        return "/v1/pushes/\(URLPath.component(parsed.arguments[0]))\(device)"
    }

    /// Returns a line for each member, the steps, and a command that shows more.
    package static func text(_ push: JSONValue) -> String {
        let members = [
            ["push", push["apnsID"]?.text ?? "-"],
            ["state", self.state(push)],
            ["device", push["device"]?.text ?? "-"],
            ["topic", push["topic"]?.text ?? "-"],
            ["priority", self.number(push["priority"])],
            ["received", TableText.moment(push["receivedAt"])],
            ["payload", push["payloadBytes"]?.number.map { "\(JSONNumber.text(of: $0)) bytes" } ?? "-"],
            ["launches", self.number(push["attempts"])],
            ["worker", push["worker"]?.text ?? "-"],
            ["held by", self.list(push["held"]?.elements.compactMap(\.text) ?? [])],
            ["waited", self.list(self.waits(push["waited"]))],
        ]
        let steps = (push["events"]?.elements ?? []).map { step in
            let others = step["other"]?.text.map { ["\(step["event"]?.text == "absorbed" ? "" : "into ")\($0)"] } ?? []
            let detail = (step["detail"]?.text.map { [EventText.detail($0)] } ?? []) + others
            return [TableText.moment(step["at"]), step["event"]?.text ?? "-", detail.joined(separator: ", ")]
        }
        var text = TableText.lines(members) + "\n" + TableText.lines(steps)
        if let next = self.next(push) { text += "\n" + TerminalText.harmless("see also: \(next)") + "\n" }
        return text
    }

    private static func number(_ value: JSONValue?) -> String { value?.number.map { JSONNumber.text(of: $0) } ?? "-" }

    private static func list(_ texts: [String]) -> String { texts.isEmpty ? "-" : texts.joined(separator: ", ") }

    /// The times that the push waited, such as `10 min interval`.
    private static func waits(_ waited: JSONValue?) -> [String] {
        let holds = (waited?["hold"]?.members ?? []).map { ($0.name, $0.value) }
        let waits = [("interval", waited?["interval"] ?? .null)] + holds + [("worker", waited?["worker"] ?? .null)]
        return waits.compactMap { name, value in
            guard let time = value.number, time > 0 else { return nil }
            return "\(DurationText.text(milliseconds: Int64(Int(saturating: time)))) \(name)"
        }
    }

    private static func state(_ push: JSONValue) -> String {
        let state = push["state"]?.text ?? "-"
        if let heir = push["into"]?.text { return "\(state) into \(heir)" }
        return push["reason"]?.text.map { "\(state): \($0)" } ?? state
    }

    /// Returns a command to continue with: for the push that absorbed this one, or for the device of a pending push.
    private static func next(_ push: JSONValue) -> String? {
        if let heir = push["into"]?.text { return "wakegate push show \(heir)" }
        guard push["state"]?.text == "pending", let device = push["device"]?.text else { return nil }
        return "wakegate doctor \(device)"
    }
}
