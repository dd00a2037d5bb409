import Engine

/// The identity under which connections are counted.
package enum Credential: Hashable, Sendable {
    /// A provider's signing key, identified by its team and key id.
    case providerKey(team: String, keyID: String)
    /// The id of a bearer token.
    case bearerToken(String)
    /// The subject of a client certificate; a renewed certificate keeps its subject.
    case certificate(String)
}

/// The topics that a caller may access.
package enum TopicScope: Hashable, Sendable {
    case all
    case only(Set<String>)

    package func contains(_ topic: String) -> Bool {
        switch self {
        case .all: true
        case .only(let topics): topics.contains(topic)
        }
    }
}

/// One of Apple's two APNs environments. A provider's key or certificate is for one of them, or for both.
package enum APNSEnvironment: String, CaseIterable, Sendable {
    case development, production
}

/// An error for a credential file, a provider's key or a folder of keys that cannot be used. The message names the file
/// and, after a semicolon, the remedy.
package struct CredentialError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package init(message: String) {
        self.message = message
    }

    package var description: String { self.message }
}
