import HTTPClient
import Wire

extension ServerSentEvent {
    /// The data as one line. Line feeds can be replaced with spaces, because JSON strings never contain a line feed.
    var dataLine: String {
        String(decoding: self.data.map { $0 == UInt8(ascii: "\n") ? UInt8(ascii: " ") : $0 }, as: UTF8.self)
    }
}

extension CommandDefinition {
    package static let events = CommandDefinition(
        "events",
        "follow the gateway's events: pushes, refusals, wakes and results",
        options: [
            OptionDefinition("--topic TOPIC", "only events of one topic"),
            OptionDefinition("--device TOKEN", "only events of one device"),
            OptionDefinition(
                "--outcome WORD",
                "only these outcomes: refused, launched, coalesced, failed, expired, lost, BadDeviceToken, ...",
                isRepeatable: true
            ),
            OptionDefinition("--json", "print each event unchanged, one JSON object per line"),
        ] + OptionDefinition.client,
        example: "wakegate events --topic com.example.app --outcome refused",
        notes: """
            It prints events from now on. If the connection ends, the command follows again as soon as the gateway is
            back; events in the meantime are not printed. If it reads too slowly, it prints the number of missed events.
            After SIGINT or SIGTERM it exits with status 0. For earlier events, `wakegate device events TOKEN` lists all
            events of a device, `wakegate stats --device TOKEN` the last 32, and `wakegate push list` lists pushes.
            """,
        run: EventsCommand.run
    )
}

/// `wakegate events`.
package enum EventsCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let isJSON = parsed.isSet("--json")
        if !isJSON, parsed.isSet("--topic") || parsed.isSet("--device") {
            let location = try GatewayLocation(parsed, side: .admin)
            try parsed.noteUnknown(location, try location.client())
        }
        let stream = try WatchConnection(.stream(self.path(parsed)), parsed, side: .admin)
        return try stream.printEvents(("following", "following"), isJSON: isJSON) { event in
            guard let news = LiveNews(name: event.name, data: event.data) else { return nil }
            return isJSON ? self.json(news, event) : EventText.line(news)
        }
    }

    /// Returns the path of the stream, with its filters.
    package static func path(_ parsed: ParsedCommand) -> String {
        let query = ["topic", "device", "outcome"].compactMap(parsed.parameter)
        return query.isEmpty ? "/v1/events" : "/v1/events?\(query.joined(separator: "&"))"
    }

    private static func json(_ news: LiveNews, _ event: ServerSentEvent) -> String {
        switch news {
        case .event: event.dataLine
        // The object has the member `event`, as on all other lines.
        case .missed(let count): #"{"event":"missed","count":\#(count)}"#
        }
    }
}
