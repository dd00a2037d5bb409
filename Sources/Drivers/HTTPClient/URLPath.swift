/// Path components of URLs.
package enum URLPath {
    /// `text` with every byte but letters, digits and `-._~` percent-encoded.
    package static func component(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            if (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 || "-._~".utf8.contains(byte) {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                encoded += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return encoded
    }
}
