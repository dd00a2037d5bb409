/// How a worker shows who it is, and whom it trusts.
///
/// ```swift
/// let credentials = GatewayCredentials.bearerTokenFile("/run/secrets/wakegate-token")
///     .trusting(certificateAuthority: "/etc/wakegate/ca.pem")
/// ```
///
/// A description of it, a debugger's too, never shows the token.
public struct GatewayCredentials: Sendable {
    enum Proof: Sendable {
        case nothing
        case token(String)
        case tokenFile(String)
        case certificate(file: String, key: String)
    }

    let proof: Proof
    let certificateAuthority: String?

    /// No proof: for `wakegate dev`, and for gateways that ask for none.
    public static let none = GatewayCredentials(proof: .nothing, certificateAuthority: nil)

    /// A bearer token that `wakegate token issue --role worker` made.
    ///
    /// - Parameter token: the token's text.
    public static func bearerToken(_ token: String) -> GatewayCredentials {
        GatewayCredentials(proof: .token(token), certificateAuthority: nil)
    }

    /// A file that holds a bearer token and nothing else. It is read anew for each request, so a token may be replaced
    /// while the worker runs.
    ///
    /// - Parameter path: the file's path.
    public static func bearerTokenFile(_ path: String) -> GatewayCredentials {
        GatewayCredentials(proof: .tokenFile(path), certificateAuthority: nil)
    }

    /// A client certificate.
    ///
    /// - Parameters:
    ///   - certificate: the path of a PEM file with the certificate and its chain.
    ///   - key: the path of a PEM file with the certificate's private key, without a passphrase.
    public static func clientCertificate(_ certificate: String, key: String) -> GatewayCredentials {
        GatewayCredentials(proof: .certificate(file: certificate, key: key), certificateAuthority: nil)
    }

    /// The same proof, for a gateway whose certificate comes from this authority instead of one the system trusts.
    ///
    /// - Parameter certificateAuthority: the path of a PEM file; `wakegate dev` keeps its own in `.wakegate/ca.pem`.
    public func trusting(certificateAuthority: String) -> GatewayCredentials {
        GatewayCredentials(proof: self.proof, certificateAuthority: certificateAuthority)
    }
}

extension GatewayCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What kind of proof it is.
    public var description: String {
        switch self.proof {
        case .nothing: "no proof"
        case .token: "a bearer token"
        case .tokenFile(let path): "the bearer token in \(path)"
        case .certificate(let file, _): "the certificate in \(file)"
        }
    }

    /// What kind of proof it is.
    public var debugDescription: String { self.description }

    /// A mirror without the token.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
