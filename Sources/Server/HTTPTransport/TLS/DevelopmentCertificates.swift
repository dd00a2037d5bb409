internal import Glibc
internal import Platform

/// Keys and certificates for a gateway on a developer's machine. Existing files are not replaced.
package enum DevelopmentCertificates {
    /// The topic of the client certificates.
    package static let topic = "com.example.app"

    private static let authorityDays = 3650
    /// The longest validity of a server's certificate that Apple's clients accept, in days.
    private static let leafDays = 825

    private static let names = [
        "DNS:localhost", "IP:127.0.0.1", "IP:::1", "DNS:api.push.apple.com", "DNS:api.sandbox.push.apple.com",
        "DNS:api.development.push.apple.com",
    ]

    /// The extensions of Apple's certificates for both environments. Some clients check for them.
    private static let environments = [
        ("1.2.840.113635.100.6.3.1", "DER:0500"), ("1.2.840.113635.100.6.3.2", "DER:0500"),
    ]

    /// An authority and its key.
    private struct Authority {
        let certificate: OpenSSL.Certificate
        let key: OpenSSL.Key
    }

    /// Makes the missing files:
    ///
    /// - `ca.pem` and `ca.key`: a certificate authority.
    /// - `server.pem` (with its chain) and `server.key`: the server's certificate.
    /// - `provider.p8` and `provider.pub.pem`: a key pair to sign and verify provider tokens.
    /// - `provider.pem` and `worker.pem`: client certificates for `topic`, each with its key.
    ///
    /// The authority signs the certificates. All keys are P-256. Files with a private key have mode 0600.
    ///
    /// - Parameter directory: an existing folder.
    package static func make(in directory: String) throws(TransportError) {
        let authority = try Self.authority(in: directory)
        let serverKey = try Self.key(directory + "/server.key")
        if try Self.read(directory + "/server.pem") == nil {
            let server = try Self.certificate(
                [("CN", "localhost")],
                key: serverKey,
                [("extendedKeyUsage", "serverAuth"), ("subjectAltName", Self.names.joined(separator: ","))],
                by: authority
            )
            try Self.write(server.pem + authority.certificate.pem, to: directory + "/server.pem", mode: 0o644)
        }
        let provider = try Self.key(directory + "/provider.p8")
        if try Self.read(directory + "/provider.pub.pem") == nil {
            try Self.write(provider.publicPEM, to: directory + "/provider.pub.pem", mode: 0o644)
        }
        let name = ("CN", "Apple Push Services: \(Self.topic)")
        try Self.makeClient([("UID", Self.topic), name], Self.environments, directory + "/provider.pem", by: authority)
        let worker = [("OU", "worker"), ("UID", Self.topic), ("CN", "worker of \(Self.topic)")]
        try Self.makeClient(worker, [], directory + "/worker.pem", by: authority)
    }

    private static func authority(in directory: String) throws(TransportError) -> Authority {
        let key = try Self.key(directory + "/ca.key")
        let file = directory + "/ca.pem"
        if let pem = try Self.read(file) {
            return Authority(certificate: try OpenSSL.Certificate(pem: pem, file: file), key: key)
        }
        let certificate = try OpenSSL.Certificate(
            subject: [("CN", "WakeGate development CA")],
            key: key,
            issuer: nil,
            issuerKey: key,
            days: Self.authorityDays,
            extensions: [
                ("basicConstraints", "critical,CA:TRUE,pathlen:0"), ("keyUsage", "critical,keyCertSign,cRLSign"),
                ("subjectKeyIdentifier", "hash"),
            ]
        )
        try Self.write(certificate.pem, to: file, mode: 0o644)
        return Authority(certificate: certificate, key: key)
    }

    /// Writes a certificate and its key into one file, as most APNs clients expect.
    private static func makeClient(
        _ subject: [(String, String)],
        _ extensions: [(String, String)],
        _ file: String,
        by authority: Authority
    ) throws(TransportError) {
        guard try Self.read(file) == nil else { return }
        let key = try OpenSSL.Key.make()
        let certificate = try Self.certificate(
            subject,
            key: key,
            [("extendedKeyUsage", "clientAuth")] + extensions,
            by: authority
        )
        try Self.write(certificate.pem + key.privatePEM, to: file, mode: 0o600)
    }

    private static func certificate(
        _ subject: [(String, String)],
        key: OpenSSL.Key,
        _ extensions: [(String, String)],
        by authority: Authority
    ) throws(TransportError) -> OpenSSL.Certificate {
        let always = [
            ("basicConstraints", "critical,CA:FALSE"), ("keyUsage", "critical,digitalSignature"),
            ("subjectKeyIdentifier", "hash"), ("authorityKeyIdentifier", "keyid:always"),
        ]
        return try OpenSSL.Certificate(
            subject: subject,
            key: key,
            issuer: authority.certificate,
            issuerKey: authority.key,
            days: Self.leafDays,
            extensions: always + extensions
        )
    }

    /// Returns the key in `file`; makes the file if it does not exist.
    private static func key(_ file: String) throws(TransportError) -> OpenSSL.Key {
        if let pem = try Self.read(file) { return try OpenSSL.Key(pem: pem, file: file) }
        let key = try OpenSSL.Key.make()
        try Self.write(key.privatePEM, to: file, mode: 0o600)
        return key
    }

    private static func read(_ file: String) throws(TransportError) -> [UInt8]? {
        do throws(SystemError) {
            if let opened = try OrdinaryFile.open(file) { return (try? opened.contents(bytesMax: .max)) ?? [] }
        } catch { return nil }
        throw TransportError(.system, "\(file) is not a regular file; move it away.")
    }

    private static func write(_ bytes: [UInt8], to file: String, mode: mode_t) throws(TransportError) {
        do throws(SystemError) {
            try OrdinaryFile.replace(file, with: bytes, mode: mode)
        } catch {
            throw TransportError(.system, "\(file) cannot be written (\(error.message)); make the folder writable.")
        }
    }
}
