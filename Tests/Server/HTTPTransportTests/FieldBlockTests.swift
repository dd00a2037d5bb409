import HTTPTransport
import Testing
import Wire

@Suite("The field block that is being read")
struct FieldBlockTests {
    private let pool = StreamPool(streamsMax: 1)

    /// - Returns: what comes of a field of so many bytes, as HTTP/2 counts it.
    private func receive(_ block: inout FieldBlock, bytes: Int, into slot: StreamSlot?) -> HTTP2ErrorCode? {
        var note: UInt32 = 0
        let value = [UInt8](repeating: UInt8(ascii: "v"), count: bytes - 33)
        return value.withByteView { value in
            block.fieldReceived(ByteView("n"), value, &note, into: slot, listBytesMax: 100)
        }
    }

    @Test("It has no stream before the library has taken it, nor after it was dropped")
    func stream() {
        var block = FieldBlock()
        #expect(block.stream == nil)
        block.taken(for: 3, isRequest: true)
        #expect(block.stream == 3)
        block.drop()
        #expect(block.stream == nil)
    }

    @Test("Trailers have no pseudo-header fields, and the block of a request has")
    func pseudoHeaders() {
        var block = FieldBlock()
        for isRequest in [true, false] {
            var note: UInt32 = 0
            block.taken(for: 1, isRequest: isRequest)
            let fault = block.fieldReceived(
                ByteView(":method"),
                ByteView("GET"),
                &note,
                into: nil,
                listBytesMax: 100
            )
            #expect(fault == (isRequest ? nil : .protocolError))
        }
    }

    @Test("A list is kept up to its limit, and given up at four times that, whether anybody keeps it or not")
    func listBytes() throws {
        let slot = try #require(self.pool.take(number: 1, now: 0))
        for kept in [slot, nil] {
            var block = FieldBlock()
            block.taken(for: 1, isRequest: false)
            #expect(self.receive(&block, bytes: 100, into: kept) == nil)
            #expect(self.receive(&block, bytes: 100, into: kept) == nil)
            let (isTooLarge, fieldCount) = (slot.state.isHeaderListTooLarge, slot.state.fieldCount)
            #expect(isTooLarge && fieldCount == 1)
            #expect(self.receive(&block, bytes: 200, into: kept) == nil)
            #expect(self.receive(&block, bytes: 33, into: kept) == .enhanceYourCalm)
        }
        self.pool.giveBack(slot)
    }

    @Test("The next block is counted anew")
    func nextBlock() {
        var block = FieldBlock()
        for stream: Int32 in [1, 3] {
            block.taken(for: stream, isRequest: false)
            #expect(self.receive(&block, bytes: 400, into: nil) == nil)
        }
        #expect(self.receive(&block, bytes: 33, into: nil) == .enhanceYourCalm)
    }
}
