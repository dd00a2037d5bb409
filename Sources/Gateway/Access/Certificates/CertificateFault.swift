package import APNSProtocol

/// Why a client certificate is refused.
package struct CertificateFault: Error, Hashable, Sendable {
    /// What the connection's GOAWAY says: `badCertificate` or `badCertificateEnvironment`.
    package let reason: APNSReason
    /// The subject of the certificate.
    package let subject: String
    /// What is wrong with it and what to do, for the log.
    package let cause: String
}
