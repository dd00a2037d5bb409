import HTTPClient

extension CommandDefinition {
    package static let stats = CommandDefinition(
        "stats",
        "show what the gateway has done, or explain one device",
        options: [
            OptionDefinition("--topic", "TOPIC", "of one topic"),
            OptionDefinition("--device", "TOKEN", "explain a device: what it waits for, and why"),
            OptionDefinition("--json", "", "the gateway's answer as it is"),
            OptionDefinition("--watch", "", "a view that stays; without a terminal a line a second"),
        ] + OptionDefinition.client,
        example: "wakegate stats --topic com.example.app --watch",
        notes: [
            """
            --watch redraws in place, follows the terminal's size, and goes on when the gateway comes back; q or
            Control-C ends it. NO_COLOR=1 takes the colours away. With --json each answer is one line.
            """
        ],
        run: StatsCommand.run
    )
}

/// `wakegate stats`.
package enum StatsCommand {
    static func run(_ parsed: ParsedCommand, _ environment: CommandEnvironment) async throws(CommandFailure) -> Int32 {
        guard !parsed.isSet("--topic") || !parsed.isSet("--device") else {
            throw .usage("--topic and --device exclude each other; a device has one topic: write --device alone")
        }
        let location = try GatewayLocation(parsed, side: .admin)
        guard parsed.isSet("--watch") else {
            return try self.showOnce(parsed, location, try location.client())
        }
        let topic = parsed.text("--topic").map { WatchSubject.topic($0) }
        let subject = parsed.text("--device").map { WatchSubject.device($0) } ?? topic ?? .gateway
        let connection = try WatchConnection(subject.path, location)
        var session = ViewSession(
            StatsView(subject, place: location.place),
            connection,
            isJSON: parsed.isSet("--json")
        )
        return try session.run()
    }

    private static func showOnce(
        _ parsed: ParsedCommand,
        _ location: GatewayLocation,
        _ client: HTTPClient
    ) throws(CommandFailure) -> Int32 {
        var path = "/v1/stats"
        if let topic = parsed.text("--topic") { path += "/topics/\(URLPath.component(topic))" }
        if let device = parsed.text("--device") { path = "/v1/devices/\(URLPath.component(device))" }
        let response = try location.answer(location.request("GET", path), with: client)
        let value = try GatewayAnswer.object(response)
        guard !parsed.isSet("--json") else {
            Console.out(json: response.text)
            return 0
        }
        guard !parsed.isSet("--device") else {
            Console.out(ExplainText.text(value))
            return 0
        }
        var text = StatsText.totals(value)
        if !parsed.isSet("--topic") {
            let topics = try location.answer(location.request("GET", "/v1/topics"), with: client)
            text += StatsText.topics(try GatewayAnswer.object(topics))
        }
        Console.out(text)
        return 0
    }
}
