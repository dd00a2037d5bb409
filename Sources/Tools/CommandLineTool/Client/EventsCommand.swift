import HTTPClient
import Wire

extension CommandDefinition {
    package static let events = CommandDefinition(
        "events",
        "show what happens at the gateway, a line each: pushes, refusals, wakes and results",
        options: [
            OptionDefinition("--topic", "TOPIC", "of one topic"),
            OptionDefinition("--device", "TOKEN", "of one device"),
            OptionDefinition(
                "--outcome",
                "WORD",
                "only what went so: refused, launched, coalesced, no-wake, failed, expired, BadDeviceToken, ..."
            ),
            OptionDefinition("--json", "", "each event as the gateway sends it, a JSON object a line"),
        ] + OptionDefinition.client,
        example: "wakegate events --topic com.example.app --outcome refused",
        notes: [
            """
            It shows what happens from now on. When the gateway goes away it follows again as soon as that is back;
            what happens meanwhile is not shown. Whoever reads too slowly is told how many events were left out. SIGINT
            or SIGTERM ends it with exit status 0. What happened before: wakegate stats --device TOKEN.
            """
        ],
        run: EventsCommand.run
    )
}

/// `wakegate events`.
package enum EventsCommand {
    static func run(_ parsed: ParsedCommand, _ environment: CommandEnvironment) async throws(CommandFailure) -> Int32 {
        let isJSON = parsed.isSet("--json")
        var watch = StreamWatch(path: self.path(parsed), words: ("following", "following"), isJSON: isJSON) {
            () throws(CommandFailure) in
            try GatewayLocation(parsed, side: .admin)
        } line: { event in
            guard let news = LiveNews(name: event.name, data: event.data) else { return nil }
            return isJSON ? self.json(news, event) : EventText.line(news)
        }
        return try watch.run()
    }

    /// What is followed.
    package static func path(_ parsed: ParsedCommand) -> String {
        let query = ["topic", "device", "outcome"].compactMap { name in
            parsed.text("--\(name)").map { "\(name)=\(URLPath.component($0))" }
        }
        return query.isEmpty ? "/v1/events" : "/v1/events?\(query.joined(separator: "&"))"
    }

    private static func json(_ news: LiveNews, _ event: ServerSentEvent) -> String {
        switch news {
        case .event: event.dataLine
        // Beside the others it says what it is.
        case .missed(let count): #"{"event":"missed","count":\#(count)}"#
        }
    }
}
