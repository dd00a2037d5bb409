import Testing
import Wire

@Suite("Hexadecimal digits, eight at a time")
struct HexadecimalWordTests {
    @Test("Every byte at every place is a digit exactly when it is one of 0-9, a-f, A-F")
    func everyByte() {
        let digits = Set("0123456789abcdefABCDEF".utf8)
        for place in 0..<8 {
            for byte in UInt8.min...UInt8.max {
                var text = [UInt8]("0f9A1b2C".utf8)
                text[place] = byte
                let bytes = HexadecimalWord.decode(text.withByteView { $0.word(at: 0) })
                #expect((bytes != nil) == digits.contains(byte), "byte \(byte) at \(place)")
                let expected = stride(from: 0, to: 8, by: 2).map { index in
                    UInt8(String(decoding: text[index...index + 1], as: UTF8.self), radix: 16)
                }
                guard let bytes, !expected.contains(nil) else { continue }
                #expect((0..<4).map { UInt8(truncatingIfNeeded: bytes >> ($0 * 8)) } == expected.compactMap { $0 })
            }
        }
    }

    @Test("Two neighbours that are not digits never make up for each other")
    func everyPair() {
        var wrong = 0
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                let word = 0x3030_3030_3030_0000 | UInt64(second) << 8 | UInt64(first)
                let isRight = first.hexDigitValue != nil && second.hexDigitValue != nil
                if (HexadecimalWord.decode(word) != nil) != isRight { wrong += 1 }
            }
        }
        #expect(wrong == 0)
    }

    @Test("Each byte is written as its two lower-case digits")
    func encoding() {
        for byte in UInt8.min...UInt8.max {
            let word = HexadecimalWord.encode(UInt32(byte) << 8 | 0x0A)
            let text = String(decoding: (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }, as: UTF8.self)
            let digits = String(byte, radix: 16)
            #expect(text == "0a" + (digits.count == 1 ? "0" : "") + digits + "0000")
        }
    }

    @Test("The mask of upper-case letters restores them", arguments: ["ABCDEF09", "aBcDeF09", "00000000", "F123456A"])
    func upperCase(text: String) throws {
        let word = text.withByteView { $0.word(at: 0) }
        let mask = HexadecimalWord.upperCaseMask(word)
        let letters = text.enumerated().filter { $0.element.isUppercase }.map { UInt32(1) << UInt32($0.offset) }
        #expect(mask == letters.reduce(0, |))
        let bytes = try #require(HexadecimalWord.decode(word))
        #expect(HexadecimalWord.applyUpperCase(HexadecimalWord.encode(bytes), mask: mask) == word)
    }
}
