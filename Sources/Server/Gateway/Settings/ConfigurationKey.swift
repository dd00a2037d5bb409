import Engine
import Policy
import Wire

/// The form of a value in the configuration.
struct SettingForm<Value>: Sendable {
    /// The rule for the value, for messages and manuals.
    let requirement: String
    /// True if the value is text. `--set` then accepts it verbatim.
    var isText = false
    /// Returns the value; nil if it does not satisfy `requirement`.
    let read: @Sendable (JSONValue) -> Value?
    let write: @Sendable (Value) -> JSONValue
}

extension SettingForm<Bool> {
    static var flag: Self { Self(requirement: "true or false", read: { $0.bool }, write: { .bool($0) }) }
}

extension SettingForm<Int> {
    static func count(_ range: ClosedRange<Int>) -> Self {
        Self(
            requirement: "a whole number from \(range.lowerBound) to \(range.upperBound)",
            read: { $0.number.flatMap { Int(exactly: $0) }.flatMap { range.contains($0) ? $0 : nil } },
            write: { .number(JSONNumber(Double($0))) }
        )
    }
}

extension SettingForm<Int64> {
    /// A duration, stored in milliseconds.
    static func seconds(_ range: ClosedRange<Int>) -> Self {
        Self(
            requirement:
                "a number of seconds from \(range.lowerBound) to \(range.upperBound)\(DurationText.alternative)",
            read: { value in
                guard let seconds = value.seconds, seconds >= Double(range.lowerBound),
                    seconds <= Double(range.upperBound)
                else { return nil }
                return Int64((seconds * 1000).rounded())
            },
            write: { .number(JSONNumber(Double($0) / 1000)) }
        )
    }
}

extension SettingForm<String> {
    static func text(_ requirement: String) -> Self {
        Self(
            requirement: requirement,
            isText: true,
            read: { $0.text.flatMap { $0.isEmpty ? nil : $0 } },
            write: { .string($0) }
        )
    }
}

extension SettingForm<String?> {
    static var file: Self {
        Self(
            requirement: "a path, or null",
            isText: true,
            read: { value in
                if value == .null { return .some(nil) }
                guard let path = value.text, !path.isEmpty else { return nil }
                return path
            },
            write: { $0.map { .string($0) } ?? .null }
        )
    }
}

extension SettingForm where Value: RawRepresentable<String> & CaseIterable & Sendable {
    static func choice() -> Self {
        Self(
            requirement: Value.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: " or "),
            isText: true,
            read: { $0.text.flatMap { Value(rawValue: $0) } },
            write: { .string($0.rawValue) }
        )
    }
}

extension SettingForm {
    static func choiceOrNull<Choice: RawRepresentable<String> & CaseIterable & Sendable>() -> Self
    where Value == Choice? {
        let choice = SettingForm<Choice>.choice()
        return Self(
            requirement: "\(choice.requirement), or null",
            isText: true,
            read: { $0 == .null ? .some(nil) : choice.read($0).map { .some($0) } },
            write: { $0.map(choice.write) ?? .null }
        )
    }
}

extension SettingForm<ListenSetting> {
    static var listen: Self {
        Self(requirement: ListenSetting.requirement, read: { ListenSetting($0) }, write: { $0.value })
    }
}

/// A key of the configuration or of one of its sections, with its form and the field of `Root` for its value.
package struct SettingKey<Root>: Sendable {
    typealias Field<Value> = WritableKeyPath<Root, Value> & Sendable

    /// The name within `Root`, such as `tls.certificate`.
    package let name: String
    /// The rule for the value, for messages and manuals.
    package let requirement: String
    /// The purpose of the key, in one line.
    package let summary: String
    /// True if the value is text. `--set` then accepts it verbatim.
    let isText: Bool
    /// Stores the value, or returns false if it does not satisfy `requirement`.
    let assign: @Sendable (inout Root, JSONValue) -> Bool
    /// Returns the value in the form that `assign` accepts, without the secret parts of a URL.
    let value: @Sendable (Root) -> JSONValue
    /// Returns the fault of a value that `assign` rejected; nil for a fault with `requirement`. Some values are not
    /// covered by `requirement`, or must not be shown.
    var fault: @Sendable (JSONValue) -> ConfigurationFault? = { _ in nil }
}

extension SettingKey {
    init<Value>(_ name: String, _ field: any Field<Value>, _ form: SettingForm<Value>, _ summary: String) {
        self.init(
            name: name,
            requirement: form.requirement,
            summary: summary,
            isText: form.isText,
            assign: {
                guard let value = form.read($1) else { return false }
                $0[keyPath: field] = value
                return true
            },
            value: { form.write($0[keyPath: field]) }
        )
    }
}

/// A key of the configuration.
package typealias ConfigurationKey = SettingKey<GatewayConfiguration>

extension ConfigurationKey {
    /// The default value in the form of a configuration file.
    package var defaultText: String {
        let text = self.value(GatewayConfiguration()).written
        return text == "null" && self.requirement == ListenSetting.requirement ? "\"off\"" : text
    }

    /// True if a new value takes effect only after a restart.
    package var needsRestart: Bool { GatewayConfiguration.namesThatNeedRestart.contains(self.name) }

    /// True if most operators set the key. `wakegate serve --help` shows these keys.
    package var isCommon: Bool { GatewayConfiguration.commonNames.contains(self.name) }
}

extension GatewayConfiguration {
    fileprivate static let commonNames: Set<String> = [
        "edge", "admin", "state", "store", "registration", "strictBackgroundPriority", "environment", "drainTimeout",
        "tls.certificate", "tls.key", "tls.clientCA", "providerKeys", "log.level", "log.format",
        "policy.launchInterval", "policy.dailyLaunches", "policy.executionWindow", "policy.maxAttempts",
        "policy.defaultTTL",
    ]

    /// The keys whose values are used only when listeners, files and connections are set up.
    fileprivate static let namesThatNeedRestart: Set<String> = [
        "edge", "admin", "plain", "insecure", "state", "store", "databaseConnections", "databaseInsecure",
        "environment", "appleStreamLimit", "unaskedWorkers", "clockJumpMax",
        "limits.streamsPerConnectionMax", "limits.headerListBytesMax", "limits.frameBytesMax",
        "limits.streamWindowBytes", "limits.connectionWindowBytes", "limits.continuationFramesMax",
        "limits.readBytesPerTurn", "limits.liveStreamsMax", "limits.eventStreamsMax", "limits.eventsHeldMax",
    ]
}

extension PolicyParameter {
    /// The rule for a value in the configuration.
    var settingRequirement: String { self.requirement + (self.isDuration ? DurationText.alternative : "") }

    /// Sets the parameter in `parameters` to a value of the configuration: a number, or a duration such as `"10m"`.
    ///
    /// - Returns: false if the value is invalid and was not set.
    func set(_ value: JSONValue, in parameters: inout Parameters) -> Bool {
        guard let number = self.isDuration ? value.seconds : value.number else { return false }
        return self.set(number, in: &parameters)
    }
}

extension GatewayConfiguration {
    /// Every key except those of the section `topics`.
    package static let keys: [ConfigurationKey] =
        Self.listenerKeys + Self.placeKeys + Self.behaviorKeys + Self.fileKeys + Self.logKeys
        + PolicyParameter.allCases.map { ConfigurationKey(parameter: $0) }
        + GatewayLimit.all.map { ConfigurationKey(limit: $0) }

    private static let listenerKeys = [
        ConfigurationKey(
            "edge",
            \.edge,
            .listen,
            "the addresses where providers and workers connect (HTTP/2 over TLS)"
        ),
        ConfigurationKey("admin", \.admin, .listen, "the addresses where operators connect (cleartext)"),
        ConfigurationKey("plain", \.plain, .listen, "the addresses that serve the edge in cleartext, for tests"),
        ConfigurationKey(
            "insecure",
            \.allowsRemoteCleartext,
            .flag,
            "allow cleartext on addresses other than loopback"
        ),
    ]

    private static let placeKeys =
        [ConfigurationKey("state", \.stateFolder, .text("a folder's path"), "the state folder")]
        + Self.storeKeys

    private static let behaviorKeys = [
        ConfigurationKey(
            "unaskedWorkers",
            \.allowsUnauthenticatedWorkers,
            .flag,
            "accept workers of this machine without credentials, even if they needed credentials before"
        ),
        ConfigurationKey(
            "registration",
            \.registration,
            .choice(),
            "how device tokens are registered: by a request, or by the first push (open)"
        ),
        ConfigurationKey(
            "strictBackgroundPriority",
            \.strictBackgroundPriority,
            .flag,
            "refuse background pushes with priority 10, which Apple documents as an error"
        ),
        ConfigurationKey(
            "operatorTestPushes",
            \.permitsTestPushes,
            .flag,
            "allow operators to send test pushes (dashboard, POST /v1/devices/TOKEN/push); on in dev"
        ),
        ConfigurationKey(
            "environment",
            \.environment,
            .choiceOrNull(),
            "the APNs environment; keys and certificates of the other one are refused"
        ),
        ConfigurationKey(
            "appleStreamLimit",
            \.appleStreamLimit,
            .flag,
            "allow one stream per connection until its first push with a valid provider token, as APNs does"
        ),
        ConfigurationKey(
            "drainTimeout",
            \.drainTimeoutMilliseconds,
            .seconds(0...3600),
            "how long a shutdown waits for wakes in flight"
        ),
        ConfigurationKey(
            "clockJumpMax",
            \.clockJumpMaxMilliseconds,
            .seconds(60...Parameters.secondsMax),
            "the longest time that the machine may have been off; a larger jump of the clock is not trusted"
        ),
    ]

    private static let fileKeys = [
        ConfigurationKey("tls.certificate", \.certificateFile, .file, "the server's certificate chain, PEM"),
        ConfigurationKey("tls.key", \.privateKeyFile, .file, "the server's private key, PEM"),
        ConfigurationKey(
            "tls.clientCA",
            \.clientCAFile,
            .file,
            "the certificate authorities of client certificates, PEM"
        ),
        ConfigurationKey("tls.clientCRL", \.clientCRLFile, .file, "the revocation lists of those authorities, PEM"),
        ConfigurationKey("providerKeys", \.providerKeysFolder, .file, "the folder of the providers' public keys"),
    ]

    private static let logKeys = [
        ConfigurationKey("log.level", \.logLevel, .choice(), "the lowest level that is logged"),
        ConfigurationKey("log.format", \.logFormat, .choice(), "the format of log lines"),
    ]
}

extension ConfigurationKey {
    fileprivate init(limit: GatewayLimit) {
        self.init(
            name: "limits.\(limit.name)",
            requirement: limit.requirement,
            summary: limit.summary,
            isText: false,
            assign: {
                guard let number = limit.isDuration ? $1.seconds : $1.number, let value = Int(exactly: number),
                    limit.range.contains(value)
                else { return false }
                $0.limits[keyPath: limit.field] = value
                return true
            },
            value: { .number(JSONNumber(Double($0.limits[keyPath: limit.field]))) }
        )
    }

    fileprivate init(parameter: PolicyParameter) {
        self.init(
            name: "policy.\(parameter.rawValue)",
            requirement: parameter.settingRequirement,
            summary: parameter.summary,
            isText: false,
            assign: { parameter.set($1, in: &$0.policy) },
            value: { .number(JSONNumber(parameter.value(in: $0.policy))) }
        )
    }
}

extension GatewayConfiguration {
    /// The keys for the storage of devices and pushes.
    private static let storeKeys = [
        ConfigurationKey(
            name: "store",
            requirement: "\"sqlite\", \"memory\", or \(PostgresAddress.requirement)",
            summary: "the store of devices and pushes: a file, memory only, or a database that gateways share",
            isText: true,
            assign: {
                guard case .string(let text) = $1, let store = GatewayConfiguration.Store(text) else { return false }
                $0.store = store
                return true
            },
            value: { .string($0.store.text) },
            fault: Self.fault(ofStore:)
        ),
        ConfigurationKey(
            "databaseConnections",
            \.databaseConnections,
            .count(1...100),
            "the number of committing connections to the database of `store`; three more are always open"
        ),
        ConfigurationKey(
            "databaseInsecure",
            \.allowsUnverifiedDatabase,
            .flag,
            "allow a database on another machine without sslmode=verify-full"
        ),
    ]

    /// Returns a fault that does not show the value, which may contain a password.
    private static func fault(ofStore value: JSONValue) -> ConfigurationFault? {
        guard case .string(let text) = value else { return nil }
        if PostgresAddress.schemes.contains(where: { text.hasPrefix($0) }) {
            do throws(PostgresAddress.Fault) { _ = try PostgresAddress(text) } catch {
                return ConfigurationFault(key: "store", problem: error.problem, remedy: error.remedy)
            }
        }
        guard !text.utf8.allSatisfy({ $0.isLetterOrDigit(or: "-_") }) else { return nil }
        return ConfigurationFault(
            key: "store",
            problem: "is neither a file, nor memory, nor the address of a database",
            remedy: "write \"sqlite\", \"memory\", or \(PostgresAddress.requirement)"
        )
    }
}

extension GatewayConfiguration.Store {
    /// Parses a value of the key `store`; returns nil if it is invalid.
    init?(_ text: String) {
        switch text {
        case "sqlite": self = .sqlite
        case "memory": self = .memory
        default:
            guard let address = try? PostgresAddress(text) else { return nil }
            self = .postgresql(address)
        }
    }

    /// The value of the key `store`.
    package var text: String {
        switch self {
        case .sqlite: "sqlite"
        case .memory: "memory"
        case .postgresql(let address): address.text
        }
    }
}

/// The key `topics.TOPIC.tasks`, which lists the identifiers that the topic permits.
package enum PermittedTasksKey {
    /// The name within the topic's section.
    package static let name = "tasks"
    /// The rule for the value, for messages and manuals.
    package static let requirement =
        "a list of at most \(PermittedTasks.patternsPerTopicMax) identifiers, or null; \(Self.identifierRequirement)"
    /// The purpose of the key, in one line.
    package static let summary =
        "the background tasks that workers may submit; null: none, and all in `wakegate dev`"

    static let identifierRequirement =
        "an identifier has 1 to \(IdentifierPattern.bytesMax) characters of A-Z a-z 0-9 . - _; one that ends in .* "
        + "matches every longer identifier that begins with the text before the *"

    /// Reads a value.
    ///
    /// - `key`: the full name of the key, for messages.
    /// - Returns: the patterns; nil if the topic uses the default.
    /// - Throws: `ConfigurationError` with every fault.
    static func read(_ value: JSONValue, key: String) throws(ConfigurationError) -> [IdentifierPattern]? {
        var faults: [ConfigurationFault] = []
        func fault(_ key: String, _ problem: String, _ remedy: String) {
            faults.append(ConfigurationFault(key: key, problem: problem, remedy: remedy))
        }
        var patterns: [IdentifierPattern] = []
        switch value {
        case .null: return nil
        case .array(let elements) where elements.count > PermittedTasks.patternsPerTopicMax:
            let remedy = "write at most \(PermittedTasks.patternsPerTopicMax); one that ends in .* stands for many"
            fault(key, "has \(elements.count) identifiers", remedy)
        case .array(let elements):
            var known: Set<IdentifierPattern> = []
            for (index, element) in elements.enumerated() {
                guard let pattern = element.text.map({ IdentifierPattern($0) }), pattern.isWellFormed else {
                    let remedy = "write an identifier: \(self.identifierRequirement)"
                    fault("\(key)[\(index)]", "is \(element.described)", remedy)
                    continue
                }
                if known.insert(pattern).inserted {
                    patterns.append(pattern)
                } else {
                    fault("\(key)[\(index)]", "is \(element.described) again", "write it once")
                }
            }
        case .bool, .number, .string, .object: fault(key, "is \(value.described)", "write \(self.requirement)")
        }
        guard faults.isEmpty else { throw ConfigurationError(faults: faults) }
        return patterns
    }

    /// Returns the value of a configuration in the form that `read` accepts.
    static func value(_ patterns: [IdentifierPattern]?) -> JSONValue {
        patterns.map { .array($0.map { .string($0.text) }) } ?? .null
    }
}
