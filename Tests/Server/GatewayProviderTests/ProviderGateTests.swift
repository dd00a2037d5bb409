import Foundation
import Gateway
import Testing
import Wire

@Suite("Verifying provider tokens")
struct ProviderGateTests {
    @Test("A push without a token is MissingProviderToken, and its connection stays usable")
    func missing() throws {
        let fixture = try ProviderFixture()
        for value in [nil, "", "bearer", "basic x"] as [String?] {
            #expect(fixture.refusal(value) == .missingProviderToken)
        }
        #expect(fixture.refusal(try fixture.authorization()) == nil)
        #expect(fixture.refusal(nil) == .missingProviderToken)
    }

    @Test("Garbage, an unknown key, another team, another signer and a changed byte are InvalidProviderToken")
    func invalid() throws {
        let fixture = try ProviderFixture()
        let good = try fixture.authorization()
        let other = try fixture.authorization(signer: "\(fixture.folder)/ca.key")
        let values = [
            "bearer x", "bearer a.b.c", try fixture.authorization("K2"), try fixture.authorization(team: "OTHER"),
            other, good.replacingOccurrences(of: ".", with: "x."),
        ]
        for value in values { #expect(fixture.refusal(value) == .invalidProviderToken, "\(value)") }
        #expect(fixture.refusal(good) == nil)
        // A valid token on the connection and in the cache does not admit any other one.
        for value in values { #expect(fixture.refusal(value) == .invalidProviderToken, "\(value)") }
    }

    @Test(
        "An InvalidProviderToken is logged with its cause, once a connection, without malformed names"
    )
    func told() throws {
        let fixture = try ProviderFixture([("K1", "T1", []), ("K2", "T2", [])])
        func told(_ authorization: String, connection: UInt32) -> [ProviderTokenFault] {
            _ = fixture.refusal(authorization, connection: connection)
            return fixture.takeFaults()
        }
        let unknown = try fixture.authorization("K9", team: "T1")
        let stray = try fixture.authorization("K1", team: "T1", signer: "\(fixture.folder)/ca.key")
        #expect(told("bearer x", connection: 1) == [.unreadable])
        #expect(told(unknown, connection: 1) == [.unknownKey(keyID: "K9", team: "T1")])
        #expect(told(unknown, connection: 1).isEmpty)
        #expect(told(unknown, connection: 2) == [.unknownKey(keyID: "K9", team: "T1")])
        let otherTeam = try fixture.authorization("K1", team: "T2")
        #expect(told(otherTeam, connection: 1) == [.otherTeam(keyID: "K1", team: "T2")])
        #expect(told(stray, connection: 1) == [.otherKey(keyID: "K1", team: "T1")])
        #expect(told(try fixture.authorization("K1", team: "T1"), connection: 3).isEmpty)
        #expect(
            told(try fixture.authorization("K2", team: "T2"), connection: 3) == [.secondTeam(keyID: "K2", team: "T2")]
        )
        let causes = [
            ProviderTokenFault.unreadable, .unknownKey(keyID: "a b", team: "T"), .otherTeam(keyID: "K", team: "T"),
            .otherKey(keyID: "K", team: "T"), .secondTeam(keyID: "K", team: "T"),
        ].map(\.fields)
        #expect(Set(causes.map { $0["cause"] }).count == 5)
        #expect(causes[1]["keyID"] == nil && causes[1]["team"] == "T" && causes[2]["keyID"] == "K")
    }

    @Test("A token is valid for one hour, and an expired one makes its connection unusable")
    func expired() throws {
        let fixture = try ProviderFixture()
        #expect(fixture.refusal(try fixture.authorization(age: 3600), connection: 1) == nil)
        #expect(fixture.refusal(try fixture.authorization(age: 3601), connection: 2) == .expiredProviderToken)
        #expect(fixture.refusal(try fixture.authorization(age: -3601), connection: 3) == .expiredProviderToken)
        let good = try fixture.authorization()
        #expect(fixture.refusal(good, connection: 1) == nil)
        #expect(fixture.refusal(good, connection: 2) == .expiredProviderToken)
        #expect(fixture.refusal(nil, connection: 2) == .expiredProviderToken)
        fixture.closed(connection: 2)
        #expect(fixture.refusal(good, connection: 2) == nil)
    }

    @Test("A token expires while it is in use")
    func expiring() throws {
        let fixture = try ProviderFixture()
        let token = try fixture.authorization()
        #expect(fixture.refusal(token, after: 3600) == nil)
        #expect(fixture.refusal(token, after: 3601) == .expiredProviderToken)
        #expect(fixture.refusal(token, connection: 2, after: 3601) == .expiredProviderToken)
    }

    @Test("A connection may change its token once, and again after 20 minutes; other connections are not affected")
    func updates() throws {
        let fixture = try ProviderFixture()
        let tokens = try (0..<4).map { try fixture.authorization(age: Int64($0)) }
        #expect(fixture.refusal(tokens[0]) == nil)
        #expect(fixture.refusal(tokens[1], after: 1) == nil)
        #expect(fixture.refusal(tokens[2], after: 1200) == .tooManyProviderTokenUpdates)
        // Requests in progress at the change may arrive after it.
        #expect(fixture.refusal(tokens[0], after: 1200) == nil)
        #expect(fixture.refusal(tokens[1], after: 1200) == nil)
        #expect(fixture.refusal(tokens[2], connection: 2, after: 1200) == nil)
        #expect(fixture.refusal(tokens[2], after: 1201) == nil)
        #expect(fixture.refusal(tokens[3], after: 1202) == .tooManyProviderTokenUpdates)
        #expect(fixture.refusal(tokens[3], after: 2401) == nil)
    }

    @Test("A connection is of one team, and its keys may push to the same topics")
    func connections() throws {
        let fixture = try ProviderFixture([
            ("K1", "T1", []), ("K2", "T1", []), ("K3", "T2", []), ("K4", "T1", ["a"]), ("K5", "T1", ["a"]),
        ])
        func refusal(_ keyID: String, _ team: String, _ connection: UInt32) throws -> APNSReason? {
            fixture.refusal(try fixture.authorization(keyID, team: team), connection: connection)
        }
        #expect(try refusal("K1", "T1", 1) == nil)
        #expect(try refusal("K3", "T2", 1) == .invalidProviderToken)
        #expect(try refusal("K4", "T1", 1) == .unrelatedKeyIdInToken)
        #expect(try refusal("K2", "T1", 1) == nil)
        #expect(try refusal("K4", "T1", 2) == nil)
        #expect(try refusal("K2", "T1", 2) == .unrelatedKeyIdInToken)
        #expect(try refusal("K5", "T1", 2) == nil)
        #expect(try refusal("K3", "T2", 3) == nil)
    }

    @Test("A removed key is refused immediately, on every connection, and its return is noticed")
    func removed() throws {
        let fixture = try ProviderFixture([("K1", ProviderFixture.team, []), ("K2", ProviderFixture.team, [])])
        let tokens = try ["K1", "K2"].map { try fixture.authorization($0) }
        for connection in 1...2 as ClosedRange<UInt32> {
            #expect(fixture.refusal(tokens[Int(connection) - 1], connection: connection) == nil)
        }
        fixture.keys.replace(with: [try fixture.file("K2")])
        #expect(fixture.refusal(tokens[0], connection: 1) == .invalidProviderToken)
        #expect(fixture.refusal(tokens[0], connection: 3) == .invalidProviderToken)
        #expect(fixture.refusal(tokens[1], connection: 2) == nil)
        fixture.keys.replace(with: [try fixture.file("K1", team: "OTHER")])
        #expect(fixture.refusal(tokens[0], connection: 1) == .invalidProviderToken)
        fixture.keys.replace(with: [try fixture.file("K1")])
        // This is not a change: the connection showed the same token before.
        #expect(fixture.refusal(tokens[0], connection: 1) == nil)
    }

    @Test(
        "A key for one environment is refused by a gateway of the other environment",
        arguments: APNSEnvironment.allCases + [nil],
        APNSEnvironment.allCases + [nil]
    )
    func environment(own: APNSEnvironment?, ofKey: APNSEnvironment?) throws {
        let fixture = try ProviderFixture(environment: own)
        fixture.keys.replace(with: [try fixture.file("K1", environment: ofKey), try fixture.file("K2")])
        let isForeign = own != nil && ofKey != nil && own != ofKey
        let refusal: APNSReason? = isForeign ? .badEnvironmentKeyIdInToken : nil
        let token = try fixture.authorization()
        #expect(fixture.refusal(token) == refusal)
        #expect(fixture.refusal(token) == refusal)
        // The refused token does not bind the connection to a team.
        #expect(fixture.refusal(try fixture.authorization("K2", age: 1)) == nil)
        #expect(fixture.refusal(try fixture.authorization(age: 3601), connection: 2) == .expiredProviderToken)
    }

    @Test("Beyond the maximum number of kept tokens, old and new ones are still accepted")
    func many() throws {
        let fixture = try ProviderFixture()
        let first = try fixture.authorization()
        #expect(fixture.refusal(first) == nil)
        for number in 0..<4200 as Range<UInt32> {
            let token = try fixture.authorization(age: Int64(number % 3000))
            let refusal = fixture.refusal(token, connection: number + 2)
            guard refusal == nil else {
                Issue.record("\(number): \(String(describing: refusal))")
                return
            }
        }
        #expect(fixture.refusal(first, connection: 2) == nil)
    }

    @Test("A key may be used on a limited number of connections; an ended connection frees a place")
    func connectionsMax() throws {
        let fixture = try ProviderFixture([("K1", "T1", []), ("K2", "T1", [])], connectionsMax: 2)
        let tokens = [
            "K1": try fixture.authorization("K1", team: "T1"), "K2": try fixture.authorization("K2", team: "T1"),
        ]
        func refusal(_ keyID: String, _ connection: UInt32) -> APNSReason? {
            fixture.refusal(tokens[keyID], connection: connection)
        }
        for connection in [1, 2, 1, 2] as [UInt32] { #expect(refusal("K1", connection) == nil) }
        for _ in 0..<2 { #expect(refusal("K1", 3) == .tooManyRequests) }
        #expect(refusal("K1", 1) == nil)
        // A refused connection was not counted, so its end does not free a place.
        fixture.closed(connection: 3)
        #expect(refusal("K1", 3) == .tooManyRequests)
        // Another key has separate places. A connection that changes to it frees a place of its former key.
        #expect(refusal("K2", 3) == nil)
        #expect(refusal("K2", 2) == nil)
        #expect(refusal("K1", 4) == nil)
        #expect(refusal("K2", 5) == .tooManyRequests)
        fixture.closed(connection: 2)
        #expect(refusal("K2", 5) == nil)
        #expect(refusal("K1", 6) == .tooManyRequests)
    }
}

/// Verifications are counted, because their duration is too variable for a test.
@Suite("Invalid tokens cost one verification")
struct RefusedTokenTests {
    @Test("An invalid token that is shown a thousand times is verified once per connection")
    func hammered() throws {
        let fixture = try ProviderFixture()
        let bad = try fixture.authorization(signer: "\(fixture.folder)/ca.key")
        for _ in 0..<1000 { #expect(fixture.refusal(bad) == .invalidProviderToken) }
        #expect(fixture.gate.verificationCount == 1)
        for _ in 0..<1000 { #expect(fixture.refusal(bad, connection: 2) == .invalidProviderToken) }
        #expect(fixture.gate.verificationCount == 2)
        // The remembered tokens are dropped when the connection ends.
        fixture.closed(connection: 2)
        #expect(fixture.refusal(bad, connection: 2) == .invalidProviderToken)
        #expect(fixture.gate.verificationCount == 3)
    }

    @Test("A valid token among invalid ones is accepted, and each is verified once")
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

    @Test("New invalid tokens are verified thirty-two times, and then once a second; valid ones are still accepted")
    func bounded() throws {
        let fixture = try ProviderFixture()
        let bad = try (0..<200).map { try fixture.authorization("X\($0)") }
        let good = try fixture.authorization()
        #expect(fixture.refusal(good, connection: 2) == nil)
        for token in bad.prefix(32) { #expect(fixture.refusal(token) == .invalidProviderToken) }
        // These tokens were not verified, so they may be valid.
        for token in bad.dropFirst(32) { #expect(fixture.refusal(token) == .tooManyProviderTokenUpdates) }
        #expect(fixture.gate.verificationCount == 1 + 32)
        #expect(fixture.refusal(bad[31]) == .invalidProviderToken)
        // This token was verified on another connection before, so it needs no verification here.
        #expect(fixture.refusal(good) == nil)
        #expect(fixture.refusal(bad[0], after: 1) == .invalidProviderToken)
        for token in bad.dropFirst(32) {
            #expect(fixture.refusal(token, after: 1) == .tooManyProviderTokenUpdates)
        }
        #expect(fixture.gate.verificationCount == 1 + 33)
        let other = try fixture.authorization(age: 5)
        #expect(fixture.refusal(other, after: 1) == .tooManyProviderTokenUpdates, "not verified, so possibly valid")
        #expect(fixture.refusal(other, after: 2) == nil)
        #expect(fixture.gate.verificationCount == 1 + 34)
        #expect(fixture.refusal(bad[0], connection: 3) == .invalidProviderToken)
    }

    @Test("A token of an unknown key is accepted once the key is known, on the same connection")
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

    @Test("A malformed token is not verified twice, and a missing one never")
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
