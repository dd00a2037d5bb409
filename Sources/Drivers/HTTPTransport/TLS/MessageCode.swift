/// Message authentication codes: HMAC with SHA-256 (RFC 2104), 32 bytes.
package enum MessageCode {
    package static func make(_ message: [UInt8], key: [UInt8]) throws(TransportError) -> [UInt8] {
        guard let code = OpenSSL.messageCode(message, key: key) else {
            throw TransportError(.system, "A message cannot be signed (\(OpenSSL.reason())); see to free memory.")
        }
        return code
    }

    /// Compares in a time that does not hang on the bytes, so that nobody finds a code byte by byte.
    package static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        OpenSSL.isEqual(left, right)
    }
}
