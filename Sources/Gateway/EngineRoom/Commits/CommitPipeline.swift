package import DeviceEngine
import Platform

/// Makes groups durable on a thread of its own.
///
/// While it syncs one group, the engine steps on and collects the next: one sync covers all that arrived during the
/// last one, and a group that finds the store idle waits for nobody. While pushes come fast, the store is not idle at
/// once when a group is durable (`CommitPace`).
///
/// It is `Sendable` without the compiler's proof: `monitor` guards every field that changes; the store is used by the
/// pipeline's thread alone, until the engine takes over a failure.
package final class CommitPipeline: Committer, @unchecked Sendable {
    private let store: any RecordStore
    private let outlet: GroupOutlet
    /// Wakes the engine.
    private let ring: @Sendable () -> Void
    private let monitor = Monitor()
    private var group: StepGroup
    private var status = CommitStatus.idle
    private var ringsWhenIdle = false
    private var isClosed = false
    private var hasEnded = false
    private var times = CommitTimes()
    /// Of the pipeline's thread alone.
    private var pace = CommitPace()

    /// - Throws: `StoreError` when the system has no room for its thread.
    package init(store: any RecordStore, outlet: GroupOutlet, ring: @escaping @Sendable () -> Void) throws(StoreError) {
        self.store = store
        self.outlet = outlet
        self.ring = ring
        self.group = outlet.makeGroup()
        do throws(ThreadFailure) {
            try NamedThread("store") { self.run() }
        } catch {
            throw StoreError(message: error.message)
        }
    }

    package func status(ringingWhenIdle: Bool) -> CommitStatus {
        let status = self.monitor.withLock {
            if case .busy = self.status, ringingWhenIdle { self.ringsWhenIdle = true }
            return self.status
        }
        // A store may fail between two commits, too: its files were taken away. It is asked outside the lock, and an
        // idle pipeline stays so, since nobody else submits.
        guard case .idle = status, let failure = self.store.failure else { return status }
        return self.monitor.withLock {
            self.status = .failed(failure)
            return self.status
        }
    }

    package var commitTimes: CommitTimes { self.monitor.withLock { self.times } }

    package func submit(_ group: inout StepGroup) {
        self.monitor.withLock {
            swap(&self.group, &group)
            self.status = .busy
            self.monitor.broadcast()
        }
    }

    package func waitUntilIdle() -> CommitStatus {
        self.monitor.withLock {
            while case .busy = self.status { self.monitor.wait() }
            return self.status
        }
    }

    package func takeFailure(_ group: inout StepGroup) -> any RecordStore {
        self.monitor.withLock {
            swap(&self.group, &group)
            return self.store
        }
    }

    package func stop() {
        self.monitor.withLock {
            self.isClosed = true
            self.monitor.broadcast()
            while !self.hasEnded { self.monitor.wait() }
        }
    }

    private func run() {
        while self.waitForGroup() {
            var status = CommitStatus.idle
            do throws(StoreError) {
                // A group without records waits only for its place behind the one before it.
                let rest = self.group.records.isEmpty ? nil : try self.commit()
                self.outlet.release(self.group)
                if let rest { self.wait(until: rest) }
            } catch {
                status = .failed(error)
            }
            let rings = self.monitor.withLock {
                self.status = status
                self.monitor.broadcast()
                defer { self.ringsWhenIdle = false }
                if case .failed = status { return true }
                return self.ringsWhenIdle
            }
            if rings { self.ring() }
        }
        self.monitor.withLock {
            self.hasEnded = true
            self.monitor.broadcast()
        }
    }

    /// - Returns: when the next may begin, in microseconds of the monotonic clock; nil when it may at once.
    private func commit() throws(StoreError) -> Int64? {
        let start = SystemClock.monotonicMicroseconds
        try self.store.commit(self.group.records)
        let end = SystemClock.monotonicMicroseconds
        let pushes = self.monitor.withLock { self.times.committed(self.group.arrivals, from: start, to: end) }
        let rest = self.pace.committed(pushes, from: start, to: end)
        return rest > end ? rest : nil
    }

    private func wait(until moment: Int64) {
        self.monitor.withLock {
            while !self.isClosed, SystemClock.monotonicMicroseconds < moment {
                _ = self.monitor.wait(untilNanoseconds: moment * 1_000)
            }
        }
    }

    private func waitForGroup() -> Bool {
        self.monitor.withLock {
            while true {
                if case .busy = self.status { return true }
                if self.isClosed { return false }
                self.monitor.wait()
            }
        }
    }
}
