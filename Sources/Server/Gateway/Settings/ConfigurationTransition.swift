import Engine
import Policy
package import Wire

/// What a configuration that was read anew makes of the one in force.
package struct ConfigurationTransition: Sendable {
    /// What is in force afterwards: what needs a restart is as it was.
    package let next: GatewayConfiguration
    /// What changes now.
    package let changed: [ConfigurationChange]
    /// What was written otherwise, and comes into force with the next start.
    package let needsRestart: [ConfigurationChange]

    /// - Parameters:
    ///   - old: the one in force.
    ///   - new: the one that was read.
    package init(from old: GatewayConfiguration, to new: GatewayConfiguration) {
        var next = new
        // No key sets them.
        next.asksForTokens = old.asksForTokens
        next.faultRules = old.faultRules
        next.callerNetworks = old.callerNetworks
        var changed: [ConfigurationChange] = []
        var needsRestart: [ConfigurationChange] = []
        let begins = Self.begins(old, new)
        for key in ConfigurationKey.all {
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

    /// The keys by which a gateway would begin or cease to ask for proof: that is settled at the start.
    private static func begins(_ old: GatewayConfiguration, _ new: GatewayConfiguration) -> Set<String> {
        var keys: Set<String> = []
        if (old.providerKeysFolder == nil) != (new.providerKeysFolder == nil) { keys.insert("providerKeys") }
        if (old.clientCAFile == nil) != (new.clientCAFile == nil) { keys.formUnion(["tls.clientCA", "tls.clientCRL"]) }
        return keys
    }

    /// The parameters that are others for topics which one of the configurations names.
    private static func policyChanges(
        _ old: GatewayConfiguration,
        _ new: GatewayConfiguration
    ) -> [ConfigurationChange] {
        let topics = Set(old.topicPolicies.keys).union(new.topicPolicies.keys)
        return topics.sorted().flatMap { topic in
            let (before, after) = (old.policy(forTopic: topic), new.policy(forTopic: topic))
            return ConfigurationKey.parameters.compactMap { parameter in
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
        return Set(before.namedTopics).union(after.namedTopics).sorted().compactMap { topic in
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
            let changes = WebhookKey.all.compactMap { key in
                Self.change("\(section).\(key.name)", key.value(before ?? none), key.value(after ?? none))
            }
            // Not all of a URL is shown.
            guard changes.isEmpty, before != after else { return changes }
            let shown = JSONValue.string("\(section).url, in a part that is not shown")
            return [ConfigurationChange(key: "\(section).url", old: shown, new: shown)]
        }
    }

    private static func change(_ key: String, _ old: JSONValue, _ new: JSONValue) -> ConfigurationChange? {
        old == new ? nil : ConfigurationChange(key: key, old: old, new: new)
    }
}

/// A key whose value is not the one it was.
package struct ConfigurationChange: Hashable, Sendable {
    /// The full name, such as `policy.launchInterval`.
    package let key: String
    /// The values, as a configuration file has them; of a file that was read again, what it holds.
    package let old: JSONValue
    package let new: JSONValue

    package init(key: String, old: JSONValue, new: JSONValue) {
        self.key = key
        self.old = old
        self.new = new
    }

    /// Appends the change as an object of `key`, `old` and `new`.
    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("key")
        writer.string(self.key)
        for (name, value) in [("old", self.old), ("new", self.new)] {
            writer.key(name)
            value.written.withByteView { writer.raw($0) }
        }
        writer.endObject()
    }
}

/// A configuration that cannot be used, with every fault that was found in it.
package struct ConfigurationError: Error, CustomStringConvertible {
    /// At least one fault, in the order of the keys.
    package var faults: [ConfigurationFault]

    /// What could be read, with the defaults of the keys at fault; nil when nothing could.
    package var rest: GatewayConfiguration?

    package init(faults: [ConfigurationFault], rest: GatewayConfiguration? = nil) {
        self.faults = faults
        self.rest = rest
    }

    /// The faults, and those of the combination of what could be read. A key at fault is not spoken of again.
    package var allFaults: [ConfigurationFault] {
        let keys = Set(self.faults.map(\.key))
        return self.faults + (self.rest?.faults() ?? []).filter { !keys.contains($0.key) }
    }

    /// One line a fault.
    package var description: String {
        self.faults.map(\.description).joined(separator: "\n")
    }
}

extension APIError {
    /// What was read cannot be used, with every fault of it.
    package static func badConfiguration(_ error: ConfigurationError) -> APIError {
        let count = error.faults.count == 1 ? "a fault" : "\(error.faults.count) faults"
        let message = "The configuration has \(count), and the old one stays in effect: \(error)"
        var answer = APIError(400, "BadConfiguration", message)
        answer.faults = error.faults
        return answer
    }

    /// Fault rules cannot be taken, with every fault of them.
    package static func badFaults(_ error: ConfigurationError) -> APIError {
        APIError(400, "BadFaults", error.description)
    }
}

extension ConfigurationFault {
    /// - `error`: its message says what is wrong, and behind a semicolon what to do.
    package init(key: String, _ error: CredentialError) {
        let sentence = error.message.hasSuffix(".") ? error.message.dropLast() : error.message[...]
        let parts = sentence.split(separator: "; ", maxSplits: 1)
        self.init(key: key, problem: String(parts[0]), remedy: parts.dropFirst().joined())
    }
}
