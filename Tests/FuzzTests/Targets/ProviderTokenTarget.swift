import Foundation
import Wire

/// The token of a provider: `authorization`, base64 in both alphabets, claims, signature.
///
/// An input with several lines is a head, claims and a signature. This target makes a token of them, in every form of
/// base64. An input with a single line is the value of `authorization`.
enum ProviderTokenTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        guard input.firstIndex(of: 0x0A) != nil else { return try self.checkField(input) }
        var reader = InputReader(input)
        try self.checkParts([reader.line().array, reader.line().array, reader.rest.array])
    }

    private static func checkField(_ value: ByteView) throws(BrokenPromise) {
        guard let text = try? ProviderToken.text(inAuthorization: value) else { return }
        try promise(!text.isEmpty && text[0] != 0x20 && text[text.count - 1] != 0x20, "the token has spaces around it")
        guard let token = try? ProviderToken(text) else { return }
        try promise(text.count <= ProviderToken.bytesMax, "a token past the limit was read")
        try promise(token.signedCount < text.count && text[token.signedCount] == 0x2E, "what is signed ends at a dot")
        try self.checkToken(token)
    }

    /// Checks that the token has the same meaning in every form of its parts.
    private static func checkParts(_ parts: [[UInt8]]) throws(BrokenPromise) {
        let padded = parts.map { Data($0).base64EncodedString() }
        guard padded.reduce(2, { $0 + $1.utf8.count }) <= ProviderToken.bytesMax else { return }
        let plain = padded.map { $0.replacingOccurrences(of: "=", with: "") }
        let forURLs = padded.map {
            $0.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
        }
        let tokens = [padded, plain, forURLs].map { self.token($0.joined(separator: ".")) }
        guard let first = tokens[0] else {
            return try promise(tokens[1] == nil && tokens[2] == nil, "base64 was read in one way and not in another")
        }
        for other in tokens {
            try promise(other.map { self.isSame($0, first) } == true, "base64 was read in two ways")
        }
        try self.checkToken(first)
    }

    private static func token(_ text: String) -> ProviderToken? {
        text.withByteView { text in try? ProviderToken(text) }
    }

    private static func isSame(_ left: ProviderToken, _ right: ProviderToken) -> Bool {
        left.keyID == right.keyID && left.team == right.team && left.signature == right.signature
            && left.issuedAt == right.issuedAt
    }

    /// Checks that a token that was read has the same meaning after it is written again.
    private static func checkToken(_ token: ProviderToken) throws(BrokenPromise) {
        try promise(!token.keyID.isEmpty && !token.team.isEmpty, "a token without a key or a team was read")
        try promise(token.signature.bytes.count == 64, "a signature is two numbers of 32 bytes")
        _ = token.isExpired(now: 1_700_000_000_000)
        try self.checkSignature(token.signature)

        // Moments that need milliseconds are written with them, and others in whole seconds.
        let isLarge = token.issuedAt.magnitude > 100_000_000_000_000
        let seconds = Int64((Double(token.issuedAt) / 1000).rounded(.down))
        var head = JSONWriter()
        head.beginObject()
        head.key("kid")
        head.string(token.keyID)
        head.endObject()
        var claims = JSONWriter()
        claims.beginObject()
        claims.key("iss")
        claims.string(token.team)
        claims.key("iat")
        claims.integer(isLarge ? token.issuedAt : seconds)
        claims.endObject()
        let parts = [head.buffer.view.array, claims.buffer.view.array, token.signature.bytes]
        let text = parts.map { Data($0).base64EncodedString() }.joined(separator: ".")
        guard text.utf8.count <= ProviderToken.bytesMax else { return }
        guard let again = self.token(text) else { throw BrokenPromise("a token is refused when it is written anew") }
        try promise(again.keyID == token.keyID && again.team == token.team, "the names changed when written anew")
        try promise(again.signature == token.signature, "the signature changed when written anew")
        try promise(
            again.issuedAt == (isLarge ? token.issuedAt : seconds * 1000),
            "the moment changed: \(again.issuedAt)"
        )
    }

    /// Checks that the signature's numbers in DER are the same signature.
    private static func checkSignature(_ signature: ProviderSignature) throws(BrokenPromise) {
        let numbers = [signature.bytes[..<32], signature.bytes[32...]].map { number -> [UInt8] in
            var digits = Array(number.drop { $0 == 0 })
            if digits.first ?? 0x80 >= 0x80 { digits.insert(0, at: 0) }
            return [0x02, UInt8(digits.count)] + digits
        }
        let content = numbers[0] + numbers[1]
        let encoded = [0x30, UInt8(content.count)] + content
        // If it had the length of the other form, it would be read as that form.
        guard encoded.count != 64 else { return }
        let decoded = encoded.withByteView { ProviderSignature($0) }
        try promise(decoded == signature, "a signature changes when it is written in DER")
    }
}
