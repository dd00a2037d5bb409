internal import Glibc

/// The private key that a provider signs its tokens with: Apple's `.p8`, or any P-256 key in PEM.
package enum ProviderKey {
    /// The largest key file, in bytes; a `.p8` has about 250.
    private static let fileBytesMax = 65_536

    /// Signs `message` with the key in `file`, as JSON web tokens of algorithm ES256 are signed.
    ///
    /// - Returns: R and then S, 32 bytes each.
    /// - Throws: `TransportError` that names the file when it cannot be read or holds no P-256 private key.
    package static func sign(_ message: [UInt8], keyFile file: String) throws(TransportError) -> [UInt8] {
        let remedy = "name the .p8 file that Apple gave you, or the provider.p8 of `wakegate dev`"
        let key = try OpenSSL.Key(pem: try Self.read(file, remedy: remedy), file: file, remedy: remedy)
        guard key.isP256 else {
            throw TransportError(.privateKey, "\(file) holds a key of another kind than P-256; \(remedy).")
        }
        return try key.signES256(message)
    }

    private static func read(_ file: String, remedy: String) throws(TransportError) -> [UInt8] {
        let descriptor: Int32
        switch OrdinaryFile.open(file) {
        case .file(let opened): descriptor = opened
        case .notOrdinary: throw TransportError(.privateKey, "\(file) is no ordinary file; \(remedy).")
        case .failed(let error): throw Self.unreadable(file, remedy, error)
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while bytes.count <= Self.fileBytesMax {
            let count = unsafe Glibc.read(descriptor, &chunk, chunk.count)
            guard count >= 0 else { throw Self.unreadable(file, remedy, errno) }
            guard count > 0 else { return bytes }
            bytes += chunk[..<count]
        }
        throw TransportError(.privateKey, "\(file) is larger than \(Self.fileBytesMax) bytes; \(remedy).")
    }

    private static func unreadable(_ file: String, _ remedy: String, _ error: Int32) -> TransportError {
        TransportError(.privateKey, "\(file) cannot be read (\(System.message(error))); \(remedy).")
    }
}
