import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("How many pushes one device takes", .timeLimit(.minutes(15)))
struct PushRateTests {
    private func rig(_ pushesMax: Int, seconds: Int = 60) -> EngineRig {
        var configuration = EngineRig.open()
        configuration.pushRate.pushesMax = pushesMax
        configuration.pushRate.seconds = seconds
        return EngineRig(configuration)
    }

    @Test("A window has room for so many; the next is refused and changes nothing, until the window has passed")
    func window() throws {
        let rig = self.rig(3)
        #expect(rig.push(1) != nil)
        rig.advance(by: 59_000)
        for _ in 0..<2 { #expect(rig.push(1) != nil) }
        let (books, state) = (rig.engine.totals, rig.snapshot(1).state)
        _ = rig.engine.takeStep()
        _ = rig.takeEvents(1)
        for _ in 0..<5 { #expect(rig.push(1) == nil) }
        let end = rig.instant + 1000
        #expect(rig.engine.rateRefusal(rig.index(1)) == .tooMany(until: end))
        #expect(rig.engine.totals == books && rig.snapshot(1).state == state)
        #expect(rig.engine.takeStep().isEmpty && rig.takeEvents(1).isEmpty)
        rig.advance(by: 999)
        #expect(rig.push(1) == nil)
        rig.advance(by: 1)
        // The one that opens the next window is its first.
        for _ in 0..<3 { #expect(rig.push(1) != nil) }
        #expect(rig.push(1) == nil)
        #expect(rig.engine.totals.accepted == 6)
    }

    @Test("A device that was quiet, however long, has a whole window again", arguments: [60, 86_400, 1 << 31])
    func quiet(seconds: Int64) {
        let rig = self.rig(2)
        for _ in 0..<2 { #expect(rig.push(1, wakes: false) != nil) }
        rig.advance(by: seconds * 1000)
        for _ in 0..<2 { #expect(rig.push(1, wakes: false) != nil) }
        #expect(rig.push(1, wakes: false) == nil)
    }

    @Test("Devices are counted apart, and pushes that wake nobody are counted")
    func apart() {
        let rig = self.rig(2)
        for device in 1...3 {
            #expect(rig.push(device, wakes: false) != nil)
            #expect(rig.push(device) != nil)
            #expect(rig.push(device) == nil)
            #expect(rig.push(device, wakes: false) == nil)
        }
    }

    @Test("None is no limit, and the most that may be set is one", arguments: [0, 65_535])
    func extremes(pushesMax: Int) {
        let rig = self.rig(pushesMax)
        for number in 0..<70_000 {
            let isTaken = rig.push(1, wakes: false) != nil
            guard isTaken == (pushesMax == 0 || number < pushesMax) else {
                Issue.record("push \(number)")
                return
            }
        }
    }

    @Test("A push that is sent again is answered as before, counts nothing, and is answered in a full window, too")
    func repeated() throws {
        let rig = self.rig(2)
        let first = try #require(rig.push(1, clientID: 7))
        for _ in 0..<5 { #expect(rig.push(1, clientID: 7)?.disposition == first.disposition) }
        #expect(rig.push(1, clientID: 8) != nil)
        #expect(rig.push(1, clientID: 9) == nil)
        #expect(rig.push(1, clientID: 7)?.disposition == first.disposition)
        #expect(rig.push(1, clientID: 8) != nil)
        rig.advance(by: 60_000)
        // What was refused was never accepted under its name.
        #expect(rig.push(1, clientID: 9)?.disposition == .coalesced)
        #expect(rig.engine.totals.accepted == 3)
    }

    @Test("A dry run counts nothing, and foretells the refusal")
    func dryRun() {
        var configuration = EngineRig.open()
        configuration.pushRate.pushesMax = 2
        let rig = DispatchRig(configuration)
        for _ in 0..<5 { #expect(rig.push(1, isDryRun: true) != nil) }
        for _ in 0..<2 {
            #expect(rig.push(1) != nil)
        }
        #expect(rig.push(1, isDryRun: true) == nil)
        #expect(rig.push(1) == nil)
        #expect(rig.push(2, isDryRun: true) != nil)
    }
}
