import Testing
import WakeGateTestKit
import Wire

@Suite("Push identifiers")
struct APNsIDTests {
    private static func text(_ id: APNsID) -> String {
        var buffer = ByteBuffer()
        id.write(to: &buffer)
        return buffer.view.string
    }

    @Test(
        "An identifier is written back byte for byte",
        arguments: [
            "9d3220fe-444b-633e-d1f1-5d0dcb4f537a", "9D3220FE-444B-633E-D1F1-5D0DCB4F537A",
            "9D3220fe-444B-633e-d1F1-5d0DcB4f537A", "00000000-0000-0000-0000-000000000000",
            "FFFFFFFF-ffff-FFFF-ffff-FFFFFFFFFFFF", "01234567-89ab-cdef-ABCD-EF0123456789",
        ]
    )
    func roundTrip(text: String) throws {
        let id = try #require(text.withByteView { APNsID($0) })
        #expect(Self.text(id) == text)
        #expect(APNsID(first: id.first, second: id.second, upperCase: id.upperCase) == id)
    }

    @Test("Any mixture of cases is written back, and all of them name the same push")
    func cases() throws {
        let letters = "abcdefab-cdef-abcd-efab-cdefabcdefab"
        var generator = SeededGenerator(seed: 11)
        var seen: [String: APNsID] = [:]
        for _ in 0..<500 {
            let text = String(letters.map { Bool.random(using: &generator) ? Character($0.uppercased()) : $0 })
            let id = try #require(text.withByteView { APNsID($0) })
            #expect(Self.text(id) == text)
            seen[text] = id
        }
        #expect(seen.count > 490)
        #expect(Set(seen.values).count == 1)
        let lower = try #require(letters.withByteView { APNsID($0) })
        #expect(seen.values.count { $0.isSpelled(as: lower) } == (seen[letters] == nil ? 0 : 1))
        #expect(seen.values.allSatisfy { $0 == lower && $0.isSpelled(as: $0) })
        let other = try #require("abcdefab-cdef-abcd-efab-cdefabcdefac".withByteView { APNsID($0) })
        #expect(other != lower)
    }

    @Test(
        "Anything but 8-4-4-4-12 digits is no identifier",
        arguments: [
            "", "x", "9d3220fe444b633ed1f15d0dcb4f537a", "9d3220fe-444b-633e-d1f1-5d0dcb4f537",
            "9d3220fe-444b-633e-d1f1-5d0dcb4f537aa", "{9d3220fe-444b-633e-d1f1-5d0dcb4f537}",
            "9d3220fe-444b-633e-d1f15-d0dcb4f537a", "9d3220f-e444b-633e-d1f1-5d0dcb4f537a",
            "9d3220fe 444b 633e d1f1 5d0dcb4f537a", "9d3220fe-444b-633e-d1f1-5d0dcb4f537g",
            "------------------------------------", "9d3220fé-444b-633e-d1f1-5d0dcb4f537",
        ]
    )
    func malformed(text: String) {
        #expect(text.withByteView { APNsID($0) } == nil)
    }

    @Test("A wrong character at any place makes it no identifier")
    func everyPlace() {
        for place in 0..<36 {
            for byte: UInt8 in [0, 0x20, 0x2E, 0x2F, 0x3A, 0x47, 0x5F, 0x67, 0xB0, 0xFF] {
                var text = [UInt8]("9d3220fe-444b-633e-d1f1-5d0dcb4f537a".utf8)
                text[place] = byte
                #expect(text.withByteView { APNsID($0) } == nil, "byte \(byte) at \(place)")
            }
        }
    }

    @Test("Random identifiers are lower-case and read back the same")
    func random() throws {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<500 {
            let id = APNsID(random: (generator.next(), generator.next()))
            let text = Self.text(id)
            #expect(text == text.lowercased())
            #expect(try #require(text.withByteView { APNsID($0) }) == id)
        }
    }
}
