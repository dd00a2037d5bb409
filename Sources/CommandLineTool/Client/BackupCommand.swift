import HTTPClient
import Text

extension CommandDefinition {
    package static let backup = CommandDefinition(
        "backup",
        "copy the state of the running gateway while it goes on",
        arguments: [ArgumentDefinition("NAME", "the copy's name: letters, digits, '.', '_' and '-', at most 64")],
        options: OptionDefinition.client,
        example: "wakegate backup before-upgrade",
        notes: [
            """
            The copy is a state folder below backups in the gateway's own, shown on standard output when it is whole:
            `wakegate serve --state COPY` starts on it. It holds devices, pushes and counters; the history is not in it.
            """
        ],
        run: BackupCommand.run
    )
}

/// `wakegate backup`.
enum BackupCommand {
    static func run(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let body = Array("{\"name\":\(JSONText.quoted(parsed.arguments[0]))}".utf8)
        var request = location.request("POST", "/v1/backup", body: body)
        // A large state takes its time.
        request.timeoutMilliseconds = nil
        let answer = try GatewayAnswer.object(try location.answer(request, with: try location.client()))
        Console.out("\(answer["path"]?.text ?? "")\n")
        return 0
    }
}
