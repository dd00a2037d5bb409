package import CommandLineTool
import FoundationEssentials
import Gateway
import Platform
import ServiceManager
import TransferAgent
import Wire

extension CommandDefinition {
    package static let transfers = CommandDefinition(
        "transfers",
        "run the background transfer agent",
        options: [
            OptionDefinition("--state DIR", "the state folder; default: ~/.local/state/wakegate/transfers"),
            OptionDefinition(
                "--listen unix:PATH",
                "the socket for workers of this user; default: wakegate/transfers.sock in XDG_RUNTIME_DIR"
            ),
            OptionDefinition("--gateway URL", "the gateway to notify of finished sessions and ask for force-quits"),
            OptionDefinition("--ca FILE", "PEM file of the authority that signed the gateway's certificate"),
            OptionDefinition("--token-file FILE", "file with the bearer token for the gateway"),
            OptionDefinition("--token FILE", "the former name of --token-file"),
            OptionDefinition(
                "--metered WORD",
                "treat the network as metered: auto, yes or no; default: auto",
                words: ["auto", "yes", "no"]
            ),
            OptionDefinition(
                "--constrained WORD",
                "treat the network as saving data: auto, yes or no; default: auto",
                words: ["auto", "yes", "no"]
            ),
            OptionDefinition("--trust FILE", "PEM file of the certificate authorities for transfers"),
            OptionDefinition("--config FILE", "the configuration file in JSON5; options override it"),
            OptionDefinition("--check", "check the configuration, print every fault, and exit"),
            .set("set any key of the configuration, such as limits.running=8", AgentKey.all.map(\.name)),
        ],
        example: "wakegate transfers --state ./transfers --listen unix:/run/user/1000/transfers.sock --check",
        notes: """
            keys of the configuration, for FILE and --set:
            \(AgentKey.all.map { "  \($0.name): \($0.summary)\n      \($0.requirement)" }.joined(separator: "\n"))

            An agent serves one user: its socket has mode 0600, and callers of other users except root are refused. It
            reads and writes files with the rights of its user. When the last transfer of a session has ended and no
            client follows its events, the agent requests a wake of the session's device until the gateway answers.
            While the app is force-quit on that device, the session's transfers wait, unless the session has
            continuesAfterForceQuit.

            SIGTERM or SIGINT stops it within seconds. It keeps received bytes, and resumes the transfers at the next
            start. As a systemd service (Type=notify) it reports its readiness and that it is alive (WatchdogSec=); a
            listening socket that systemd passes replaces --listen.
            """,
        run: TransfersCommand.run
    )
}

/// `wakegate transfers`.
package enum TransfersCommand {
    private static let options = ["state", "listen", "gateway", "ca", "token", "metered", "constrained", "trust"]

    /// Returns the default settings: this user's state folder, and the socket to which clients connect by default.
    private static func defaults(_ variables: [String: String]) -> AgentSettings {
        var settings = AgentSettings()
        let folder = { (name: String) in variables[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
        let state = folder("XDG_STATE_HOME") ?? folder("HOME").map { "\($0)/.local/state" }
        if let state { settings.stateFolder = "\(state)/wakegate/transfers" }
        if let runtime = folder("XDG_RUNTIME_DIR") { settings.listen = "unix:\(runtime)/wakegate/transfers.sock" }
        return settings
    }

    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        try ServeCommand.checkLimits()
        let socket = parsed.isSet("--check") ? nil : try self.takeSocket()
        var assignments = parsed.all("--set")
        for option in self.options {
            if let value = parsed.text("--\(option)") { assignments.append("\(option)=\(value)") }
        }
        guard !parsed.isSet("--token-file") || !parsed.isSet("--token") else {
            throw .usage("--token and --token-file were both given; give --token-file alone")
        }
        if let file = parsed.text("--token-file") { assignments.append("token=\(file)") }
        if parsed.isSet("--token") { Console.error("wakegate: warning: --token FILE is now --token-file FILE") }
        if let socket { assignments.append("listen=\(socket.address)") }
        let defaults = self.defaults(ProcessInfo.processInfo.environment)
        var settings: AgentSettings
        do throws(AgentSettingsError) {
            settings = try AgentSettingsReader.read(
                file: parsed.text("--config"),
                assignments: assignments,
                base: defaults
            )
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
        if settings.listen == defaults.listen, socket == nil, let path = settings.socketPath {
            // The folder of the default socket is created here. `XDG_RUNTIME_DIR` itself must exist.
            try? FileSystem.makeFolder(String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)]), mode: 0o700)
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
            throw .failed("\(error)")
        }
    }

    /// Returns the listening socket that the service manager has passed to this process; nil if there is none.
    private static func takeSocket() throws(CommandFailure) -> InheritedSocket? {
        let sockets = try ServeCommand.takeSockets()
        guard sockets.count <= 1 else {
            let message = "the service manager passed \(sockets.count) sockets; give the agent one"
            throw CommandFailure(.badConfiguration, message)
        }
        return sockets.first
    }
}
