import Engine
import Policy
import Wire

/// The key `topics.TOPIC.tasks` of the configuration: what the topic permits.
package enum PermittedTasksKey {
    /// The name within the topic's section.
    package static let name = "tasks"
    /// What the value must be, for messages and manuals.
    package static let requirement =
        "a list of at most \(PermittedTasks.patternsPerTopicMax) identifiers, or null; \(Self.identifierRequirement)"
    /// What the key is for, in one line.
    package static let summary =
        "the background tasks that workers may submit; null is none, and all in `wakegate dev`"

    static let identifierRequirement =
        "an identifier has 1 to \(IdentifierPattern.bytesMax) characters of A-Z a-z 0-9 . - _, and stands with .* at "
        + "its end for all that begin with it and a dot"

    /// What a value says, or what is wrong with it.
    enum Reading {
        /// nil: what holds for topics that name nothing.
        case patterns([IdentifierPattern]?)
        case faults([ConfigurationFault])
    }

    /// - `key`: the full name, for messages.
    static func read(_ value: JSONValue, key: String) -> Reading {
        let elements: [JSONValue]
        switch value {
        case .null: return .patterns(nil)
        case .array(let found): elements = found
        case .bool, .number, .string, .object:
            return .faults([
                ConfigurationFault(key: key, problem: "is \(value.described)", remedy: "write \(self.requirement)")
            ])
        }
        guard elements.count <= PermittedTasks.patternsPerTopicMax else {
            let remedy = "write at most \(PermittedTasks.patternsPerTopicMax); one that ends in .* stands for many"
            return .faults([
                ConfigurationFault(key: key, problem: "has \(elements.count) identifiers", remedy: remedy)
            ])
        }
        var patterns: [IdentifierPattern] = []
        var known: Set<IdentifierPattern> = []
        var faults: [ConfigurationFault] = []
        for (index, element) in elements.enumerated() {
            guard case .string(let text) = element, IdentifierPattern(text).isWellFormed else {
                let problem = "is \(element.described)"
                let remedy = "write an identifier: \(self.identifierRequirement)"
                faults.append(ConfigurationFault(key: "\(key)[\(index)]", problem: problem, remedy: remedy))
                continue
            }
            let pattern = IdentifierPattern(text)
            if known.insert(pattern).inserted {
                patterns.append(pattern)
            } else {
                let problem = "is \(element.described) again"
                faults.append(ConfigurationFault(key: "\(key)[\(index)]", problem: problem, remedy: "write it once"))
            }
        }
        return faults.isEmpty ? .patterns(patterns) : .faults(faults)
    }

    /// The value that a configuration has, as `read` takes it.
    static func value(_ patterns: [IdentifierPattern]?) -> JSONValue {
        patterns.map { .array($0.map { .string($0.text) }) } ?? .null
    }
}
