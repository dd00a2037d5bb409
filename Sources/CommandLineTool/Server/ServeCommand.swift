import Gateway
import Glibc
import ServiceManager

extension CommandDefinition {
    package static let serve = CommandDefinition(
        "serve",
        "run a gateway in production, as its configuration says",
        options: [
            OptionDefinition("--config", "FILE", "the configuration, JSON5; every key is optional"),
            OptionDefinition("--check", "", "check the configuration, show every fault, and end"),
        ] + OptionDefinition.server,
        example: "wakegate serve --config /etc/wakegate/wakegate.json5 --check",
        notes: [
            "keys of the configuration, for FILE and --set:\n"
                + ConfigurationKey.all.map { "  \($0.name): \($0.summary)\n      \($0.requirement)" }
                .joined(separator: "\n")
                + "\n  topics.TOPIC.policy.PARAMETER: a parameter of the launch policy for one topic\n"
                + WebhookKey.all.map { "  topics.TOPIC.webhook.\($0.name): \($0.summary)\n      \($0.requirement)" }
                .joined(separator: "\n"),
            """
            Workers are asked for bearer tokens (`wakegate token issue`) as soon as the state folder has a token.key,
            and on addresses other than loopback in any case. Operators are asked on such addresses alone; there the
            admin listener needs insecure: true. Providers are asked where providerKeys or tls.clientCA is set. A client
            certificate of tls.clientCA is proof of a provider or, with OU=worker in its subject, of a worker.
            """,
            "SIGTERM or SIGINT lets wakes in flight end, for at most drainTimeout seconds, and stops it.",
            """
            As a service of systemd (Type=notify) it tells when it is ready, what it does and that it is alive
            (WatchdogSec=). Listening sockets that systemd passes take the place of a listener's addresses:
            FileDescriptorName= is edge, admin or plain.
            """,
        ],
        run: ServeCommand.run
    )
}

/// `wakegate serve`.
package enum ServeCommand {
    static func run(_ parsed: ParsedCommand, _ environment: CommandEnvironment) async throws(CommandFailure) -> Int32 {
        let file = parsed.text("--config")
        var configuration = try self.configuration(parsed, file: file, base: GatewayConfiguration(), isWhole: true)
        if !parsed.isSet("--check") { try self.adoptSockets(&configuration) }
        try self.check(configuration)
        if parsed.isSet("--check") {
            Console.error("wakegate: the configuration is good")
            return 0
        }
        _ = umask(0o077)
        // State in memory needs no folder; one that was asked for is made all the same.
        if configuration.store != .memory || configuration.stateFolder != GatewayConfiguration().stateFolder {
            configuration.stateFolder = try StateFolder(configuration.stateFolder).path
        }
        return try await self.run(configuration, environment) { Console.out(ReadyLine.text($0)) }
    }

    /// Has listeners take the sockets that the service manager opened for them.
    private static func adoptSockets(_ configuration: inout GatewayConfiguration) throws(CommandFailure) {
        do {
            try configuration.adopt(try Systemd.takeSockets())
        } catch let error as ConfigurationError {
            throw CommandFailure(.badConfiguration, self.message(error.faults, of: "socket activation has"))
        } catch {
            throw CommandFailure(.badConfiguration, "\(error)")
        }
    }

    /// Reads file and command line.
    ///
    /// - Parameter isWhole: nothing is added to it afterwards, so that the faults of the combination are known at once.
    static func configuration(
        _ parsed: ParsedCommand,
        file: String?,
        base: GatewayConfiguration,
        isWhole: Bool
    ) throws(CommandFailure) -> GatewayConfiguration {
        do throws(ConfigurationError) {
            return try ConfigurationLoader.load(file: file, settings: ServerSettings.settings(parsed), base: base)
        } catch {
            throw CommandFailure(.badConfiguration, self.message(isWhole ? error.allFaults : error.faults))
        }
    }

    /// - Throws: `badConfiguration` with every fault of the combination.
    static func check(_ configuration: GatewayConfiguration) throws(CommandFailure) {
        let faults = configuration.faults()
        if !faults.isEmpty { throw CommandFailure(.badConfiguration, self.message(faults)) }
    }

    static func message(
        _ faults: [ConfigurationFault],
        of what: String = "the configuration has"
    ) -> String {
        let count = faults.count == 1 ? "a fault" : "\(faults.count) faults"
        return "\(what) \(count):\n" + faults.map { "  \($0)" }.joined(separator: "\n")
    }

    static func run(
        _ configuration: GatewayConfiguration,
        _ environment: CommandEnvironment,
        onReady: @escaping CommandEnvironment.OnReady
    ) async throws(CommandFailure) -> Int32 {
        do {
            return try await environment.runGateway(configuration, onReady)
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
    }
}
