import Engine
import Policy
package import Wire

/// The change from the configuration in effect to a newly read configuration.
package struct ConfigurationTransition: Sendable {
    /// The configuration in effect after the change. Settings that need a restart keep their old values.
    package let next: GatewayConfiguration
    /// The changes that take effect now.
    package let changed: [ConfigurationChange]
    /// The changes that take effect at the next start.
    package let needsRestart: [ConfigurationChange]

    /// - Parameters:
    ///   - old: the configuration in effect.
    ///   - new: the configuration that was read.
    package init(from old: GatewayConfiguration, to new: GatewayConfiguration) {
        var next = new
        // These settings have no key in a configuration file.
        next.checksTokens = old.checksTokens
        next.faultRules = old.faultRules
        next.callerNetworks = old.callerNetworks
        var changed: [ConfigurationChange] = []
        var needsRestart: [ConfigurationChange] = []
        let begins = Self.begins(old, new)
        for key in GatewayConfiguration.keys {
            let change = ConfigurationChange(key: key.name, old: key.value(old), new: key.value(new))
            guard change.old != change.new else { continue }
            if key.needsRestart || begins.contains(key.name) {
                needsRestart.append(change)
                _ = key.assign(&next, change.old)
            } else {
                changed.append(change)
            }
        }
        let ofTopics = Self.policyChanges(old, new) + Self.taskChanges(old, new) + Self.webhookChanges(old, new)
        self.changed = changed + ofTopics
        self.needsRestart = needsRestart
        self.next = next
    }

    /// Returns the keys whose change would make the gateway start or stop requiring credentials, and the certificate of
    /// an edge that a restart turns on or off. Such a change needs a restart.
    private static func begins(_ old: GatewayConfiguration, _ new: GatewayConfiguration) -> Set<String> {
        var keys: Set<String> = []
        if (old.providerKeysFolder == nil) != (new.providerKeysFolder == nil) { keys.insert("providerKeys") }
        if (old.clientCAFile == nil) != (new.clientCAFile == nil) { keys.formUnion(["tls.clientCA", "tls.clientCRL"]) }
        if old.edge.isOff != new.edge.isOff { keys.formUnion(["tls.certificate", "tls.key"]) }
        return keys
    }

    /// Returns the changed policy parameters of the topics that either configuration names.
    private static func policyChanges(
        _ old: GatewayConfiguration,
        _ new: GatewayConfiguration
    ) -> [ConfigurationChange] {
        let topics = Set(old.topicPolicies.keys).union(new.topicPolicies.keys)
        return topics.sorted().flatMap { topic in
            let (before, after) = (old.policy(forTopic: topic), new.policy(forTopic: topic))
            return PolicyParameter.allCases.compactMap { parameter in
                Self.change(
                    "topics.\(topic).policy.\(parameter.rawValue)",
                    .number(JSONNumber(parameter.value(in: before))),
                    .number(JSONNumber(parameter.value(in: after)))
                )
            }
        }
    }

    private static func taskChanges(_ old: GatewayConfiguration, _ new: GatewayConfiguration) -> [ConfigurationChange] {
        let (before, after) = (old.permittedTasks, new.permittedTasks)
        return Set(before.listedTopics).union(after.listedTopics).sorted().compactMap { topic in
            Self.change(
                "topics.\(topic).\(PermittedTasksKey.name)",
                PermittedTasksKey.value(before[topic]),
                PermittedTasksKey.value(after[topic])
            )
        }
    }

    private static func webhookChanges(
        _ old: GatewayConfiguration,
        _ new: GatewayConfiguration
    ) -> [ConfigurationChange] {
        let topics = Set(old.webhooks.keys).union(new.webhooks.keys)
        return topics.sorted().flatMap { topic -> [ConfigurationChange] in
            let (before, after) = (old.webhooks[topic], new.webhooks[topic])
            let section = "topics.\(topic).webhook"
            let none = WebhookConfiguration()
            let changes = WebhookConfiguration.keys.compactMap { key in
                Self.change("\(section).\(key.name)", key.value(before ?? none), key.value(after ?? none))
            }
            // `key.value` hides parts of a URL, so a change of a hidden part is reported without the values.
            guard changes.isEmpty, before != after else { return changes }
            let shown = JSONValue.string("\(section).url, in a part that is not shown")
            return [ConfigurationChange(key: "\(section).url", old: shown, new: shown)]
        }
    }

    private static func change(_ key: String, _ old: JSONValue, _ new: JSONValue) -> ConfigurationChange? {
        old == new ? nil : ConfigurationChange(key: key, old: old, new: new)
    }
}

/// A key whose value has changed.
package struct ConfigurationChange: Hashable, Sendable {
    /// The full name, such as `policy.launchInterval`.
    package let key: String
    /// The values as in a configuration file. For the TLS certificate, descriptions of the file's contents.
    package let old: JSONValue
    package let new: JSONValue

    /// Appends the change as an object with the members `key`, `old` and `new`.
    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("key", self.key)
        for (name, value) in [("old", self.old), ("new", self.new)] {
            writer.key(name)
            value.written.withByteView { writer.raw($0) }
        }
        writer.endObject()
    }
}

/// A configuration that cannot be used, with all its faults.
package struct ConfigurationError: Error, CustomStringConvertible {
    /// At least one fault, in the order of the keys.
    package var faults: [ConfigurationFault]

    /// The configuration with default values for the keys at fault; nil if nothing could be read.
    package var readable: GatewayConfiguration?

    package init(faults: [ConfigurationFault], readable: GatewayConfiguration? = nil) {
        self.faults = faults
        self.readable = readable
    }

    /// The faults of single values, and the faults of combinations of the readable values, without further faults of
    /// the same keys.
    package var allFaults: [ConfigurationFault] {
        let keys = Set(self.faults.map(\.key))
        return self.faults + (self.readable?.faults() ?? []).filter { !keys.contains($0.key) }
    }

    /// The faults, one per line.
    package var description: String {
        self.faults.map(\.description).joined(separator: "\n")
    }
}

extension APIError {
    /// Returns the API error for an invalid configuration, with all its faults.
    package static func badConfiguration(_ error: ConfigurationError) -> APIError {
        let count = error.faults.count == 1 ? "a fault" : "\(error.faults.count) faults"
        let message = "The configuration has \(count), and the old one stays in effect: \(error)"
        var answer = APIError(400, "BadConfiguration", message)
        answer.faults = error.faults
        return answer
    }

    /// Returns the API error for invalid fault rules, with all their faults.
    package static func badFaults(_ error: ConfigurationError) -> APIError {
        APIError(400, "BadFaults", error.description)
    }
}

extension ConfigurationFault {
    /// Creates a fault from an error whose message contains the problem and, after a semicolon, the remedy.
    package init(key: String, _ error: CredentialError) {
        let sentence = error.message.hasSuffix(".") ? error.message.dropLast() : error.message[...]
        let parts = sentence.split(separator: "; ", maxSplits: 1)
        self.init(key: key, problem: String(parts[0]), remedy: parts.dropFirst().joined())
    }
}
