import HTTPClient
import Platform
import Wire

extension CommandDefinition {
    package static let deviceEvents = CommandDefinition(
        "device events",
        "list the events of a device, newest first",
        arguments: [token],
        options: [
            OptionDefinition("--kind KIND", "only events of one kind", words: DeviceEventsCommand.kinds),
            OptionDefinition("--limit N", "at most N events; default: 100", value: .integer(1...1_000_000)),
            OptionDefinition("--after NEXT", "continue a list; its last line names the value"),
            OptionDefinition("--json", "print the gateway's answers unchanged, one page per line"),
        ] + OptionDefinition.period + OptionDefinition.client,
        example:
            "wakegate device events 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe --since 24h",
        notes: """
            It lists all events of the device in the delivery log. `wakegate stats --device TOKEN` explains its state
            and has the last 32 events. For the hour before 03:00: --since 2026-11-28T02:00:00Z --until
            2026-11-28T03:00:00Z.
            """,
        run: DeviceEventsCommand.run
    )
}

/// The command `wakegate device events`.
package enum DeviceEventsCommand {
    static let kinds = ["push", "task", "conditions", "subscription"]

    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let period = try PushListCommand.period(parsed, now: SystemClock.wall)
        return try ListPages(
            member: "events",
            nothing: "the delivery log has no such event of the device",
            path: { self.path(parsed, period, limit: $0, after: $1) },
            text: { events, _ in
                events.map { TerminalText.sanitized(ExplainText.event($0)) + "\n" }.joined()
            }
        ).show(parsed)
    }

    /// Returns the request path of one page of events.
    ///
    /// - `period`: the query items that limit the time.
    /// - `after`: the `next` value of the previous page; nil for the first page.
    package static func path(_ parsed: ParsedCommand, _ period: [String], limit: Int, after: String?) -> String {
        var query = period + ListPages.query(parsed, ["kind"], limit: limit, after: nil)
        if let after { query.append("before=\(URLPath.component(after))") }
        return "/v1/devices/\(URLPath.component(parsed.arguments[0]))/events?\(query.joined(separator: "&"))"
    }
}
