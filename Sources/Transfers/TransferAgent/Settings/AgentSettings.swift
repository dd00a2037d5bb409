import Platform
package import ServiceManager
import Wire

/// The settings of an agent.
package struct AgentSettings: Sendable {
    /// The rule that determines whether the network is metered or has data saving.
    package enum Metered: String, CaseIterable, Sendable {
        /// NetworkManager decides. Without its answer, the network is neither metered nor has data saving.
        case auto
        case yes
        case no
    }

    /// The program's version, and in `commit` the commit that it was built from. Callers can query both.
    package var version = ""
    package var commit: String?
    package var stateFolder = ""
    /// The listening address, in the form `unix:PATH`.
    package var listen = ""
    /// The URL of the gateway that receives the reports about ended sessions; nil for no reports.
    package var gateway: String?
    /// The path of a PEM file with the authority of the gateway's certificate.
    package var gatewayAuthority: String?
    /// The path of the file with the bearer token for the gateway. It is read for each request.
    package var gatewayToken: String?
    package var metered = Metered.auto
    package var constrained = Metered.auto
    /// The path of a PEM file with the authorities that transfers trust; nil for the system's authorities.
    package var trust: String?
    /// The paths of PEM files with the client certificate and its key for transfers.
    package var certificate: String?
    package var privateKey: String?
    /// The proxy for transfers; nil for the proxy in the environment variables.
    package var proxy: String?
    /// The root folder of `sys`, `run` and `var`.
    package var machine = "/"
    /// The number of bytes that downloads must leave free on the file system.
    package var spaceReserve: Int64 = 16 << 20
    package var limits = TransferLimits()
    package var retry = RetryPolicy()
    package var logLevel = LogLevel.info
    package var logFormat = LogFormat.text

    package init() {}

    /// The path of the socket; nil if `listen` is not a path.
    package var socketPath: String? {
        guard self.listen.hasPrefix("unix:/") else { return nil }
        return String(self.listen.dropFirst("unix:".count))
    }
}

/// A key of the agent's configuration: its name, the form of its value, and its assignment.
package struct AgentKey: Sendable {
    /// The full name, such as `limits.running`.
    package let name: String
    /// The description of the key, in one line.
    package let summary: String
    /// The permitted values.
    package let requirement: String
    /// True if `--set` uses the value as text and does not parse it.
    let isText: Bool
    /// Assigns the value. Returns false if the value is not permitted.
    let assign: @Sendable (inout AgentSettings, JSONValue) -> Bool

    package static let all: [AgentKey] = [
        .text("state", "the state folder, which no other agent uses", "a path") { $0.stateFolder = $1 },
        .text("listen", "where workers connect", "unix: and an absolute path") { $0.listen = $1 },
        .text("gateway", "the gateway that gets finished sessions", "a URL, or unix:PATH") { $0.gateway = $1 },
        .text("ca", "the authority of the gateway's certificate", "the path of a PEM file") {
            $0.gatewayAuthority = $1
        },
        .text("token", "the bearer token that the gateway is shown", "the path of a file") { $0.gatewayToken = $1 },
        .choice("metered", "whether the network costs by the byte; auto asks NetworkManager", "auto, yes or no") {
            $0.metered = $1
        },
        .choice(
            "constrained",
            "whether the network has data saving; auto: if its connection was set to metered by hand",
            "auto, yes or no"
        ) { $0.constrained = $1 },
        .text("trust", "the authorities that transfers trust instead of the system's", "the path of a PEM file") {
            $0.trust = $1
        },
        .text("certificate", "the certificate that transfers show", "the path of a PEM file") { $0.certificate = $1 },
        .text("privateKey", "the key of that certificate", "the path of a PEM file") { $0.privateKey = $1 },
        .text("proxy", "the proxy of transfers instead of those of the environment", "as curl --proxy takes it") {
            $0.proxy = $1
        },
        .text("machine", "where the folders sys, run and var of the machine lie", "a path") { $0.machine = $1 },
        .bytes("spaceReserve", "bytes of the file system that are left to others", 0) { $0.spaceReserve = $1 },
        .count("limits.sessions", "the most sessions", 1...1_000_000) { $0.limits.sessionsMax = $1 },
        .count("limits.transfers", "the most transfers that are remembered", 1...10_000_000) {
            $0.limits.transfersMax = $1
        },
        .count("limits.running", "the most transfers that run at a time", 1...4096) { $0.limits.runningMax = $1 },
        .count("limits.followers", "the most streams of events of one user at a time", 1...4096) {
            $0.limits.followersMax = $1
        },
        .bytes("limits.stateBytes", "bytes of all files in the state folder", 1) { $0.limits.stateBytesMax = $1 },
        .bytes("limits.fileBytes", "bytes of one file", 1) { $0.limits.fileBytesMax = $1 },
        .seconds("untakenFor", "how long a finished file waits to be taken") {
            $0.limits.untakenFor = $1
        },
        .seconds("retry.first", "the first wait after a failed attempt") { $0.retry.first = $1 },
        .seconds("retry.last", "the longest wait after a failed attempt") { $0.retry.last = $1 },
        .choice("log.level", "the least important line that is logged", "debug, info, warning or error") {
            $0.logLevel = $1
        },
        .choice("log.format", "how lines are written", "text or json") { $0.logFormat = $1 },
    ]

    /// Creates a key. `read` converts its values.
    private init<Value>(
        _ name: String,
        _ summary: String,
        _ requirement: String,
        isText: Bool = false,
        _ assign: @escaping @Sendable (inout AgentSettings, Value) -> Void,
        read: @escaping @Sendable (JSONValue) -> Value?
    ) {
        self.name = name
        self.summary = summary
        self.requirement = requirement
        self.isText = isText
        self.assign = { settings, value in
            guard let value = read(value) else { return false }
            assign(&settings, value)
            return true
        }
    }

    private static func text(
        _ name: String,
        _ summary: String,
        _ requirement: String,
        _ assign: @escaping @Sendable (inout AgentSettings, String) -> Void
    ) -> AgentKey {
        AgentKey(name, summary, requirement, isText: true, assign) { $0.text.flatMap { $0.isEmpty ? nil : $0 } }
    }

    private static func choice<Choice: RawRepresentable<String> & Sendable>(
        _ name: String,
        _ summary: String,
        _ requirement: String,
        _ assign: @escaping @Sendable (inout AgentSettings, Choice) -> Void
    ) -> AgentKey {
        AgentKey(name, summary, requirement, isText: true, assign) { $0.text.flatMap { Choice(rawValue: $0) } }
    }

    private static func count(
        _ name: String,
        _ summary: String,
        _ range: ClosedRange<Int>,
        _ assign: @escaping @Sendable (inout AgentSettings, Int) -> Void
    ) -> AgentKey {
        AgentKey(name, summary, "a whole number from \(range.lowerBound) to \(range.upperBound)", assign) { value in
            value.integer.map { Int($0) }.flatMap { range.contains($0) ? $0 : nil }
        }
    }

    private static func bytes(
        _ name: String,
        _ summary: String,
        _ least: Int64,
        _ assign: @escaping @Sendable (inout AgentSettings, Int64) -> Void
    ) -> AgentKey {
        AgentKey(name, summary, "a whole number of bytes, at least \(least)", assign) { value in
            value.integer.flatMap { $0 >= least ? $0 : nil }
        }
    }

    private static func seconds(
        _ name: String,
        _ summary: String,
        _ assign: @escaping @Sendable (inout AgentSettings, Int64) -> Void
    ) -> AgentKey {
        AgentKey(
            name,
            summary,
            "a number of seconds above 0, with at most three decimals\(DurationText.alternative)",
            assign
        ) {
            if let text = $0.text { return DurationText.milliseconds(text).flatMap { $0 > 0 ? $0 : nil } }
            guard case .number(let number) = $0, case .exact(let milliseconds) = number.milliseconds else { return nil }
            return milliseconds > 0 ? milliseconds : nil
        }
    }
}

/// The error for an invalid configuration. It contains all faults.
package struct AgentSettingsError: Error, Hashable, Sendable, CustomStringConvertible {
    package let faults: [String]

    package var description: String {
        let count = self.faults.count == 1 ? "a fault" : "\(self.faults.count) faults"
        return "the configuration has \(count):\n" + self.faults.map { "  \($0)" }.joined(separator: "\n")
    }
}

/// Reads an agent's configuration and reports all of its faults.
package enum AgentSettingsReader {
    /// The maximum size of a configuration file, in bytes.
    package static let fileBytesMax = 1 << 20

    /// Reads the file at `path`, if there is one, and then `assignments` of the form `KEY=VALUE`, which take
    /// precedence. Other settings keep their values from `base`.
    ///
    /// - Throws: all faults, including settings that contradict each other.
    package static func read(
        file path: String?,
        assignments: [String],
        base: AgentSettings = AgentSettings()
    ) throws(AgentSettingsError) -> AgentSettings {
        var settings = base
        var faults: [String] = []
        if let path { self.read(file: path, into: &settings, &faults) }
        for assignment in assignments { self.read(assignment: assignment, into: &settings, &faults) }
        faults += self.faults(of: settings)
        guard faults.isEmpty else { throw AgentSettingsError(faults: faults) }
        return settings
    }

    private static func read(file path: String, into settings: inout AgentSettings, _ faults: inout [String]) {
        let bytes: [UInt8]?
        do throws(SystemError) {
            bytes = try OrdinaryFile.contents(path, bytesMax: self.fileBytesMax + 1)
        } catch {
            return faults.append("\(path) cannot be read (\(error.reason)); name a file with --config FILE")
        }
        guard let bytes, bytes.count <= self.fileBytesMax else {
            return faults.append("\(path) is not a file of at most \(self.fileBytesMax) bytes; name another")
        }
        do throws(JSON5Fault) {
            self.take(try JSON5Reader.read(bytes), prefix: "", into: &settings, &faults)
        } catch {
            faults.append("\(path): line \(error.line): \(error.problem); \(error.remedy)")
        }
    }

    private static let sections: Set<String> = ["limits", "retry", "log"]

    private static func take(
        _ value: JSONValue,
        prefix: String,
        into settings: inout AgentSettings,
        _ faults: inout [String]
    ) {
        guard case .object = value else {
            let name = prefix.isEmpty ? "the configuration" : String(prefix.dropLast())
            return faults.append("\(name) is \(value.described); write an object, as { limits: { running: 8 } }")
        }
        for member in value.members {
            if prefix.isEmpty, self.sections.contains(member.name) {
                self.take(member.value, prefix: "\(member.name).", into: &settings, &faults)
            } else {
                self.assign(prefix + member.name, member.value, &settings, &faults)
            }
        }
    }

    private static func read(
        assignment: String,
        into settings: inout AgentSettings,
        _ faults: inout [String]
    ) {
        guard let equals = assignment.firstIndex(of: "=") else {
            return faults.append("\"\(assignment)\" is not a setting; write KEY=VALUE")
        }
        let name = String(assignment[..<equals])
        let text = String(assignment[assignment.index(after: equals)...])
        let isText = AgentKey.all.first { $0.name == name }?.isText ?? true
        let value = isText ? JSONValue.string(text) : (try? JSON5Reader.read(Array(text.utf8))) ?? .string(text)
        self.assign(name, value, &settings, &faults)
    }

    private static func assign(
        _ name: String,
        _ value: JSONValue,
        _ settings: inout AgentSettings,
        _ faults: inout [String]
    ) {
        guard let key = AgentKey.all.first(where: { $0.name == name }) else {
            let nearest = NearestMatch.find(name, in: AgentKey.all.map(\.name))
            let hint = nearest.map { "did you mean \($0)?" } ?? "`wakegate transfers --help` lists the keys"
            return faults.append("the key \(name) does not exist; \(hint)")
        }
        guard key.assign(&settings, value) else {
            return faults.append("\(name) is \(value.described); write \(key.requirement)")
        }
    }

    private static func faults(of settings: AgentSettings) -> [String] {
        var faults: [String] = []
        if settings.stateFolder.isEmpty {
            faults.append("no state folder is named; write state or --state DIR, or set XDG_STATE_HOME or HOME")
        }
        if settings.socketPath == nil {
            let problem = settings.listen.isEmpty ? "no socket is named" : "listen is \"\(settings.listen)\""
            faults.append(
                "\(problem); write unix: and an absolute path, as --listen unix:/run/x, or set XDG_RUNTIME_DIR"
            )
        }
        let starts = ["http://", "https://", "unix:/"]
        if let gateway = settings.gateway, !starts.contains(where: { gateway.hasPrefix($0) && gateway != $0 }) {
            faults.append("gateway is \"\(gateway)\"; write an http or https URL, or unix: and an absolute path")
        }
        if settings.privateKey != nil, settings.certificate == nil {
            faults.append("there is a privateKey and no certificate; name both")
        }
        if settings.retry.last < settings.retry.first {
            faults.append("retry.last is less than retry.first; write at least as much")
        }
        return faults
    }
}
