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
            OptionDefinition(
                "--report-conditions",
                "",
                "tell the gateway this machine's battery, thermal state, power saving and network as those of --device"
            ),
            OptionDefinition(
                "--output",
                "log|inherit",
                "the commands' output: the wake's id before each line (log, the default), or as it is"
            ),
            OptionDefinition("--system-root", "DIR", "read the machine's state below DIR instead of /; for tests"),
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
            """
            SIGTERM or SIGINT: no new command is started, those that run may end, then the worker does; a second one
            stops the commands, too. When the worker dies, even by SIGKILL, its commands get SIGTERM, and SIGKILL two
            seconds later. Signals go to a command's whole process group.
            """,
            """
            --output log writes at most 4096 bytes as one line and a thousand lines a second; what comes faster is
            dropped and counted, and holds up no command.
            """,
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
        guard ProgramPath.find(parsed.trailing[0]) != nil else {
            throw .usage("\"\(parsed.trailing[0])\" is no program; put the path of one, or a name in PATH, after --")
        }
        let worker = try Worker(location: GatewayLocation(parsed, side: .edge), settings: self.settings(parsed))
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

    private static func settings(_ parsed: ParsedCommand) throws(CommandFailure) -> Worker.Settings {
        let output = parsed.text("--output") ?? "log"
        guard output == "log" || output == "inherit" else {
            throw .usage("--output is \"\(output)\"; it is log or inherit")
        }
        var devices: [String] = []
        if parsed.isSet("--report-conditions") {
            for device in parsed.all("--device") where !devices.contains(device) { devices.append(device) }
            guard !devices.isEmpty else {
                throw .usage(
                    "--report-conditions does not know which device this machine is; add --device TOKEN "
                        + "(`wakegate device register --topic \(parsed.text("--topic") ?? "TOPIC")` makes one)"
                )
            }
        }
        return Worker.Settings(
            path: self.path(parsed),
            slots: parsed.integer("--slots") ?? 1,
            command: parsed.trailing,
            isOutputLogged: output == "log",
            reportedDevices: devices,
            systemRoot: parsed.text("--system-root") ?? "/"
        )
    }
}
