import Testing
import WakeGateTestKit
import Wire

@Suite("Device tokens")
struct DeviceTokenTests {
    private static func hex(count: Int, seed: UInt64) -> String {
        var generator = SeededGenerator(seed: seed)
        return String((0..<count).map { _ in Array("0123456789abcdef")[Int.random(in: 0..<16, using: &generator)] })
    }

    private static func token(_ hex: String) -> DeviceToken? {
        hex.withByteView { DeviceToken(hex: $0) }
    }

    @Test("Exactly the even numbers of digits from 32 to 200 are tokens", arguments: 0...210)
    func counts(count: Int) {
        let token = Self.token(Self.hex(count: count, seed: 1))
        #expect((token != nil) == (count % 2 == 0 && (32...200).contains(count)))
        #expect(token == nil || token?.count == count / 2)
    }

    @Test("A token is written as it was read, in lower case", arguments: Array(stride(from: 32, through: 200, by: 2)))
    func roundTrip(count: Int) throws {
        let hex = Self.hex(count: count, seed: UInt64(count))
        let token = try #require(Self.token(hex))
        #expect(token.hex == hex)
        let upper = try #require(Self.token(hex.uppercased()))
        #expect(upper == token)
        #expect(upper.hash64(seed: 7) == token.hash64(seed: 7))
        #expect(upper.hashValue == token.hashValue)
        #expect(token.withBytes { DeviceToken(bytes: $0) } == token)
        let bytes = stride(from: 0, to: count, by: 2).map { index -> UInt8? in
            let start = hex.index(hex.startIndex, offsetBy: index)
            return UInt8(hex[start...hex.index(after: start)], radix: 16)
        }
        #expect(token.withBytes { $0.array } == bytes.compactMap { $0 })
    }

    @Test("A character that is no digit, at any place, makes it no token", arguments: [64, 36, 198, 200])
    func notDigits(count: Int) {
        for place in 0..<count {
            for byte: UInt8 in [0, 0x10, 0x2F, 0x3A, 0x40, 0x47, 0x60, 0x67, 0x20, 0x25, 0x80, 0xB0, 0xFF] {
                var text = [UInt8](Self.hex(count: count, seed: 3).utf8)
                text[place] = byte
                #expect(text.withByteView { DeviceToken(hex: $0) } == nil, "byte \(byte) at \(place)")
            }
        }
    }

    @Test(
        "Tokens that differ in one bit, anywhere, differ; so do their hashes",
        arguments: [16, 17, 32, 33, 96, 97, 100]
    )
    func oneBit(count: Int) throws {
        let bytes = [UInt8](repeating: 0, count: count)
        let token = try #require(bytes.withByteView { DeviceToken(bytes: $0) })
        var flipped = 0
        for bit in 0..<count * 8 {
            var changed = bytes
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            let other = try #require(changed.withByteView { DeviceToken(bytes: $0) })
            #expect(other != token)
            #expect(other.hash64(seed: 0) != token.hash64(seed: 0))
            flipped += (other.hash64(seed: 0) ^ token.hash64(seed: 0)).nonzeroBitCount
        }
        let mean = Double(flipped) / Double(count * 8)
        #expect((28...36).contains(mean), "a good hash flips half of its 64 bits")
    }

    @Test("Tokens of zeros alone differ when their counts do, and so do their hashes")
    func zeros() {
        let tokens = (16...100).compactMap { count in
            [UInt8](repeating: 0, count: count).withByteView { DeviceToken(bytes: $0) }
        }
        #expect(Set(tokens).count == 85)
        #expect(Set(tokens.map { $0.hash64(seed: 0) }).count == 85)
    }

    @Test("The low bits and the high bits of the hash spread consecutive tokens evenly")
    func spread() throws {
        var low = [Int](repeating: 0, count: 64)
        var high = low
        for number in 0..<64_000 {
            var bytes = [UInt8](repeating: 0, count: 32)
            bytes[30] = UInt8(number >> 8)
            bytes[31] = UInt8(number & 255)
            let hash = try #require(bytes.withByteView { DeviceToken(bytes: $0) }).hash64(seed: 0)
            low[Int(hash & 63)] += 1
            high[Int(hash >> 58)] += 1
        }
        // A thousand in each, give or take six standard deviations.
        #expect(low.allSatisfy { (810...1190).contains($0) })
        #expect(high.allSatisfy { (810...1190).contains($0) })
    }

    @Test("Tokens that are chosen to collide under every seed of the multiplication do not under a key")
    func chosen() throws {
        // One factor of each product is zero, whatever the other is.
        var tokens: [DeviceToken] = []
        for number in UInt64(0)..<10_000 {
            var bytes = ByteBuffer()
            for word in [0xA076_1D64_78BD_642F, number, 0xA076_1D64_78BD_642F, 1] { bytes.append(word: word) }
            tokens.append(try #require(DeviceToken(bytes: bytes.view)))
        }
        #expect(Set(tokens.map { $0.hash64(seed: 12_345) }).count == 1)
        let key = HashKey((0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210))
        #expect(Set(tokens.map { key.hash($0) }).count == tokens.count)
        #expect(Set(tokens.map { UInt32(truncatingIfNeeded: key.hash($0)) }).count > tokens.count - 5)
        // What dictionaries and sets go by.
        #expect(Set(tokens.map(\.hashValue)).count == tokens.count)
    }

    @Test("Another seed gives another hash")
    func seeds() throws {
        let token = try #require(Self.token(Self.hex(count: 64, seed: 9)))
        #expect(Set((0..<100).map { token.hash64(seed: $0) }).count == 100)
    }

    @Test("Counts of bytes outside 16...100 are no token", arguments: [0, 1, 15, 101, 104, 200])
    func badByteCounts(count: Int) {
        #expect([UInt8](repeating: 1, count: count).withByteView { DeviceToken(bytes: $0) } == nil)
    }

    @Test("A place that held a longer token keeps nothing of it")
    func reuse() {
        var token = DeviceToken()
        let long = Self.hex(count: 200, seed: 4)
        let short = Self.hex(count: 32, seed: 5)
        #expect(long.withByteView { DeviceToken.parse($0, into: &token) })
        #expect(short.withByteView { DeviceToken.parse($0, into: &token) })
        #expect(token.hex == short)
        #expect(token == Self.token(short))
    }

    @Test("A token is 104 bytes of plain memory")
    func layout() {
        #expect(MemoryLayout<DeviceToken>.size == 104)
        #expect(MemoryLayout<DeviceToken>.stride == 104)
    }
}
