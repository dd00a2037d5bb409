import HTTPClient
package import Wire

extension CommandDefinition {
    package static let deviceList = CommandDefinition(
        "device list",
        "list devices, by topic, state and hold",
        options: [
            OptionDefinition("--topic", "TOPIC", "of one topic"),
            OptionDefinition(
                "--state",
                "STATE",
                "pending, inFlight, held or idle",
                words: DeviceListCommand.states
            ),
            OptionDefinition("--hold", "CODE", "those whose push this hold keeps back", words: DeviceListCommand.holds),
            OptionDefinition("--limit", "N", "at most N devices; default: 100", value: .integer(1...1_000_000)),
            OptionDefinition("--after", "TOKEN", "only devices behind this one, in the order of tokens"),
            OptionDefinition("--json", "", "the gateway's answers as they are, a page a line"),
        ] + OptionDefinition.client,
        example: "wakegate device list --topic com.example.app --hold battery",
        notes: [
            """
            states:
              pending   a push waits for its time
              inFlight  a wake is on its way, or being handled
              held      a push waits, and a hold keeps it back: `wakegate stats --device TOKEN` says why
              idle      nothing waits
            """
        ],
        run: DeviceListCommand.list
    )
}

/// `wakegate device list`.
package enum DeviceListCommand {
    package static let states = ["pending", "inFlight", "held", "idle"]
    package static let holds = [
        "paused", "forceQuit", "backgroundRefresh", "network", "thermal", "battery", "priority", "worker",
    ]

    static func list(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        try ListPages(
            member: "devices",
            nothing: "there is no such device",
            path: { self.path(parsed, limit: $0, after: $1) },
            text: { self.text($0, withHead: $1) }
        ).show(parsed)
    }

    /// The path of a page.
    package static func path(_ parsed: ParsedCommand, limit: Int, after: String?) -> String {
        let query = ListPages.query(parsed, ["topic", "state", "hold"], limit: limit, after: after)
        return "/v1/devices?\(query.joined(separator: "&"))"
    }

    /// A line a device, all of the same columns however many pages there are.
    package static func text(_ devices: [JSONValue], withHead isHead: Bool) -> String {
        guard !devices.isEmpty else { return "" }
        let head = self.line("state", "held", "may launch at", "last launch", "topic", "token")
        return (isHead ? head : "")
            + devices.map { device in
                self.line(
                    device["state"]?.text ?? "-",
                    (device["held"]?.elements ?? []).first?.text ?? "-",
                    self.moment(device["eligibleAt"]),
                    self.moment(device["lastLaunchAt"]),
                    device["topic"]?.text ?? "-",
                    device["token"]?.text ?? "-"
                )
            }.joined()
    }

    private static func moment(_ value: JSONValue?) -> String { value?.number.map { TimeText.instant($0) } ?? "-" }

    private static func line(
        _ state: String,
        _ held: String,
        _ eligible: String,
        _ last: String,
        _ topic: String,
        _ token: String
    ) -> String {
        let columns = [(state, 8), (held, 17), (eligible, 20), (last, 20), (topic, 24)]
        let padded = columns.map { text, width in
            text + String(repeating: " ", count: max(0, width - text.count))
        }
        return TerminalText.harmless((padded + [token]).joined(separator: "  ")) + "\n"
    }
}
