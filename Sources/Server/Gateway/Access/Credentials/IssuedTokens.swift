import Glibc
import Platform
import Wire

/// A bearer token as the state folder remembers it, which does not let anybody in.
package struct IssuedToken: Hashable, Sendable {
    package let id: String
    package let role: BearerRole
    /// None for every topic.
    package let topics: [String]
    /// Seconds since 1970.
    package let issuedAt: Int64
    package let expiresAt: Int64

    fileprivate init?(_ line: String) {
        guard let object = try? JSONReader.read(line), case .string(let id)? = object["id"], BearerToken.isID(id),
            case .string(let name)? = object["role"], let role = BearerRole(rawValue: name),
            case .number(let issued)? = object["issuedAt"], let issuedAt = Int64(issued.text),
            case .number(let expires)? = object["expiresAt"], let expiresAt = Int64(expires.text)
        else { return nil }
        self.id = id
        self.role = role
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        guard case .array(let values)? = object["topics"] else {
            self.topics = []
            return
        }
        self.topics = values.compactMap { if case .string(let topic) = $0 { topic } else { nil } }
    }
}

/// The tokens that were issued from a state folder: `token.issued`, a JSON object a line.
package enum IssuedTokens {
    static let name = "token.issued"
    /// About fifty thousand tokens.
    static let fileBytesMax = 16 << 20

    /// Remembers a token, without what would let somebody in.
    ///
    /// - `issuedAt`: seconds since 1970.
    /// - `folder`: a folder that is there.
    package static func add(_ token: BearerToken, issuedAt: Int64, in folder: String) throws(CredentialError) {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("id")
        writer.string(token.id)
        writer.key("role")
        writer.string(token.role.rawValue)
        writer.key("topics")
        writer.beginArray()
        if case .only(let topics) = token.scope { for topic in topics.sorted() { writer.string(topic) } }
        writer.endArray()
        writer.key("issuedAt")
        writer.integer(issuedAt)
        writer.key("expiresAt")
        writer.integer(token.expiresAt)
        writer.endObject()
        let path = "\(folder)/\(self.name)"
        let isNew = try CredentialFile.stamp(path) == nil
        let line = writer.buffer.view.string
        // A line that a full disk cut short ends here, and does not swallow this one.
        try CredentialFile.write(isNew ? line : "\n\(line)", to: path, O_APPEND | O_NOFOLLOW, for: path)
        if isNew { try CredentialFile.sync(folder: folder) }
    }

    /// The tokens in the order in which they were issued; none where the folder remembers none.
    package static func read(in folder: String) throws(CredentialError) -> [IssuedToken] {
        let path = "\(folder)/\(self.name)"
        guard try CredentialFile.stamp(path) != nil else { return [] }
        return try CredentialFile.lines(path, bytesMax: self.fileBytesMax).compactMap { IssuedToken($0) }
    }
}
