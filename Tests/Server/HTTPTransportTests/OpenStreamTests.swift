import HTTPTransport
import Testing
import Wire

@Suite(.timeLimit(.minutes(15)))
struct StreamLimitTests {
    /// A change of a limit of 10 that the peer has acknowledged. The tests check the limit in effect afterwards.
    enum Step {
        case change(Int)
        case sent, acknowledged
    }

    @Test(
        "A lower limit applies once it is acknowledged, a higher one immediately",
        arguments: [
            ([.change(1)], 10), ([.change(1), .sent], 10), ([.change(1), .sent, .acknowledged], 1),
            ([.change(20)], 20), ([.change(20), .sent, .acknowledged], 20),
            ([.change(1), .sent, .change(5), .sent, .acknowledged], 5),
            ([.change(1), .sent, .change(5), .sent, .acknowledged, .acknowledged], 5),
            ([.change(5), .sent, .change(1), .sent, .acknowledged], 5),
            ([.change(5), .sent, .change(1), .sent, .acknowledged, .acknowledged], 1),
            // An acknowledgement before anything was sent takes effect when the limit is sent.
            ([.change(1), .acknowledged], 10), ([.change(1), .acknowledged, .sent], 1),
            ([.acknowledged, .change(1), .sent], 10), ([.change(0), .sent, .acknowledged, .acknowledged], 0),
        ] as [([Step], Int)]
    )
    func enforced(steps: [Step], expected: Int) {
        var limit = StreamLimit(10)
        #expect(limit.enforced == 10)
        _ = limit.sent(now: 0)
        limit.acknowledged(now: 0)
        for step in steps {
            switch step {
            case .change(let number): _ = limit.change(to: number)
            case .sent: _ = limit.sent(now: 0)
            case .acknowledged: limit.acknowledged(now: 0)
            }
        }
        #expect(limit.enforced == expected)
    }

    @Test("An acknowledgement that is too early is not waited for, and repeating it has no effect")
    func early() {
        var limit = StreamLimit(10)
        limit.acknowledged(now: 0)
        limit.acknowledged(now: 0)
        _ = limit.sent(now: 1)
        #expect(limit.owedSince == nil)
        _ = limit.change(to: 5)
        _ = limit.sent(now: 2)
        #expect(limit.owedSince == 2)
        limit.acknowledged(now: 3)
        #expect(limit.owedSince == nil)
        #expect(limit.enforced == 5)
    }

    @Test("The newest limit is announced again, acknowledged or not")
    func repeated() {
        var limit = StreamLimit(1000)
        let areTaken = [limit.repeatNewest(), limit.change(to: 3), limit.repeatNewest()]
        #expect(areTaken == [true, true, true])
        let sent = (0..<4).map { _ in limit.sent(now: 0) }
        #expect(sent == [1000, 1000, 3, 3])
        for _ in 0..<4 { limit.acknowledged(now: 0) }
        let isTaken = limit.repeatNewest()
        #expect(isTaken)
        #expect(limit.enforced == 3)
        #expect(limit.sent(now: 0) == 3)
    }

    @Test("A peer that acknowledges nothing gets a limited number of changes")
    func bounded() {
        var limit = StreamLimit(1000)
        let areTaken = (0..<StreamLimit.unacknowledgedMax).map { limit.change(to: $0) }
        #expect(areTaken.filter { $0 }.count == StreamLimit.unacknowledgedMax - 1)
        #expect(areTaken.last == false)
        let isRepeated = limit.repeatNewest()
        #expect(!isRepeated)
        _ = limit.sent(now: 0)
        limit.acknowledged(now: 0)
        let isTaken = limit.change(to: 99)
        #expect(isTaken)
    }
}

@Suite("The bytes that a connection has sent in part")
struct HeldBytesTests {
    @Test("Bytes are accepted up to both limits, and the connection's is checked first")
    func shortage() {
        let all = RequestBytes(bytesMax: 100)
        var (held, other) = (HeldBytes(), HeldBytes())
        other.hold(60)
        other.tell(all)
        // The last ten are not known to all loops yet.
        held.hold(20)
        held.tell(all)
        held.hold(10)
        #expect(held.shortage(for: 10, connectionMax: 40, all: all) == .none)
        #expect(held.shortage(for: 11, connectionMax: 40, all: all) == .connection)
        #expect(held.shortage(for: 10, connectionMax: 100, all: all) == .none)
        #expect(held.shortage(for: 11, connectionMax: 100, all: all) == .server)
        #expect(other.shortage(for: 20, connectionMax: 100, all: all) == .none)
        #expect(other.shortage(for: 21, connectionMax: 100, all: all) == .server)
        // A connection may always hold an 8,192nd of the limit, whatever others hold.
        let large = RequestBytes(bytesMax: 8192 * 30)
        var hoard = HeldBytes()
        hoard.hold(8192 * 30)
        hoard.tell(large)
        #expect(HeldBytes().shortage(for: 30, connectionMax: 100, all: large) == .none)
        #expect(HeldBytes().shortage(for: 31, connectionMax: 100, all: large) == .server)
    }
}

@Suite("The end of a connection, as announced to its peer")
struct DepartureTests {
    private let pool = StreamPool(streamsMax: 1)

    @Test("A later GOAWAY never names a higher stream than an earlier one")
    func last() {
        var departure = Departure()
        #expect(departure.takes(.max))
        #expect(departure.last(newest: 7, .finished) == 7)
        #expect(departure.last(newest: 7, .refused(from: 5)) == 3)
        #expect(departure.last(newest: 7, .refused(from: 1)) == 0)
        #expect(departure.last(newest: 7, .refused(from: 11)) == 7)
        departure.announced(last: 3)
        #expect(departure.takes(3) && !departure.takes(5))
        #expect(departure.last(newest: 7, .dropped) == 3)
    }

    /// The phases of a stream, and whether a GOAWAY may be sent in each, at first and after the timeout.
    private static let phases: [(StreamState.Phase?, atFirst: Bool, later: Bool)] = [
        (nil, true, true), (.receiving, false, true), (.waiting, false, false), (.streaming, false, false),
        (.sending, false, false),
    ]

    @Test("A farewell waits briefly for a time without requests, and then only for answers", arguments: Self.phases)
    func pendingGoAway(_ phase: StreamState.Phase?, atFirst: Bool, later: Bool) throws {
        var open = OpenStreams(now: 0)
        var departure = Departure()
        #expect(!departure.hasPendingGoAway && !departure.mayLeave(open, now: 0))
        let slot = try phase.map { phase in
            let slot = try #require(self.pool.take(number: 1, now: 0))
            open.begin(slot)
            open.move(slot, to: phase, now: 0)
            return slot
        }
        departure.wait(debugData: ByteView("first"), code: .noError, now: 1000)
        departure.wait(debugData: ByteView("second"), code: .internalError, now: 5000)
        #expect(departure.hasPendingGoAway)
        #expect(departure.mayLeave(open, now: 1999) == atFirst)
        #expect(departure.mayLeave(open, now: 2000) == later)
        let taken = departure.take(open, now: 2000)
        #expect((taken != nil) == later && departure.hasPendingGoAway != later)
        if let slot { open.end(slot, now: 0) }
        let pendingGoAway = later ? taken : departure.take(open, now: 1000)
        #expect(pendingGoAway?.debugData == Array("first".utf8) && pendingGoAway?.code == .noError)
        #expect(departure.take(open, now: 9000)?.code == nil)
        if let slot { self.pool.giveBack(slot) }
    }

    @Test("An announced farewell leaves a second after its announcement, which an open stream does not hold up")
    func announced() throws {
        var open = OpenStreams(now: 0)
        var departure = Departure()
        let slot = try #require(self.pool.take(number: 1, now: 0))
        open.begin(slot)
        open.move(slot, to: .sending, now: 0)
        departure.wait(debugData: ByteView("bye"), code: .noError, isAnnounced: true, now: 1000)
        #expect(!departure.mayLeave(open, now: 9000) && !departure.takeAnnouncement(open, now: 9000))
        open.move(slot, to: .streaming, now: 0)
        #expect(!departure.mayLeave(open, now: 1999) && departure.mayLeave(open, now: 2000))
        #expect(departure.take(open, now: 2000)?.code == nil)
        #expect(departure.takeAnnouncement(open, now: 2000) && !departure.takeAnnouncement(open, now: 2000))
        #expect(departure.hasPendingGoAway && !departure.mayLeave(open, now: 9000))
        open.end(slot, now: 0)
        #expect(!departure.mayLeave(open, now: 2999) && departure.mayLeave(open, now: 3000))
        #expect(departure.take(open, now: 3000)?.debugData == Array("bye".utf8))
        self.pool.giveBack(slot)
    }
}

@Suite("The budget of frames without a request")
struct FrameBudgetTests {
    private static func budgets(burst: Int) -> FrameBudgets {
        let limits = TransportLimits {
            $0.controlFramesBurst = burst
            $0.controlFramesPerSecond = 1
        }
        return FrameBudgets(limits, now: 0)
    }

    @Test("WINDOW_UPDATE frames have a separate budget")
    func updates() {
        var budgets = Self.budgets(burst: 2)
        #expect((0..<3).map { _ in budgets.updateReceived(now: 0) } == [true, true, false])
        #expect((0..<3).map { _ in budgets.controlFrameReceived(now: 0) } == [true, true, false])
    }

    @Test("Streams and answered bytes add to the budget of updates, and a normal end of a stream one other frame")
    func earned() {
        var budgets = Self.budgets(burst: 10)
        func spend(_ receive: (inout FrameBudgets) -> Bool) -> Int {
            var count = 0
            while receive(&budgets) { count += 1 }
            return count
        }
        #expect(spend { $0.updateReceived(now: 0) } == 10)
        // The one that exceeded the limit counts as well.
        budgets.dataLeaves(4096)
        #expect(spend { $0.updateReceived(now: 0) } == 3)
        budgets.streamTaken()
        budgets.streamTaken()
        #expect(spend { $0.updateReceived(now: 0) } == 1)
        #expect(spend { $0.controlFrameReceived(now: 0) } == 10)
        budgets.streamClosed()
        budgets.streamClosed()
        #expect(spend { $0.controlFrameReceived(now: 0) } == 1)
    }

    @Test("CONTINUATION frames are counted per block, and also count as other frames")
    func continuations() {
        var budgets = Self.budgets(burst: 5)
        func receive() -> TransportLimit? { budgets.continuationReceived(max: 2, now: 0) }
        #expect((0..<3).map { _ in receive() } == [nil, nil, .continuationFramesMax])
        budgets.blockBegan()
        #expect((0..<2).map { _ in receive() } == [nil, nil])
        budgets.blockBegan()
        #expect((0..<2).map { _ in receive() } == [nil, .controlFramesPerSecond])
    }
}

/// The objects that a loop keeps for reuse.
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

    @Test("A reused state is empty, and holds no extraordinary amount of memory")
    func streamIsEmptied() throws {
        let pool = StreamPool(streamsMax: 1)
        let slot = try #require(pool.take(number: 1, now: 5))
        slot.state.fieldReceived(ByteView("host"), ByteView("h"), .host, headerListBytesMax: 100)
        slot.state.isBodyTooLarge = true
        slot.state.isHeaderListTooLarge = true
        slot.state.hasRequestEnded = true
        slot.state.isAboveStreamingLimit = true
        slot.state.output.append([UInt8](repeating: 0, count: 300_000))
        // All bytes were sent, but the buffer's memory remains.
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
        // The capacity of an empty buffer is the memory that it keeps.
        let kept = unsafe (again.state.output.reserve(0).count, again.state.received.reserve(0).count)
        #expect(kept.0 == 0)
        #expect((10_000...16_384).contains(kept.1))
    }

    @Test("Pieces of every size are separate, aligned and reused")
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
        let again = unsafe try #require(pool.allocate(500))
        #expect(UInt(bitPattern: again) == pieces[5].address)
    }

    @Test("A piece that grows keeps its bytes, and one that shrinks keeps its place", arguments: [10, 40, 3000])
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
