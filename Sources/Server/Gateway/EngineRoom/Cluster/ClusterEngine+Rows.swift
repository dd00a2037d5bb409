import Engine
import Platform
import Policy
import Wire

/// The work of transactions on their rows. Rows are in memory only during one call.
///
/// If a transaction does not become durable, its effects on streams and counters are undone.
extension ClusterEngine {
    /// The result of performing a transaction.
    enum Performed {
        /// Nothing stored has changed, so the effects can be released immediately.
        case unchanged
        /// The transaction must commit. It may have changed nothing and be answered from its rows.
        case changed(ClusterWrites)
        /// Topics must be created or read again for some of the devices. No work was performed.
        case needsTopics(NeededTopics)
    }

    /// The unknown topics that a transaction's commands or rows need.
    struct NeededTopics {
        /// The names of the topics to create. Empty if topics created by other gateways must be read.
        var names: [String] = []
        /// The devices that need these topics.
        var devices: Set<DeviceToken> = []
    }

    // MARK: Performing

    /// Performs all work of a transaction on the loaded rows. Refuses the commands of devices with damaged rows.
    func performed(_ transaction: ClusterTransaction, _ loaded: LoadedDevices) -> Performed {
        let workspace = self.workspace
        let immediate = self.stage.group
        // Earlier events do not belong to the transaction.
        self.engine.takeWatched(into: &immediate.watched)
        defer {
            // Remove the devices first, and then the dispatcher's references to them.
            self.engine.unloadAll()
            self.dispatcher.forgetDevices()
            self.stage.group = immediate
        }
        let left = self.takeRows(loaded.devices)
        if !left.unknown.isEmpty, transaction.topicReads < ClusterTransaction.triesMax {
            // If another gateway has just created a topic, read the topics and begin the transaction again.
            return .needsTopics(NeededTopics(devices: left.unknown))
        }
        for device in left.unknown { self.noteUnreadable(device, .unknownTopic) }
        let unreadable = left.unknown.union(left.damaged)
        if !unreadable.isEmpty { self.refuseUnreadable(unreadable, transaction) }
        self.stage.group = transaction.group
        self.stage.offset = workspace.offset
        transaction.step = ClusterTransaction.Step()
        let needed = self.newTopics(transaction.commands)
        guard needed.names.isEmpty else { return .needsTopics(needed) }
        transaction.step.isPerformed = true
        transaction.step.rowCount = self.engine.takenCount
        transaction.step.hasMore = loaded.hasMore || !unreadable.isEmpty
        let (rejections, times) = (self.records.rejections, self.engine.times)
        self.engine.beginSharedStep(now: loaded.now, deviceCount: self.members.deviceCount)
        self.begin(transaction, loaded)
        self.perform(transaction.commands, workspace)
        transaction.step.refused = self.records.rejections.since(rejections)
        transaction.step.times = (times, self.engine.times)
        return self.take(transaction)
    }

    /// The devices whose rows cannot be loaded into memory: those of unknown topics, and those of damaged rows.
    typealias LeftOut = (unknown: Set<DeviceToken>, damaged: Set<DeviceToken>)

    /// Loads rows into memory, and returns the devices of the rows that cannot be loaded.
    func takeRows(_ rows: [SharedDevice]) -> LeftOut {
        var left: LeftOut = ([], [])
        for row in rows {
            do throws(StoreError) { _ = try self.engine.take(row) } catch {
                guard error != .unknownTopic else {
                    left.unknown.insert(row.token)
                    continue
                }
                left.damaged.insert(row.token)
                self.noteUnreadable(row.token, error)
            }
        }
        return left
    }

    /// Records that the row of a device cannot be read, and reports a device that was not reported recently.
    private func noteUnreadable(_ device: DeviceToken, _ error: StoreError) {
        guard self.remote.unreadable.count < Self.unreadableMax || self.remote.unreadable[device] != nil else { return }
        let isNew = self.remote.unreadable.updateValue(self.clock.boot, forKey: device) == nil
        if isNew { self.onNews(.unreadable(device, error)) }
    }

    /// Refuses the commands of devices whose rows cannot be read. The transaction continues without them.
    private func refuseUnreadable(_ devices: Set<DeviceToken>, _ transaction: ClusterTransaction) {
        // A wake that no loaded row has may be one of a damaged row.
        let wakes = (transaction.locked?.wakes ?? []).filter { self.engine.executionWindow(ofWake: $0) == nil }
        let rows = Set(devices.map { RequestedRow.device($0) } + wakes.map { RequestedRow.wake($0) })
        let commands = transaction.leaveOut(rows) { self.queue.row(of: $0) }
        self.refuse(commands, .unreadableDevice)
        self.queue.ended(commands)
    }

    /// Sets the current time, and performs the work of the transaction's purpose that precedes its commands.
    private func begin(_ transaction: ClusterTransaction, _ loaded: LoadedDevices) {
        switch transaction.purpose {
        case .commands, .due, .claim, .retirement, .refusals, .sweep(.judge), .counts, .devices, .list: break
        case .conditions(let tokens):
            for token in tokens {
                if let device = self.engine.find(token) { self.dispatcher.conditionsChangedElsewhere(device) }
            }
            // A device may be owed conditions before its registration is committed, or may not exist at all.
            if !self.dispatcher.sendPendingConditions() { self.owedConditionsAt = self.clock.boot + 1000 }
            return
        case .sweep(.read):
            transaction.step.found = loaded.devices.map(\.token)
            return
        case .heldWakes(let wakes): return self.look(at: wakes, transaction)
        }
        if !loaded.heldWakes.isEmpty {
            // The wakes of dead gateways are lost, even past their deadlines.
            self.dispatcher.endAsLost(loaded.heldWakes)
            transaction.step.hasLost = true
        }
        _ = self.dispatcher.advance(to: loaded.now, devicesMax: self.engine.takenCount + 1)
    }

    /// Warns the workers of wakes whose deadlines are near, and records the wakes that have ended. Schedules the next
    /// read of each other wake.
    private func look(at wakes: [WakeID], _ transaction: ClusterTransaction) {
        let now = self.engine.now
        for wake in wakes {
            let end = self.held.end(of: wake)
            var next = max(end, now + HeldWakes.gracePeriod)
            if self.engine.launchedWake(wake) == nil {
                guard end > now else {
                    transaction.step.endedSince.append((wake, nil))
                    continue
                }
                next = end
            } else if let warning = self.engine.warning(ofWake: wake), warning.deadline > now {
                if warning.at <= now { self.dispatcher.warn(wake, deadline: warning.deadline) }
                // Another gateway may extend the wake, so read its row again at the deadline known now.
                next = warning.at > now ? warning.at : warning.deadline
            }
            transaction.step.looks.append((wake, next))
        }
    }

    private func perform(_ commands: [QueuedCommand], _ workspace: Workspace) {
        var lost: [WakeID] = []
        for command in commands {
            if case .lose(let wake) = command.work {
                lost.append(wake)
                continue
            }
            // Record the wakes of an ended stream as lost before launching anything.
            if !lost.isEmpty { self.dispatcher.lose(lost) }
            lost = []
            self.perform(command, workspace)
        }
        if !lost.isEmpty { self.dispatcher.lose(lost) }
    }

    private func perform(_ command: QueuedCommand, _ workspace: Workspace) {
        switch command.work {
        case .push(let push):
            push.read { self.stage.answer(self.pushes.take($0, from: push.stream, workspace)) }
            self.stage.group.note(leftAt: command.leftAt)
        case .request(let request): self.requests.perform(request, workspace)
        case .lose(let wake): self.dispatcher.lose([wake])
        case .loseOn(let stream, let wake, let takingBackAttempt):
            self.dispatcher.lose(wake, on: stream, takingBackAttempt: takingBackAttempt)
        }
    }

    /// Collects the changes of the step and their effects.
    private func take(_ transaction: ClusterTransaction) -> Performed {
        var writes = ClusterWrites()
        writes.devices = self.engine.takeSharedChanges()
        writes.counts = self.engine.takeSharedCounts()
        self.engine.takeEvents(into: &writes.events)
        if !transaction.isRead {
            transaction.step.subscriptions = self.engine.takeSubscriptions()
            writes.events += transaction.step.subscriptions
        }
        self.engine.takeWatched(into: &transaction.group.watched)
        transaction.step.streams = self.dispatcher.takeStreamChanges()
        for wake in transaction.step.streams.moved {
            if let warning = self.engine.warning(ofWake: wake) { transaction.step.looks.append((wake, warning.at)) }
        }
        if case .refusals = transaction.purpose {
            writes.rejections = self.records.takeRejections()
            transaction.step.rejectionsWritten = writes.rejections.map(\.topic)
            transaction.step.rejections = self.records.rejections
        }
        for index in writes.devices.indices where writes.devices[index].hasNews {
            self.note(writes.devices[index], &transaction.step)
        }
        self.noteConditions(writes, &transaction.step)
        let isUnchanged =
            writes.devices.isEmpty && writes.counts.isEmpty && writes.events.isEmpty && writes.rejections.isEmpty
        return isUnchanged && !transaction.needsCommit ? .unchanged : .changed(writes)
    }

    private func note(_ change: SharedDeviceChange, _ step: inout ClusterTransaction.Step) {
        for (wake, deadline) in change.launched where !change.ended.contains(wake) {
            step.launched.append((wake, change.device.token, deadline))
            if let warning = self.engine.warning(ofWake: wake) { step.looks.append((wake, warning.at)) }
        }
        step.ended += change.ended
        if !change.ended.isEmpty { step.freed.insert(change.topic) }
        if let ready = change.ready, !ready.isEmpty { step.ready.insert(change.topic) }
        if case .at(let moment?) = change.due { step.due.append(moment) }
    }

    /// Records the devices whose conditions have changed, according to the events of the step.
    private func noteConditions(_ writes: ClusterWrites, _ step: inout ClusterTransaction.Step) {
        var changed: Set<UInt64> = []
        for event in writes.events {
            if let report = event.changed, report != ConditionsReport() { changed.insert(event.device) }
        }
        guard !changed.isEmpty else { return }
        for row in writes.devices
        where changed.contains(HistoryEvent.device(of: row.device.token, self.engine.historyKey)) {
            guard let device = self.engine.find(row.device.token), self.engine.identity(device).isRegistered else {
                continue
            }
            step.conditions.append((row.device.token, row.topic))
        }
    }

    // MARK: Topics

    /// Returns the topics that the commands create, and the devices in them. Topics above the limit are not created;
    /// their devices are returned, too, so that the commands are refused because of the limit.
    private func newTopics(_ commands: [QueuedCommand]) -> NeededTopics {
        var names: Set<String> = []
        var devices: Set<DeviceToken> = []
        func note(_ topic: ByteView, _ device: DeviceToken) {
            guard self.engine.findTopic(topic) == nil else { return }
            names.insert(topic.string)
            devices.insert(device)
        }
        // The devices that earlier commands create, and the registered devices that earlier commands remove.
        var (added, removed): (Set<DeviceToken>, Set<DeviceToken>) = ([], [])
        for command in commands {
            switch command.work {
            case .push(let queued):
                queued.read { push in
                    guard !push.isDryRun, self.registersByPush, self.engine.find(push.token) == nil,
                        added.insert(push.token).inserted
                    else { return }
                    note(push.topic, push.token)
                }
            case .request(let request):
                guard case .row(.device(let token)) = request.work.rows else { continue }
                if let topic = request.work.newTopic,
                    topic.name.withByteView({ request.caller.reaches($0.string) }),
                    self.mayBeNew(token, topic, &added, wasRemoved: removed.contains(token))
                {
                    topic.name.withByteView { note($0, token) }
                }
                if request.work.removesDevice { removed.insert(token) }
            case .lose, .loseOn: break
            }
        }
        guard !names.isEmpty else { return NeededTopics() }
        let room = max(0, self.configuration.topicsMax - self.engine.topicCount)
        return NeededTopics(names: Array(names.sorted().prefix(room)), devices: devices)
    }

    /// True if a push registers an unknown device.
    private var registersByPush: Bool { self.configuration.openRegistration && !self.room.isDraining }

    /// Returns true if a command may register the device for a new topic.
    ///
    /// - `wasRemoved`: true if an earlier command removes the device.
    private func mayBeNew(
        _ token: DeviceToken,
        _ topic: NewTopic,
        _ added: inout Set<DeviceToken>,
        wasRemoved: Bool
    ) -> Bool {
        let device = self.engine.find(token)
        if topic.isOfPush {
            return self.registersByPush && device == nil && added.insert(token).inserted
        }
        if wasRemoved { return true }
        guard added.insert(token).inserted else { return false }
        return device.map { !self.engine.identity($0).isRegistered } ?? true
    }

    // MARK: Ends

    /// Undoes the effects of a transaction.
    ///
    /// - Returns: the wakes that must be recorded as lost. The streams that held them have ended in the meantime.
    func undo(_ transaction: ClusterTransaction) -> [WakeID] {
        let step = transaction.step
        transaction.step = ClusterTransaction.Step()
        transaction.group.discard()
        guard step.isPerformed else { return [] }
        self.engine.keep(step.subscriptions)
        self.records.rejections.subtract(step.refused)
        self.records.rejections.wereNotStored(step.rejectionsWritten)
        if let times = step.times { self.engine.times.takeBack(from: times.before, to: times.after) }
        return self.dispatcher.undo(step.streams)
    }

    /// Refuses the caller of each command. The losses of wakes are retried in the next second.
    func refuse(_ commands: [QueuedCommand], _ error: StoreError) {
        let workspace = self.workspace
        for command in commands {
            switch command.work {
            case .push(let push):
                push.read { self.stage.answer(self.pushes.refuseUnstored($0, from: push.stream, workspace)) }
            case .request(let request): self.refuse([request], error)
            case .lose, .loseOn: if self.isAttached { self.losses.append((command.work, self.queue.row(of: command))) }
            }
        }
    }
}
