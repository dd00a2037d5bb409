import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Streams that name devices", .timeLimit(.minutes(15)))
struct NamingStreamTests {
    @Test("Streams that name a device are limited; an ended one frees a place, and other devices have their own")
    func bound() {
        var configuration = EngineRig.open()
        configuration.streamsPerDeviceMax = 3
        let rig = DispatchRig(configuration)
        for stream in 0..<3 { #expect(rig.subscribe(stream, devices: [1, stream + 10])) }
        #expect(!rig.subscribe(3, devices: [2, 1]))
        #expect(rig.subscribe(3, devices: [2, 10]))
        #expect(rig.subscribe(4))
        #expect(rig.subscribe(5, topic: 1, devices: [1]), "of another topic")
        rig.endStream(1)
        #expect(rig.subscribe(6, devices: [1, 1]))
        #expect(!rig.subscribe(7, devices: [1]))
        #expect(rig.dispatcher.workerCounts(nil).connected == 6)
    }

    @Test("The default limit is 64 streams, and 0 means none")
    func bounds() {
        let rig = DispatchRig()
        for stream in 0..<64 { #expect(rig.subscribe(stream, devices: [1])) }
        #expect(!rig.subscribe(64, devices: [1]))
        var configuration = EngineRig.open()
        configuration.streamsPerDeviceMax = 0
        rig.engine.reconfigure(configuration)
        for stream in 64..<200 { #expect(rig.subscribe(stream, devices: [1])) }
    }

    @Test("A task counts as accepted by a busy stream that names its device, not by streams of other devices")
    func takers() {
        let rig = DispatchRig(EngineRig.openToTasks())
        rig.subscribe(1, kinds: [], tasks: ["a", "b"], devices: [1, 2])
        for device in 1...3 { rig.submit(device, device == 1 ? "b" : "a") }
        rig.submit(1, "c", .processing([]))
        func isTaken(_ device: Int) -> Bool? {
            rig.dispatcher.snapshot(rig.rig.index(device)).tasks.first { $0.name != "b" }?.isTaken
        }
        #expect([1, 2, 3].map(isTaken) == [false, true, false])
        rig.endStream(1)
        #expect([1, 2, 3].map(isTaken) == [false, false, false])
    }
}

@Suite("Streams that receive conditions", .timeLimit(.minutes(15)))
struct ConditionStreamTests {
    /// Returns the condition changes since the last call: stream, device and battery level.
    private static func told(_ rig: DispatchRig) -> [String] {
        rig.output.take().compactMap { event in
            guard case .conditions(let token, let conditions, let stream) = event else { return nil }
            let device = (0..<1000).first { EngineRig.token($0) == token } ?? -1
            return "\(stream.number) \(device) \(conditions.batteryLevel)"
        }
    }

    private static func charge(_ rig: DispatchRig, _ device: Int, _ level: Double) {
        rig.rig.register(device)
        rig.conditions(device) { $0.batteryLevel = level }
    }

    @Test("Streams of the topic that name the device or no device receive conditions once for each change")
    func whoIsTold() {
        let rig = DispatchRig()
        rig.subscribe(1, reportsConditions: true)
        rig.subscribe(2, reportsConditions: true, devices: [1, 2])
        rig.subscribe(3, reportsConditions: true, devices: [2])
        rig.subscribe(4)
        rig.subscribe(5, topic: 1, reportsConditions: true)
        rig.subscribe(6, devices: [1])
        Self.charge(rig, 1, 0.5)
        #expect(Set(Self.told(rig)) == ["1 1 0.5", "2 1 0.5"])
        Self.charge(rig, 1, 0.5)
        #expect(Self.told(rig).isEmpty)
        rig.conditions(1) { $0.network = true }
        #expect(Self.told(rig).isEmpty)
        Self.charge(rig, 3, 0.25)
        #expect(Self.told(rig) == ["1 3 0.25"])
        rig.endStream(1)
        rig.endStream(2)
        Self.charge(rig, 1, 0.75)
        #expect(Self.told(rig).isEmpty)
        Self.charge(rig, 2, 0.75)
        #expect(Self.told(rig) == ["3 2 0.75"])
    }

    @Test("A paused stream receives each device's latest conditions once, when it resumes")
    func paused() {
        let rig = DispatchRig()
        rig.subscribe(1, reportsConditions: true)
        rig.subscribe(2, reportsConditions: true, devices: [1])
        rig.pause(1, true)
        rig.pause(2, true)
        for round in 1...500 {
            Self.charge(rig, 1, Double(round) / 1000)
            Self.charge(rig, 2, Double(round) / 1000)
        }
        #expect(Self.told(rig).isEmpty)
        rig.pause(2, false)
        #expect(Self.told(rig) == ["2 1 0.5"])
        rig.pause(1, false)
        #expect(Self.told(rig) == ["1 1 0.5", "1 2 0.5"])
        Self.charge(rig, 1, 0)
        #expect(Set(Self.told(rig)) == ["1 1 0.0", "2 1 0.0"])
        #expect(!rig.dispatcher.isBehind)
    }

    @Test("Many streams are notified in steps, and receive the latest conditions")
    func crowd() {
        let rig = DispatchRig(workPerStepMax: 64)
        for stream in 0..<500 { rig.subscribe(stream, reportsConditions: true) }
        rig.advance(by: 1)
        Self.charge(rig, 1, 0.5)
        var told = Self.told(rig)
        #expect(told.count <= 64 && rig.dispatcher.isBehind)
        Self.charge(rig, 1, 0.75)
        Self.charge(rig, 2, 0.75)
        // Wakes do not wait for these notifications.
        rig.push(900)
        #expect(rig.takeDeliveries().count == 1)
        var steps = 0
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 100) {
            let more = Self.told(rig)
            #expect(more.count <= 64)
            told += more
            steps += 1
        }
        told += Self.told(rig)
        #expect(steps < 60)
        for stream in 0..<500 {
            let heard = told.filter { $0.hasPrefix("\(stream) ") }
            #expect(heard.suffix(2) == ["\(stream) 1 0.75", "\(stream) 2 0.75"] && heard.count <= 3, "\(heard)")
        }
    }

    @Test("Streams that open and close during notifications do not affect the other streams")
    func churn() {
        let rig = DispatchRig(workPerStepMax: 16)
        for stream in 0..<100 { rig.subscribe(stream, reportsConditions: true) }
        rig.advance(by: 1)
        Self.charge(rig, 1, 0.5)
        var told = Self.told(rig)
        for stream in 0..<50 {
            rig.endStream(stream)
            rig.subscribe(200 + stream, reportsConditions: true)
            if stream % 5 == 0 { rig.advance(by: 1) }
            told += Self.told(rig)
        }
        rig.advance(by: 1)
        told += Self.told(rig)
        #expect(Set(told).isSuperset(of: (50..<100).map { "\($0) 1 0.5" }))
        #expect(told.count == Set(told).count && !told.contains { $0.hasPrefix("2") && $0.count > 10 })
    }

    @Test("A stream that opens during notifications does not delay the others")
    func arrival() {
        let rig = DispatchRig(workPerStepMax: 1)
        for stream in 0..<3 {
            rig.subscribe(stream, reportsConditions: true)
            rig.advance(by: 1)
        }
        var told: [String] = []
        for round in 1...20 {
            Self.charge(rig, 1, Double(round) / 100)
            told += Self.told(rig)
            for _ in 0..<round % 5 {
                _ = rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 100)
                told += Self.told(rig)
            }
            rig.subscribe(10 + round, reportsConditions: true)
            rig.advance(by: 1)
            told += Self.told(rig)
            for stream in 0..<3 { #expect(told.contains("\(stream) 1 \(Double(round) / 100)"), "round \(round)") }
        }
    }

    @Test("A device that registers again starts with default conditions, and streams are informed")
    func registersAnew() {
        let rig = DispatchRig()
        Self.charge(rig, 1, 0.5)
        rig.dispatcher.unregister(rig.rig.index(1))
        rig.conditions(1) { $0.batteryLevel = 0.25 }
        rig.subscribe(1, reportsConditions: true)
        _ = EngineRig.topicName(0).withByteView { rig.dispatcher.register(EngineRig.token(1), topic: $0) }
        #expect(Self.told(rig) == ["1 1 1.0"])
    }
}
