import Gateway
import Testing

@Suite("Bearer tokens")
struct BearerTokenTests {
    private let id = String(repeating: "0a", count: 16)

    private func key(_ byte: UInt8) throws -> TokenKey {
        try #require(TokenKey(bytes: Array(repeating: byte, count: 32)))
    }

    @Test("A token reads back as it was issued, with topics and without")
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

    @Test("A token of another key is none")
    func otherKey() throws {
        let token = BearerToken(id: self.id, role: .worker, topics: ["t"], expiresAt: 1_800_000_000)
        #expect(BearerToken(text: try token.text(signedWith: try self.key(1)), signedWith: try self.key(2)) == nil)
    }

    @Test("No character of a token can be another, be missing, or come twice")
    func mutations() throws {
        let key = try self.key(1)
        let token = BearerToken(id: self.id, role: .worker, topics: ["t"], expiresAt: 1_800_000_000)
        let text = Array(try token.text(signedWith: key).utf8)
        // The last character carries four bits of the code; the other two are nobody's.
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
        "What is no token is none",
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
