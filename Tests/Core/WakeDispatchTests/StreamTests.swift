import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Streams that end, stall, pause and drain", .timeLimit(.minutes(15)))
struct StreamTests {
    /// Returns a rig with a stream on which three wakes have expired. A pending push waits for it.
    private static func stalled() -> (DispatchRig, [Delivery]) {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 4)
        for device in 0..<3 { rig.push(device) }
        let deliveries = rig.takeDeliveries()
        rig.advance(by: 30_000)
        #expect(Set(rig.output.expirations) == Set(deliveries.map(\.wake)))
        _ = rig.output.take()
        rig.push(10)
        return (rig, deliveries)
    }

    @Test("A stream on which three wakes in a row expired gets no more wakes")
    func stalls() {
        let (rig, _) = Self.stalled()
        #expect(rig.takeDeliveries().isEmpty)
        #expect(rig.engine.totals.held[.worker] == 1)
        let counts = rig.dispatcher.workerCounts(nil)
        #expect((counts.connected, counts.slots, counts.busy, counts.stalled) == (1, 4, 0, 1))
        #expect(counts.stallReason?.contains("nothing was ever received from it") == true)
    }

    @Test("A late answer to a wake that is forgotten ends the stall as well")
    func forgotten() {
        let (rig, deliveries) = Self.stalled()
        rig.advance(by: 700_000)
        _ = rig.output.take()
        #expect(rig.report(.newData, deliveries[0].wake) == .unknown)
        #expect(rig.takeDeliveries().map(\.token).contains(EngineRig.token(10)))
    }

    @Test("A report for another wake does not end the stall")
    func othersAnswer() {
        let (rig, _) = Self.stalled()
        #expect(rig.report(.newData, WakeID(random: (1, 1))) == .unknown)
        #expect(rig.takeDeliveries().isEmpty)
    }

    @Test("Wakes that expire in the same millisecond are reported in launch order")
    func expiryOrder() {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 8)
        for device in 0..<4 {
            rig.push(device)
            rig.advance(by: 1)
        }
        let wakes = rig.takeDeliveries().map(\.wake)
        rig.advance(by: 40_000)
        #expect(rig.output.expirations == wakes)
    }

    @Test("A wake whose deadline passed unnoticed expires before its answer, which is late")
    func answerAfterDeadline() {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 3)
        for device in 0..<3 { rig.push(device) }
        let wakes = rig.takeDeliveries().map(\.wake)
        rig.rig.pass(30_000)
        #expect(!rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 0))
        for wake in wakes { #expect(rig.report(.newData, wake) == .endedOtherwise(.push(.expired))) }
        rig.push(10)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(10)])
    }

    @Test("A wake whose deadline passed unnoticed expires, and is not lost")
    func expiredBeforeLost() throws {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 1)
        rig.push(1)
        let wake = try #require(rig.takeDeliveries().first?.wake)
        rig.rig.pass(30_000)
        _ = rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 0)
        rig.dispatcher.lose(wake, on: DispatchRig.address(1), takingBackAttempt: true)
        #expect(rig.engine.totals.results[.expired] == 1 && rig.engine.totals.results[.lost] == 0)
        #expect(rig.output.expirations == [wake])
        #expect(rig.dispatcher.workerCounts(nil).busy == 0)
    }

    @Test("A topic logs at most 64 opened streams a second, and others have their own share")
    func loggedStreams() {
        let rig = DispatchRig()
        func logged(_ count: Int, topic: Int) -> Int {
            for number in 1...count { rig.subscribe(100 * topic + number, topic: topic) }
            return rig.engine.takeSubscriptions().count { $0.kind == .subscribed }
        }
        #expect(logged(70, topic: 0) == 64)
        #expect(logged(10, topic: 1) == 10)
        rig.advance(by: 1000)
        #expect(logged(70, topic: 0) == 64)
    }

    @Test("A stream that sees to its silence itself does not stall")
    func neverStalls() {
        let rig = DispatchRig()
        rig.subscribe(1, stallsWhenSilent: false)
        for device in 0..<8 {
            rig.push(device)
            #expect(rig.output.deliveries.count == 1, "device \(device)")
            rig.advance(by: 30_000)
            _ = rig.output.take()
        }
        #expect(rig.engine.totals.results[.expired] == 8)
    }
}
