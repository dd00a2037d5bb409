/// What a provider's token says: a JSON web token of algorithm ES256, not verified yet.
///
/// It is read as laxly as APNs reads it, since strict readers refuse what several client libraries send.
package struct ProviderToken: Hashable, Sendable {
    /// The most bytes of a token; those of real clients have about 200.
    package static let bytesMax = 4096
    /// How far the moment of issue may be from the present, in milliseconds, either way.
    package static let ageMillisecondsMax: Int64 = 3_600_000

    /// `kid`: the key it is signed with; not empty.
    package let keyID: String
    /// `iss`: the team that key belongs to; not empty.
    package let team: String
    /// `iat`: when it was made, in milliseconds since 1970.
    package let issuedAt: Int64
    /// How many bytes of the token, from the first, are signed.
    package let signedCount: Int
    package let signature: ProviderSignature

    /// The token in the value of `authorization`.
    ///
    /// - Throws: `missingProviderToken` when the field is absent, of another scheme than `bearer` in any case, or
    ///   holds no token.
    package static func text(inAuthorization value: ByteView?) throws(APNSReason) -> ByteView {
        guard let value, value.count > 7, Self.isBearer(value.word(at: 0)), value[6] == 0x20 else {
            throw .missingProviderToken
        }
        var start = 7
        var end = value.count
        while start < end, value[start] == 0x20 { start += 1 }
        while start < end, value[end - 1] == 0x20 { end -= 1 }
        guard start < end else { throw .missingProviderToken }
        return value[start..<end]
    }

    /// Whether the first six of eight bytes, the first the lowest, are "bearer" in any case. Every push asks, and a
    /// comparison byte by byte takes ten times as long.
    private static func isBearer(_ word: UInt64) -> Bool {
        // No byte but a letter becomes one of these with the bit that makes it small.
        (word & 0xFFFF_FFFF_FFFF) | 0x2020_2020_2020 == 0x7265_7261_6562
    }

    /// Reads the three parts of a token.
    ///
    /// - Throws: `invalidProviderToken` for what is no such token, lacks a key, a team or a moment of issue, names
    ///   another algorithm, or has `crit`: it lists extensions that the reader must understand, and this one
    ///   understands none (RFC 7515 section 4.1.11).
    package init(_ text: ByteView) throws(APNSReason) {
        guard text.count <= Self.bytesMax, let headEnd = text.firstIndex(of: UInt8(ascii: ".")),
            let claimCount = text.dropFirst(headEnd + 1).firstIndex(of: UInt8(ascii: "."))
        else { throw .invalidProviderToken }
        self.signedCount = headEnd + 1 + claimCount
        guard let signature = Base64.decoded(text.dropFirst(self.signedCount + 1)),
            let signature = signature.withByteView({ ProviderSignature($0) }),
            let head = Self.object(text[0..<headEnd]),
            let claims = Self.object(text[headEnd + 1..<self.signedCount]),
            Self.isES256(head["alg"]), head["crit"] == nil,
            let keyID = Self.name(head["kid"]), let team = Self.name(claims["iss"]),
            let issuedAt = Self.milliseconds(claims["iat"])
        else { throw .invalidProviderToken }
        self.signature = signature
        self.keyID = keyID
        self.team = team
        self.issuedAt = issuedAt
    }

    /// Whether the token is too old, or from too far in the future.
    ///
    /// - Parameter now: milliseconds since 1970.
    package func isExpired(now: Int64) -> Bool {
        self.issuedAt < now - Self.ageMillisecondsMax || self.issuedAt > now + Self.ageMillisecondsMax
    }

    private static func object(_ part: ByteView) -> JSONValue? {
        guard let bytes = Base64.decoded(part), let value = JSONValue(bytes)
        else { return nil }
        if case .object = value { return value }
        return nil
    }

    /// Apple's own sample names no algorithm.
    private static func isES256(_ value: JSONValue?) -> Bool {
        value == nil || value == .string("ES256")
    }

    private static func name(_ value: JSONValue?) -> String? {
        guard case .string(let text)? = value, !text.isEmpty else { return nil }
        return text
    }

    /// A moment that a client wrote as a number of seconds, whole or not, as such a number in a string, or in
    /// milliseconds; the last are told by their size.
    private static func milliseconds(_ value: JSONValue?) -> Int64? {
        let number: Double?
        switch value {
        case .number(let value)?: number = value.double
        case .string(let text)?: number = Self.decimal(text)
        case nil, .null?, .bool?, .array?, .object?: number = nil
        }
        guard let number, abs(number) < 1e15 else { return nil }
        return Int64((abs(number) > 1e11 ? number : number * 1000).rounded(.down))
    }

    /// The standard library's reader takes hexadecimal digits and infinities, too.
    private static func decimal(_ text: String) -> Double? {
        text.utf8.allSatisfy { $0 &- 0x30 < 10 || $0 == UInt8(ascii: ".") } ? Double(text) : nil
    }
}

/// The two numbers of an ES256 signature.
package struct ProviderSignature: Hashable, Sendable {
    /// R and then S, 32 bytes each, the highest first.
    package let bytes: [UInt8]

    /// Bytes of each number.
    private static let numberBytes = 32

    /// Reads R and S side by side, as RFC 7518 has them, or in DER, as many clients send them; what is 64 bytes long
    /// is the former.
    ///
    /// - Returns: nil for anything else, and for a number of more than 256 bits.
    package init?(_ encoded: ByteView) {
        if encoded.count == Self.numberBytes * 2 {
            self.bytes = encoded.array
            return
        }
        // A length past 127 would take more bytes than two such numbers have.
        guard encoded.count >= 2, encoded[0] == 0x30, encoded[1] < 0x80, Int(encoded[1]) == encoded.count - 2 else {
            return nil
        }
        var rest = encoded.dropFirst(2)
        guard let first = Self.number(&rest), let second = Self.number(&rest), rest.isEmpty else { return nil }
        self.bytes = first + second
    }

    /// Takes an INTEGER that is not negative from the front of `der`.
    private static func number(_ der: inout ByteView) -> [UInt8]? {
        guard der.count >= 2, der[0] == 0x02, der[1] > 0, Int(der[1]) <= der.count - 2 else { return nil }
        var digits = der[2..<2 + Int(der[1])]
        der = der.dropFirst(2 + digits.count)
        guard digits[0] < 0x80 else { return nil }
        while !digits.isEmpty, digits[0] == 0 { digits = digits.dropFirst(1) }
        guard digits.count <= Self.numberBytes else { return nil }
        return [UInt8](repeating: 0, count: Self.numberBytes - digits.count) + digits.array
    }
}
