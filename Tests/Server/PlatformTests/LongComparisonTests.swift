import Platform
import Testing
import Wire

@Suite("Comparisons of long bytes", .timeLimit(.minutes(15)))
struct LongComparisonTests {
    @Test("Bytes are equal when there are as many and none differs, wherever they lie")
    func equal() {
        for count in Array(0...40) + [255, 256, 257, 1000] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            #expect(Self.areEqual(bytes, [7] + bytes, from: 1))
            #expect(!Self.areEqual(bytes, bytes + [0], from: 0))
            for place in bytes.indices {
                var other = bytes
                other[place] ^= 0x80
                #expect(!Self.areEqual(bytes, other, from: 0))
            }
        }
        #expect(ByteView().equalsLong(ByteView()))
    }

    /// Whether the one are the others behind the first few.
    private static func areEqual(_ left: [UInt8], _ right: [UInt8], from start: Int) -> Bool {
        left.withByteView { left in right.withByteView { left.equalsLong($0.dropFirst(start)) } }
    }
}
