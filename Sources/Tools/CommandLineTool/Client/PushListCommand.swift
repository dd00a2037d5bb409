import HTTPClient
import Platform
package import Wire

extension CommandDefinition {
    package static let pushList = CommandDefinition(
        "push list",
        "list pushes, the newest first, and what became of them",
        options: [
            OptionDefinition("--topic", "TOPIC", "to devices of one topic"),
            OptionDefinition(
                "--outcome",
                "WORD",
                "those that ended so, or have not ended",
                words: PushListCommand.outcomes
            ),
            OptionDefinition("--since", "TIME", "of the last so many seconds, minutes, hours or days: 30s, 1h, 7d"),
            OptionDefinition("--limit", "N", "at most N pushes; default: 100", value: .integer(1...1_000_000)),
            OptionDefinition("--after", "NEXT", "go on where a list left off"),
            OptionDefinition("--json", "", "the gateway's answers as they are, a page a line"),
        ] + OptionDefinition.client,
        example: "wakegate push list --topic com.example.app --outcome expired --since 1h",
        notes: [
            """
            outcomes:
              pending    it waits
              inFlight   its wake is on its way, or being handled
              completed  a worker handled it
              coalesced  a later push to the device took its place
              noWake     it wakes nobody: it has no content-available
              expired, exhausted, forceQuit, unregistered, cancelled   it was discarded, and why
            """
        ],
        run: PushListCommand.list
    )
}

/// `wakegate push list`.
package enum PushListCommand {
    package static let outcomes = [
        "pending", "inFlight", "completed", "coalesced", "noWake", "expired", "exhausted", "forceQuit", "unregistered",
        "cancelled",
    ]
    static func list(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let since = try self.since(parsed.text("--since"), now: SystemClock.wall)
        return try ListPages(
            member: "pushes",
            nothing: "there is no such push in the delivery log",
            path: { self.path(parsed, since: since, limit: $0, after: $1) },
            text: { self.text($0, withHead: $1) }
        ).show(parsed)
    }

    /// When the time of `--since` began, in milliseconds since 1970; nil for none.
    package static func since(_ text: String?, now: Int64) throws(CommandFailure) -> Int64? {
        guard let text else { return nil }
        let units: [Character: Int64] = ["s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000]
        guard let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()), 1...100_000 ~= count
        else {
            throw .usage("--since is a number of seconds, minutes, hours or days, such as 30m, 1h or 7d, not \(text)")
        }
        return max(0, now - count * unit)
    }

    /// The path of a page.
    package static func path(_ parsed: ParsedCommand, since: Int64?, limit: Int, after: String?) -> String {
        let query =
            (since.map { ["since=\($0)"] } ?? [])
            + ListPages.query(parsed, ["topic", "outcome"], limit: limit, after: after)
        return "/v1/pushes?\(query.joined(separator: "&"))"
    }

    /// A line a push, all of the same columns however many pages there are.
    package static func text(_ pushes: [JSONValue], withHead isHead: Bool) -> String {
        guard !pushes.isEmpty else { return "" }
        let head = self.line("received", "outcome", "ended", "apns-id", "topic", "device")
        return (isHead ? head : "")
            + pushes.map { push in
                self.line(
                    self.moment(push["receivedAt"]),
                    push["outcome"]?.text ?? "-",
                    self.moment(push["outcomeAt"]),
                    push["apnsID"]?.text ?? "-",
                    push["topic"]?.text ?? "-",
                    push["device"]?.text ?? "-"
                )
            }.joined()
    }

    private static func moment(_ value: JSONValue?) -> String { value?.number.map { TimeText.instant($0) } ?? "-" }

    private static func line(
        _ received: String,
        _ outcome: String,
        _ ended: String,
        _ identifier: String,
        _ topic: String,
        _ device: String
    ) -> String {
        let columns = [(received, 20), (outcome, 12), (ended, 20), (identifier, 36), (topic, 24)]
        let padded = columns.map { text, width in
            text + String(repeating: " ", count: max(0, width - text.count))
        }
        return TerminalText.harmless((padded + [device]).joined(separator: "  ")) + "\n"
    }
}
