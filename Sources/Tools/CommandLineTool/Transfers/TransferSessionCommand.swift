package import BackgroundTransfers
import HTTPClient
import Platform
import Wire

/// `wakegate transfer session`.
package enum TransferSessionCommand {
    static func run(_ parsed: ParsedCommand, _ environment: CommandEnvironment) async throws(CommandFailure) -> Int32 {
        let configuration = try self.configuration(parsed)
        guard !parsed.arguments.isEmpty else {
            guard !parsed.isSet("--remove"), configuration == BackgroundSessionConfiguration() else {
                throw .usage("SESSION is missing; name the session that is meant")
            }
            return try await self.list(parsed)
        }
        if parsed.isSet("--remove") {
            let agent = try TransferClient(parsed)
            try await TransferClient.call { () throws(BackgroundTransferError) in try await agent.session.remove() }
            Console.error("wakegate: the session is removed")
            return 0
        }
        let agent = try TransferClient(parsed, configuration)
        let answer = try await TransferClient.call { () throws(BackgroundTransferError) in
            try await agent.session.calls.text("GET", "")
        }
        guard !parsed.isSet("--json") else {
            Console.out(json: answer)
            return 0
        }
        Console.out(TransferText.session(self.object(answer)))
        return 0
    }

    private static func list(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let address = parsed.text("--agent")
        let answer = try await TransferClient.call { () throws(BackgroundTransferError) in
            try await AgentCaller(AgentLocation(address), triesMax: 1).text("GET", "/v1/sessions")
        }
        guard !parsed.isSet("--json") else {
            Console.out(json: answer)
            return 0
        }
        Console.out(TransferText.sessions(self.object(answer)["sessions"]?.elements ?? []))
        return 0
    }

    private static func object(_ text: String) -> JSONValue { (try? JSONReader.read(text)) ?? .null }

    /// What the command line changes.
    ///
    /// - Throws: `badUsage` for words that are neither yes nor no.
    package static func configuration(
        _ parsed: ParsedCommand
    ) throws(CommandFailure) -> BackgroundSessionConfiguration {
        var configuration = BackgroundSessionConfiguration()
        configuration.device = parsed.text("--device")
        configuration.topic = parsed.text("--topic")
        configuration.isDiscretionary = try self.flag("--discretionary", parsed)
        configuration.sendsLaunchEvents = try self.flag("--launch-events", parsed)
        configuration.allowsMetered = try self.flag("--metered", parsed)
        configuration.acceptsEarlyAnswers = try self.flag("--early-answers", parsed)
        configuration.requestTimeout = parsed.integer("--request-timeout").map { .seconds($0) }
        configuration.resourceTimeout = parsed.integer("--resource-timeout").map { .seconds($0) }
        configuration.connectionsPerHost = parsed.integer("--connections")
        return configuration
    }

    private static func flag(_ option: String, _ parsed: ParsedCommand) throws(CommandFailure) -> Bool? {
        switch parsed.text(option) {
        case nil: return nil
        case "yes": return true
        case "no": return false
        case let word?: throw .usage("\(option) is \"\(word)\"; write yes or no")
        }
    }
}
