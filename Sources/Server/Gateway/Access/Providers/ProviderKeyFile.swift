package import HTTPTransport
import Platform
package import Wire

/// A provider's key, as stored in the folder `providerKeys`.
///
/// The file `KEYID.pem` begins with a line `Team: TEAM`, and a line `Topic: TOPIC` for each topic that the key may push
/// to. A line `Environment: ENVIRONMENT` follows if the key is valid in only one environment. The file ends with an
/// empty line and the public key in PEM. Without a line `Topic`, the key may push to all topics.
package struct ProviderKeyFile: Sendable {
    /// The maximum size of a file in bytes.
    package static let bytesMax = 65_536
    /// The suffix of the file's name, after the key id.
    package static let nameEnd = ".pem"
    /// The suffixes that APNs appends to an app's topic for some push types.
    private static let topicEnds: [StaticString] = [
        ".voip", ".complication", ".location-query", ".pushkit.fileprovider", ".voip-ptt", ".push-type.liveactivity",
        ".push-type.widgets", ".push-type.controls",
    ]

    package let keyID: String
    package let team: String
    /// The topics that the key may push to; empty for all topics.
    package let topics: [String]
    /// The environment in which the key is valid; nil for both.
    package let environment: APNSEnvironment?
    package let key: ProviderPublicKey
    /// `topics` in UTF-8.
    private let topicBytes: [[UInt8]]

    /// - Throws: `CredentialError` if a name is invalid.
    package init(
        keyID: String,
        team: String,
        topics: [String],
        environment: APNSEnvironment? = nil,
        key: ProviderPublicKey
    ) throws(CredentialError) {
        for (what, name) in [("key id", keyID), ("team", team)] where !Self.isName(name) {
            throw CredentialError(
                message: "\"\(name)\" is not a \(what); write 1 to 64 letters, digits, hyphens and underscores."
            )
        }
        for topic in topics where !topic.withByteView({ Push.isTopic($0) }) {
            throw CredentialError(
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

    /// Parses a file of the folder.
    ///
    /// - Throws: `CredentialError` that names `path` if the contents are malformed.
    init(keyID: String, contents: [UInt8], path: String) throws(CredentialError) {
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
                // The message is logged. It does not quote the line, which could be a misplaced secret.
                throw CredentialError(
                    message: "\(path): line \(number) is none of Team: TEAM, Topic: TOPIC, Environment: ENVIRONMENT."
                )
            }
        }
        guard teams.count == 1 else {
            throw CredentialError(message: "\(path) needs one line Team: TEAM before the key.")
        }
        guard environments.count <= 1 else {
            throw CredentialError(message: "\(path) names more than one environment; leave one, or none for both.")
        }
        let key = try Self.key(in: contents, path: path)
        do throws(CredentialError) {
            let environment = try environments.first.map { name throws(CredentialError) in
                guard let environment = APNSEnvironment(rawValue: name) else {
                    let remedy = "write development or production"
                    throw CredentialError(message: "\"\(name)\" is not an environment; \(remedy).")
                }
                return environment
            }
            try self.init(keyID: keyID, team: teams[0], topics: topics, environment: environment, key: key)
        } catch {
            throw CredentialError(message: "\(path): \(error.message)")
        }
    }

    /// Parses a key in PEM.
    ///
    /// - Throws: `CredentialError` that names `path` if the text contains no key.
    static func key(in pem: [UInt8], path: String) throws(CredentialError) -> ProviderPublicKey {
        do throws(TransportError) {
            return try ProviderPublicKey(pem: pem, file: path)
        } catch {
            throw CredentialError(message: error.message)
        }
    }

    /// The contents of the key's file.
    var contents: [UInt8] {
        var lines = ["Team: \(self.team)"] + self.topics.map { "Topic: \($0)" }
        if let environment { lines.append("Environment: \(environment.rawValue)") }
        return Array((lines.joined(separator: "\n") + "\n\n").utf8) + self.key.pem
    }

    /// Returns true if the key may push to `topic`. The topic must be one of the key's topics, optionally with the
    /// suffix of a push type.
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

    /// Returns true if one connection may use both keys. They must belong to one team and have the same topics.
    func isRelated(to other: ProviderKeyFile) -> Bool {
        self.team == other.team && Set(self.topics) == Set(other.topics)
    }

    static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { $0.isLetterOrDigit(or: "-_") }
    }
}

/// The keys of the folder `providerKeys`. A key stays valid for a short time while its file is being rewritten.
///
/// All times are milliseconds on the caller's clock.
package struct KeptKeys: Sendable {
    /// The time in milliseconds for which a key stays valid while its file contains no valid key.
    package static let gracePeriod: Int64 = 2000

    private var keys: [String: ProviderKeyFile] = [:]
    /// The times since which files have had no valid key, by key id.
    private var unusableSince: [String: Int64] = [:]

    /// Creates an empty set of keys.
    package init() {}

    /// True if a key without a valid file is still valid. The folder must then be read again even if it does not
    /// change.
    package var isWaiting: Bool { !self.unusableSince.isEmpty }

    /// Updates the keys from a reading of the folder.
    ///
    /// - Returns: the valid keys in order of their ids, and the faults to report. The fault of a file is not reported
    ///   while the file's key is still valid.
    package mutating func read(
        _ contents: ProviderKeyFolder.Contents,
        now: Int64
    ) -> (keys: [ProviderKeyFile], faults: [CredentialError]) {
        var keys = Dictionary(contents.keys.map { ($0.keyID, $0) }) { first, _ in first }
        var since: [String: Int64] = [:]
        var passing: [CredentialError] = []
        for unusable in contents.unusable where keys[unusable.keyID] == nil {
            let beginning = self.unusableSince[unusable.keyID] ?? now
            guard let key = self.keys[unusable.keyID], now - beginning < Self.gracePeriod else { continue }
            keys[unusable.keyID] = key
            since[unusable.keyID] = beginning
            if let fault = unusable.fault { passing.append(fault) }
        }
        self.keys = keys
        self.unusableSince = since
        return (keys.values.sorted { $0.keyID < $1.keyID }, contents.faults.filter { !passing.contains($0) })
    }
}

/// The current keys for the verification of tokens, by key id.
package typealias ProviderKeys = Versioned<[String: ProviderKeyFile]>

extension ProviderKeys {
    /// Replaces all keys.
    package func replace(with keys: [ProviderKeyFile]) {
        self.replace(with: Dictionary(keys.map { ($0.keyID, $0) }) { first, _ in first })
    }
}
