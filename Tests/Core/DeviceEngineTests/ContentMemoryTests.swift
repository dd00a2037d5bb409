import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

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
