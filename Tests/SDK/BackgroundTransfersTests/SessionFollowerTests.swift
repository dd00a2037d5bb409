import BackgroundTransfers
import Testing
import Wire

@Suite("What a reader of events is told")
struct SessionFollowerTests {
    private static func transfer(_ number: Int, _ state: String, bytes: Int = 0, taken: Bool = false) throws
        -> BackgroundTransfer
    {
        let text = ListedTransfer.json(number, state, bytes: bytes, #""taken":\#(taken)"#)
        return try #require(BackgroundTransfer(try JSONReader.read(text)))
    }

    private static func tells(_ follower: inout SessionFollower, _ event: BackgroundSessionEvent) -> Bool {
        follower.received(event)
    }

    private static func list(
        _ follower: inout SessionFollower,
        _ transfers: [BackgroundTransfer]
    ) -> [BackgroundSessionEvent] {
        follower.listed(transfers)
    }

    @Test("At first: what runs, what waits to be taken, what has failed, and that nothing runs")
    func first() throws {
        var follower = SessionFollower()
        let listed = try [
            Self.transfer(1, "running", bytes: 7), Self.transfer(2, "waiting"), Self.transfer(3, "finished"),
            Self.transfer(4, "finished", taken: true), Self.transfer(5, "failed"), Self.transfer(6, "cancelled"),
        ]
        #expect(
            Self.list(&follower, listed) == [.progress(listed[0].progress), .finished(listed[2]), .failed(listed[4])]
        )
        var idle = SessionFollower()
        #expect(Self.list(&idle, [listed[2]]) == [.finished(listed[2]), .idle])
        var empty = SessionFollower()
        #expect(Self.list(&empty, []).isEmpty)
    }

    @Test("Who asks for every end is told also of what was taken and cancelled")
    func all() throws {
        var follower = SessionFollower(tellsAll: true)
        let listed = try [Self.transfer(4, "finished", taken: true), Self.transfer(6, "cancelled")]
        #expect(Self.list(&follower, listed) == [.finished(listed[0]), .cancelled(listed[1]), .idle])
    }

    @Test("An end is told once, by an event or by a list")
    func once() throws {
        var follower = SessionFollower()
        let (one, two) = try (Self.transfer(1, "finished"), Self.transfer(2, "cancelled", bytes: 3))
        #expect(Self.list(&follower, try [Self.transfer(1, "running"), Self.transfer(2, "running")]).count == 2)
        #expect(Self.tells(&follower, .finished(one)))
        #expect(!Self.tells(&follower, .finished(one)))
        #expect(!Self.tells(&follower, .progress(one.progress)))
        #expect(Self.list(&follower, [one, two]) == [.cancelled(two), .idle])
        #expect(Self.list(&follower, [one, two]).isEmpty)
        #expect(!Self.tells(&follower, .cancelled(two)))
    }

    @Test("That all have ended is told once each time")
    func idle() throws {
        var follower = SessionFollower()
        let (one, two) = try (Self.transfer(1, "finished"), Self.transfer(2, "finished"))
        #expect(Self.list(&follower, [one]) == [.finished(one), .idle])
        #expect(!Self.tells(&follower, .idle))
        #expect(Self.tells(&follower, .progress(two.progress)))
        #expect(Self.tells(&follower, .finished(two)))
        #expect(Self.tells(&follower, .idle))
        #expect(!Self.tells(&follower, .idle))
        #expect(Self.list(&follower, [one, two]).isEmpty)
    }
}
