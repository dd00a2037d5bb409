import Gateway
import Testing

@Suite("How many pushes of a loop may be at the engine", .timeLimit(.minutes(15)))
struct PushRoomTests {
    static let short = PushRoom.shortPauseNanosecondsMax
    static let long = PushRoom.shortPauseNanosecondsMax + 1

    /// A room beside a quiet topic's push that came at 0.
    private static func besideQuiet(most: Int) -> PushRoom {
        var room = PushRoom(most: most)
        room.quietPushCame(now: 0)
        return room
    }

    /// Has the room filled, at 0 unless it is another moment, and pauses follow.
    private func pause(_ room: inout PushRoom, _ nanoseconds: Int64, times: Int = 1, at now: Int64 = 0) {
        for number in 0..<Int64(times) {
            room.paused(withRoomFor: room.count(now: now), now: number * 1_000_000_000)
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

    @Test("Where eight more pauses are long than are not there is twice the room, up to all of it")
    func longPauses() {
        var room = Self.besideQuiet(most: 500)
        self.pause(&room, Self.long, times: 7)
        self.pause(&room, Self.short)
        self.pause(&room, Self.long)
        #expect(room.count(now: 0) == 128)
        self.pause(&room, Self.long)
        #expect(room.count(now: 0) == 256)
        self.pause(&room, Self.long, times: 8)
        #expect(room.count(now: 0) == 500)
        self.pause(&room, Self.long, times: 255)
        #expect(room.count(now: 0) == 500)
    }

    @Test(
        "After 256 pauses with more room the least is tried again, however long they were",
        arguments: [PushRoomTests.short, PushRoomTests.long]
    )
    func leastAgain(length: Int64) {
        var room = Self.besideQuiet(most: 512)
        self.pause(&room, Self.long, times: 16)
        self.pause(&room, length, times: 255)
        #expect(room.count(now: 0) == 512)
        self.pause(&room, length)
        #expect(room.count(now: 0) == 128)
    }

    @Test("Pauses with all the room do not count where there is less beside a quiet topic's pushes")
    func noisyAlone() {
        var room = Self.besideQuiet(most: 512)
        self.pause(&room, Self.long, times: 100, at: 1000)
        #expect(room.count(now: 0) == 128)
    }

    @Test("There is never more than may be, which can be set anew")
    func most() {
        var room = Self.besideQuiet(most: 16)
        self.pause(&room, Self.long, times: 100)
        #expect(room.count(now: 0) == 16 && room.count(now: 1000) == 16)
        room.most = 1000
        #expect(room.count(now: 0) == 128 && room.count(now: 1000) == 1000)
        self.pause(&room, Self.long, times: 24)
        #expect(room.count(now: 0) == 1000)
        room.most = 512
        #expect(room.count(now: 0) == 512)
        self.pause(&room, Self.long, times: 256)
        #expect(room.count(now: 0) == 128)
    }

    @Test("Beside a quiet topic's pushes there is all the room where none is to be less")
    func all() {
        var room = PushRoom(most: 512, least: .max)
        room.quietPushCame(now: 0)
        self.pause(&room, Self.long, times: 1000)
        #expect(room.count(now: 0) == 512)
    }

    @Test("A pause that did not begin does not end")
    func unbegun() {
        var room = Self.besideQuiet(most: 512)
        for _ in 0..<100 { room.resumed(now: .max) }
        #expect(room.count(now: 0) == 128)
    }
}
