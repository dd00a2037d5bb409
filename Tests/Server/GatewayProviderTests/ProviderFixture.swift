import Foundation
import Gateway
import HTTPTransport
import Wire

/// Keys in a separate folder, tokens signed with them, and a gate that verifies these.
final class ProviderFixture {
    static let now: Int64 = 1_800_000_000_000
    static let team = "TEAM123456"

    let folder: String
    let keys = ProviderKeys([:])
    private(set) var gate: ProviderGate
    /// The gate's reports about invalid tokens.
    private let reported = ReportedFaults()

    private final class ReportedFaults {
        var faults: [ProviderTokenFault] = []
    }
    private var files: [ProviderKeyFile] = []

    /// - Parameters:
    ///   - known: the keys known at first: id, team, topics.
    ///   - environment: the gateway's.
    ///   - connectionsMax: the maximum number of connections of each key; 0 for no limit.
    init(
        _ known: [(keyID: String, team: String, topics: [String])] = [("K1", ProviderFixture.team, [])],
        environment: APNSEnvironment? = nil,
        connectionsMax: Int = 0
    ) throws {
        self.folder = NSTemporaryDirectory() + "wakegate-keys-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: false)
        try DevelopmentCertificates.make(in: self.folder)
        self.gate = ProviderGate(
            self.keys,
            environment: environment,
            credentials: ConnectionCounts(connectionsMax: connectionsMax),
            onRefusal: { [reported] in reported.faults.append($0) }
        )
        self.files = try known.map { try self.file($0.keyID, team: $0.team, topics: $0.topics) }
        self.keys.replace(with: self.files)
    }

    deinit { try? FileManager.default.removeItem(atPath: self.folder) }

    var privateKey: String { "\(self.folder)/provider.p8" }

    /// A folder of keys, empty at first.
    var keyFolder: ProviderKeyFolder { ProviderKeyFolder("\(self.folder)/keys") }

    /// Adds a key to that folder.
    func add(_ keyID: String) throws {
        try self.keyFolder.add(keyFile: self.privateKey, team: "T", keyID: keyID, topics: [])
    }

    /// Returns a key of that name; all keys have the same public key.
    func file(
        _ keyID: String,
        team: String = ProviderFixture.team,
        topics: [String] = [],
        environment: APNSEnvironment? = nil
    ) throws -> ProviderKeyFile {
        let pem = Array(try Data(contentsOf: URL(fileURLWithPath: self.privateKey)))
        let key = try ProviderPublicKey(pem: pem, file: self.privateKey)
        return try ProviderKeyFile(keyID: keyID, team: team, topics: topics, environment: environment, key: key)
    }

    /// Returns the value of `authorization`.
    ///
    /// - Parameters:
    ///   - age: the seconds since its issue; negative for a time in the future.
    ///   - signer: the file of the key that signs.
    func authorization(
        _ keyID: String = "K1",
        team: String = ProviderFixture.team,
        age: Int64 = 0,
        signer: String? = nil
    ) throws -> String {
        let head = #"{"alg":"ES256","kid":"\#(keyID)"}"#
        let claims = #"{"iss":"\#(team)","iat":\#(Self.now / 1000 - age)}"#
        let message = [head, claims].map { Data($0.utf8).base64EncodedString() }.joined(separator: ".")
        let signature = try ProviderKey.sign(Array(message.utf8), keyFile: signer ?? self.privateKey)
        return "bearer \(message).\(Data(signature).base64EncodedString())"
    }

    /// Returns the reason for which the gate refuses a request; nil if it accepts it.
    func refusal(_ authorization: String?, connection: UInt32 = 1, after seconds: Int64 = 0) -> APNSReason? {
        let connection = ConnectionID(index: connection, generation: 1)
        let now = Self.now + seconds * 1000
        func ask(_ value: ByteView?) -> APNSReason? {
            do throws(APNSReason) {
                _ = try self.gate.token(value, on: connection, now: now)
                return nil
            } catch {
                return error
            }
        }
        return authorization.map { $0.withByteView { ask($0) } } ?? ask(nil)
    }

    /// Returns the gate's reports since the last call.
    func takeFaults() -> [ProviderTokenFault] {
        defer { self.reported.faults = [] }
        return self.reported.faults
    }

    func closed(connection: UInt32) {
        self.gate.connectionClosed(ConnectionID(index: connection, generation: 1))
    }
}
