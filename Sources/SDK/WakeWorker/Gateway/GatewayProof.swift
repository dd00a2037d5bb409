import Platform
import Synchronization

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
                throw self.fault("the token's file \(path) cannot be read, or is no file; see its owner and mode")
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
