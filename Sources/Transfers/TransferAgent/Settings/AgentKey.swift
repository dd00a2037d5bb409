import ServiceManager
import Wire

/// One key of the agent's configuration: its name, what it takes, and where its value goes.
package struct AgentKey: Sendable {
    /// The full name, such as `limits.running`.
    package let name: String
    /// What the key is for, in one line.
    package let summary: String
    /// What the value must be.
    package let requirement: String
    /// Whether `--set` takes the value as it stands.
    let isText: Bool
    /// Takes the value over, or returns false when it is not what `requirement` says.
    let assign: @Sendable (inout AgentSettings, JSONValue) -> Bool

    package static let all: [AgentKey] = [
        .text("state", "the state folder, which no other agent uses", "a path") { $0.stateFolder = $1 },
        .text("listen", "where workers connect", "unix: and an absolute path") { $0.listen = $1 },
        .text("gateway", "the gateway that is told of finished sessions", "a URL, or unix:PATH") { $0.gateway = $1 },
        .text("ca", "the authority of the gateway's certificate", "the path of a PEM file") {
            $0.gatewayAuthority = $1
        },
        .text("token", "the bearer token that the gateway is shown", "the path of a file") { $0.gatewayToken = $1 },
        AgentKey(
            name: "metered",
            summary: "whether the network costs by the byte; auto asks NetworkManager",
            requirement: "auto, yes or no",
            isText: true
        ) { settings, value in
            guard case .string(let text) = value, let metered = AgentSettings.Metered(rawValue: text) else {
                return false
            }
            settings.metered = metered
            return true
        },
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
        .seconds("untakenFor", "for how long a finished file waits to be taken, in seconds") {
            $0.limits.untakenFor = $1
        },
        .seconds("retry.first", "the first wait after an attempt that failed, in seconds") { $0.retry.first = $1 },
        .seconds("retry.last", "the longest such wait, in seconds") { $0.retry.last = $1 },
        AgentKey(
            name: "log.level",
            summary: "the least important line that is logged",
            requirement: "debug, info, warning or error",
            isText: true
        ) { settings, value in
            guard case .string(let text) = value, let level = LogLevel(rawValue: text) else { return false }
            settings.logLevel = level
            return true
        },
        AgentKey(
            name: "log.format",
            summary: "how lines are written",
            requirement: "text or json",
            isText: true
        ) { settings, value in
            guard case .string(let text) = value, let format = LogFormat(rawValue: text) else { return false }
            settings.logFormat = format
            return true
        },
    ]

    private static func text(
        _ name: String,
        _ summary: String,
        _ requirement: String,
        _ assign: @escaping @Sendable (inout AgentSettings, String) -> Void
    ) -> AgentKey {
        AgentKey(name: name, summary: summary, requirement: requirement, isText: true) { settings, value in
            guard case .string(let text) = value, !text.isEmpty else { return false }
            assign(&settings, text)
            return true
        }
    }

    private static func count(
        _ name: String,
        _ summary: String,
        _ range: ClosedRange<Int>,
        _ assign: @escaping @Sendable (inout AgentSettings, Int) -> Void
    ) -> AgentKey {
        let requirement = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        return AgentKey(name: name, summary: summary, requirement: requirement, isText: false) { settings, value in
            guard case .number(let number) = value, let count = Int(number.text), range.contains(count) else {
                return false
            }
            assign(&settings, count)
            return true
        }
    }

    private static func bytes(
        _ name: String,
        _ summary: String,
        _ least: Int64,
        _ assign: @escaping @Sendable (inout AgentSettings, Int64) -> Void
    ) -> AgentKey {
        let requirement = "a whole number of bytes, at least \(least)"
        return AgentKey(name: name, summary: summary, requirement: requirement, isText: false) { settings, value in
            guard case .number(let number) = value, let count = Int64(number.text), count >= least else {
                return false
            }
            assign(&settings, count)
            return true
        }
    }

    private static func seconds(
        _ name: String,
        _ summary: String,
        _ assign: @escaping @Sendable (inout AgentSettings, Int64) -> Void
    ) -> AgentKey {
        let requirement = "seconds, above 0 and with three decimals at most"
        return AgentKey(name: name, summary: summary, requirement: requirement, isText: false) { settings, value in
            guard case .number(let number) = value, case .exact(let milliseconds) = number.milliseconds,
                milliseconds > 0
            else { return false }
            assign(&settings, milliseconds)
            return true
        }
    }
}
