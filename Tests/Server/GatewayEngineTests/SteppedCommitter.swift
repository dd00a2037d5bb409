import Engine
import Gateway

/// Commits when the test says so, on its thread.
final class SteppedCommitter: Committer {
    private let store: any RecordStore
    private let outlet: GroupOutlet
    private var group: StepGroup
    private var status = CommitStatus.idle
    let commitTimes = CommitTimes()
    /// What the group under way may let out, and nobody has heard of.
    private(set) var isBusy = false

    init(_ store: any RecordStore, _ outlet: GroupOutlet) {
        self.store = store
        self.outlet = outlet
        self.group = outlet.makeGroup()
    }

    /// Whether it rests while it is idle.
    var isResting = false

    /// Whether a commit has failed.
    var hasFailed: Bool { if case .failed = self.status { true } else { false } }

    func status(of _: StepGroup, waitingFor _: CommitWish) -> CommitStatus {
        if case .idle = self.status, self.isResting { .resting } else { self.status }
    }

    func submit(_ group: inout StepGroup) {
        swap(&self.group, &group)
        self.status = .busy
        self.isBusy = true
    }

    func waitUntilIdle() -> CommitStatus {
        self.isResting = false
        self.commit()
        return self.status
    }

    func takeFailure(_ group: inout StepGroup) -> any RecordStore {
        swap(&self.group, &group)
        return self.store
    }

    func stop() { self.commit() }

    /// Commits the group under way, if there is one.
    func commit() {
        guard self.isBusy else { return }
        self.isBusy = false
        do throws(StoreError) {
            if !self.group.records.isEmpty { try self.store.commit(self.group.records) }
            self.outlet.release(self.group)
            self.status = .idle
        } catch {
            self.status = .failed(error)
        }
    }
}
