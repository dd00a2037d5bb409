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
