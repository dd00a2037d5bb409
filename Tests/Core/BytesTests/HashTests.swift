import Testing
import WakeGateTestKit
import Wire

@Suite("Keyed hashes")
struct HashKeyTests {
    /// Returns the first `count` of the bytes 0, 1, 2 ... in SipHash's reference vectors.
    private static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8($0) } }

    private static let key = HashKey((0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908))

    /// The results of a Python implementation, which was checked against CPython's hash of bytes with the key 0 and,
    /// with the rounds of SipHash-2-4, against the reference vectors.
    private static let vectors: [(count: Int, hash: UInt64)] = [
        (0, 0xABAC_0158_050F_C4DC), (1, 0xC9F4_9BF3_7D57_CA93), (7, 0xD392_7D98_9BB1_1140),
        (8, 0x3690_9511_8D29_9A8E), (15, 0xD320_D86D_2A51_9956), (16, 0xCC4F_DD1A_7D90_8B66),
        (17, 0x9CF2_6890_63DB_D80C), (31, 0x2370_DD1F_8C21_D1BC), (32, 0x8115_7B6C_16A7_B60D),
        (33, 0x4D54_B9E5_7A8F_F9BF), (63, 0x9D19_9062_B7BB_B3A8), (95, 0xA3FC_EE6C_036B_CEFA),
        (96, 0x1688_D0FB_3133_5B28), (97, 0x2F9E_343B_EC23_9756), (99, 0xD798_E296_8601_4DD8),
        (100, 0x3BEE_41C2_0CAC_3A3B),
    ]

    @Test("Bytes hash as SipHash-1-3 says")
    func vectors() {
        for (count, hash) in Self.vectors {
            #expect(Self.bytes(count).withByteView { Self.key.hash($0) } == hash, "\(count) bytes")
        }
    }

    @Test("A token hashes as its bytes do, whatever their length", arguments: DeviceToken.counts)
    func tokens(count: Int) throws {
        let token = EngineRig.token(count, bytes: count)
        #expect(Self.key.hash(token) == token.withBytes { Self.key.hash($0) })
        let counted = try #require(Self.bytes(count).withByteView { DeviceToken(bytes: $0) })
        guard let vector = Self.vectors.first(where: { $0.count == count }) else { return }
        #expect(Self.key.hash(counted) == vector.hash)
    }

    @Test("Two words hash as their sixteen bytes do")
    func words() {
        let hash = Self.key.hash(0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908)
        #expect(hash == Self.bytes(16).withByteView { Self.key.hash($0) })
    }

    @Test("Each bit of the key counts")
    func keyBits() {
        let token = EngineRig.token(1)
        let hash = Self.key.hash(token)
        for bit in 0..<64 as Range<UInt64> {
            #expect(HashKey((Self.key.first ^ 1 << bit, Self.key.second)).hash(token) != hash)
            #expect(HashKey((Self.key.first, Self.key.second ^ 1 << bit)).hash(token) != hash)
        }
    }
}

@Suite("SplitMix64", .timeLimit(.minutes(15)))
struct SplitMix64Tests {
    @Test("The sequence is that of the published algorithm")
    func published() {
        var numbers = SplitMix64(seed: 0)
        let first: [UInt64] = [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]
        for number in first { #expect(numbers.next() == number) }
    }

    @Test("Unique bits do not repeat, and their first half is the sequence of its seed")
    func unique() {
        var bits = UniqueBits(seed: (7, 11))
        var numbers = SplitMix64(seed: 7)
        var seen: Set<[UInt64]> = []
        for _ in 0..<1000 {
            let (first, second) = bits.next()
            #expect(first == numbers.next())
            #expect(seen.insert([first, second]).inserted)
        }
    }
}
