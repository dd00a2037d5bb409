/// An unverified provider token: a JSON web token with algorithm ES256.
///
/// Parsing is as lenient as in APNs, because strict parsers reject the tokens of several client libraries.
package struct ProviderToken: Hashable, Sendable {
    /// The maximum size of a token in bytes. Tokens of real clients have about 200.
    package static let bytesMax = 4096
    /// The maximum difference between the time of issue and now, in milliseconds, in either direction.
    package static let ageMillisecondsMax: Int64 = 3_600_000

    /// `kid`: the id of the signing key; not empty.
    package let keyID: String
    /// `iss`: the team of the key; not empty.
    package let team: String
    /// `iat`: the time of issue, in milliseconds since 1970.
    package let issuedAt: Int64
    /// The number of signed bytes, from the start of the token.
    package let signedCount: Int
    package let signature: ProviderSignature

    /// Returns the token in the value of `authorization`.
    ///
    /// - Throws: `missingProviderToken` if the field is absent, is not of the scheme `bearer` (in any case), or has no
    ///   token.
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

    /// Returns true if the first six bytes of the word are "bearer" in any case; the lowest byte is the first. This
    /// runs for every push, and comparing single bytes would take ten times as long.
    private static func isBearer(_ word: UInt64) -> Bool {
        // Setting the case bit maps only the two cases of a letter to that letter.
        (word & 0xFFFF_FFFF_FFFF) | 0x2020_2020_2020 == 0x7265_7261_6562
    }

    /// Parses the three parts of a token.
    ///
    /// - Throws: `invalidProviderToken` if the text is malformed, lacks a key, a team or a time of issue, names another
    ///   algorithm, or has `crit`. `crit` lists extensions that a reader must support (RFC 7515 section 4.1.11), and
    ///   this reader supports none.
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

    /// Returns true if the token is too old, or too far in the future.
    ///
    /// - Parameter now: the current time, in milliseconds since 1970.
    package func isExpired(now: Int64) -> Bool {
        self.issuedAt < now - Self.ageMillisecondsMax || self.issuedAt > now + Self.ageMillisecondsMax
    }

    private static func object(_ part: ByteView) -> JSONValue? {
        guard let bytes = Base64.decoded(part), let value = JSONValue(bytes)
        else { return nil }
        if case .object = value { return value }
        return nil
    }

    /// Returns true for ES256. Also returns true if the algorithm is absent, because Apple's own sample has none.
    private static func isES256(_ value: JSONValue?) -> Bool {
        value == nil || value == .string("ES256")
    }

    private static func name(_ value: JSONValue?) -> String? {
        guard case .string(let text)? = value, !text.isEmpty else { return nil }
        return text
    }

    /// Converts the time that a client sent to milliseconds. The time is a number or a decimal string, in seconds with
    /// an optional fraction. Values above 1e11 are milliseconds.
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

    /// Returns the number in a decimal text. Returns nil for other text that `Double` accepts, such as hexadecimal
    /// digits and infinities.
    private static func decimal(_ text: String) -> Double? {
        text.utf8.allSatisfy { $0 &- 0x30 < 10 || $0 == UInt8(ascii: ".") } ? Double(text) : nil
    }
}

/// The two numbers of an ES256 signature.
package struct ProviderSignature: Hashable, Sendable {
    /// R, then S, 32 bytes each, in big-endian order.
    package let bytes: [UInt8]

    /// The size of each number in bytes.
    private static let numberBytes = 32

    /// Reads R and S, either concatenated (RFC 7518) or in DER, which many clients send. A value of 64 bytes is always
    /// read as concatenated.
    ///
    /// - Returns: nil if the value is malformed, or if a number has more than 256 bits.
    package init?(_ encoded: ByteView) {
        if encoded.count == Self.numberBytes * 2 {
            self.bytes = encoded.array
            return
        }
        var outer = DERReader(encoded)
        // The DER form of both numbers has fewer than 128 bytes.
        guard encoded.count < 130, let numbers = outer.value(.sequence), outer.isAtEnd else { return nil }
        var reader = DERReader(numbers)
        guard let first = Self.number(&reader), let second = Self.number(&reader), reader.isAtEnd else { return nil }
        self.bytes = first + second
    }

    /// Reads a nonnegative INTEGER. Returns 32 bytes; nil if it is malformed.
    private static func number(_ reader: inout DERReader) -> [UInt8]? {
        guard var digits = reader.value(.integer), !digits.isEmpty, digits[0] < 0x80 else { return nil }
        while !digits.isEmpty, digits[0] == 0 { digits = digits.dropFirst(1) }
        guard digits.count <= Self.numberBytes else { return nil }
        return [UInt8](repeating: 0, count: Self.numberBytes - digits.count) + digits.array
    }
}
