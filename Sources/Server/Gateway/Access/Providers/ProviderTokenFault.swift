/// Why a provider's token is not taken: what the log tells operators, and nobody the provider.
package enum ProviderTokenFault: Error, Hashable, Sendable {
    /// Not a JSON web token that names a key, a team and a moment.
    case unreadable
    case unknownKey(keyID: String, team: String)
    /// The key is there, under another team.
    case otherTeam(keyID: String, team: String)
    /// Key id and team are right, and another key has signed it.
    case otherKey(keyID: String, team: String)
    /// The connection belongs to another team already.
    case secondTeam(keyID: String, team: String)

    /// What the log says of it. Names that no key can have are left out: whoever wrote them may write anything.
    package var fields: [String: String] {
        var fields = ["cause": self.cause, "remedy": self.remedy]
        switch self {
        case .unreadable: break
        case .unknownKey(let keyID, let team), .otherTeam(let keyID, let team), .otherKey(let keyID, let team),
            .secondTeam(let keyID, let team):
            for (name, value) in [("keyID", keyID), ("team", team)] where ProviderKeyFile.isName(value) {
                fields[name] = value
            }
        }
        return fields
    }

    private var cause: String {
        switch self {
        case .unreadable: "no token that can be read"
        case .unknownKey: "unknown key id"
        case .otherTeam: "another team"
        case .otherKey: "another key"
        case .secondTeam: "another team than the connection's"
        }
    }

    private var remedy: String {
        switch self {
        case .unreadable: "the provider signs a JSON web token by ES256, with kid, iss and iat, and without crit"
        case .unknownKey: "add the key with wakegate key add, or have the provider name one that is there"
        case .otherTeam: "the provider names the team of wakegate key list, or the key is added for the other team"
        case .otherKey: "the provider signs with the key of that id, or that key is removed and added anew"
        case .secondTeam: "the provider uses a connection for each team"
        }
    }
}
