import HTTPClient
package import Wire

extension CommandDefinition {
    private static let topicName = ArgumentDefinition("TOPIC", "the topic")

    package static let topicList = CommandDefinition(
        "topic list",
        "list the topics, with what waits of each and which are paused",
        options: [OptionDefinition("--json", "", "show the gateway's answer as it is")] + OptionDefinition.client,
        example: "wakegate topic list",
        run: TopicCommands.list
    )

    package static let topicPause = CommandDefinition(
        "topic pause",
        "launch nothing of a topic by itself from now on; what comes is taken, and waits",
        arguments: [topicName],
        options: OptionDefinition.client,
        example: "wakegate topic pause com.example.app",
        notes: ["Wakes in flight go on. `wakegate device launch` launches what a person wants to try."],
        run: TopicCommands.pausing(true)
    )

    package static let topicResume = CommandDefinition(
        "topic resume",
        "launch what waits of a paused topic by its policy again",
        arguments: [topicName],
        options: OptionDefinition.client,
        example: "wakegate topic resume com.example.app",
        run: TopicCommands.pausing(false)
    )
}

/// `wakegate topic`.
package enum TopicCommands {
    static func list(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let response = try location.answer(location.request("GET", "/v1/topics"), with: try location.client())
        let answer = try GatewayAnswer.object(response)
        guard !parsed.isSet("--json") else {
            Console.out(json: response.text)
            return 0
        }
        Console.out(self.text(answer))
        return 0
    }

    static func pausing(_ isPaused: Bool) -> CommandDefinition.Run {
        { parsed, _ throws(CommandFailure) in
            let location = try GatewayLocation(parsed, side: .admin)
            let topic = parsed.arguments[0]
            let path = "/v1/topics/\(URLPath.component(topic))/\(isPaused ? "pause" : "resume")"
            let request = location.request("POST", path, body: [])
            try GatewayAnswer.check(try location.answer(request, with: try location.client()))
            Console.error(
                isPaused
                    ? "wakegate: \(topic) is paused; what comes waits until `wakegate topic resume \(topic)`"
                    : "wakegate: \(topic) is not paused; what has waited launches by its policy"
            )
            return 0
        }
    }

    /// The topics with their counts, for people.
    ///
    /// - Parameter answer: that of `/v1/topics`.
    package static func text(_ answer: JSONValue) -> String {
        let topics = answer["topics"]?.elements ?? []
        guard !topics.isEmpty else { return "no topics\n" }
        let counts = ["devices", "workers", "pending", "inFlight"]
        let rows = topics.map { topic in
            [topic["topic"]?.text ?? "-"] + counts.map { topic[$0]?.number.map { JSONNumber.text(of: $0) } ?? "-" }
                + [topic["paused"] == .bool(true) ? "paused" : ""]
        }
        return TaskText.table([["topic", "devices", "workers", "pending", "in flight", ""]] + rows)
    }
}
