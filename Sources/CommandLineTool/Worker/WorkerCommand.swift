import Glibc
import HTTPClient

extension CommandDefinition {
    package static let worker = CommandDefinition(
        "worker",
        "run a command for each wake of a topic",
        trailing: "COMMAND [ARG...]",
        options: [
            OptionDefinition("--topic", "TOPIC", "the topic to subscribe to", isRequired: true),
            OptionDefinition("--slots", "N", "at most N commands at once; default: 1", value: .integer(1...4096)),
            OptionDefinition("--device", "TOKEN", "only wakes of this device; up to 64", isRepeatable: true),
            OptionDefinition("--name", "NAME", "what the gateway calls this worker; default: the host's name"),
        ] + OptionDefinition.client,
        example: "wakegate worker --topic com.example.app --slots 4 -- ./handle-wake",
        notes: [
            """
            COMMAND finds the payload on standard input, and in its environment WAKEGATE_WAKE, WAKEGATE_DEVICE,
            WAKEGATE_TOPIC, WAKEGATE_ATTEMPT, WAKEGATE_COALESCED and WAKEGATE_DEADLINE (milliseconds since 1970).
            Exit status 0 means new data, 3 means no data, anything else that it failed. When its time is over it
            gets SIGTERM, and SIGKILL two seconds later.
            """,
            "SIGTERM or SIGINT: no new command is started, those that run may end, then the worker does.",
        ],
        run: WorkerCommand.run
    )
}

/// `wakegate worker`.
package enum WorkerCommand {
    static func run(_ parsed: ParsedCommand, _ environment: CommandEnvironment) async throws(CommandFailure) -> Int32 {
        guard parsed.all("--device").count <= 64 else {
            throw .usage("--device was given \(parsed.all("--device").count) times; give it at most 64 times")
        }
        guard self.isRunnable(parsed.trailing[0]) else {
            throw .usage("\"\(parsed.trailing[0])\" is no program; put the path of one, or a name in PATH, after --")
        }
        let location = try GatewayLocation(parsed, side: .edge)
        let worker = try Worker(
            location: location,
            path: self.path(parsed),
            slots: parsed.integer("--slots") ?? 1,
            command: parsed.trailing
        )
        return try worker.run()
    }

    private static func path(_ parsed: ParsedCommand) -> String {
        var query = ["slots=\(parsed.integer("--slots") ?? 1)"]
        query.append("name=\(URLPath.component(parsed.text("--name") ?? self.hostName))")
        query += parsed.all("--device").map { "device=\(URLPath.component($0))" }
        let topic = URLPath.component(parsed.text("--topic") ?? "")
        return "/v1/topics/\(topic)/wakes?\(query.joined(separator: "&"))"
    }

    private static var hostName: String {
        var bytes = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&bytes, bytes.count - 1) == 0 else { return "worker" }
        return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Whether the program can be found as a shell would find it.
    private static func isRunnable(_ program: String) -> Bool {
        if program.contains("/") { return unsafe access(program, X_OK) == 0 }
        let path = unsafe getenv("PATH").map { unsafe String(cString: $0) } ?? "/bin:/usr/bin"
        return path.split(separator: ":").contains { unsafe access("\($0)/\(program)", X_OK) == 0 }
    }
}
