import Storage
import Testing
import Wire

@Suite("The checksum of a row", .timeLimit(.minutes(15)))
struct RowChecksumTests {
    private static func checksum(_ content: [UInt8], row: Int64) -> Int64 {
        content.withByteView { RowChecksum.of($0, row: row) }
    }

    @Test("One content has another checksum at every place")
    func places() {
        let content = Array("content".utf8)
        let checksums = [1, 2, 3, 1000, .max].map { Self.checksum(content, row: $0) }
        #expect(Set(checksums).count == checksums.count)
    }

    @Test("At one place every content has another checksum, by a bit and by its length")
    func contents() {
        let contents: [[UInt8]] = [[], [0], [1], [0, 0], [0, 1], [1, 0]]
        #expect(Set(contents.map { Self.checksum($0, row: 7) }).count == contents.count)
    }

    @Test("It is what files hold already")
    func stays() {
        #expect(Self.checksum(Array("content".utf8), row: 1) == -33_354_162_940_785_533)
    }
}
