import CommandLineTool
import Foundation
import Testing
import wakegate

@Suite("The token of a provider")
struct ProviderTokenTests {
    private func parsed(_ options: String) throws -> ParsedCommand {
        let words = "push ab --topic t \(options)".split(separator: " ").map(String.init)
        guard case .run(let parsed) = try CommandParser(CommandTable.all).parse(words) else {
            throw CommandFailure(.failed, "no push")
        }
        return parsed
    }

    private func decoded(_ part: Substring) throws -> String {
        var text = part.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        text += String(repeating: "=", count: (4 - text.count % 4) % 4)
        return String(decoding: try #require(Data(base64Encoded: text)), as: UTF8.self)
    }

    @Test("Head and claims are signed as they are sent, in base64 for URLs")
    func form() throws {
        let token = try #require(try ProviderToken(self.parsed("--provider-key k.p8 --team T\"1 --key-id K1")))
        // Bytes whose base64 has both letters that URLs do not take, and padding.
        let signature: [UInt8] = [0xFB, 0xFF, 0xFE, 0xFB]
        var signed = ""
        let header = try token.header(now: 1_700_000_000) { message, file in
            #expect(file == "k.p8")
            signed = String(decoding: message, as: UTF8.self)
            return signature
        }
        #expect(header == "bearer \(signed).-__--w")
        let parts = signed.split(separator: ".")
        #expect(parts.count == 2)
        #expect(try self.decoded(parts[0]) == #"{"alg":"ES256","kid":"K1"}"#)
        #expect(try self.decoded(parts[1]) == #"{"iss":"T\"1","iat":1700000000}"#)
    }

    @Test("Without its options there is no token")
    func none() throws {
        #expect(try ProviderToken(self.parsed("")) == nil)
        #expect(try ProviderToken(self.parsed("--token abc")) == nil)
    }

    @Test(
        "Options that do not go together are refused with the one to write or to leave out",
        arguments: [
            ("--provider-key k --team T", "--key-id is missing beside --provider-key; write --key-id ID"),
            ("--provider-key k --key-id K", "--team is missing beside --provider-key; write --team TEAM"),
            ("--team T --key-id K", "--provider-key is missing beside --team; write --provider-key FILE.p8"),
            ("--key-id K", "--provider-key is missing beside --key-id; write --provider-key FILE.p8"),
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
        struct Cause: Error, CustomStringConvertible { let description = "k is no key; name another." }
        let token = try #require(try ProviderToken(self.parsed("--provider-key k --team T --key-id K")))
        #expect(throws: CommandFailure(.failed, "--provider-key: k is no key; name another.")) {
            try token.header(now: 0) { _, _ in throw Cause() }
        }
    }
}
