import Gateway
import HTTPTransport
import Wire

/// The bearer tokens of workers and operators.
///
/// An input that begins with `{` is the claims of a token, which is signed here. Any other input is the text of a
/// token.
enum BearerTokenTarget {
    private static let key = TokenKey(bytes: Array(0..<32))

    static func check(_ input: ByteView) throws(BrokenPromise) {
        guard let key = self.key else { throw BrokenPromise("a key has 32 bytes") }
        guard !input.isEmpty, input[0] == UInt8(ascii: "{") else {
            return try promise(BearerToken(text: input.string, signedWith: key) == nil, "a token was taken unsigned")
        }
        guard let text = try? self.signed(input, key) else { throw BrokenPromise("claims could not be signed") }
        guard let token = BearerToken(text: text, signedWith: key) else { return }
        try promise(BearerToken.isID(token.id), "a token without an id was taken")
        if token.role == .worker, token.scope == .all { throw BrokenPromise("a worker was let into every topic") }
        guard let again = try? token.text(signedWith: key) else { throw BrokenPromise("a token could not be signed") }
        try promise(BearerToken(text: again, signedWith: key) == token, "a token changed when it was written anew")
        try self.checkForgeries(text, key)
    }

    private static func signed(_ claims: ByteView, _ key: TokenKey) throws -> String {
        let message = "wg1.\(Base64.urlText(claims))"
        // Only the gateway can read the bytes of the key.
        return "\(message).\(Base64.urlText(try MessageCode.make(Array(message.utf8), key: Array(0..<32))))"
    }

    /// Checks that a token with one changed character or a missing piece is rejected.
    private static func checkForgeries(_ text: String, _ key: TokenKey) throws(BrokenPromise) {
        let bytes = Array(text.utf8)
        guard let end = bytes.lastIndex(of: UInt8(ascii: ".")) else { return }
        for index in stride(from: 0, to: end, by: max(1, end / 8)) {
            var forged = bytes
            forged[index] = forged[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let forgery = BearerToken(text: String(decoding: forged, as: UTF8.self), signedWith: key)
            try promise(forgery == nil, "a changed token was taken")
        }
        for count in [end, end + 1, bytes.count - 2] {
            let short = BearerToken(text: String(decoding: bytes[..<count], as: UTF8.self), signedWith: key)
            try promise(short == nil, "a token was taken without its end")
        }
    }
}
