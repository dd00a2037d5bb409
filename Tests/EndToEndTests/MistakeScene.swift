import Foundation
import Glibc

/// A folder with what people's command lines name, a `wakegate dev` that is found in it, and one that takes registered
/// devices alone.
final class MistakeScene {
    /// What stands for what in the words of a mistake, and where its command runs.
    struct Place: Sendable {
        let folder: URL
        fileprivate let words: [String: String]

        /// A text with what stands in it in braces.
        func filled(_ text: String) -> String {
            self.words.reduce(text) { $0.replacing("{\($1.key)}", with: $1.value) }
        }
    }

    let place: Place
    private let gateway: RunningGateway
    private let explicit: RunningGateway
    /// Has a journal that says that a version wrote it which is yet to be.
    private let newer: RestartFolder

    init() throws {
        let topic = "com.example.mistakes"
        let gateway = try RunningGateway()
        let explicit = try RunningGateway([
            "--set", "registration=explicit", "--certs", "\(gateway.folder.path)/.wakegate",
        ])
        self.newer = try RestartFolder()
        try self.newer.end(try self.newer.start(), SIGTERM)
        try self.newer.changeJournal("PRAGMA user_version=99")
        self.gateway = gateway
        self.explicit = explicit
        let devices = ["token": "a1", "removed": "b2", "stranger": "c3"].mapValues { String(repeating: $0, count: 32) }
        let words = devices.merging([
            "topic": topic, "folder": gateway.folder.path, "ca": gateway.certificateAuthority, "edge": gateway.edge,
            "admin": gateway.admin, "plain": gateway.plain, "explicit": explicit.edge, "newer": self.newer.state.path,
        ]) { $1 }
        self.place = Place(folder: gateway.folder, words: words)
        for (name, text) in [
            ("text.txt", "hello\n"), ("cut.json", "{\n  \"aps"),
            ("comma.json5", "{\n  edge: 'off'\n  admin: '127.0.0.1:0',\n}\n"),
            ("twice.json5", "{\n  admin: '127.0.0.1:0',\n  edge: 'off',\n  admin: '127.0.0.1:1',\n}\n"),
            ("misspelt.json5", "{ edge: 'off', policy: { launchIntervall: 60 } }\n"),
            ("files.json5", "{ tls: { certificate: 'no.pem', key: 'no.key' }, edge: '127.0.0.1:0' }\n"),
        ] {
            try Data(text.utf8).write(to: gateway.folder.appendingPathComponent(name))
        }
        for name in ["removed", "token"] {
            try Self.check(gateway.wakegate("device", "register", words[name] ?? "", "--topic", topic))
        }
        try Self.check(gateway.wakegate("device", "remove", words["removed"] ?? ""))
        let state = gateway.folder.appendingPathComponent("state").path
        for (path, mode) in [(state, 0o700), (gateway.folder.appendingPathComponent("drawer").path, 0o755)] {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: false,
                attributes: [.posixPermissions: mode]
            )
        }
        try Self.encryptKey(in: gateway.folder)
        try Self.check(gateway.wakegate("token", "issue", "--role", "worker", "--topic", topic, "--state", state))
    }

    /// Makes `encrypted.p8` of the provider's key.
    private static func encryptKey(in folder: URL) throws {
        let files = ["-in", ".wakegate/provider.p8", "-out", "encrypted.p8"]
        let words = ["pkcs8", "-topk8", "-passout", "pass:secret"] + files
        try self.check(ChildProcess.run("openssl", words, folder: folder))
    }

    private static func check(_ ended: ChildProcess.Ended) throws {
        guard ended.status == 0 else { throw ChildProcess.Failure(description: "\(ended.status): \(ended.errors)") }
    }
}
