import Testing
import TransferAgent

@Suite("Followers of a session hear of its end, or its device is woken", .timeLimit(.minutes(15)))
struct RoomFollowerTests {
    private let rig: RoomRig

    init() throws {
        self.rig = try RoomRig()
        try self.rig.start()
        #expect(self.rig.put() == 201)
    }

    private func follow() -> Int32 {
        let stream = self.rig.submit(.events("s"))
        self.rig.turn()
        return stream
    }

    /// For how many transfers the gateway is being asked to wake the device.
    private var wakes: [Int] { self.rig.world.sendings.map(\.entry.finished) }

    @Test("An end that a follower had not read when it died together with the agent wakes the device once")
    func deathOfBoth() throws {
        let stream = self.follow()
        _ = try self.rig.finished()
        #expect(self.rig.events.contains { $0.stream == stream && $0.text.hasPrefix("event: idle") })
        #expect(self.wakes.isEmpty)
        try self.rig.start()
        #expect(self.wakes == [1])
        self.rig.world.takeSending().report(.delivered)
        self.rig.turn()
        try self.rig.start()
        #expect(self.wakes.isEmpty)
    }

    @Test("An end that a follower has read does not wake the device, even if the follower and the agent die")
    func read() throws {
        let stream = self.follow()
        _ = try self.rig.finished()
        self.rig.read(stream)
        self.rig.turn()
        try self.rig.start()
        #expect(self.wakes.isEmpty)
    }

    @Test("A follower that left before the end was written to it has not heard of it", arguments: [true, false])
    func leaving(hasRead: Bool) throws {
        let stream = self.follow()
        _ = try self.rig.finished()
        if hasRead { self.rig.leave(stream) } else { self.rig.lose(stream) }
        self.rig.turn()
        #expect(self.wakes == (hasRead ? [] : [1]))
    }

    @Test("An end that one of two followers has read does not wake the device")
    func two() throws {
        let streams = [self.follow(), self.follow()]
        _ = try self.rig.finished()
        self.rig.read(streams[0])
        self.rig.turn()
        for stream in streams { self.rig.lose(stream) }
        self.rig.turn()
        #expect(self.wakes.isEmpty)
    }
}
