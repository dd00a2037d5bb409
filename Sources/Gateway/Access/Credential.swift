import DeviceEngine

/// What a connection shows of who it is, as far as connections are counted by it.
package enum Credential: Hashable, Sendable {
    /// The provider key `KEYID` of a team.
    case providerKey(team: String, keyID: String)
    /// The id of a bearer token.
    case bearerToken(String)
    /// The subject of a client certificate: one that is renewed is the same.
    case certificate(String)
}
