import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The table of streams", .timeLimit(.minutes(15)))
struct StreamTableTests {
    private static let topic = TopicIndex(rawValue: 1)
    private static let now = Instant(milliseconds: 1000)

    private static func wake(_ number: Int) -> WakeID { WakeID(random: (UInt64(number), 9)) }

    private static func insert(
        _ table: inout StreamTable,
        _ number: Int,
        slots: Int = 2,
        devices: [Int] = []
    ) -> Subscription {
        let request = SubscriptionRequest(slots: slots, devices: devices.map { EngineRig.token($0) })
        return table.insert(DispatchRig.address(number), Self.topic, request)
    }

    private static func free(_ table: inout StreamTable, _ device: Int) -> StreamAddress? {
        table.free(Self.topic, EngineRig.token(device))?.address
    }

    @Test("A stream is found by its address until it is taken out, and is counted under its topic")
    func addresses() {
        var table = StreamTable(wakeBytesMax: 1000)
        #expect(table.counts(nil) == .init() && table.counts(Self.topic) == .init())
        let first = Self.insert(&table, 1, slots: 3)
        _ = Self.insert(&table, 2, slots: 4)
        #expect(table.count == 2 && Set(table.all.map(\.address)) == [DispatchRig.address(1), DispatchRig.address(2)])
        #expect(table[DispatchRig.address(1)] === first)
        table.give(Self.wake(1), bytes: 10, to: first, at: Self.now)
        table.resize(first, to: 5)
        #expect(table.counts(Self.topic) == .init(connected: 2, slots: 9, busy: 1))
        #expect(table.counts(nil) == table.counts(Self.topic))
        #expect(table.counts(TopicIndex(rawValue: 0)) == .init() && table.counts(TopicIndex(rawValue: 9)) == .init())
        table.remove(first)
        #expect(table[DispatchRig.address(1)] == nil)
        #expect(table.counts(nil) == .init(connected: 1, slots: 4, busy: 0))
    }

    @Test("A free stream that names the device goes first, then the one whose turn it is; none where nobody is")
    func turns() {
        var table = StreamTable(wakeBytesMax: 1000)
        #expect(Self.free(&table, 1) == nil)
        let any = [Self.insert(&table, 1), Self.insert(&table, 2)]
        let naming = Self.insert(&table, 3, slots: 1, devices: [7])
        #expect(table.countNaming(EngineRig.token(7), Self.topic) == 1)
        #expect(table.countNaming(EngineRig.token(7), TopicIndex(rawValue: 9)) == 0)
        #expect(Self.free(&table, 7) == naming.address)
        table.give(Self.wake(0), bytes: 1, to: naming, at: Self.now)
        var given: [StreamAddress?] = []
        for number in 1...4 {
            let stream = table.free(Self.topic, EngineRig.token(7))
            given.append(stream?.address)
            if let stream { table.give(Self.wake(number), bytes: 1, to: stream, at: Self.now) }
        }
        #expect(given == [any[0], any[1], any[0], any[1]].map(\.address))
        #expect(Self.free(&table, 7) == nil)
        #expect(table.release(Self.wake(2), any[1]) == true)
        table.rotate(any[1])
        #expect(Self.free(&table, 7) == any[1].address)
        #expect(table.release(Self.wake(0), naming) == true)
        #expect(Self.free(&table, 7) == naming.address)
    }

    /// What keeps wakes from a stream that names a device, or from one that takes any, and what undoes it.
    enum Obstacle: CaseIterable {
        case paused, stalled, full, busy

        func begin(_ table: inout StreamTable, _ stream: Subscription) {
            switch self {
            case .paused: table.pause(stream, true)
            case .stalled: for number in 10..<13 { table.expired(WakeID(random: (UInt64(number), 9)), stream) }
            case .full: table.resizeAll(wakeBytesMax: 5)
            case .busy: table.resize(stream, to: 1)
            }
        }

        func end(_ table: inout StreamTable, _ stream: Subscription) {
            switch self {
            case .paused: table.pause(stream, false)
            case .stalled: table.answered(stream)
            case .full: table.resizeAll(wakeBytesMax: 6)
            case .busy: table.resize(stream, to: 2)
            }
        }
    }

    @Test("What keeps a stream from a wake keeps it out, and then it is back", arguments: Obstacle.allCases, [[], [7]])
    func obstacles(obstacle: Obstacle, devices: [Int]) {
        var table = StreamTable(wakeBytesMax: 1000)
        let stream = Self.insert(&table, 1, devices: devices)
        table.give(Self.wake(1), bytes: 5, to: stream, at: Self.now)
        #expect(Self.free(&table, 7) == stream.address)
        obstacle.begin(&table, stream)
        #expect(Self.free(&table, 7) == nil)
        #expect(!stream.isFree)
        obstacle.end(&table, stream)
        // A bound of all is not said of each: a stream that names devices is back with its next change.
        if obstacle == .full { table.pause(stream, false) }
        table.rotate(stream)
        #expect(Self.free(&table, 7) == stream.address)
        table.drain(stream)
        #expect(Self.free(&table, 7) == nil)
    }

    @Test("Who holds a wake, or let it expire, is known until it is answered; of an ended stream until it is lost")
    func holders() {
        var table = StreamTable(wakeBytesMax: 1000)
        let stream = Self.insert(&table, 1, slots: 5)
        for number in 1...4 { table.give(Self.wake(number), bytes: 1, to: stream, at: Self.now) }
        #expect((1...5).map { table.holder(of: Self.wake($0)) != nil } == [true, true, true, true, false])
        #expect(table.release(Self.wake(1), stream) == true)
        #expect(table.release(Self.wake(1), stream) == false)
        #expect(table.release(Self.wake(2), stream) == true)
        table.expired(Self.wake(2), stream)
        #expect((1...4).map { table.holder(of: Self.wake($0)) != nil } == [false, true, true, true])
        table.answered(stream)
        #expect(table.holder(of: Self.wake(2)) == nil)
        table.expired(Self.wake(2), stream)
        #expect(table.isHolderGone(Self.wake(3)) == false)
        table.remove(stream)
        #expect((1...4).map { table.holder(of: Self.wake($0)) == nil } == [true, true, true, true])
        #expect((1...4).map { table.isHolderGone(Self.wake($0)) } == [false, false, true, true])
        table.forget(Self.wake(3))
        #expect(table.isHolderGone(Self.wake(3)) == false)
    }

    @Test("How often a stream became full is counted")
    func full() {
        var table = StreamTable(wakeBytesMax: 10)
        let stream = Self.insert(&table, 1, slots: 5)
        for (number, bytes) in [4, 5, 1].enumerated() {
            #expect(table.timesFull == 0)
            table.give(Self.wake(number), bytes: bytes, to: stream, at: Self.now)
        }
        #expect(table.timesFull == 1)
        #expect(table.release(Self.wake(0), stream) == true)
        table.give(Self.wake(3), bytes: 100, to: stream, at: Self.now)
        #expect(table.timesFull == 2)
    }

    @Test("The wakes of ended streams are taken stream by stream, in the order of their ids, and once")
    func ended() {
        var table = StreamTable(wakeBytesMax: 1000)
        var ended = EndedStreams()
        #expect(ended.isEmpty == true && ended.popWake() == nil)
        for (number, wakes) in [[5, 3, 9], [], [2, 8]].enumerated() {
            let stream = Self.insert(&table, number, slots: 9)
            for wake in wakes { table.give(Self.wake(wake), bytes: 1, to: stream, at: Self.now) }
            table.remove(stream)
            ended.append(stream)
        }
        var taken: [WakeID] = []
        for count in 0..<5 {
            #expect(ended.isEmpty == false, "after \(count)")
            if let wake = ended.popWake() { taken.append(wake) }
        }
        #expect(taken == [3, 5, 9, 2, 8].map(Self.wake))
        #expect(ended.isEmpty == true && ended.popWake() == nil)
    }
}
