import Dispatch
import Platform
import Synchronization

/// When each bearer token was used last, to the minute: `token.used` in the state folder, which a running gateway
/// writes beside its work.
///
/// Loops tell of a token once a minute. What the last second brought is lost with the process.
package final class TokenUses: Sendable {
    static let name = "token.used"
    /// The most tokens that are remembered; the longest unused make room.
    package static let tokensMax = 65_536
    static let fileBytesMax = 8 << 20
    /// How long uses are gathered before the file is written.
    private static let delayMilliseconds = 1000

    private struct State {
        var uses: [String: Int64] = [:]
        var isDue = false
    }

    private let path: String
    private let queue = DispatchQueue(label: "token uses", qos: .utility)
    private let state = Mutex(State())

    package init(folder: String) {
        self.path = "\(folder)/\(Self.name)"
    }

    /// Remembers that a token was used.
    ///
    /// - Parameter seconds: since 1970.
    func note(_ id: String, at seconds: Int64) {
        let isFirst = self.state.withLock { state in
            state.uses[id] = max(state.uses[id] ?? 0, seconds)
            defer { state.isDue = true }
            return !state.isDue
        }
        guard isFirst else { return }
        self.queue.asyncAfter(deadline: .now() + .milliseconds(Self.delayMilliseconds)) { [self] in self.write() }
    }

    /// Writes the file anew. A disk that takes nothing costs the uses, and no request.
    private func write() {
        let noted = self.state.withLock { state in
            state.isDue = false
            defer { state.uses = [:] }
            return state.uses
        }
        var uses = (try? Self.read(self.path)) ?? [:]
        uses.merge(noted) { max($0, $1) }
        if uses.count > Self.tokensMax {
            let kept = uses.sorted { $0.value > $1.value }.prefix(Self.tokensMax).map { ($0.key, $0.value) }
            uses = Dictionary(uniqueKeysWithValues: kept)
        }
        let text = uses.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)\n" }.joined()
        try? OrdinaryFile.replace(self.path, with: Array(text.utf8), mode: 0o600, isSynced: false)
    }

    /// When each token of a state folder was used last, in seconds since 1970, by its id.
    package static func read(in folder: String) throws(CredentialError) -> [String: Int64] {
        try self.read("\(folder)/\(self.name)")
    }

    private static func read(_ path: String) throws(CredentialError) -> [String: Int64] {
        guard try CredentialFile.stamp(path) != nil else { return [:] }
        var uses: [String: Int64] = [:]
        for line in try CredentialFile.lines(path, bytesMax: self.fileBytesMax) {
            let words = line.split(separator: " ")
            guard words.count == 2, BearerToken.isID(String(words[0])), let seconds = Int64(words[1]) else { continue }
            uses[String(words[0])] = seconds
        }
        return uses
    }
}
