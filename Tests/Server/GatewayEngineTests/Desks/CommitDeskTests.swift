import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit

@Suite("What is handed to the store, and when others hear of it", .timeLimit(.minutes(15)))
struct CommitDeskTests {
    /// A desk on a store that commits when the test says so.
    private final class Rig {
        let engine = EngineRig()
        let store = SimulatedStore()
        let committer: SteppedCommitter
        let desk: CommitDesk
        let records = GatewayRecords(countingSince: 1)
        private let loop = LoopMailbox()
        private var clock: EngineClock

        init() throws {
            try self.store.load { _, _ in }
            try self.store.begin()
            let world = EngineWorld(SharedClock(boot: 5_000, wall: 1_700_000_000_000), seed: 1)
            let outlet = GroupOutlet(mailboxes: PerOutlet(self.loop), history: SilentHistory())
            self.clock = EngineClock(resuming: nil, at: EngineClock.Reading(world), world, ClockJumpWatch())
            self.committer = SteppedCommitter(self.store, outlet)
            self.desk = CommitDesk(
                stage: EffectStage(group: outlet.makeGroup(), offset: self.clock.offset),
                outlet: outlet,
                committer: self.committer,
                numbers: nil,
                records: self.records
            )
        }

        /// A step that answers a request.
        func answer(_ request: Int) { self.desk.stage.answer(Requests.address(request), .done) }

        func flush() -> StoreError? { self.desk.flush(self.engine.engine, &self.clock) }

        /// The requests that were answered since the last call, with their statuses.
        func heard() -> [String] {
            var effects = EffectBatch()
            self.loop.take(into: &effects)
            return Heard.all(in: effects).compactMap { heard in
                guard case .answer(let request, let outcome) = heard else { return nil }
                return "\(request): \(outcome.status)"
            }
        }

        func release() { self.desk.release(self.engine.engine, self.clock.offset) }
    }

    @Test("What changes nothing is told at once while the store is idle, and writes nothing")
    func unchanged() throws {
        let rig = try Rig()
        rig.answer(1)
        #expect(rig.flush() == nil && rig.heard() == ["1: 204"])
        #expect(rig.store.commits == 0 && !rig.committer.isBusy)
    }

    @Test("What changes something is told once it is durable, and who comes meanwhile waits for their place")
    func changed() throws {
        let rig = try Rig()
        rig.engine.register(1)
        rig.answer(1)
        #expect(rig.flush() == nil && rig.heard().isEmpty && rig.committer.isBusy)
        rig.answer(2)
        #expect(rig.flush() == nil && rig.heard().isEmpty, "nobody overtakes")
        rig.committer.commit()
        #expect(rig.heard() == ["1: 204"])
        #expect(rig.flush() == nil && rig.heard() == ["2: 204"])
        #expect(rig.store.commits == 1)
        #expect(Set(rig.store.durable.keys) == [RecordKey(.topic), RecordKey(.device), RecordKey(.clock)])
    }

    @Test("While the store rests, what changes something waits, and who comes behind it; what comes before does not")
    func resting() throws {
        let rig = try Rig()
        rig.committer.isResting = true
        rig.answer(1)
        #expect(rig.flush() == nil && rig.heard() == ["1: 204"])
        rig.engine.register(1)
        rig.answer(2)
        #expect(rig.flush() == nil && rig.heard().isEmpty && !rig.committer.isBusy)
        rig.answer(3)
        #expect(rig.flush() == nil && rig.heard().isEmpty)
        rig.committer.isResting = false
        #expect(rig.flush() == nil && rig.committer.isBusy)
        rig.committer.commit()
        #expect(rig.heard() == ["2: 204", "3: 204"] && rig.store.commits == 1)
    }

    @Test("Changes of several steps go with one commit")
    func together() throws {
        let rig = try Rig()
        rig.engine.register(1)
        _ = rig.flush()
        for device in 2...4 {
            rig.engine.register(device)
            rig.answer(device)
            _ = rig.flush()
        }
        rig.committer.commit()
        #expect(rig.heard().isEmpty)
        _ = rig.flush()
        rig.committer.commit()
        #expect(rig.heard() == ["2: 204", "3: 204", "4: 204"] && rig.store.commits == 2)
    }

    @Test("What the gateway keeps besides devices is a reason to commit")
    func records() throws {
        let rig = try Rig()
        rig.records.workersAsked()
        _ = rig.flush()
        rig.committer.commit()
        #expect(Set(rig.store.durable.keys) == [.workersAsked, RecordKey(.clock)])
        _ = rig.flush()
        #expect(rig.store.commits == 1)
    }

    @Test("After a failed commit who waited is refused once, in order, and the store says what is durable")
    func failed() throws {
        let rig = try Rig()
        rig.engine.register(1)
        _ = rig.flush()
        rig.committer.commit()
        rig.engine.register(2)
        rig.answer(2)
        rig.store.failOperation(rig.store.operations)
        _ = rig.flush()
        rig.answer(3)
        rig.committer.commit()
        let error = try #require(rig.flush())
        #expect(rig.heard().isEmpty)
        let (group, store) = try #require(rig.desk.takeFailure())
        rig.desk.refuse(group, error)
        rig.release()
        #expect(rig.heard() == ["2: 503", "3: 503"])
        var devices = 0
        try store.reload { key, _ in devices += key.kind == .device ? 1 : 0 }
        #expect(devices == 1)
    }
}
