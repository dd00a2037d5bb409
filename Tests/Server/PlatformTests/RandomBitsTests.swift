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

    @Test("As many bytes are drawn as are asked for, and every value comes")
    func bytes() {
        var random = RandomBits()
        let drawn = random.bytes(20_000)
        #expect(drawn.count == 20_000 && Set(drawn).count == 256)
        #expect(random.bytes(0).isEmpty)
    }

    @Test("They serve the standard library's choices as any generator does")
    func choices() {
        var random = RandomBits()
        for _ in 0..<100 { #expect((3...5).contains(Int.random(in: 3...5, using: &random))) }
    }
}
