import HTTPClient

extension CommandDefinition {
    package static let stats = CommandDefinition(
        "stats",
        "show what the gateway has done, or explain one device",
        options: [
            OptionDefinition("--topic", "TOPIC", "of one topic"),
            OptionDefinition("--device", "TOKEN", "explain a device: what it waits for, and why"),
            OptionDefinition("--json", "", "the gateway's answer as it is"),
            OptionDefinition("--watch", "", "again every two seconds, until interrupted"),
        ] + OptionDefinition.client,
        example: "wakegate stats --topic com.example.app --watch",
        run: StatsCommand.run
    )
}

/// `wakegate stats`.
package enum StatsCommand {
    private static let watchMilliseconds = 2000

    static func run(_ parsed: ParsedCommand, _ environment: CommandEnvironment) async throws(CommandFailure) -> Int32 {
        guard !parsed.isSet("--topic") || !parsed.isSet("--device") else {
            throw .usage("--topic and --device exclude each other; a device has one topic: write --device alone")
        }
        let location = try GatewayLocation(parsed, side: .admin)
        let client = try location.client()
        while true {
            let text = try self.text(parsed, location, client)
            let clear = parsed.isSet("--watch") && Console.isTerminal ? "\u{1B}[H\u{1B}[2J" : ""
            Console.out(clear + text)
            guard parsed.isSet("--watch") else { return 0 }
            // Without a request under way this only waits.
            _ = client.poll(timeoutMilliseconds: self.watchMilliseconds)
        }
    }

    private static func text(
        _ parsed: ParsedCommand,
        _ location: GatewayLocation,
        _ client: HTTPClient
    ) throws(CommandFailure) -> String {
        var path = "/v1/stats"
        if let topic = parsed.text("--topic") { path += "/topics/\(URLPath.component(topic))" }
        if let device = parsed.text("--device") { path = "/v1/devices/\(URLPath.component(device))" }
        let response = try location.answer(location.request("GET", path), with: client)
        let value = try GatewayAnswer.object(response)
        if parsed.isSet("--json") { return response.text.hasSuffix("\n") ? response.text : response.text + "\n" }
        if parsed.isSet("--device") { return ExplainText.text(value) }
        var text = StatsText.totals(value)
        if !parsed.isSet("--topic") {
            let topics = try location.answer(location.request("GET", "/v1/topics"), with: client)
            text += StatsText.topics(try GatewayAnswer.object(topics))
        }
        return text
    }
}
