package import CommandLineTool
import Gateway
import Glibc
import HTTPTransport
import ServiceManager
import Wire

extension CommandDefinition {
    package static let serve = CommandDefinition(
        "serve",
        "run a gateway in production",
        options: [
            OptionDefinition("--config FILE", "the configuration in JSON5; every key is optional"),
            OptionDefinition("--check", "check the configuration, print every fault, and exit"),
        ] + OptionDefinition.server,
        example: "wakegate serve --config /etc/wakegate/wakegate.json5 --check",
        notes: """
            \(KeyManual.page("common keys of the configuration, for FILE and --set", KeyManual.all.filter(\.isCommon)))
            `wakegate serve --help keys` shows all keys but the limits, and `wakegate serve --help limits` the limits.

            Workers must authenticate with bearer tokens (`wakegate token issue`) as soon as the state folder has a
            token.key, and on addresses other than loopback always. Operators must authenticate only on such addresses;
            there the admin listener needs insecure: true. Providers must authenticate if providerKeys or tls.clientCA
            is set. A client certificate of tls.clientCA identifies a provider or, with OU=worker in its subject, a
            worker.

            After SIGTERM or SIGINT it waits for wakes in flight, for at most drainTimeout seconds, and stops. SIGHUP,
            like `wakegate reload`, rereads FILE and applies it as a whole or not at all; --set and the options of the
            command line still override it. --check reports all faults that a start or a reload would report, including
            those of the database in `store`, a store of a newer version, and ports in use, except for those of a
            gateway that runs on the state folder. It changes nothing.

            As a systemd service (Type=notify) it reports its readiness, its state and that it is alive (WatchdogSec=).
            Listening sockets that systemd passes replace the addresses of a listener: FileDescriptorName= is edge,
            admin or plain.
            """,
        helpPages: [
            "keys": KeyManual.page(
                "keys of the configuration, for FILE and --set",
                KeyManual.all.filter { !$0.isLimit }
            ),
            "limits": KeyManual.page(
                "limits, for FILE as `limits: { NAME: VALUE }` and for --set",
                KeyManual.all.filter(\.isLimit)
            ),
        ],
        run: ServeCommand.run
    )
}

/// `wakegate serve`.
package enum ServeCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        try self.checkLimits()
        let file = parsed.text("--config")
        var configuration = try self.configuration(parsed, file: file, isWhole: true)
        configuration.acceptsJournalLoss = parsed.isSet("--accept-loss")
        let sockets = parsed.isSet("--check") ? [] : try self.takeSockets()
        if parsed.isSet("--check") {
            // Faults name files by their absolute paths.
            configuration.mapPaths(CommandFile.absolute)
            let database = PostgresDatabase.check(configuration)
            for warning in database.warnings { Console.error("wakegate: warning: \(warning.description)") }
            let faults = self.startFaults(configuration) + self.portFaults(configuration) + database.faults
            try self.check(configuration, and: faults)
            Console.error("wakegate: the configuration is good")
            return 0
        }
        try self.adopt(sockets, &configuration)
        try self.check(configuration)
        _ = umask(0o077)
        if self.needsStateFolder(configuration) {
            configuration.stateFolder = try StateFolder(configuration.stateFolder).path
        }
        let settings = ServerSettings.settings(parsed)
        let source = ConfigurationSource(reloadsOnHangup: true) { () throws(ConfigurationError) in
            var read = try self.read(file: file, settings: settings, base: GatewayConfiguration(), sockets)
            if self.needsStateFolder(read) { read.stateFolder = CommandFile.absolute(read.stateFolder) }
            return read
        }
        return try await self.run(configuration, source) { Console.out(json: ReadyLine.text($0)) }
    }

    /// Checks the limits before any file is opened, because some code traps if it cannot open a file.
    static func checkLimits() throws(CommandFailure) {
        do throws(TransportError) { try ProcessLimits.checkDescriptors() } catch {
            throw .failed(error.message)
        }
    }

    /// Returns true if the state folder must be created. State in memory does not need a folder, but a folder that is
    /// named explicitly is created.
    private static func needsStateFolder(_ configuration: GatewayConfiguration) -> Bool {
        configuration.store != .memory || configuration.stateFolder != GatewayConfiguration().stateFolder
    }

    /// Reads the configuration file and the settings.
    ///
    /// - `sockets`: the inherited sockets, which replace the addresses of listeners.
    /// - Throws: `ConfigurationError` with all faults, including settings that contradict each other.
    static func read(
        file: String?,
        settings: [String],
        base: GatewayConfiguration,
        _ sockets: [InheritedSocket] = []
    ) throws(ConfigurationError) -> GatewayConfiguration {
        var configuration: GatewayConfiguration
        do throws(ConfigurationError) {
            configuration = try ConfigurationLoader.load(file: file, settings: settings, base: base)
        } catch {
            throw ConfigurationError(faults: error.allFaults)
        }
        try configuration.adopt(sockets)
        let faults = configuration.faults()
        guard faults.isEmpty else { throw ConfigurationError(faults: faults) }
        return configuration
    }

    /// Returns the faults of the state folder and its files that a start would report. Creates nothing, because a
    /// gateway may be using the folder.
    private static func startFaults(_ configuration: GatewayConfiguration) -> [ConfigurationFault] {
        guard self.needsStateFolder(configuration) else { return [] }
        if let fault = StateFolder.fault(configuration.stateFolder) {
            return [ConfigurationFault(key: "state", problem: fault.problem, remedy: fault.remedy)]
        }
        var absolute = configuration
        absolute.stateFolder = CommandFile.absolute(configuration.stateFolder)
        let store = GatewayStore(absolute)
        if let fault = store.historyKeyFault {
            return [ConfigurationFault(key: "state", problem: fault, remedy: "see to the key first")]
        }
        guard !configuration.acceptsJournalLoss, let fault = store.journalFault else { return [] }
        // The fault ends with the remedy, as the last sentence.
        let parts = fault.split(separator: ". ", maxSplits: 1).map { $0.hasSuffix(".") ? $0.dropLast() : $0[...] }
        let remedy =
            parts.count == 2 ? parts[1].prefix(1).lowercased() + parts[1].dropFirst() : "see to the journal first"
        return [ConfigurationFault(key: "state", problem: String(parts[0]), remedy: remedy)]
    }

    /// Returns a fault for each address on which another process listens. Returns none if a gateway uses the state
    /// folder, because that gateway may be the process that listens.
    private static func portFaults(_ configuration: GatewayConfiguration) -> [ConfigurationFault] {
        if self.needsStateFolder(configuration), StateFolder.isInUse(configuration.stateFolder) { return [] }
        let listeners = [
            ("edge", configuration.edge), ("admin", configuration.admin), ("plain", configuration.plain),
        ]
        return listeners.flatMap { key, setting in
            setting.addresses.compactMap { text -> ConfigurationFault? in
                guard let address = try? ListenAddress.parse(text), let fault = ListenProbe.fault(address) else {
                    return nil
                }
                let sentence = fault.message.hasSuffix(".") ? fault.message.dropLast() : fault.message[...]
                let separator = sentence.contains("; ") ? "; " : ": "
                let parts = sentence.split(separator: separator, maxSplits: 1).map(String.init)
                let remedy = parts.count == 2 ? parts[1] : "choose another address"
                return ConfigurationFault(key: key, problem: parts[0], remedy: remedy)
            }
        }
    }

    /// Returns the listening sockets that the service manager has passed to this process.
    static func takeSockets() throws(CommandFailure) -> [InheritedSocket] {
        do throws(ServiceManagerError) { return try Systemd.takeSockets() } catch {
            throw CommandFailure(.badConfiguration, "\(error)")
        }
    }

    /// Assigns the sockets to listeners.
    private static func adopt(
        _ sockets: [InheritedSocket],
        _ configuration: inout GatewayConfiguration
    ) throws(CommandFailure) {
        do throws(ConfigurationError) { try configuration.adopt(sockets) } catch {
            throw CommandFailure(.badConfiguration, self.message(error.faults, of: "socket activation has"))
        }
    }

    /// Reads the configuration file and the command line.
    ///
    /// - `isWhole`: true if the configuration is complete. Settings that contradict each other are then reported.
    static func configuration(
        _ parsed: ParsedCommand,
        file: String?,
        base: GatewayConfiguration = GatewayConfiguration(),
        isWhole: Bool = false
    ) throws(CommandFailure) -> GatewayConfiguration {
        do throws(ConfigurationError) {
            return try ConfigurationLoader.load(file: file, settings: ServerSettings.settings(parsed), base: base)
        } catch {
            throw CommandFailure(.badConfiguration, self.message(isWhole ? error.allFaults : error.faults))
        }
    }

    /// - Throws: `badConfiguration` with all faults.
    static func check(
        _ configuration: GatewayConfiguration,
        and others: [ConfigurationFault] = []
    ) throws(CommandFailure) {
        let faults = configuration.faults() + others
        if !faults.isEmpty { throw CommandFailure(.badConfiguration, self.message(faults)) }
    }

    static func message(
        _ faults: [ConfigurationFault],
        of what: String = "the configuration has"
    ) -> String {
        let count = faults.count == 1 ? "a fault" : "\(faults.count) faults"
        return "\(what) \(count):\n" + faults.map { "  \($0)" }.joined(separator: "\n")
    }

    /// Runs a gateway until a signal stops it.
    ///
    /// - `onNews`: a function that receives the gateway's events on a separate thread, and returns false if an event
    ///   could not be written; nil if no events are needed.
    /// - `onReady`: called once when the gateway accepts connections.
    /// - Returns: the exit status.
    static func run(
        _ configuration: GatewayConfiguration,
        _ source: ConfigurationSource,
        onNews: (@Sendable (LiveNews) -> Bool)? = nil,
        onReady: @escaping @Sendable (BoundAddresses) -> Void
    ) async throws(CommandFailure) -> Int32 {
        do {
            return try await GatewayProcess.run(
                configuration,
                database: PostgresDatabase(configuration),
                source: source,
                onReady: onReady,
                onNews: onNews
            )
        } catch {
            throw .failed("\(error)")
        }
    }
}

extension OptionDefinition {
    /// The options that `serve` and `dev` have in common.
    static let server = [
        OptionDefinition("--edge ADDRESS", "address for providers and workers; off for none", isRepeatable: true),
        OptionDefinition("--admin ADDRESS", "address for operators; off for none", isRepeatable: true),
        OptionDefinition("--plain ADDRESS", "cleartext address of the edge; off for none", isRepeatable: true),
        OptionDefinition("--state DIR", "the state folder"),
        OptionDefinition("--accept-loss", "start once although the journal lacks the latest commits"),
        .set("set any configuration key, such as policy.launchInterval=600", GatewayConfiguration.keys.map(\.name)),
    ]
}

/// The configuration settings in a server's command line.
package enum ServerSettings {
    /// Returns the `KEY=VALUE` settings in ascending precedence: `--set` first, then the dedicated options.
    package static func settings(_ parsed: ParsedCommand) -> [String] {
        var settings = parsed.all("--set")
        for key in ["edge", "admin", "plain"] {
            let addresses = parsed.all("--\(key)")
            if addresses.count == 1 {
                settings.append("\(key)=\(addresses[0])")
            } else if addresses.count > 1 {
                settings.append("\(key)=[\(addresses.map { JSONText.quoted($0) }.joined(separator: ","))]")
            }
        }
        if let state = parsed.text("--state") { settings.append("state=\(JSONText.quoted(state))") }
        return settings
    }
}
