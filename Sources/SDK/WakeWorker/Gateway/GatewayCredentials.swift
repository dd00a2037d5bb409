import Platform
import Synchronization

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

/// What a worker shows in its requests, and what came of it.
///
/// The files that it names may be read while somebody writes them: what was good is then tried again for a while.
final class GatewayProof: Sendable {
    private let token: GatewayCredentials.Token?
    private let patience = Mutex(CredentialPatience())

    init(_ token: GatewayCredentials.Token?) {
        self.token = token
    }

    /// The token to show; nil when there is none.
    ///
    /// - Throws: `badCredentials` when its file cannot be read, or holds no token.
    func text() throws(WakeWorkerError) -> String? {
        let text: String
        switch self.token {
        case nil: return nil
        case .text(let token): text = token
        case .file(let path):
            guard let bytes = Self.contents(path) else {
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
        self.patience.withLock { $0.read(token) }
        return token
    }

    /// The gateway took what was shown.
    func accepted() {
        self.patience.withLock { $0.accepted() }
    }

    /// Whether files that cannot be read or used may be good again soon.
    func mayPass() -> Bool {
        let now = SystemClock.boot
        return self.patience.withLock { $0.failed(now: now) }
    }

    /// Whether a token that the gateway does not know may be another one soon.
    func refusalMayPass() -> Bool {
        guard case .file? = self.token else { return false }
        let now = SystemClock.boot
        return self.patience.withLock { $0.refused(now: now) }
    }

    private func fault(_ message: String) -> WakeWorkerError {
        WakeWorkerError(.badCredentials, message, isPassing: self.mayPass())
    }

    /// The first bytes of a file, more than a token has; nil of what cannot be read, and of all else that has a path.
    ///
    /// It waits for nobody: whoever opens a pipe does, until somebody writes, and every worker of the process with it.
    private static func contents(_ path: String) -> [UInt8]? {
        (try? OrdinaryFile.contents(path, bytesMax: Self.bytesMax)) ?? nil
    }

    /// The most bytes of a token's file that are read.
    private static let bytesMax = 65_536
}

/// Whether files of credentials that were good and are not may be in the middle of being written.
///
/// Pure: moments are milliseconds on the caller's clock.
package struct CredentialPatience: Hashable, Sendable {
    /// How long files may be unusable after they were good: programs that write them take a moment, people some more.
    package static let limit: Int64 = 30_000

    /// The token that was shown last, and the one among those that the gateway took last.
    private var shown: String?
    private var taken: String?
    private var hasWorked = false
    private var failingSince: Int64?

    /// Nothing was shown yet.
    package init() {}

    /// A token was read.
    package mutating func read(_ token: String) {
        self.shown = token
    }

    /// The gateway took what was shown.
    package mutating func accepted() {
        self.hasWorked = true
        self.taken = self.shown
        self.failingSince = nil
    }

    /// A file cannot be read or used.
    ///
    /// - Returns: whether that may pass.
    package mutating func failed(now: Int64) -> Bool {
        guard self.hasWorked else { return false }
        let since = self.failingSince ?? now
        self.failingSince = since
        return now - since < Self.limit
    }

    /// The gateway knows no such token.
    ///
    /// - Returns: whether that may pass, since another one was taken before: what was shown may be half of a token.
    package mutating func refused(now: Int64) -> Bool {
        guard self.taken != nil, self.shown != self.taken else { return false }
        return self.failed(now: now)
    }
}
