import HTTPTransport
import Testing

@Suite("Message authentication codes")
struct MessageCodeTests {
    private func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test("The codes are those of RFC 4231")
    func vectors() throws {
        let first = try MessageCode.make(Array("Hi There".utf8), key: Array(repeating: 0x0b, count: 20))
        #expect(self.hexadecimal(first) == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
        let second = try MessageCode.make(Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8))
        #expect(self.hexadecimal(second) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    }

    @Test("Codes are the same only when every byte is, and the lengths are")
    func equality() {
        let code = [UInt8](0..<32)
        #expect(MessageCode.isEqual(code, code))
        for index in code.indices {
            var other = code
            other[index] ^= 0x80
            #expect(!MessageCode.isEqual(code, other))
        }
        #expect(!MessageCode.isEqual(code, Array(code.dropLast())))
        #expect(!MessageCode.isEqual(Array(code.dropLast()), code))
        #expect(!MessageCode.isEqual(code, []))
    }
}
