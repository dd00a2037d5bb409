package import HTTPTransport
import Platform
import Synchronization
package import Wire

/// A provider's key as it stands in the folder `providerKeys`.
///
/// Its file is named for the key id, `KEYID.pem`, and holds a line `Team: TEAM`, a line `Topic: TOPIC` for each topic
/// the key may push to, a line `Environment: ENVIRONMENT` if it is good in one environment alone, an empty line, and
/// the public key in PEM. Without a topic the key may push to all.
package struct ProviderKeyFile: Sendable {
    /// The most bytes of a file.
    package static let bytesMax = 65_536
    /// What a file's name has after the key id.
    package static let nameEnd = ".pem"
    /// What may stand after a key's topic: the topics of one app that APNs tells apart by push type.
    private static let topicEnds: [StaticString] = [
        ".voip", ".complication", ".location-query", ".pushkit.fileprovider", ".voip-ptt", ".push-type.liveactivity",
        ".push-type.widgets", ".push-type.controls",
    ]

    package let keyID: String
    package let team: String
    /// The topics it may push to; all when there are none.
    package let topics: [String]
    /// The environment it is good in; nil for both.
    package let environment: APNSEnvironment?
    package let key: ProviderPublicKey
    /// `topics` in UTF-8.
    private let topicBytes: [[UInt8]]

    /// - Throws: `ProviderKeyError` when a name is none.
    package init(
        keyID: String,
        team: String,
        topics: [String],
        environment: APNSEnvironment? = nil,
        key: ProviderPublicKey
    ) throws(ProviderKeyError) {
        for (what, name) in [("key id", keyID), ("team", team)] where !Self.isName(name) {
            throw ProviderKeyError(
                message: "\"\(name)\" is no \(what); write 1 to 64 letters, digits, hyphens and underscores."
            )
        }
        for topic in topics where !topic.withByteView({ Push.isTopic($0) }) {
            throw ProviderKeyError(
                message: "\"\(topic)\" is not a topic; write 1 to 255 letters, digits, dots, underscores and hyphens."
            )
        }
        self.keyID = keyID
        self.team = team
        self.topics = topics
        self.environment = environment
        self.key = key
        self.topicBytes = topics.map { Array($0.utf8) }
    }

    /// Reads a file of the folder.
    ///
    /// - Throws: `ProviderKeyError` that names `path` when it is not as described above.
    init(keyID: String, contents: [UInt8], path: String) throws(ProviderKeyError) {
        var teams: [String] = []
        var topics: [String] = []
        var environments: [String] = []
        let lines = String(decoding: contents, as: UTF8.self).split(
            omittingEmptySubsequences: false,
            whereSeparator: \.isNewline
        )
        for (number, line) in zip(1..., lines) where !line.isEmpty {
            guard !line.hasPrefix("-----BEGIN") else { break }
            let parts = line.split(separator: ":", maxSplits: 1).map { $0.drop { $0 == " " } }
            switch parts.count == 2 ? parts[0] : "" {
            case "Team": teams.append(String(parts[1]))
            case "Topic": topics.append(String(parts[1]))
            case "Environment": environments.append(String(parts[1]))
            default:
                // The line itself may be a secret that was put there by mistake, and this goes into the log.
                throw ProviderKeyError(
                    message: "\(path): line \(number) is none of Team: TEAM, Topic: TOPIC, Environment: ENVIRONMENT."
                )
            }
        }
        guard teams.count == 1 else {
            throw ProviderKeyError(message: "\(path) needs one line Team: TEAM before the key.")
        }
        guard environments.count <= 1 else {
            throw ProviderKeyError(message: "\(path) names more than one environment; leave one, or none for both.")
        }
        let key = try Self.key(in: contents, path: path)
        do throws(ProviderKeyError) {
            let environment = try environments.first.map { text throws(ProviderKeyError) in
                try Self.environment(text)
            }
            try self.init(keyID: keyID, team: teams[0], topics: topics, environment: environment, key: key)
        } catch {
            throw ProviderKeyError(message: "\(path): \(error.message)")
        }
    }

    /// The environment of that name.
    ///
    /// - Throws: `ProviderKeyError` when there is none.
    private static func environment(_ name: String) throws(ProviderKeyError) -> APNSEnvironment {
        guard let environment = APNSEnvironment(rawValue: name) else {
            throw ProviderKeyError(message: "\"\(name)\" is not an environment; write development or production.")
        }
        return environment
    }

    /// The key in PEM text.
    ///
    /// - Throws: `ProviderKeyError` that names `path` when there is none.
    static func key(in pem: [UInt8], path: String) throws(ProviderKeyError) -> ProviderPublicKey {
        do throws(TransportError) {
            return try ProviderPublicKey(pem: pem, file: path)
        } catch {
            throw ProviderKeyError(message: error.message)
        }
    }

    /// What its file holds: the public key, never the private one.
    var contents: [UInt8] {
        var lines = ["Team: \(self.team)"] + self.topics.map { "Topic: \($0)" }
        if let environment { lines.append("Environment: \(environment.rawValue)") }
        return Array((lines.joined(separator: "\n") + "\n\n").utf8) + self.key.pem
    }

    /// Whether the key may push to `topic`: one of its own, or one of the same app for another push type.
    package func admits(topic: ByteView) -> Bool {
        guard !self.topicBytes.isEmpty else { return true }
        for own in self.topicBytes where topic.count >= own.count {
            guard own.withByteView({ $0 == topic[0..<own.count] }) else { continue }
            let end = topic.dropFirst(own.count)
            if end.isEmpty { return true }
            for known in Self.topicEnds where end == known { return true }
        }
        return false
    }

    /// Whether one connection may use both keys: they are of one team and may push to the same topics.
    func isRelated(to other: ProviderKeyFile) -> Bool {
        self.team == other.team && Set(self.topics) == Set(other.topics)
    }

    static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 || byte == UInt8(ascii: "-")
                    || byte == UInt8(ascii: "_")
            }
    }
}

/// Why a provider's key, or the folder of them, cannot be used.
package struct ProviderKeyError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong and what to do about it.
    package let message: String

    package var description: String { self.message }
}

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

/// The keys that tokens are verified with at this moment; every loop asks, one thread changes them.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards `keys`.
package final class ProviderKeys: @unchecked Sendable {
    private let monitor = Monitor()
    private var keys: [String: ProviderKeyFile] = [:]
    private let count = Atomic<UInt64>(0)

    package init() {}

    /// Counts the changes: what was verified under another number may be true no more.
    var generation: UInt64 { self.count.load(ordering: .acquiring) }

    /// The keys by their ids, and the number of that state.
    func current() -> (generation: UInt64, keys: [String: ProviderKeyFile]) {
        self.monitor.withLock { (self.generation, self.keys) }
    }

    /// The ids of all keys, sorted.
    package var keyIDs: [String] { self.current().keys.keys.sorted() }

    /// Replaces all keys.
    package func replace(with keys: [ProviderKeyFile]) {
        self.monitor.withLock {
            self.keys = Dictionary(keys.map { ($0.keyID, $0) }) { first, _ in first }
            _ = self.count.add(1, ordering: .acquiringAndReleasing)
        }
    }
}
