package import Bytes

/// The public key that a provider's tokens are verified with.
package final class ProviderPublicKey: Sendable {
    private let key: OpenSSL.Key

    /// Reads the key.
    ///
    /// - `pem`: a P-256 key in PEM, public or private, without a password; text around it is skipped.
    /// - Throws: `TransportError` that names `file` when there is no such key.
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

    /// Whether `signature`, R and then S, 32 bytes each, is of this key and for `message`, by ES256.
    package func verifies(_ message: ByteView, signature: [UInt8]) -> Bool {
        self.key.verifiesES256(message, signature: signature)
    }

    /// The public key alone, SubjectPublicKeyInfo in PEM.
    package var pem: [UInt8] { self.key.publicPEM }
}
