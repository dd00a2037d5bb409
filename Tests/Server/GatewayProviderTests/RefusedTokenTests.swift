import Gateway
import Testing
import Wire

/// Counted by verifications: what they cost is no figure that a test could hold on to.
@Suite("Tokens that are no good cost one verification")
struct RefusedTokenTests {
    @Test("A bad token that is shown a thousand times is verified once a connection")
    func hammered() throws {
        let fixture = try ProviderFixture()
        let bad = try fixture.authorization(signer: "\(fixture.folder)/ca.key")
        for _ in 0..<1000 { #expect(fixture.refusal(bad) == .invalidProviderToken) }
        #expect(fixture.gate.verificationCount == 1)
        for _ in 0..<1000 { #expect(fixture.refusal(bad, connection: 2) == .invalidProviderToken) }
        #expect(fixture.gate.verificationCount == 2)
        // What is remembered ends with the connection.
        fixture.closed(connection: 2)
        #expect(fixture.refusal(bad, connection: 2) == .invalidProviderToken)
        #expect(fixture.gate.verificationCount == 3)
    }

    @Test("A good token among bad ones is taken, and each is verified once")
    func alternating() throws {
        let fixture = try ProviderFixture()
        let good = try fixture.authorization()
        let bad = try ["X1", "X2", "X3", "X4"].map { try fixture.authorization($0) }
        for _ in 0..<50 {
            for token in bad { #expect(fixture.refusal(token) == .invalidProviderToken) }
            #expect(fixture.refusal(good) == nil)
        }
        #expect(fixture.gate.verificationCount == 5)
    }

    @Test("Ever new bad tokens are verified thirty-two times, and then once a second; good ones are still taken")
    func bounded() throws {
        let fixture = try ProviderFixture()
        let bad = try (0..<200).map { try fixture.authorization("X\($0)") }
        let good = try fixture.authorization()
        #expect(fixture.refusal(good, connection: 2) == nil)
        for token in bad.prefix(32) { #expect(fixture.refusal(token) == .invalidProviderToken) }
        // Nobody has looked at these: they may be good.
        for token in bad.dropFirst(32) { #expect(fixture.refusal(token) == .tooManyProviderTokenUpdates) }
        #expect(fixture.gate.verificationCount == 1 + 32)
        #expect(fixture.refusal(bad[31]) == .invalidProviderToken)
        // Verified on another connection before, it needs no verification here.
        #expect(fixture.refusal(good) == nil)
        #expect(fixture.refusal(bad[0], after: 1) == .invalidProviderToken)
        for token in bad.dropFirst(32) {
            #expect(fixture.refusal(token, after: 1) == .tooManyProviderTokenUpdates)
        }
        #expect(fixture.gate.verificationCount == 1 + 33)
        let other = try fixture.authorization(age: 5)
        #expect(fixture.refusal(other, after: 1) == .tooManyProviderTokenUpdates, "not verified, so perhaps good")
        #expect(fixture.refusal(other, after: 2) == nil)
        #expect(fixture.gate.verificationCount == 1 + 34)
        #expect(fixture.refusal(bad[0], connection: 3) == .invalidProviderToken)
    }

    @Test("A token of a key that is not known yet is taken once the key is, on the same connection")
    func keyAdded() throws {
        let fixture = try ProviderFixture()
        let tokens = try (0..<40).map { try fixture.authorization("K2", age: $0) }
        for (index, token) in tokens.enumerated() {
            #expect(fixture.refusal(token) == (index < 32 ? .invalidProviderToken : .tooManyProviderTokenUpdates))
        }
        let before = fixture.gate.verificationCount
        fixture.keys.replace(with: [try fixture.file("K1"), try fixture.file("K2")])
        #expect(fixture.refusal(tokens[39]) == nil)
        #expect(fixture.gate.verificationCount == before + 1)
    }

    @Test("What is no token at all is not looked at twice, and a missing one never")
    func garbage() throws {
        let fixture = try ProviderFixture()
        for _ in 0..<10 {
            #expect(fixture.refusal("bearer a.b.c") == .invalidProviderToken)
            #expect(fixture.refusal(nil) == .missingProviderToken)
            #expect(fixture.refusal("bearer ") == .missingProviderToken)
        }
        #expect(fixture.gate.verificationCount == 1)
    }
}
