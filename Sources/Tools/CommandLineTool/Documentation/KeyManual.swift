import Gateway

/// A key of the configuration as the help and the manual explain it.
struct KeyManual: Sendable {
    let name: String
    /// What the key is for.
    let summary: String
    /// What the value must be.
    let requirement: String
    /// The value when nothing is set; nil where there is none.
    let defaultText: String?

    /// Every key, in the order of the manual; those of a topic stand for any topic.
    static let all: [KeyManual] =
        ConfigurationKey.all.map { key in
            // Of a bound the reason for its default says what it is measured against.
            let reason = Self.reasons[key.name].map { ": \($0.dropLast())" } ?? ""
            return KeyManual(
                name: key.name,
                summary: key.summary,
                requirement: key.requirement,
                defaultText: key.defaultText + reason
            )
        } + [
            KeyManual(
                name: "topics.TOPIC.policy.PARAMETER",
                summary: "a parameter of the launch policy for one topic",
                requirement: "as that of policy",
                defaultText: "that of policy"
            ),
            KeyManual(
                name: "topics.TOPIC.\(PermittedTasksKey.name)",
                summary: PermittedTasksKey.summary,
                requirement: PermittedTasksKey.requirement,
                defaultText: "null"
            ),
        ]
        + WebhookKey.all.map {
            KeyManual(
                name: "topics.TOPIC.webhook.\($0.name)",
                summary: $0.summary,
                requirement: $0.requirement,
                defaultText: $0.defaultText
            )
        }

    private static var reasons: [String: String] {
        Dictionary(uniqueKeysWithValues: GatewayLimit.all.map { ("limits.\($0.name)", $0.reason) })
    }

    /// The key in the help of a command.
    var help: String {
        let value = "      \(self.requirement)\n"
        let remark = self.defaultText.map { "      default: \($0)" } ?? "      no default"
        return "  \(self.name): \(self.summary)\n\(value)\(remark)"
    }
}
