package import CommandLineTool
import Gateway

extension KeyManual {
    /// Every key, in the order of the manual; those of a topic stand for any topic.
    package static let all: [KeyManual] =
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
}
