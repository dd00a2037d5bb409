import Testing

@testable import Bytes
@testable import HTTPTransport

/// What a loop keeps to use again.
@Suite
struct PoolTests {
    @Test("Stream states are handed out up to their number, and again when they were given back")
    func streams() throws {
        let pool = StreamPool(streamsMax: 130)
        var slots: [StreamSlot] = []
        for number in 1...130 { slots.append(try #require(pool.take(number: Int32(number), now: 5))) }
        #expect(pool.usedCount == 130)
        #expect(pool.take(number: 131, now: 5) == nil)
        #expect(Set(slots.map { unsafe UInt(bitPattern: $0.pointer) }).count == 130)
        for slot in slots { pool.giveBack(slot) }
        #expect(pool.usedCount == 0)
        let again = try #require(pool.take(number: 9, now: 6))
        #expect(again == slots[129])
    }

    @Test("A state that is used again is empty, and has kept no memory of extraordinary size")
    func streamIsEmptied() throws {
        let pool = StreamPool(streamsMax: 1)
        let slot = try #require(pool.take(number: 1, now: 5))
        let field = slot.state.append(name: ByteView("host"), value: ByteView("h"))
        slot.state.append(field)
        slot.state.host = field
        slot.state.isBodyTooLarge = true
        slot.state.isHeaderListTooLarge = true
        slot.state.hasRequestEnded = true
        slot.state.isAboveStreamingLimit = true
        slot.state.output.append([UInt8](repeating: 0, count: 300_000))
        // Sent: no byte is left, but the room for them is.
        slot.state.output.consume(300_000)
        slot.state.received.append([UInt8](repeating: 0, count: 10_000))
        pool.giveBack(slot)
        let again = try #require(pool.take(number: 3, now: 6))
        #expect(again == slot)
        #expect(again.state.number == 3 && again.state.since == 6 && again.state.phase == .receiving)
        #expect(again.state.fieldCount == 0 && again.state.host.valueCount == 0 && again.state.headerListBytes == 0)
        #expect(!again.state.isBodyTooLarge && !again.state.isHeaderListTooLarge)
        #expect(!again.state.hasRequestEnded && !again.state.isAboveStreamingLimit)
        #expect(again.state.received.isEmpty && again.state.output.isEmpty)
        #expect(again.state.output.capacity == 0)
        #expect(again.state.received.capacity >= 10_000 && again.state.received.capacity <= 16_384)
    }

    @Test("Pieces of every size are apart, aligned, and handed out again")
    func memory() throws {
        let pool = MemoryPool()
        let sizes = [0, 1, 31, 32, 33, 500, 2016, 2017, 100_000]
        var pieces: [(address: UInt, size: Int)] = []
        for size in sizes {
            let piece = unsafe try #require(pool.allocate(size))
            unsafe piece.initializeMemory(as: UInt8.self, repeating: UInt8(truncatingIfNeeded: size), count: size)
            pieces.append((UInt(bitPattern: piece), size))
        }
        #expect(pieces.allSatisfy { $0.address % 16 == 0 })
        let sorted = pieces.sorted { $0.address < $1.address }
        for (low, high) in zip(sorted, sorted.dropFirst()) { #expect(low.address + UInt(low.size) <= high.address) }
        for (address, size) in pieces {
            let piece = unsafe try #require(UnsafeMutableRawPointer(bitPattern: address))
            for offset in 0..<size {
                #expect(unsafe piece.load(fromByteOffset: offset, as: UInt8.self) == UInt8(truncatingIfNeeded: size))
            }
            unsafe pool.free(piece)
        }
        let again = unsafe try #require(pool.allocate(480))
        #expect(UInt(bitPattern: again) == pieces[5].address || UInt(bitPattern: again) % 16 == 0)
    }

    @Test("A piece that grows keeps its bytes, one that shrinks its place", arguments: [10, 40, 3000])
    func reallocation(_ size: Int) throws {
        let pool = MemoryPool()
        let piece = unsafe try #require(pool.allocate(size))
        unsafe piece.initializeMemory(as: UInt8.self, repeating: 7, count: size)
        #expect(unsafe pool.reallocate(piece, size / 2) == piece)
        let grown = unsafe try #require(pool.reallocate(piece, size * 3))
        for offset in 0..<size { #expect(unsafe grown.load(fromByteOffset: offset, as: UInt8.self) == 7) }
        unsafe pool.free(grown)
        #expect(unsafe pool.allocate(size * 3) == grown || size == 3000)
    }

    @Test("A response is filled anew, with constants, bytes and numbers")
    func response() {
        let response = Response()
        response.begin(status: 200)
        response.add("a", "constant")
        response.begin(status: 413)
        response.add("b", ByteView("bytes"))
        response.add("c", Int64(-42))
        response.add("d", "constant")
        let fields = (0..<response.fieldCount).map { index in
            let field = response.field(at: index)
            let name = unsafe ByteView(UnsafeRawBufferPointer(start: field.name, count: field.nameCount))
            return "\(name.string)=\(response.value(of: field).string)"
        }
        #expect(fields == [":status=413", "b=bytes", "c=-42", "d=constant"])
        #expect(response.status == 413)
    }
}
