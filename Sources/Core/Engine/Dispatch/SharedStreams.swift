import Policy
package import Wire

/// What streams need besides where devices are there for a step alone.
struct SharedStreams {
    /// What the step has done.
    var changes = StreamChanges()
    /// What is done is undone already, or never will be.
    var isSilent = false
    var heard = HeardDevices()
    var offered = OfferedSlots()
    /// Topics of which a task waits for a slot, some perhaps several times.
    var topicsWaiting: [TopicIndex] = []
    /// Streams that are to hear of a device that was not there to be told of, in their order.
    var owed: [(token: DeviceToken, stream: Subscription)] = []
    /// Returns true if another gateway may have a free slot for a push of this topic.
    let mayLaunchElsewhere: (TopicIndex) -> Bool

    init(mayLaunchElsewhere: @escaping (TopicIndex) -> Bool) {
        self.mayLaunchElsewhere = mayLaunchElsewhere
    }

    mutating func note(_ change: StreamChanges.Change) {
        if !self.isSilent { self.changes.changes.append(change) }
    }

    mutating func noteEndedElsewhere(_ wake: WakeID, _ reason: ExpirationReason?) {
        if !self.isSilent { self.changes.endedElsewhere.append((wake, reason)) }
    }
}

// MARK: - Noting

extension StreamTable {
    /// How a stream stands that is about to get a wake of this kind.
    func turn(_ stream: Subscription, _ kind: LaunchKind) -> StreamChanges.Turn {
        let place = Int(stream.topic.rawValue)
        let isPush = kind == .push
        return StreamChanges.Turn(
            wasNext: isPush && self.workers[place].pushes.isNext(stream),
            taskPlaces: isPush ? [] : self.workers[place].tasks.placesNext(stream),
            lastTurn: stream.lastTurn
        )
    }

    /// A stream got a wake.
    mutating func noteGiven(_ wake: WakeID, _ stream: Subscription, _ before: StreamChanges.Turn) {
        var turn = before
        turn.turn = stream.lastTurn
        turn.madeFull = stream.isFull
        self.shared?.note(.given(wake, stream, turn))
    }

    /// A stream is about to let go of a wake.
    mutating func noteReleased(_ wake: WakeID, _ stream: Subscription) {
        guard self.shared?.isSilent == false, let held = stream.wakes[wake] else { return }
        stream.releasesInDoubt += 1
        self.shared?.note(.released(wake, held, stream))
    }
}

extension StreamTable {
    /// A stream hears that a continued task which it may hold lasts until then by its progress.
    mutating func progressed(_ wake: WakeID, _ stream: Subscription, deadline: Instant, at now: Instant) {
        if self.shared != nil, let held = stream.wakes[wake] { self.shared?.note(.progressed(wake, held, stream)) }
        stream.progressed(wake, deadline: deadline, at: now)
    }
}

// MARK: - Steps that are open

extension StreamTable {
    /// A step is taken: what it has released stays taken for others, until it is known to have happened.
    mutating func stepTaken(_ changes: StreamChanges) {
        for case .released(_, _, let stream) in changes.changes {
            stream.releasesOfOpenSteps += 1
            self.changed(stream)
        }
    }

    /// A step that has released a wake is durable.
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
    /// - Returns: a wake that is held again by a stream that has ended meanwhile.
    mutating func undo(_ change: StreamChanges.Change) -> WakeID? {
        switch change {
        case .given(let wake, let stream, let turn): self.takeBack(wake, stream, turn)
        case .released(let wake, let held, let stream):
            stream.releasesInDoubt -= 1
            stream.releasesOfOpenSteps -= 1
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
            // One that was not expired after all is held again by now, or by the undoing of another step.
            self.undoAnswer(stream, expired: wakes.filter { !stream.holds($0) }, givenBack)
        case .progressed(let wake, let held, let stream): stream.restore(wake, held)
        case .toldConditions(let token, let stream):
            if !stream.hasEnded { self.shared?.owed.append((token, stream)) }
        }
        return nil
    }

    /// A wake was never given to a stream.
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

    /// A stream has ended, and each of its wakes becomes somebody else's business.
    mutating func forgetWakes(_ stream: Subscription) {
        for (wake, _) in stream.wakes.all { self.holders[wake] = nil }
    }

    /// Forgets the devices of a step.
    mutating func forgetDevices() {
        guard let topics = self.shared?.topicsWaiting else { return }
        for topic in topics { self.workers[Int(topic.rawValue)].waiting = WaitingTasks() }
        if !topics.isEmpty { self.shared?.topicsWaiting.removeAll(keepingCapacity: true) }
        guard let heard = self.shared?.heard, !heard.isEmpty, !self.hasConditionsToTell else { return }
        guard heard.topics.allSatisfy({ self.workers[Int($0.rawValue)].conditions.isEmpty }) else { return }
        self.shared?.heard.removeAll()
    }
}

/// What a step of a shared store did to streams, until it is known whether it happened.
package struct StreamChanges {
    /// Whose turn it was when a stream got a wake.
    struct Turn {
        /// True if the stream was the next to get a push.
        let wasNext: Bool
        /// The places in which the stream was the next to get a task.
        let taskPlaces: [Int]
        let lastTurn: UInt64
        /// The turn that the wake was.
        var turn: UInt64 = 0
        /// The wake made the stream full of bytes.
        var madeFull = false
    }

    /// One change, as it is undone.
    enum Change {
        case given(WakeID, Subscription, Turn)
        case released(WakeID, HeldWake, Subscription)
        /// A wake that had been released counts as expired unanswered.
        case expired(WakeID, Subscription)
        /// The worker gave back a wake, which had been released.
        case gaveBack(Subscription)
        /// The wakes that had expired unanswered or been given back are forgotten.
        case answered([WakeID], WakesGivenBack?, Subscription)
        case toldConditions(DeviceToken, Subscription)
        /// A continued task was seen to advance, perhaps; it was so before.
        case progressed(WakeID, HeldWake, Subscription)
    }

    var changes: [Change] = []
    /// Wakes that ended in this step, or had before, and that no stream here held, and why they expired; nil for
    /// another end. Whoever holds one is to be told, once the step is durable: `Dispatcher.wakeEndedElsewhere`.
    package internal(set) var endedElsewhere: [(wake: WakeID, reason: ExpirationReason?)] = []

    /// Wakes whose deadlines may have moved.
    package internal(set) var moved: [WakeID] = []

    /// How many reports of continued tasks' progress were taken.
    var progressReports: Int64 = 0

    package init() {}

    /// Nothing was done.
    package var isEmpty: Bool { self.changes.isEmpty && self.endedElsewhere.isEmpty }
}

/// Devices whose conditions have changed, by numbers that outlive the step that changed them: streams that do not read
/// hear of them later. There are as many as some stream is still to hear of, or heard of since there was none.
struct HeardDevices {
    private var numbers: [DeviceToken: Int] = [:]
    private var tokens: [DeviceToken] = []
    /// The topics of these devices.
    private(set) var topics: Set<TopicIndex> = []

    var isEmpty: Bool { self.tokens.isEmpty }

    /// What stands for a device of this topic in logs; the engine does not know it.
    mutating func index(_ token: borrowing DeviceToken, _ topic: TopicIndex) -> DeviceIndex {
        self.topics.insert(topic)
        let number = self.numbers[copy token] ?? self.tokens.count
        if number == self.tokens.count {
            self.numbers[copy token] = number
            self.tokens.append(copy token)
        }
        return DeviceIndex(rawValue: UInt32(number))
    }

    /// The device that this stands for.
    func token(_ index: DeviceIndex) -> DeviceToken { self.tokens[Int(index.rawValue)] }

    mutating func removeAll() {
        self.numbers.removeAll(keepingCapacity: true)
        self.tokens.removeAll(keepingCapacity: true)
        self.topics.removeAll(keepingCapacity: true)
    }
}
