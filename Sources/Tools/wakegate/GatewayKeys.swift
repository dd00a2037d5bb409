package import CommandLineTool
import Gateway

/// A configuration key, for the help and the manual.
package struct KeyManual: Sendable {
    let name: String
    /// The meaning of the key, as a phrase.
    let summary: String
    /// The permitted values.
    let requirement: String
    /// The default value; nil if there is none.
    let defaultText: String?
    /// The rationale for the default and when to change it, in sentences; may be empty.
    var advice = ""
    /// True if most operators set the key.
    var isCommon = false

    /// True if the key sets a limit of the gateway.
    var isLimit: Bool { self.name.hasPrefix("limits.") }

    /// The lines about the key in the help of a command.
    private var help: String {
        let remark = self.defaultText.map { "default: \($0)" } ?? "no default"
        let advice = self.advice.isEmpty ? "" : "\n      \(self.advice)"
        return "  \(self.name): \(self.summary)\n      \(self.requirement); \(remark)\(advice)"
    }

    /// Returns a title followed by the help of the keys.
    static func page(_ title: String, _ keys: [KeyManual]) -> String {
        "\(title):\n" + keys.map { "\($0.help)\n" }.joined()
    }

    /// The texts of all keys in the manual.
    package static let manual: [ManualPage.KeyText] = Self.all.map { key in
        let remark = key.defaultText.map { "Default: \($0)." } ?? "It has no default."
        return (key.name, "\(key.summary): \(key.requirement).\n\(remark)\n\(key.advice)")
    }
}

extension KeyManual {
    /// All configuration keys, in the order of the manual. `TOPIC` in a name stands for any topic.
    static let all: [KeyManual] =
        GatewayConfiguration.keys.map { key in
            KeyManual(
                name: key.name,
                summary: key.summary,
                requirement: key.requirement,
                defaultText: key.defaultText,
                advice: Self.advice[key.name] ?? "",
                isCommon: key.isCommon
            )
        } + [
            KeyManual(
                name: "topics.TOPIC.policy.PARAMETER",
                summary: "a parameter of the launch policy, for one topic",
                requirement: "as that of policy",
                defaultText: "that of policy"
            ),
            KeyManual(
                name: "topics.TOPIC.\(PermittedTasksKey.name)",
                summary: PermittedTasksKey.summary,
                requirement: PermittedTasksKey.requirement,
                defaultText: "null",
                isCommon: true
            ),
        ]
        + WebhookConfiguration.keys.map {
            KeyManual(
                name: "topics.TOPIC.webhook.\($0.name)",
                summary: $0.summary,
                requirement: $0.requirement,
                defaultText: $0.defaultText
            )
        }

    private static let advice = Dictionary(
        uniqueKeysWithValues: GatewayLimit.all.map { ("limits.\($0.name)", $0.rationale) }
    )
}
