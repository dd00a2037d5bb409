import HTTPTransport
import Testing

@Suite("The open streams of a connection")
struct OpenStreamTests {
    private let pool = StreamPool(streamsMax: 5)

    @Test("The one that is read is found, and the oldest that waits or is sent; of others it says nothing")
    func find() throws {
        var open = OpenStreams(now: 0)
        var slots: [StreamSlot] = []
        for number: Int32 in [1, 3, 5, 7, 9] {
            slots.append(try #require(self.pool.take(number: number, now: 0)))
            open.begin(slots[slots.count - 1])
        }
        for index in 0..<2 { open.move(slots[index], to: .sending, now: 1) }
        for index in 2..<4 { open.move(slots[index], to: .waiting, now: 2) }
        #expect(open.count == 5)
        #expect([1, 3, 5, 7, 9, 11].map { open.find($0) } == [slots[0], nil, slots[2], nil, slots[4], nil])
        for slot in slots {
            open.end(slot, now: 3)
            self.pool.giveBack(slot)
        }
        #expect(open.first == nil && open.find(9) == nil)
    }

    @Test("A connection is idle since the end of its last stream")
    func idle() throws {
        var open = OpenStreams(now: 10)
        #expect(open.idleSince == 10)
        let slots = try [1, 3].map { try #require(self.pool.take(number: $0, now: 20)) }
        for slot in slots { open.begin(slot) }
        open.end(slots[0], now: 30)
        #expect(open.idleSince == 10)
        open.end(slots[1], now: 40)
        #expect(open.idleSince == 40 && open.count == 0)
        for slot in slots { self.pool.giveBack(slot) }
    }
}
