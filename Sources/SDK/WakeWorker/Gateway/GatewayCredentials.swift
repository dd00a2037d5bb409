import Platform
import Synchronization

/// The credentials of a worker, and the certificate authority that it trusts.
///
/// ```swift
/// let credentials = GatewayCredentials.bearerTokenFile("/run/secrets/wakegate-token")
///     .trusting(certificateAuthority: "/etc/wakegate/ca.pem")
/// ```
///
/// The description, which a debugger also shows, never contains the token.
public struct GatewayCredentials: Sendable {
    enum Token: Sendable {
        case text(String)
        case file(String)
    }

    private(set) var token: Token?
    /// The paths of PEM files. Without a separate key file, the certificate's file also contains the key.
    private(set) var certificate: (file: String, key: String?)?
    private(set) var certificateAuthority: String?

    /// No credentials: for `wakegate dev`, and for gateways that require none.
    public static let none = GatewayCredentials()

    /// Creates credentials from a bearer token made by `wakegate token issue --role worker`.
    ///
    /// - Parameter token: the text of the token.
    public static func bearerToken(_ token: String) -> GatewayCredentials {
        var credentials = GatewayCredentials()
        credentials.token = .text(token)
        return credentials
    }

    /// Creates credentials from a file that contains only a bearer token. The file is read for each request, so the
    /// token can be replaced while the worker runs. During a replacement, the file may be empty or contain part of a
    /// token; the worker then retries for 30 seconds.
    ///
    /// - Parameter path: the path of the file.
    public static func bearerTokenFile(_ path: String) -> GatewayCredentials {
        var credentials = GatewayCredentials()
        credentials.token = .file(path)
        return credentials
    }

    /// Creates credentials from a client certificate.
    ///
    /// - Parameters:
    ///   - certificate: the path of a PEM file with the certificate and its chain.
    ///   - key: the path of a PEM file with the certificate's private key, without a passphrase.
    public static func clientCertificate(_ certificate: String, key: String) -> GatewayCredentials {
        GatewayCredentials.none.showing(certificate: certificate, key: key)
    }

    /// Returns these credentials with a client certificate added.
    ///
    /// - `key`: the path of the key file; nil if the certificate's file also contains the key.
    package func showing(certificate: String, key: String?) -> GatewayCredentials {
        var credentials = self
        credentials.certificate = (certificate, key)
        return credentials
    }

    /// Returns these credentials with a certificate authority, which is trusted instead of the system's authorities.
    ///
    /// - Parameter certificateAuthority: the path of a PEM file; `wakegate dev` stores its authority in
    ///   `.wakegate/ca.pem`.
    public func trusting(certificateAuthority: String) -> GatewayCredentials {
        var credentials = self
        credentials.certificateAuthority = certificateAuthority
        return credentials
    }
}

extension GatewayCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A description of the credentials.
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

    /// The same text as ``description``.
    public var debugDescription: String { self.description }

    /// A mirror without the token.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// Supplies the token for a worker's requests and records whether the gateway accepts it.
///
/// Another program may replace the token's file at any time. A failure after an earlier success is therefore treated as
/// temporary for 30 seconds.
final class GatewayProof: Sendable {
    private let token: GatewayCredentials.Token?
    private let gracePeriod = Mutex(CredentialGracePeriod())

    init(_ token: GatewayCredentials.Token?) {
        self.token = token
    }

    /// Returns the token to send; nil if there is none.
    ///
    /// - Throws: `badCredentials` if the token's file cannot be read or contains no token.
    func text() throws(WakeWorkerError) -> String? {
        let text: String
        switch self.token {
        case nil: return nil
        case .text(let token): text = token
        case .file(let path):
            // The file is opened without blocking. Opening a FIFO would otherwise block the thread until a writer
            // appears, and with it all workers of the process.
            guard let bytes = try? OrdinaryFile.contents(path, bytesMax: Self.bytesMax) else {
                guard FileSystem.exists(path) else {
                    throw self.fault("the token's file \(path) is missing: no such file")
                }
                throw self.fault("the token's file \(path) cannot be read, or is not a file; check its owner and mode")
            }
            text = String(decoding: bytes, as: UTF8.self)
        }
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 1 else {
            throw self.fault(
                "a bearer token is one word, as `wakegate token issue` shows it; this is \(words.count) words"
            )
        }
        let token = String(words[0])
        self.gracePeriod.withLock { $0.read(token) }
        return token
    }

    /// Records that the gateway accepted the token.
    func accepted() {
        self.gracePeriod.withLock { $0.accepted() }
    }

    /// Records that a credential file cannot be read or used. Returns true if the failure may be temporary.
    func mayPass() -> Bool {
        let now = SystemClock.boot
        return self.gracePeriod.withLock { $0.failed(now: now) }
    }

    /// Records that the gateway refused the token. Returns true if the token's file may soon contain another token.
    func refusalMayPass() -> Bool {
        guard case .file? = self.token else { return false }
        let now = SystemClock.boot
        return self.gracePeriod.withLock { $0.refused(now: now) }
    }

    private func fault(_ message: String) -> WakeWorkerError {
        WakeWorkerError(.badCredentials, message, isPassing: self.mayPass())
    }

    /// The maximum number of bytes read from a token's file.
    private static let bytesMax = 65_536
}

/// The grace period in which credentials that have worked may fail, because a replacement may be in progress.
///
/// All times are milliseconds on the caller's clock.
package struct CredentialGracePeriod: Hashable, Sendable {
    /// The maximum time, in milliseconds, for which credentials may fail after they have worked. It is long enough for
    /// a manual replacement.
    package static let limit: Int64 = 30_000

    /// The token that was read last, and the token that the gateway accepted last.
    private var shown: String?
    private var taken: String?
    private var hasWorked = false
    private var failingSince: Int64?

    /// Creates the initial state, before any token was sent.
    package init() {}

    /// Records the token that was read.
    package mutating func read(_ token: String) {
        self.shown = token
    }

    /// Records that the gateway accepted the token.
    package mutating func accepted() {
        self.hasWorked = true
        self.taken = self.shown
        self.failingSince = nil
    }

    /// Records that a credential file cannot be read or used.
    ///
    /// - Returns: true if the failure may be temporary.
    package mutating func failed(now: Int64) -> Bool {
        guard self.hasWorked else { return false }
        let since = self.failingSince ?? now
        self.failingSince = since
        return now - since < Self.limit
    }

    /// Records that the gateway refused the token as unknown.
    ///
    /// - Returns: true if the refusal may be temporary. The gateway has then accepted a different token before, so the
    ///   refused token may come from a partly written file.
    package mutating func refused(now: Int64) -> Bool {
        guard self.taken != nil, self.shown != self.taken else { return false }
        return self.failed(now: now)
    }
}
