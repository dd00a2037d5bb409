import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The memory of pushes", .timeLimit(.minutes(15)))
struct ContentMemoryTests {
    private static func topic(_ number: UInt32) -> TopicIndex { TopicIndex(rawValue: number) }

    /// Returns a content with a payload of `payloadBytes` bytes.
    private static func content(_ payloadBytes: Int) -> PushContent {
        [UInt8](repeating: 0x20, count: payloadBytes).withByteView {
            PushContent(apnsID: EngineRig.apnsID(1), collapseID: ByteView(), payload: $0)
        }
    }

    /// Additional bytes and the expected refusals, for topic 1 (topics 0 and 1 hold 100 bytes each) or a new topic.
    static let refusals: [(bytes: Int, isKnown: Bool, bytesMax: Int, bytesPerTopicMax: Int, refusal: Refusal?)] = [
        (50, true, 250, 150, nil),
        (51, true, 250, 151, .noMemory),
        (51, true, 251, 150, .noMemoryForTopic),
        // A topic over its share gets the topic's reason, even if other topics have used up the total.
        (51, true, 250, 150, .noMemoryForTopic),
        (50, false, 250, 50, nil),
        (51, false, 250, 51, .noMemory),
        (51, false, 251, 50, .noMemoryForTopic),
        (0, true, 0, 0, .noMemoryForTopic),
        (0, true, 0, .max, .noMemory),
        (.max / 2, true, .max, .max, nil),
    ]

    @Test("Content is accepted up to both limits, and not beyond", arguments: Self.refusals.indices)
    func refusal(index: Int) {
        let row = Self.refusals[index]
        var memory = ContentMemory()
        memory.grow(topicCount: 2)
        let empty = Self.content(0)
        memory.hold(empty, Self.topic(0))
        let contents = [Self.content(100 - memory.bytes), Self.content(100 - memory.bytes)]
        memory.letGo(empty, Self.topic(0))
        for (number, content) in contents.enumerated() { memory.hold(content, Self.topic(UInt32(number))) }
        #expect(memory.bytes == 200)
        let refusal = memory.refusal(
            row.bytes,
            row.isKnown ? Self.topic(1) : nil,
            bytesMax: row.bytesMax,
            bytesPerTopicMax: row.bytesPerTopicMax
        )
        #expect(refusal == row.refusal)
        for (number, content) in contents.enumerated() { memory.letGo(content, Self.topic(UInt32(number))) }
    }
}

@Suite("Traces of pushes", .timeLimit(.minutes(15)))
struct PushTraceTests {
    /// The traces of a wake, by the numbers from which they were made.
    private struct ContentOfWake: Equatable {
        var own: Int?
        var links: [Int] = []
        var dropped: UInt32 = 0
        var state = ""
    }

    private static func number(_ parent: TraceParent) -> Int { Int(parent.second) }

    /// Returns the traces of the wake in flight, or of the pending push; nil if there are none.
    private static func told(_ rig: EngineRig, pending: Bool = false) -> ContentOfWake? {
        let state = rig.snapshot(1).state
        let handle = pending ? state.pending?.handle : state.inFlight?.push.handle
        return handle.flatMap { PushContent($0) }.flatMap { PushTrace($0.trace) }.map { trace in
            ContentOfWake(
                own: trace.parent.map { Self.number($0) },
                links: (0..<trace.linkCount).map { Self.number(trace.link($0)) },
                dropped: trace.linksDropped,
                state: trace.state.string
            )
        }
    }

    private static let state = "vendor=\"1\""

    @Test("A push's trace is sent with its wake; a push without one has none")
    func own() {
        let rig = EngineRig()
        rig.push(1, workerIsFree: true, trace: EngineRig.trace(7))
        #expect(Self.told(rig) == ContentOfWake(own: 7, state: Self.state))
        let plain = EngineRig()
        plain.push(1, workerIsFree: true)
        #expect(Self.told(plain) == nil)
    }

    @Test("A push that replaced others links to their traces, the newest first, at most eight")
    func links() throws {
        let rig = EngineRig()
        for number in 1...4 { rig.push(1, trace: EngineRig.trace(number)) }
        #expect(Self.told(rig, pending: true) == ContentOfWake(own: 4, links: [3, 2, 1], state: Self.state))
        // A push without a trace keeps the traces of the push that it replaces.
        rig.push(1)
        #expect(Self.told(rig, pending: true) == ContentOfWake(links: [4, 3, 2, 1]))
        for number in 5...12 { rig.push(1, trace: EngineRig.trace(number)) }
        let last = ContentOfWake(own: 12, links: [11, 10, 9, 8, 7, 6, 5, 4], dropped: 3, state: Self.state)
        #expect(Self.told(rig, pending: true) == last)
        _ = try #require(rig.engine.claim(rig.engine.identity(rig.index(1)).topic))
        #expect(Self.told(rig) == last)
    }

    @Test("A push whose wake failed is a link of the newer pending one, whether that has a trace or not")
    func failed() throws {
        for newer in [nil, 9] {
            let rig = EngineRig()
            rig.push(1, workerIsFree: true, trace: EngineRig.trace(1))
            rig.push(1, trace: newer.map { EngineRig.trace($0) })
            let wake = try #require(rig.snapshot(1).wake)
            #expect(rig.engine.report(.push(.failed), wake: wake) == .ended)
            let state = newer == nil ? "" : Self.state
            #expect(Self.told(rig, pending: true) == ContentOfWake(own: newer, links: [1], state: state))
            // The replaced content is counted and freed once.
            rig.advance(by: 1_000_000)
            let last = try #require(rig.engine.claim(rig.engine.identity(rig.index(1)).topic))
            #expect(rig.engine.report(.push(.newData), wake: last.id) == .ended)
            #expect(rig.engine.contentBytes == 0)
        }
    }

    @Test("An expired push does not change the traces of the pending one")
    func discarded() {
        let rig = EngineRig()
        rig.push(1, trace: EngineRig.trace(1))
        rig.push(1, .considerate, .nowOrNever, trace: EngineRig.trace(2))
        #expect(Self.told(rig, pending: true) == ContentOfWake(own: 1, state: Self.state))
    }

    @Test("Traces of pending pushes and of wakes in flight survive a restart")
    func restored() throws {
        let rig = EngineRig()
        let store = SimulatedStore()
        rig.push(1, workerIsFree: true, trace: EngineRig.trace(1))
        rig.push(1, trace: EngineRig.trace(2))
        rig.push(1, trace: EngineRig.trace(3))
        rig.push(2)
        try store.commit(from: rig.engine)
        let next = try rig.restarted(from: store)
        #expect(Self.told(next) == ContentOfWake(own: 1, state: Self.state))
        #expect(Self.told(next, pending: true) == ContentOfWake(own: 3, links: [2], state: Self.state))
        #expect(next.engine.contentBytes == rig.engine.contentBytes)
    }

    @Test("Only bytes that were written as a trace are read as one")
    func malformed() {
        var buffer = ByteBuffer()
        PushTrace.write(EngineRig.trace(1), state: ByteView("a=1"), to: &buffer)
        let whole = buffer.view.array
        #expect(whole.withByteView { PushTrace($0) } != nil)
        for count in 0..<whole.count { #expect(Array(whole[..<count]).withByteView { PushTrace($0) } == nil) }
        #expect((whole + [0]).withByteView { PushTrace($0) } == nil)
        for place in 0...3 {
            var bytes = whole
            bytes[place] = 0xFF
            #expect(bytes.withByteView { PushTrace($0) } == nil, "byte \(place)")
        }
    }
}
