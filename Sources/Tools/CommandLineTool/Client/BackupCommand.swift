import HTTPClient
import Platform
import Wire

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
            `wakegate serve --state COPY` starts on it. It holds devices, pushes and counters, token.key, token.revoked
            and history.key; the history itself is not in it, nor are certificates and the configuration.
            A large state takes its time: the command waits for as long as the gateway answers otherwise.
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
        let answer = try GatewayAnswer.object(try self.answer(request, location))
        Console.out("\(answer["path"]?.text ?? "")\n")
        return 0
    }

    /// How often a gateway that copies is asked whether it is alive, and how long its answer may take, in milliseconds.
    private static let probes: (interval: Int64, timeout: Int) = (5000, 15_000)

    /// Waits for an answer for as long as the gateway is alive.
    private static func answer(
        _ request: HTTPRequest,
        _ location: GatewayLocation
    ) throws(CommandFailure) -> HTTPResponse {
        let client = try location.client()
        do throws(HTTPClientError) {
            let copy = try client.start(request)
            var probe: HTTPRequestID?
            var probesAt = SystemClock.monotonic + self.probes.interval
            while true {
                for case .ended(let id, let result) in client.poll(timeoutMilliseconds: 1000) {
                    if id == copy { return try result.get() }
                    // What it answers is of no interest.
                    _ = try result.get()
                    probe = nil
                    probesAt = SystemClock.monotonic + self.probes.interval
                }
                guard probe == nil, SystemClock.monotonic >= probesAt else { continue }
                var request = location.request("GET", "/healthz")
                request.timeoutMilliseconds = self.probes.timeout
                probe = try client.start(request)
            }
        } catch {
            throw location.failure(error)
        }
    }
}
