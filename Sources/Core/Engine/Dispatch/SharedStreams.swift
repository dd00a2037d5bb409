import Policy
package import Wire

/// Additional state of streams for a shared store, where devices are in memory only during a step.
struct SharedStreams {
    /// The changes made by the current step.
    var changes = StreamChanges()
    /// True while changes need no record, because they are never undone.
    var isSilent = false
    var remembered = RememberedDevices()
    var offered = OfferedSlots()
    /// Topics with a task that waits for a slot; may contain duplicates.
    var topicsWaiting: [TopicIndex] = []
    /// Condition changes of devices that were not in memory, to be sent in order.
    var pendingConditions: [(token: DeviceToken, stream: Subscription)] = []
    /// Returns true if another gateway may have a free slot for a push of this topic.
    let mayLaunchElsewhere: (TopicIndex) -> Bool

    mutating func note(_ change: StreamChanges.Change) {
        if !self.isSilent { self.changes.changes.append(change) }
    }

    /// Returns the changes since the last call.
    ///
    /// Swift 6.3 leaks the former value if a value is assigned through an optional of a noncopyable type, as in
    /// `streams.shared?.changes = StreamChanges()`. A method is not affected.
    mutating func takeChanges() -> StreamChanges {
        defer { self.changes = StreamChanges() }
        return self.changes
    }

    /// Returns the condition changes that were pending, which the caller sends.
    mutating func takePendingConditions() -> [(token: DeviceToken, stream: Subscription)] {
        defer { self.pendingConditions = [] }
        return self.pendingConditions
    }

    mutating func noteEndedElsewhere(_ wake: WakeID, _ reason: ExpirationReason?) {
        if !self.isSilent { self.changes.endedElsewhere.append((wake, reason)) }
    }
}

// MARK: - Noting

extension StreamTable {
    /// Returns the position of a stream in the rotations, before it gets a wake of this kind.
    func turn(_ stream: Subscription, _ kind: LaunchKind) -> StreamChanges.Turn {
        let place = Int(stream.topic.rawValue)
        let isPush = kind == .push
        return StreamChanges.Turn(
            wasNext: isPush && self.workers[place].pushes.isNext(stream),
            taskPlaces: isPush ? [] : self.workers[place].tasks.placesNext(stream),
            lastTurn: stream.lastTurn
        )
    }

    /// Records that a stream got a wake.
    mutating func noteGiven(_ wake: WakeID, _ stream: Subscription, _ before: StreamChanges.Turn) {
        var turn = before
        turn.turn = stream.lastTurn
        turn.madeFull = stream.isFull
        self.shared?.note(.given(wake, stream, turn))
    }

    /// Records that a stream has released a wake.
    mutating func noteReleased(_ wake: WakeID, _ held: HeldWake, took: Int64?, _ stream: Subscription) {
        guard self.shared?.isSilent == false else { return }
        stream.releasesInDoubt += 1
        self.shared?.note(.released(wake, held, took: took, stream))
    }
}

extension StreamTable {
    /// Notes the deadline of a continued task after a progress report, if its wake is on the stream.
    mutating func progressed(_ wake: WakeID, _ stream: Subscription, deadline: Instant, at now: Instant) {
        if self.shared != nil, let held = stream.wakes[wake] { self.shared?.note(.progressed(wake, held, stream)) }
        stream.progressed(wake, deadline: deadline, at: now)
    }
}

// MARK: - Steps that are open

extension StreamTable {
    /// Keeps other steps from using the slots that a step has released, until the step is durable.
    mutating func stepTaken(_ changes: StreamChanges) {
        for case .released(_, _, _, let stream) in changes.changes {
            stream.releasesOfOpenSteps += 1
            self.changed(stream)
        }
    }

    /// Frees a slot whose release is durable.
    mutating func releaseCommitted(_ stream: Subscription) {
        stream.releasesInDoubt -= 1
        stream.releasesOfOpenSteps -= 1
        self.changed(stream)
    }
}

// MARK: - Undoing

extension StreamTable {
    /// Undoes one change.
    ///
    /// - Returns: a wake whose end was undone although its stream has ended; nil otherwise.
    mutating func undo(_ change: StreamChanges.Change) -> WakeID? {
        switch change {
        case .given(let wake, let stream, let turn): self.takeBack(wake, stream, turn)
        case .released(let wake, let held, let took, let stream):
            stream.releasesInDoubt -= 1
            stream.releasesOfOpenSteps -= 1
            if let took { self.durations.takeBack(took, held.kind, stream) }
            guard !stream.hasEnded else { return wake }
            stream.hold(wake, held)
            self.holders[wake] = stream
            self.workers[Int(stream.topic.rawValue)].busy += 1
            self.changed(stream)
        case .expired(let wake, let stream):
            guard let place = stream.expiredInARow.lastIndex(of: wake) else { break }
            stream.expiredInARow.remove(at: place)
            self.holders[wake] = nil
            self.judge(stream)
        case .gaveBack(let stream): self.undoGivingBack(stream)
        case .answered(let wakes, let givenBack, let stream):
            guard !stream.hasEnded else { break }
            // Leave out wakes that are on the stream again because their expiration was undone.
            self.undoAnswer(stream, expired: wakes.filter { !stream.holds($0) }, givenBack)
        case .progressed(let wake, let held, let stream): stream.restore(wake, held)
        case .sentConditions(let token, let stream):
            if !stream.hasEnded { self.shared?.pendingConditions.append((token, stream)) }
        }
        return nil
    }

    /// Takes a wake from a stream as if it had never been given.
    private mutating func takeBack(_ wake: WakeID, _ stream: Subscription, _ turn: StreamChanges.Turn) {
        if turn.madeFull { self.timesFull -= 1 }
        self.holders[wake] = nil
        guard !stream.hasEnded, stream.takeBack(wake) else { return }
        let place = Int(stream.topic.rawValue)
        self.workers[place].busy -= 1
        if turn.wasNext { self.workers[place].turnTakenBack(stream) }
        if stream.lastTurn == turn.turn { stream.lastTurn = turn.lastTurn }
        self.workers[place].tasks.turnTakenBack(stream, turn.taskPlaces)
        self.changed(stream)
    }

    /// Removes the references from a stream's wakes to the stream. The caller must end the wakes.
    mutating func forgetWakes(_ stream: Subscription) {
        for (wake, _) in stream.wakes.all { self.holders[wake] = nil }
    }

    /// Removes references to the devices of a step.
    mutating func forgetDevices() {
        guard let topics = self.shared?.topicsWaiting else { return }
        for topic in topics { self.workers[Int(topic.rawValue)].waiting = WaitingTasks() }
        if !topics.isEmpty { self.shared?.topicsWaiting.removeAll(keepingCapacity: true) }
        guard let remembered = self.shared?.remembered, !remembered.isEmpty, !self.hasConditionsToSend else { return }
        guard remembered.topics.allSatisfy({ self.workers[Int($0.rawValue)].conditions.isEmpty }) else { return }
        self.shared?.remembered.removeAll()
    }
}

/// The changes of a step of a shared store to streams. They are needed until the step is durable or has failed.
package struct StreamChanges {
    /// The position of a stream in the rotations when it got a wake.
    struct Turn {
        /// True if the stream was the next to get a push.
        let wasNext: Bool
        /// The indexes in `taskPlaces` of the rotations in which the stream was next.
        let taskPlaces: [Int]
        let lastTurn: UInt64
        /// The number of the turn that the wake used.
        var turn: UInt64 = 0
        /// True if the wake made the stream reach its limit of bytes.
        var madeFull = false
    }

    /// One change, with the data to undo it.
    enum Change {
        case given(WakeID, Subscription, Turn)
        /// - `took`: the duration that was counted, in milliseconds.
        case released(WakeID, HeldWake, took: Int64?, Subscription)
        /// A released wake counts as expired unanswered.
        case expired(WakeID, Subscription)
        /// The worker gave back a released wake.
        case gaveBack(Subscription)
        /// The record of wakes that expired unanswered or were given back was cleared.
        case answered([WakeID], WakesGivenBack?, Subscription)
        case sentConditions(DeviceToken, Subscription)
        /// A progress report may have moved a continued task's deadline. The value is the state before the report.
        case progressed(WakeID, HeldWake, Subscription)
    }

    var changes: [Change] = []
    /// Ended wakes that were not on a stream of this gateway, with the reason of an expiration; nil for another
    /// outcome. Once the step is durable, the owner notifies the gateway that has the stream, which calls
    /// `Dispatcher.wakeEndedElsewhere`.
    package internal(set) var endedElsewhere: [(wake: WakeID, reason: ExpirationReason?)] = []

    /// Wakes whose deadlines may have moved.
    package internal(set) var moved: [WakeID] = []

    /// The number of accepted progress reports.
    var progressReports: Int64 = 0

    package init() {}

    /// True if the step changed nothing.
    package var isEmpty: Bool { self.changes.isEmpty && self.endedElsewhere.isEmpty }
}

/// Numbers for devices with changed conditions. They outlive the step of the change, because a stream that does not
/// read receives the change later. They are removed when every stream is up to date.
struct RememberedDevices {
    private var numbers: [DeviceToken: Int] = [:]
    private var tokens: [DeviceToken] = []
    /// The topics of these devices.
    private(set) var topics: Set<TopicIndex> = []

    var isEmpty: Bool { self.tokens.isEmpty }

    /// Returns the number of a device of this topic for `ConditionsLog`. The number is not an index of the engine.
    mutating func index(_ token: borrowing DeviceToken, _ topic: TopicIndex) -> DeviceIndex {
        self.topics.insert(topic)
        let number = self.numbers[copy token] ?? self.tokens.count
        if number == self.tokens.count {
            self.numbers[copy token] = number
            self.tokens.append(copy token)
        }
        return DeviceIndex(rawValue: UInt32(number))
    }

    /// Returns the device with this number.
    func token(_ index: DeviceIndex) -> DeviceToken { self.tokens[Int(index.rawValue)] }

    mutating func removeAll() {
        self.numbers.removeAll(keepingCapacity: true)
        self.tokens.removeAll(keepingCapacity: true)
        self.topics.removeAll(keepingCapacity: true)
    }
}
