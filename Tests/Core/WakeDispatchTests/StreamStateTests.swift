import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

/// Every state of a worker's stream, combined with every event that the dispatcher can process in that state.
@Suite("A worker's stream in every state with every event", .timeLimit(.minutes(15)))
struct StreamStateTests {
    /// The states shown to operators, and one for a stream that has ended.
    enum State: String, CaseIterable {
        case free, busy, full, paused, stalled, draining, ended
    }

    enum Event: CaseIterable {
        /// The event is about another device, which has never launched.
        case push, dryRun, simulateLaunch
        /// The deadline of the held wake passes.
        case deadline, simulateExpiration
        case report
        /// The worker answers a wake that has expired on the stream.
        case lateReport
        case extend
        /// The worker never received the held wake.
        case lose
        /// The worker could not start the held wake.
        case giveBack
        case subscribeAgain, end, drain, pause, resume
        case oneSlot, threeSlots, oneByte, manyBytes
        /// The gateway begins to shut down, and another device gets a push.
        case gatewayDrains
        /// The event is about the device of the held wake.
        case register, unregister, conditions
        /// Time advances, but nothing is due.
        case advance
    }

    /// A message to the stream.
    enum Word: Equatable {
        /// A wake of the device whose wake the stream holds or held.
        case same
        /// A wake of the other device.
        case other
        /// The wake that it held.
        case expire, release
        case drained
    }

    /// The expected effect of an event in a state.
    struct Cell {
        let told: [Word]
        let after: State

        init(_ after: State, _ told: Word...) {
            (self.told, self.after) = (told, after)
        }
    }

    /// The expected effects of every event, in the order of `State.allCases`.
    static let table: [(event: Event, cells: [Cell])] = [
        (.push, [.init(.busy, .other)] + Self.stays(.busy, .full, .paused, .stalled, .draining, .ended)),
        (.dryRun, Self.nothing),
        (.simulateLaunch, [.init(.busy, .other)] + Self.stays(.busy, .full, .paused, .stalled, .draining, .ended)),
        (.deadline, Self.expiry),
        (.simulateExpiration, Self.expiry),
        (
            .report,
            [
                .init(.free, .release), .init(.free, .release), .init(.free, .release), .init(.paused, .release),
                .init(.free, .release), .init(.ended, .release, .drained), .init(.ended),
            ]
        ),
        (.lateReport, Self.stays(.free, .busy, .full, .paused, .free, .draining, .ended)),
        (.extend, Self.nothing),
        (.lose, Self.loss),
        (.giveBack, Self.loss),
        (
            .subscribeAgain,
            [
                .init(.free, .same), .init(.free, .same), .init(.full, .same), .init(.free, .same),
                .init(.free, .same), .init(.free, .same), .init(.free, .same),
            ]
        ),
        (.end, Self.stays(.ended, .ended, .ended, .ended, .ended, .ended, .ended)),
        (.drain, Self.stays(.draining, .draining, .draining, .draining, .draining, .draining, .ended)),
        (.pause, Self.stays(.paused, .paused, .paused, .paused, .paused, .draining, .ended)),
        (.resume, Self.stays(.free, .busy, .full, .free, .stalled, .draining, .ended)),
        (.oneSlot, Self.stays(.busy, .busy, .full, .paused, .stalled, .draining, .ended)),
        (.threeSlots, Self.stays(.free, .free, .full, .paused, .stalled, .draining, .ended)),
        (.oneByte, Self.stays(.full, .full, .full, .paused, .stalled, .draining, .ended)),
        (.manyBytes, Self.stays(.free, .busy, .free, .paused, .stalled, .draining, .ended)),
        (.gatewayDrains, Self.nothing),
        (.register, Self.nothing),
        (.unregister, Self.nothing),
        (.conditions, Self.nothing),
        (.advance, Self.nothing),
    ]

    private static let nothing = Self.stays(.free, .busy, .full, .paused, .stalled, .draining, .ended)

    private static let expiry: [Cell] = [
        .init(.free, .expire, .release), .init(.free, .expire, .release), .init(.free, .expire, .release),
        .init(.paused, .expire, .release), .init(.stalled, .expire, .release),
        .init(.ended, .expire, .release, .drained), .init(.ended),
    ]

    private static let loss: [Cell] = [
        .init(.free, .release, .same), .init(.busy, .release, .same), .init(.full, .release, .same),
        .init(.paused, .release), .init(.stalled, .release), .init(.ended, .release, .drained), .init(.ended),
    ]

    /// Returns cells without messages.
    private static func stays(_ states: State...) -> [Cell] { states.map { Cell($0) } }

    // MARK: The stream

    /// A stream in some state, with a wake of device 1 if it has not ended, on which a wake of device 11 has expired.
    private struct Scene {
        let rig = DispatchRig()
        let wake: WakeID
        let expired: WakeID

        private static let address = DispatchRig.address(1)

        init(_ state: State) throws {
            self.rig.subscribe(1, slots: 4)
            self.rig.rig.register(2)
            let others = state == .stalled ? [11, 12, 13] : [11]
            let rig = self.rig
            let wakes = (others + [1]).map { rig.push($0)?.wake }
            self.expired = try #require(wakes[0])
            self.wake = try #require(wakes[others.count])
            guard case .lasts = self.rig.dispatcher.extend(self.wake, by: 200_000) else {
                throw Unprepared()
            }
            self.rig.advance(by: 30_000)
            for device in others { self.rig.dispatcher.unregister(self.rig.rig.index(device)) }
            self.rig.dispatcher.slotsChanged(Self.address, to: 2)
            switch state {
            case .free, .stalled: ()
            case .busy: self.happen(.oneSlot)
            case .full: self.happen(.oneByte)
            case .paused: self.happen(.pause)
            case .draining: self.happen(.drain)
            case .ended: self.happen(.end)
            }
            _ = self.rig.output.take()
        }

        private struct Unprepared: Error {}

        var state: State? {
            guard let stream = self.rig.dispatcher.streams(countMax: 9).first(where: { $0.address == Self.address })
            else { return .ended }
            return State(rawValue: stream.state.rawValue)
        }

        func happen(_ event: Event) {
            let dispatcher = self.rig.dispatcher
            switch event {
            case .push: self.rig.push(2)
            case .dryRun: self.rig.push(2, isDryRun: true)
            case .simulateLaunch: _ = dispatcher.simulateLaunch(self.rig.rig.index(2))
            case .deadline: self.rig.advance(by: 200_000)
            case .simulateExpiration: _ = dispatcher.simulateExpiration(self.rig.rig.index(1))
            case .report: self.rig.report(.newData, self.wake)
            case .lateReport: self.rig.report(.newData, self.expired)
            case .extend: _ = dispatcher.extend(self.wake, by: 210_000)
            case .lose: dispatcher.lose(self.wake, on: Self.address, takingBackAttempt: true)
            case .giveBack: _ = dispatcher.release(self.wake, reason: "no interpreter")
            case .subscribeAgain: self.rig.subscribe(1, slots: 2)
            case .end: self.rig.endStream(1)
            case .drain: _ = dispatcher.streamDraining(Self.address) { _ in true }
            case .pause: self.rig.pause(1, true)
            case .resume: self.rig.pause(1, false)
            case .oneSlot: dispatcher.slotsChanged(Self.address, to: 1)
            case .threeSlots: dispatcher.slotsChanged(Self.address, to: 3)
            case .oneByte: dispatcher.wakeBytesPerStreamChanged(to: 1)
            case .manyBytes: dispatcher.wakeBytesPerStreamChanged(to: 4_194_304)
            case .gatewayDrains:
                dispatcher.drain()
                self.rig.push(2)
            case .register: self.rig.rig.register(1)
            case .unregister: dispatcher.unregister(self.rig.rig.index(1))
            case .conditions: self.rig.conditions(1) { $0.charging = true }
            case .advance: self.rig.advance(by: 1)
            }
        }

        /// The messages since the scene was set up; nil for messages to other streams.
        var told: [Word?] {
            self.rig.output.events.map { event in
                switch event {
                case .delivered(let delivery) where delivery.stream == Self.address:
                    [EngineRig.token(1): .same, EngineRig.token(2): .other][delivery.token]
                case .expired(self.wake, Self.address, .deadline), .expired(self.wake, Self.address, .operator): .expire
                case .released(self.wake, Self.address): .release
                case .drained(Self.address): .drained
                case .delivered, .expired, .released, .drained, .conditions: nil
                }
            }
        }
    }

    @Test("The table has each event once, and a cell for every state")
    func complete() {
        #expect(Self.table.map(\.event) == Event.allCases)
        for row in Self.table { #expect(row.cells.count == State.allCases.count, "\(row.event)") }
        let shown: [StreamSnapshot.State] = [.free, .busy, .full, .paused, .stalled, .draining]
        #expect(State.allCases.dropLast().map(\.rawValue) == shown.map(\.rawValue))
    }

    @Test("Each event of a stream has the effect in the table", arguments: State.allCases, Self.table.indices)
    func step(state: State, row: Int) throws {
        let place = try #require(State.allCases.firstIndex(of: state))
        let (event, cells) = Self.table[row]
        let scene = try Scene(state)
        #expect(scene.state == state)
        scene.happen(event)
        #expect(scene.state == cells[place].after, "\(event) in \(state)")
        #expect(scene.told == cells[place].told, "\(event) in \(state)")
        // The holders of wakes and the counts must remain consistent.
        let (streams, counts) = (scene.rig.dispatcher.streams(countMax: 9), scene.rig.dispatcher.workerCounts(nil))
        let held = streams.reduce(0) { $0 + $1.busy }
        #expect(counts.busy == held && counts.connected == streams.count)
        #expect(counts.slots == streams.reduce(0) { $0 + $1.slots })
        // A launch requested by an operator has no push.
        let isEmpty = event == .simulateLaunch && state == .free
        #expect(scene.rig.engine.totals.inFlight == Int64(isEmpty ? held - 1 : held))
        let counters = scene.rig.engine.totals
        #expect(counters.accepted == counters.accountedFor)
    }
}

@Suite("The table of streams", .timeLimit(.minutes(15)))
struct StreamTableTests {
    private static func wake(_ number: Int) -> WakeID { WakeID(random: (UInt64(number), 9)) }

    @Test("The holder of a wake is known until it is answered, and after the stream's end until it is lost")
    func holders() {
        var table = StreamTable(wakeBytesMax: 1000)
        let topic = TopicIndex(rawValue: 1)
        let stream = table.insert(DispatchRig.address(1), topic, SubscriptionRequest(slots: 5, devices: []))
        for number in 1...4 { table.give(Self.wake(number), bytes: 1, to: stream, at: Instant(milliseconds: 1000)) }
        #expect((1...5).map { table.holder(of: Self.wake($0)) != nil } == [true, true, true, true, false])
        #expect(table.release(Self.wake(1), stream) == true)
        #expect(table.release(Self.wake(1), stream) == false)
        #expect(table.release(Self.wake(2), stream) == true)
        table.expired(Self.wake(2), stream)
        #expect((1...4).map { table.holder(of: Self.wake($0)) != nil } == [false, true, true, true])
        table.answered(stream)
        #expect(table.holder(of: Self.wake(2)) == nil)
        table.expired(Self.wake(2), stream)
        #expect(table.isHolderGone(Self.wake(3)) == false)
        table.remove(stream)
        #expect((1...4).map { table.holder(of: Self.wake($0)) == nil } == [true, true, true, true])
        #expect((1...4).map { table.isHolderGone(Self.wake($0)) } == [false, false, true, true])
        table.forget(Self.wake(3))
        #expect(table.isHolderGone(Self.wake(3)) == false)
    }
}

@Suite("How much of wakes one stream holds", .timeLimit(.minutes(15)))
struct WakeBytesTests {
    /// The size of a payload of `DispatchRig` whose number has one digit, in bytes.
    private static let payloadBytes = "{\"aps\":{\"content-available\":1},\"n\":1}".utf8.count

    @Test("A stream gets wakes up to its limit of bytes; each end frees bytes, and other streams have their own limit")
    func bytes() throws {
        let rig = DispatchRig(wakeBytesPerStreamMax: 2 * Self.payloadBytes)
        rig.subscribe(1, slots: 100)
        rig.push(1)
        #expect(rig.takeDeliveries().count == 1)
        #expect(rig.dispatcher.timesStreamWasFull == 0)
        rig.push(2)
        let second = try #require(rig.takeDeliveries().first)
        #expect(rig.dispatcher.timesStreamWasFull == 1)
        #expect(rig.push(3)?.held == .worker)
        #expect(rig.push(4)?.held == .worker)
        #expect(rig.takeDeliveries().isEmpty)
        rig.report(.newData, second.wake)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(3)])
        #expect(rig.dispatcher.timesStreamWasFull == 2)
        rig.subscribe(2, slots: 1)
        let fourth = rig.takeDeliveries()
        #expect(fourth.map(\.token) == [EngineRig.token(4)])
        #expect(fourth.map(\.stream) == [DispatchRig.address(2)])
    }

    @Test("A wake without a push needs no bytes")
    func emptyWake() {
        let rig = DispatchRig(wakeBytesPerStreamMax: Self.payloadBytes)
        for device in 1...2 { rig.rig.register(device) }
        rig.subscribe(1, slots: 100)
        for device in 1...2 {
            #expect(rig.dispatcher.simulateLaunch(rig.rig.index(device)) == .launched)
        }
        rig.push(3)
        #expect(rig.takeDeliveries().count == 3)
        #expect(rig.dispatcher.timesStreamWasFull == 1)
    }
}

@Suite("Streams that end, stall, pause and drain", .timeLimit(.minutes(15)))
struct StreamTests {
    @Test("A stream on which three wakes in a row expired gets no more wakes")
    func stalls() {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 4)
        for device in 0..<3 { rig.push(device) }
        let deliveries = rig.takeDeliveries()
        rig.advance(by: 30_000)
        #expect(Set(rig.output.expirations) == Set(deliveries.map(\.wake)))
        _ = rig.output.take()
        rig.push(10)
        #expect(rig.takeDeliveries().isEmpty)
        #expect(rig.engine.totals.held[.worker] == 1)
        let counts = rig.dispatcher.workerCounts(nil)
        #expect((counts.connected, counts.slots, counts.busy, counts.stalled) == (1, 4, 0, 1))
        #expect(counts.stallReason?.contains("nothing was ever received from it") == true)
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
