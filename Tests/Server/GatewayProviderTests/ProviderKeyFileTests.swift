import Foundation
import Gateway
import Glibc
import HTTPTransport
import Synchronization
import Testing
import Wire

@Suite("Providers' keys in a folder", .timeLimit(.minutes(15)))
struct ProviderKeyFileTests {
    private let fixture: ProviderFixture
    private let folder: ProviderKeyFolder

    init() throws {
        self.fixture = try ProviderFixture()
        self.folder = self.fixture.keyFolder
    }

    private func admits(_ topics: [String], _ topic: String) throws -> Bool {
        let file = try self.fixture.file("K", topics: topics)
        return topic.withByteView { file.admits(topic: $0) }
    }

    @Test(
        "A key may push to its topics and to the same app's topics for other push types, but not to similar names",
        arguments: [
            ("a.b", true), ("a.b.voip", true), ("a.b.push-type.liveactivity", true), ("c", true), ("c.voip-ptt", true),
            ("a", false), ("a.bc", false), ("a.b.c", false), ("a.b.", false), ("A.B", false), ("a.b.voip.x", false),
            ("a.b.voipx", false), ("x.a.b", false), ("cc", false), ("", false), (".voip", false),
        ]
    )
    func topics(topic: String, isAdmitted: Bool) throws {
        #expect(try self.admits(["a.b", "c"], topic) == isAdmitted)
        #expect(try self.admits([], topic))
    }

    @Test("Added keys are read back, contain no private key, and can be removed")
    func readBack() throws {
        try self.folder.add(keyFile: self.fixture.privateKey, team: "T-1", keyID: "K_1", topics: ["a", "b.c"])
        let publicKey = "\(self.fixture.folder)/provider.pub.pem"
        try self.folder.add(keyFile: publicKey, team: "T2", keyID: "A", topics: [], environment: .production)
        let contents = try self.folder.read()
        #expect(contents.faults.isEmpty)
        #expect(contents.keys.map(\.keyID) == ["A", "K_1"])
        #expect(contents.keys.map(\.team) == ["T2", "T-1"])
        #expect(contents.keys.map(\.topics) == [[], ["a", "b.c"]])
        #expect(contents.keys.map(\.environment) == [.production, nil])
        #expect(contents.keys[0].key.pem == contents.keys[1].key.pem)
        let text = try String(contentsOfFile: "\(self.folder.path)/K_1.pem", encoding: .utf8)
        #expect(text.hasPrefix("Team: T-1\nTopic: a\nTopic: b.c\n\n-----BEGIN PUBLIC KEY-----\n"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: self.folder.path).sorted() == ["A.pem", "K_1.pem"])
        try self.folder.remove(keyID: "A")
        #expect(try self.folder.read().keys.map(\.keyID) == ["K_1"])
    }

    @Test("An invalid name, a file without a key, and an existing key are refused")
    func refusals() throws {
        func fault(_ file: String, team: String = "T", keyID: String = "K", topics: [String] = []) -> String? {
            do throws(CredentialError) {
                try self.folder.add(keyFile: file, team: team, keyID: keyID, topics: topics)
                return nil
            } catch {
                return error.message
            }
        }
        let key = self.fixture.privateKey
        for name in ["", "a b", "../x", ".x", "a/b", "a\n", String(repeating: "k", count: 65)] {
            #expect(fault(key, keyID: name)?.contains("is not a key id") == true)
            #expect(fault(key, team: name)?.contains("is not a team") == true)
        }
        #expect(fault(key, topics: ["a b"])?.contains("is not a topic") == true)
        #expect(fault("\(self.fixture.folder)/ca.pem")?.contains("holds no key in PEM") == true)
        #expect(fault("/nonexistent")?.contains("no such file") == true)
        #expect(fault(self.fixture.folder)?.contains("not a regular file") == true)
        #expect(fault("/dev/zero")?.contains("not a regular file") == true)
        #expect(fault(key) == nil)
        #expect(fault(key)?.contains("is there already") == true)
        for keyID in ["x", "../provider", ""] {
            #expect(throws: CredentialError.self) { try self.folder.remove(keyID: keyID) }
        }
    }

    @Test("An unusable file is named, and the others are read")
    func faults() throws {
        try self.fixture.add("good")
        let pem = try String(contentsOfFile: "\(self.fixture.folder)/provider.pub.pem", encoding: .utf8)
        let files = [
            "a.pem": pem, "b.pem": "Team: T\n\nno key", "c.pem": "Team: T\nTeem: T\n\n\(pem)",
            "d.pem": "Team: T\nTeam: T\n\n\(pem)", "e.txt": "Team: T\n\n\(pem)", "f g.pem": "Team: T\n\n\(pem)",
            "h.pem": "Team: T\nTopic: a b\n\n\(pem)", ".hidden": "x", "i.pem": "",
            "j.pem": "Team: T\nEnvironment: sandbox\n\n\(pem)",
            "k.pem": "Team: T\nEnvironment: production\nEnvironment: development\n\n\(pem)",
        ]
        for (name, text) in files { try Data(text.utf8).write(to: URL(fileURLWithPath: "\(self.folder.path)/\(name)")) }
        #expect(unsafe mkfifo("\(self.folder.path)/pipe.pem", 0o600) == 0)
        let contents = try self.folder.read()
        #expect(contents.keys.map(\.keyID) == ["good"])
        let names = ["a.pem", "b.pem", "c.pem", "d.pem", "e.txt", "f g.pem", "h.pem", "j.pem", "k.pem", "pipe.pem"]
        for (name, fault) in zip(names, contents.faults) {
            #expect(fault.message.contains(name == "f g.pem" ? "f g" : "keys/\(name)"), "\(fault)")
        }
        #expect(contents.faults.count == names.count)
        #expect(throws: CredentialError.self) { _ = try ProviderKeyFolder("/nonexistent").read() }
    }
}

@Suite("Files of providers' keys that are written while they are read")
struct KeptKeysTests {
    private let fixture: ProviderFixture
    private let folder: ProviderKeyFolder

    init() throws {
        self.fixture = try ProviderFixture()
        self.folder = self.fixture.keyFolder
        for keyID in ["A", "B"] { try self.fixture.add(keyID) }
    }

    /// Writes a key's file in place.
    private func write(_ text: String, _ keyID: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(self.folder.path)/\(keyID).pem"))
    }

    @Test("A key stays valid for two seconds while its file holds none, without a fault", arguments: ["", "Te"])
    func kept(text: String) throws {
        var kept = KeptKeys()
        let first = kept.read(try self.folder.read(), now: 0)
        #expect(first.keys.map(\.keyID) == ["A", "B"])
        #expect(!kept.isWaiting)
        try self.write(text, "A")
        for now in [1000, 1000 + KeptKeys.gracePeriod - 1] {
            let read = kept.read(try self.folder.read(), now: now)
            #expect(read.keys.map(\.keyID) == ["A", "B"] && read.faults.isEmpty)
            #expect(kept.isWaiting)
        }
        let read = kept.read(try self.folder.read(), now: 1000 + KeptKeys.gracePeriod)
        #expect(read.keys.map(\.keyID) == ["B"])
        #expect(read.faults.count == (text.isEmpty ? 0 : 1))
        #expect(!kept.isWaiting)
        // A key that has become invalid stays invalid when the folder is read again.
        let last = kept.read(try self.folder.read(), now: 1001 + KeptKeys.gracePeriod)
        #expect(last.keys.map(\.keyID) == ["B"])
    }

    @Test("A key whose file was removed, or never was valid, is invalid")
    func gone() throws {
        var kept = KeptKeys()
        _ = kept.read(try self.folder.read(), now: 0)
        try self.folder.remove(keyID: "A")
        let rest = kept.read(try self.folder.read(), now: 1)
        #expect(rest.keys.map(\.keyID) == ["B"])
        try self.write("", "A")
        try self.write("no key", "C")
        let read = kept.read(try self.folder.read(), now: 2)
        #expect(read.keys.map(\.keyID) == ["B"] && read.faults.count == 1)
        #expect(!kept.isWaiting)
    }
}

@Suite("Watching the folder of providers' keys", .timeLimit(.minutes(15)))
struct ProviderKeyWatchTests {
    private let fixture: ProviderFixture
    private let folder: ProviderKeyFolder

    /// Creates a folder with one key.
    init() throws {
        self.fixture = try ProviderFixture()
        self.folder = self.fixture.keyFolder
        try self.fixture.add("A")
    }

    /// Repeats a check until it succeeds, for at most a minute.
    private func eventually(_ ask: () throws -> Bool) async rethrows -> Bool {
        let deadline = ContinuousClock.now + .seconds(60)
        while try !ask() {
            guard ContinuousClock.now < deadline else { return false }
            await Task.yield()
        }
        return true
    }

    private func keyIDs(_ watch: ProviderKeyWatch) -> [String] { watch.keys.current().value.keys.sorted() }

    @Test("Keys that are added, replaced, renamed and removed are known without a restart")
    func changes() async throws {
        let reported = Mutex<[String]>([])
        let watch = try ProviderKeyWatch(self.folder.path) { fault in reported.withLock { $0.append(fault.message) } }
        #expect(self.keyIDs(watch) == ["A"])
        try self.fixture.add("B")
        #expect(await self.eventually { self.keyIDs(watch) == ["A", "B"] })
        try FileManager.default.moveItem(atPath: "\(self.folder.path)/A.pem", toPath: "\(self.folder.path)/C.pem")
        #expect(await self.eventually { self.keyIDs(watch) == ["B", "C"] })
        try self.folder.remove(keyID: "B")
        #expect(await self.eventually { self.keyIDs(watch) == ["C"] })
        #expect(reported.withLock { $0.isEmpty })
        try Data("no key".utf8).write(to: URL(fileURLWithPath: "\(self.folder.path)/C.pem"))
        #expect(await self.eventually { self.keyIDs(watch).isEmpty })
        #expect(await self.eventually { reported.withLock { $0.count } == 1 })
        watch.stop()
    }

    @Test("A reading that finds the same keys does not replace them, which would cause all tokens to be verified again")
    func unchanged() async throws {
        let reported = Mutex<[String]>([])
        let watch = try ProviderKeyWatch(self.folder.path) { fault in reported.withLock { $0.append(fault.message) } }
        let generation = watch.keys.current().generation
        // The second report shows that the first reading, which reported the first file, is complete.
        for name in ["a", "b"] {
            try Data().write(to: URL(fileURLWithPath: "\(self.folder.path)/\(name).txt"))
            #expect(await self.eventually { reported.withLock { $0 }.contains { $0.contains("/\(name).txt") } })
        }
        #expect(watch.keys.current().generation == generation)
        watch.stop()
    }

    @Test("Without its folder no key is valid; a new folder with the same path is watched")
    func newFolder() async throws {
        let watch = try ProviderKeyWatch(self.folder.path) { _ in }
        try FileManager.default.moveItem(atPath: self.folder.path, toPath: "\(self.fixture.folder)/old")
        #expect(await self.eventually { self.keyIDs(watch).isEmpty })
        try self.fixture.add("B")
        #expect(await self.eventually { self.keyIDs(watch) == ["B"] })
        try FileManager.default.removeItem(atPath: self.folder.path)
        #expect(await self.eventually { self.keyIDs(watch).isEmpty })
        try self.fixture.add("C")
        #expect(await self.eventually { self.keyIDs(watch) == ["C"] })
        try self.folder.remove(keyID: "C")
        #expect(await self.eventually { self.keyIDs(watch).isEmpty })
        watch.stop()
    }

    @Test("A missing folder, and a file with its name, end the start")
    func missing() throws {
        for path in ["/nonexistent", self.fixture.privateKey] {
            #expect(throws: CredentialError.self) { _ = try ProviderKeyWatch(path) { _ in } }
        }
    }
}
