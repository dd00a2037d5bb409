import Foundation
import Glibc
import Testing

@Suite("Backup of a running gateway", .serialized, .timeLimit(.minutes(15)))
struct BackupTests {
    private let topic = "com.example.backup"
    private let token = String(repeating: "ba", count: 32)

    @Test("A copy made while pushes arrive holds every push acknowledged before, and a gateway starts on it")
    func copy() throws {
        let folder = try RestartFolder()
        let gateway = try folder.start()
        let pushed = try gateway.push(self.token, topic: self.topic)
        #expect(pushed.status == 200)
        let load = try ChildProcess(
            wakegate: ["push", String(repeating: "10ad", count: 16), "--topic", self.topic, "--count", "20000"],
            folder: folder.folder
        )
        try gateway.eventually("pushes arrive") { (try gateway.stats().integer("pushes", "accepted") ?? 0) > 100 }
        let before = try #require(try gateway.stats().integer("pushes", "accepted"))
        let backup = try gateway.wakegate("backup", "first")
        #expect(backup.status == 0, "\(backup.errors)")
        let after = try #require(try gateway.stats().integer("pushes", "accepted"))
        let path = backup.output.trimmingCharacters(in: .newlines)
        #expect(path == folder.state.appendingPathComponent("backups/first").path)
        load.send(SIGKILL)

        let again = try gateway.wakegate("backup", "first")
        #expect(again.status != 0)
        #expect(again.errors.contains("first"), "\(again.errors)")
        try gateway.process.end(SIGKILL)

        // The copy is a complete state directory. `serve` only needs a certificate in addition.
        let serve = try ChildProcess(
            wakegate: [
                "serve", "--state", path, "--edge", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--set",
                "tls.certificate=\(folder.state.path)/server.pem", "--set",
                "tls.key=\(folder.state.path)/server.key",
            ],
            folder: folder.folder
        )
        let admin = try #require(try serve.object()["admin"] as? String)
        func ask(_ path: String) throws -> Answer {
            try Answer.curl(["--silent", "--noproxy", "*", "--max-time", "60", "http://\(admin)\(path)"])
        }
        let device = try ask("/v1/devices/\(self.token)")
        #expect(device.value("pending", "apnsID") as? String == pushed.headers["apns-id"])
        #expect(device.recent.first?[0] == "push", "the copy has the events that the journal kept")
        #expect(serve.errors.contains("the history is not whole"), "\(serve.errors)")
        let stats = try ask("/v1/stats")
        let accepted = try #require(stats.integer("pushes", "accepted"))
        #expect((before...after).contains(accepted), "\(before)...\(after)")
        let counts = ["completed", "coalesced", "pending", "inFlight"].compactMap { stats.integer("pushes", $0) }
        #expect(counts.reduce(0, +) == accepted)
        #expect(try serve.end().status == 0)
    }

    @Test("After a return to a copy, the delivery log has no push that came after it")
    func rolledBack() throws {
        let folder = try RestartFolder()
        let gateway = try folder.start()
        let kept = try #require(try gateway.push(self.token, topic: self.topic).headers["apns-id"])
        #expect(try gateway.admin("/v1/backup", "-d", #"{"name":"before"}"#).status == 201)
        let undone = try #require(try gateway.push(self.token, topic: self.topic).headers["apns-id"])
        let other = try #require(
            try gateway.push(String(repeating: "cd", count: 32), topic: self.topic).headers["apns-id"]
        )
        try gateway.process.end(SIGTERM)
        for end in ["", "-wal", "-shm", "-mark"] {
            try? FileManager.default.removeItem(atPath: folder.journal.path + end)
        }
        let copy = folder.state.appendingPathComponent("backups/before/journal.sqlite")
        try FileManager.default.copyItem(at: copy, to: folder.journal)
        for life in 0..<2 {
            let restored = try folder.start()
            #expect(try restored.admin("/v1/pushes/\(kept)").value("state") as? String == "pending")
            for apnsID in [undone, other] { #expect(try restored.admin("/v1/pushes/\(apnsID)").status == 404) }
            let list = try restored.admin("/v1/pushes?outcome=pending")
            #expect((list.value("pushes") as? [Any])?.count == life + 1, "\(list.body)")
            let errors = restored.process.errors
            #expect(errors.contains("journal was restored") == (life == 0), "\(errors)")
            // From the first event on, the log follows the restored journal.
            #expect(try restored.push(String(repeating: "ef", count: 32), topic: self.topic).status == 200)
            try restored.process.end(SIGTERM)
        }
    }

    @Test("A copy accepts and refuses the same tokens of workers as its gateway, and needs a key that can be copied")
    func tokens() throws {
        let gateway = try ServedGateway()
        let (good, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let (bad, id) = try gateway.issue("--role", "worker", "--topic", self.topic)
        try gateway.revoke(id)
        // A key that cannot be copied ends the backup, and no backup remains.
        let key = gateway.state.appendingPathComponent("token.key").path
        #expect(unsafe chmod(key, 0o644) == 0)
        let refused = try gateway.ask(.admin, "POST", "/v1/backup", body: #"{"name":"kept"}"#)
        #expect(refused.status == 500 && refused.body.contains("chmod 600 \(key)"), "\(refused.body)")
        let backups = gateway.state.appendingPathComponent("backups").path
        #expect(try FileManager.default.contentsOfDirectory(atPath: backups) == [])
        #expect(unsafe chmod(key, 0o600) == 0)
        let made = try gateway.ask(.admin, "POST", "/v1/backup", body: #"{"name":"kept"}"#)
        #expect(made.status == 201, "\(made.body)")
        let copy = try #require(made.value("path") as? String)
        for name in ["token.key", "token.revoked", "history.key"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(copy)/\(name)")
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
            let original = gateway.state.appendingPathComponent(name)
            #expect(try Data(contentsOf: URL(fileURLWithPath: "\(copy)/\(name)")) == Data(contentsOf: original))
        }
        let restored = try ServedGateway(["--state", copy])
        let path = "/v1/topics/\(self.topic)/wakes?slots=0"
        #expect(try restored.ask(.edge, "GET", path).reason == "MissingToken")
        #expect(try restored.ask(.edge, "GET", path, token: good).reason == "BadQuery")
        #expect(try restored.ask(.edge, "GET", path, token: bad).reason == "RevokedToken")
    }

    @Test("A state with issued tokens does not start without its key, and the error says what to restore")
    func askedBefore() throws {
        let gateway = try ServedGateway()
        let (token, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let path = "/v1/topics/\(self.topic)/wakes?slots=0"
        // The first request after the first token makes the gateway record that tokens exist.
        #expect(try gateway.ask(.edge, "GET", path, token: token).reason == "BadQuery")
        try gateway.end()
        let key = gateway.state.appendingPathComponent("token.key")
        let aside = gateway.folder.appendingPathComponent("aside.key")
        try FileManager.default.moveItem(at: key, to: aside)
        let refused = try gateway.startInVain()
        #expect(refused.status == 1)
        for word in ["token.key", gateway.state.path, "wakegate token issue", "unaskedWorkers: true"] {
            #expect(refused.errors.contains(word), "\(refused.errors)")
        }
        // Unauthenticated access must be requested again at each start.
        let unasked = try ServedGateway(["--state", gateway.state.path, "--set", "unaskedWorkers=true"])
        #expect(try unasked.ask(.edge, "GET", path).reason == "BadQuery")
        try unasked.end()
        #expect(try gateway.startInVain().status == 1)
        try FileManager.default.moveItem(at: aside, to: key)
        let again = try ServedGateway(["--state", gateway.state.path])
        #expect(try again.ask(.edge, "GET", path).reason == "MissingToken")
        #expect(try again.ask(.edge, "GET", path, token: token).reason == "BadQuery")
    }

    @Test("The next start and the next copy remove the leftovers of a killed copy, and no other file")
    func leftovers() throws {
        let folder = try RestartFolder()
        try folder.start().end(SIGTERM)
        let backups = folder.state.appendingPathComponent("backups")
        func leave(_ name: String, _ files: [String]) throws {
            let partial = backups.appendingPathComponent(name)
            try FileManager.default.createDirectory(at: partial, withIntermediateDirectories: true)
            for file in files { try Data(count: 10).write(to: partial.appendingPathComponent(file)) }
        }
        func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: backups.path).sorted() }
        try leave(".old.partial", ["journal.sqlite.partial", "journal.sqlite.partial-journal"])
        try leave(".older.partial", ["journal.sqlite", "token.key", "history.key"])
        try leave(".notes.partial", ["mine"])
        try leave(".not a name.partial", ["journal.sqlite"])
        try leave("whole", ["journal.sqlite"])
        let kept = [".not a name.partial", ".notes.partial", "whole"]
        let gateway = try folder.start()
        try gateway.eventually("the leftovers are gone") { try names() == kept }
        try leave(".next.partial", ["journal.sqlite"])
        #expect(try gateway.admin("/v1/backup", "-d", #"{"name":"one"}"#).status == 201)
        #expect(try names() == (kept + ["one"]).sorted())
    }

    @Test("An existing name is answered 409 and an invalid one 400, and neither leaves a file")
    func names() throws {
        let folder = try RestartFolder()
        let gateway = try folder.start()
        func backUp(_ body: String) throws -> Answer {
            try gateway.admin("/v1/backup", "--data-binary", body)
        }
        #expect(try backUp(#"{"name":"one"}"#).status == 201)
        let taken = try backUp(#"{"name":"one"}"#)
        #expect(taken.status == 409)
        #expect(taken.reason == "BackupExists")
        let names = ["", ".", "..", ".hidden", "a/b", "../a", #"a\\b"#, "a b", "ä", String(repeating: "x", count: 65)]
        for body in names.map({ #"{"name":"\#($0)"}"# }) + [#"{"name":1}"#, "{}", "[]", "not JSON", ""] {
            let refused = try backUp(body)
            #expect(refused.status == 400, "\(body)")
            #expect(refused.reason == "BadName", "\(body): \(refused.body)")
        }
        #expect(try backUp(#"{"name":"\#(String(repeating: "x", count: 64))"}"#).status == 201)
        let made = try FileManager.default.contentsOfDirectory(atPath: folder.state.path + "/backups").sorted()
        #expect(made == ["one", String(repeating: "x", count: 64)])
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.state.path + "/backups/one")
        #expect(files.sorted() == ["history.key", "journal.sqlite"])
        #expect(try gateway.edge("/v1/backup", "-d", #"{"name":"two"}"#).status == 404, "operators alone may ask")
    }

    @Test("Without a store there is nothing to copy")
    func memory() throws {
        let gateway = try RunningGateway(["--set", "store=memory"])
        let refused = try gateway.admin("/v1/backup", "-d", #"{"name":"one"}"#)
        #expect(refused.status == 409)
        #expect(refused.reason == "NothingStored")
    }
}
