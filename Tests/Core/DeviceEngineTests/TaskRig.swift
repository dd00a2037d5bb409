import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

/// Task operations of tests, with devices identified by numbers.
extension EngineRig {
    /// Submits a request for a registered device.
    @discardableResult
    func submit(
        _ device: Int,
        _ identifier: String,
        _ kind: TaskSubmission.Kind = .appRefresh,
        after seconds: Int64? = nil,
        details: TaskDetails = TaskDetails(),
        hasSlot: Bool = false
    ) throws(TaskRejection) -> TaskAnswer {
        self.register(device)
        _ = self.engine.catchUp(self.index(device))
        let request = IncomingTask(
            identifier: identifier,
            kind: kind,
            earliestBegin: seconds.map { Instant(milliseconds: self.now + $0 * 1000) },
            details: details
        )
        return try self.engine.submit(request, device: self.index(device), hasSlot: hasSlot)
    }

    /// Launches the next push or task of a device.
    func launchNext(_ device: Int) -> LaunchedWake? { self.engine.claim(self.index(device)) { _ in true } }

    /// True if every request and every transfer is accounted for exactly once.
    var isConserved: Bool {
        let counters = self.engine.totals
        return counters.requests.submitted.sum == counters.requestsAccountedFor
            && counters.sessions.finished == counters.sessions.accountedFor
            && counters.accepted == counters.accountedFor
    }
}

extension EngineRig {
    /// Returns the engine of the next process, restored from the store.
    func restarted(
        from store: SimulatedStore,
        _ configuration: EngineConfiguration = EngineRig.open()
    ) throws -> EngineRig {
        let next = EngineRig(configuration, start: self.now, seed: 99)
        try store.reopened(keepsUnresolved: false).load { key, content throws(StoreError) in
            try next.engine.restore(key, content)
        }
        try next.engine.finishRestoring(now: self.instant)
        return next
    }
}

extension DeviceEngine {
    /// Returns the records of everything that has changed since the last step.
    func takeRecords() -> [(key: RecordKey, content: [UInt8])] {
        var batch = RecordBatch()
        self.takeStep(into: &batch)
        return batch.records
    }
}
