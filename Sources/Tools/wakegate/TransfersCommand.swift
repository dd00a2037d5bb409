package import CommandLineTool
import Gateway
import Platform
import ServiceManager
import TransferAgent
import Wire

extension CommandDefinition {
    package static let transfers = CommandDefinition(
        "transfers",
        "run the agent that goes on with transfers while their worker does not",
        options: [
            OptionDefinition("--state", "DIR", "the state folder, which no other agent uses"),
            OptionDefinition("--listen", "unix:PATH", "where workers connect: a socket for this user alone"),
            OptionDefinition("--gateway", "URL", "the gateway that is told of finished sessions"),
            OptionDefinition("--ca", "FILE", "PEM file of the authority that signed the gateway's certificate"),
            OptionDefinition("--token", "FILE", "file with the bearer token that the gateway is shown"),
            OptionDefinition(
                "--metered",
                "WORD",
                "whether the network costs by the byte: auto, yes or no",
                words: ["auto", "yes", "no"]
            ),
            OptionDefinition("--trust", "FILE", "PEM file of the authorities that transfers trust"),
            OptionDefinition("--config", "FILE", "the configuration, JSON5; options win over it"),
            OptionDefinition("--check", "", "check the configuration, show every fault, and end"),
            OptionDefinition(
                "--set",
                "KEY=VALUE",
                "set any key of the configuration, such as limits.running=8",
                value: .setting,
                isRepeatable: true,
                words: AgentKey.all.map { "\($0.name)=" }
            ),
        ],
        example: "wakegate transfers --state ./transfers --listen unix:/run/user/1000/transfers.sock --check",
        notes: [
            "keys of the configuration, for FILE and --set:\n"
                + AgentKey.all.map { "  \($0.name): \($0.summary)\n      \($0.requirement)" }.joined(separator: "\n"),
            """
            One agent serves one user: its socket has mode 0600, and a caller of another user but root is refused. It
            reads and writes files with its user's rights. When the last transfer of a session has ended and nobody
            follows its events, it asks the gateway to wake the session's device, until the gateway answers.
            """,
            """
            SIGTERM or SIGINT stops it within seconds; what has come of transfers stays, and the next start goes on
            with it. As a service of systemd (Type=notify) it tells when it is ready and that it is alive
            (WatchdogSec=); a listening socket that systemd passes takes the place of --listen.
            """,
        ],
        run: TransfersCommand.run
    )
}

/// `wakegate transfers`.
package enum TransfersCommand {
    private static let options = ["state", "listen", "gateway", "ca", "token", "metered", "trust"]

    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        try ServeCommand.checkLimits()
        let socket = parsed.isSet("--check") ? nil : try self.takeSocket()
        var assignments = parsed.all("--set")
        for option in self.options {
            if let value = parsed.text("--\(option)") { assignments.append("\(option)=\(value)") }
        }
        if let socket { assignments.append("listen=\(socket.address)") }
        var settings: AgentSettings
        do throws(AgentSettingsError) {
            settings = try AgentSettingsReader.read(file: parsed.text("--config"), assignments: assignments)
        } catch {
            throw CommandFailure(.badConfiguration, error.description)
        }
        if parsed.isSet("--check") {
            if let fault = StateFolder.fault(settings.stateFolder) {
                throw CommandFailure(.badConfiguration, "state: \(fault.problem); \(fault.remedy)")
            }
            Console.error("wakegate: the configuration is good")
            return 0
        }
        let folder = try StateFolder(settings.stateFolder, for: "transfers agent")
        settings.stateFolder = folder.path
        settings.version = wakeGateVersion
        settings.commit = wakeGateCommit
        do {
            let listen = settings.listen
            try AgentProcess.run(settings, socket: socket) {
                Console.out(json: "{\"ready\": true, \"listen\": \(JSONText.quoted(listen))}")
            }
            return 0
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
    }

    /// The socket that the service manager opened.
    private static func takeSocket() throws(CommandFailure) -> InheritedSocket? {
        let sockets: [InheritedSocket]
        do throws(ServiceManagerError) { sockets = try Systemd.takeSockets() } catch {
            throw CommandFailure(.badConfiguration, "\(error)")
        }
        guard sockets.count <= 1 else {
            let message = "the service manager passed \(sockets.count) sockets; give the agent one"
            throw CommandFailure(.badConfiguration, message)
        }
        return sockets.first
    }
}
