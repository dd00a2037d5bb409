import Foundation
import Testing
import WakeGateTestKit
import Wire

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

    /// The differences that are meant: Foundation guesses UTF-16 and UTF-32 from zero bytes and from byte order marks,
    /// takes a comma after the last element, and refuses numbers that no Double holds and escapes that name half a
    /// surrogate pair.
    private static func isMeant(_ text: [UInt8]) -> Bool {
        if text.prefix(4).contains(0) || text.first ?? 0 >= 0xEF { return true }
        let string = String(decoding: text, as: UTF8.self).lowercased()
        return string.contains(/,[ \n\r\t]*[\]}]/) || string.contains("\\ud") || string.contains(/[0-9]e\+?[0-9]{3}/)
            || string.contains(/[0-9]{18}/)
    }

    @Test("Both take the same documents, but for the differences that are meant", arguments: [1, 2, 3] as [UInt64])
    func agreement(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var taken = 0
        var refused = 0
        for _ in 0..<4000 {
            let text = Self.mutated(&generator)
            let verdict = text.withByteView { JSONGate.judge($0) }
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

    @Test("Large numbers and half pairs are taken; encodings are not guessed, commas not forgiven")
    func meant() {
        for text in ["{\"a\":1e400}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\\udc00\\ud800\"}"] {
            #expect(text.withByteView { JSONGate.judge($0) } == .doesNotWake)
        }
        for text in ["{\"a\":1,}", "{\"a\":[1,]}", "[1, ]"] {
            #expect(text.withByteView { JSONGate.judge($0) } == .notJSON)
        }
        for bytes: [UInt8] in [[0xEF, 0xBB, 0xBF, 0x7B, 0x7D], [0x7B, 0, 0x7D, 0], [0xFF, 0xFE, 0x7B, 0, 0x7D, 0]] {
            #expect(bytes.withByteView { JSONGate.judge($0) } == .notJSON)
        }
    }
}
