import BackgroundTransfers
import Testing
import Text

@Suite("What a reader of events is told")
struct SessionFollowerTests {
    private static func transfer(_ number: Int, _ state: String, bytes: Int = 0, taken: Bool = false) throws
        -> BackgroundTransfer
    {
        let text = ListedTransfer.json(number, state, bytes: bytes, #""taken":\#(taken)"#)
        return try #require(BackgroundTransfer(try JSONReader.read(text)))
    }

    @Test("At first: what runs, what waits to be taken, what has failed, and that nothing runs")
    func first() throws {
        var follower = SessionFollower()
        let listed = try [
            Self.transfer(1, "running", bytes: 7), Self.transfer(2, "waiting"), Self.transfer(3, "finished"),
            Self.transfer(4, "finished", taken: true), Self.transfer(5, "failed"), Self.transfer(6, "cancelled"),
        ]
        #expect(follower.listed(listed) == [.progress(listed[0].progress), .finished(listed[2]), .failed(listed[4])])
        var idle = SessionFollower()
        #expect(idle.listed([listed[2]]) == [.finished(listed[2]), .idle])
        var empty = SessionFollower()
        #expect(empty.listed([]).isEmpty)
    }

    @Test("Who asks for every end is told also of what was taken and cancelled")
    func all() throws {
        var follower = SessionFollower(tellsAll: true)
        let listed = try [Self.transfer(4, "finished", taken: true), Self.transfer(6, "cancelled")]
        #expect(follower.listed(listed) == [.finished(listed[0]), .cancelled(listed[1]), .idle])
    }

    @Test("An end is told once, by an event or by a list")
    func once() throws {
        var follower = SessionFollower()
        let (one, two) = try (Self.transfer(1, "finished"), Self.transfer(2, "cancelled", bytes: 3))
        #expect(follower.listed(try [Self.transfer(1, "running"), Self.transfer(2, "running")]).count == 2)
        #expect(follower.received(.finished(one)))
        #expect(!follower.received(.finished(one)))
        #expect(!follower.received(.progress(one.progress)))
        #expect(follower.listed([one, two]) == [.cancelled(two), .idle])
        #expect(follower.listed([one, two]).isEmpty)
        #expect(!follower.received(.cancelled(two)))
    }

    @Test("That all have ended is told once each time")
    func idle() throws {
        var follower = SessionFollower()
        let (one, two) = try (Self.transfer(1, "finished"), Self.transfer(2, "finished"))
        #expect(follower.listed([one]) == [.finished(one), .idle])
        #expect(!follower.received(.idle))
        #expect(follower.received(.progress(two.progress)))
        #expect(follower.received(.finished(two)))
        #expect(follower.received(.idle))
        #expect(!follower.received(.idle))
        #expect(follower.listed([one, two]).isEmpty)
    }
}
