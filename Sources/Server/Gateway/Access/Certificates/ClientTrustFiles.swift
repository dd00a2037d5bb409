package import HTTPTransport

/// The files of `tls.clientCA` and `tls.clientCRL`.
package struct ClientTrustFiles: Sendable {
    /// What tells one state of the files from another.
    struct Stamps: Hashable {
        let authorities: CredentialFile.Stamp?
        let revocations: CredentialFile.Stamp?
    }

    /// The most bytes of the authorities; some hundreds of them.
    static let authoritiesBytesMax = 1 << 20
    /// The most bytes of what they have revoked; about a quarter of a million certificates.
    static let revocationsBytesMax = 16 << 20

    private let authorities: String
    private let revocations: String?

    /// The files at these paths.
    ///
    /// - `revocations`: nil when nothing is revoked.
    package init(authorities: String, revocations: String?) {
        self.authorities = authorities
        self.revocations = revocations
    }

    package var withoutRevocations: ClientTrustFiles {
        ClientTrustFiles(authorities: self.authorities, revocations: nil)
    }

    func stamps() throws(CredentialError) -> Stamps {
        Stamps(
            authorities: try CredentialFile.stamp(self.authorities, isPrivate: false),
            revocations: try self.revocations.flatMap { path throws(CredentialError) in
                try CredentialFile.stamp(path, isPrivate: false)
            }
        )
    }

    /// - Throws: `CredentialError` that names the file that cannot be read, or does not hold what it should.
    package func read() throws(CredentialError) -> ClientTrust {
        let authorities = try CredentialFile.bytes(self.authorities, bytesMax: Self.authoritiesBytesMax)
        let revocations = try self.revocations.map { path throws(CredentialError) in
            (pem: try CredentialFile.bytes(path, bytesMax: Self.revocationsBytesMax), file: path)
        }
        do throws(TransportError) {
            return try ClientTrust(authorities: (authorities, self.authorities), revocations: revocations)
        } catch {
            throw CredentialError(message: error.message)
        }
    }

    /// What to tell of lists that are past their time.
    var overdue: String {
        "\(self.revocations ?? "") holds a list whose next update is overdue; what it revokes stays revoked, and the "
            + "next one is read as soon as it is there."
    }
}
