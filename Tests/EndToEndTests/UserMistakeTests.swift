import Dispatch
import Foundation
import Glibc
import Synchronization
import Testing
import WakeGateTestKit

@Suite("User mistakes and their messages", .timeLimit(.minutes(15)))
struct UserMistakeTests {
    /// Returns the output for a mistake if it differs from the expected one.
    private static func fault(of mistake: UserMistake, _ scene: MistakeScene.Place) throws -> String? {
        let variables = ["XDG_CONFIG_HOME=\(scene.folder.path)/config"] + mistake.variables
        let ended = try ChildProcess.run(
            "env",
            variables + [RunningGateway.program] + mistake.line.map { scene.filled($0) },
            folder: scene.folder
        )
        let lines = (ended.output + ended.errors).split(separator: "\n").map(String.init)
        let wanted = mistake.says.map { scene.filled($0) }
        let missing = wanted.filter { want in !lines.contains { Self.says($0, want) } }
        let isMore = mistake.isAll && lines.count > wanted.count
        guard ended.status != mistake.status || !missing.isEmpty || isMore else { return nil }
        let printed = lines.joined(separator: "\n  ")
        return
            "\(mistake.what): \(ended.status) instead of \(mistake.status), printed:\n  \(printed)\nmissing: \(missing)"
    }

    /// Returns true if a line matches the expected one, which may omit its beginning or its end.
    private static func says(_ line: String, _ want: String) -> Bool {
        switch (want.hasPrefix("..."), want.hasSuffix("...")) {
        case (false, false): line == want
        case (true, false): line.hasSuffix(want.dropFirst(3))
        case (false, true): line.hasPrefix(want.dropLast(3))
        case (true, true): line.contains(want.dropFirst(3).dropLast(3))
        }
    }

    @Test("Each mistake has its exit status, the fault, and what to do")
    func mistakes() throws {
        let mistakes = UserMistake.ofWords + UserMistake.ofFiles + UserMistake.ofGateways
        #expect(mistakes.count >= 78)
        let scene = try MistakeScene()
        let place = scene.place
        let faults = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: mistakes.count) { index in
            let mistake = mistakes[index]
            let fault: String?
            do { fault = try Self.fault(of: mistake, place) } catch { fault = "\(mistake.what): \(error)" }
            if let fault { faults.withLock { $0.append(fault) } }
        }
        withExtendedLifetime(scene) {}
        let found = faults.withLock { $0 }
        #expect(found.isEmpty, "\(found.joined(separator: "\n\n"))")
        #expect(!FileManager.default.fileExists(atPath: "\(place.folder.path)/wrong"))
    }

    @Test("A worker whose token is revoked, or is for another topic, ends with 77, which its unit does not restart")
    func refusedWorker() throws {
        let gateway = try ServedGateway()
        let (token, id) = try gateway.issue("--role", "worker", "--topic", "com.example.one")
        let location = ["--gateway", gateway.url(.edge), "--ca", gateway.certificateAuthority, "--token", token]
        func worker(_ topic: String) throws -> ChildProcess {
            try ChildProcess(wakegate: ["worker", "--topic", topic] + location + ["--", "true"])
        }
        let other = try worker("com.example.two").finish()
        #expect(other.status == EX_NOPERM && other.errors.contains("wakegate token issue"), "\(other.errors)")
        let revoked = try worker("com.example.one")
        try gateway.eventually("a worker") { try gateway.workerCount() == 1 }
        try gateway.revoke(id)
        let ended = try revoked.finish()
        #expect(ended.status == EX_NOPERM && ended.errors.contains("401 RevokedToken"), "\(ended.errors)")
        let unit = try Checkout.text("deploy/systemd/wakegate-worker@.service")
        #expect(unit.contains("\nRestartPreventExitStatus=64 77\n"))
    }

    @Test("A context is used until another is chosen, and its file is private")
    func contexts() throws {
        let gateway = try RunningGateway()
        let config = gateway.folder.appendingPathComponent("config").path
        // A directory in which no `wakegate dev` is found.
        let elsewhere = try RestartFolder()
        defer { withExtendedLifetime(elsewhere) {} }
        func run(_ line: String) throws -> ChildProcess.Ended {
            let words = line.split(separator: " ").map(String.init)
            let line = ["XDG_CONFIG_HOME=\(config)", RunningGateway.program] + words
            return try ChildProcess.run("env", line, folder: elsewhere.folder)
        }
        let places = "--gateway https://\(gateway.edge) --admin http://\(gateway.admin)"
        let added = try run("context add main \(places) --ca \(gateway.certificateAuthority)")
        #expect(added.status == 0 && added.errors.contains("wakegate context use main"), "\(added.errors)")
        #expect(try run("context add gone --admin http://127.0.0.1:1").status == 0)
        let file = "\(config)/wakegate/contexts.json"
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(try run("context use main").status == 0)
        #expect(try run("health").output.contains("true"))
        let push = try run("push \(String(repeating: "0f", count: 32)) --topic t.c")
        #expect(push.status == 0, "\(push.errors)")
        #expect(try run("context list").output.contains("* main  https://\(gateway.edge)"))
        #expect(try run("context show").output.contains("main (in use)"))
        #expect(try run("health --context gone").status == 1)
        #expect(try run("context remove main").status == 0)
        #expect(try run("context use").status == 0)
        #expect(try run("context list").output == "  gone  admin http://127.0.0.1:1\n")
        #expect(try run("context show").status == 1)
    }
}

/// A directory with the files that users' command lines name, a `wakegate dev` that is found there, and one that
/// accepts only registered devices.
final class MistakeScene {
    /// The values for placeholders in a mistake's words, and the directory of its command.
    struct Place: Sendable {
        let folder: URL
        fileprivate let words: [String: String]

        /// Returns a text with its placeholders filled in.
        func filled(_ text: String) -> String {
            self.words.reduce(text) { $0.replacing("{\($1.key)}", with: $1.value) }
        }
    }

    let place: Place
    private let gateway: RunningGateway
    private let explicit: RunningGateway
    /// A state directory whose journal claims to be written by a future version.
    private let newer: RestartFolder

    init() throws {
        let topic = "com.example.mistakes"
        let gateway = try RunningGateway()
        let explicit = try RunningGateway([
            "--set", "registration=explicit", "--certs", "\(gateway.folder.path)/.wakegate",
        ])
        self.newer = try RestartFolder()
        try self.newer.start().end(SIGTERM)
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

    /// Creates `encrypted.p8` from the provider's key.
    private static func encryptKey(in folder: URL) throws {
        let files = ["-in", ".wakegate/provider.p8", "-out", "encrypted.p8"]
        let words = ["pkcs8", "-topk8", "-passout", "pass:secret"] + files
        try self.check(ChildProcess.run("openssl", words, folder: folder))
    }

    private static func check(_ ended: ChildProcess.Ended) throws {
        guard ended.status == 0 else { throw ChildProcess.Failure(description: "\(ended.status): \(ended.errors)") }
    }
}
