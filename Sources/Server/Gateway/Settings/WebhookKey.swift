import Engine
import HTTPClient
import Policy
import Wire

/// One key of a webhook's section in the configuration, `topics.TOPIC.webhook.NAME`.
package struct WebhookKey: Sendable {
    /// The name within the section.
    package let name: String
    /// What the value must be, for messages and manuals.
    package let requirement: String
    /// What the key is for, in one line.
    package let summary: String
    /// Whether the value is text, so that `--set` takes it as it stands.
    let isText: Bool
    /// Takes the value over, or returns false when it is not what `requirement` says.
    let assign: @Sendable (inout WebhookConfiguration, JSONValue) -> Bool
    /// The value as it is shown: of a URL no more than where it leads.
    let value: @Sendable (WebhookConfiguration) -> JSONValue

    /// The value when nothing is set, as a file would have it; nil where one has to be.
    package var defaultText: String? { self.name == "url" ? nil : self.value(WebhookConfiguration()).text }

    package static let all = [
        WebhookKey(
            name: "url",
            requirement: "an https URL, without user and password",
            summary: "where each wake of the topic is posted to",
            isText: true,
            assign: {
                guard case .string(let text) = $1 else { return false }
                $0.url = text
                return true
            },
            value: { .string(HTTPURL($0.url)?.shown ?? "") }
        ),
        WebhookKey(
            name: "slots",
            requirement: "a whole number from 1 to \(SubscriptionRequest.slotsMax)",
            summary: "how many unanswered wakes it may hold",
            isText: false,
            assign: {
                guard case .number(let number) = $1, let slots = Int(exactly: number.double),
                    (1...SubscriptionRequest.slotsMax).contains(slots)
                else { return false }
                $0.slots = slots
                return true
            },
            value: { .number(JSONNumber(Double($0.slots))) }
        ),
        WebhookKey(patterns: "tasks", \.tasks, "the background tasks whose wakes it takes besides"),
        WebhookKey(patterns: "sessions", \.sessions, "the background sessions whose wakes it takes"),
        WebhookKey(file: "certificate", \.certificateFile, "the certificate shown to the receiver, PEM"),
        WebhookKey(file: "key", \.privateKeyFile, "its private key, PEM"),
        WebhookKey(
            file: "ca",
            \.certificateAuthorityFile,
            "the authorities of the receiver's certificate, PEM; null for those of the system"
        ),
        WebhookKey(file: "secretFile", \.secretFile, "the file of the secret that wakes are signed with"),
        WebhookKey(
            name: "allowPrivate",
            requirement: "true or false",
            summary: "let the receiver stand on loopback, link-local and private addresses",
            isText: false,
            assign: {
                guard case .bool(let flag) = $1 else { return false }
                $0.allowsPrivate = flag
                return true
            },
            value: { .bool($0.allowsPrivate) }
        ),
    ]

    private init(
        name: String,
        requirement: String,
        summary: String,
        isText: Bool,
        assign: @escaping @Sendable (inout WebhookConfiguration, JSONValue) -> Bool,
        value: @escaping @Sendable (WebhookConfiguration) -> JSONValue
    ) {
        self.value = value
        self.name = name
        self.requirement = requirement
        self.summary = summary
        self.isText = isText
        self.assign = assign
    }

    private init(
        patterns name: String,
        _ field: any WritableKeyPath<WebhookConfiguration, [IdentifierPattern]> & Sendable,
        _ summary: String
    ) {
        self.init(
            name: name,
            requirement: "a list of at most \(WebhookConfiguration.patternsMax) different names; "
                + PermittedTasksKey.identifierRequirement,
            summary: summary,
            isText: false,
            assign: { configuration, value in
                guard case .array(let elements) = value, elements.count <= WebhookConfiguration.patternsMax else {
                    return false
                }
                var patterns: [IdentifierPattern] = []
                for element in elements {
                    guard case .string(let text) = element else { return false }
                    let pattern = IdentifierPattern(text)
                    guard pattern.isWellFormed, !patterns.contains(pattern) else { return false }
                    patterns.append(pattern)
                }
                configuration[keyPath: field] = patterns
                return true
            },
            value: { .array($0[keyPath: field].map { .string($0.text) }) }
        )
    }

    private init(
        file name: String,
        _ field: any WritableKeyPath<WebhookConfiguration, String?> & Sendable,
        _ summary: String
    ) {
        self.init(
            name: name,
            requirement: "a path, or null",
            summary: summary,
            isText: true,
            assign: {
                switch $1 {
                case .null: $0[keyPath: field] = nil
                case .string(let path) where !path.isEmpty: $0[keyPath: field] = path
                case .string, .bool, .number, .array, .object: return false
                }
                return true
            },
            value: { $0[keyPath: field].map { .string($0) } ?? .null }
        )
    }
}
