import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Which stream gets the next wake", .timeLimit(.minutes(15)))
struct FairnessTests {
    @Test("Free streams of a topic take turns: none is ahead of another by two wakes")
    func roundRobin() {
        let rig = DispatchRig()
        for stream in 0..<5 { rig.subscribe(stream, slots: 1000) }
        var counts = [Int](repeating: 0, count: 5)
        for device in 0..<137 {
            rig.push(device)
            for delivery in rig.takeDeliveries() {
                counts[delivery.stream.number] += 1
                if device % 3 == 0 { rig.report(.newData, delivery.wake) }
            }
            #expect((counts.max() ?? 0) - (counts.min() ?? 0) <= 1)
        }
        #expect(counts.reduce(0, +) == 137)
    }

    @Test("A topic with ten thousand due devices delays no other topic")
    func betweenTopics() {
        let rig = DispatchRig(EngineRig.open([(.launchInterval, 60)]))
        rig.subscribe(1, topic: 0, slots: 1)
        rig.subscribe(2, topic: 1, slots: 4096)
        let others = [20_001, 20_002]
        // Both have launched once and have a push that becomes due at the same time.
        for other in others { rig.push(other, topic: 1) }
        for delivery in rig.takeDeliveries() where delivery.topic == EngineRig.topicName(1) {
            rig.report(.noData, delivery.wake)
        }
        for device in 0..<10_000 { rig.push(device, topic: 0) }
        rig.push(others[0], topic: 1)
        _ = rig.takeDeliveries()
        // 10,000 devices wait for a slot. They must not be examined again.
        rig.rig.pass(60_000)
        var steps = 1
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 16) { steps += 1 }
        #expect(steps == 1)
        #expect(rig.takeDeliveries().contains { $0.topic == EngineRig.topicName(1) })
        rig.push(others[1], topic: 1)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(others[1])])
    }

    @Test("A naming stream takes its devices in turn: one that is always due delays no other")
    func namedTurns() {
        let rig = DispatchRig()
        for device in [1, 2] {
            rig.rig.register(device)
            rig.rig.conditions(device) { $0.appState = .active }
        }
        rig.subscribe(1, slots: 1, devices: [1, 2])
        rig.push(1)
        var order: [Int] = []
        for _ in 0..<8 {
            for device in [1, 2] { rig.push(device) }
            guard let delivery = rig.takeDeliveries().last else { break }
            order.append(delivery.token == EngineRig.token(1) ? 1 : 2)
            rig.report(.newData, delivery.wake)
            guard let next = rig.output.deliveries.last else { break }
            order.append(next.token == EngineRig.token(1) ? 1 : 2)
            rig.report(.newData, next.wake)
        }
        #expect(order.count { $0 == 1 } > 3 && order.count { $0 == 2 } > 3)
    }
}

@Suite("Limits of one step", .timeLimit(.minutes(15)))
struct StepBoundTests {
    @Test("A stream with many free slots gets waiting work in steps, in order of arrival", arguments: [false, true])
    func crowd(isOfTasks: Bool) {
        let rig = TaskDispatchTests.rig(workPerStepMax: 16)
        for device in 0..<100 {
            if isOfTasks { rig.submit(device, device % 2 == 0 ? "a" : "b") } else { rig.push(device) }
        }
        rig.subscribe(1, slots: 1000, tasks: ["a", "b"])
        var tokens = rig.takeDeliveries().map(\.token)
        #expect(tokens.count <= 16)
        // A push of another topic does not wait for these launches.
        rig.subscribe(2, topic: 1, slots: 1)
        rig.push(1000, topic: 1)
        #expect(rig.takeDeliveries().map(\.stream) == [DispatchRig.address(2)])
        var steps = 0
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 1000) {
            let delivered = rig.takeDeliveries().map(\.token)
            #expect(delivered.count <= 16)
            tokens += delivered
            steps += 1
        }
        tokens += rig.takeDeliveries().map(\.token)
        #expect(steps >= 5)
        #expect(tokens == (0..<100).map { EngineRig.token($0) })
        #expect(!rig.dispatcher.isBehind)
    }

    @Test("Several new naming streams get their devices in steps")
    func namingStreams() {
        let rig = DispatchRig(workPerStepMax: 8)
        for device in 0..<60 { rig.push(device) }
        for stream in 0..<60 { rig.subscribe(stream, slots: 1, devices: [stream]) }
        #expect(rig.takeDeliveries().count == 8)
        var count = 8
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 1000) {
            let delivered = rig.takeDeliveries().count
            #expect(delivered <= 8)
            count += delivered
        }
        #expect(count + rig.takeDeliveries().count == 60)
    }

    @Test("Streams that end together lose their wakes in steps; until then an answer is accepted")
    func endedStreams() throws {
        let rig = DispatchRig(EngineRig.open([(.maxAttempts, 1)]), workPerStepMax: 16)
        for stream in 0..<3 { rig.subscribe(stream, slots: 30) }
        for device in 0..<90 { rig.push(device) }
        let wakes = rig.takeDeliveries()
        #expect(wakes.count == 90)
        #expect(rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 1000))
        for stream in 0..<3 { rig.endStream(stream) }
        #expect(rig.engine.totals.results[.lost] == 16)
        #expect(rig.dispatcher.isBehind)
        #expect(rig.dispatcher.workerCounts(nil) == .init())
        rig.subscribe(4, topic: 1)
        rig.push(1000, topic: 1)
        #expect(rig.takeDeliveries().map(\.stream) == [DispatchRig.address(4)])
        let late = try #require(wakes.last { $0.stream == DispatchRig.address(2) })
        #expect(rig.report(.newData, late.wake) == .ended)
        #expect(rig.report(.newData, late.wake) == .repeated)
        var steps = 0
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 1000) { steps += 1 }
        #expect(steps == 4)
        #expect(rig.engine.totals.results[.lost] == 89)
        #expect(rig.engine.totals.results[.newData] == 1)
        #expect(rig.dispatcher.workerCounts(nil) == .init(connected: 1, slots: 1, busy: 1))
    }
}

@Suite("Due events of a device precede new ones", .timeLimit(.minutes(15)))
struct AtOneMomentTests {
    /// Returns a rig in which device 1 has launched once and its second push is due but was not processed.
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

    /// Operations on the device, each of which returns true if it found the due push in flight.
    static let operations: [(name: String, isRight: @Sendable (DispatchRig) -> Bool)] = [
        ("a push does not absorb it", { $0.push(1)?.disposition == .scheduled }),
        ("a dry run does not absorb it", { $0.push(1, isDryRun: true)?.disposition == .scheduled }),
        ("a force quit does not discard it", { $0.conditions(1) { $0.appState = .forceQuit }.appState == .forceQuit }),
        (
            "a removal leaves it in flight",
            {
                $0.dispatcher.unregister($0.rig.index(1))
                return $0.engine.totals.inFlight == 1
            }
        ),
        ("a forced launch finds it", { $0.dispatcher.simulateLaunch($0.rig.index(1)) == .laneIsFull }),
        (
            "a forced expiry ends it",
            { $0.dispatcher.simulateExpiration($0.rig.index(1)) && $0.engine.totals.results[.expired] == 1 }
        ),
        (
            "a question does not find it waiting for a worker",
            {
                let snapshot = $0.dispatcher.snapshot($0.rig.index(1))
                return snapshot.inFlightID == Self.second && snapshot.held.isEmpty
            }
        ),
    ]

    @Test("A push that is due launches before the next operation on its device", arguments: Self.operations.indices)
    func due(index: Int) throws {
        let (name, isRight) = Self.operations[index]
        let rig = try Self.due()
        #expect(isRight(rig), "\(name)")
        #expect(rig.takeDeliveries().map(\.apnsID) == [Self.second], "\(name)")
        #expect(rig.engine.totals.coalesced == 0 && rig.engine.totals.discarded.sum == 0, "\(name)")
    }

    @Test("A removed token moves to another topic once its old wake's deadline has passed")
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

    @Test("A push that became due by a new policy launches before a new push")
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

    @Test("Without a free worker the due push stays pending, and the new push replaces it")
    func noWorker() throws {
        let rig = try Self.due()
        rig.pause(1, true)
        #expect(rig.push(1)?.disposition == .coalesced)
        rig.pause(1, false)
        #expect(rig.takeDeliveries().map(\.apnsID) == [EngineRig.apnsID(3)])
    }

    @Test("A due push is launched before a new push even if the step is full")
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

    @Test("A wake that will be lost with its stream is lost before a push to its device")
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
