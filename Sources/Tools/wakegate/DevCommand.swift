package import CommandLineTool
package import Gateway
import Glibc
import HTTPTransport
import Platform
import Policy
import Wire

extension CommandDefinition {
    package static let dev = CommandDefinition(
        "dev",
        "run a gateway without any setup, for development on this machine",
        options: OptionDefinition.server + [
            OptionDefinition("--certs DIR", "the folder of certificates and keys; default: the state folder"),
            OptionDefinition("--faults FILE", "a JSON5 file with the initial fault rules, to test clients of APNs"),
            OptionDefinition(
                "--network NETWORK",
                "also accept machines of this network, such as 172.17.0.0/16, and listen on every IPv4 address",
                isRepeatable: true
            ),
            OptionDefinition("--quiet", "do not print events: pushes, refusals, wakes and results"),
        ],
        example: "wakegate dev --set policy.launchInterval=60",
        notes: """
            It listens on loopback only, unless --network names other machines that may connect, such as the containers
            of 172.17.0.0/16; all other machines are refused. It does not authenticate clients, and registers devices at
            their first push. The state folder (default ./.wakegate) keeps the authority, the certificates and all
            accepted pushes for the next run. Client commands find the gateway if they run in the folder in which it was
            started.
            With --set tls.clientCA=.wakegate/ca.pem providers must present a certificate, such as the generated
            provider.pem (--cert .wakegate/provider.pem); worker.pem is for workers.

            When it is ready, it writes one line to standard output:
              {"ready": true, "edge": "127.0.0.1:2197", "admin": "127.0.0.1:9197", "plain": null}
            It prints events to standard error, one per line, as `wakegate events` does. If there are too many to print,
            it prints the number of omitted ones. --quiet prints none.
            After SIGTERM, SIGINT or SIGHUP it waits for wakes in flight, for at most drainTimeout seconds, and stops.
            `wakegate reload` makes it reread the files that --set names, such as certificates.

            A fault rule names a group of pushes, a choice of these, and the effect on them:
              { rules: [ { when: { topic: "com.example.app", every: 10 }, then: { reason: "ServiceUnavailable" } } ] }
              when  token, topic, keyID, pushType, priority; nth, first, from, to, every, probability, seed; per
              then  reason, status, timestamp, retryAfter; reset; goaway; stuck; close; expireToken; dropReply;
                    with any of them, or alone: delay, streamLimit, streamWindow
            `wakegate faults` shows and changes the rules of a running gateway.
            """,
        run: DevCommand.run
    )
}

/// `wakegate dev`.
package enum DevCommand {
    /// The configuration of a gateway that needs no setup.
    package static var base: GatewayConfiguration {
        var configuration = GatewayConfiguration()
        configuration.edge = ListenSetting("127.0.0.1:2197")
        configuration.stateFolder = "./\(GatewayFile.defaultFolder)"
        configuration.registration = .open
        configuration.checksTokens = false
        configuration.permitsTestPushes = true
        configuration.faultRules = []
        configuration.openForDevelopment()
        return configuration
    }

    /// Returns the configuration that needs no setup. It also admits machines of the networks on the command line.
    ///
    /// - Throws: `badUsage` if a network is invalid.
    package static func base(_ parsed: ParsedCommand) throws(CommandFailure) -> GatewayConfiguration {
        var configuration = self.base
        for text in parsed.all("--network") {
            guard let network = CallerNetwork(text) else {
                throw .usage("--network is \"\(text)\"; write \(CallerNetwork.requirement)")
            }
            configuration.callerNetworks.append(network)
        }
        guard !configuration.callerNetworks.isEmpty else { return configuration }
        // The gateway listens on IPv6 only if a network requires it, because many container networks disable IPv6.
        let host = configuration.callerNetworks.contains { $0.text.contains(":") } ? "[::]" : "0.0.0.0"
        configuration.edge = ListenSetting("\(host):2197")
        configuration.admin = ListenSetting("\(host):9197")
        return configuration
    }

    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        try ServeCommand.checkLimits()
        let given = try self.base(parsed)
        var configuration = try ServeCommand.configuration(parsed, file: nil, base: given)
        configuration.acceptsJournalLoss = parsed.isSet("--accept-loss")
        let makesCertificates = configuration.certificateFile == nil && configuration.privateKeyFile == nil
        if let file = parsed.text("--faults") { configuration.faultRules = try self.faultRules(file) }
        let folder = try StateFolder(configuration.stateFolder)
        configuration.stateFolder = folder.path
        let certificates = CommandFile.absolute(parsed.text("--certs") ?? folder.path)
        if makesCertificates { try self.makeCertificates(in: certificates) }
        self.addFiles(to: &configuration, certificates: makesCertificates ? certificates : nil)
        try ServeCommand.check(configuration)
        let settings = ServerSettings.settings(parsed)
        let source = ConfigurationSource(reloadsOnHangup: false) { () throws(ConfigurationError) in
            var base = given
            self.addFiles(to: &base, certificates: makesCertificates ? certificates : nil)
            var read = try ServeCommand.read(file: nil, settings: settings, base: base)
            read.stateFolder = folder.path
            return read
        }
        let name = CommandLine.arguments.first ?? "wakegate"
        let isDefault = folder.path == CommandFile.absolute(GatewayFile.defaultFolder)
        let asksForOwn = configuration.clientCAFile.map { CommandFile.absolute($0) } == "\(certificates)/ca.pem"
        let launchInterval = configuration.policy.launchInterval
        let isQuiet = parsed.isSet("--quiet")
        defer { GatewayFile.remove(from: folder.path) }
        return try await ServeCommand.run(configuration, source, onNews: isQuiet ? nil : self.show) {
            addresses in
            let file = GatewayFile(pid: getpid(), addresses: addresses, ca: "\(certificates)/ca.pem")
            do {
                try file.write(in: folder.path)
            } catch {
                Console.error("wakegate: \(folder.path)/\(GatewayFile.name) cannot be written: \(error)")
            }
            Console.out(json: ReadyLine.text(addresses))
            let commands = ReadyCommands(
                file: file,
                program: name,
                isDiscoverable: isDefault,
                clientCertificates: asksForOwn ? certificates : nil,
                launchIntervalSeconds: Int(launchInterval / 1000),
                showsEvents: !isQuiet
            )
            Console.error(commands.text)
        }
    }

    /// Prints an event on standard error.
    ///
    /// - Returns: false if standard error remains blocked.
    private static func show(_ news: LiveNews) -> Bool {
        Console.error(EventText.line(news), waitingAtMost: 100)
    }

    /// - `certificates`: the folder with generated certificates; nil if the configuration names other files.
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

    private static func makeCertificates(in folder: String) throws(CommandFailure) {
        do {
            if !FileSystem.exists(folder) { try? FileSystem.makeFolder(folder, mode: 0o700) }
            try DevelopmentCertificates.make(in: folder)
        } catch {
            throw .failed(
                "the TLS material cannot be made in \(folder): \(error); choose another folder with --certs DIR"
            )
        }
    }
}
