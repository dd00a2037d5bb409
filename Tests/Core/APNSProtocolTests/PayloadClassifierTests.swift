import Foundation
import Testing
import WakeGateTestKit
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

@Suite("JSON gate against Foundation's parser", .timeLimit(.minutes(15)))
struct JSONGateCorpusTests {
    private static let seeds = [
        "{\"aps\":{\"content-available\":1},\"id\":\"9d3220fe\",\"n\":[1,-2.5e3,0,true,false,null]}",
        "{\"a\":{\"b\":{\"c\":[[],{},[{}]]}},\"\\u0061ps\":\"\\n\\t\\\"\\\\\\/\"}", "[1,2,3,\"x\"]", "{\"ü\":\"日本語🦊\"}",
        " { \"k\" : [ 1 , 2 ] , \"l\" : { } } ", "{\"e\":1e5,\"f\":1E-5,\"g\":-0.25,\"h\":12345678901}",
    ]
    private static let pieces = [
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u0041", "1", "0", "-", ".", "e", "true", "null", " ", "\n", "a",
        "{}", "[]", "\"aps\":", "\u{1}", "é",
    ]

    private static func mutated(_ generator: inout SeededGenerator) -> [UInt8] {
        var text = [UInt8](Self.seeds.randomElement(using: &generator)?.utf8 ?? "".utf8)
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            let place = Int.random(in: 0...text.count, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: text.insert(contentsOf: (Self.pieces.randomElement(using: &generator) ?? "").utf8, at: place)
            case 1 where place < text.count: text.remove(at: place)
            case 2 where place < text.count: text[place] = UInt8.random(in: 0...255, using: &generator)
            default:
                let end = Int.random(in: place...text.count, using: &generator)
                text.insert(contentsOf: text[place..<end], at: place)
            }
        }
        return text
    }

    /// Returns true for the intended differences: Foundation guesses UTF-16 and UTF-32 from zero bytes and byte order
    /// marks, accepts a comma after the last element, and rejects numbers that do not fit in a Double and escapes of
    /// unpaired surrogates.
    private static func isMeant(_ text: [UInt8]) -> Bool {
        if text.prefix(4).contains(0) || text.first ?? 0 >= 0xEF { return true }
        let string = String(decoding: text, as: UTF8.self).lowercased()
        return string.contains(/,[ \n\r\t]*[\]}]/) || string.contains("\\ud") || string.contains(/[0-9]e\+?[0-9]{3}/)
            || string.contains(/[0-9]{18}/)
    }

    @Test("Both accept the same documents, except for intended differences", arguments: [1, 2, 3] as [UInt64])
    func agreement(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var taken = 0
        var refused = 0
        for _ in 0..<4000 {
            let text = Self.mutated(&generator)
            let verdict = text.withByteView { PayloadClassifier.classify($0) }
            let tree = try? JSONSerialization.jsonObject(with: Data(text), options: .fragmentsAllowed)
            guard !Self.isMeant(text) else { continue }
            let shown = String(decoding: text, as: UTF8.self)
            #expect((verdict != .notJSON) == (tree != nil), "seed \(seed): \(shown)")
            guard let tree else {
                refused += 1
                continue
            }
            taken += 1
            #expect((verdict != .notAnObject) == (tree is [String: Any]), "seed \(seed): \(shown)")
        }
        #expect(taken > 500 && refused > 500, "seed \(seed): \(taken) taken, \(refused) refused")
    }
}
