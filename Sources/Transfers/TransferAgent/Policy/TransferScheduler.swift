import Wire

/// All sessions and transfers of an agent. It decides which transfers start, wait or are retried, and which devices are
/// woken.
///
/// The caller must store the changes of `takeChanges` before reporting them.
package struct TransferScheduler {
    struct SessionEntry {
        let name: String
        var session: TransferSession
        var counts = TransferCounts()
        var schedule: SessionSchedule
        /// The number of ended transfers whose end has not been announced.
        var unannouncedCount: Int
        /// The number of ended transfers whose end was announced to followers, which have not read it yet.
        var unread = 0
        /// The number of times that the end of all transfers was announced to followers.
        var announcementCount = 0
        /// The number of followers of the session's events.
        var listeners = 0

        init(_ name: String, _ session: TransferSession, unannouncedCount: Int = 0) {
            self.name = name
            self.session = session
            self.schedule = SessionSchedule(connectionsPerHost: session.connectionsPerHost)
            self.unannouncedCount = unannouncedCount
        }
    }

    package var limits: TransferLimits
    package var retry: RetryPolicy
    package private(set) var conditions = TransferConditions()
    private var sessions: [Int32: SessionEntry] = [:]
    private var numbers: [String: Int32] = [:]
    private var nextNumber: Int32 = 1
    private var transfers = TransferTable()
    /// The transfers by the time of their next check. An entry may be obsolete.
    private var timed = MomentQueue<TransferID>()
    /// True if the gateway is asked whether apps were force-quit. If false, no transfer waits for its answer.
    package var checksForceQuit = false
    /// True if a transfer waits for the gateway's first answer about its device.
    package private(set) var awaitsApp = false
    /// The devices on which the app was force-quit, according to the gateway's last answers.
    private var forceQuitDevices: Set<String> = []
    /// The devices with a current question to the gateway that was answered or has timed out.
    private var knownDevices: Set<String> = []
    /// The sessions in the order of their turns.
    private var turns: [Int32] = []
    package private(set) var running: Set<TransferID> = []
    private var changed: Set<TransferID> = []
    private var changedSessions: Set<Int32> = []

    package init(limits: TransferLimits = TransferLimits(), retry: RetryPolicy = RetryPolicy()) {
        self.limits = limits
        self.retry = retry
    }

    // MARK: Queries

    package var sessionNames: [String] { self.numbers.keys.sorted() }
    package var transferCount: Int { self.transfers.count }

    package var counts: TransferCounts {
        self.sessions.values.reduce(into: TransferCounts()) { $0 += $1.counts }
    }

    package func transfer(_ id: TransferID) -> Transfer? { self.transfers[id] }

    package func number(of name: String) -> Int32? { self.numbers[name] }

    package func name(of number: Int32) -> String? { self.sessions[number]?.name }

    package func session(_ number: Int32) -> (session: TransferSession, counts: TransferCounts, unannouncedCount: Int)?
    {
        self.sessions[number].map { ($0.session, $0.counts, $0.unannouncedCount) }
    }

    /// Returns the number of ended transfers whose end may not have reached a follower or the gateway. The number is
    /// stored, because a restarted agent must announce these ends again.
    package func unconfirmedCount(of number: Int32) -> Int {
        self.sessions[number].map { $0.unannouncedCount + $0.unread } ?? 0
    }

    /// Returns the number of times that the end of all transfers of a session was announced to followers.
    package func announcementCount(of number: Int32) -> Int { self.sessions[number]?.announcementCount ?? 0 }

    package func transfers(where isWanted: (Transfer) -> Bool) -> [Transfer] { self.transfers.values.filter(isWanted) }

    /// Returns the reason why a transfer waits; nil if it does not wait.
    package func hold(of transfer: Transfer, now: Int64) -> TransferHold? {
        guard transfer.state == .waiting, let entry = self.sessions[transfer.session] else { return nil }
        if transfer.notBefore > now {
            guard transfer.isBackingOff else { return .earliestBegin }
            return transfer.awaitsNetwork && self.conditions.hasNetwork == false ? .network : .backoff
        }
        return self.hold(of: entry.session) ?? .slots
    }

    /// Returns the reason why new attempts of a session wait; nil if they may begin.
    package func hold(of session: TransferSession) -> TransferHold? {
        if let hold = self.conditions.hold(of: session) { return hold }
        guard let device = self.decidingDevice(of: session) else { return nil }
        return self.forceQuitDevices.contains(device)
            ? .forceQuit : self.knownDevices.contains(device) ? nil : .appState
    }

    /// Returns true if running attempts of a session must stop. They do not stop while an answer of the gateway is
    /// missing.
    private func stops(_ session: TransferSession) -> Bool {
        let hold = self.hold(of: session)
        return hold != nil && hold != .appState
    }

    /// Returns the device on which a force-quit holds the session's transfers; nil if a force-quit does not matter.
    private func decidingDevice(of session: TransferSession) -> String? {
        self.checksForceQuit && !session.continuesAfterForceQuit ? session.device : nil
    }

    package func isForceQuit(_ device: String) -> Bool { self.forceQuitDevices.contains(device) }

    /// Returns the devices on which only a force-quit could now prevent transfers. Forgets the answers about other
    /// devices.
    package mutating func devicesToAsk() -> Set<String> {
        self.awaitsApp = false
        var devices: Set<String> = []
        for entry in self.sessions.values {
            let isReady = entry.schedule.hasReady { self.transfers[$0]?.state == .waiting }
            guard isReady || entry.counts[.running] > 0, self.conditions.hold(of: entry.session) == nil,
                let device = self.decidingDevice(of: entry.session)
            else { continue }
            devices.insert(device)
        }
        self.knownDevices.formIntersection(devices)
        self.forceQuitDevices.formIntersection(self.sessions.values.compactMap(\.session.device))
        return devices
    }

    /// The time of the next call of `timePassed`; nil if none is needed.
    package var nextMoment: Int64? { self.timed.first?.moment }

    /// Returns the changes since the last call. The caller must store them.
    package mutating func takeChanges() -> (transfers: Set<TransferID>, sessions: Set<Int32>) {
        defer {
            self.changed.removeAll(keepingCapacity: true)
            self.changedSessions.removeAll(keepingCapacity: true)
        }
        return (self.changed, self.changedSessions)
    }
}

// MARK: - Sessions

extension TransferScheduler {
    package enum SessionSetAction: Hashable, Sendable {
        case made(Int32)
        /// The session's settings have changed. The running transfers in `stop` must stop and wait.
        case changed(Int32, stop: [TransferID])
        case tooMany
    }

    package mutating func sessionSet(_ name: String, _ session: TransferSession) -> SessionSetAction {
        if let number = self.numbers[name] {
            self.sessions[number]?.session = session
            self.sessions[number]?.schedule.connectionsPerHost = session.connectionsPerHost
            self.changedSessions.insert(number)
            return .changed(number, stop: self.stops(session) ? self.running(in: number) : [])
        }
        guard self.sessions.count < self.limits.sessionsMax else { return .tooMany }
        let number = self.nextNumber
        self.nextNumber += 1
        self.sessions[number] = SessionEntry(name, session)
        self.numbers[name] = number
        self.turns.append(number)
        self.changedSessions.insert(number)
        return .made(number)
    }

    package mutating func restoreSession(
        _ number: Int32,
        _ name: String,
        _ session: TransferSession,
        unannouncedCount: Int,
        isForceQuit: Bool = false
    ) {
        self.sessions[number] = SessionEntry(name, session, unannouncedCount: unannouncedCount)
        if isForceQuit, let device = session.device { self.forceQuitDevices.insert(device) }
        self.numbers[name] = number
        self.turns.append(number)
        self.nextNumber = max(self.nextNumber, number + 1)
    }

    /// Removes a session and all of its transfers.
    package mutating func sessionRemoved(_ number: Int32) {
        for transfer in self.transfers(where: { $0.session == number }) {
            self.transfers[transfer.id] = nil
            self.changed.remove(transfer.id)
            self.running.remove(transfer.id)
        }
        if let entry = self.sessions.removeValue(forKey: number) { self.numbers[entry.name] = nil }
        self.turns.removeAll { $0 == number }
        self.changedSessions.remove(number)
    }

    package mutating func listenerCame(_ number: Int32) {
        self.sessions[number]?.listeners += 1
    }

    /// Records that a follower has read the announcement with this number. Announcements are counted from 1.
    package mutating func listenerRead(_ number: Int32, announcement: Int) {
        guard let entry = self.sessions[number], entry.announcementCount == announcement, entry.unread > 0 else {
            return
        }
        self.sessions[number]?.unread = 0
        self.changedSessions.insert(number)
    }

    /// Records that a follower has disconnected. `announcement` is the last announcement that it has read; nil if it
    /// read none.
    ///
    /// - Returns: the action to take if the last follower has left and has not read the announcement.
    package mutating func listenerLeft(_ number: Int32, hasRead announcement: Int?) -> SessionEndedAction {
        if let announcement { self.listenerRead(number, announcement: announcement) }
        self.sessions[number]?.listeners -= 1
        guard let entry = self.sessions[number], entry.listeners == 0, entry.unread > 0 else { return .ignore }
        self.sessions[number]?.unannouncedCount += entry.unread
        self.sessions[number]?.unread = 0
        self.changedSessions.insert(number)
        return self.announceEnd(of: number)
    }

    package enum SessionEndedAction: Hashable, Sendable {
        /// Announce the end of all transfers to the followers.
        case announce
        /// Wake the device for `finished` transfers.
        case wake(device: String, finished: Int)
        /// Do nothing: the session still has running or waiting transfers, nothing is left to announce, or the session
        /// has no followers and does not wake a device.
        case ignore
    }

    /// Returns the action after the end of a transfer. Only the end of a session's last transfer causes an action.
    package mutating func announceEnd(of number: Int32) -> SessionEndedAction {
        guard let entry = self.sessions[number], entry.counts.live == 0 else { return .ignore }
        if entry.listeners > 0 {
            // Followers wait for the end of all transfers, so they are informed even if the last transfer was
            // cancelled.
            self.sessions[number]?.unread += entry.unannouncedCount
            self.sessions[number]?.announcementCount += 1
        } else if entry.unannouncedCount == 0 {
            return .ignore
        }
        self.sessions[number]?.unannouncedCount = 0
        self.changedSessions.insert(number)
        if entry.listeners > 0 { return .announce }
        guard entry.session.sendsLaunchEvents, let device = entry.session.device else { return .ignore }
        return .wake(device: device, finished: min(entry.unannouncedCount, 100_000))
    }

    private func running(in number: Int32) -> [TransferID] {
        self.running.filter { self.transfers[$0]?.session == number }
    }
}

// MARK: - Transfers

extension TransferScheduler {
    /// Adds a submitted transfer, which the caller must store.
    ///
    /// - Returns: false if there are too many transfers.
    package mutating func transferSubmitted(_ transfer: Transfer, now: Int64) -> Bool {
        guard self.transfers.count < self.limits.transfersMax else { return false }
        self.restoreTransfer(transfer, now: now)
        return true
    }

    /// Reverts a submission that cannot be stored.
    package mutating func submissionWithdrawn(_ id: TransferID) {
        guard let transfer = self.transfers[id], transfer.state == .waiting else { return }
        self.transfers[id] = nil
        self.changed.remove(id)
        self.sessions[transfer.session]?.counts[.waiting] -= 1
    }

    /// Adds a transfer without a change to store.
    package mutating func restoreTransfer(_ transfer: Transfer, now: Int64) {
        self.transfers[transfer.id] = transfer
        self.sessions[transfer.session]?.counts[transfer.state] += 1
        guard transfer.state == .waiting else { return }
        self.timed.insert(transfer.id, at: transfer.deadline)
        self.wait(transfer, now: now)
    }

    /// Adds a waiting transfer to the queue of its session. If it may not start yet, adds it to the timed transfers
    /// instead.
    private mutating func wait(_ transfer: Transfer, now: Int64) {
        if transfer.notBefore > now {
            self.timed.insert(transfer.id, at: transfer.notBefore)
        } else {
            self.sessions[transfer.session]?.schedule.ready(transfer.id, host: transfer.host)
        }
    }

    /// Applies an event to a transfer and updates the counts.
    private mutating func step<Action>(_ id: TransferID, _ event: (inout Transfer) -> Action) -> Action? {
        guard var transfer = self.transfers[id] else { return nil }
        let before = transfer
        let action = event(&transfer)
        guard transfer != before else { return action }
        self.transfers[id] = transfer
        if transfer.storedState != before.storedState { self.changed.insert(id) }
        guard transfer.state != before.state else { return action }
        self.sessions[transfer.session]?.counts[before.state] -= 1
        self.sessions[transfer.session]?.counts[transfer.state] += 1
        if before.state == .running {
            self.running.remove(id)
            self.sessions[transfer.session]?.schedule.ended(host: transfer.host)
        }
        if transfer.state == .running { self.running.insert(id) }
        if transfer.state == .finished || transfer.state == .failed {
            self.sessions[transfer.session]?.unannouncedCount += 1
            self.changedSessions.insert(transfer.session)
        }
        return action
    }

    /// Returns the transfers that must start now. They count as running after this call.
    package mutating func slotsFilled(now: Int64) -> [TransferID] {
        var begun: [TransferID] = []
        var idle = 0
        while self.running.count < self.limits.runningMax, idle < self.turns.count {
            let number = self.turns.removeFirst()
            self.turns.append(number)
            // The entry is removed from the dictionary while it changes, because its arrays would otherwise be copied.
            guard var entry = self.sessions.removeValue(forKey: number) else { continue }
            let hold = entry.schedule.hasOpenLane ? self.hold(of: entry.session) : .slots
            if let hold {
                if hold == .appState || hold == .forceQuit, let device = entry.session.device {
                    self.awaitsApp = self.awaitsApp || !self.knownDevices.contains(device)
                }
                self.sessions[number] = entry
                idle += 1
                continue
            }
            let next = entry.schedule.next { id in
                self.transfers[id].map { $0.state == .waiting && $0.notBefore <= now } ?? false
            }
            self.sessions[number] = entry
            guard let next else {
                idle += 1
                continue
            }
            idle = 0
            if self.step(next, { $0.attemptStarted() }) == true { begun.append(next) }
        }
        return begun
    }

    /// Processes the transfers whose time has come. Returns those that have failed at their deadlines.
    package mutating func timePassed(now: Int64) -> [TransferID] {
        var failed: [TransferID] = []
        while let entry = self.timed.popDue(now) {
            guard let transfer = self.transfers[entry.value], !transfer.state.hasEnded else { continue }
            if now >= transfer.deadline, entry.moment == transfer.deadline {
                if self.step(entry.value, { $0.deadlinePassed(now: now) }) == true { failed.append(entry.value) }
            } else if transfer.state == .waiting, transfer.notBefore == entry.moment {
                self.wait(transfer, now: now)
            }
        }
        return failed
    }

    /// Removes the entries of ended transfers. They would otherwise remain until their time comes.
    package mutating func compactMoments() {
        guard self.timed.count > 2 * self.transfers.count + 1024 else { return }
        let transfers = self.transfers
        self.timed.removeAll { entry in
            guard let transfer = transfers[entry.value], !transfer.state.hasEnded else { return true }
            return entry.moment != transfer.deadline && entry.moment != transfer.notBefore
        }
    }

    /// Applies new conditions of the machine.
    ///
    /// - Returns: the running transfers that must stop and wait.
    package mutating func conditionsChanged(_ conditions: TransferConditions, now: Int64) -> [TransferID] {
        let hasNetworkAgain = self.conditions.hasNetwork == false && conditions.hasNetwork != false
        self.conditions = conditions
        if hasNetworkAgain {
            for id in self.transfers(where: \.awaitsNetwork).map(\.id)
            where self.step(id, { $0.networkCame() }) == true {
                if let transfer = self.transfers[id] { self.wait(transfer, now: now) }
            }
        }
        return self.runningAndHeld
    }

    /// Applies the gateway's answer to the question whether the app was force-quit on a device. `isForceQuit` is nil if
    /// no answer arrived in time; the last answer then remains valid.
    ///
    /// - Returns: the running transfers that must stop and wait.
    package mutating func forceQuitReported(_ isForceQuit: Bool?, device: String) -> [TransferID] {
        self.knownDevices.insert(device)
        guard let isForceQuit, isForceQuit != self.forceQuitDevices.contains(device) else { return [] }
        if isForceQuit { self.forceQuitDevices.insert(device) } else { self.forceQuitDevices.remove(device) }
        for (number, entry) in self.sessions where entry.session.device == device {
            self.changedSessions.insert(number)
        }
        return isForceQuit ? self.runningAndHeld : []
    }

    private var runningAndHeld: [TransferID] {
        self.running.filter { id in
            guard let transfer = self.transfers[id], let entry = self.sessions[transfer.session] else { return false }
            return self.stops(entry.session)
        }
    }

    /// Handles a step of the wall clock by `milliseconds`.
    package mutating func adjustForWallClockChange(by milliseconds: Int64, now: Int64) {
        for id in self.transfers(where: { $0.state == .waiting && $0.notBefore > now }).map(\.id) {
            guard self.step(id, { $0.adjustForWallClockChange(by: milliseconds, now: now) }) == true,
                let transfer = self.transfers[id]
            else { continue }
            self.timed.insert(id, at: transfer.deadline)
            self.wait(transfer, now: now)
        }
    }

    package mutating func progressed(_ id: TransferID, bytes: Int64, total: Int64, status: Int32?) {
        // Progress is not stored on its own, but with the next attempt or the end of the transfer.
        guard var transfer = self.transfers[id] else { return }
        transfer.progressed(bytes: bytes, total: total, status: status)
        self.transfers[id] = transfer
    }

    /// - `isLocal`: true if the server can be reached without a network.
    package mutating func attemptFailed(
        _ id: TransferID,
        _ fault: TransferFault,
        isLocal: Bool,
        hasProgressed: Bool,
        repeats: Int = 1,
        now: Int64,
        using generator: inout some RandomNumberGenerator
    ) -> Transfer.AttemptFailedAction {
        let policy = self.retry
        let isOffline = self.conditions.hasNetwork == false && !isLocal
        let action = self.step(id) { transfer in
            transfer.attemptFailed(
                fault,
                hasProgressed: hasProgressed,
                repeats: repeats,
                isOffline: isOffline,
                policy: policy,
                now: now,
                using: &generator
            )
        }
        if case .retry? = action, let transfer = self.transfers[id] { self.wait(transfer, now: now) }
        return action ?? .ignore
    }

    /// Handles that the agent has stopped an attempt. The transfer then waits.
    package mutating func attemptStopped(_ id: TransferID, now: Int64) {
        guard self.step(id, { $0.attemptStopped() }) == true, let transfer = self.transfers[id] else { return }
        self.wait(transfer, now: now)
    }

    package mutating func attemptSucceeded(_ id: TransferID, bytes: Int64, status: Int32, now: Int64) {
        _ = self.step(id) { $0.attemptSucceeded(bytes: bytes, status: status, now: now) }
    }

    /// - Returns: true if the transfer is cancelled, and an attempt must be stopped; false if it had already ended.
    package mutating func cancelled(_ id: TransferID, now: Int64) -> Bool {
        self.step(id) { $0.cancelled(now: now) } ?? false
    }

    /// - Returns: false unless the transfer is a finished download whose file was not moved before.
    package mutating func markTaken(_ id: TransferID) -> Bool {
        self.step(id) { $0.markTaken() } ?? false
    }

    /// Removes an ended transfer.
    package mutating func forgotten(_ id: TransferID) {
        guard let transfer = self.transfers[id], transfer.state.hasEnded else { return }
        self.transfers[id] = nil
        self.changed.remove(id)
        self.sessions[transfer.session]?.counts[transfer.state] -= 1
    }
}
