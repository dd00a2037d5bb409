import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("How much of wakes one stream holds", .timeLimit(.minutes(15)))
struct WakeBytesTests {
    /// The bytes of a payload of `DispatchRig` while its number has one digit.
    private static let payloadBytes = "{\"aps\":{\"content-available\":1},\"n\":1}".utf8.count

    @Test("A stream gets wakes until it holds so many bytes; each end of one makes room, other streams have their own")
    func bytes() throws {
        let rig = DispatchRig(wakeBytesPerStreamMax: 2 * Self.payloadBytes)
        rig.subscribe(1, slots: 100)
        rig.push(1)
        #expect(rig.takeDeliveries().count == 1)
        #expect(rig.dispatcher.timesStreamWasFull == 0)
        rig.push(2)
        let second = try #require(rig.takeDeliveries().first)
        #expect(rig.dispatcher.timesStreamWasFull == 1)
        #expect(rig.push(3)?.held == .worker)
        #expect(rig.push(4)?.held == .worker)
        #expect(rig.takeDeliveries().isEmpty)
        rig.report(.newData, second.wake)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(3)])
        #expect(rig.dispatcher.timesStreamWasFull == 2)
        rig.subscribe(2, slots: 1)
        let fourth = rig.takeDeliveries()
        #expect(fourth.map(\.token) == [EngineRig.token(4)])
        #expect(fourth.map(\.stream) == [DispatchRig.address(2)])
    }

    @Test("Another bound holds for the streams there are, from the next wake on")
    func change() throws {
        let rig = DispatchRig(wakeBytesPerStreamMax: 2 * Self.payloadBytes)
        rig.subscribe(1, slots: 100)
        rig.push(1)
        rig.dispatcher.wakeBytesPerStreamChanged(to: Self.payloadBytes)
        rig.push(2)
        let first = try #require(rig.takeDeliveries().first)
        rig.push(3)
        #expect(rig.takeDeliveries().isEmpty)
        rig.dispatcher.wakeBytesPerStreamChanged(to: 4 * Self.payloadBytes)
        rig.report(.newData, first.wake)
        #expect(rig.takeDeliveries().map(\.token) == [2, 3].map { EngineRig.token($0) })
    }

    @Test("A wake that expires or is lost makes room as well, and a wake without a push takes none")
    func otherEnds() throws {
        let rig = DispatchRig(EngineRig.open([(.executionWindow, 5)]), wakeBytesPerStreamMax: Self.payloadBytes)
        rig.subscribe(1, slots: 100)
        rig.push(1)
        rig.push(2)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(1)])
        rig.advance(by: 5000)
        let second = rig.takeDeliveries()
        #expect(second.map(\.token) == [EngineRig.token(2)])
        rig.push(3)
        #expect(rig.takeDeliveries().isEmpty)
        let wake = try #require(second.first?.wake)
        rig.dispatcher.lose(wake, on: DispatchRig.address(1), takingBackAttempt: false)
        #expect(!rig.takeDeliveries().isEmpty)

        let empty = DispatchRig(wakeBytesPerStreamMax: Self.payloadBytes)
        empty.rig.register(1)
        empty.rig.register(2)
        empty.subscribe(1, slots: 100)
        for device in 1...2 {
            #expect(empty.dispatcher.simulateLaunch(empty.rig.index(device)) == .launched)
        }
        empty.push(3)
        #expect(empty.takeDeliveries().count == 3)
        #expect(empty.dispatcher.timesStreamWasFull == 1)
    }
}
