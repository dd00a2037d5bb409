import FaultInjection
import Glibc
import Platform
package import Settings

extension CommandDefinition {
    package static let dev = CommandDefinition(
        "dev",
        "run a gateway with no set-up, for development on this machine",
        options: OptionDefinition.server + [
            OptionDefinition("--certs", "DIR", "where the TLS material is made and kept; default: the state folder"),
            OptionDefinition(
                "--faults",
                "FILE",
                "fault rules to begin with, JSON5: what clients of APNs are tested with"
            ),
        ],
        example: "wakegate dev --set policy.launchInterval=60",
        notes: [
            """
            It listens on loopback only, asks nobody for proof, and registers devices with their first push. The state
            folder (default ./.wakegate) holds its authority and certificates, and every push it has answered for;
            they outlive it. Client commands find the gateway when they run in the folder where it was started.
            With --set tls.clientCA=.wakegate/ca.pem providers must show a certificate, such as its provider.pem
            (--cert .wakegate/provider.pem); its worker.pem is a worker's.
            """,
            """
            When it accepts it writes one line to standard output:
              {"ready": true, "edge": "127.0.0.1:2197", "admin": "127.0.0.1:9197", "plain": null}
            SIGTERM, SIGINT or SIGHUP lets wakes in flight end, for at most drainTimeout seconds, and stops it.
            `wakegate reload` has it read again the files that --set names, such as certificates.
            """,
            """
            A fault rule says which pushes, which of them, and what happens to those:
              { rules: [ { when: { topic: "com.example.app", every: 10 }, then: { reason: "ServiceUnavailable" } } ] }
            when: token, topic, keyID, pushType, priority; nth, first, from, to, every, probability, seed; per
            then: reason, status, timestamp, retryAfter; reset; goaway; stuck; close; expireToken; dropReply;
                  with any of them, or alone: delay, streamLimit, streamWindow
            `wakegate faults` shows and changes the rules of a running gateway.
            """,
        ],
        run: DevCommand.run
    )
}

/// `wakegate dev`.
package enum DevCommand {
    /// The configuration that needs no set-up.
    package static var base: GatewayConfiguration {
        var configuration = GatewayConfiguration()
        configuration.edge = ListenSetting("127.0.0.1:2197")
        configuration.stateFolder = "./\(GatewayFile.defaultFolder)"
        configuration.registration = .open
        configuration.asksForTokens = false
        configuration.faultRules = []
        configuration.openForDevelopment()
        return configuration
    }

    static func run(_ parsed: ParsedCommand, _ environment: CommandEnvironment) async throws(CommandFailure) -> Int32 {
        try ServeCommand.checkLimits()
        var configuration = try ServeCommand.configuration(parsed, file: nil, base: self.base, isWhole: false)
        configuration.acceptsLoss = parsed.isSet("--accept-loss")
        let makesCertificates = configuration.certificateFile == nil && configuration.privateKeyFile == nil
        if let file = parsed.text("--faults") { configuration.faultRules = try self.faultRules(file) }
        let folder = try StateFolder(configuration.stateFolder)
        configuration.stateFolder = folder.path
        let certificates = StateFolder.absolute(parsed.text("--certs") ?? folder.path)
        if makesCertificates { try self.makeCertificates(in: certificates, environment) }
        self.addFiles(to: &configuration, certificates: makesCertificates ? certificates : nil)
        try ServeCommand.check(configuration)
        let settings = ServerSettings.settings(parsed)
        let source = ConfigurationSource(reloadsOnHangup: false) { () throws(ConfigurationError) in
            var base = self.base
            self.addFiles(to: &base, certificates: makesCertificates ? certificates : nil)
            var read = try ServeCommand.read(file: nil, settings: settings, base: base)
            read.stateFolder = folder.path
            return read
        }
        let name = environment.programName
        let isDefault = folder.path == StateFolder.absolute(GatewayFile.defaultFolder)
        let asksForOwn = configuration.clientCAFile.map { StateFolder.absolute($0) } == "\(certificates)/ca.pem"
        defer { GatewayFile.remove(from: folder.path) }
        return try await ServeCommand.run(configuration, source, environment) { addresses in
            let file = GatewayFile(pid: getpid(), addresses: addresses, ca: "\(certificates)/ca.pem")
            do {
                try file.write(in: folder.path)
            } catch {
                Console.error("wakegate: \(folder.path)/\(GatewayFile.name) cannot be written: \(error)")
            }
            Console.out(ReadyLine.text(addresses))
            let commands = ReadyCommands(
                file: file,
                program: name,
                isDiscoverable: isDefault,
                clientCertificates: asksForOwn ? certificates : nil
            )
            Console.error(commands.text)
        }
    }

    /// - Parameter certificates: the folder of those that it made; nil when others are named.
    private static func addFiles(to configuration: inout GatewayConfiguration, certificates: String?) {
        guard let certificates else { return }
        configuration.certificateFile = "\(certificates)/server.pem"
        configuration.privateKeyFile = "\(certificates)/server.key"
    }

    private static func faultRules(_ file: String) throws(CommandFailure) -> [FaultRule] {
        do throws(ConfigurationError) {
            let read = try FaultRuleReader.load(file: file)
            for warning in read.warnings { Console.error("wakegate: warning: \(warning)") }
            Console.error("wakegate: pushes meet the \(read.rules.count) fault rules of \(file)")
            return read.rules
        } catch {
            throw CommandFailure(.badConfiguration, ServeCommand.message(error.faults, of: "the fault rules have"))
        }
    }

    private static func makeCertificates(
        in folder: String,
        _ environment: CommandEnvironment
    ) throws(CommandFailure) {
        do {
            if !FileSystem.exists(folder) { try? FileSystem.makeFolder(folder, mode: 0o700) }
            try environment.makeCertificates(folder)
        } catch {
            throw CommandFailure(
                .failed,
                "the TLS material cannot be made in \(folder): \(error); choose another folder with --certs DIR"
            )
        }
    }
}
