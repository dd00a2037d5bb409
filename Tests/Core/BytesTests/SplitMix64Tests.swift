import Testing
import Wire

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
