import Edge
import Testing

@Suite("How many pushes of a loop may be at the engine", .timeLimit(.minutes(15)))
struct PushRoomTests {
    private static let long = PushRoom.pauseNanosecondsMax + 1

    /// A room beside a quiet topic's push that came at 0.
    private static func shared(most: Int) -> PushRoom {
        var room = PushRoom(most: most)
        room.quietPushCame(now: 0)
        return room
    }

    private func pause(_ room: inout PushRoom, nanoseconds: Int64, times: Int = 1) {
        for number in 0..<Int64(times) {
            room.paused(now: number * 1_000_000_000)
            room.resumed(now: number * 1_000_000_000 + nanoseconds)
        }
    }

    @Test("There is all the room, but for a second after each push of a quiet topic")
    func second() {
        var room = PushRoom(most: 512)
        #expect(room.count(now: 0) == 512)
        room.quietPushCame(now: 5000)
        #expect(room.count(now: 5000) == 128 && room.count(now: 5999) == 128 && room.count(now: 6000) == 512)
        room.quietPushCame(now: 5900)
        #expect(room.count(now: 6000) == 128)
    }

    @Test("There is never more than may be, which can be set anew")
    func most() {
        var room = Self.shared(most: 16)
        #expect(room.count(now: 0) == 16 && room.count(now: 1000) == 16)
        self.pause(&room, nanoseconds: Self.long, times: 100)
        #expect(room.count(now: 0) == 16)
        room.most = 100_000
        #expect(room.count(now: 0) == 128 && room.count(now: 1000) == 100_000)
    }

    @Test("Where eight more pauses are long than are not there is twice the room, up to all of it")
    func longPauses() {
        var room = Self.shared(most: 512)
        self.pause(&room, nanoseconds: Self.long, times: 7)
        self.pause(&room, nanoseconds: PushRoom.pauseNanosecondsMax)
        self.pause(&room, nanoseconds: Self.long)
        #expect(room.count(now: 0) == 128)
        self.pause(&room, nanoseconds: Self.long)
        #expect(room.count(now: 0) == 256)
        self.pause(&room, nanoseconds: Self.long, times: 8)
        #expect(room.count(now: 0) == 512)
        self.pause(&room, nanoseconds: Self.long, times: 100)
        #expect(room.count(now: 0) == 512)
    }

    @Test("Where 64 more pauses are not long than are, half the room is tried, down to the least")
    func shortPauses() {
        var room = Self.shared(most: 512)
        self.pause(&room, nanoseconds: Self.long, times: 16)
        #expect(room.count(now: 0) == 512)
        self.pause(&room, nanoseconds: 1, times: 63)
        #expect(room.count(now: 0) == 512)
        self.pause(&room, nanoseconds: 1)
        #expect(room.count(now: 0) == 256)
        self.pause(&room, nanoseconds: 1, times: 640)
        #expect(room.count(now: 0) == 128)
    }

    @Test("A pause that did not begin does not end")
    func unbegun() {
        var room = Self.shared(most: 512)
        for _ in 0..<100 { room.resumed(now: .max) }
        #expect(room.count(now: 0) == 128)
    }
}
