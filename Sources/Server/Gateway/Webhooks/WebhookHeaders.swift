package import HTTPTransport
import Wire

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

extension WakeTrace {
    /// The headers that say which trace a wake belongs to: those of the push or request that it is for.
    var headers: [(name: String, value: String)] {
        var headers: [(name: String, value: String)] = []
        if let parent = self.parent {
            var text = ByteBuffer()
            parent.write(to: &text)
            headers.append((name: "traceparent", value: text.view.string))
        }
        if !self.state.isEmpty { headers.append((name: "tracestate", value: self.state.string)) }
        return headers
    }
}
