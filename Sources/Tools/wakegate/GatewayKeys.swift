package import CommandLineTool
import Gateway

extension KeyManual {
    /// All configuration keys, in the order of the manual. `TOPIC` in a name stands for any topic.
    package static let all: [KeyManual] =
        GatewayConfiguration.keys.map { key in
            KeyManual(
                name: key.name,
                summary: key.summary,
                requirement: key.requirement,
                defaultText: key.defaultText,
                advice: Self.advice[key.name],
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

    /// True if the key sets a limit of the gateway.
    package var isLimit: Bool { self.name.hasPrefix("limits.") }

    /// Returns a title followed by the help of the keys.
    static func page(_ title: String, _ keys: [KeyManual]) -> String {
        "\(title):\n" + keys.map { "\($0.help)\n" }.joined()
    }
}
