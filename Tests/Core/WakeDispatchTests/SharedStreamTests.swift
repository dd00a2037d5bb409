import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Streams of an engine that shares its store", .timeLimit(.minutes(15)))
struct SharedStreamTests {
    private static let topic = TopicIndex(rawValue: 0)

    private let rig: DispatchRig
    private let rows = Rows()

    /// The rows of the store.
    private final class Rows {
        var devices: [DeviceToken: SharedDevice] = [:]
    }

    init() throws {
        self.rig = DispatchRig(EngineRig.openToTasks([(.launchInterval, 1), (.executionWindow, 5)]))
        self.rig.engine.useSharedStore()
        try self.rig.engine.appendTopics([EngineRig.topicName(0)])
        self.rig.dispatcher.useSharedStore { $0 == Self.topic }
    }

    /// Performs a step whose fate is not known yet.
    private func step(_ body: () -> Void = {}) throws -> (changes: [SharedDeviceChange], streams: StreamChanges) {
        let rows = self.rows.devices.values.sorted { $0.token.isBefore($1.token) }
        for row in rows { _ = try self.rig.engine.take(row) }
        self.rig.engine.beginSharedStep(now: self.rig.rig.instant, deviceCount: rows.count)
        _ = self.rig.dispatcher.advance(to: self.rig.rig.instant, devicesMax: 1000)
        body()
        let changes = self.rig.engine.takeSharedChanges()
        let streams = self.rig.dispatcher.takeStreamChanges()
        self.rig.engine.unloadAll()
        self.rig.dispatcher.forgetDevices()
        return (changes, streams)
    }

    private func commit(_ step: (changes: [SharedDeviceChange], streams: StreamChanges)) {
        for change in step.changes { self.rows.devices[change.device.token] = change.device }
        self.rig.dispatcher.committed(step.streams)
    }

    private var counts: Dispatcher.WorkerCounts { self.rig.dispatcher.workerCounts(Self.topic) }

    @Test("The changes of durable steps are freed, and with them their references to the stream")
    func freed() throws {
        self.rig.subscribe(1)
        func launch(_ device: Int) throws {
            self.commit(try self.step { self.rig.push(device) })
            let wake = try #require(self.rig.takeDeliveries().first?.wake)
            self.commit(try self.step { self.rig.report(.newData, wake) })
        }
        let step = try self.step { self.rig.push(1) }
        let stream = try #require(Self.stream(of: step.streams))
        #expect(self.rig.dispatcher.undo(step.streams).isEmpty && self.rig.takeDeliveries().count == 1)
        let references = _getRetainCount(stream)
        for device in 2...60 { try launch(device) }
        // Each launch makes two changes. The queue of freed streams keeps some references to streams that left it.
        #expect(_getRetainCount(stream) < references + 100)
    }

    /// Returns the stream that the first change concerns.
    private static func stream(of changes: StreamChanges) -> Subscription? {
        let change = Mirror(reflecting: changes).descendant("changes", 0).map { Mirror(reflecting: $0) }
        let values = change?.children.first.map { Mirror(reflecting: $0.value).children }
        return values?.lazy.compactMap { $0.value as? Subscription }.first
    }

    @Test("Undoing a step returns its wake to the stream, and the stream is next again")
    func given() throws {
        self.rig.subscribe(1, slots: 2)
        self.rig.subscribe(2, slots: 1)
        for _ in 0..<5 {
            let step = try self.step { self.rig.push(1) }
            #expect(self.rig.takeDeliveries().map(\.stream.number) == [1])
            #expect(self.counts.busy == 1)
            #expect(self.rig.dispatcher.undo(step.streams).isEmpty)
            #expect(self.counts.busy == 0)
            #expect(self.rig.dispatcher.freeSlots(Self.topic).map(\.count) == [3])
        }
        for expected in [1, 2, 1] {
            self.commit(try self.step { self.rig.push(expected * 10 + self.rows.devices.count) })
            #expect(self.rig.takeDeliveries().map(\.stream.number) == [expected])
        }
        #expect(self.rig.dispatcher.freeSlots(Self.topic).isEmpty)
    }

    @Test("A task of a step that did not happen gives its turn back")
    func task() throws {
        for stream in 1...2 { self.rig.subscribe(stream, slots: 1, tasks: ["feed.*"], resources: ["gpu"]) }
        for _ in 0..<4 {
            let step = try self.step { self.rig.submit(1, "feed.x", .processing([]), resources: ["gpu"]) }
            #expect(self.rig.takeDeliveries().map(\.stream.number) == [1])
            #expect(self.rig.dispatcher.undo(step.streams).isEmpty)
        }
        for stream in 1...2 {
            self.commit(try self.step { self.rig.submit(stream, "feed.x", .processing([])) })
            #expect(self.rig.takeDeliveries().map(\.stream.number) == [stream])
        }
    }

    @Test("Wakes that expired in steps that did not happen stall no stream; those that did are answered late")
    func stall() throws {
        self.rig.subscribe(1, slots: 9)
        self.commit(try self.step { for device in 1...3 { self.rig.push(device) } })
        let wakes = self.rig.takeDeliveries().map(\.wake)
        self.rig.rig.pass(6000)
        for _ in 0..<3 {
            let step = try self.step()
            #expect(self.rig.output.expirations.count == 3)
            _ = self.rig.takeDeliveries()
            #expect(self.rig.dispatcher.freeSlots(Self.topic).isEmpty)
            #expect(self.rig.dispatcher.undo(step.streams).isEmpty)
            #expect(self.rig.dispatcher.freeSlots(Self.topic).map(\.count) == [6])
            #expect(self.counts.busy == 3)
        }
        let step = try self.step()
        // A late answer at another gateway, and one here in a step that may fail.
        self.commit(step)
        #expect(self.rig.dispatcher.freeSlots(Self.topic).isEmpty)
        let late = try self.step { _ = self.rig.report(.newData, wakes[0]) }
        #expect(!self.rig.dispatcher.freeSlots(Self.topic).isEmpty)
        #expect(self.rig.dispatcher.undo(late.streams).isEmpty)
        #expect(self.rig.dispatcher.freeSlots(Self.topic).isEmpty)
        self.rig.dispatcher.wakeEndedElsewhere(wakes[1], nil)
        #expect(!self.rig.dispatcher.freeSlots(Self.topic).isEmpty)
    }

    @Test("A duration counts once, however often its step has to be done, also if another half hour has begun")
    func durations() throws {
        self.rig.dispatcher.advanceDurations(to: self.rig.rig.instant)
        self.rig.subscribe(1, slots: 2, label: "a")
        self.commit(try self.step { for device in 1...2 { self.rig.push(device) } })
        let wakes = self.rig.takeDeliveries().map(\.wake)
        self.rig.rig.pass(500)
        for round in 0..<3 as Range<Int64> {
            let step = try self.step { self.rig.report(.newData, wakes[0]) }
            self.rig.dispatcher.advanceDurations(to: self.rig.rig.instant + round * WakeDurations.span)
            #expect(self.rig.dispatcher.undo(step.streams).isEmpty)
            for row in self.rig.dispatcher.durations(nil) { #expect(row.counts.count == 0 && row.counts.sum == 0) }
        }
        self.commit(try self.step { self.rig.report(.newData, wakes[0]) })
        #expect(self.rig.dispatcher.durations(nil).map(\.counts.count) == [1, 1])
        // One that ends at another gateway ends with the notice of it.
        self.rig.dispatcher.wakeEndedElsewhere(wakes[1], nil, at: self.rig.rig.instant + 100)
        let counts = try #require(self.rig.dispatcher.durations(Self.topic).first).counts
        #expect(counts.count == 2 && counts.sum == 1100 && counts.max == 600)
    }

    @Test("A stream asked to end ends once the step that released its last wake is durable")
    func drained() throws {
        self.rig.subscribe(1)
        self.commit(try self.step { self.rig.push(1) })
        let wake = try #require(self.rig.takeDeliveries().first).wake
        #expect(self.rig.dispatcher.streamDraining(DispatchRig.address(1)) { _ in true })
        var step = try self.step { self.rig.report(.newData, wake) }
        #expect(self.rig.dispatcher.streamCount == 1)
        #expect(self.rig.dispatcher.undo(step.streams).isEmpty)
        #expect(self.counts.busy == 1)
        step = try self.step { self.rig.report(.newData, wake) }
        _ = self.rig.output.take()
        self.commit(step)
        #expect(self.rig.output.take() == [.drained(DispatchRig.address(1))])
        #expect(self.rig.dispatcher.streamCount == 0)
    }

    @Test("When a stream ends during a step, its wakes and the undone releases are returned as lost")
    func ended() throws {
        self.rig.subscribe(1, slots: 2)
        self.commit(try self.step { for device in 1...2 { self.rig.push(device) } })
        let wakes = self.rig.takeDeliveries().map(\.wake)
        let step = try self.step { self.rig.report(.newData, wakes[0]) }
        #expect(self.rig.dispatcher.removeStream(DispatchRig.address(1)) == [wakes[1]])
        #expect(self.rig.dispatcher.undo(step.streams) == [wakes[0]])
        self.rig.subscribe(2, slots: 5)
        self.rig.rig.pass(1000)
        let lost = try self.step { self.rig.dispatcher.lose(wakes) }
        #expect(Set(self.rig.takeDeliveries().map(\.token)) == Set([1, 2].map { EngineRig.token($0) }))
        #expect(lost.changes.flatMap(\.ended).count == 2)
        self.commit(lost)
        #expect(self.counts.busy == 2)
    }

    @Test("A wake released at another gateway frees its slot, and counts as released")
    func releasedElsewhere() throws {
        self.rig.subscribe(1, slots: 5)
        self.commit(try self.step { for device in 1...3 { self.rig.push(device) } })
        let stream = DispatchRig.address(1)
        for delivery in self.rig.takeDeliveries() {
            self.rig.dispatcher.wakeEndedElsewhere(delivery.wake, .lost)
            #expect(self.rig.output.take() == [.released(delivery.wake, stream)])
        }
        #expect(self.counts.busy == 0 && self.counts.stalled == 1)
        #expect(self.rig.dispatcher.takeStreamChanges().isEmpty)
    }

    @Test("An undone release does not count, and its stream holds the wake again")
    func undoneRelease() throws {
        self.rig.subscribe(1)
        self.commit(try self.step { self.rig.push(1) })
        for _ in 0..<2 {
            let wake = try #require(self.rig.takeDeliveries().last).wake
            self.commit(try self.step { #expect(self.rig.dispatcher.release(wake, reason: "a") == .released) })
            self.commit(try self.step())
        }
        let wake = try #require(self.rig.takeDeliveries().last).wake
        let third = try self.step { #expect(self.rig.dispatcher.release(wake, reason: "b") == .released) }
        #expect(self.counts.stalled == 1)
        #expect(self.rig.dispatcher.undo(third.streams).isEmpty)
        #expect(self.counts.stalled == 0 && self.counts.busy == 1)
        let again = try self.step { #expect(self.rig.dispatcher.release(wake, reason: "c") == .released) }
        self.commit(again)
        #expect(self.counts.stalled == 1 && self.counts.stallReason?.hasSuffix(": c") == true)
    }

    @Test("A now-or-never push has two seconds if another gateway has the slot and it could launch now")
    func nowOrNever() throws {
        var expirations: [Expiration] = []
        func scope(_ device: Int) {
            self.rig.rig.makePush(.immediate, .nowOrNever) { made, expiration in
                EngineRig.topicName(0).withByteView { topic in
                    var push = made
                    push.token = EngineRig.token(device)
                    push.topic = topic
                    expirations.append(self.rig.dispatcher.reachingElsewhere(push, expiration))
                }
            }
        }
        self.commit(
            try self.step {
                scope(1)
                self.rig.push(2)
                self.rig.conditions(2) { $0.appState = .forceQuit }
                scope(2)
                // The push would take over the expiration of a pending one.
                self.rig.push(4)
                scope(4)
            }
        )
        self.rig.subscribe(1, slots: 5)
        self.commit(try self.step { scope(3) })
        #expect(expirations == [.at(self.rig.rig.instant + 2000), .nowOrNever, .nowOrNever, .nowOrNever])
    }

    @Test("A paused stream later receives conditions of devices that are no longer in memory")
    func conditions() throws {
        self.rig.subscribe(1, reportsConditions: true)
        self.rig.subscribe(2, reportsConditions: true, devices: [1])
        self.commit(try self.step { for device in 1...2 { self.rig.rig.register(device) } })
        for stream in 1...2 { self.rig.pause(stream, true) }
        for level in [0.5, 0.4] {
            self.commit(
                try self.step {
                    for device in 1...2 { self.rig.conditions(device) { $0.batteryLevel = level } }
                }
            )
        }
        #expect(self.rig.output.take().isEmpty)
        for stream in 1...2 { self.rig.pause(stream, false) }
        #expect(self.rig.dispatcher.pendingConditions.count == 2)
        let failed = try self.step { self.rig.dispatcher.sendPendingConditions() }
        #expect(self.rig.output.take().count == 3 && self.rig.dispatcher.undo(failed.streams).isEmpty)
        #expect(self.rig.dispatcher.pendingConditions.count == 2, "what a step that failed has sent is owed still")
        self.commit(try self.step { self.rig.dispatcher.sendPendingConditions() })
        let told: [String] = self.rig.output.take().compactMap { event in
            guard case .conditions(let token, let conditions, let stream) = event else { return nil }
            return "\(stream.number) \(token == EngineRig.token(1)) \(conditions.batteryLevel)"
        }
        #expect(told.sorted() == ["1 false 0.4", "1 true 0.4", "2 true 0.4"])
        #expect(self.rig.dispatcher.pendingConditions.isEmpty)
        self.commit(
            try self.step { self.rig.dispatcher.conditionsChangedElsewhere(self.rig.rig.index(1)) }
        )
        #expect(self.rig.output.take().count == 2)
    }

    @Test("A report of progress in a step that did not happen is not counted, and its task has not advanced")
    func progress() throws {
        self.rig.subscribe(1, tasks: ["export"])
        self.commit(
            try self.step {
                self.rig.rig.register(1, topic: 0)
                self.rig.conditions(1) { $0.appState = .active }
                self.rig.submit(1, "export", .continued(.queue))
            }
        )
        let wake = try #require(self.rig.takeDeliveries().first).wake
        self.rig.rig.pass(15_000)
        let dispatcher = self.rig.dispatcher
        func report() throws -> (changes: [SharedDeviceChange], streams: StreamChanges) {
            let step = try self.step { _ = dispatcher.progress(TaskProgress(completed: 1, total: 9), wake: wake) }
            #expect(dispatcher.progressReports == 1 && dispatcher.stalledTaskCount == 0)
            return step
        }
        for _ in 0..<2 {
            #expect(dispatcher.undo(try report().streams).isEmpty)
            #expect(dispatcher.progressReports == 0 && dispatcher.stalledTaskCount == 1)
        }
        self.commit(try report())
        #expect(dispatcher.progressReports == 1 && dispatcher.stalledTaskCount == 0)
    }

    @Test("Free slots are grouped by what streams accept, in a deterministic order")
    func freeSlots() throws {
        self.rig.subscribe(1, slots: 2)
        self.rig.subscribe(2, slots: 3)
        self.rig.subscribe(3, slots: 1, tasks: ["feed"], resources: ["gpu"])
        self.rig.subscribe(4, slots: 1, devices: [7, 5])
        self.rig.subscribe(5, slots: 4, devices: [6])
        let slots = self.rig.dispatcher.freeSlots(Self.topic)
        #expect(slots.map(\.count) == [5, 5, 1])
        #expect(slots.map(\.namesDevices) == [true, false, false])
        let devices = slots.map { self.rig.dispatcher.devices($0) }
        #expect(devices == [[5, 6, 7].map { EngineRig.token($0) }, [], []])
        #expect(slots[2].tasks == ["feed"] && slots[2].resources == ["gpu"])
        #expect(Set(slots.map(\.number)).count == 3)
        // Streams that are not free are not offered, and those that ended are removed.
        self.rig.pause(4, true)
        self.rig.dispatcher.slotsChanged(DispatchRig.address(5), to: 2)
        self.rig.endStream(3)
        let fewer = self.rig.dispatcher.freeSlots(Self.topic)
        #expect(fewer.map(\.count) == [2, 5])
        #expect(self.rig.dispatcher.devices(fewer[0]) == [EngineRig.token(6)])
        self.rig.subscribe(3, slots: 1, tasks: ["feed"], resources: ["gpu"])
        let again = self.rig.dispatcher.freeSlots(Self.topic)
        #expect(again.map(\.count) == [2, 5, 1])
        #expect(again[2].number != slots[2].number, "a later stream has not asked for anything")
        self.rig.dispatcher.wakeBytesPerStreamChanged(to: 0)
        #expect(self.rig.dispatcher.freeSlots(Self.topic).isEmpty)
        self.rig.dispatcher.wakeBytesPerStreamChanged(to: 100)
        #expect(self.rig.dispatcher.freeSlots(Self.topic) == again)
        self.rig.dispatcher.drain()
        #expect(self.rig.dispatcher.freeSlots(Self.topic).isEmpty)
    }
}
