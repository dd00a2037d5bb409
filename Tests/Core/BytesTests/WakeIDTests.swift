import Testing
import Wire

@Suite("Ids of wakes")
struct WakeIDTests {
    private static func text(_ id: WakeID) -> String {
        var buffer = ByteBuffer()
        id.write(to: &buffer)
        return buffer.view.string
    }

    @Test("An id is written as the digits of its words, the highest first")
    func digits() {
        #expect(Self.text(WakeID(random: (0x0123_4567_89AB_CDEF, 0xF))) == "0123456789abcdef000000000000000f")
    }

    @Test("What is written is read back, in either case")
    func roundTrip() {
        for bit in 0..<128 {
            let words: (UInt64, UInt64) = bit < 64 ? (1 << UInt64(bit), .max) : (0, 1 << UInt64(bit - 64))
            let id = WakeID(random: words)
            for text in [Self.text(id), Self.text(id).uppercased()] {
                #expect(text.withByteView { WakeID($0) } == id)
            }
        }
    }

    @Test(
        "Anything but 32 digits is no id",
        arguments: [
            "", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdef0",
            "0123456789abcdef0123456789abcdeg", "+123456789abcdef0123456789abcdef",
        ]
    )
    func refused(text: String) {
        #expect(text.withByteView { WakeID($0) } == nil)
    }

    @Test("Ids that differ in one word are not equal")
    func equality() {
        let ids = [(1, 2), (1, 3), (2, 2), (2, 1)].map { WakeID(random: $0) }
        #expect(Set(ids).count == ids.count)
        #expect(WakeID(random: (1, 2)) == ids[0])
    }
}
