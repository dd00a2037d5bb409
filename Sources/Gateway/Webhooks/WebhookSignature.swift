import Bytes
package import HTTPTransport

/// What proves to a receiver that a wake comes from the gateway and is fresh.
package enum WebhookSignature {
    /// The value of `wakegate-signature`: `v1=` and the lower-case hexadecimal HMAC-SHA256, keyed with the secret, of
    /// the time, a full stop and the body.
    ///
    /// - `timestamp`: the value of `wakegate-timestamp`.
    package static func make(body: [UInt8], timestamp: String, secret: [UInt8]) throws(TransportError) -> String {
        let code = try MessageCode.make(Array("\(timestamp).".utf8) + body, key: secret)
        var text = ByteBuffer()
        for byte in code {
            text.append(Self.digits[Int(byte >> 4)])
            text.append(Self.digits[Int(byte & 15)])
        }
        return "v1=\(text.view.string)"
    }

    private static let digits = (0..<16).map { UInt8(ascii: Unicode.Scalar(UInt8($0) + ($0 < 10 ? 0x30 : 0x57))) }
}
