import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("What is due of a device comes before what happens to it", .timeLimit(.minutes(15)))
struct AtOneMomentTests {
    /// Device 1 has launched once; its second push has become due, and the step has not come to it.
    private static func due() throws -> DispatchRig {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 4)
        rig.push(1)
        rig.report(.newData, try #require(rig.takeDeliveries().first).wake)
        rig.push(1)
        rig.rig.pass(900_000)
        #expect(!rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 0))
        #expect(rig.takeDeliveries().isEmpty)
        return rig
    }

    private static let second = EngineRig.apnsID(2)

    @Test("A push does not absorb the one that was due before it came")
    func push() throws {
        let rig = try Self.due()
        let answer = rig.push(1)
        #expect(answer?.disposition == .scheduled)
        #expect(rig.takeDeliveries().map(\.apnsID) == [Self.second])
        #expect(rig.engine.totals.coalesced == 0)
    }

    @Test("A dry run says what a push would be answered behind what is due")
    func dryRun() throws {
        let rig = try Self.due()
        #expect(rig.push(1, isDryRun: true)?.disposition == .scheduled)
        #expect(rig.takeDeliveries().map(\.apnsID) == [Self.second])
    }

    @Test("A report of a force quit does not discard the push that was due before it")
    func conditions() throws {
        let rig = try Self.due()
        var report = ConditionsReport()
        report.appState = .forceQuit
        _ = rig.dispatcher.conditions(report, rig.rig.index(1))
        #expect(rig.takeDeliveries().map(\.apnsID) == [Self.second])
        #expect(rig.engine.totals.discarded.sum == 0)
    }

    @Test("A removal leaves the wake that was due before it in flight")
    func removal() throws {
        let rig = try Self.due()
        rig.dispatcher.unregister(rig.rig.index(1))
        #expect(rig.takeDeliveries().map(\.apnsID) == [Self.second])
        #expect(rig.engine.totals.discarded.sum == 0)
        #expect(rig.engine.totals.inFlight == 1)
    }

    @Test("A forced launch finds the wake in flight that was due before it")
    func simulatedLaunch() throws {
        let rig = try Self.due()
        #expect(rig.dispatcher.simulateLaunch(rig.rig.index(1)) == .wakeInFlight)
        #expect(rig.takeDeliveries().map(\.apnsID) == [Self.second])
    }

    @Test("A forced expiry ends the wake that was due before it")
    func simulatedExpiration() throws {
        let rig = try Self.due()
        #expect(rig.dispatcher.simulateExpiration(rig.rig.index(1)))
        #expect(rig.engine.totals.results[.expired] == 1)
    }

    @Test("A question finds the wake in flight, and not a device that waits for a worker")
    func question() throws {
        let rig = try Self.due()
        let snapshot = rig.dispatcher.snapshot(rig.rig.index(1))
        #expect(snapshot.inFlightID == Self.second)
        #expect(snapshot.held.isEmpty)
    }

    @Test("A removed token moves to another topic once the wake of its old one is past its deadline")
    func registration() throws {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 1)
        rig.push(1)
        rig.dispatcher.unregister(rig.rig.index(1))
        let token = EngineRig.token(1)
        func register() -> Admission {
            EngineRig.topicName(1).withByteView { rig.dispatcher.register(token, topic: $0) }
        }
        #expect(register() == .refused(.otherTopic))
        rig.rig.pass(30_000)
        #expect(!rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 0))
        #expect(register() == .device(rig.rig.index(1)))
        #expect(rig.dispatcher.workerCounts(nil).busy == 0)
    }

    @Test("A push that another policy has made due launches before the push that comes")
    func policyChange() throws {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 4)
        rig.push(1)
        rig.report(.newData, try #require(rig.takeDeliveries().first).wake)
        rig.push(1)
        rig.rig.pass(60_000)
        #expect(rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 1000))
        rig.engine.reconfigure(EngineRig.open([(.launchInterval, 60)]))
        #expect(rig.push(1)?.disposition == .scheduled)
        #expect(rig.takeDeliveries().map(\.apnsID) == [Self.second])
    }

    @Test("It goes where it would have gone: nowhere while no worker is free, and then the push takes its place")
    func noWorker() throws {
        let rig = try Self.due()
        rig.pause(1, true)
        #expect(rig.push(1)?.disposition == .coalesced)
        rig.pause(1, false)
        #expect(rig.takeDeliveries().map(\.apnsID) == [EngineRig.apnsID(3)])
    }

    @Test("A step that has launched as many as it may leaves none behind a push that comes")
    func stepIsFull() throws {
        let rig = DispatchRig(workPerStepMax: 3)
        rig.subscribe(1, slots: 8)
        for device in 1...4 { rig.push(device) }
        for delivery in rig.takeDeliveries() { rig.report(.newData, delivery.wake) }
        for device in 1...4 { rig.push(device) }
        rig.rig.pass(900_000)
        #expect(!rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 3))
        let launched = rig.takeDeliveries().map(\.token)
        #expect(launched.count == 3)
        let left = try #require((1...4).first { !launched.contains(EngineRig.token($0)) })
        #expect(rig.push(left)?.disposition == .scheduled)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(left)])
        #expect(rig.engine.totals.coalesced == 0)
    }

    @Test("A wake that is to be lost with its stream is lost before a push to its device")
    func streamEnded() throws {
        let rig = DispatchRig(workPerStepMax: 2)
        rig.subscribe(1, slots: 8)
        for device in 1...4 { rig.push(device) }
        let wakes = rig.takeDeliveries()
        #expect(wakes.count == 4)
        rig.endStream(1)
        #expect(rig.engine.totals.results[.lost] == 2)
        let left = try #require((1...4).first { rig.engine.snapshot(rig.rig.index($0)).wake != nil })
        #expect(rig.push(left)?.disposition == .coalesced)
        #expect(rig.engine.totals.results[.lost] == 3)
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 8) {}
        #expect(rig.engine.totals.results[.lost] == 4)
        #expect(rig.engine.totals.inFlight == 0)
    }
}
