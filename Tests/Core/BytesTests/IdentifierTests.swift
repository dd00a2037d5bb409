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
        "Anything but 8-4-4-4-12 digits is not an identifier",
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

    @Test("A written id reads back, in either case")
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
        "Anything but 32 digits is not a wake id",
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

    @Test("A token is written as lowercase hex digits", arguments: Array(stride(from: 32, through: 200, by: 2)))
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

    @Test("A character that is not a hex digit makes a token invalid at any position", arguments: [64, 36, 198, 200])
    func notDigits(count: Int) {
        let digits = [UInt8](Self.hex(count: count, seed: 3).utf8)
        for place in 0..<count {
            var text = digits
            for byte in UInt8.min...UInt8.max {
                text[place] = byte
                let isToken = text.withByteView { DeviceToken(hex: $0) } != nil
                #expect(isToken == (byte.hexDigitValue != nil), "byte \(byte) at \(place)")
            }
        }
    }

    @Test("Two adjacent characters that are not hex digits never compensate for each other")
    func adjacentCharacters() {
        var text = [UInt8](repeating: UInt8(ascii: "0"), count: 32)
        var wrong = 0
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                (text[0], text[1]) = (first, second)
                let isToken = text.withByteView { DeviceToken(hex: $0) } != nil
                if isToken != (first.hexDigitValue != nil && second.hexDigitValue != nil) { wrong += 1 }
            }
        }
        #expect(wrong == 0)
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

    @Test("Tokens of zeros differ if their lengths do, and so do their hashes")
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
        // 1,000 in each bucket, within six standard deviations.
        #expect(low.allSatisfy { (810...1190).contains($0) })
        #expect(high.allSatisfy { (810...1190).contains($0) })
    }

    @Test("Tokens that are chosen to collide under every seed of the multiplication do not under a key")
    func chosen() throws {
        // One factor of each product is zero, so the other has no effect.
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
        // The hash that dictionaries and sets use.
        #expect(Set(tokens.map(\.hashValue)).count == tokens.count)
    }

    @Test("A different seed yields a different hash")
    func seeds() throws {
        let token = try #require(Self.token(Self.hex(count: 64, seed: 9)))
        #expect(Set((0..<100).map { token.hash64(seed: $0) }).count == 100)
    }

    @Test("Counts of bytes outside 16...100 are no token", arguments: [0, 1, 15, 101, 104, 200])
    func badByteCounts(count: Int) {
        #expect([UInt8](repeating: 1, count: count).withByteView { DeviceToken(bytes: $0) } == nil)
    }

    @Test("A place of a longer token keeps nothing of it")
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

@Suite("Tokens in tables")
struct StoredDeviceTokenTests {
    private static func token(_ bytes: [UInt8]) throws -> DeviceToken {
        try #require(bytes.withByteView { DeviceToken(bytes: $0) })
    }

    @Test("A stored token equals only its original", arguments: [16, 31, 32, 33, 96, 97, 99, 100])
    func lengths(_ count: Int) throws {
        let bytes = (0..<count).map { UInt8($0 + 1) }
        let token = try Self.token(bytes)
        let stored = StoredDeviceToken(token)
        defer { stored.deallocate() }
        #expect(stored.token == token)
        #expect(stored.matches(token))
        for index in 0..<count {
            var others = bytes
            others[index] ^= 0x80
            #expect(!stored.matches(try Self.token(others)))
        }
        // A token that ends in zeros differs from one without them.
        if count < 100 { #expect(!stored.matches(try Self.token(bytes + [0]))) }
        if count > 16 { #expect(!stored.matches(try Self.token(bytes.dropLast()))) }
        var written = ByteBuffer()
        stored.store(to: &written)
        #expect(written.view.array == [UInt8(count)] + bytes)
    }

    @Test("A token of the usual length needs little more than its bytes")
    func size() {
        #expect(MemoryLayout<StoredDeviceToken>.size == 41)
    }
}
