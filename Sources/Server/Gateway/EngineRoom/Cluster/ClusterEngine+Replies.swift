import Engine
import Platform
import Policy
import Wire

/// Replies from the store.
extension ClusterEngine {
    /// - Returns: true if there were any replies.
    @discardableResult
    func takeReplies() -> Bool {
        var replies = self.replies
        self.replies = []
        replies.removeAll(keepingCapacity: true)
        self.store.takeReplies(into: &replies)
        for reply in replies { self.take(reply) }
        let hasCome = !replies.isEmpty
        self.replies = replies
        self.attachIfOver()
        return hasCome
    }

    private func take(_ reply: ClusterReply) {
        switch reply {
        case .attached(let attachment): self.attachment = attachment
        case .detached(let error):
            self.attachment = nil
            self.unattached(error)
        case .loaded(let number, let loaded): self.loaded(number, loaded)
        case .committed(let number, let elsewhere):
            guard let transaction = self.open.removeValue(forKey: number) else { return }
            self.commitConfirmed()
            self.done(transaction, endedElsewhere: elsewhere)
        case .failed(let number, let failure): self.failed(number, failure)
        case .counts(let number, let counts): self.counted(number, counts)
        case .topics(let names): self.topics(names)
        case .topicsRefused(let error): self.topicsRefused(error)
        case .view(let view): if !self.isFinishing { self.viewed(view) }
        case .notified(let notice): self.notified(notice)
        case .value(let name, let content):
            // A value that arrives during an attachment is newer than the attachment's.
            self.attachment?.values[name] = content
            self.valueStored(name, content)
        case .valueNotStored(let name, let content, let error): self.valueNotStored(name, content, error)
        }
    }

    // MARK: Attachment

    /// Completes an attachment once all transactions of the previous attachment have ended.
    private func attachIfOver() {
        guard let attachment = self.attachment, self.open.isEmpty else { return }
        self.attachment = nil
        if self.members.number != nil { self.restart() }
        self.clock.observed(attachment.now, wall: attachment.wall)
        self.stage.offset = self.clock.offset
        do throws(StoreError) {
            if attachment.values[SharedValues.workerAuthentication] != nil, case .notRequired(let folder) = self.workers
            {
                throw StoredGateway.workerAuthenticationWasRequired(folder)
            }
            try self.engine.appendTopics(attachment.topics)
        } catch {
            return self.unattached(error)
        }
        self.members.attached(attachment.number)
        self.failure = nil
        self.isSilent = false
        self.trouble = nil
        self.refusals.confirmed()
        self.adopt(attachment)
        // Due devices wait for the view, which is the reply to a report.
        self.tickAt = self.clock.boot
        self.onNews(.status(nil))
    }

    /// Ends all wakes on this gateway's streams. They belong to its previous number, and are recorded as lost.
    private func restart() {
        self.dispatcher.expireEveryWake()
        self.publish()
        self.held = HeldWakes()
        self.claims = Claims()
        self.due = DueDriver()
        self.losses = []
        self.records.rejections = self.records.rejections.since(self.rejectionsStored)
        self.rejectionsStored = Rejections()
    }

    private func adopt(_ attachment: Attachment) {
        for (name, content) in attachment.values { self.valueStored(name, content) }
        if attachment.values[SharedValues.countingSince] == nil {
            self.records.countingSince = attachment.wall
            self.storeValue(SharedValues.countingSince, SharedValues.written(moment: attachment.wall))
        }
        if self.workers == .required, attachment.values[SharedValues.workerAuthentication] == nil {
            self.storeValue(SharedValues.workerAuthentication, SharedValues.written(moment: self.records.countingSince))
        }
        self.beginPolicies()
    }

    private func valueStored(_ name: String, _ content: [UInt8]) {
        switch name {
        case SharedValues.policies:
            if let policies = content.withByteView({ PolicyVersions(stored: $0) }) { self.records.policies = policies }
        case SharedValues.countingSince:
            if let moment = SharedValues.moment(content) { self.records.countingSince = moment }
        default:
            if let topic = SharedValues.pausedTopic(name) { self.pauseStored(topic, SharedValues.isPaused(content)) }
        }
    }

    /// Handles a value that could not be stored. Refuses a pause; retries any other value.
    private func valueNotStored(_ name: String, _ content: [UInt8], _ error: StoreError) {
        guard let topic = SharedValues.pausedTopic(name) else {
            self.unstoredValues[name] = content
            return
        }
        self.refusePauses(error, of: topic)
    }

    /// Refuses all pending requests, because nothing can be stored for now.
    private func unattached(_ error: StoreError) {
        self.failure = self.failure(error)
        self.remote.status = self.remote.status?.detached
        self.refuseWaiting(error)
        self.unstoredValues = [:]
        self.trouble = nil
        self.tableLockedSince = nil
        self.conditionsChanged = ChangedDevices()
        self.areRefusalsDue = false
        self.onNews(.status(error))
    }

    /// Refuses all requests that have not begun.
    private func refuseWaiting(_ error: StoreError) {
        self.refuse(self.queue.takeAll(), error)
        let waiting = self.waitingForRoom + self.waitingForTopics
        self.waitingForTopics = []
        self.waitingForRoom = []
        for transaction in waiting { self.refuse(transaction, error) }
        self.refuseSubscriptions(error)
        self.refusePauses(error)
        self.refuse((self.countQuestions + self.deviceQuestions).compactMap(\.request), error)
        (self.countQuestions, self.deviceQuestions) = ([], [])
        self.refuse(self.listings.map(\.request), error)
        self.listings = []
    }

    /// Refuses all unanswered requests, because the gateway stops.
    func refuseEverybody(_ error: StoreError) {
        for transaction in self.open.values.sorted(by: { $0.number.rawValue < $1.number.rawValue }) {
            _ = self.undo(transaction)
            self.refuse(transaction, error)
        }
        self.refuseWaiting(error)
    }

    // MARK: Transactions

    private func loaded(_ number: TransactionNumber, _ loaded: LoadedDevices) {
        self.clock.observed(loaded.now, wall: loaded.wall)
        guard let transaction = self.open[number] else { return }
        if transaction.namesRows { self.tableLockedSince = nil }
        guard self.isAttached else {
            self.abandon(transaction)
            return self.refuse(transaction, self.failureError)
        }
        switch transaction.purpose {
        case .devices(let questions): self.answer(questions, loaded)
        case .list(let listing): self.listed(listing, loaded)
        default:
            if !loaded.passedOver.isEmpty { self.passOver(loaded.passedOver, transaction) }
            return self.perform(transaction, loaded)
        }
        self.abandon(transaction)
        self.ended(transaction, at: loaded.now)
    }

    /// Uses the counts of all gateways to answer requests.
    private func counted(_ number: TransactionNumber, _ counts: ClusterCounts) {
        guard let transaction = self.open.removeValue(forKey: number) else { return }
        guard self.isAttached else { return self.refuse(transaction, self.failureError) }
        self.engine.setBaseCounters(counts.total, byTopic: counts.byTopic)
        self.records.showRejections(counts.rejections)
        for request in transaction.questions {
            if let request { self.answer(request) } else { self.takeSample() }
        }
        self.ended(transaction, at: self.clock.now)
    }

    private func perform(_ transaction: ClusterTransaction, _ loaded: LoadedDevices) {
        switch self.performed(transaction, loaded) {
        case .unchanged:
            self.abandon(transaction)
            self.done(transaction, endedElsewhere: [], at: loaded.now)
        case .changed(let writes):
            transaction.step.moment = loaded.now
            transaction.step.committedFrom = SystemClock.monotonicMicroseconds
            transaction.step.committedSince = self.clock.boot
            for wake in transaction.step.launched {
                self.held.insert(wake.wake, of: wake.device, deadline: wake.deadline)
            }
            self.store.submit(.commit(transaction.number, writes))
        case .needsTopics(let needed): self.waitForTopics(transaction, loaded, needed)
        }
    }

    /// Moves the commands that need topics into a separate transaction, which waits for the topics. Performs all
    /// others.
    private func waitForTopics(
        _ transaction: ClusterTransaction,
        _ loaded: LoadedDevices,
        _ needed: NeededTopics
    ) {
        var waiting = transaction
        var loaded = loaded
        if let (rows, commands) = transaction.separate(needed.devices, from: &loaded, { self.queue.row(of: $0) }) {
            waiting = ClusterTransaction(.commands, commands, rows, nil, group: self.makeGroup())
            waiting.topicReads = transaction.topicReads
            self.perform(transaction, loaded)
        } else {
            self.abandon(transaction)
        }
        if needed.names.isEmpty { waiting.topicReads += 1 }
        // Creating topics is a commit, which may also stay unconfirmed for too long.
        waiting.step.committedSince = self.clock.boot
        self.waitingForTopics.append(waiting)
        self.store.submit(.addTopics(needed.names))
    }

    /// Removes commands whose rows other sessions have locked, and queues them again. The transaction continues without
    /// them.
    private func passOver(_ devices: [PassedOverDevice], _ transaction: ClusterTransaction) {
        var holders: [RequestedRow: LockHolder?] = [:]
        for device in devices {
            holders[device.wake.map { RequestedRow.wake($0) } ?? .device(device.token)] = .some(device.holder)
        }
        let leftOut = transaction.leaveOut(Set(holders.keys)) { self.queue.row(of: $0) }
        self.queue.putBack(leftOut, at: self.clock.boot) { holders[$0] ?? nil }
    }

    /// Handles a wait for the lock of another session that timed out.
    ///
    /// - `holder`: the session that holds the lock of a table, if known.
    private func lockedOut(_ transaction: ClusterTransaction, _ holder: LockHolder?) {
        if !transaction.passesOverLocked {
            transaction.locked?.passesOverLocked = true
            return self.begin(transaction)
        }
        // The transaction did not wait for rows, so a table is locked.
        self.tableLockedSince = self.tableLockedSince ?? self.clock.boot
        self.tableLockedAt = self.clock.boot
        let rows = Set(transaction.commands.map { self.queue.row(of: $0) })
        let leftOut = transaction.leaveOut(rows) { self.queue.row(of: $0) }
        self.queue.putBack(leftOut, at: self.clock.boot) { _ in holder }
        self.refuse(transaction, .lockedDevice)
    }

    /// The reason why nothing can be stored. While attached: the reason why a stopping gateway refuses pending
    /// requests.
    var failureError: StoreError {
        guard let failure = self.failure else {
            return StoreError(
                message: "The gateway stops, and PostgreSQL has not answered within \(Self.finishMax / 1000) s. Send "
                    + "the request to another gateway."
            )
        }
        return failure.error
    }

    /// Completes a transaction that is durable or has changed nothing.
    private func done(
        _ transaction: ClusterTransaction,
        endedElsewhere: [HeldElsewhere],
        at moment: Instant? = nil
    ) {
        let step = transaction.step
        self.publish(transaction)
        self.dispatcher.committed(step.streams)
        self.publish()
        for wake in step.ended { self.held.remove(wake) }
        for (wake, moment) in step.looks { self.held.look(wake, at: moment) }
        for topic in step.ready { self.claims.noticed(topic) }
        for topic in step.freed { self.claims.slotsFreed(topic) }
        // A late report ends no wake, but its stream may accept wakes again.
        if step.ended.isEmpty, transaction.hasReports { self.claims.recheckAll() }
        for moment in step.due { self.due.note(moment) }
        for (wake, reason) in step.endedSince { self.endedElsewhere(wake, reason) }
        if case .refusals = transaction.purpose { self.rejectionsStored = step.rejections }
        self.tell(transaction, endedElsewhere)
        self.ended(transaction, at: moment ?? step.moment)
    }

    private func failed(_ number: TransactionNumber, _ failure: ClusterFailure) {
        let error: StoreError
        switch failure {
        case .conflict: error = StoreError(message: "Others were faster with the same devices, time and again.")
        case .locked: error = .lockedDevice
        case .refused(let cause): error = cause
        }
        guard let transaction = self.open.removeValue(forKey: number) else { return }
        if case .refused(let cause) = failure, self.isAttached, !transaction.isRead {
            self.refusals.refused(cause, boot: self.clock.boot)
        }
        for wake in transaction.step.launched { self.held.remove(wake.wake) }
        let lost = self.undo(transaction)
        defer { for wake in lost { self.lose(wake) } }
        if case .locked(let holder) = failure, self.isAttached { return self.lockedOut(transaction, holder) }
        guard case .conflict = failure, transaction.isRepeated, self.isAttached else {
            let isConflict = if case .conflict = failure { true } else { false }
            return self.refuse(transaction, error, afterConflict: isConflict)
        }
        transaction.conflicts += 1
        self.begin(transaction)
    }

    /// Refuses the commands of a failed transaction.
    private func refuse(_ transaction: ClusterTransaction, _ error: StoreError, afterConflict: Bool = false) {
        // After a conflict, devices may still be due. The next transaction need not wait for the next second.
        if !afterConflict, case .due = transaction.purpose { self.due.refused() }
        self.refuse(transaction.commands, error)
        for request in transaction.questions {
            if let request {
                self.refuse([request], error)
            } else {
                // The next count for a sample is that of the next second.
                self.takeSample(at: self.clock.now, self.workspace(failed: error))
            }
        }
        self.ended(transaction, at: nil)
    }

    /// Ends a transaction.
    ///
    /// - `moment`: the policy time up to which the purpose is fulfilled; nil if the transaction failed.
    private func ended(_ transaction: ClusterTransaction, at moment: Instant?) {
        let step = transaction.step
        switch transaction.purpose {
        case .commands, .refusals, .counts, .devices, .list: break
        case .heldWakes(let wakes):
            guard moment == nil else { break }
            for wake in wakes { self.held.look(wake, at: self.clock.now + 1000) }
        case .conditions(let changed):
            if moment != nil {
                self.conditionsChanged.succeeded(changed)
            } else if self.isAttached {
                self.conditionsChanged.failed(changed, at: self.clock.boot)
            }
        case .due: self.due.ended(at: moment, hasMore: step.hasMore && step.rowCount > 0)
        case .claim(let shape, let slots):
            if moment == nil {
                self.claims.failed(shape, slots: slots)
            } else {
                // More rows than slots were selected if some rows cannot be read.
                let hasMore = step.hasMore || step.rowCount >= slots
                self.claims.ended(shape, slots: slots, hasMore: hasMore && !step.launched.isEmpty)
            }
        case .sweep where moment == nil: self.sweep.failed()
        case .sweep(let ended): self.sweep.ended(ended, found: step.found, hasMore: step.hasMore)
        case .retirement(let number):
            let isOver = moment != nil && step.rowCount == 0 && !step.hasMore
            if isOver { self.store.submit(.retire(number)) }
            self.members.retired(number, hasMore: moment != nil && step.hasLost && !step.ended.isEmpty)
        }
        self.queue.ended(transaction.commands)
        self.giveBack(transaction.group)
    }

    // MARK: Other gateways

    /// Notifies other gateways of the effects of a durable transaction, and of wakes that were answered here too late,
    /// because it shows that their workers are alive.
    private func tell(_ transaction: ClusterTransaction, _ endedElsewhere: [HeldElsewhere]) {
        let step = transaction.step
        var notices: [ClusterNotice] = []
        for topic in step.ready.sorted(by: { $0.rawValue < $1.rawValue }) where self.remote.hasStreams(topic) {
            notices.append(.ready(topic))
        }
        for (device, topic) in step.conditions where self.remote.receivesConditions(topic) {
            notices.append(.conditions(device, topic))
        }
        if !endedElsewhere.isEmpty {
            let reasons = Dictionary(step.streams.endedElsewhere.map { ($0.wake, $0.reason) }) { first, _ in first }
            for ended in endedElsewhere where ended.holder != self.members.number {
                notices.append(.ended(holder: ended.holder, ended.wake, reason: reasons[ended.wake] ?? nil))
            }
        }
        if transaction.hasReports {
            let ended = Set(step.ended)
            for late in step.streams.endedElsewhere where late.reason == nil && !ended.contains(late.wake) {
                notices.append(.answeredLate(late.wake))
            }
        }
        if !notices.isEmpty { self.store.submit(.sendNotices(notices)) }
    }

    private func notified(_ notice: ClusterNotice) {
        switch notice {
        case .ready(let topic): self.receivedReady(topic)
        case .ended(let holder, let wake, let reason):
            guard holder == self.members.number else { return }
            // If an open transaction launches this wake, handle the end after the wake is delivered.
            if let giver = self.open.values.first(where: { $0.step.launched.contains { $0.wake == wake } }) {
                giver.step.endedSince.append((wake, reason))
            } else {
                self.endedElsewhere(wake, reason)
            }
        case .answeredLate(let wake): self.endedElsewhere(wake, nil)
        case .conditions(let device, let topic):
            guard self.isAttached, self.dispatcher.receivesConditions(topic) else { return }
            // If the queue is full, the streams are not notified.
            self.conditionsChanged.append(device, countMax: 16 * Claims.countMax)
        }
    }

    /// Records that devices of a topic may be waiting for a slot. Ignores topics unknown to this gateway: they have no
    /// streams here, and any client of the database can send notifications.
    private func receivedReady(_ topic: TopicIndex) {
        if Int(topic.rawValue) < self.engine.topicCount { self.claims.noticed(topic) }
    }

    private func endedElsewhere(_ wake: WakeID, _ reason: ExpirationReason?) {
        self.dispatcher.wakeEndedElsewhere(wake, reason, at: self.clock.now)
        self.held.remove(wake)
        self.claims.recheckAll()
    }

    private func viewed(_ view: ClusterView) {
        self.clock.observed(view.now, wall: view.wall)
        let before = self.remote.status?.differences ?? []
        self.members.viewed(view, self.remote)
        for (topic, _) in view.ready { self.receivedReady(topic) }
        if let moment = view.nextDue { self.due.note(moment) }
        let differences = self.remote.status?.differences ?? []
        if differences != before { self.onNews(.differences(differences)) }
    }

    /// Refuses all requests that wait for topics, because the topics cannot be created.
    private func topicsRefused(_ error: StoreError) {
        let waiting = self.waitingForTopics
        self.waitingForTopics = []
        for transaction in waiting { self.refuse(transaction, error) }
        self.refuseSubscriptions(error)
    }

    private func refuseSubscriptions(_ error: StoreError) {
        self.refuse(self.subscriptions, error)
        self.subscriptions = []
    }

    private func topics(_ names: [String]) {
        do throws(StoreError) { try self.engine.appendTopics(names) } catch { return self.unattached(error) }
        for (topic, isPaused) in self.storedPauses { self.apply(topic, isPaused) }
        let waiting = self.waitingForTopics
        self.waitingForTopics = []
        for transaction in waiting {
            transaction.step.committedSince = nil
            if case .devices(let questions) = transaction.purpose {
                // They begin again within the limits of reads.
                self.deviceQuestions += questions
                self.giveBack(transaction.group)
            } else {
                self.waitingForRoom.append(transaction)
            }
        }
        let requests = self.subscriptions
        self.subscriptions = []
        for request in requests {
            guard case .topic(let name) = request.work.rows else { continue }
            self.subscribe(request, name)
        }
    }
}
