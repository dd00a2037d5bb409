import Dispatch
import Glibc
package import HTTPTransport
import Platform
import Synchronization
import Wire

/// What a bearer token of `wakegate token` says. As text it is `wg1.CLAIMS.CODE`: a JSON object and the message
/// authentication code of everything before the second dot, both in base64 for URLs.
package struct BearerToken: Hashable, Sendable {
    /// The most topics one token may name.
    package static let topicsMax = 64
    /// The longest life, in seconds.
    package static let lifetimeMax: Int64 = 3650 * 86_400
    private static let prefix = "wg1"

    /// 32 hexadecimal digits; what a revocation names.
    package let id: String
    package let role: BearerRole
    package let scope: TopicScope
    /// The first second, since 1970, at which it is good no more.
    package let expiresAt: Int64

    /// A token that says this; without topics it is for all of them.
    package init(id: String, role: BearerRole, topics: [String], expiresAt: Int64) {
        self.id = id
        self.role = role
        self.scope = topics.isEmpty ? .all : .only(Set(topics))
        self.expiresAt = expiresAt
    }

    /// An id that nobody can guess.
    package static func newID() -> String {
        var random = RandomBits()
        let (first, second) = random.pair()
        return [first, second].map { word in
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
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
    /// The token as its holder shows it.
    package func text(signedWith key: TokenKey) throws(TransportError) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("id")
        writer.string(self.id)
        writer.key("role")
        writer.string(self.role.rawValue)
        switch self.scope {
        case .all: break
        case .only(let topics):
            writer.key("topics")
            writer.beginArray()
            for topic in topics.sorted() { writer.string(topic) }
            writer.endArray()
        }
        writer.key("expiresAt")
        writer.integer(self.expiresAt)
        writer.endObject()
        let message = "\(Self.prefix).\(Base64.urlText(writer.buffer.view))"
        return "\(message).\(Base64.urlText(try MessageCode.make(Array(message.utf8), key: key.bytes)))"
    }

    /// The token that `text` is; nil when it was not signed with `key`. Whether it is still good is not looked at.
    package init?(text: String, signedWith key: TokenKey) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == Self.prefix, let code = Self.decoded(parts[2]) else { return nil }
        // Nothing of the claims is read before the code is known to be ours.
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

/// What the holder of a bearer token may do.
package enum BearerRole: String, CaseIterable, Hashable, Sendable {
    /// Subscribe, answer wakes, register and remove devices, report conditions; within its topics.
    case worker
    /// What a worker may, and the admin API.
    case `operator`
}

/// A good bearer token as its holder showed it.
package struct ShownToken: Sendable {
    let text: [UInt8]
    package let token: BearerToken
}

/// The key that a state folder's bearer tokens are signed with: `token.key`, one line of 64 hexadecimal digits.
package struct TokenKey: Hashable, Sendable {
    static let name = "token.key"

    /// 32 bytes.
    let bytes: [UInt8]

    /// - Returns: nil when `bytes` are not 32.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    /// The 32 bytes of a secret.
    private init(secret bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The key of a state folder, made with mode 0600 when there is none.
    ///
    /// - Parameter folder: a folder that is there.
    package static func make(in folder: String) throws(CredentialError) -> TokenKey {
        TokenKey(secret: try self.file(in: folder).make())
    }

    /// Whether the folder has a key, good or not.
    package static func exists(in folder: String) -> Bool {
        FileSystem.exists("\(folder)/\(self.name)")
    }

    /// The key of a state folder that has one.
    static func read(in folder: String) throws(CredentialError) -> TokenKey {
        TokenKey(secret: try self.file(in: folder).read())
    }

    private static func file(in folder: String) -> SecretFile {
        SecretFile(self.name, in: folder, removal: "which ends every token")
    }
}

/// The ids of a state folder's revoked tokens: `token.revoked`, one line each.
package enum RevokedTokens {
    static let name = "token.revoked"
    /// About half a million revocations.
    static let fileBytesMax = 16 << 20

    /// Revokes a token; again is as good.
    ///
    /// - Parameters:
    ///   - id: what `BearerToken.isID` takes.
    ///   - folder: a folder that is there.
    package static func add(_ id: String, in folder: String) throws(CredentialError) {
        let path = "\(folder)/\(self.name)"
        let isNew = try CredentialFile.stamp(path) == nil
        if !isNew, try self.read(path).contains(id) { return }
        // No link is followed: the folder may belong to a user who may do less than this one.
        let flags = O_APPEND | O_NOFOLLOW
        // A line that a full disk cut short ends here, and does not swallow this one.
        try CredentialFile.write(isNew ? id : "\n\(id)", to: path, flags, for: path)
        if isNew { try CredentialFile.sync(folder: folder) }
    }

    /// The ids that were revoked in a state folder.
    package static func read(in folder: String) throws(CredentialError) -> Set<String> {
        let path = "\(folder)/\(self.name)"
        return try CredentialFile.stamp(path) == nil ? [] : try self.read(path)
    }

    static func read(_ path: String) throws(CredentialError) -> Set<String> {
        Set(try CredentialFile.lines(path, bytesMax: self.fileBytesMax))
    }
}

/// Whether workers are asked who they are, as far as the state remembers it.
///
/// A copy of a state that lacks `token.key` would let everybody in where the gateway that made it asked.
package enum WorkersAsked: Hashable, Sendable {
    /// Workers are asked, and have something to show: from now on the state says so.
    case asked
    /// Workers are not asked, as there is no `token.key` in this folder: refused when the state says that they were.
    case notAsked(folder: String)
    /// Nothing is remembered, and nothing refused: `wakegate dev` asks nobody, and where no token was ever issued but
    /// other machines reach the edge, nobody gets in.
    case unrecorded
}

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

/// When each bearer token was used last, to the minute: `token.used` in the state folder, which a running gateway
/// writes beside its work.
///
/// Loops tell of a token once a minute. What the last second brought is lost with the process.
package final class TokenUses: Sendable {
    static let name = "token.used"
    /// The most tokens that are remembered; the longest unused make room.
    package static let tokensMax = 65_536
    static let fileBytesMax = 8 << 20
    /// How long uses are gathered before the file is written.
    private static let delayMilliseconds = 1000

    private struct State {
        var uses: [String: Int64] = [:]
        var isDue = false
    }

    private let path: String
    private let queue = DispatchQueue(label: "token uses", qos: .utility)
    private let state = Mutex(State())

    package init(folder: String) {
        self.path = "\(folder)/\(Self.name)"
    }

    /// Remembers that a token was used.
    ///
    /// - Parameter seconds: since 1970.
    func note(_ id: String, at seconds: Int64) {
        let isFirst = self.state.withLock { state in
            state.uses[id] = max(state.uses[id] ?? 0, seconds)
            defer { state.isDue = true }
            return !state.isDue
        }
        guard isFirst else { return }
        self.queue.asyncAfter(deadline: .now() + .milliseconds(Self.delayMilliseconds)) { [self] in self.write() }
    }

    /// Writes the file anew. A disk that takes nothing costs the uses, and no request.
    private func write() {
        let noted = self.state.withLock { state in
            state.isDue = false
            defer { state.uses = [:] }
            return state.uses
        }
        var uses = (try? Self.read(self.path)) ?? [:]
        uses.merge(noted) { max($0, $1) }
        if uses.count > Self.tokensMax {
            let kept = uses.sorted { $0.value > $1.value }.prefix(Self.tokensMax).map { ($0.key, $0.value) }
            uses = Dictionary(uniqueKeysWithValues: kept)
        }
        let text = uses.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)\n" }.joined()
        try? OrdinaryFile.replace(self.path, with: Array(text.utf8), mode: 0o600, isSynced: false)
    }

    /// When each token of a state folder was used last, in seconds since 1970, by its id.
    package static func read(in folder: String) throws(CredentialError) -> [String: Int64] {
        try self.read("\(folder)/\(self.name)")
    }

    private static func read(_ path: String) throws(CredentialError) -> [String: Int64] {
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
