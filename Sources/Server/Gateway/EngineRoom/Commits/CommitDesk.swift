package import Engine
import Wire

/// Hands what steps have changed to the store, one group at a time, and what they have to tell to those whom it is for,
/// once it is durable.
package final class CommitDesk {
    /// Where the steps leave what they have to tell.
    package let stage: EffectStage
    private let outlet: GroupOutlet
    /// nil when nothing is kept.
    private let committer: (any Committer)?
    /// Numbers the records of events; nil when nothing is kept.
    private var numbers: EventNumbers?
    private let records: GatewayRecords

    package init(
        stage: EffectStage,
        outlet: GroupOutlet,
        committer: (any Committer)?,
        numbers: EventNumbers?,
        records: GatewayRecords
    ) {
        self.stage = stage
        self.outlet = outlet
        self.committer = committer
        self.numbers = numbers
        self.records = records
    }

    /// How long commits took; nothing was committed when nothing is kept.
    package var times: CommitTimes { self.committer?.commitTimes ?? CommitTimes() }

    /// Hands what changed to the store, if it is idle; what needs no commit is let out when none is under way.
    ///
    /// - Returns: why nothing can be stored any more; nil when everything can.
    package func flush(_ engine: EmbeddedEngine, _ clock: inout EngineClock) -> StoreError? {
        guard let committer = self.committer else {
            _ = engine.takeStep()
            self.release(engine, clock.offset)
            return nil
        }
        let monotonic = clock.monotonic
        let hasRecords = engine.hasChanges || engine.hasEvents || self.records.hasChanges(at: monotonic)
        let wish: CommitWish = hasRecords ? .commit : self.stage.group.isEmpty ? .nothing : .release
        switch committer.status(of: self.stage.group, waitingFor: wish) {
        case .busy: return nil
        case .failed(let error): return error
        case .resting where hasRecords: return nil
        case .idle, .resting:
            guard hasRecords else {
                self.release(engine, clock.offset)
                return nil
            }
            self.takeHistory(engine, clock.offset)
            self.numbers?.write(self.stage.group.history, to: &self.stage.group.records)
            let record = clock.record(at: engine.now)
            self.stage.group.records.append(RecordKey(.clock)) { record.store(to: &$0) }
            engine.takeStep(into: &self.stage.group.records)
            self.records.takeChanges(into: &self.stage.group.records, at: monotonic)
            committer.submit(&self.stage.group)
            return nil
        }
    }

    /// Lets out what waits, without a commit.
    package func release(_ engine: EmbeddedEngine, _ offset: WallOffset) {
        self.takeHistory(engine, offset)
        self.outlet.release(self.stage.group)
    }

    package func waitUntilIdle() { _ = self.committer?.waitUntilIdle() }

    /// Ends once everything is committed that was handed over.
    package func stop() { self.committer?.stop() }

    /// The commit that failed, whose effects nobody has heard of, and the store, to be asked what is durable; nil when
    /// nothing is kept.
    package func takeFailure() -> (group: StepGroup, store: any RecordStore)? {
        guard let committer = self.committer else { return nil }
        var failed = self.outlet.makeGroup()
        let store = committer.takeFailure(&failed)
        return (failed, store)
    }

    /// Refuses, once, everybody who waited for `failed` or for what was to come behind it.
    package func refuse(_ failed: StepGroup, _ cause: StoreError) {
        let error = APIError.storeFailed(cause)
        self.refuseEverything(of: failed, error)
        self.refuseEverything(of: self.stage.group, error)
        self.outlet.release(failed)
    }

    private func refuseEverything(of group: StepGroup, _ error: APIError) {
        for loop in group.effects.loops.indices { self.refuse(&group.effects.loops[loop], error) }
        self.refuse(&group.effects.webhooks, error)
        for question in group.history.questions { self.stage.answer(question.request.reply, .refused(error)) }
        group.history.removeAll()
        group.watched.removeAll()
        group.records.removeAll()
    }

    private func refuse(_ effects: inout EffectBatch, _ error: APIError) {
        var refusal = EffectRefusal(error)
        refusal.refuse(effects)
        effects = refusal.refused
        self.records.countRejected(APNSReason.serviceUnavailable.index, nil, by: refusal.pushCount)
    }

    private func takeHistory(_ engine: EmbeddedEngine, _ offset: WallOffset) {
        if engine.hasEvents { self.stage.group.history.offset = offset }
        engine.takeEvents(into: &self.stage.group.history.events)
        engine.takeWatched(into: &self.stage.group.watched)
    }
}
