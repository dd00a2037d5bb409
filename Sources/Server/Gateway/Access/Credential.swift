import Engine

/// What a connection shows of who it is, as far as connections are counted by it.
package enum Credential: Hashable, Sendable {
    /// The provider key `KEYID` of a team.
    case providerKey(team: String, keyID: String)
    /// The id of a bearer token.
    case bearerToken(String)
    /// The subject of a client certificate: one that is renewed is the same.
    case certificate(String)
}

/// The topics a caller may reach.
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

/// One of the two APNs that Apple runs: a provider's key or certificate is for one of them, or for both.
package enum APNSEnvironment: String, CaseIterable, Sendable {
    case development, production
}

/// Why a file of the state folder that credentials hang on cannot be used; the message names the file and the remedy.
package struct CredentialError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package init(message: String) {
        self.message = message
    }

    package var description: String { self.message }
}
