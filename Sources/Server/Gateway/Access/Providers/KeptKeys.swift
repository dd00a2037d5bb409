/// The keys of the folder `providerKeys`, of which one whose file is being written stays as it was for a moment.
///
/// Pure: moments are milliseconds on the caller's clock.
package struct KeptKeys: Sendable {
    /// How long a key stays good whose file is there and holds none.
    package static let patience: Int64 = 2000

    private var keys: [String: ProviderKeyFile] = [:]
    /// Since when files of keys hold none.
    private var unusableSince: [String: Int64] = [:]

    /// No keys yet.
    package init() {}

    /// Whether a key stays although its file holds none: the folder is then to be read again, changed or not.
    package var isWaiting: Bool { !self.unusableSince.isEmpty }

    /// The folder was read.
    ///
    /// - Returns: the keys that are good, in the order of their ids, and the faults that are there to stay.
    package mutating func read(
        _ contents: ProviderKeyFolder.Contents,
        now: Int64
    ) -> (keys: [ProviderKeyFile], faults: [ProviderKeyError]) {
        var keys = Dictionary(contents.keys.map { ($0.keyID, $0) }) { first, _ in first }
        var since: [String: Int64] = [:]
        var passing: [ProviderKeyError] = []
        for unusable in contents.unusable where keys[unusable.keyID] == nil {
            let beginning = self.unusableSince[unusable.keyID] ?? now
            guard let key = self.keys[unusable.keyID], now - beginning < Self.patience else { continue }
            keys[unusable.keyID] = key
            since[unusable.keyID] = beginning
            if let fault = unusable.fault { passing.append(fault) }
        }
        self.keys = keys
        self.unusableSince = since
        return (keys.values.sorted { $0.keyID < $1.keyID }, contents.faults.filter { !passing.contains($0) })
    }

    /// The folder cannot be read: no key is good.
    package mutating func folderLost() {
        self = KeptKeys()
    }
}
