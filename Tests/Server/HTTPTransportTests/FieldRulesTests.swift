import HTTPTransport
import Testing
import Wire

@Suite("The rules for the fields of a request")
struct FieldRulesTests {
    /// How many bytes are looked at: in pieces of eight and of sixteen, the last of which overlaps the one before it.
    static let counts = Array(1...25) + [31, 32, 33, 47, 49]

    private func admits(_ name: [UInt8], _ value: [UInt8]) -> Bool {
        name.withByteView { name in
            value.withByteView { value in
                var rules = FieldRules.head
                var note: UInt32 = 0
                return rules.admit(name, value, &note) != nil
            }
        }
    }

    /// What RFC 9113 §8.2.1 forbids in a value, byte by byte.
    private func isForbidden(_ byte: UInt8, atEnd: Bool) -> Bool {
        switch byte {
        case 0x09, 0x20: atEnd
        case 0x00..<0x20, 0x7F: true
        default: false
        }
    }

    @Test("Every byte is judged alike at every place of a value, whatever its length", arguments: Self.counts)
    func values(count: Int) {
        for place in 0..<count {
            for byte in UInt8.min...UInt8.max {
                var value = [UInt8](repeating: UInt8(ascii: "v"), count: count)
                value[place] = byte
                let isForbidden = self.isForbidden(byte, atEnd: place == 0 || place == count - 1)
                #expect(self.admits([UInt8]("x".utf8), value) == !isForbidden, "\(byte) at \(place) of \(count)")
            }
        }
    }

    @Test("Every byte is judged alike at every place of a path, whatever its length", arguments: Self.counts)
    func paths(count: Int) {
        for place in 0..<count {
            for byte in UInt8.min...UInt8.max {
                var value = [UInt8](repeating: UInt8(ascii: "/"), count: count)
                value[place] = byte
                let isVisible = byte > 0x20 && byte != 0x7F
                #expect(self.admits([UInt8](":path".utf8), value) == isVisible, "\(byte) at \(place) of \(count)")
            }
        }
    }

    @Test("Every byte is judged alike at every place of a name, whatever its length", arguments: 1...25)
    func names(count: Int) {
        let allowed = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz".utf8)
        for place in 0..<count {
            // One with a colon at its beginning is another kind of field.
            for byte in UInt8.min...UInt8.max where place > 0 || byte != UInt8(ascii: ":") {
                var name = [UInt8](repeating: UInt8(ascii: "n"), count: count)
                name[place] = byte
                #expect(self.admits(name, []) == allowed.contains(byte), "\(byte) at \(place) of \(count)")
            }
        }
        #expect(!self.admits([], []))
    }

    @Test("An authority has the signs of RFC 3986, a scheme begins with a letter")
    func authorities() {
        for text in ["", "h", "example.com:2197", "[::1]:2197", "a_b", "user@h", "%41"] {
            #expect(self.admits([UInt8](":authority".utf8), [UInt8](text.utf8)), "\(text)")
            #expect(self.admits([UInt8]("host".utf8), [UInt8](text.utf8)), "\(text)")
        }
        for text in ["h h", "h/", "h\"", "<h>", "h\\", "{h}", "\u{E9}"] {
            #expect(!self.admits([UInt8](":authority".utf8), [UInt8](text.utf8)), "\(text)")
        }
        for text in ["https", "http", "coap+tcp"] { #expect(self.admits([UInt8](":scheme".utf8), [UInt8](text.utf8))) }
        for text in ["", "1http", "ht tp", "+x"] { #expect(!self.admits([UInt8](":scheme".utf8), [UInt8](text.utf8))) }
    }

    @Test(
        "A content-length is a number that fits 64 bits",
        arguments: [
            ("0", true), ("18446744073709551615", true), ("18446744073709551616", false), ("", false), ("-1", false),
            ("+1", false), ("1 ", false), ("0x1", false),
        ]
    )
    func contentLength(text: String, isGood: Bool) {
        #expect(self.admits([UInt8]("content-length".utf8), [UInt8](text.utf8)) == isGood)
    }
}
