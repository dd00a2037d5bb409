import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Streams that name devices", .timeLimit(.minutes(15)))
struct NamingStreamTests {
    @Test("No more streams name one device than may; one that ends makes room, and other devices have their own")
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

    @Test("Sixty-four is the bound unless another is set, and 0 is none")
    func bounds() {
        let rig = DispatchRig()
        for stream in 0..<64 { #expect(rig.subscribe(stream, devices: [1])) }
        #expect(!rig.subscribe(64, devices: [1]))
        var configuration = EngineRig.open()
        configuration.streamsPerDeviceMax = 0
        rig.engine.reconfigure(configuration)
        for stream in 64..<200 { #expect(rig.subscribe(stream, devices: [1])) }
    }

    @Test("A task is known to be taken by a busy stream that names its device, and by none of others' devices")
    func takers() {
        let rig = DispatchRig(EngineRig.openToTasks([]))
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

    /// What the dispatcher is asked, done by searching all streams.
    private struct Model {
        struct Stream {
            var slots: Int
            let devices: [Int]
            var wakes: Set<WakeID> = []
            var isPaused = false

            var isFree: Bool { !self.isPaused && self.wakes.count < self.slots }
        }

        var streams: [Int: Stream] = [:]

        /// The fewest wakes that a free stream has which names the device; nil when none is free.
        func fewest(naming device: Int) -> Int? {
            self.streams.values.filter { $0.isFree && $0.devices.contains(device) }.map(\.wakes.count).min()
        }
    }

    @Test("A wake goes to a free stream with the fewest wakes of those that name its device", arguments: UInt64(1)...8)
    func fewestWakes(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var configuration = EngineRig.open()
        configuration.streamsPerDeviceMax = 0
        let rig = DispatchRig(configuration)
        var model = Model()
        var nextStream = 0
        var delivered = 0
        for device in 0..<40 {
            rig.rig.register(device)
            rig.rig.conditions(device) { $0.appState = .active }
        }
        for _ in 0..<1500 {
            switch generator.number(below: 8) {
            case 0 where model.streams.count < 40:
                let devices = (0..<1 + generator.number(below: 20)).map { _ in Int(generator.number(below: 40)) }
                let slots = 1 + Int(generator.number(below: 3))
                model.streams[nextStream] = Model.Stream(slots: slots, devices: devices)
                rig.subscribe(nextStream, slots: slots, devices: devices)
                nextStream += 1
            case 1:
                guard let stream = model.streams.keys.sorted().dropLast(3).first else { break }
                model.streams[stream] = nil
                rig.endStream(stream)
            case 2:
                guard let stream = model.streams.keys.sorted().last else { break }
                model.streams[stream]?.isPaused.toggle()
                rig.pause(stream, model.streams[stream]?.isPaused ?? false)
            case 3:
                guard let stream = model.streams.keys.sorted().first else { break }
                model.streams[stream]?.slots = 2
                rig.dispatcher.slotsChanged(DispatchRig.address(stream), to: 2)
            case 4, 5:
                for stream in model.streams.keys.sorted() {
                    guard let wake = model.streams[stream]?.wakes.min(by: { $0.first < $1.first }) else { continue }
                    model.streams[stream]?.wakes.remove(wake)
                    rig.report(.newData, wake)
                    break
                }
            case _:
                let device = Int(generator.number(below: 40))
                guard rig.rig.snapshot(device).state.pending == nil, rig.rig.snapshot(device).wake == nil else { break }
                let fewest = model.fewest(naming: device)
                rig.push(device)
                let deliveries = rig.takeDeliveries()
                #expect(deliveries.isEmpty == (fewest == nil))
                for delivery in deliveries {
                    let stream = delivery.stream.number
                    #expect(model.streams[stream]?.wakes.count == fewest)
                    #expect(model.streams[stream]?.devices.contains(device) == true)
                    #expect(model.streams[stream]?.isFree == true)
                    model.streams[stream]?.wakes.insert(delivery.wake)
                    delivered += 1
                }
                continue
            }
            // What waited may have been launched by what came free.
            for delivery in rig.takeDeliveries() {
                model.streams[delivery.stream.number]?.wakes.insert(delivery.wake)
            }
        }
        #expect(delivered > 100)
    }

    @Test("A stream that was full and is not by a higher bound gets wakes once one of its wakes has ended")
    func higherBound() throws {
        let rig = DispatchRig(wakeBytesPerStreamMax: 1)
        rig.subscribe(1, slots: 4, devices: [1, 2])
        rig.push(1)
        rig.push(2)
        let first = try #require(rig.takeDeliveries().first)
        rig.dispatcher.wakeBytesPerStreamChanged(to: 4096)
        rig.report(.newData, first.wake)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(2)])
        // A lower one holds at once.
        rig.dispatcher.wakeBytesPerStreamChanged(to: 1)
        rig.push(1, .immediate)
        #expect(rig.takeDeliveries().isEmpty)
    }
}
