import Foundation
import Testing

/// A `wakegate dev` process that requires provider tokens, its directory of keys, and tokens signed with them.
final class AskingGateway {
    static let team = "TEAM123456"

    let gateway: RunningGateway
    private let place: RestartFolder
    var folder: URL { self.place.folder }

    /// - Parameter place: the directory of the gateway; by default its own.
    init(_ arguments: [String] = [], in place: RestartFolder? = nil) throws {
        self.place = try place ?? RestartFolder()
        let keys = self.place.folder.appendingPathComponent("keys")
        try FileManager.default.createDirectory(at: keys, withIntermediateDirectories: true)
        self.gateway = try self.place.start(["--set", "providerKeys=keys"] + arguments)
    }

    /// Runs `wakegate key` with the directory of keys.
    func key(_ arguments: [String]) throws -> ChildProcess.Ended {
        try ChildProcess.wakegate(["key"] + arguments + ["--keys", "keys"], folder: self.folder)
    }

    /// Adds a key. The gateway may not have read it yet.
    func addKey(
        _ keyID: String,
        team: String = AskingGateway.team,
        topics: [String] = [],
        environment: String? = nil
    ) throws {
        let options = topics.flatMap { ["--topic", $0] } + (environment.map { ["--environment", $0] } ?? [])
        let ended = try self.key(["add", ".wakegate/provider.p8", "--team", team, "--key-id", keyID] + options)
        #expect(ended.status == 0, "\(ended.errors)")
    }

    /// Adds a key, and waits until pushes signed with it are accepted.
    func useKey(_ keyID: String, topic: String) throws {
        try self.addKey(keyID)
        try self.gateway.eventually("a push with \(keyID)") {
            try self.push(String(repeating: "0e", count: 32), topic: topic, keyID: keyID).hasPrefix("200")
        }
    }

    /// Sends a push with `wakegate push`, and returns the first two words of its answer.
    func push(_ token: String, topic: String, keyID: String, team: String = AskingGateway.team) throws -> String {
        let options = ["--topic", topic, "--provider-key", ".wakegate/provider.p8", "--team", team, "--key-id", keyID]
        let ended = try ChildProcess.wakegate(["push", token] + options, folder: self.folder)
        return ended.output.split(whereSeparator: { $0 == " " || $0 == "," || $0 == "\n" }).prefix(2)
            .joined(separator: " ")
    }

    /// Returns the value of `authorization`, signed by openssl, with a DER signature as some clients send it.
    ///
    /// - Parameter age: the age of the token, in seconds.
    func authorization(_ keyID: String, team: String = AskingGateway.team, age: Int = 0) throws -> String {
        let key = self.folder.appendingPathComponent(".wakegate/provider.p8").path
        return try Self.authorization(keyID, signedBy: key, team: team, age: age)
    }

    /// - Parameter key: the path of a private key.
    static func authorization(
        _ keyID: String,
        signedBy key: String,
        team: String = AskingGateway.team,
        age: Int = 0
    ) throws -> String {
        let now = Int(Date().timeIntervalSince1970)
        let head = #"{"alg":"ES256","kid":"\#(keyID)"}"#
        let claims = #"{"iss":"\#(team)","iat":\#(now - age)}"#
        let message = [head, claims].map { Data($0.utf8).base64EncodedString() }.joined(separator: ".")
        let script = #"printf %s "$1" | openssl dgst -sha256 -sign "$0" | base64 --wrap=0"#
        let ended = try ChildProcess.run("bash", ["-c", script, key, message])
        #expect(ended.status == 0, "\(ended.errors)")
        return "Bearer \(message).\(ended.output)"
    }
}
