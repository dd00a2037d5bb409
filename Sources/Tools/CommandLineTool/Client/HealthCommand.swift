import HTTPClient
import Wire

extension CommandDefinition {
    package static let health = CommandDefinition(
        "health",
        "ask the running gateway whether it takes pushes",
        options: OptionDefinition.client,
        example: "wakegate health",
        notes: [
            """
            It asks GET /readyz of the admin listener, and shows the answer. The exit status is 0 when the gateway takes
            pushes, and 1 when it does not, as while it drains or cannot store, and when nobody answers in 4 seconds.
            """
        ],
        run: HealthCommand.run
    )
}

/// `wakegate health`.
enum HealthCommand {
    /// How long the answer may take, in milliseconds: less than a container's health check waits.
    private static let timeoutMilliseconds = 4000

    static func run(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        var request = location.request("GET", "/readyz")
        request.timeoutMilliseconds = self.timeoutMilliseconds
        let response = try location.answer(request, with: try location.client())
        guard response.status != 503 else {
            throw CommandFailure(.failed, "the gateway is not ready: \(Self.line(response.text))")
        }
        try GatewayAnswer.check(response)
        Console.out("\(Self.line(response.text))\n")
        return 0
    }

    private static func line(_ text: String) -> String {
        TerminalText.harmless(text.split(separator: "\n").joined(separator: " "))
    }
}
