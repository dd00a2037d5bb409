import Engine
package import FoundationEssentials
import HTTPTransport
import Platform
import Policy
import Wire

/// Reads a configuration and reports all its faults.
package struct ConfigurationLoader {
    /// The maximum size of a configuration file in bytes.
    package static let fileBytesMax = 4 << 20
    /// The sections other than topics. A section contains keys and has no value.
    private static let sections: Set<String> = ["tls", "policy", "limits", "log"]
    private static let keys = Dictionary(uniqueKeysWithValues: GatewayConfiguration.keys.map { ($0.name, $0) })

    private var configuration: GatewayConfiguration
    private var faults: [ConfigurationFault] = []
    /// The assignments for topics. They are applied last, because a topic's policy starts from the general policy.
    private var topicAssignments: [ConfigurationAssignment] = []

    private init(base: GatewayConfiguration) {
        self.configuration = base
    }

    /// Reads the file at `path`, if any, and then `settings`, which take precedence. Each setting has the form
    /// `KEY=VALUE`.
    ///
    /// - Throws: `ConfigurationError` with every fault of the file and the settings.
    package static func load(
        file path: String?,
        settings: [String] = [],
        base: GatewayConfiguration = GatewayConfiguration()
    ) throws(ConfigurationError) -> GatewayConfiguration {
        var text: Data?
        if let path { text = try self.contents(of: path, bytesMax: self.fileBytesMax, option: "--config") }
        return try self.load(text: text, name: path ?? "configuration", settings: settings, base: base)
    }

    /// Reads JSON5 `text`, if any, and then `settings`. `name` identifies the text in messages.
    package static func load(
        text: Data?,
        name: String,
        settings: [String] = [],
        base: GatewayConfiguration = GatewayConfiguration()
    ) throws(ConfigurationError) -> GatewayConfiguration {
        var loader = ConfigurationLoader(base: base)
        // Stop here if the text cannot be parsed, because that would cause further faults.
        if let text {
            let value = try self.object(text, name: name, example: "{ edge: \"127.0.0.1:2197\" }")
            loader.visit(ConfigurationAssignment(path: [], value: value))
        }
        for setting in settings { loader.read(setting: setting) }
        loader.assignTopics()
        guard loader.faults.isEmpty else {
            throw ConfigurationError(faults: loader.faults, readable: loader.configuration)
        }
        return loader.configuration
    }

    /// Reads a whole file.
    ///
    /// - `option`: the command-line option for the file, for messages.
    package static func contents(of path: String, bytesMax: Int, option: String) throws(ConfigurationError) -> Data {
        func fault(_ problem: String, remedy: String? = nil) -> ConfigurationError {
            let remedy = remedy ?? "name a readable file with \(option)"
            return ConfigurationError(faults: [ConfigurationFault(key: path, problem: problem, remedy: remedy)])
        }
        let bytes: [UInt8]?
        do throws(SystemError) { bytes = try OrdinaryFile.contents(path, bytesMax: bytesMax + 1) } catch {
            throw fault("cannot be read (\(error.reason))")
        }
        guard let bytes else { throw fault("is not a regular file") }
        if bytes.count <= bytesMax { return Data(bytes) }
        throw fault("is larger than \(bytesMax) bytes", remedy: "name another file with \(option)")
    }

    /// Parses JSON5 text that must be an object. `name` identifies the text in messages.
    static func object(_ text: Data, name: String, example: String) throws(ConfigurationError) -> JSONValue {
        let fault: ConfigurationFault
        do throws(JSON5Fault) {
            let value = try JSON5Reader.read(Array(text))
            if case .object = value { return value }
            let remedy = "write an object: \(example)"
            fault = ConfigurationFault(key: name, problem: "holds \(value.described)", remedy: remedy)
        } catch {
            fault = ConfigurationFault(key: name, problem: error.problem, remedy: error.remedy)
        }
        throw ConfigurationError(faults: [fault])
    }
}

extension ConfigurationLoader {
    private mutating func read(setting: String) {
        guard let assignment = ConfigurationAssignment(setting: setting) else {
            return self.fault("--set \(setting)", "has no value", "write --set KEY=VALUE")
        }
        if let fault = assignment.fault { return self.fault("--set \(assignment.name)", fault.problem, fault.remedy) }
        self.visit(assignment)
    }

    private mutating func fault(_ key: String, _ problem: String, _ remedy: String) {
        self.faults.append(ConfigurationFault(key: key, problem: problem, remedy: remedy))
    }

    /// Visits the keys of a section in the order of their names.
    private mutating func visit(_ assignment: ConfigurationAssignment) {
        guard Self.isSection(assignment.path) else { return self.assign(assignment) }
        guard case .object(let members) = assignment.value else {
            let example =
                assignment.path.first == "topics"
                ? "write { policy: { launchInterval: 300 } }, or set topics.TOPIC.policy.PARAMETER"
                : "write an object: { ... }"
            return self.fault(assignment.name, "is \(assignment.value.described)", example)
        }
        for member in members {
            self.visit(ConfigurationAssignment(path: assignment.path + [member.name], value: member.value))
        }
        // A topic without parameters is also an assignment, and so is an empty webhook section.
        if assignment.path.count == 2 || Self.isWebhook(assignment.path) { self.topicAssignments.append(assignment) }
    }

    private static func isSection(_ path: [String]) -> Bool {
        guard let first = path.first else { return true }
        guard first == "topics" else { return path.count == 1 && self.sections.contains(first) }
        return path.count <= 2 || (path.count == 3 && ConfigurationAssignment.topicSections.contains(path[2]))
    }

    /// Returns true if a path is a topic's webhook section, or is within it.
    private static func isWebhook(_ path: [String]) -> Bool {
        path.count >= 3 && path[0] == "topics" && path[2] == "webhook"
    }

    private mutating func assign(_ assignment: ConfigurationAssignment) {
        if assignment.path.first == "topics" {
            self.topicAssignments.append(assignment)
            return
        }
        guard let key = Self.keys[assignment.name] else { return self.unknown(assignment.path) }
        let value = self.textual(assignment, isText: key.isText)
        guard !key.assign(&self.configuration, value) else { return }
        if let fault = key.fault(value) { return self.faults.append(fault) }
        self.fault(key.name, "is \(value.described)", "write \(key.requirement)")
    }

    /// Returns the value of an assignment. For a text key on the command line, returns the literal text.
    private func textual(_ assignment: ConfigurationAssignment, isText: Bool) -> JSONValue {
        guard isText, let written = assignment.written, assignment.value != .null else { return assignment.value }
        if case .string = assignment.value { return assignment.value }
        return .string(written)
    }
}

extension ConfigurationLoader {
    private mutating func assignTopics() {
        for assignment in self.topicAssignments {
            let topic = assignment.path[1]
            guard BearerToken.isTopic(topic) else {
                let remedy = "write letters, digits, '.', '_' and '-', such as com.example.app"
                self.fault("topics.\(topic)", "is not a topic", remedy)
                continue
            }
            guard !Self.isWebhook(assignment.path) else {
                self.assignWebhook(assignment)
                continue
            }
            var policy = self.configuration.policy(forTopic: topic)
            if assignment.path.count == 4 {
                guard let parameter = PolicyParameter(rawValue: assignment.path[3]) else {
                    self.unknown(assignment.path)
                    continue
                }
                self.set(parameter, of: &policy, to: assignment)
            } else if assignment.path.count == 3, assignment.path[2] == PermittedTasksKey.name {
                self.assignTasks(assignment)
            } else if assignment.path.count > 2 {
                self.unknown(assignment.path)
                continue
            }
            self.configuration.topicPolicies[topic] = policy
        }
    }

    private mutating func assignTasks(_ assignment: ConfigurationAssignment) {
        do throws(ConfigurationError) {
            let patterns = try PermittedTasksKey.read(assignment.value, key: assignment.name)
            self.configuration.permittedTasks[assignment.path[1]] = patterns
        } catch { self.faults += error.faults }
    }

    private mutating func assignWebhook(_ assignment: ConfigurationAssignment) {
        let topic = assignment.path[1]
        var webhook = self.configuration.webhooks[topic] ?? WebhookConfiguration()
        defer { self.configuration.webhooks[topic] = webhook }
        guard assignment.path.count == 4 else { return }
        guard let key = WebhookConfiguration.keys.first(where: { $0.name == assignment.path[3] }) else {
            return self.unknown(assignment.path)
        }
        if !key.assign(&webhook, self.textual(assignment, isText: key.isText)) {
            self.fault(assignment.name, "is \(assignment.value.described)", "write \(key.requirement)")
        }
    }

    private mutating func set(
        _ parameter: PolicyParameter,
        of policy: inout Parameters,
        to assignment: ConfigurationAssignment
    ) {
        if parameter.set(assignment.value, in: &policy) { return }
        self.fault(assignment.name, "is \(assignment.value.described)", "write \(parameter.settingRequirement)")
    }

    /// Reports an unknown key by its full name, and suggests the most similar known key.
    private mutating func unknown(_ path: [String]) {
        let name = path.joined(separator: ".")
        var candidates = Self.keys.keys.sorted() + ["limits", "log", "policy", "tls", "topics"]
        if path.first == "topics", path.count > 2 {
            let topic = "topics.\(path[1])"
            candidates =
                (ConfigurationAssignment.topicSections + [PermittedTasksKey.name]).map { "\(topic).\($0)" }
                + PolicyParameter.allCases.map { "\(topic).policy.\($0.rawValue)" }
                + WebhookConfiguration.keys.map { "\(topic).webhook.\($0.name)" }
        }
        // A known name in the wrong section is a more likely mistake than a misspelled name.
        let moved = candidates.first { $0.split(separator: ".").last.map(String.init) == path.last }
        if let meant = moved ?? NearestMatch.find(name, in: candidates) {
            self.fault(name, "is not a key", "did you mean \(meant)?")
        } else {
            self.fault(name, "is not a key", "remove it; `wakegate serve --help keys` lists the keys")
        }
    }
}

/// The source of the configuration of a running gateway, for reloads.
package struct ConfigurationSource: Sendable {
    /// Reads the configuration again, including the settings on the command line.
    ///
    /// - Throws: `ConfigurationError` with every fault, including invalid combinations.
    package let read: @Sendable () throws(ConfigurationError) -> GatewayConfiguration
    /// True if SIGHUP reloads the configuration. False if SIGHUP stops the gateway, for example when its terminal is
    /// closed.
    package let reloadsOnHangup: Bool

    package init(
        reloadsOnHangup: Bool,
        read: @escaping @Sendable () throws(ConfigurationError) -> GatewayConfiguration
    ) {
        self.read = read
        self.reloadsOnHangup = reloadsOnHangup
    }
}

/// A value for one key, from the configuration file or from `--set`.
struct ConfigurationAssignment: Sendable {
    /// The parts of the key's name. A topic is one part, even if it contains dots.
    var path: [String]
    var value: JSONValue
    /// The literal text of a value from the command line; nil for a value from the file.
    var written: String?
    /// The fault of a value that begins like an object and cannot be parsed; nil for any other value.
    var fault: JSON5Fault?

    var name: String { self.path.joined(separator: ".") }

    /// The sections of a topic.
    static let topicSections = ["policy", "webhook"]
}

extension ConfigurationAssignment {
    /// Parses `KEY=VALUE`. If VALUE is not JSON5, it is a string.
    ///
    /// - Returns: nil if the key or `=` is missing.
    init?(setting: String) {
        guard let equals = setting.firstIndex(of: "="), equals != setting.startIndex else { return nil }
        let written = String(setting[setting.index(after: equals)...])
        do throws(JSON5Fault) {
            let value = try JSON5Reader.read(Array(written.utf8))
            self.init(path: Self.path(of: setting[..<equals], value: value), value: value, written: written)
        } catch {
            let value = JSONValue.string(written)
            self.init(path: Self.path(of: setting[..<equals], value: value), value: value, written: written)
            // Ignore the fault of text that begins with `[`, which may be an IPv6 address.
            if written.hasPrefix("{") { self.fault = error }
        }
    }

    /// Splits a key at its dots. A topic is one part, which may contain dots. It is the text between `topics.` and the
    /// last `.policy` or `.webhook`, or before a final `.tasks` that does not belong to the webhook.
    private static func path(of key: Substring, value: JSONValue) -> [String] {
        let prefix = "topics."
        guard key.hasPrefix(prefix), key.utf8.count > prefix.utf8.count else {
            return key.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        }
        let rest = key.dropFirst(prefix.count)
        // If the value is an object, `.tasks` is the end of the topic's name.
        let tasks = ".\(PermittedTasksKey.name)"
        if rest.hasSuffix(tasks), !rest.hasSuffix(".webhook\(tasks)") {
            guard case .object = value else {
                return ["topics", String(rest.dropLast(tasks.utf8.count)), PermittedTasksKey.name]
            }
        }
        // Keys in a section never have an object as value, so an object is the value of the section.
        for section in Self.topicSections where rest.hasSuffix(".\(section)") {
            guard case .object = value else { break }
            return ["topics", String(rest.dropLast(section.utf8.count + 1)), section]
        }
        let found = Self.topicSections.compactMap { section in
            rest.ranges(of: ".\(section).").last.map { (section, $0) }
        }
        if let (section, range) = found.max(by: { $0.1.lowerBound < $1.1.lowerBound }) {
            return ["topics", String(rest[..<range.lowerBound]), section, String(rest[range.upperBound...])]
        }
        return ["topics", String(rest)]
    }
}
