import CommandLineTool
import HTTPClient
import Testing
import Wire
import wakegate

@Suite("Advice after a push")
struct PushAdviceTests {
    private let device = String(repeating: "0badcafe", count: 8)

    private func answer(_ status: Int, _ outcome: String) -> PushAnswer {
        let response =
            status == 200
            ? HTTPResponse(status: 200, headers: [(name: "wakegate-disposition", value: outcome)])
            : HTTPResponse(status: status, body: Array("{\"reason\":\"\(outcome)\"}".utf8))
        return PushAnswer(response, now: 0)
    }

    @Test(
        "A duration with a unit becomes a UNIX time; any other text is sent unchanged",
        arguments: [
            ("10m", "700"), ("1.5h", "5500"), ("0.5s", "101"), ("0s", "0"), ("0", "0"), ("1700000000", "1700000000"),
            ("soon", "soon"),
        ]
    )
    func expirations(text: String, header: String) {
        #expect(PushCommand.expiration(text, now: 100_000) == header)
    }

    private func text(_ answer: PushAnswer, device: String? = nil, expiration: String? = nil, key: Bool = false)
        -> String?
    {
        PushAdvice(
            device: device ?? self.device,
            topic: "com.example.app",
            expiration: expiration,
            showsProviderToken: key
        ).text(answer)
    }

    @Test("Every reason of APNs is explained with advice", arguments: APNSReason.allCases)
    func reasons(reason: APNSReason) throws {
        let text = try #require(self.text(self.answer(reason.status, reason.rawValue)))
        #expect(!text.isEmpty && !text.contains("\n"))
    }

    @Test("Pushes with a wake need no advice; pushes without one have some")
    func accepted() {
        for disposition in ["launched", "scheduled", "coalesced"] {
            #expect(self.text(self.answer(200, disposition)) == nil)
        }
        #expect(self.text(self.answer(200, "no-wake"))?.contains("\"content-available\": 1") == true)
        #expect(self.text(self.answer(200, "discarded"), expiration: "0")?.contains("now or never") == true)
        #expect(self.text(self.answer(200, "discarded"), expiration: "7")?.contains("had expired") == true)
    }

    @Test("A malformed token is distinguished from an unregistered one")
    func deviceTokens() {
        let answer = self.answer(400, "BadDeviceToken")
        #expect(self.text(answer)?.contains("wakegate device register \(self.device) --topic com.example.app") == true)
        for wrong in ["zz", "0badcafe", String(repeating: "a", count: 33), String(repeating: "a", count: 202)] {
            #expect(self.text(answer, device: wrong)?.contains("is not a device token") == true, "\(wrong)")
        }
    }

    @Test("A refused provider token leads to the gateway's log, and a missing one to the options")
    func providerTokens() {
        let answer = self.answer(403, "InvalidProviderToken")
        #expect(self.text(answer, key: true)?.contains("providerTokenRefused") == true)
        #expect(self.text(answer)?.contains("--provider-key FILE") == true)
    }

    @Test("The exit status is that of the worst answer")
    func statuses() {
        var tally = PushTally()
        tally.add(self.answer(200, "coalesced"))
        #expect(tally.status == .wakes)
        tally.add(self.answer(200, "no-wake"))
        #expect(tally.status == .wakesNobody)
        tally.add(self.answer(410, "Unregistered"))
        tally.add(self.answer(200, "launched"))
        #expect(tally.status == .refused)
        #expect(tally.text == "4 pushes: 1 Unregistered, 1 coalesced, 1 launched, 1 no-wake\n")
    }

    @Test("A payload that the gateway would refuse is found before it is sent")
    func payloads() {
        func fault(_ text: String) -> String? { PushPayloadOption.fault(Array(text.utf8)) }
        #expect(
            fault(#"{"aps":{"content-available":1}"#)?.hasPrefix("ends too early, in the object that begins") == true
        )
        #expect(fault("{aps: 1}")?.hasPrefix("is not JSON: line 1, column 2: a name in double quotes") == true)
        #expect(fault("[1]") == "is JSON, but no object")
        #expect(fault("") == "is not JSON: it is empty")
        #expect(fault(" {\"a\": \"\\ud800\"}") == nil)
    }
}

@Suite("The token of a provider")
struct ProviderTokenTests {
    private func parsed(_ options: String) throws -> ParsedCommand {
        try .running("push ab --topic t \(options)")
    }

    @Test("Header and claims are signed in the form in which they are sent, in base64url")
    func form() throws {
        let token = try #require(try ProviderToken(self.parsed("--provider-key k.p8 --team T\"1 --key-id K1")))
        // Bytes whose base64 contains both characters that are invalid in URLs, and padding.
        let signature: [UInt8] = [0xFB, 0xFF, 0xFE, 0xFB]
        var signed = ""
        let header = try token.header(now: 1_700_000_000) { message, file in
            #expect(file == "k.p8")
            signed = String(decoding: message, as: UTF8.self)
            return signature
        }
        #expect(header == "bearer \(signed).-__--w")
        let parts = [#"{"alg":"ES256","kid":"K1"}"#, #"{"iss":"T\"1","iat":1700000000}"#]
        #expect(signed == parts.map { Base64.urlText(Array($0.utf8)) }.joined(separator: "."))
    }

    @Test("Without its options no token is created")
    func none() throws {
        #expect(try ProviderToken(self.parsed("")) == nil)
        #expect(try ProviderToken(self.parsed("--token abc")) == nil)
    }

    @Test(
        "Options that do not go together are refused with the one to write or to leave out",
        arguments: [
            ("--provider-key k --team T", "--key-id is missing with --provider-key; write --key-id ID"),
            ("--provider-key k --key-id K", "--team is missing with --provider-key; write --team TEAM"),
            ("--team T --key-id K", "--provider-key is missing with --team; write --provider-key FILE.p8"),
            ("--key-id K", "--provider-key is missing with --key-id; write --provider-key FILE.p8"),
            (
                "--provider-key k --team T --key-id K --token x",
                "--token and --provider-key both say who sends the push; leave one out"
            ),
        ]
    )
    func combinations(options: String, message: String) throws {
        let parsed = try self.parsed(options)
        #expect(throws: CommandFailure(.badUsage, message)) { try ProviderToken(parsed) }
    }

    @Test("A key that cannot sign ends the command with the cause")
    func failure() throws {
        struct Cause: Error, CustomStringConvertible { let description = "k is not a key; name another." }
        let token = try #require(try ProviderToken(self.parsed("--provider-key k --team T --key-id K")))
        #expect(throws: CommandFailure(.failed, "--provider-key: k is not a key; name another.")) {
            try token.header(now: 0) { _, _ in throw Cause() }
        }
    }
}
