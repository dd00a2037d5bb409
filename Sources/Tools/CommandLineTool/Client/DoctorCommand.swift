import HTTPClient
package import Wire

extension CommandDefinition {
    package static let doctor = CommandDefinition(
        "doctor",
        "check everything that the launch of a push or a task depends on",
        arguments: [
            ArgumentDefinition("DEVICE", "the device token, hexadecimal"),
            ArgumentDefinition("TASK", "the identifier of a task; without it, a push is checked", count: 0...1),
        ],
        options: [OptionDefinition("--json", "print the gateway's answer unchanged")] + OptionDefinition.client,
        example: "wakegate doctor 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe com.example.refresh",
        notes: """
            It reports the result of a push of priority 5 that would arrive now, or of the request of TASK: the waiting
            or running one, or else an app refresh. Below each failed check it prints the command that fixes the
            problem, if there is one. The exit status is 1 if anything other than time prevents the launch, including a
            missing worker, and 0 otherwise.
            """,
        run: DoctorCommand.run
    )
}

/// `wakegate doctor`.
package enum DoctorCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let response = try parsed.ask("GET", self.path(parsed))
        let status = try self.status(GatewayAnswer.object(response))
        _ = try parsed.show(response) { self.text($0) }
        return status
    }

    package static func path(_ parsed: ParsedCommand) -> String {
        let task = parsed.arguments.dropFirst().first.map { "?task=\(URLPath.component($0))" } ?? ""
        return "/v1/devices/\(URLPath.component(parsed.arguments[0]))/diagnosis\(task)"
    }

    /// The exit status: 1 if anything but a later due time prevents the launch, otherwise 0.
    package static func status(_ diagnosis: JSONValue) -> Int32 {
        let isTimed = ["ready", "waiting", "inFlight"].contains(diagnosis["verdict"]?.text ?? "")
        return isTimed && !self.isUntaken(diagnosis) ? 0 : 1
    }

    /// True if the launch is due later or in flight, and no worker would accept it.
    private static func isUntaken(_ diagnosis: JSONValue) -> Bool {
        guard ["waiting", "inFlight"].contains(diagnosis["verdict"]?.text ?? "") else { return false }
        return diagnosis["checks"]?.elements.contains { $0["check"]?.text == "handler" && $0["ok"] == .bool(false) }
            == true
    }

    /// Returns the verdict and a line for each check, followed by its remedy.
    package static func text(_ diagnosis: JSONValue) -> String {
        let checks = diagnosis["checks"]?.elements ?? []
        let width = checks.compactMap { $0["check"]?.text?.count }.max() ?? 0
        var text = TerminalText.sanitized(self.verdict(diagnosis)) + "\n\n"
        for check in checks {
            let isOK = check["ok"] == .bool(true)
            let name = check["check"]?.text ?? "-"
            let padding = String(repeating: " ", count: width - name.count)
            let start = "\(isOK ? "ok    " : "not ok")  \(name)\(padding)  "
            text += TerminalText.sanitized(start + (check["detail"]?.text ?? "")) + "\n"
            guard let remedy = check["remedy"]?.text else { continue }
            text += TerminalText.sanitized(String(repeating: " ", count: start.count) + remedy) + "\n"
        }
        return text
    }

    private static func verdict(_ diagnosis: JSONValue) -> String {
        let subject = diagnosis["task"]?.text ?? "a push of priority 5"
        let place = "\(diagnosis["device"]?.text ?? "-") of \(diagnosis["topic"]?.text ?? "-")"
        let until = diagnosis["eligibleAt"]?.number.map { " \(TimeText.due($0))" }
        let word =
            switch diagnosis["verdict"]?.text {
            case "ready": "would launch now"
            case "waiting": "waits until\(until ?? " later")"
            case "held": "is held back"
            case "inFlight": "waits for what is in flight"
            case "unregistered": "would be refused"
            case let other: other ?? "-"
            }
        let untaken = ", and no worker of this gateway takes \(diagnosis["task"]?.text ?? "its pushes")"
        return "\(subject) to \(place) \(word)" + (self.isUntaken(diagnosis) ? untaken : "")
    }
}
