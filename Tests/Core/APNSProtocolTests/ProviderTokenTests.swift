import Foundation
import Testing
import Wire

@Suite("Reading a provider's token")
struct ProviderTokenTests {
    private static let head = #"{"alg":"ES256","kid":"KEY1234567"}"#
    private static let claims = #"{"iss":"TEAM123456","iat":1700000000}"#
    private static let raw = [UInt8](1...64)

    private static func standard(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

    private static func url(_ bytes: [UInt8]) -> String {
        self.standard(bytes).replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }

    private static func text(_ head: String = Self.head, _ claims: String = Self.claims, _ signature: [UInt8] = raw)
        -> String
    {
        [Array(head.utf8), Array(claims.utf8), signature].map(self.url).joined(separator: ".")
    }

    private func token(_ text: String) -> ProviderToken? {
        text.withByteView { try? ProviderToken($0) }
    }

    private func reason(_ text: String) -> APNSReason? {
        text.withByteView { view in
            do throws(APNSReason) {
                _ = try ProviderToken(view)
                return nil
            } catch {
                return error
            }
        }
    }

    @Test("Key, team, moment, signed bytes and signature are what the token says")
    func parts() throws {
        let text = Self.text()
        let token = try #require(self.token(text))
        #expect(token.keyID == "KEY1234567")
        #expect(token.team == "TEAM123456")
        #expect(token.issuedAt == 1_700_000_000_000)
        #expect(token.signature.bytes == Self.raw)
        #expect(text.utf8.prefix(token.signedCount).elementsEqual(text.utf8.prefix(text.utf8.count - 87)))
    }

    @Test("Both alphabets are taken, with padding and without")
    func alphabets() throws {
        // The base64 form contains both characters in which the alphabets differ, and ends with padding.
        let head = #"{"alg":"ES256","kid":"ÿþ~?>ÿ","typ":"JWT"}"#
        let signature = [UInt8](repeating: 0xFB, count: 32) + [UInt8](repeating: 0xFF, count: 32)
        let parts = [Array(head.utf8), Array(Self.claims.utf8), signature]
        let standard = parts.map(Self.standard).joined(separator: ".")
        #expect(standard.contains("+") && standard.contains("/") && standard.contains("="))
        for text in [standard, parts.map(Self.url).joined(separator: ".")] {
            let token = try #require(self.token(text))
            #expect(token.keyID == "ÿþ~?>ÿ")
            #expect(token.signature.bytes == signature)
            #expect(token.signedCount == text.utf8.count - text.utf8.reversed().firstIndex(of: 0x2E)! - 1)
        }
    }

    @Test(
        "A moment of issue may be a whole number, a fraction or a string, in seconds or milliseconds",
        arguments: [
            ("1700000000", 1_700_000_000_000), ("1700000000.25", 1_700_000_000_250), ("1.7e9", 1_700_000_000_000),
            ("\"1700000000\"", 1_700_000_000_000), ("\"1700000000.5\"", 1_700_000_000_500),
            ("1459143580650", 1_459_143_580_650), ("\"1459143580650\"", 1_459_143_580_650), ("0", 0),
            ("-1", -1000), ("1795233957.1312345", 1_795_233_957_131),
        ] as [(String, Int64)]
    )
    func moments(iat: String, milliseconds: Int64) {
        #expect(self.token(Self.text(Self.head, #"{"iss":"T","iat":\#(iat)}"#))?.issuedAt == milliseconds)
    }

    @Test(
        "A token with a missing part, or another algorithm than ES256, is InvalidProviderToken",
        arguments: [
            "", ".", "..", "a.b", "a.b.c", Self.text() + ".", "." + Self.text(), Self.text() + "*",
            String(Self.text().dropLast(2)),
            Self.text("[]"), Self.text("{"), Self.text("{}"), Self.text(#"{"alg":"ES256"}"#),
            Self.text(#"{"alg":"none","kid":"K"}"#), Self.text(#"{"alg":"HS256","kid":"K"}"#),
            Self.text(#"{"alg":"es256","kid":"K"}"#), Self.text(#"{"alg":null,"kid":"K"}"#),
            Self.text(#"{"alg":"ES256","kid":"K","crit":["exp"],"exp":1}"#),
            Self.text(#"{"alg":"ES256","kid":"K","crit":["b64"],"b64":false}"#),
            Self.text(#"{"alg":"ES256","kid":"K","crit":[]}"#), Self.text(#"{"kid":"K","crit":null}"#),
            Self.text(#"{"alg":"none","alg":"ES256","kid":"K","crit":[],"typ":"JWT"}"#),
            Self.text(#"{"alg":"ES256","alg":"none","kid":"K"}"#),
            Self.text(#"{"kid":7}"#), Self.text(#"{"kid":""}"#),
            Self.text(Self.head, #"{"iat":1}"#), Self.text(Self.head, #"{"iss":"","iat":1}"#),
            Self.text(Self.head, #"{"iss":1,"iat":1}"#), Self.text(Self.head, #"{"iss":"T"}"#),
            Self.text(Self.head, #"{"iss":"T","iat":null}"#), Self.text(Self.head, #"{"iss":"T","iat":"now"}"#),
            Self.text(Self.head, #"{"iss":"T","iat":"inf"}"#), Self.text(Self.head, #"{"iss":"T","iat":""}"#),
            Self.text(Self.head, #"{"iss":"T","iat":1e15}"#), Self.text(Self.head, #"{"iss":"T","iat":1e999}"#),
            Self.text(Self.head, Self.claims, []), Self.text(Self.head, Self.claims, [UInt8](1...63)),
            Self.text(Self.head, Self.claims, [UInt8](1...65)),
            Self.text(#"{"kid":"\#(String(repeating: "k", count: 4000))"}"#),
        ]
    )
    func invalid(text: String) {
        #expect(self.reason(text) == .invalidProviderToken)
    }

    @Test("Without an algorithm it is ES256, as in Apple's sample; other members are skipped")
    func lax() {
        #expect(self.reason(Self.text(#"{"kid":"K"}"#)) == nil)
        #expect(self.reason(Self.text("{\n \"kid\" : \"K\", \"typ\":\"x\", \"x\":[{}] }")) == nil)
        #expect(self.reason(Self.text(Self.head, #"{"iss":"T","iat":1,"kid":"K","exp":0}"#)) == nil)
    }

    @Test("A token is good for an hour, and an hour before it was made")
    func age() throws {
        let token = try #require(self.token(Self.text()))
        let made: Int64 = 1_700_000_000_000
        for (now, isExpired) in [(0, false), (3_600_000, false), (3_600_001, true), (-3_600_000, false)] {
            #expect(token.isExpired(now: made + Int64(now)) == isExpired)
        }
        #expect(token.isExpired(now: made - 3_600_001))
        #expect(token.isExpired(now: 0))
    }

    @Test(
        "The scheme is taken in any case; without a token in it, it is MissingProviderToken",
        arguments: [
            ("bearer a.b.c", "a.b.c"), ("Bearer a", "a"), ("BEARER   a ", "a"), ("bearer", nil), ("bearer ", nil),
            ("bearer    ", nil), ("bEaReR a.b", "a.b"), ("bear\u{12}r a", nil), ("\"earer a", nil),
            ("basic a.b.c", nil), ("bearera.b.c", nil), ("a.b.c", nil), ("", nil),
        ] as [(String, String?)]
    )
    func scheme(value: String, token: String?) {
        let found = value.withByteView { try? ProviderToken.text(inAuthorization: $0).string }
        #expect(found == token)
    }

    @Test("No authorization at all is MissingProviderToken")
    func absent() {
        #expect(throws: APNSReason.missingProviderToken) { try ProviderToken.text(inAuthorization: nil).string }
    }
}

@Suite("Reading an ES256 signature")
struct ProviderSignatureTests {
    private func read(_ bytes: [UInt8]) -> [UInt8]? {
        bytes.withByteView { ProviderSignature($0)?.bytes }
    }

    private func integer(_ digits: [UInt8]) -> [UInt8] { [0x02, UInt8(digits.count)] + digits }

    private func sequence(_ body: [UInt8]) -> [UInt8] { [0x30, UInt8(body.count)] + body }

    private let zeros = [UInt8](repeating: 0, count: 31)

    @Test("64 bytes are read as raw R and S, even when they look like DER")
    func raw() {
        #expect(self.read([UInt8](1...64)) == [UInt8](1...64))
        let der = self.sequence(self.integer([UInt8](repeating: 1, count: 30)) + self.integer([UInt8](1...28)))
        #expect(der.count == 64)
        #expect(self.read(der) == der)
    }

    @Test("DER numbers of any length are brought to 32 bytes")
    func der() {
        let long = [UInt8](repeating: 0xFF, count: 32)
        #expect(self.read(self.sequence(self.integer([0] + long) + self.integer([7]))) == long + self.zeros + [7])
        #expect(self.read(self.sequence(self.integer([7]) + self.integer([0] + long))) == self.zeros + [7] + long)
        #expect(
            self.read(self.sequence(self.integer([0, 0, 7]) + self.integer([0]))) == self.zeros + [7] + self.zeros + [0]
        )
    }

    @Test("Every other sequence of bytes is refused, and every beginning of a good one")
    func faults() {
        let good = self.sequence(self.integer([1, 2]) + self.integer([3, 4]))
        for count in 0..<good.count { #expect(self.read(Array(good[..<count])) == nil, "\(count) bytes") }
        #expect(self.read(good + [0]) == nil)
        #expect(self.read(self.sequence(self.integer([1]))) == nil)
        #expect(self.read(self.sequence(self.integer([1]) + self.integer([2]) + self.integer([3]))) == nil)
        #expect(self.read(self.sequence(self.integer([0x80]) + self.integer([1]))) == nil)
        #expect(self.read(self.sequence(self.integer([]) + self.integer([1]))) == nil)
        #expect(self.read(self.sequence([0x04, 1, 1] + self.integer([1]))) == nil)
        #expect(self.read(self.sequence([0x02, 9, 1] + self.integer([1]))) == nil)
        #expect(self.read(self.sequence(self.integer([1] + self.zeros + [1]) + self.integer([1]))) == nil)
        #expect(self.read([0x31] + good.dropFirst()) == nil)
        #expect(self.read([0x30, 0x81, 6] + good.dropFirst(2)) == nil)
    }
}
