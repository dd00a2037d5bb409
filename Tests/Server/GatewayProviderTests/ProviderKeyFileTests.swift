import Foundation
import Gateway
import Glibc
import HTTPTransport
import Testing
import Wire

@Suite("Providers' keys in a folder", .timeLimit(.minutes(15)))
struct ProviderKeyFileTests {
    private func admits(_ topics: [String], _ topic: String) throws -> Bool {
        let file = try ProviderFixture().file("K", topics: topics)
        return topic.withByteView { file.admits(topic: $0) }
    }

    @Test(
        "A key may push to its topics, to the same app's for another push type, and to nothing that looks alike",
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

    @Test("What was added is read again, holds no private key, and can be removed")
    func folder() throws {
        let fixture = try ProviderFixture()
        let folder = ProviderKeyFolder("\(fixture.folder)/keys")
        try folder.add(keyFile: fixture.privateKey, team: "T-1", keyID: "K_1", topics: ["a", "b.c"])
        let publicKey = "\(fixture.folder)/provider.pub.pem"
        try folder.add(keyFile: publicKey, team: "T2", keyID: "A", topics: [], environment: .production)
        let contents = try folder.read()
        #expect(contents.faults.isEmpty)
        #expect(contents.keys.map(\.keyID) == ["A", "K_1"])
        #expect(contents.keys.map(\.team) == ["T2", "T-1"])
        #expect(contents.keys.map(\.topics) == [[], ["a", "b.c"]])
        #expect(contents.keys.map(\.environment) == [.production, nil])
        #expect(contents.keys[0].key.pem == contents.keys[1].key.pem)
        let text = try String(contentsOfFile: "\(folder.path)/K_1.pem", encoding: .utf8)
        #expect(text.hasPrefix("Team: T-1\nTopic: a\nTopic: b.c\n\n-----BEGIN PUBLIC KEY-----\n"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["A.pem", "K_1.pem"])
        try folder.remove(keyID: "A")
        #expect(try folder.read().keys.map(\.keyID) == ["K_1"])
    }

    @Test("A name that is none, a file without a key, and a key that is there already are refused")
    func refusals() throws {
        let fixture = try ProviderFixture()
        let folder = ProviderKeyFolder("\(fixture.folder)/keys")
        func fault(_ file: String, team: String = "T", keyID: String = "K", topics: [String] = []) -> String? {
            do throws(ProviderKeyError) {
                try folder.add(keyFile: file, team: team, keyID: keyID, topics: topics)
                return nil
            } catch {
                return error.message
            }
        }
        let key = fixture.privateKey
        for name in ["", "a b", "../x", ".x", "a/b", "a\n", String(repeating: "k", count: 65)] {
            #expect(fault(key, keyID: name)?.contains("is no key id") == true)
            #expect(fault(key, team: name)?.contains("is no team") == true)
        }
        #expect(fault(key, topics: ["a b"])?.contains("is no topic") == true)
        #expect(fault("\(fixture.folder)/ca.pem")?.contains("holds no key in PEM") == true)
        #expect(fault("/nonexistent")?.contains("no such file") == true)
        #expect(fault(fixture.folder)?.contains("no ordinary file") == true)
        #expect(fault("/dev/zero")?.contains("no ordinary file") == true)
        #expect(fault(key) == nil)
        #expect(fault(key)?.contains("is there already") == true)
        for keyID in ["x", "../provider", ""] {
            #expect(throws: ProviderKeyError.self) { try folder.remove(keyID: keyID) }
        }
    }

    @Test("A file that cannot be used is named, and the others are read")
    func faults() throws {
        let fixture = try ProviderFixture()
        let folder = ProviderKeyFolder("\(fixture.folder)/keys")
        try folder.add(keyFile: fixture.privateKey, team: "T", keyID: "good", topics: [])
        let pem = try String(contentsOfFile: "\(fixture.folder)/provider.pub.pem", encoding: .utf8)
        let files = [
            "a.pem": pem, "b.pem": "Team: T\n\nno key", "c.pem": "Team: T\nTeem: T\n\n\(pem)",
            "d.pem": "Team: T\nTeam: T\n\n\(pem)", "e.txt": "Team: T\n\n\(pem)", "f g.pem": "Team: T\n\n\(pem)",
            "h.pem": "Team: T\nTopic: a b\n\n\(pem)", ".hidden": "x", "i.pem": "",
            "j.pem": "Team: T\nEnvironment: sandbox\n\n\(pem)",
            "k.pem": "Team: T\nEnvironment: production\nEnvironment: development\n\n\(pem)",
        ]
        for (name, text) in files { try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder.path)/\(name)")) }
        #expect(unsafe mkfifo("\(folder.path)/pipe.pem", 0o600) == 0)
        let contents = try folder.read()
        #expect(contents.keys.map(\.keyID) == ["good"])
        let names = ["a.pem", "b.pem", "c.pem", "d.pem", "e.txt", "f g.pem", "h.pem", "j.pem", "k.pem", "pipe.pem"]
        for (name, fault) in zip(names, contents.faults) {
            #expect(fault.message.contains(name == "f g.pem" ? "f g" : "keys/\(name)"), "\(fault)")
        }
        #expect(contents.faults.count == names.count)
        #expect(throws: ProviderKeyError.self) { _ = try ProviderKeyFolder("/nonexistent").read() }
    }
}
