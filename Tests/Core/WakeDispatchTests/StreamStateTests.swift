import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

/// Every state that a worker's stream may be in, and everything that the dispatcher may be told there.
@Suite("A worker's stream in every state, whatever happens", .timeLimit(.minutes(15)))
struct StreamStateTests {
    /// As operators are shown them, and one for a stream that is no more.
    enum State: String, CaseIterable {
        case free, busy, full, paused, stalled, draining, ended
    }

    enum Event: CaseIterable {
        /// Of another device, which has never launched.
        case push, dryRun, simulateLaunch
        /// The deadline of the wake that it holds passes.
        case deadline, simulateExpiration
        case report
        /// The worker answers a wake that has expired on it.
        case lateReport
        case extend
        /// The worker never got the wake that it holds.
        case lose
        /// The worker could not begin the wake that it holds.
        case giveBack
        case subscribeAgain, end, drain, pause, resume
        case oneSlot, threeSlots, oneByte, manyBytes
        /// The gateway is about to end; another device gets a push.
        case gatewayDrains
        /// Of the device whose wake it holds.
        case register, unregister, conditions
        /// Nothing is due.
        case advance
    }

    /// What the stream is told.
    enum Word: Equatable {
        /// A wake of the device whose wake it holds, or held.
        case same
        /// A wake of the other device.
        case other
        /// The wake that it held.
        case expire, release
        case drained
    }

    /// What an event comes to in a state.
    struct Cell {
        let told: [Word]
        let after: State

        init(_ after: State, _ told: Word...) {
            (self.told, self.after) = (told, after)
        }
    }

    /// What every event comes to in `State.allCases`, in their order.
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
        (
            .lose,
            [
                .init(.free, .release, .same), .init(.busy, .release, .same), .init(.full, .release, .same),
                .init(.paused, .release), .init(.stalled, .release), .init(.ended, .release, .drained), .init(.ended),
            ]
        ),
        (
            .giveBack,
            [
                .init(.free, .release, .same), .init(.busy, .release, .same), .init(.full, .release, .same),
                .init(.paused, .release), .init(.stalled, .release), .init(.ended, .release, .drained), .init(.ended),
            ]
        ),
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

    /// Cells in which nothing is told.
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
            case .conditions:
                var report = ConditionsReport()
                report.charging = true
                _ = dispatcher.conditions(report, self.rig.rig.index(1))
            case .advance: self.rig.advance(by: 1)
            }
        }

        /// What was told since it is there; nil for what is not of it.
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

    @Test("Whatever happens to a stream comes to what the table says", arguments: State.allCases, Self.table.indices)
    func step(state: State, row: Int) throws {
        let place = try #require(State.allCases.firstIndex(of: state))
        let (event, cells) = Self.table[row]
        let scene = try Scene(state)
        #expect(scene.state == state)
        scene.happen(event)
        #expect(scene.state == cells[place].after, "\(event) in \(state)")
        #expect(scene.told == cells[place].told, "\(event) in \(state)")
        // Whatever it was: who holds wakes, and how many, stays one truth.
        let held = scene.rig.dispatcher.streams(countMax: 9).reduce(0) { $0 + $1.busy }
        #expect(scene.rig.dispatcher.workerCounts(nil).busy == held)
        // A launch that an operator asked for has no push.
        let isEmpty = event == .simulateLaunch && state == .free
        #expect(scene.rig.engine.totals.inFlight == Int64(isEmpty ? held - 1 : held))
        let books = scene.rig.engine.totals
        #expect(books.accepted == books.accountedFor)
    }
}
