import Foundation
import Gateway
import Testing

@Suite("Watching the folder of providers' keys", .timeLimit(.minutes(15)))
struct ProviderKeyWatchTests {
    /// Faults as the watch tells them.
    private final class Told: @unchecked Sendable {
        private let lock = NSLock()
        private var messages: [String] = []

        func add(_ message: String) { self.lock.withLock { self.messages.append(message) } }

        var all: [String] { self.lock.withLock { self.messages } }
    }

    /// Asks again and again until it is so, for ten seconds.
    private func eventually(_ ask: () throws -> Bool) async rethrows -> Bool {
        let deadline = ContinuousClock.now + .seconds(10)
        while try !ask() {
            guard ContinuousClock.now < deadline else { return false }
            await Task.yield()
        }
        return true
    }

    private func keyIDs(_ watch: ProviderKeyWatch) -> [String] { watch.keys.keyIDs }

    @Test("Keys that are added, replaced, renamed and removed are known without a restart")
    func changes() async throws {
        let fixture = try ProviderFixture()
        let folder = ProviderKeyFolder("\(fixture.folder)/keys")
        try folder.add(keyFile: fixture.privateKey, team: "T", keyID: "A", topics: [])
        let told = Told()
        let watch = try ProviderKeyWatch(folder.path) { told.add($0.message) }
        #expect(self.keyIDs(watch) == ["A"])
        try folder.add(keyFile: fixture.privateKey, team: "T", keyID: "B", topics: [])
        #expect(await self.eventually { self.keyIDs(watch) == ["A", "B"] })
        try FileManager.default.moveItem(atPath: "\(folder.path)/A.pem", toPath: "\(folder.path)/C.pem")
        #expect(await self.eventually { self.keyIDs(watch) == ["B", "C"] })
        try folder.remove(keyID: "B")
        #expect(await self.eventually { self.keyIDs(watch) == ["C"] })
        #expect(told.all.isEmpty)
        try Data("no key".utf8).write(to: URL(fileURLWithPath: "\(folder.path)/C.pem"))
        #expect(await self.eventually { self.keyIDs(watch).isEmpty })
        #expect(await self.eventually { told.all.count == 1 })
        watch.stop()
    }

    @Test("Without its folder no key is good; a new folder in its place is watched")
    func folder() async throws {
        let fixture = try ProviderFixture()
        let folder = ProviderKeyFolder("\(fixture.folder)/keys")
        try folder.add(keyFile: fixture.privateKey, team: "T", keyID: "A", topics: [])
        let watch = try ProviderKeyWatch(folder.path) { _ in }
        try FileManager.default.moveItem(atPath: folder.path, toPath: "\(fixture.folder)/old")
        #expect(await self.eventually { self.keyIDs(watch).isEmpty })
        try folder.add(keyFile: fixture.privateKey, team: "T", keyID: "B", topics: [])
        #expect(await self.eventually { self.keyIDs(watch) == ["B"] })
        try FileManager.default.removeItem(atPath: folder.path)
        #expect(await self.eventually { self.keyIDs(watch).isEmpty })
        try folder.add(keyFile: fixture.privateKey, team: "T", keyID: "C", topics: [])
        #expect(await self.eventually { self.keyIDs(watch) == ["C"] })
        try folder.remove(keyID: "C")
        #expect(await self.eventually { self.keyIDs(watch).isEmpty })
        watch.stop()
    }

    @Test("A folder that is not there, or is none, ends the start")
    func missing() throws {
        let fixture = try ProviderFixture()
        for path in ["/nonexistent", fixture.privateKey] {
            #expect(throws: ProviderKeyError.self) { _ = try ProviderKeyWatch(path) { _ in } }
        }
    }
}
