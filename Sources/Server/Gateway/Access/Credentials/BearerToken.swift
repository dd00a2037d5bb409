package import HTTPTransport
import Platform
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
        text.withByteView { PushHead.isTopic($0) }
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
