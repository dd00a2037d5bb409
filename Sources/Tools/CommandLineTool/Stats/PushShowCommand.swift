import HTTPClient
package import Wire

extension CommandDefinition {
    package static let pushShow = CommandDefinition(
        "push show",
        "print a push: its device, its state, and each step with its time",
        arguments: [ArgumentDefinition("ID", "the apns-id of the push")],
        options: [
            OptionDefinition("--device TOKEN", "the device, if pushes to several devices have this apns-id"),
            OptionDefinition("--json", "print the gateway's answer unchanged"),
        ] + OptionDefinition.client,
        example: "wakegate push show 9a96d8fb-4351-8e93-6f91-0f7f9be3cc0f",
        notes: """
            The push is read from the delivery log, GET /v1/pushes/<apns-id> of the admin listener. The device and the
            topic are missing if the device was removed, and the priority if the log does not have it.
            """,
        run: PushShowCommand.run
    )
}

/// `wakegate push show`.
package enum PushShowCommand {
    /// The maximum number of pushes to follow from a coalesced push, each merged into the next.
    private static let hopsMax = 1000

    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        guard parsed.arguments[0].withByteView({ APNsID($0) }) != nil else {
            throw .usage("\"\(parsed.arguments[0])\" is not an apns-id; `wakegate push list` shows them")
        }
        let location = try GatewayLocation(parsed, side: .admin)
        let client = try location.client()
        let response = try location.answer(location.request("GET", self.path(parsed)), with: client)
        try GatewayAnswer.check(response) { reason in
            reason == "UnknownPush" && parsed.isSet("--device")
                ? "no push of this device has this apns-id; leave --device out" : nil
        }
        let push = try GatewayAnswer.object(response)
        guard !parsed.isSet("--json") else {
            Console.out(json: response.text)
            return 0
        }
        var chained = parsed
        if let device = push["device"]?.text { chained.values["--device"] = [device] }
        var heir = push
        for _ in 0..<self.hopsMax {
            guard let next = heir["into"]?.text else { break }
            chained.arguments = [next]
            let answer = try location.answer(location.request("GET", self.path(chained)), with: client)
            guard answer.isSuccess else { break }
            heir = try GatewayAnswer.object(answer)
        }
        Console.out(self.text(push, heir))
        return 0
    }

    package static func path(_ parsed: ParsedCommand) -> String {
        let device = parsed.text("--device").map { "?device=\(URLPath.component($0))" } ?? ""
        return "/v1/pushes/\(URLPath.component(parsed.arguments[0]))\(device)"
    }

    /// Returns a line for each property of the push, its steps, and a command that shows more.
    ///
    /// - `heir`: the push into which this push was finally merged; the push itself if it was not coalesced.
    package static func text(_ push: JSONValue, _ heir: JSONValue) -> String {
        var members = [
            ["push", push["apnsID"]?.text ?? "-"],
            ["state", self.state(push, heir)],
            ["device", push["device"]?.text ?? "-"],
            ["topic", push["topic"]?.text ?? "-"],
            ["priority", TableText.number(push["priority"])],
            ["received", TableText.moment(push["receivedAt"])],
            ["payload", push["payloadBytes"]?.number.map { "\(JSONNumber.text(of: $0)) bytes" } ?? "-"],
            ["attempts", TableText.number(push["attempts"])],
            ["worker", push["worker"]?.text ?? "-"],
            ["held by", ExplainText.list(push["held"]?.elements.compactMap(\.text) ?? [])],
            ["waited", ExplainText.list(ExplainText.waits(push["waited"]))],
        ]
        if push["state"]?.text == "pending" {
            members.append(["expires", TableText.due(push["expiresAt"])])
            members.append(["replaced", TableText.number(push["coalesced"])])
        }
        let steps = (push["events"]?.elements ?? []).map { step in
            let others = step["other"]?.text.map { ["\(step["event"]?.text == "absorbed" ? "" : "into ")\($0)"] } ?? []
            let detail = (step["detail"]?.text.map { [EventText.detail($0)] } ?? []) + others
            return [TableText.moment(step["at"]), step["event"]?.text ?? "-", detail.joined(separator: ", ")]
        }
        var text = TableText.lines(members) + "\n" + TableText.lines(steps)
        if let next = self.next(push, heir) { text += "\n" + TerminalText.sanitized("see also: \(next)") + "\n" }
        return text
    }

    private static func state(_ push: JSONValue, _ heir: JSONValue) -> String {
        let state = push["state"]?.text ?? "-"
        guard let next = push["into"]?.text else { return push["reason"]?.text.map { "\(state): \($0)" } ?? state }
        guard let id = heir["apnsID"]?.text, id != push["apnsID"]?.text else { return "\(state) into \(next)" }
        let launch = heir["events"]?.elements.last { $0["event"]?.text == "launched" }
        let end = self.state(heir, heir)
        let waits = ExplainText.waits(heir["waited"])
        let waited = waits.isEmpty ? "" : ", waited \(ExplainText.list(waits))"
        guard let launch else { return "\(state); \(id) is \(end)\(waited)" }
        return "\(state); woken as \(id) at \(TableText.moment(launch["at"])) (\(end))\(waited)"
    }

    /// Returns a command for further information: for a coalesced push, about the push it was merged into; for a
    /// pending push, about its device. Returns nil for other pushes.
    private static func next(_ push: JSONValue, _ heir: JSONValue) -> String? {
        if let next = push["into"]?.text {
            let id = heir["apnsID"]?.text ?? next
            return "wakegate push show \(id == push["apnsID"]?.text ? next : id)"
        }
        guard push["state"]?.text == "pending", let device = push["device"]?.text else { return nil }
        return "wakegate doctor \(device)"
    }
}
