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
