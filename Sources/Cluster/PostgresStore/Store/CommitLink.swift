import Engine
import Platform
import Policy
import Wire

/// A connection that commits one transaction at a time, each in two round trips.
final class CommitLink: StoreLink {
    /// A unit of work for a connection.
    enum Job {
        case load(TransactionNumber, LoadPlan)
        case retire(GatewayNumber)
    }

    /// A transaction whose rows are locked and read.
    private struct Open {
        let number: TransactionNumber
        let now: Instant
        let versions: RowVersions
    }

    /// A transaction whose commit was sent.
    private struct Commit {
        let number: TransactionNumber
        let gateway: GatewayNumber
        /// The number of the transaction on this connection.
        let mark: Int64
        let counters: ConnectionCounters.Step
        let endedPlace: Int?
        let ended: [WakeID]
    }

    private enum State {
        /// Not connected, or preparing statements. Can move to: idle.
        case unready
        case idle
        /// Rows are being locked and read. Can move to: open, idle, unready.
        case loading(TransactionNumber)
        /// The engine has the rows. Can move to: committing, idle, unready.
        case open(Open)
        /// The commit was sent. Can move to: idle, or unready with the result in doubt.
        case committing(Commit)
        case retiring
    }

    /// The number of this connection, starting at 1.
    private let index: Int16
    private let state: StoreState
    let connection: StoreConnection<CommitStatement>
    private var phase = State.unready
    /// A commit whose answer was lost.
    private var doubt: Commit?
    private var counters = ConnectionCounters()
    private var mark: Int64 = 0
    private var epoch: Int64 = 0
    /// The gateway whose rows this connection writes. The counters restart when it changes.
    private var gateway: GatewayNumber?
    /// The deadline for the answer to a commit in progress once the store is detached; nil otherwise.
    private var answerDeadline: Int64?
    /// The reason why the connection is not open.
    private(set) var failure: StoreError?

    init(index: Int16, _ state: StoreState) {
        self.index = index
        self.state = state
        self.connection = StoreConnection(state)
    }

    var isIdle: Bool { if case .idle = self.phase { true } else { false } }
    var isCommitting: Bool { if case .committing = self.phase { true } else { false } }

    /// The number of the open transaction; nil if there is none.
    var open: TransactionNumber? { if case .open(let open) = self.phase { open.number } else { nil } }

    var nextWork: Int64? { self.answerDeadline }

    /// Handles a deadline that has passed.
    func workIfDue(_ now: Int64) {
        guard self.isCommitting, let deadline = self.answerDeadline, now >= deadline else { return }
        self.ended(PostgresError(kind: .connectionLost, message: "no answer to a commit"))
    }

    // MARK: Connecting

    var settings: [PostgresSetting] {
        // A load waits only briefly for a lock, and the next attempt skips the locked row.
        SessionSetup.committing(silenceMilliseconds: self.state.settings.silenceMilliseconds)
            + [PostgresSetting("lock_timeout", "\(self.state.settings.lockMilliseconds)")]
    }

    func connected() {
        guard let gateway = self.state.number else { return }
        if self.gateway != gateway {
            self.gateway = gateway
            self.counters = ConnectionCounters()
            self.mark = 0
        }
        self.connection.query(SessionSetup.durable)
        self.connection.prepareAll()
        if let doubt = self.doubt {
            self.connection.run(.resolve, doubt.gateway.rawValue, self.index)
            self.connection.run(.holders, PostgresList(doubt.ended), doubt.gateway.rawValue)
        }
        self.connection.run(.resolve, gateway.rawValue, self.index)
        self.connection.send { self.setUpEnded($0) }
    }

    private func setUpEnded(_ outcome: PostgresOutcome) {
        if let failure = outcome.failure { return self.ended(failure) }
        // A state that no standby has confirmed may be lost by a failover.
        if let warning = outcome.unreplicated { return self.ended(warning) }
        guard let own = outcome.results.last, own.count == 1, own.flag(0, 2) else {
            self.state.fault = StoreError(.fenced)
            return self.ended(.fenced)
        }
        self.epoch = own.int64(0, 1)
        if let doubt = self.doubt, outcome.results.count >= 3 {
            let results = outcome.results.suffix(3)
            self.resolve(doubt, results[results.startIndex], results[results.startIndex + 1])
        }
        self.phase = .idle
        self.failure = nil
        self.connection.resetPause()
    }

    private func resolve(_ doubt: Commit, _ row: PostgresRows, _ holders: PostgresRows) {
        self.doubt = nil
        guard row.count == 1, row.int64(0, 0) >= doubt.mark else {
            let lost = PostgresError(kind: .connectionLost, message: "the connection was lost before the commit")
            return self.state.fail(doubt.number, .refused(StoreError(lost)))
        }
        if doubt.gateway == self.gateway { self.counters.take(doubt.counters) }
        self.state.replies.append(.committed(doubt.number, endedElsewhere: Self.held(holders, doubt.gateway)))
    }

    // MARK: Working

    /// Starts a job. The connection must be idle.
    func begin(_ job: Job) {
        switch job {
        case .load(let number, let plan):
            self.phase = .loading(number)
            let step = LoadStep(plan, floor: self.state.time.last, self.connection)
            self.connection.send { self.loaded(number, step, $0) }
        case .retire(let gateway):
            self.phase = .retiring
            self.connection.run(.begin)
            self.connection.run(.lockBurial, gateway.rawValue)
            self.connection.run(.burialRows, gateway.rawValue)
            self.connection.send { self.retirementRead(gateway, $0) }
        }
    }

    /// Writes the engine's changes of the open transaction, and commits.
    func commit(_ writes: ClusterWrites) {
        guard case .open(let open) = self.phase, let gateway = self.gateway else { return }
        self.mark += 1
        let counters = self.counters.adding(writes.counts)
        let mark = WriteMark(
            gateway: gateway,
            connection: self.index,
            epoch: self.epoch,
            number: self.mark,
            moment: open.now,
            order: self.state.nextOrder()
        )
        var step = WriteStep(
            writes,
            versions: open.versions,
            now: open.now,
            holder: gateway,
            self.connection
        )
        step.appendOwn(counters, writes.rejections, mark)
        let commit = Commit(
            number: open.number,
            gateway: gateway,
            mark: self.mark,
            counters: counters,
            endedPlace: step.endedPlace,
            ended: writes.endedWakes
        )
        self.phase = .committing(commit)
        self.connection.send { self.committed(commit, $0) }
    }

    /// Rolls back the open transaction without a reply.
    func abandon() {
        guard case .open = self.phase else { return }
        self.rollBack()
    }

    private func rollBack() {
        self.phase = .idle
        self.connection.run(.rollback)
        self.connection.send { _ in }
    }

    // MARK: Reading

    private func loaded(_ number: TransactionNumber, _ step: LoadStep, _ outcome: PostgresOutcome) {
        if let failure = outcome.failure, failure.kind == .lockNotAvailable, step.passesOverLocked {
            // Locked rows are skipped here, so the lock is on the table.
            self.connection.run(.rollback)
            self.connection.run(.tableHolder)
            return self.connection.send { self.blocked(number, $0) }
        }
        guard outcome.failure == nil, let loaded = step.read(outcome.results) else {
            self.rollBack()
            return self.state.fail(number, self.failure(of: outcome.failure ?? .unexpectedAnswer))
        }
        let rows = loaded.dated(by: &self.state.time)
        self.phase = .open(Open(number: number, now: rows.now, versions: loaded.versions))
        self.state.replies.append(.loaded(number, rows))
    }

    private func blocked(_ number: TransactionNumber, _ outcome: PostgresOutcome) {
        self.phase = .idle
        let holder = outcome.results.last.flatMap { $0.count == 1 ? LockHolder($0, 0, 0) : nil }
        self.state.fail(number, .locked(outcome.failure == nil ? holder : nil))
    }

    private func committed(_ commit: Commit, _ outcome: PostgresOutcome) {
        if let failure = outcome.failure {
            self.rollBack()
            if failure.state == PostgresError.fencedState {
                self.state.fault = StoreError(failure)
            }
            return self.state.fail(commit.number, self.failure(of: failure))
        }
        self.phase = .idle
        guard outcome.results.last?.tag == "COMMIT" else {
            return self.state.fail(commit.number, self.failure(of: .unexpectedAnswer))
        }
        // The rows are written, perhaps only on this server, so the counters include them.
        self.counters.take(commit.counters)
        if let warning = outcome.unreplicated {
            return self.state.fail(commit.number, .refused(StoreError(warning)))
        }
        var held: [HeldElsewhere] = []
        if let place = commit.endedPlace, place < outcome.results.count {
            held = Self.held(outcome.results[place], commit.gateway)
        }
        self.state.replies.append(.committed(commit.number, endedElsewhere: held))
    }

    /// Returns the wakes whose holder is another gateway, from rows with the columns `id` and `holder`.
    private static func held(_ rows: PostgresRows, _ own: GatewayNumber) -> [HeldElsewhere] {
        (0..<rows.count).compactMap { row in
            let holder = GatewayNumber(rawValue: rows.int32(row, 1))
            guard holder != own, let wake = rows.wake(row, 0) else { return nil }
            return (wake: wake, holder: holder)
        }
    }

    private func failure(of failure: PostgresError) -> ClusterFailure {
        if failure.kind == .lockNotAvailable { return .locked(nil) }
        return failure.isConflict ? .conflict : .refused(StoreError(failure))
    }

    // MARK: Burying

    private func retirementRead(_ gateway: GatewayNumber, _ outcome: PostgresOutcome) {
        guard outcome.failure == nil, outcome.results.count == 3, outcome.results[1].count == 1,
            outcome.results[1].flag(0, 0)
        else { return self.rollBack() }
        var counters: [Int32: ActivityCounters] = [:]
        var refused: [Int32: RefusedCounts] = [:]
        let rows = outcome.results[2]
        for row in 0..<rows.count {
            let (topic, content) = (rows.int32(row, 1), rows.bytes(row, 2))
            if rows.int32(row, 0) == 0 {
                guard let counts = ActivityCounters(stored: content) else { return self.rollBack() }
                counters[topic, default: ActivityCounters()] += counts
            } else {
                guard refused[topic, default: RefusedCounts()].add(content) else { return self.rollBack() }
            }
        }
        self.connection.run(.foldCounters, Self.fold(counters, of: gateway))
        self.connection.run(.foldRejections, Self.fold(refused, of: gateway))
        self.connection.run(.endBurial, gateway.rawValue)
        self.connection.run(.commit)
        self.connection.send { outcome in
            if outcome.failure == nil { self.phase = .idle } else { self.rollBack() }
        }
    }

    /// Returns parameters that add the counts of a dead gateway to the counts of earlier dead gateways, by topic.
    private static func fold(_ counts: [Int32: some PostgresScalar], of gateway: GatewayNumber) -> PostgresParameters {
        let counts = counts.sorted { $0.key < $1.key }
        return PostgresParameters(gateway.rawValue, PostgresList(counts.map(\.key)), PostgresList(counts.map(\.value)))
    }

    // MARK: Ending

    /// Handles the loss of the connection. An open transaction is rolled back, and the result of a commit in progress
    /// is in doubt.
    func ended(_ failure: PostgresError) {
        self.failure = StoreError(failure)
        let reason: ClusterFailure = self.state.isAttached ? .conflict : .refused(self.failure ?? .unknown)
        self.endJob(reason)
        self.close()
        self.connection.pauseBeforeRetry()
    }

    private func endJob(_ reason: ClusterFailure) {
        switch self.phase {
        case .loading(let number): self.state.fail(number, reason)
        case .open(let open): self.state.fail(open.number, reason)
        case .committing(let commit): self.doubt = commit
        case .unready, .idle, .retiring: ()
        }
    }

    /// Ends the work because the store was detached. Only a commit in progress may still complete.
    func detached(_ error: StoreError) {
        if self.isCommitting {
            self.answerDeadline = SystemClock.monotonic + self.state.settings.silenceMilliseconds
            return
        }
        self.endJob(.refused(error))
        self.close()
        self.connection.retryAt = 0
    }

    /// Closes an idle connection of a gateway that is no longer attached.
    func closeIfDetached() {
        if self.isIdle, self.state.number != self.gateway { self.close() }
    }

    /// Closes the connection.
    func close() {
        self.connection.close()
        self.phase = .unready
        self.answerDeadline = nil
    }
}
