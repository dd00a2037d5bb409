import Foundation
import Gateway
import Platform
import Testing

@Suite("Credential files")
final class CredentialFileTests {
    private let folder = NSTemporaryDirectory() + "wakegate-credentials-" + UUID().uuidString

    init() throws {
        try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: self.folder) }

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: "\(self.folder)/\(name)", encoding: .utf8)
    }

    private func mode(of path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test("The key is created once, for its owner alone, no other file is created, and each folder has another key")
    func key() throws {
        #expect(!TokenKey.exists(in: self.folder))
        let key = try TokenKey.make(in: self.folder)
        #expect(try TokenKey.make(in: self.folder) == key)
        let path = "\(self.folder)/token.key"
        #expect(try self.mode(of: path) == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: self.folder) == ["token.key"])
        #expect(try self.text("token.key").utf8.count == 65)
        let other = "\(self.folder)/other"
        try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: false)
        #expect(try TokenKey.make(in: other) != key)
    }

    @Test(
        "A key that others may read, or that is malformed, is not used and unchanged",
        arguments: ["token.key", "history.key"],
        ["mode", "text"]
    )
    func badKey(name: String, fault: String) throws {
        let path = "\(self.folder)/\(name)"
        func make() throws {
            if name == "history.key" { return try HistoryKey.prepare(in: self.folder).save() }
            _ = try TokenKey.make(in: self.folder)
        }
        try make()
        if fault == "text" { try Data("0123\n".utf8).write(to: URL(fileURLWithPath: path)) }
        let mode = fault == "mode" ? 0o640 : 0o600
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        let before = try self.text(name)
        let remedies = name == "history.key" ? ["put back", "the history begins anew"] : ["put back"]
        let words = [path] + (fault == "mode" ? ["chmod 600 \(path)"] : remedies)
        #expect { try make() } throws: { error in words.allSatisfy { "\(error)".contains($0) } }
        #expect(try self.text(name) == before)
    }

    @Test("The history's key is created once, when it is saved, for its owner only, and differs for each folder")
    func historyKey() throws {
        let path = "\(self.folder)/history.key"
        let drawn = try HistoryKey.prepare(in: self.folder)
        #expect(!FileManager.default.fileExists(atPath: path))
        try drawn.save()
        #expect(try self.mode(of: path) == 0o600)
        let found = try HistoryKey.prepare(in: self.folder)
        #expect(found.key == drawn.key)
        try found.save()
        let other = "\(self.folder)/other"
        try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: false)
        #expect(try HistoryKey.prepare(in: other).key != drawn.key)
        try FileManager.default.removeItem(atPath: path)
        let next = try HistoryKey.prepare(in: self.folder)
        #expect(next.key != drawn.key)
        // A file that another program creates in the meantime is kept, and is not used as this key.
        try HistoryKey.prepare(in: self.folder).save()
        let content = try self.text("history.key")
        #expect { try next.save() } throws: { "\($0)".contains("\(path) was made by another program") }
        #expect(try self.text("history.key") == content)
    }

    @Test("A folder, a pipe or a dangling link in place of a secret is named in the error", arguments: 0..<3)
    func noFile(kind: Int) throws {
        let path = "\(self.folder)/history.key"
        switch kind {
        case 0: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        case 1: #expect(unsafe mkfifo(path, 0o644) == 0)
        default: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "nowhere")
        }
        let words = kind == 2 ? "\(path) is a symbolic link that leads to no file" : "\(path) is not a regular file"
        #expect { _ = try HistoryKey.prepare(in: self.folder) } throws: { "\($0)".contains(words) }
    }

    @Test("A repeated revocation is one line, and a revocation may follow a truncated line")
    func revocations() throws {
        let ids = (0..<3).map { String(repeating: "\($0)", count: 32) }
        try RevokedTokens.add(ids[0], in: self.folder)
        try RevokedTokens.add(ids[0], in: self.folder)
        let path = "\(self.folder)/token.revoked"
        let file = try #require(FileHandle(forWritingAtPath: path))
        try file.seekToEnd()
        try file.write(contentsOf: Data("0123".utf8))
        try file.close()
        try RevokedTokens.add(ids[1], in: self.folder)
        let lines = try self.text("token.revoked").split(separator: "\n")
        #expect(lines == [ids[0][...], "0123", ids[1][...]])
        #expect(try self.mode(of: path) == 0o600)
    }
}

extension CredentialFileTests {
    @Test("A large record of issued tokens loses the expired ones with their uses, and keeps all others")
    func issuedTokens() throws {
        func token(_ number: Int, expiresAt: Int64) -> BearerToken {
            let id = String(repeating: "0", count: 30) + String(10 + number)
            return BearerToken(id: id, role: .operator, topics: [], expiresAt: expiresAt)
        }
        func ids() throws -> [String] { try IssuedTokens.read(in: self.folder).map(\.id) }
        let tokens = (0..<20).map { token($0, expiresAt: $0 % 2 == 0 ? 100 : 300) }
        for token in tokens { try IssuedTokens.add(token, issuedAt: 50, in: self.folder, keptBytes: 1) }
        #expect(try ids() == tokens.map(\.id), "none has expired")
        let uses = tokens.map { "\($0.id) 60\n" }.joined()
        let path = "\(self.folder)/token.used"
        let attributes = [FileAttributeKey.posixPermissions: 0o600]
        #expect(FileManager.default.createFile(atPath: path, contents: Data(uses.utf8), attributes: attributes))
        let size = try self.text("token.issued").utf8.count
        let last = [token(20, expiresAt: 300), token(21, expiresAt: 300)]
        // A record of another version.
        let issued = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(self.folder)/token.issued"))
        try issued.seekToEnd()
        try issued.write(contentsOf: Data("{\"id\":\"x\"}\n".utf8))
        try issued.close()
        try IssuedTokens.add(last[0], issuedAt: 100, in: self.folder, keptBytes: 2 * size)
        #expect(try ids().count == 21, "the file is not large")
        try IssuedTokens.add(last[1], issuedAt: 100, in: self.folder, keptBytes: size)
        let kept = tokens.indices.filter { $0 % 2 == 1 }.map { tokens[$0].id }
        #expect(try ids() == kept + last.map(\.id))
        #expect(try self.text("token.issued").contains(#"{"id":"x"}"#))
        #expect(try Set(TokenUses.read(in: self.folder).keys) == Set(kept))
        let files = try FileManager.default.contentsOfDirectory(atPath: self.folder)
        #expect(files.sorted() == ["token.issued", "token.used"])
        #expect(try self.mode(of: "\(self.folder)/token.issued") == 0o600)
    }
}

@Suite("Changes that have settled")
struct SettledChangeTests {
    @Test("A change is accepted once, at the second look that finds it")
    func settled() {
        var change = SettledChange(1)
        let taken = [1, 2, 2, 2, 3, 3, 3].map { change.shouldTake($0) }
        #expect(taken == [false, false, true, false, false, true, false])
    }

    @Test("A value that keeps changing is not taken, and a value that returns is not a change")
    func unsettled() {
        var change = SettledChange(1)
        let taken = [2, 3, 4, 1, 1, 5, 1, 5, 5].map { change.shouldTake($0) }
        #expect(taken.firstIndex(of: true) == 8)
    }

    @Test("A change that failed to load is tried again at each look until it succeeds")
    func failed() {
        var change = SettledChange(1)
        #expect([2, 2].map { change.shouldTake($0) } == [false, true])
        for _ in 0..<3 {
            change.failed()
            let isTaken = change.shouldTake(2)
            #expect(isTaken)
        }
        let isTaken = change.shouldTake(2)
        #expect(!isTaken)
    }
}

@Suite("Bearer tokens")
struct BearerTokenTests {
    private let id = String(repeating: "0a", count: 16)

    private func key(_ byte: UInt8) throws -> TokenKey {
        try #require(TokenKey(bytes: Array(repeating: byte, count: 32)))
    }

    @Test("A token reads back as issued, with topics and without")
    func roundTrip() throws {
        let key = try self.key(1)
        let worker = BearerToken(id: self.id, role: .worker, topics: ["b", "a.b_c-d"], expiresAt: 1_800_000_000)
        let operatorOfAll = BearerToken(id: self.id, role: .operator, topics: [], expiresAt: 1)
        for token in [worker, operatorOfAll] {
            #expect(BearerToken(text: try token.text(signedWith: key), signedWith: key) == token)
        }
        #expect(worker.scope.contains("a.b_c-d"))
        #expect(!worker.scope.contains("a"))
        #expect(operatorOfAll.scope.contains("anything"))
    }

    @Test("A token signed with another key is invalid")
    func otherKey() throws {
        let token = BearerToken(id: self.id, role: .worker, topics: ["t"], expiresAt: 1_800_000_000)
        #expect(BearerToken(text: try token.text(signedWith: try self.key(1)), signedWith: try self.key(2)) == nil)
    }

    @Test("A token with a changed, missing or repeated character is invalid")
    func mutations() throws {
        let key = try self.key(1)
        let token = BearerToken(id: self.id, role: .worker, topics: ["t"], expiresAt: 1_800_000_000)
        let text = Array(try token.text(signedWith: key).utf8)
        // The last character contains four bits of the code; the other two are unused.
        for index in text.indices.dropLast() {
            var changed = text
            changed[index] = text[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            var missing = text
            missing.remove(at: index)
            var twice = text
            twice.insert(text[index], at: index)
            for wrong in [changed, missing, twice] {
                let read = BearerToken(text: String(decoding: wrong, as: UTF8.self), signedWith: key)
                #expect(read == nil, "at \(index)")
            }
        }
    }

    @Test(
        "A malformed token is refused",
        arguments: ["", ".", "..", "...", "wg1", "wg1..", "wg1.e30.", "wg1.e30.AAAA", "wg2.e30.AAAA", "\u{0}.é.\n"]
    )
    func garbage(text: String) throws {
        #expect(BearerToken(text: text, signedWith: try self.key(0)) == nil)
    }

    @Test("Ids are 32 lower-case digits, and no two are the same")
    func ids() {
        let ids = Set((0..<1000).map { _ in BearerToken.newID() })
        #expect(ids.count == 1000)
        #expect(ids.allSatisfy(BearerToken.isID))
        for wrong in ["", "0a", self.id.uppercased(), self.id + "0", String(self.id.dropLast()) + "g"] {
            #expect(!BearerToken.isID(wrong))
        }
    }
}
