import Foundation
import Testing
import WakeGateTestKit
import Wire

@Suite("Base64", .timeLimit(.minutes(15)))
struct Base64Tests {
    @Test(
        "The examples of RFC 4648, section 10, are spelt without padding, and read with it and without",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ]
    )
    func examples(bytes: String, padded: String) {
        let bare = String(padded.prefix { $0 != "=" })
        #expect(Base64.urlText(Array(bytes.utf8)) == bare)
        for text in [padded, bare] {
            #expect(text.withByteView { Base64.decoded($0) } == Array(bytes.utf8))
        }
    }

    @Test("Both alphabets are read, and that for URLs is written")
    func alphabets() {
        let bytes: [UInt8] = [0xFB, 0xEF, 0xFF]
        #expect(Base64.urlText(bytes) == "--__")
        for text in ["--__", "++//", "-+/_"] {
            #expect(text.withByteView { Base64.decoded($0) } == bytes)
        }
    }

    @Test("Invalid base64 is refused", arguments: ["A", "AAAAA", "AA A", "AA\n", "A=AA", "AAA*", "A===", "ÄAA"])
    func unknown(text: String) {
        #expect(text.withByteView { Base64.decoded($0) } == nil)
    }

    @Test("Encoded bytes of every length decode to the same")
    func everyLength() {
        var generator = SeededGenerator(seed: 4648)
        for count in 0..<100 {
            let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            #expect(Base64.urlText(bytes).withByteView { Base64.decoded($0) } == bytes)
        }
    }
}

@Suite("Writing JSON")
struct JSONWriterTests {
    @Test("Members and elements are separated, nested containers too")
    func separators() {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("a")
        writer.beginArray()
        writer.endArray()
        writer.key("b")
        writer.beginArray()
        writer.integer(1)
        writer.beginObject()
        writer.endObject()
        writer.number(0.5)
        writer.number(.infinity)
        writer.endArray()
        writer.key("c" as String)
        writer.bool(true)
        writer.key("d")
        writer.null()
        writer.key("e")
        writer.raw(ByteView("[2]"))
        writer.endObject()
        let text = writer.buffer.view.string
        #expect(text == "{\"a\":[],\"b\":[1,{},0.5,null],\"c\":true,\"d\":null,\"e\":[2]}")
        writer.removeAll()
        writer.bool(false)
        let second = writer.buffer.view.string
        #expect(second == "false")
    }

    @Test("Any text reads back the same")
    func escapes() throws {
        let controls = String(String.UnicodeScalarView((0..<0x80).compactMap { Unicode.Scalar($0) }))
        for text in ["", controls, "\"\\/", "häßlich", "日本語", "🦊\u{2028}"] {
            var writer = JSONWriter()
            writer.beginArray()
            writer.string(text)
            writer.endArray()
            let data = Data(writer.buffer.view.array)
            #expect(try JSONSerialization.jsonObject(with: data) as? [String] == [text])
        }
    }

    /// Returns the JSON string of these bytes without its quotation marks.
    private static func written(_ bytes: [UInt8]) -> [UInt8] {
        var writer = JSONWriter()
        bytes.withByteView { writer.string($0) }
        return Array(writer.buffer.view.array.dropFirst().dropLast())
    }

    @Test(
        "Bytes that are no character become U+FFFD, one for each beginning of a character that nothing completes",
        arguments: [
            ([0xFF], "\u{FFFD}"), ([0x80, 0x80], "\u{FFFD}\u{FFFD}"), ([0xC3], "\u{FFFD}"),
            ([0xC3, 0x28], "\u{FFFD}("),
            ([0xC0, 0xAF], "\u{FFFD}\u{FFFD}"), ([0xE2, 0x80, 0x41], "\u{FFFD}A"), ([0xE2, 0x80], "\u{FFFD}"),
            ([0xED, 0xA0, 0x80], "\u{FFFD}\u{FFFD}\u{FFFD}"), ([0xF0, 0x9F, 0xA6], "\u{FFFD}"),
            ([0xF4, 0x90, 0x80, 0x80], "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"), ([0xE2, 0x22], "\u{FFFD}\\\""),
            ([0xF0, 0x9F, 0xC3, 0xA9], "\u{FFFD}é"), ([0xC2, 0xE2, 0x80, 0xA8], "\u{FFFD}\\u2028"),
        ] as [([UInt8], String)]
    )
    func outsideUTF8(bytes: [UInt8], expected: String) {
        for position in [0, 1, 14, 15, 16, 17, 40] {
            let plain = [UInt8](repeating: UInt8(ascii: "p"), count: position)
            #expect(Self.written(plain + bytes) == plain + Array(expected.utf8))
            #expect(Self.written(plain + bytes + plain) == plain + Array(expected.utf8) + plain)
        }
    }

    @Test("Unicode line separators are written as escapes, and the characters around them unchanged")
    func lineEnds() {
        let text = "a\u{85}b\u{2028}c\u{2029}\n\u{84}\u{86}\u{2027}\u{202A}\u{2068}é\u{10185}"
        let expected = "a\\u0085b\\u2028c\\u2029\\n\u{84}\u{86}\u{2027}\u{202A}\u{2068}é\u{10185}"
        for position in [0, 13, 14, 15, 16, 31] {
            let plain = [UInt8](repeating: UInt8(ascii: "p"), count: position)
            #expect(Self.written(plain + Array(text.utf8)) == plain + Array(expected.utf8))
        }
    }

    /// Returns the expected text by the rules, character by character, from the standard library's decoding of the
    /// bytes.
    private static func expected(_ bytes: [UInt8]) -> [UInt8] {
        let escapes: [Unicode.Scalar: String] = [
            "\"": "\\\"", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\u0000", "\u{7F}": "\\u007f",
            "\u{85}": "\\u0085", "\u{2028}": "\\u2028", "\u{2029}": "\\u2029",
        ]
        return String(decoding: bytes, as: UTF8.self).unicodeScalars.flatMap { Array((escapes[$0] ?? String($0)).utf8) }
    }

    @Test("A byte sequence is a character or not, whatever its first byte")
    func sequences() {
        let others: [UInt8] = [
            0x00, 0x22, 0x41, 0x7F, 0x80, 0x85, 0x8F, 0x90, 0x9F, 0xA0, 0xA8, 0xA9, 0xBF, 0xC3, 0xE2, 0xF0,
        ]
        var isAsExpected = true
        for first in UInt8(0x7F)...0xFF {
            for second in others {
                for third in others {
                    for end in [[], [0xA8], [0x41, 0x42, 0x43]] as [[UInt8]] {
                        let bytes = [first, second, third] + end
                        isAsExpected = isAsExpected && Self.written(bytes) == Self.expected(bytes)
                    }
                }
            }
        }
        #expect(isAsExpected)
    }

    @Test("A JSON text is written as one line with the same value, at any alignment")
    func line() throws {
        let text = "{\"a\" :\r\n[\"\u{2028}\\\\\u{2029}\", \"häßlich \u{85} 日本語\"],\n\"long enough for a word\":\t{}\r}"
        for position in 0..<20 {
            let json = String(repeating: " ", count: position) + text
            var buffer = ByteBuffer()
            json.withByteView { buffer.appendJSONLine($0) }
            let line = buffer.view.string
            #expect(!line.contains { $0.isNewline })
            #expect(line.unicodeScalars.allSatisfy { ![0x85, 0x2028, 0x2029, 0x0A, 0x0D].contains($0.value) })
            let read = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? NSDictionary
            #expect(try read == JSONSerialization.jsonObject(with: Data(json.utf8)) as? NSDictionary)
        }
        var buffer = ByteBuffer()
        ([0x22, 0xE2, 0x80, 0x22] as [UInt8]).withByteView { buffer.appendJSONLine($0) }
        let repaired = buffer.view.string
        #expect(repaired == "\"\u{FFFD}\"")
    }
}

@Suite("W3C traceparent")
struct TraceParentTests {
    private static let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    private static func written(_ parent: TraceParent) -> String {
        var buffer = ByteBuffer()
        parent.write(to: &buffer)
        return buffer.view.string
    }

    private static func read(_ text: String) -> TraceParent? { text.withByteView { TraceParent($0) } }

    @Test("A valid header is written back byte for byte", arguments: ["00", "01", "02", "ff"])
    func roundTrip(flags: String) throws {
        let text = Self.text.dropLast(2) + flags
        #expect(Self.written(try #require(Self.read(String(text)))) == text)
    }

    @Test("The known parts of a newer version are read, and written as version 00")
    func newer() throws {
        let parts = Self.text.dropFirst(2).dropLast(2)
        #expect(Self.written(try #require(Self.read("cc\(parts)03"))) == "00\(parts)01")
        #expect(Self.written(try #require(Self.read("01\(parts)02-what-comes"))) == "00\(parts)00")
        #expect(Self.read("01\(parts)01.what") == nil)
    }

    @Test(
        "A header that does not follow the W3C text is ignored",
        arguments: [
            "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", text + "-", text + "0", " " + text,
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-B7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0A",
            "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ]
    )
    func ignored(text: String) {
        #expect(Self.read(text) == nil)
    }
}
