/// How a worker shows who it is, and whom it trusts.
///
/// ```swift
/// let credentials = GatewayCredentials.bearerTokenFile("/run/secrets/wakegate-token")
///     .trusting(certificateAuthority: "/etc/wakegate/ca.pem")
/// ```
///
/// A description of it, a debugger's too, never shows the token.
public struct GatewayCredentials: Sendable {
    enum Token: Sendable {
        case text(String)
        case file(String)
    }

    /// PEM files; without a key's the certificate's file holds both.
    struct Certificate: Sendable {
        let file: String
        let key: String?
    }

    private(set) var token: Token?
    private(set) var certificate: Certificate?
    private(set) var certificateAuthority: String?

    /// No proof: for `wakegate dev`, and for gateways that ask for none.
    public static let none = GatewayCredentials()

    /// A bearer token that `wakegate token issue --role worker` made.
    ///
    /// - Parameter token: the token's text.
    public static func bearerToken(_ token: String) -> GatewayCredentials {
        var credentials = GatewayCredentials()
        credentials.token = .text(token)
        return credentials
    }

    /// A file that holds a bearer token and nothing else. It is read anew for each request, so a token may be replaced
    /// while the worker runs; one that is empty, or whose token the gateway no longer knows, in the middle of that is
    /// read again for half a minute.
    ///
    /// - Parameter path: the file's path.
    public static func bearerTokenFile(_ path: String) -> GatewayCredentials {
        var credentials = GatewayCredentials()
        credentials.token = .file(path)
        return credentials
    }

    /// A client certificate.
    ///
    /// - Parameters:
    ///   - certificate: the path of a PEM file with the certificate and its chain.
    ///   - key: the path of a PEM file with the certificate's private key, without a passphrase.
    public static func clientCertificate(_ certificate: String, key: String) -> GatewayCredentials {
        GatewayCredentials.none.showing(certificate: certificate, key: key)
    }

    /// This proof, and a client certificate besides.
    ///
    /// - `key`: nil when the certificate's file holds the key, too.
    package func showing(certificate: String, key: String?) -> GatewayCredentials {
        var credentials = self
        credentials.certificate = Certificate(file: certificate, key: key)
        return credentials
    }

    /// This proof, for a gateway whose certificate comes from this authority instead of one the system trusts.
    ///
    /// - Parameter certificateAuthority: the path of a PEM file; `wakegate dev` keeps its own in `.wakegate/ca.pem`.
    public func trusting(certificateAuthority: String) -> GatewayCredentials {
        var credentials = self
        credentials.certificateAuthority = certificateAuthority
        return credentials
    }
}

extension GatewayCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What kind of proof it is.
    public var description: String {
        let token =
            switch self.token {
            case .text: "a bearer token"
            case .file(let path): "the bearer token in \(path)"
            case nil: String?.none
            }
        let proofs = [token, self.certificate.map { "the certificate in \($0.file)" }].compactMap(\.self)
        return proofs.isEmpty ? "no proof" : proofs.joined(separator: " and ")
    }

    /// What kind of proof it is.
    public var debugDescription: String { self.description }

    /// A mirror without the token.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
