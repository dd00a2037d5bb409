import Dispatch
package import HTTPTransport
import Platform
import Synchronization
import Wire

/// A bearer token of `wakegate token`. Its text is `wg1.CLAIMS.CODE`, where CLAIMS is a JSON object and CODE is the
/// message authentication code of the text before the second dot. Both are in base64url.
package struct BearerToken: Hashable, Sendable {
    /// The maximum number of topics in one token.
    package static let topicsMax = 64
    /// The maximum lifetime in seconds.
    package static let lifetimeMax: Int64 = 3650 * 86_400
    private static let prefix = "wg1"

    /// The identifier by which the token is revoked: 32 hexadecimal digits.
    package let id: String
    package let role: BearerRole
    package let scope: TopicScope
    /// The time at which the token expires, in seconds since 1970.
    package let expiresAt: Int64

    /// Creates a token. If `topics` is empty, the token is for every topic.
    package init(id: String, role: BearerRole, topics: [String], expiresAt: Int64) {
        self.id = id
        self.role = role
        self.scope = topics.isEmpty ? .all : .only(Set(topics))
        self.expiresAt = expiresAt
    }

    /// Returns a random id of 128 bits.
    package static func newID() -> String {
        var random = RandomBits()
        return random.bytes(16).hex
    }

    package static func isID(_ text: String) -> Bool {
        text.utf8.count == 32
            && text.utf8.allSatisfy { byte in byte.hexDigitValue != nil && byte.lowercasedASCII == byte }
    }

    package static func isTopic(_ text: String) -> Bool {
        text.withByteView { Push.isTopic($0) }
    }
}

// MARK: - Text

extension BearerToken {
    /// Returns the text of the token, which its holder shows.
    package func text(signedWith key: TokenKey) throws(TransportError) -> String {
        let claims = JSONWriter.object { writer in
            writer.member("id", self.id)
            writer.member("role", self.role.rawValue)
            if case .only(let topics) = self.scope {
                writer.beginArray("topics")
                for topic in topics.sorted() { writer.string(topic) }
                writer.endArray()
            }
            writer.member("expiresAt", self.expiresAt)
        }
        let message = "\(Self.prefix).\(Base64.urlText(claims))"
        return "\(message).\(Base64.urlText(try MessageCode.make(Array(message.utf8), key: key.bytes)))"
    }

    /// Parses a token without checking its expiry; nil if it was not signed with `key`.
    package init?(text: String, signedWith key: TokenKey) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == Self.prefix, let code = Self.decoded(parts[2]) else { return nil }
        // The claims are parsed only after their code has been verified.
        guard let own = try? MessageCode.make(Array("\(parts[0]).\(parts[1])".utf8), key: key.bytes),
            MessageCode.isEqual(own, code), let claims = Self.decoded(parts[1]),
            let object = try? JSONReader.read(String(decoding: claims, as: UTF8.self)),
            case .string(let id)? = object["id"], Self.isID(id),
            case .string(let name)? = object["role"], let role = BearerRole(rawValue: name),
            case .number(let number)? = object["expiresAt"], let expiresAt = Int64(number.text)
        else { return nil }
        var topics: [String] = []
        switch object["topics"] {
        case nil where role == .operator: break
        case .array(let values)? where !values.isEmpty:
            for value in values {
                guard case .string(let topic) = value else { return nil }
                topics.append(topic)
            }
        case nil, .null?, .bool?, .number?, .string?, .array?, .object?: return nil
        }
        self.init(id: id, role: role, topics: topics, expiresAt: expiresAt)
    }

    private static func decoded(_ text: Substring) -> [UInt8]? {
        String(text).withByteView { Base64.decoded($0) }
    }
}

/// The role of a bearer token's holder.
package enum BearerRole: String, CaseIterable, Hashable, Sendable {
    /// The holder may subscribe, answer wakes, register and remove devices, and report conditions, within the token's
    /// topics.
    case worker
    /// The holder may use the worker API and the admin API.
    case `operator`
}

/// A valid bearer token, and the text that its holder showed.
package struct ShownToken: Sendable {
    let text: [UInt8]
    package let token: BearerToken
}

/// The key that signs the bearer tokens of a state folder. Its file `token.key` has one line of 64 hexadecimal digits.
package struct TokenKey: Hashable, Sendable {
    static let name = "token.key"

    /// The key, 32 bytes.
    let bytes: [UInt8]

    /// - Returns: nil if `bytes` does not have 32 bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    /// Creates a key from a secret of 32 bytes.
    private init(secret bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Returns the key of a state folder. Creates it with mode 0600 if it does not exist.
    ///
    /// - Parameter folder: an existing folder.
    package static func make(in folder: String) throws(CredentialError) -> TokenKey {
        TokenKey(secret: try self.file(in: folder).make())
    }

    /// Returns true if the folder has a key file, even an invalid one.
    package static func exists(in folder: String) -> Bool {
        FileSystem.exists("\(folder)/\(self.name)")
    }

    /// Reads the key of a state folder.
    static func read(in folder: String) throws(CredentialError) -> TokenKey {
        TokenKey(secret: try self.file(in: folder).read())
    }

    private static func file(in folder: String) -> SecretFile {
        SecretFile(self.name, in: folder, removal: "which ends every token")
    }
}

/// The ids of a state folder's revoked tokens. The file `token.revoked` has one id per line.
package enum RevokedTokens {
    static let name = "token.revoked"
    /// The maximum size of the file in bytes. It suffices for about 500,000 revocations.
    static let fileBytesMax = 16 << 20

    /// Revokes a token. Revoking it again has no further effect.
    ///
    /// - Parameters:
    ///   - id: a valid id according to `BearerToken.isID`.
    ///   - folder: an existing folder.
    package static func add(_ id: String, in folder: String) throws(CredentialError) {
        guard try !self.read(in: folder).contains(id) else { return }
        try CredentialFile.append(id, to: "\(folder)/\(self.name)", in: folder)
    }

    /// Returns the ids of the tokens revoked in a state folder.
    package static func read(in folder: String) throws(CredentialError) -> Set<String> {
        let path = "\(folder)/\(self.name)"
        return try CredentialFile.stamp(path) == nil ? [] : try self.read(path)
    }

    static func read(_ path: String) throws(CredentialError) -> Set<String> {
        Set(try CredentialFile.lines(path, bytesMax: self.fileBytesMax))
    }
}

/// The requirement for workers to authenticate, in the form that the state records.
///
/// Without this record, a copy of a state without `token.key` would admit every worker, although the original required
/// tokens.
package enum WorkerAuthentication: Hashable, Sendable {
    /// Workers must authenticate, and credentials exist. The state records this requirement.
    case required
    /// Workers need no credential, because the folder has no `token.key`. The start fails if the state records that
    /// they needed one.
    case notRequired(folder: String)
    /// The requirement is neither recorded nor compared. `wakegate dev` requires no credentials. An edge that other
    /// machines reach admits no worker until a token is issued.
    case unrecorded
}

/// The state folder's record of a bearer token. It cannot be used to authenticate.
package struct IssuedToken: Hashable, Sendable {
    package let id: String
    package let role: BearerRole
    /// The topics of the token; empty for every topic.
    package let topics: [String]
    /// The time of issue, in seconds since 1970.
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

/// The tokens that were issued from a state folder. The file `token.issued` has one JSON object per line.
package enum IssuedTokens {
    static let name = "token.issued"
    /// The maximum size of the file in bytes. It suffices for about 50,000 tokens.
    package static let fileBytesMax = 16 << 20

    /// Records a token, without the parts that are needed to authenticate with it. If the file is large, removes the
    /// tokens that have expired.
    ///
    /// - `issuedAt`: seconds since 1970.
    /// - `folder`: an existing folder.
    /// - `keptBytes`: the size of the file in bytes up to which it keeps expired tokens.
    package static func add(
        _ token: BearerToken,
        issuedAt: Int64,
        in folder: String,
        keptBytes: Int = IssuedTokens.fileBytesMax / 2
    ) throws(CredentialError) {
        let line = JSONWriter.object { writer in
            writer.member("id", token.id)
            writer.member("role", token.role.rawValue)
            writer.beginArray("topics")
            if case .only(let topics) = token.scope { for topic in topics.sorted() { writer.string(topic) } }
            writer.endArray()
            writer.member("issuedAt", issuedAt)
            writer.member("expiresAt", token.expiresAt)
        }
        let path = "\(folder)/\(self.name)"
        try CredentialFile.append(String(decoding: line, as: UTF8.self), to: path, in: folder)
        guard let size = try CredentialFile.stamp(path)?.size, size > keptBytes else { return }
        // The token is recorded. If the file cannot be replaced, the next token tries again.
        try? self.removeExpired(at: issuedAt, path, bytes: size, in: folder)
    }

    /// Removes the tokens that have expired, and their last uses.
    private static func removeExpired(
        at now: Int64,
        _ path: String,
        bytes: Int,
        in folder: String
    ) throws(CredentialError) {
        let lines = try CredentialFile.lines(path, bytesMax: bytes)
        let tokens = lines.map { IssuedToken($0) }
        let expired = Set(tokens.compactMap { $0 }.filter { $0.expiresAt <= now }.map(\.id))
        guard !expired.isEmpty else { return }
        let kept = zip(lines, tokens).filter { $1.map { !expired.contains($0.id) } ?? true }.map(\.0)
        try CredentialFile.replace(path, with: kept, in: folder)
        try TokenUses.remove(expired, in: folder)
    }

    /// Returns the tokens in order of issue; empty if none is recorded.
    package static func read(in folder: String) throws(CredentialError) -> [IssuedToken] {
        let path = "\(folder)/\(self.name)"
        guard try CredentialFile.stamp(path) != nil else { return [] }
        return try CredentialFile.lines(path, bytesMax: self.fileBytesMax).compactMap { IssuedToken($0) }
    }
}

/// The last use of each bearer token, to the minute. A gateway writes them to the file `token.used` in the state
/// folder, in the background.
///
/// Loops report the use of a token at most once a minute. The uses of the last second are lost if the process ends.
package final class TokenUses: Sendable {
    static let name = "token.used"
    /// The maximum number of recorded tokens. The least recently used tokens are dropped.
    package static let tokensMax = 65_536
    static let fileBytesMax = 8 << 20
    /// The time in milliseconds for which uses are collected before the file is written.
    private static let delayMilliseconds = 1000

    private struct State {
        var uses: [String: Int64] = [:]
        var isDue = false
    }

    private let folder: String
    private let queue = DispatchQueue(label: "token uses", qos: .utility)
    private let state = Mutex(State())

    package init(folder: String) {
        self.folder = folder
    }

    /// Records the use of a token.
    ///
    /// - `seconds`: the time of the use, in seconds since 1970.
    func note(_ id: String, at seconds: Int64) {
        let isFirst = self.state.withLock { state in
            state.uses[id] = max(state.uses[id] ?? 0, seconds)
            defer { state.isDue = true }
            return !state.isDue
        }
        guard isFirst else { return }
        self.queue.asyncAfter(deadline: .now() + .milliseconds(Self.delayMilliseconds)) { [self] in self.write() }
    }

    /// Replaces the file. If the write fails, the uses are lost, but no request fails.
    private func write() {
        let noted = self.state.withLock { state in
            state.isDue = false
            defer { state.uses = [:] }
            return state.uses
        }
        var uses = (try? Self.read(in: self.folder)) ?? [:]
        uses.merge(noted) { max($0, $1) }
        if uses.count > Self.tokensMax {
            let kept = uses.sorted { $0.value > $1.value }.prefix(Self.tokensMax).map { ($0.key, $0.value) }
            uses = Dictionary(uniqueKeysWithValues: kept)
        }
        let text = uses.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)\n" }.joined()
        try? OrdinaryFile.replace("\(self.folder)/\(Self.name)", with: Array(text.utf8), mode: 0o600, isSynced: false)
    }

    /// Removes the uses of tokens. A gateway that writes the file at the same time may restore them.
    static func remove(_ ids: Set<String>, in folder: String) throws(CredentialError) {
        let uses = try Self.read(in: folder)
        let kept = uses.filter { !ids.contains($0.key) }
        guard kept.count < uses.count else { return }
        let lines = kept.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        try CredentialFile.replace("\(folder)/\(Self.name)", with: lines, in: folder)
    }

    /// Returns the last use of each token of a state folder, in seconds since 1970, by token id.
    package static func read(in folder: String) throws(CredentialError) -> [String: Int64] {
        let path = "\(folder)/\(self.name)"
        guard try CredentialFile.stamp(path) != nil else { return [:] }
        var uses: [String: Int64] = [:]
        for line in try CredentialFile.lines(path, bytesMax: self.fileBytesMax) {
            let words = line.split(separator: " ")
            guard words.count == 2, BearerToken.isID(String(words[0])), let seconds = Int64(words[1]) else { continue }
            uses[String(words[0])] = seconds
        }
        return uses
    }
}
