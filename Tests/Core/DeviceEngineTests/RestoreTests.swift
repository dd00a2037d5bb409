import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("An engine is restored from its records", .timeLimit(.minutes(15)))
struct RestoreTests {
    @Test("Restored wakes in flight may be held elsewhere, and are answered or lost like others")
    func wakesStay() throws {
        let rig = EngineRig()
        let store = SimulatedStore()
        let answered = try #require(rig.push(1, workerIsFree: true)?.wake)
        let lost = try #require(rig.push(2, workerIsFree: true)?.wake)
        rig.push(3, topic: 1)
        try store.commit(from: rig.engine)
        let next = try rig.restarted(from: store)
        #expect(!next.engine.hasChanges && next.engine.totals.inFlight == 2)
        #expect(next.engine.topicSnapshots.map(\.counters) == rig.engine.topicSnapshots.map(\.counters))
        #expect(next.engine.wakesInFlight(next.index(1)) == [answered])
        #expect(next.engine.report(.push(.newData), wake: answered) == .ended)
        next.engine.loseEveryWake()
        #expect(next.engine.report(.push(.newData), wake: answered) == .repeated)
        #expect(next.engine.report(.push(.newData), wake: lost) == .endedOtherwise(.push(.lost)))
        let counters = next.engine.totals
        #expect(counters.completed == 1 && counters.results[.newData] == 1 && counters.results[.lost] == 1)
        #expect(counters.pending == 2 && counters.inFlight == 0)
    }

    @Test("Content of the maximum size is restored byte for byte, on tokens of every length", arguments: [16, 33, 100])
    func content(bytes: Int) throws {
        let rig = EngineRig()
        let store = SimulatedStore()
        let collapseID = [UInt8](repeating: 0x63, count: 64)
        let payload = (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let token = EngineRig.token(7, bytes: bytes)
        payload.withByteView { payload in
            collapseID.withByteView { collapseID in
                var push = Push()
                push.apnsID = APNsID(first: 1, second: 2, upperCase: 3)
                push.hasClientID = true
                push.priority = .considerate
                push.collapseID = collapseID
                push.payload = payload
                push.wakes = true
                let admission = rig.engine.admit(token, topic: ByteView("com.example"), isDryRun: false)
                guard case .device(let device) = admission else { return }
                _ = try? rig.engine.accept(push, .absent, device: device, workerIsFree: false)
            }
        }
        try store.commit(from: rig.engine)
        let next = try rig.restarted(from: store)
        let device = try #require(next.engine.find(token))
        let wake = try #require(next.engine.claim(device))
        let content = try #require(wake.content)
        #expect(content.apnsID == APNsID(first: 1, second: 2, upperCase: 3))
        #expect(content.collapseID.array == collapseID && content.payload.array == payload)
    }

    /// Returns the records of an engine with three devices: device 0 has a push that waits for its second launch, and
    /// two requests; device 1 has a wake in flight; device 2 has a continued task in flight, and finished transfers.
    private static func someDevices() throws -> SimulatedStore.Records {
        let rig = EngineRig(EngineRig.openToTasks())
        let store = SimulatedStore()
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        #expect(rig.engine.report(.push(.failed), wake: wake) == .ended)
        rig.conditions(1) { $0.batteryLevel = 0.5 }
        _ = try #require(rig.push(2, workerIsFree: true)?.wake)
        try rig.submit(1, "clean", .processing(.externalPower))
        try rig.submit(1, "refresh", after: 100)
        rig.register(3)
        rig.conditions(3) { $0.appState = .active }
        let details = TaskDetails(title: "Export", subtitle: "é", resources: ["gpu"])
        let export = try rig.submit(3, "export", .continued(.queue), details: details, hasSlot: true)
        _ = rig.engine.progress(TaskProgress(completed: 3, total: 9), wake: try #require(export.wake))
        try rig.engine.transfersFinished(session: "uploads", count: 3, id: "1", device: rig.index(3))
        rig.engine.flushProgress()
        try store.commit(from: rig.engine)
        return store.durable
    }

    private static func restore(_ records: SimulatedStore.Records, losingWakes: Bool) throws(StoreError) {
        let engine = EngineRig(EngineRig.openToTasks()).engine
        for (key, content) in records { try engine.restore(key, content) }
        try engine.finishRestoring(now: Instant(milliseconds: 1_700_000_000_000))
        if losingWakes { engine.loseEveryWake() }
        _ = engine.oldestDueMilliseconds
        for device in (0..<3).map({ DeviceIndex(rawValue: $0) })
        where records[RecordKey(.device, device.rawValue)] != nil {
            _ = engine.snapshot(device)
            for wake in engine.wakesInFlight(device) {
                _ = engine.extend(wake, by: 60_000)
                _ = engine.progress(TaskProgress(completed: 5, total: 9), wake: wake)
            }
            _ = engine.expireForced(device)
            _ = engine.launchForced(device)
            for (place, wake) in engine.wakesInFlight(device).enumerated() {
                if place == 1 { _ = engine.report(.task(.failure), wake: wake) }
                engine.lose(wake, takingBackAttempt: true)
            }
            for _ in 0..<3 { _ = engine.claim(device) { _ in true } }
            engine.cancelTask("refresh", device: device)
        }
        while !engine.advance(to: Instant(milliseconds: 1_800_000_000_000), devicesMax: 10) {}
    }

    @Test("Records with changed bytes, or cut, are refused, or an engine runs on them", arguments: 0..<8)
    func changedBytes(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let records = try Self.someDevices()
        let keys = records.keys.sorted { ($0.kind.rawValue, $0.index) < ($1.kind.rawValue, $1.index) }
        var (refusals, runs) = (0, 0)
        for _ in 0..<1500 {
            var changed = records
            let key = try #require(keys.randomElement(using: &generator))
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                let offset = Int.random(in: 0..<(changed[key]?.count ?? 1), using: &generator)
                changed[key]?[offset] = [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &generator) ?? 0
            }
            if generator.once(in: 8), let count = changed[key]?.count {
                changed[key]?.removeLast(Int.random(in: 0...count, using: &generator))
            }
            do throws(StoreError) {
                try Self.restore(changed, losingWakes: Bool.random(using: &generator))
                runs += 1
            } catch {
                refusals += 1
            }
        }
        #expect(refusals > 100 && runs > 100, "seed \(seed): \(refusals) refusals, \(runs) runs")
    }

    /// Impossible values in the records of `someDevices`: the device, a description, the offset and the bytes.
    private static let impossible: [(device: UInt32, what: String, offset: Int, bytes: [UInt8])] = {
        // Flags, penalty, token (with its length) and topic; the time of the registration follows.
        let head = 2 + 1 + 1 + EngineRig.token(1).count + 4
        let spacing = head + 8
        let conditions = spacing + 28
        let pending = conditions + 12
        let inFlight = spacing + 28 + 16
        let farAway: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0x7F]
        let tooMany: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF]
        return [
            (0, "a penalty of 21", 2, [21]), (0, "a penalty of 255", 2, [255]),
            (0, "a registration in the far future", head, farAway),
            (0, "too many launches in a window", spacing + 24, tooMany),
            (0, "a battery that is not a number", conditions, [0, 0, 0, 0, 0, 0, 0xF8, 0x7F]),
            (0, "a battery of 2", conditions, [0, 0, 0, 0, 0, 0, 0, 0x40]),
            (0, "an expiry in the far future", pending, farAway), (0, "too many attempts", pending + 28, tooMany),
            (1, "a launch in the far future", inFlight, farAway),
            (1, "a deadline in the far future", inFlight + 8, farAway),
            (1, "no attempt in flight", inFlight + 16 + 28 + 28, [0, 0, 0, 0]),
        ]
    }()

    @Test("A device with impossible values is refused by its number", arguments: Self.impossible.indices)
    func impossibleDevice(index: Int) throws {
        let (device, what, offset, bytes) = Self.impossible[index]
        var records = try Self.someDevices()
        try Self.restore(records, losingWakes: true)
        let key = RecordKey(.device, device)
        records[key]?.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        let message = "The stored state does not hold together at device \(device). Restore a backup."
        for losingWakes in [true, false] {
            #expect(throws: StoreError(message: message), "\(what)") {
                try Self.restore(records, losingWakes: losingWakes)
            }
        }
    }

    @Test("Two devices with the same wake are refused, and so is a topic with an invalid name or impossible counts")
    func impossibleOthers() throws {
        let records = try Self.someDevices()
        let spacing = 2 + 1 + 1 + EngineRig.token(1).count + 4 + 8
        var twice = records
        // The id of the ended wake precedes the outcome and the end at the end of the record. The other wake is in
        // flight.
        let ended = try #require(records[RecordKey(.device, 0)])
        let wake = ended[(ended.count - 25)...].prefix(16)
        twice[RecordKey(.device, 1)]?.replaceSubrange(spacing + 28..<spacing + 44, with: wake)
        #expect(throws: StoreError.self) { try Self.restore(twice, losingWakes: true) }
        let name = EngineRig.topicName(0).utf8.count
        for (offset, bytes) in [(2, [0xFF]), (2 + name + 7, [0x7F]), (2 + name + 7, [0x80])] as [(Int, [UInt8])] {
            var others = records
            others[RecordKey(.topic, 0)]?.replaceSubrange(offset..<offset + bytes.count, with: bytes)
            #expect(throws: StoreError.self, "\(offset)") { try Self.restore(others, losingWakes: true) }
        }
    }

    @Test("A record that is cut, or longer than itself, is refused; so is one that is missing")
    func damaged() throws {
        let rig = EngineRig()
        let store = SimulatedStore()
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        #expect(rig.engine.report(.push(.failed), wake: wake) == .ended)
        rig.push(2, topic: 1, clientID: 40)
        rig.push(1, clientID: 41)
        rig.push(1, clientID: 42)
        rig.conditions(1) { $0.lowPowerMode = true }
        try store.commit(from: rig.engine)
        for (key, content) in store.durable {
            for count in 0..<content.count {
                let engine = EngineRig().engine
                #expect(throws: StoreError.self, "\(key) cut at \(count)") {
                    try engine.restore(key, Array(content[..<count]))
                }
            }
            let longer = EngineRig().engine
            #expect(throws: StoreError.self) { try longer.restore(key, content + [0]) }
            let incomplete = EngineRig().engine
            for (other, content) in store.durable where other != key { try incomplete.restore(other, content) }
            // Without its last device the state is still complete; without any other record it is not.
            guard key != RecordKey(.device, 1) else { continue }
            #expect(throws: StoreError.self, "without \(key)") {
                try incomplete.finishRestoring(now: rig.instant)
            }
        }
    }
}
