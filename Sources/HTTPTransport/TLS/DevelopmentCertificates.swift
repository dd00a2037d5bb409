internal import Glibc

/// Keys and certificates for a gateway on a developer's machine: made once, then kept.
package enum DevelopmentCertificates {
    private static let authorityDays = 3650
    /// The longest life that Apple's clients accept.
    private static let serverDays = 825

    private static let names = [
        "DNS:localhost", "IP:127.0.0.1", "IP:::1", "DNS:api.push.apple.com", "DNS:api.sandbox.push.apple.com",
        "DNS:api.development.push.apple.com",
    ]

    /// Makes what is missing of: `ca.pem`, `ca.key`; `server.pem` (with its chain), `server.key`, signed by that
    /// authority; `provider.p8`, `provider.pub.pem`. All keys are P-256, their files have mode 0600.
    ///
    /// - Parameter directory: an existing folder.
    package static func make(in directory: String) throws(TransportError) {
        let authorityKey = try Self.key(directory + "/ca.key")
        let authority: OpenSSL.Certificate
        if let pem = Self.read(directory + "/ca.pem") {
            authority = try OpenSSL.Certificate(pem: pem, file: directory + "/ca.pem")
        } else {
            authority = try .authority(name: "WakeGate development CA", key: authorityKey, days: Self.authorityDays)
            try Self.write(authority.pem, to: directory + "/ca.pem", mode: 0o644)
        }
        let serverKey = try Self.key(directory + "/server.key")
        if Self.read(directory + "/server.pem") == nil {
            let server = try OpenSSL.Certificate.server(
                names: Self.names,
                key: serverKey,
                issuer: authority,
                issuerKey: authorityKey,
                days: Self.serverDays
            )
            try Self.write(server.pem + authority.pem, to: directory + "/server.pem", mode: 0o644)
        }
        let provider = try Self.key(directory + "/provider.p8")
        if Self.read(directory + "/provider.pub.pem") == nil {
            try Self.write(provider.publicPEM, to: directory + "/provider.pub.pem", mode: 0o644)
        }
    }

    /// The key in `file`, which is made when it does not exist.
    private static func key(_ file: String) throws(TransportError) -> OpenSSL.Key {
        if let pem = Self.read(file) { return try OpenSSL.Key(pem: pem, file: file) }
        let key = try OpenSSL.Key.make()
        try Self.write(key.privatePEM, to: file, mode: 0o600)
        return key
    }

    private static func read(_ file: String) -> [UInt8]? {
        let descriptor = unsafe open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe Glibc.read(descriptor, &chunk, chunk.count)
            guard count > 0 else { return bytes }
            bytes += chunk[..<count]
        }
    }

    /// Writes beside the file first, so that a file that exists is whole.
    private static func write(_ bytes: [UInt8], to file: String, mode: mode_t) throws(TransportError) {
        let draft = file + ".new"
        unsafe unlink(draft)
        let descriptor = unsafe open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw Self.fault(file) }
        let count = unsafe Glibc.write(descriptor, bytes, bytes.count)
        guard count == bytes.count, fsync(descriptor) == 0, close(descriptor) == 0, unsafe rename(draft, file) == 0
        else {
            throw Self.fault(file)
        }
    }

    private static func fault(_ file: String) -> TransportError {
        TransportError(.system, "\(file) cannot be written (\(System.message(errno))); make the folder writable.")
    }
}
