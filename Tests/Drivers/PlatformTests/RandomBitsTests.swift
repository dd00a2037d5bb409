import Platform
import Testing

@Suite("Random bits", .timeLimit(.minutes(15)))
struct RandomBitsTests {
    @Test("What is drawn never repeats, within a block and across blocks, nor from another source")
    func distinct() {
        var first = RandomBits()
        var second = RandomBits()
        var seen: Set<UInt64> = []
        for _ in 0..<2000 {
            #expect(seen.insert(first.next()).inserted)
            let (upper, lower) = second.pair()
            #expect(seen.insert(upper).inserted)
            #expect(seen.insert(lower).inserted)
        }
    }

    @Test("They serve the standard library's choices as any generator does")
    func choices() {
        var random = RandomBits()
        for _ in 0..<100 { #expect((3...5).contains(Int.random(in: 3...5, using: &random))) }
    }
}
