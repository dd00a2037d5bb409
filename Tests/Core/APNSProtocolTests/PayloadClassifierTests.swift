import Testing
import Wire

@Suite("JSON gate")
struct PayloadClassifierTests {
    private static func classify(_ text: String) -> JSONVerdict {
        text.withByteView { PayloadClassifier.classify($0) }
    }

    @Test(
        "Text that RFC 8259 allows is JSON",
        arguments: [
            "0", "-0", "10", "-1.5", "1e400", "1E+9", "1e-9", "123456789012345678901234567890.5", "0.0e00", "\"\"",
            "null",
            "true", "false", "[]", "[ ]", "[1 , 2]", " \t\r\n1\n",
            "\"\\u0000\\\"\\\\\\/\\b\\f\\n\\r\\t\\uD800\\udc00x\"", "\"\\ud800\"", "\"\\udc00\\ud800\"",
            "\"\u{7F}\u{80}\u{7FF}\u{800}\u{FFFF}\u{10000}\u{10FFFF}\"", "[[],[[]],{}]", "[{\"a\":[]}]", "\"12345678\"",
        ]
    )
    func json(text: String) {
        #expect(Self.classify(text) == .notAnObject)
        #expect(Self.classify("{\"\":\(text)}") == .doesNotWake)
        #expect(Self.classify(" {\"a\" : \(text), \"a\":[\(text),\(text)]} ") == .doesNotWake)
        #expect(Self.classify("{\"a\":\(text)") == .notJSON)
        #expect(Self.classify("{\"a\":\(text)}}") == .notJSON)
        #expect(Self.classify("{\"a\":\(text)},") == .notJSON)
    }

    @Test(
        "Text that RFC 8259 does not allow is not JSON",
        arguments: [
            "", " ", "{", "}", "[", "]", "{]", "[}", "[1,]", "[1, ]", "[,1]", "[1 2]", "{,}", "{\"a\"}", "{\"a\":}",
            "{\"a\":1,}", "{\u{0}}\u{0}",
            "{a:1}", "{'a':1}", "{1:1}", "{\"a\":1 \"b\":2}", "{\"a\"::1}", "{\"a\",1}", "01", "-", "-01", "+1", ".5",
            "1.",
            "1.e1", "1e", "1e+", "0x1", "NaN", "Infinity", "-Infinity", "tru", "True", "nul", "fals", "truefalse",
            "nullx",
            "\"", "\"a", "\"\\", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u123g\"", "\"\\u", "\"\\U0041\"", "\"a\nb\"",
            "\"\t\"",
            "\"\u{0}\"", "\"\u{1F}\"", "/**/1", "1//", "\u{FEFF}{}", "\u{A0}1", "1\u{0}", "\u{0}", "\u{C}1", "[1]]",
            "\"a\"b",
        ]
    )
    func notJSON(text: String) {
        #expect(Self.classify(text) == .notJSON)
        if !text.allSatisfy(\.isWhitespace) { #expect(Self.classify("{\"a\":\(text)}") == .notJSON) }
    }

    @Test("No proper prefix of a document is valid JSON")
    func prefixes() {
        let text = [UInt8](
            "{\"aps\":{\"content-available\":1,\"b\":[true,null,-1.5e3]},\"ü\":\"\\u0041🦊 long enough\"}".utf8
        )
        for count in 0..<text.count {
            #expect(text.withByteView { PayloadClassifier.classify($0[0..<count]) } == .notJSON, "\(count)")
        }
        #expect(text.withByteView { PayloadClassifier.classify($0) } == .wakes)
    }

    @Test("A special byte ends the plain run at any place in it")
    func places() {
        for place in 0..<24 {
            for byte in UInt8.min...UInt8.max {
                var text = [UInt8](repeating: 0x61, count: 24)
                text[place] = byte
                let verdict = ([0x22] + text + [0x22]).withByteView { PayloadClassifier.classify($0) }
                let isPlain = (0x20..<0x80).contains(byte) && byte != 0x22 && byte != 0x5C
                #expect((verdict == .notAnObject) == isPlain, "byte \(byte) at \(place)")
            }
        }
    }

    @Test("Containers may be nested 512 deep, and no deeper")
    func nesting() {
        func nested(_ depth: Int, _ open: String, _ close: String) -> String {
            String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)
        }
        #expect(Self.classify(nested(512, "[", "]")) == .notAnObject)
        #expect(Self.classify(nested(513, "[", "]")) == .notJSON)
        #expect(Self.classify(nested(512, "{\"a\":", "}")) == .doesNotWake)
        #expect(Self.classify(nested(513, "{\"a\":", "}")) == .notJSON)
        #expect(Self.classify(nested(256, "[{\"a\":", "}]")) == .notAnObject)
        #expect(Self.classify(nested(257, "[{\"a\":", "}]")) == .notJSON)
        #expect(Self.classify(nested(256, "[{\"a\":", "]}")) == .notJSON)
        #expect(Self.classify(String(repeating: "[", count: 1_000_000)) == .notJSON)
        let wide = "{\"a\":[" + Array(repeating: "[[[]]]", count: 600).joined(separator: ",") + "]}"
        #expect(Self.classify(wide) == .doesNotWake)
    }

    @Test("Strings are well-formed UTF-8: exactly what the standard library decodes without repair")
    func utf8() {
        let edges: [UInt8] = [
            0x00, 0x22, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED,
            0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF7, 0xF8, 0xFF,
        ]
        var accepted = 0
        var wrong: [[UInt8]] = []
        for first in UInt8(0x80)...0xFF {
            for second in edges {
                for third in edges {
                    for fourth: UInt8 in [0x41, 0x7F, 0x80, 0xBF, 0xC0] {
                        let bytes = [first, second, third, fourth]
                        let isPlain = !bytes.contains { $0 < 0x20 || $0 == 0x22 }
                        let isValid = isPlain && String(validating: bytes, as: UTF8.self) != nil
                        let verdict = ([0x22] + bytes + [0x22]).withByteView { PayloadClassifier.classify($0) }
                        if (verdict == .notAnObject) != isValid { wrong.append(bytes) }
                        if isValid { accepted += 1 }
                    }
                }
            }
        }
        #expect(wrong.isEmpty, "\(wrong.prefix(5))")
        #expect(accepted > 1000)
    }

    @Test(
        "Only the integer 1, written 1, wakes; 0, false and null ask for no wake, and all else is a mistake",
        arguments: [
            ("1", .wakes), (" 1 ", .wakes), ("0", .doesNotWake), ("null", .doesNotWake), ("false", .doesNotWake),
            ("1.0", .wrongContentAvailable), ("1e0", .wrongContentAvailable), ("10", .wrongContentAvailable),
            ("-1", .wrongContentAvailable), ("11", .wrongContentAvailable), ("true", .wrongContentAvailable),
            ("\"1\"", .wrongContentAvailable), ("\"0\"", .wrongContentAvailable), ("[1]", .wrongContentAvailable),
            ("{\"a\":1}", .wrongContentAvailable), ("{\"content-available\":1}", .wrongContentAvailable),
            ("10e-1", .wrongContentAvailable), ("2", .wrongContentAvailable), ("0.0", .wrongContentAvailable),
        ] as [(String, JSONVerdict)]
    )
    func values(value: String, verdict: JSONVerdict) {
        #expect(Self.classify("{\"aps\":{\"content-available\":\(value)}}") == verdict)
        #expect(Self.classify("{\"aps\":{\"content-available\":\(value),\"content-available\":1}}") == verdict)
        #expect(Self.classify("{\"aps\":{\"alert\":\(value)},\"content-available\":\(value)}") == .doesNotWake)
    }

    @Test(
        "The first member of each name counts, names being read without escapes",
        arguments: [
            ("{\"aps\":{\"content-available\":1,\"content-available\":0}}", true),
            ("{\"aps\":{\"content-available\":0,\"content-available\":1}}", false),
            ("{\"aps\":{},\"aps\":{\"content-available\":1}}", false),
            ("{\"aps\":1,\"aps\":{\"content-available\":1}}", false),
            ("{\"aps\":[{\"content-available\":1}]}", false),
            ("{\"aps\":[],\"x\":{\"content-available\":1}}", false),
            ("{\"aps\":{\"x\":{\"content-available\":1}}}", false),
            ("{\"aps\":{\"x\":{}, \"content-available\":1}}", true),
            ("{\"aps\":{\"x\":[[{}],1], \"content-available\":1}}", true),
            ("{\"content-available\":1}", false), ("{\"x\":{\"aps\":{\"content-available\":1}}}", false),
            ("[{\"aps\":{\"content-available\":1}}]", nil),
            ("{\"a\":1,\"aps\":{\"b\":2,\"content-available\":1}}", true),
            ("{\"\\u0061ps\":{\"content\\u002Davailable\":1}}", true),
            ("{\"\\u0061\\u0070\\u0073\":{\"content\\u002davailabl\\u0065\":1}}", true),
            ("{\"\\u0061ps\":{},\"aps\":{\"content-available\":1}}", false),
            ("{\"\\\\u0061ps\":{\"content-available\":1}}", false),
            ("{\"ap\\u0073x\":{\"content-available\":1}}", false),
            ("{\"ap\\n\":{\"content-available\":1}}", false), ("{\"ap\\u0173\":{\"content-available\":1}}", false),
            ("{\"\\u0061p\":{\"content-available\":1}}", false), ("{\"APS\":{\"content-available\":1}}", false),
            ("{\"aps\":{\"content_available\":1}}", false), ("{\"aps\":{\"content-available\":1}} x", nil),
            ("{\"b\":{\"content-available\":1},\"aps\":{}}", false),
            ("{\"aps\":{},\"b\":{\"content-available\":1}}", false),
        ] as [(String, Bool?)]
    )
    func members(text: String, wakes: Bool?) {
        let verdict = Self.classify(text)
        switch wakes {
        case true?: #expect(verdict == .wakes)
        case false?: #expect(verdict == .doesNotWake)
        case nil: #expect(verdict != .wakes && verdict != .doesNotWake)
        }
    }
}
