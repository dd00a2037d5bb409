import Engine
import Policy
import Wire

/// The methods that begin transactions.
extension ClusterEngine {
    /// The maximum number of open reads of wakes on streams here.
    private static let heldWakeReadsMax = 4

    /// Begins as many transactions as allowed. If few are allowed, commands and other work alternate.
    func beginTransactions() {
        guard self.isAttached, self.attachment == nil else { return }
        self.beginCount()
        self.beginReads()
        while self.hasRoom, !self.waitingForRoom.isEmpty { self.begin(self.waitingForRoom.removeFirst()) }
        while self.hasRoom {
            let isBegun =
                self.isTurnOfCommands
                ? self.beginCommands() || self.beginOther() : self.beginOther() || self.beginCommands()
            guard isBegun else { return }
            self.isTurnOfCommands.toggle()
        }
    }

    /// Begins reads, which do not count as transactions.
    private func beginReads() {
        self.beginHeldWakes()
        self.beginConditions()
        self.beginDeviceQuestions()
        self.beginListing()
        if let step = self.sweep.next, case .read(let token) = step {
            self.sweep.begun()
            let selection = ReadPlan.Selection.inOrder(topics: nil, after: token, countMax: PolicySweep.rowsMax)
            self.begin(.sweep(step), reading: ReadPlan(selection: selection))
        }
    }

    /// Reads the rows of wakes on streams here that are due for it. Each read has a limited number of rows, because
    /// after a reload all wakes must be read.
    private func beginHeldWakes() {
        guard let moment = self.held.nextLook, moment <= self.clock.now, self.mayReadHeldWakes else { return }
        let wakes = self.held.due(at: self.clock.now, countMax: Claims.countMax)
        if !wakes.isEmpty { self.begin(.heldWakes(wakes), reading: ReadPlan(wakes: wakes)) }
    }

    /// True if another read of wakes on streams here may begin. Each reply wakes the engine.
    var mayReadHeldWakes: Bool {
        self.open.values.count { if case .heldWakes = $0.purpose { true } else { false } } < Self.heldWakeReadsMax
    }

    /// Begins a transaction for commands. Commands of locked rows alternate with all others, so that neither kind
    /// delays the other.
    ///
    /// - Returns: false if no command may begin.
    private func beginCommands() -> Bool {
        let isLookDue = self.queue.locked.nextAt.map { $0 <= self.clock.boot } ?? false
        if isLookDue, self.isTurnOfLocked || !self.queue.hasNext {
            self.isTurnOfLocked = false
            let taken = self.queue.takeLocked(rowsMax: Claims.countMax, at: self.clock.boot)
            if self.begin(taken, passesOverLocked: true) { return true }
        }
        self.isTurnOfLocked = true
        return self.begin(self.queue.take(rowsMax: Claims.countMax))
    }

    /// Begins a transaction for commands taken from the queue.
    ///
    /// - Returns: false if `taken` contains no command.
    private func begin(_ taken: CommandQueue.Taken, passesOverLocked: Bool = false) -> Bool {
        guard !taken.commands.isEmpty else { return false }
        var plan = LoadPlan()
        plan.passesOverLocked = passesOverLocked
        plan.tokens.reserveCapacity(taken.rows.count)
        for row in taken.rows {
            switch row {
            case .device(let token): plan.tokens.append(token)
            case .wake(let wake): plan.wakes.append(wake)
            }
        }
        self.begin(.commands, plan, taken.commands)
        return true
    }

    /// Begins a transaction for another purpose than commands.
    ///
    /// - Returns: false if no such transaction is needed.
    private func beginOther() -> Bool {
        if let dead = self.members.nextToRetire() {
            let selection = LoadPlan.Selection.wakes(of: dead, countMax: self.selectedMax)
            self.begin(.retirement(dead), LoadPlan(selection: selection))
        } else if self.members.mayExpireWakes, self.due.isDue(at: self.clock.now) {
            self.due.begun()
            self.begin(.due, LoadPlan(selection: .due(countMax: self.selectedMax)))
        } else if self.areRefusalsDue {
            self.areRefusalsDue = false
            for place in self.countQuestions.indices { self.countQuestions[place].needsRefusals = false }
            self.begin(.refusals, LoadPlan())
        } else {
            return self.beginClaim() || self.beginSweep()
        }
        return true
    }

    /// The maximum number of rows that a transaction selects. Rows that cannot be read are selected again and again,
    /// and must not take the places of others.
    private var selectedMax: Int { Claims.countMax + self.remote.unreadable.count }

    private func beginClaim() -> Bool {
        guard !self.room.isDraining, self.members.mayExpireWakes, !self.claims.isEmpty,
            self.claims.openCount < max(1, self.store.transactionsMax / 2),
            let (shape, plan) = self.claims.next(
                { self.dispatcher.freeSlots($0) },
                devices: { self.dispatcher.devices($0) }
            )
        else { return false }
        var ready = plan
        ready.countMax += self.remote.unreadable.count
        self.begin(.claim(shape, slots: plan.countMax), LoadPlan(selection: .ready(ready)))
        return true
    }

    private func beginSweep() -> Bool {
        guard let step = self.sweep.next, case .judge(let tokens, _) = step else { return false }
        self.sweep.begun()
        self.begin(.sweep(step), LoadPlan(tokens: tokens))
        return true
    }

    /// Reads devices whose conditions changed here or at other gateways, to notify streams.
    private func beginConditions() {
        guard !self.open.values.contains(where: { if case .conditions = $0.purpose { true } else { false } }) else {
            return
        }
        guard !self.conditionsChanged.isPaused(at: self.clock.boot) else { return }
        // A row that cannot be read must not prevent the reading of other rows.
        let isApart = self.conditionsChanged.hasFailed && !self.conditionsChanged.isEmpty
        let owed = isApart || self.clock.boot < self.owedConditionsAt ? [] : self.dispatcher.pendingConditions
        guard !owed.isEmpty || !self.conditionsChanged.isEmpty else { return }
        let changed = self.conditionsChanged.take()
        let known = Set(changed)
        let tokens = changed + owed.filter { !known.contains($0) }
        self.begin(.conditions(changedElsewhere: changed), reading: ReadPlan(tokens: tokens))
    }
}

/// Requests that are answered from the counters of all gateways or from the rows of all devices.
extension ClusterEngine {
    /// True while a transaction stores the refusals of this gateway. Counts are requested after it.
    var areRefusalsOpen: Bool {
        self.open.values.contains { if case .refusals = $0.purpose { true } else { false } }
    }

    /// The requests that the open count will answer; nil if no count is open. One count answers all requests that are
    /// ready.
    var countedQuestions: [ClusterQuestion]? {
        for transaction in self.open.values {
            if case .counts(let questions, _) = transaction.purpose { return questions }
        }
        return nil
    }

    /// True if the sample of this second has been requested.
    var isSampleAsked: Bool {
        self.countQuestions.contains { $0.request == nil }
            || self.countedQuestions?.contains { $0.request == nil } ?? false
    }

    /// If a request for counts is ready, stores the refusals of this gateway, and then requests the counts from the
    /// store.
    func beginCount() {
        guard !self.countQuestions.isEmpty, self.countedQuestions == nil else { return }
        func isReady(_ question: ClusterQuestion) -> Bool { question.wait.isOver(self.queue, boot: self.clock.boot) }
        let ready = self.countQuestions.filter(isReady)
        guard !ready.isEmpty else { return }
        if self.records.rejections.hasChanges, ready.contains(where: \.needsRefusals) {
            self.areRefusalsDue = true
            return
        }
        guard !self.areRefusalsOpen else { return }
        self.countQuestions.removeAll(where: isReady)
        // The count of held launches needs the counts of each paused topic, also for the totals.
        var topics: [TopicIndex]? = Array(self.engine.pausedTopics)
        for question in ready {
            switch question.request?.work.rows ?? .counts(self.sampledTopics) {
            case .counts(.every): topics = nil
            case .counts(.one(let name)):
                guard let topic = name.withByteView({ self.engine.findTopic($0) }) else { continue }
                topics?.append(topic)
            default: break
            }
        }
        self.begin(.counts(ready, topics: topics), reading: nil)
    }

    /// Performs a request that needs no rows except those in memory.
    ///
    /// - `lastRead`: the last device read for the list, if more devices follow.
    func answer(_ request: EngineRequest, lastRead: DeviceToken? = nil, recent: [DeviceToken]? = nil) {
        var workspace = self.workspace
        workspace.lastRead = lastRead
        workspace.recent = recent
        self.requests.perform(request, workspace)
        while self.requests.isLongListNext {
            self.requests.writeNextLongList(self.workspace)
            self.publish()
        }
    }

    // MARK: One device

    /// The maximum number of requests answered by one read of devices.
    private static let questionsPerRead = 256
    /// The maximum number of open reads of devices for requests.
    private static let deviceReadsMax = 2

    /// True if another read of devices for requests may begin.
    var mayReadDevices: Bool {
        self.open.values.count { if case .devices = $0.purpose { true } else { false } } < Self.deviceReadsMax
    }

    /// Reads the rows of devices for requests that concern one device.
    func beginDeviceQuestions() {
        guard !self.deviceQuestions.isEmpty, self.mayReadDevices else { return }
        var (begun, left): ([ClusterQuestion], [ClusterQuestion]) = ([], [])
        for question in self.deviceQuestions {
            if begun.count < Self.questionsPerRead, question.wait.isOver(self.queue, boot: self.clock.boot) {
                begun.append(question)
            } else {
                left.append(question)
            }
        }
        self.deviceQuestions = left
        if !begun.isEmpty { self.begin(.devices(begun), reading: Self.plan(begun)) }
    }

    private static func plan(_ questions: [ClusterQuestion]) -> ReadPlan {
        ReadPlan(tokens: Array(Set(questions.compactMap { $0.request?.work.rows.device })))
    }

    /// Answers requests from rows, which are in memory only during this call.
    func answer(_ questions: [ClusterQuestion], _ loaded: LoadedDevices) {
        var early: [ClusterQuestion] = []
        self.inMemory(loaded.devices, loaded) { left in
            for question in questions {
                guard let request = question.request, let device = request.work.rows.device else { continue }
                if left.unknown.contains(device), question.topicReads < ClusterTransaction.triesMax {
                    var question = question
                    question.topicReads += 1
                    early.append(question)
                } else if left.unknown.contains(device) || left.damaged.contains(device) {
                    self.refuse([request], .unreadableDevice)
                } else {
                    self.requests.perform(request, self.workspace)
                }
            }
        }
        guard !early.isEmpty else { return }
        // Another gateway may have just created a topic, so read the topics and repeat the requests.
        self.waitingForTopics.append(
            ClusterTransaction(.devices(early), [], nil, Self.plan(early), group: self.makeGroup())
        )
        self.store.submit(.addTopics([]))
    }

    // MARK: Lists of devices

    /// True if a part of a list is being read.
    var isListing: Bool { self.open.values.contains { if case .list = $0.purpose { true } else { false } } }

    /// Reads the next part of the next list. Lists take turns.
    func beginListing() {
        guard !self.listings.isEmpty, !self.isListing else { return }
        while let place = self.listings.firstIndex(where: { $0.wait.isOver(self.queue, boot: self.clock.boot) }) {
            let listing = self.listings.remove(at: place)
            let topics = self.workspace.topics(listing.subject.topic, for: listing.request.caller)
            if topics?.isEmpty == true {
                self.answer(listing.request)
            } else if self.clock.boot >= listing.deadline {
                self.refuse([listing.request], .longList)
            } else {
                return self.begin(.list(listing), reading: listing.plan(topics))
            }
        }
    }

    /// Adds a part to its list. Moves the list to the end of the queue, or answers it if it is complete.
    func listed(_ listing: DeviceListing, _ loaded: LoadedDevices) {
        var since: [DeviceToken: Instant] = [:]
        let devices = self.inMemory(loaded.devices, loaded) { _ in
            let devices = self.workspace.devices(of: listing.subject, for: listing.request.caller)
            for token in devices where listing.subject.order != .token {
                since[token] = self.engine.find(token).flatMap {
                    listing.subject.order == .recent ? self.engine.recency($0) : self.engine.waitingSince($0)
                }
            }
            return devices
        }
        guard listing.take(loaded, devices, since: since) else { return self.listings.append(listing) }
        self.inMemory(listing.rows, loaded) { _ in
            self.answer(listing.request, lastRead: listing.lastRead, recent: listing.recent)
        }
    }

    /// Loads rows into memory for `body`, which only reads. Due work of the devices is applied in memory and not
    /// stored. Leaves out damaged rows and rows of unknown topics, and passes their devices to `body`.
    private func inMemory<Result>(
        _ rows: [SharedDevice],
        _ loaded: LoadedDevices,
        _ body: (_ left: LeftOut) -> Result
    ) -> Result {
        self.engine.takeWatched(into: &self.stage.group.watched)
        self.engine.watch(nil, at: self.clock.now)
        let times = self.engine.times
        self.dispatcher.isReading = true
        defer {
            self.dispatcher.isReading = false
            self.engine.times = times
            self.engine.unloadAll()
            self.dispatcher.forgetDevices()
            self.watch()
        }
        let left = self.takeRows(rows)
        self.engine.beginSharedStep(now: loaded.now, deviceCount: self.members.deviceCount)
        for row in rows { if let device = self.engine.find(row.token) { _ = self.engine.catchUp(device) } }
        let result = body(left)
        var unheard: [HistoryEvent] = []
        self.engine.takeEvents(into: &unheard)
        return result
    }
}
