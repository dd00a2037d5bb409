import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("A step of a shared store", .timeLimit(.minutes(15)))
struct SharedStepTests {
    private static let topic = TopicIndex(rawValue: 0)
    private static let start = EngineRig().instant

    private func engine(_ configuration: EngineConfiguration = EngineRig.openToTasks()) throws -> EngineRig {
        let rig = EngineRig(configuration)
        rig.engine.useSharedStore()
        try rig.engine.appendTopics([EngineRig.topicName(0), EngineRig.topicName(1)])
        return rig
    }

    /// Runs a step with these rows and returns its changes.
    private func step(
        _ rig: EngineRig,
        _ rows: [SharedDevice] = [],
        _ body: () -> Void
    ) throws -> [SharedDeviceChange] {
        for row in rows { _ = try rig.engine.take(row) }
        rig.engine.beginSharedStep(now: rig.instant, deviceCount: rows.count)
        _ = rig.engine.advance(to: rig.instant, devicesMax: 1000)
        body()
        let changes = rig.engine.takeSharedChanges()
        rig.engine.unloadAll()
        return changes
    }

    @Test("Changes are in token order, with due times, waits for a slot, launches and ends")
    func changes() throws {
        let rig = try self.engine()
        var wake: WakeID?
        var changes = try self.step(rig) {
            rig.push(3)
            rig.push(1)
            wake = rig.push(2, workerIsFree: true)?.wake
        }
        #expect(changes.map(\.device.token) == [1, 2, 3].map { EngineRig.token($0) })
        #expect(changes.allSatisfy { $0.isNew })
        #expect(changes[0].ready == [.init(target: .push, since: rig.instant)])
        #expect(changes[1].ready == nil)
        #expect(changes[1].launched.map(\.wake) == [try #require(wake)])
        #expect(changes[1].due == .at(try #require(changes[1].launched.first).deadline))
        rig.pass(1000)
        changes = try self.step(rig, changes.map(\.device)) { rig.push(1) }
        // The push was coalesced, so the device waits for a slot since the same time.
        let only = try #require(changes.first)
        #expect(changes.count == 1 && !only.isNew && only.ready == nil && only.launched.isEmpty)
        rig.pass(100_000)
        let flying = try self.step(rig) { wake = rig.push(9, workerIsFree: true)?.wake }
        rig.pass(1_000_000)
        changes = try self.step(rig, flying.map(\.device)) {}
        #expect(changes.first?.ended == [try #require(wake)])
    }

    @Test("A wake that is launched and ends within one step is reported as both")
    func shortWake() throws {
        let rig = try self.engine()
        var wake: WakeID?
        let changes = try self.step(rig) {
            wake = rig.push(1, workerIsFree: true)?.wake
            if let wake { _ = rig.engine.report(.push(.newData), wake: wake) }
        }
        #expect(changes.first?.launched.map(\.wake) == [try #require(wake)])
        #expect(changes.first?.ended == [try #require(wake)])
    }

    @Test("A push without content-available changes its device's rate window")
    func rateWindow() throws {
        var configuration = EngineRig.open()
        configuration.pushRate.pushesMax = 2
        let rig = try self.engine(configuration)
        var rows = try self.step(rig) { rig.register(1) }.map(\.device)
        var answers: [Bool] = []
        for _ in 0..<3 {
            let changes = try self.step(rig, rows) { answers.append(rig.push(1, wakes: false) != nil) }
            if let row = changes.first { rows = [row.device] }
        }
        #expect(answers == [true, true, false])
    }

    @Test("Counters of another policy are corrected exactly")
    func otherPolicy() throws {
        let rig = try self.engine(EngineRig.open([(.launchInterval, 900), (.criticalBattery, 0.1)]))
        var rows = try self.step(rig) {
            rig.register(1)
            rig.conditions(1) { $0.batteryLevel = 0.3 }
            rig.push(1)
        }.map(\.device)
        rig.engine.reconfigure(EngineRig.open([(.criticalBattery, 0.5)]))
        for row in rows { _ = try rig.engine.take(row) }
        rig.engine.beginSharedStep(now: rig.instant, deviceCount: 1)
        _ = rig.engine.advance(to: rig.instant, devicesMax: 1000)
        rows = rig.engine.takeSharedChanges().map(\.device)
        var expected = ActivityCounters()
        expected.held[.worker] = -1
        expected.held[.battery] = 1
        let counts = rig.engine.takeSharedCounts()
        #expect(counts.map(\.added) == [expected])
        #expect(rows.count == 1)
        #expect(rig.engine.takeSharedCounts().isEmpty)
        rig.engine.unloadAll()
        let again = try self.step(rig, rows) {}
        #expect(again.isEmpty)
    }

    @Test("Limits count what all gateways have counted")
    func bounds() throws {
        var configuration = EngineRig.open()
        configuration.pendingBytesMax = 1000
        configuration.devicesMax = 2
        let rig = try self.engine(configuration)
        var total = ActivityCounters()
        total.gauges.contentBytes = 990
        rig.engine.setBaseCounters(total, byTopic: [Self.topic: total])
        _ = try self.step(rig) { #expect(rig.push(1) == nil) }
        total.gauges.contentBytes = 100
        rig.engine.setBaseCounters(total, byTopic: [Self.topic: total])
        #expect(rig.engine.contentBytes == 100)
        _ = try self.step(rig) { #expect(rig.push(1) != nil) }
        #expect(rig.engine.contentBytes == 100)
        rig.engine.beginSharedStep(now: rig.instant, deviceCount: 2)
        #expect(rig.push(1) == nil)
        rig.engine.unloadAll()
        // A step does not create a topic that the store does not have.
        _ = try self.step(rig) { #expect(rig.register(1, topic: 7) == .refused(.tooManyTopics)) }
        #expect(rig.engine.topicCount == 2)
    }

    @Test("A row stored by a program without pauses is accepted, and new rows have the same length")
    func former() throws {
        let device = String(repeating: "0badcafe", count: 8)
        let moment = "93e9690ca2010000"
        let name = "011700636f6d2e6578616d706c652e6170702e72656672657368"
        let row = SharedDevice(
            token: try #require(device.withByteView { DeviceToken(hex: $0) }),
            record: Self.bytes("01000020\(device)000000008ee9690ca2010000"),
            tasks: Self.bytes("0001[23]010001\(name)\(moment)\(moment)01[23]"),
            // The gauges of kinds, holds, transfers and bytes (8 bytes each), then the tasks that wait for a slot.
            derived: Self.bytes("01c0db28b4a0d17e03e701[135]01[23]97[7]010001[7]\(moment)")
        )
        let rig = try self.engine()
        #expect(try rig.engine.find(row.token) == nil && rig.engine.take(row) == rig.engine.find(row.token))
        rig.engine.unloadAll()
        let changes = try self.step(rig) {
            _ = try? rig.submit(1, "com.example.app.refresh")
        }
        #expect(changes.first?.device.derived.count == row.derived.count)
    }

    /// Parses hexadecimal digits; a number in brackets stands for that many zero bytes.
    private static func bytes(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = text[...]
        while let first = rest.first {
            if first == "[", let end = rest.firstIndex(of: "]") {
                let count = Int(rest[rest.index(after: rest.startIndex)..<end]) ?? 0
                bytes += [UInt8](repeating: 0, count: count)
                rest = rest[rest.index(after: end)...]
            } else {
                bytes.append(UInt8(rest.prefix(2), radix: 16) ?? 0)
                rest = rest.dropFirst(2)
            }
        }
        return bytes
    }

    @Test("Inconsistent rows, and a repeated row, are refused")
    func broken() throws {
        let rig = try self.engine()
        let changes = try self.step(rig) {
            rig.push(1, workerIsFree: true)
            rig.push(1)
            _ = try? rig.submit(1, "feed")
            rig.push(2)
        }
        let (whole, other) = (changes[0].device, changes[1].device)
        func isTaken(_ rows: [SharedDevice]) -> Bool {
            defer { rig.engine.unloadAll() }
            for row in rows {
                let (count, wakes) = (rig.engine.takenCount, rig.engine.wakesKnown)
                guard (try? rig.engine.take(row)) == nil else { continue }
                #expect(rig.engine.takenCount == count && rig.engine.wakesKnown == wakes, "nothing of it is loaded")
                return false
            }
            return true
        }
        func row(
            token: DeviceToken? = nil,
            record: [UInt8]? = nil,
            tasks: [UInt8]? = nil,
            derived: [UInt8]? = nil
        ) -> SharedDevice {
            SharedDevice(
                token: token ?? whole.token,
                record: record ?? whole.record,
                tasks: tasks ?? whole.tasks,
                derived: derived ?? whole.derived
            )
        }
        #expect(isTaken([whole, other]))
        #expect(!isTaken([whole, whole]))
        #expect(!isTaken([row(token: other.token)]))
        #expect(!isTaken([row(tasks: [])]))
        #expect(!isTaken([row(derived: other.derived)]))
        #expect(!isTaken([row(derived: [])]))
        #expect(!isTaken([row(derived: [9] + whole.derived.dropFirst())]))
        for count in 0..<whole.record.count { #expect(!isTaken([row(record: Array(whole.record[..<count]))])) }
        for count in 0..<whole.tasks.count { #expect(!isTaken([row(tasks: Array(whole.tasks[..<count]))])) }
        for count in 0..<whole.derived.count { #expect(!isTaken([row(derived: Array(whole.derived[..<count]))])) }
        // The same wake on another device.
        let third = EngineRig.token(3)
        let beginning: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 1]
        let start = try #require(whole.record.indices.first { Array(whole.record[$0...].prefix(8)) == beginning })
        let bytes = third.withBytes { $0.array }
        let twin = row(token: third, record: Array(whole.record[..<start]) + bytes + whole.record[(start + 32)...])
        #expect(isTaken([twin]))
        #expect(!isTaken([whole, twin]))
        #expect(isTaken([whole, other]))
    }

    @Test("The wakes of a dead gateway are lost without counting attempts, even past their deadlines")
    func endAsLost() throws {
        let rig = try self.engine()
        var wakes: [WakeID] = []
        let rows = try self.step(rig) {
            for device in 1...2 { wakes += rig.push(device, workerIsFree: true)?.wake.map { [$0] } ?? [] }
        }.map(\.device)
        rig.pass(10_000_000)
        for row in rows { _ = try rig.engine.take(row) }
        rig.engine.beginSharedStep(now: rig.instant, deviceCount: 2)
        rig.engine.endAsLost(Array(wakes.prefix(1)))
        #expect(rig.snapshot(1).state.pending?.attempts == 0)
        #expect(rig.snapshot(1).state.inFlight == nil)
        _ = rig.engine.advance(to: rig.instant, devicesMax: 10)
        let added = try #require(rig.engine.takeSharedCounts().first).added
        #expect(added.results[.lost] == 1 && added.results[.expired] == 1 && added.inFlight == -2)
        rig.engine.unloadAll()
    }

    @Test("Memory of devices, wakes and tasks is given back after each step, however many rows it had")
    func givenBack() throws {
        let rig = try self.engine()
        for count in [1, 5000, 64] {
            let rows = try self.step(rig) {
                for device in 0..<count { rig.push(device, workerIsFree: device % 2 == 0) }
            }
            #expect(rows.count == count)
            let again = try self.step(rig, rows.map(\.device)) {}
            #expect(again.isEmpty)
            #expect(rig.engine.takenCount == 0)
            #expect(rig.engine.wakesKnown == (0, 0))
            #expect(rig.engine.contentBytes == 0 && rig.engine.taskBytes == 0)
            #expect(rig.engine.totals == ActivityCounters() && rig.engine.nextDue == nil && !rig.engine.hasChanges)
            #expect(rig.find(0) == nil && rig.engine.longestReady(Self.topic) == nil)
        }
    }

    @Test("A refused row leaves no task that waits for a slot")
    func refusedTasks() throws {
        let rig = try self.engine()
        let rows = try self.step(rig) {
            for device in 1...3 {
                _ = try? rig.submit(device, "feed")
                if device != 2 { _ = try? rig.submit(device, "clean", .processing([])) }
            }
            rig.engine.cancelTask("feed", device: rig.index(3))
        }.map(\.device)
        // The first row waits with two tasks. One of the others has only the first of them, so its second is not found.
        for tasks in rows[1...].map(\.tasks) {
            let row = SharedDevice(token: rows[0].token, record: rows[0].record, tasks: tasks, derived: rows[0].derived)
            #expect(throws: StoreError.self) { try rig.engine.take(row) }
            rig.engine.beginSharedStep(now: rig.instant, deviceCount: 0)
            #expect(!rig.engine.hasNews)
            rig.engine.unloadAll()
        }
    }

    @Test("A device of an engine that keeps all devices is a row that a shared engine accepts")
    func moved() throws {
        let rig = EngineRig(EngineRig.openToTasks())
        rig.push(1, workerIsFree: true)
        rig.push(1)
        rig.push(2)
        let row = rig.engine.sharedRow(rig.index(2))
        #expect(row.isNew && row.ready == [.init(target: .push, since: rig.instant)])
        let shared = try self.engine()
        let changes = try self.step(shared, [rig.engine.sharedRow(rig.index(1)).device, row.device]) {}
        #expect(changes.isEmpty)
    }
}
