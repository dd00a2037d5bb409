import HTTPTransport
import Testing
import Wire

@Suite("What a peer is told of its connection's end")
struct DepartureTests {
    private let pool = StreamPool(streamsMax: 1)

    @Test("No later frame lets the peer believe in more than an earlier one")
    func last() {
        var departure = Departure()
        #expect(departure.takes(.max))
        #expect(departure.last(newest: 7, .finished) == 7)
        #expect(departure.last(newest: 7, .refused(from: 5)) == 3)
        #expect(departure.last(newest: 7, .refused(from: 1)) == 0)
        #expect(departure.last(newest: 7, .refused(from: 11)) == 7)
        departure.told(last: 3)
        #expect(departure.takes(3) && !departure.takes(5))
        #expect(departure.last(newest: 7, .dropped) == 3)
    }

    /// The phases of a stream, and whether a farewell may leave at first, and when its patience is over.
    private static let phases: [(StreamState.Phase?, atFirst: Bool, later: Bool)] = [
        (nil, true, true), (.receiving, false, true), (.waiting, false, false), (.streaming, false, false),
        (.sending, false, false),
    ]

    @Test("A farewell waits for a moment without requests, and then for answers alone", arguments: Self.phases)
    func farewell(_ phase: StreamState.Phase?, atFirst: Bool, later: Bool) throws {
        var open = OpenStreams(now: 0)
        var departure = Departure()
        #expect(!departure.hasFarewell && !departure.mayLeave(open, now: 0))
        let slot = try phase.map { phase in
            let slot = try #require(self.pool.take(number: 1, now: 0))
            open.begin(slot)
            open.move(slot, to: phase, now: 0)
            return slot
        }
        departure.wait(debugData: ByteView("first"), code: .noError, now: 1000)
        departure.wait(debugData: ByteView("second"), code: .internalError, now: 5000)
        #expect(departure.hasFarewell)
        #expect(departure.mayLeave(open, now: 1999) == atFirst)
        #expect(departure.mayLeave(open, now: 2000) == later)
        let taken = departure.take(open, now: 2000)
        #expect((taken != nil) == later && departure.hasFarewell != later)
        if let slot { open.end(slot, now: 0) }
        let farewell = later ? taken : departure.take(open, now: 1000)
        #expect(farewell?.debugData == Array("first".utf8) && farewell?.code == .noError)
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
        #expect(departure.hasFarewell && !departure.mayLeave(open, now: 9000))
        open.end(slot, now: 0)
        #expect(!departure.mayLeave(open, now: 2999) && departure.mayLeave(open, now: 3000))
        #expect(departure.take(open, now: 3000)?.debugData == Array("bye".utf8))
        self.pool.giveBack(slot)
    }
}
