import Testing
import Wire

@Suite("Method, path and token of a push")
struct PushTargetTests {
    private static func reason(_ method: String, _ path: String) -> APNSReason? {
        var push = PushFixture()
        push.method = method
        push.prefix = path
        push.token = ""
        return push.reason
    }

    private static let token = PushFixture().token

    @Test("Only POST is a push", arguments: ["GET", "PUT", "DELETE", "post", "POST ", "POS", "", "CONNECT", "OPTIONS"])
    func methods(method: String) {
        #expect(Self.reason(method, "/3/device/" + Self.token) == .methodNotAllowed)
        #expect(Self.reason(method, "/") == .methodNotAllowed)
    }

    @Test("A path without a token misses it")
    func noToken() {
        #expect(Self.reason("POST", "/3/device/") == .missingDeviceToken)
    }

    @Test(
        "Any other shape is a bad path",
        arguments: [
            "", "/", "*", "/3", "/3/device", "/3/devices/T", "/3/Device/T", "/2/device/T", "3/device/T", "//3/device/T",
            "/3//device/T", "/3/device//T", "/3/device/T/", "/3/device/T/x", "/3/device/T?x=1", "/3/device/T?",
            "/3/device/?", "/3/device//", "/3/device?T", "/v2/device/T", "/3/device/T/T", "/3/device/ab?",
            "/3/device/a/",
            "http://host/3/device/T",
        ]
    )
    func badPaths(path: String) {
        #expect(Self.reason("POST", path.replacing("T", with: Self.token)) == .badPath)
    }

    @Test("A slash or a question mark at any place after the prefix makes the path bad", arguments: ["/", "?"])
    func delimiters(delimiter: Character) {
        for count in [1, 7, 8, 9, 16, 63, 64] {
            for place in 0..<count {
                var digits = [Character](repeating: "a", count: count)
                digits[place] = delimiter
                #expect(Self.reason("POST", "/3/device/" + String(digits)) == .badPath, "\(place) of \(count)")
            }
        }
    }

    @Test("No other character is taken for a delimiter")
    func otherCharacters() {
        for byte in UInt8(1)..<0x80 where byte != UInt8(ascii: "/") && byte != UInt8(ascii: "?") {
            let digits = String(repeating: "a", count: 12) + String(Unicode.Scalar(byte))
            #expect(Self.reason("POST", "/3/device/" + digits) == .badDeviceToken, "byte \(byte)")
        }
    }

    @Test(
        "Tokens have 32 to 200 digits, an even number",
        arguments: [1, 2, 30, 31, 32, 33, 64, 160, 199, 200, 201, 202]
    )
    func counts(count: Int) {
        let isToken = count % 2 == 0 && (32...200).contains(count)
        let path = "/3/device/" + String(repeating: "a", count: count)
        #expect(Self.reason("POST", path) == (isToken ? nil : .badDeviceToken))
    }

    @Test("What is not hexadecimal is a bad token", arguments: ["g", " ", "%", "-", ".", "é", "#", "\u{0}"])
    func notHexadecimal(character: String) {
        let path = "/3/device/" + String(Self.token.dropLast(2)) + character + (character.utf8.count == 1 ? "0" : "")
        #expect(Self.reason("POST", path) == .badDeviceToken)
    }

    @Test("Upper and lower case name the same device")
    func cases() throws {
        var push = PushFixture()
        let lower = try push.check().get().token
        push.token = push.token.uppercased()
        #expect(try push.check().get().token == lower)
        #expect(lower.hex == Self.token)
    }
}
