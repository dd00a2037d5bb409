import HTTPTransport
import Testing
import Wire

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
        for (index, slot) in slots.enumerated() { #expect(slots.firstIndex(of: slot) == index) }
        for slot in slots { pool.giveBack(slot) }
        #expect(pool.usedCount == 0)
        let again = try #require(pool.take(number: 9, now: 6))
        #expect(again == slots[129])
    }

    @Test("A state that is used again is empty, and has kept no memory of extraordinary size")
    func streamIsEmptied() throws {
        let pool = StreamPool(streamsMax: 1)
        let slot = try #require(pool.take(number: 1, now: 5))
        slot.state.fieldReceived(ByteView("host"), ByteView("h"), .host, headerListBytesMax: 100)
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
        #expect(again.state.fieldCount == 0 && again.state.headerListBytes == 0)
        #expect(!again.state.isBodyTooLarge && !again.state.isHeaderListTooLarge)
        #expect(!again.state.hasRequestEnded && !again.state.isAboveStreamingLimit)
        #expect(again.state.received.isEmpty && again.state.output.isEmpty)
        // The room that an empty buffer has is the memory that it keeps.
        let kept = unsafe (again.state.output.reserve(0).count, again.state.received.reserve(0).count)
        #expect(kept.0 == 0)
        #expect((10_000...16_384).contains(kept.1))
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
}
