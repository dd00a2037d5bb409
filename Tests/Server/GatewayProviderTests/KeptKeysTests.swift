import Foundation
import Gateway
import Testing

@Suite("Files of providers' keys that are written while they are read")
struct KeptKeysTests {
    private let fixture: ProviderFixture
    private let folder: ProviderKeyFolder

    init() throws {
        self.fixture = try ProviderFixture()
        self.folder = ProviderKeyFolder("\(self.fixture.folder)/keys")
        for keyID in ["A", "B"] {
            try self.folder.add(keyFile: self.fixture.privateKey, team: "T", keyID: keyID, topics: [])
        }
    }

    /// Writes a key's file in place.
    private func write(_ text: String, _ keyID: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(self.folder.path)/\(keyID).pem"))
    }

    @Test("A key stays good for two seconds while its file holds none; nothing is said of it", arguments: ["", "Te"])
    func kept(text: String) throws {
        var kept = KeptKeys()
        let first = kept.read(try self.folder.read(), now: 0)
        #expect(first.keys.map(\.keyID) == ["A", "B"])
        #expect(!kept.isWaiting)
        try self.write(text, "A")
        for now in [1000, 1000 + KeptKeys.patience - 1] {
            let read = kept.read(try self.folder.read(), now: now)
            #expect(read.keys.map(\.keyID) == ["A", "B"] && read.faults.isEmpty)
            #expect(kept.isWaiting)
        }
        let read = kept.read(try self.folder.read(), now: 1000 + KeptKeys.patience)
        #expect(read.keys.map(\.keyID) == ["B"])
        #expect(read.faults.count == (text.isEmpty ? 0 : 1))
        #expect(!kept.isWaiting)
        // What is not good any more does not become so by being looked at.
        let last = kept.read(try self.folder.read(), now: 1001 + KeptKeys.patience)
        #expect(last.keys.map(\.keyID) == ["B"])
    }

    @Test("A key whose file is gone is not good, and neither is one that never was")
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

    @Test("Without its folder no key is good, whatever its file holds in the next one")
    func folderLost() throws {
        var kept = KeptKeys()
        _ = kept.read(try self.folder.read(), now: 0)
        try self.write("", "A")
        kept.folderLost()
        let rest = kept.read(try self.folder.read(), now: 1)
        #expect(rest.keys.map(\.keyID) == ["B"])
    }
}
