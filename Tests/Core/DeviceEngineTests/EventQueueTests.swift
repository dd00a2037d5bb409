import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The events that wait for the history", .timeLimit(.minutes(15)))
struct EventQueueTests {
    private static func devices(_ count: Int) -> DeviceTable {
        var devices = DeviceTable(key: EngineRig.historyKey)
        for number in 0..<count {
            let topic = TopicIndex(rawValue: 0)
            _ = devices.insert(
                DeviceRecord(token: EngineRig.token(number), topic: topic, registeredAt: .distantPast)
            )
        }
        return devices
    }

    private static func number(_ device: Int) -> UInt64 {
        HistoryEvent.device(of: EngineRig.token(device), EngineRig.historyKey)
    }

    @Test("Events name their device by its number, whichever was asked about before, and leave in their order")
    func numbers() {
        let devices = Self.devices(3)
        var queue = EventQueue(key: EngineRig.historyKey)
        #expect(queue.isEmpty == true)
        queue.found(DeviceIndex(rawValue: 1), number: Self.number(1))
        let order = [1, 1, 0, 2, 2, 1]
        for (moment, device) in order.enumerated() {
            let at = Instant(milliseconds: Int64(moment))
            queue.append(DeviceIndex(rawValue: UInt32(device)), .conditions, nil, at: at, in: devices)
        }
        #expect(queue.isEmpty == false)
        var events: [HistoryEvent] = []
        queue.take(into: &events)
        #expect(events.map(\.device) == order.map(Self.number))
        #expect(events.map(\.at.milliseconds) == [0, 1, 2, 3, 4, 5])
    }

    @Test("What happened to a task comes right behind its name, whose parts are of the same device and moment")
    func names() {
        let devices = Self.devices(2)
        var queue = EventQueue(key: EngineRig.historyKey)
        let name = String(repeating: "n", count: 70)
        let kind = HistoryEvent.Kind.taskSubmitted(.appRefresh, .scheduled)
        let at = Instant(milliseconds: 7)
        queue.append(DeviceIndex(rawValue: 0), .conditions, nil, at: at, in: devices)
        queue.append(DeviceIndex(rawValue: 1), kind, name: name, at: at, in: devices)
        queue.append(DeviceIndex(rawValue: 1), kind, name: "", at: at, in: devices)
        var events: [HistoryEvent] = []
        queue.take(into: &events)
        let parts = (0..<3).map { HistoryEvent.Kind.namePart(length: 70, place: $0) }
        #expect(events.map(\.kind) == [.conditions] + parts + [kind, kind])
        #expect(events.map(\.device) == [0, 1, 1, 1, 1, 1].map(Self.number))
        #expect(events.allSatisfy { $0.at == at })
        var entries = HistoryEntries()
        for event in events.dropFirst().reversed() { entries.append(event) }
        #expect(entries.finish().map(\.name) == [nil, name])
    }

    @Test("Events are taken once, behind those that wait elsewhere")
    func taken() {
        let devices = Self.devices(1)
        var queue = EventQueue(key: EngineRig.historyKey)
        var events: [HistoryEvent] = []
        for round in 0..<3 as Range<Int64> {
            for place in 0..<2 as Range<Int64> {
                let at = Instant(milliseconds: round * 10 + place)
                queue.append(DeviceIndex(rawValue: 0), .removed, EngineRig.apnsID(UInt64(round)), at: at, in: devices)
            }
            queue.take(into: &events)
            #expect(queue.isEmpty == true)
            queue.take(into: &events)
        }
        #expect(events.map(\.at.milliseconds) == [0, 1, 10, 11, 20, 21])
        #expect(events.map(\.apnsID) == [0, 0, 1, 1, 2, 2].map { EngineRig.apnsID($0) })
    }
}
