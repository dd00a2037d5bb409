internal import Platform
package import Wire

/// The private key with which a provider signs its tokens: Apple's `.p8`, or any P-256 key in PEM.
package enum ProviderKey {
    /// The largest key file, in bytes; a `.p8` has about 250.
    private static let fileBytesMax = 65_536

    /// Signs `message` with the key in `file` by ES256, the algorithm of JSON web tokens.
    ///
    /// - Returns: R followed by S, 32 bytes each.
    /// - Throws: `TransportError` that names the file if it cannot be read or does not contain a P-256 private key.
    package static func sign(_ message: [UInt8], keyFile file: String) throws(TransportError) -> [UInt8] {
        let remedy = "name the .p8 file that Apple gave you, or the provider.p8 of `wakegate dev`"
        let key = try OpenSSL.Key(pem: try Self.read(file, remedy: remedy), file: file, remedy: remedy)
        guard key.isP256 else {
            throw TransportError(.privateKey, "\(file) holds a key of another kind than P-256; \(remedy).")
        }
        return try key.signES256(message)
    }

    private static func read(_ file: String, remedy: String) throws(TransportError) -> [UInt8] {
        let bytes: [UInt8]?
        do throws(SystemError) {
            bytes = try OrdinaryFile.contents(file, bytesMax: Self.fileBytesMax + 1)
        } catch {
            throw TransportError(.privateKey, "\(file) cannot be read (\(error.reason)); \(remedy).")
        }
        guard let bytes else { throw TransportError(.privateKey, "\(file) is not a regular file; \(remedy).") }
        guard bytes.count <= Self.fileBytesMax else {
            throw TransportError(.privateKey, "\(file) is larger than \(Self.fileBytesMax) bytes; \(remedy).")
        }
        return bytes
    }
}

/// The public key with which a provider's tokens are verified.
package final class ProviderPublicKey: Sendable {
    private let key: OpenSSL.Key

    /// Reads the key.
    ///
    /// - `pem`: a P-256 key in PEM, public or private, without a password. Text around the key is skipped.
    /// - Throws: `TransportError` that names `file` if there is no such key.
    package init(pem: [UInt8], file: String) throws(TransportError) {
        guard let key = OpenSSL.Key(publicPEM: pem) else {
            throw TransportError(
                .privateKey,
                "\(file) holds no key in PEM without a password (\(OpenSSL.reason())); "
                    + "name the .p8 file that Apple gave you, or its public key."
            )
        }
        guard key.isP256 else {
            throw TransportError(
                .privateKey,
                "\(file) holds a key of another kind than P-256; name the .p8 file that Apple gave you."
            )
        }
        self.key = key
    }

    /// Returns true if `signature` (R followed by S, 32 bytes each) is this key's ES256 signature for `message`.
    package func verifies(_ message: ByteView, signature: [UInt8]) -> Bool {
        self.key.verifiesES256(message, signature: signature)
    }

    /// The public key: SubjectPublicKeyInfo in PEM.
    package var pem: [UInt8] { self.key.publicPEM }
}
