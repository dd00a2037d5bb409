import HTTPClient
import HTTPTransport
package import ServiceManager
import Storage
import Wire

/// The core of the agent. It processes messages from callers, attempts and the machine, and updates `scheduler`. It
/// stores the changes, and publishes effects when the changes are durable.
///
/// Only one thread uses it.
package final class AgentEngine {
    /// A running attempt.
    struct Running {
        let number: Int
        let attempt: AttemptHandle
        let session: Int32
        var reportedBytes: Int64 = -1
    }

    /// An effect of a change, which waits for a commit. A successful commit calls `run`, and a failed one calls
    /// `withdraw`. If `withdraw` is nil, the effect waits for the next successful commit.
    struct Effect {
        let run: () -> Void
        let withdraw: ((APIError) -> Void)?
    }

    /// The counters since the start of the agent.
    struct Tally {
        var received: Int64 = 0
        var sent: Int64 = 0
        var taken = 0
        var expiredUntaken = 0
        var delivered = 0
        var refusedWakes = 0
        var attempts = 0
        var retries = 0
        var failures: [String: Int] = [:]
        var commits = 0
        var failedCommits = 0
    }

    let settings: AgentSettings
    let files: StateFiles
    let store: TransferStore
    let world: any AgentWorld
    let log: GatewayLog
    let post: @Sendable (AgentMessage) -> Void
    let emit: ([AgentOutput]) -> Void
    let startedAt: Int64

    var scheduler: TransferScheduler
    var random: WorldRandom
    var clock: AgentClock
    var now: Int64 { self.clock.now }
    var machine = MachineState()
    var tally = Tally()

    var nextSequence: Int64 = 1
    var running: [TransferID: Running] = [:]
    var nextAttempt = 0
    /// The names of the transfers' files in the state folder.
    var fileNames: [TransferID: String] = [:]
    /// The changed data of transfers that is not stored yet. `changedDetails` has the transfers whose changed data is
    /// not yet in `writes`.
    var unstored: [TransferID: TransferDetails] = [:]
    var changedDetails: Set<TransferID> = []
    /// The transfers whose finished files are being moved to their destinations.
    var moving: Set<TransferID> = []
    /// The commands to take files whose moves were interrupted when an earlier process ended. They wait until the move
    /// is completed or reverted.
    var postponed: [TransferID: [AgentMessage]] = [:]
    var resumableParts: [String: ResumablePart] = [:]
    var listeners: [StreamID: Int32] = [:]
    var outbox: [Int64: Outgoing] = [:]
    /// The questions to the gateway about force-quit apps, by device.
    var apps: [String: AppQuestion] = [:]
    /// The time at which `apps` must be examined next; nil while `apps` is empty.
    var nextQuestionCheck: Int64?
    /// True if a question has failed since the last time that all questions were answered.
    var questionsFail = false

    /// The writes for the next commit.
    var writes: [StoreWrite] = []
    /// The files that the next commit removes from the state folder.
    private var removals: [String] = []
    /// The time at which the store's log must be emptied, because it may contain secrets of ended transfers; nil if it
    /// contains none.
    private var nextTruncation: Int64? = 0
    var effects: [Effect] = []
    var outputs: [AgentOutput] = []
    /// The reason why commits fail; nil while they succeed.
    private(set) var storeFault: String?
    /// False if the next commit must store the clocks, even without other writes.
    var isClockStored = false
    private var nextProgress: Int64 = 0
    private var nextPurge: Int64 = 0

    /// The minimum interval between two progress events of a transfer, in milliseconds.
    private static let progressEvery: Int64 = 250
    private static let purgeEvery: Int64 = 600_000
    /// The time for which secrets may remain in the store's log after the end of their transfer, in milliseconds.
    private static let truncationDelay: Int64 = 2000
    /// The wait before a failed commit is repeated, in milliseconds.
    private static let storeRetry: Int64 = 1000
    private static let waitMax: Int64 = 60_000
    /// The number of writes up to which the array retains its capacity. Rare events, such as a step of the clock, cause
    /// more writes.
    private static let writesKept = 10_000

    package init(
        settings: AgentSettings,
        files: StateFiles,
        store: TransferStore,
        world: any AgentWorld,
        log: GatewayLog,
        post: @escaping @Sendable (AgentMessage) -> Void,
        emit: @escaping ([AgentOutput]) -> Void
    ) {
        self.settings = settings
        self.files = files
        self.store = store
        self.world = world
        self.startedAt = world.wall
        self.random = WorldRandom(world: world)
        self.clock = AgentClock(resuming: nil, boot: files.boot, world)
        self.log = log
        self.post = post
        self.emit = emit
        self.scheduler = TransferScheduler(limits: settings.limits, retry: settings.retry)
        self.scheduler.checksForceQuit = settings.gateway != nil
        _ = self.scheduler.conditionsChanged(.unread, now: self.now)
    }

    // MARK: Turns

    /// The maximum time that the thread may wait for the next message, in milliseconds.
    package var wait: Int64 {
        if self.storeFault != nil { return Self.storeRetry }
        var moment = min(self.nextPurge, self.scheduler.nextMoment ?? .max)
        for other in [self.nextTruncation, self.nextQuestionCheck, self.nextSending] {
            moment = min(moment, other ?? .max)
        }
        if !self.listeners.isEmpty, !self.running.isEmpty { moment = min(moment, self.nextProgress) }
        return max(0, min(Self.waitMax, self.clock.milliseconds(until: moment)))
    }

    /// Processes the messages and all work that is due.
    package func turn(_ messages: [AgentMessage]) {
        self.checkClocks()
        for message in messages { self.take(message) }
        for id in self.scheduler.timePassed(now: self.now) { self.deadlinePassed(id) }
        if self.now >= self.nextPurge {
            self.nextPurge = self.now + max(1000, min(Self.purgeEvery, self.settings.limits.untakenFor))
            self.purge()
        }
        self.flush()
        if self.storeFault == nil {
            self.askAboutApps()
            for id in self.scheduler.slotsFilled(now: self.now) { self.begin(id) }
            self.askAboutApps()
            self.sendOutbox()
            self.flush()
            self.truncateLog()
        }
        self.sendProgress()
        self.deliver()
    }

    private func truncateLog() {
        guard let moment = self.nextTruncation, self.now >= moment, self.storeFault == nil else { return }
        self.nextTruncation = self.store.truncateLog() ? nil : self.now + Self.waitMax
    }

    private func checkClocks() {
        let step = self.clock.step()
        guard step != 0 else { return }
        self.scheduler.adjustForWallClockChange(by: step, now: self.now)
        self.isClockStored = false
    }

    private func take(_ message: AgentMessage) {
        switch message {
        case .command(let stream, let command): self.take(command, from: stream)
        case .read(let stream, let announcement): self.listenerRead(stream, announcement: announcement)
        case .gone(let stream, let announcement): self.listenerLeft(stream, hasRead: announcement)
        case .attempt(let id, let number, let news):
            if self.running[id]?.number == number {
                self.attemptReported(id, news)
            } else if case .began(let part) = news, self.fileNames[id] != part.file,
                self.resumableParts[part.file] == nil
            {
                // The attempt was stopped before its `began` report arrived. Its file must be removed, because no
                // stored data refers to it.
                self.removeAfterCommit(part.file)
            }
        case .moved(let stream, let id, let fault):
            self.moved(id, fault, for: stream)
            for command in self.postponed.removeValue(forKey: id) ?? [] { self.take(command) }
        case .outbox(let sequence, let outcome): self.outboxReported(sequence, outcome)
        case .forceQuit(let device, let answer): self.forceQuitAnswered(answer, device: device)
        case .machine(let state):
            self.machine = state
            for id in self.scheduler.conditionsChanged(state.conditions, now: self.now) { self.hold(id) }
        }
    }

    /// Stores the changes. Then runs the effects that wait for the commit.
    func flush() {
        self.collect()
        self.commit()
    }

    /// Returns the error for callers while commits fail.
    func unstorable(_ fault: String) -> APIError {
        let message = "Nothing can be stored in \(self.settings.stateFolder) (\(fault)); free space, or see to it."
        return APIError(507, "NoSpace", message)
    }

    private func commit() {
        if !self.writes.isEmpty || !self.isClockStored {
            do throws(SQLiteError) {
                try self.store(self.writes + [.putClock(self.clock.record())])
                self.tally.commits += 1
                if self.storeFault != nil {
                    self.log.write(.transferStoreRecovered, ["state": self.settings.stateFolder])
                }
                self.storeFault = nil
            } catch {
                self.tally.failedCommits += 1
                self.storeFault = error.message
                self.log.write(.transferStoreFailed, ["state": self.settings.stateFolder, "cause": error.message])
                // The clocks count as not stored. The next turn therefore repeats the commit.
                self.isClockStored = false
                return self.refusePending(self.unstorable(error.message))
            }
            if self.nextTruncation == nil, self.writes.contains(where: \.deletesSecrets) {
                self.nextTruncation = self.now + Self.truncationDelay
            }
            self.writes.removeAll(keepingCapacity: self.writes.count <= Self.writesKept)
            self.isClockStored = true
        } else if self.storeFault != nil {
            return
        }
        self.unstored.removeAll(keepingCapacity: true)
        self.removeFiles()
        let effects = self.effects
        self.effects.removeAll(keepingCapacity: true)
        for effect in effects { effect.run() }
    }

    private func store(_ writes: [StoreWrite]) throws(SQLiteError) {
        do throws(SQLiteError) {
            try self.world.commit(writes)
        } catch {
            // If the disk is full, removing the files before the commit frees space for it. If the agent ends before
            // the commit, the next start downloads the files again.
            guard error.kind == .full, !self.removals.isEmpty else { throw error }
            self.removeFiles()
            try self.world.commit(writes)
        }
    }

    private func removeFiles() {
        for name in self.removals { self.files.remove(name) }
        self.removals.removeAll()
    }

    /// Refuses the requests whose changes cannot be stored. Reverts the changes from the newest to the oldest, because
    /// a change may depend on an earlier one.
    private func refusePending(_ fault: APIError) {
        let promises = self.effects.compactMap(\.withdraw)
        self.effects.removeAll { $0.withdraw != nil }
        for withdraw in promises.reversed() { withdraw(fault) }
    }

    /// Runs a function after the next commit.
    func afterCommit(_ run: @escaping () -> Void) {
        self.effects.append(Effect(run: run, withdraw: nil))
    }

    /// Answers a request after the next commit.
    ///
    /// - Parameters:
    ///   - stream: the request.
    ///   - withdraw: reverts the changes if they cannot be stored. The request is then refused.
    ///   - answer: answers the request.
    func answerAfterCommit(_ stream: StreamID, withdraw: @escaping () -> Void, _ answer: @escaping () -> Void) {
        self.effects.append(
            Effect(run: answer) { fault in
                withdraw()
                self.refuse(stream, fault)
            }
        )
    }

    /// Answers a query after the next commit, when all changes are durable. If the commit fails, refuses the query.
    func answerQuery(_ stream: StreamID, _ answer: @escaping () -> AgentAnswer) {
        self.effects.append(Effect(run: { self.answer(stream, answer()) }, withdraw: { self.refuse(stream, $0) }))
    }

    /// Answers a request after the next commit. If the commit fails, refuses the request. Its changes remain, and the
    /// next commit stores them.
    func answerAfterCommit(_ stream: StreamID, _ answer: @escaping () -> Void) {
        self.effects.append(
            Effect(run: answer) { fault in
                let message = fault.message + " What was asked for is done as soon as it can be stored."
                self.refuse(stream, APIError(fault.status, fault.reason, message))
            }
        )
    }

    /// Appends the changes of `scheduler` since the last call to `writes`.
    private func collect() {
        let changes = self.scheduler.takeChanges()
        for id in changes.transfers.subtracting(self.changedDetails) {
            // A removal has its own write.
            if let transfer = self.scheduler.transfer(id) { self.writes.append(.updateTransfer(transfer, nil)) }
        }
        for id in self.changedDetails {
            guard let transfer = self.scheduler.transfer(id), let details = self.unstored[id] else { continue }
            self.writes.append(.updateTransfer(transfer, details))
        }
        self.changedDetails.removeAll(keepingCapacity: true)
        for number in changes.sessions { self.store(session: number) }
    }

    /// Passes the output for callers to the event loop, once per turn.
    private func deliver() {
        guard !self.outputs.isEmpty else { return }
        self.emit(self.outputs)
        self.outputs.removeAll(keepingCapacity: true)
    }

    private func sendProgress() {
        guard !self.listeners.isEmpty, self.now >= self.nextProgress else { return }
        self.nextProgress = self.now + Self.progressEvery
        let followed = Set(self.listeners.values)
        for (id, entry) in self.running where followed.contains(entry.session) {
            let bytes = entry.attempt.progressBytes
            guard bytes != entry.reportedBytes else { continue }
            self.running[id]?.reportedBytes = bytes
            self.sendEvent(toSession: entry.session, AgentEvents.progress(id, bytes, entry.attempt.progressTotal))
        }
    }

    // MARK: Records of transfers

    /// Returns a transfer with its specification and its further data.
    func record(_ id: TransferID) -> (transfer: Transfer, spec: TransferSpec, details: TransferDetails)? {
        guard let transfer = self.scheduler.transfer(id), let found = try? self.store.record(transfer.sequence) else {
            return nil
        }
        return (transfer, found.spec, self.unstored[id] ?? found.details)
    }

    func details(_ id: TransferID) -> TransferDetails {
        self.unstored[id] ?? self.record(id)?.details ?? TransferDetails()
    }

    /// Changes the further data of a transfer. The next commit stores it.
    func change(_ id: TransferID, _ change: (inout TransferDetails) -> Void) {
        var details = self.details(id)
        change(&details)
        self.unstored[id] = details
        self.changedDetails.insert(id)
        self.fileNames[id] = details.part?.file
    }

    /// Removes a file after the next commit. After that commit, no stored data refers to the file.
    func removeAfterCommit(_ name: String) { self.removals.append(name) }

    /// Stops all attempts and stores their progress. No attempt runs after this.
    package func stop() {
        self.checkClocks()
        for (id, entry) in self.running {
            entry.attempt.stop()
            self.scheduler.attemptStopped(id, now: self.now)
        }
        self.running.removeAll()
        self.flush()
        for stream in self.listeners.keys { self.outputs.append(.finish(stream)) }
        self.deliver()
    }

    func answer(_ stream: StreamID, _ answer: AgentAnswer) {
        self.outputs.append(.answer(stream, answer))
    }

    func refuse(_ stream: StreamID, _ fault: APIError) {
        self.outputs.append(.answer(stream, AgentAnswer(fault)))
    }
}
