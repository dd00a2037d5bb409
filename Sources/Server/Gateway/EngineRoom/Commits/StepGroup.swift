package import Engine
package import Policy
import Storage
package import Wire

/// What leaves the engine together: the records of one commit, and everything that may be told once they are durable.
///
/// `@unchecked Sendable`: a group has one owner at a time, and changes owners under the lock of `CommitPipeline`.
package final class StepGroup: @unchecked Sendable {
    package internal(set) var records = RecordBatch()
    var effects: PerOutlet<EffectBatch>
    /// When the pushes came that wait for its commit.
    private(set) var arrivals: [PushArrival] = []
    /// How many these are.
    private(set) var pushCount: Int64 = 0
    /// Among the effects is a long list; there is room for no other one.
    var hasLongList = false
    /// What happened, for the history.
    var history = HistoryBatch()
    /// What happened, for those who follow it.
    var watched = WatchedEvents()

    init(loopCount: Int) {
        self.effects = PerOutlet(loops: (0..<loopCount).map { _ in EffectBatch() }, webhooks: EffectBatch())
    }

    /// More pushes wait for its commit.
    func append(_ arrivals: [PushArrival]) {
        for arrival in arrivals { self.pushCount += arrival.count }
        self.arrivals += arrivals
    }

    /// A push of the group left its loop at this moment, by the monotonic clock in microseconds.
    func note(leftAt: Int64) {
        if let last = self.arrivals.last, last.at == leftAt {
            self.arrivals[self.arrivals.count - 1] = PushArrival(at: leftAt, count: last.count + 1)
        } else {
            self.arrivals.append(PushArrival(at: leftAt, count: 1))
        }
        self.pushCount += 1
    }

    /// No push waits for its commit any more.
    func forgetArrivals() {
        self.arrivals.removeAll(keepingCapacity: true)
        self.pushCount = 0
    }

    var isEmpty: Bool {
        self.records.isEmpty && self.history.isEmpty && self.watched.isEmpty
            && self.effects.loops.allSatisfy { $0.isEmpty }
            && self.effects.webhooks.isEmpty
    }
}

/// Where a group goes once nothing of it can be lost: its effects to the loops and webhooks, what happened to the
/// history and to those who follow it.
package struct GroupOutlet: Sendable {
    package let mailboxes: PerOutlet<LoopMailbox>
    package let history: any HistoryOutlet
    /// Where those are who follow what happens.
    package let events: EventDesk

    package init(mailboxes: PerOutlet<LoopMailbox>, history: any HistoryOutlet, events: EventDesk = EventDesk()) {
        self.mailboxes = mailboxes
        self.history = history
        self.events = events
    }

    package func makeGroup() -> StepGroup { StepGroup(loopCount: self.mailboxes.loops.count) }

    /// Lets out everything of a group, which is empty afterwards.
    package func release(_ group: StepGroup) {
        for loop in self.mailboxes.loops.indices where !group.effects.loops[loop].isEmpty {
            self.mailboxes.loops[loop].deliver(&group.effects.loops[loop])
        }
        if !group.effects.webhooks.isEmpty { self.mailboxes.webhooks.deliver(&group.effects.webhooks) }
        if !group.history.isEmpty { self.history.submit(&group.history) }
        if !group.watched.isEmpty { self.events.take(&group.watched) }
        group.records.removeAll()
        group.forgetArrivals()
        group.hasLongList = false
    }
}

/// What transactions of a shared store do with groups.
extension StepGroup {
    /// Nothing of what it has is let out.
    func discard() {
        for effects in self.effects.loops where !effects.isEmpty { effects.removeAll() }
        if !self.effects.webhooks.isEmpty { self.effects.webhooks.removeAll() }
        self.history.removeAll()
        self.watched.removeAll()
        self.records.removeAll()
        self.forgetArrivals()
        self.hasLongList = false
    }
}

/// Collects what steps have for the loops, the webhooks and the history until it is durable.
package final class EffectStage: DispatchOutput {
    /// What the next commit will let out.
    package var group: StepGroup
    /// Wall clock minus policy time.
    var offset: WallOffset

    package init(group: StepGroup, offset: WallOffset) {
        self.group = group
        self.offset = offset
    }

    package func answer(_ reply: PushReply) {
        self.group.effects[reply.address].append(reply)
    }

    package func answer(_ address: StreamAddress, _ outcome: Outcome) {
        self.group.effects[address].append(outcome, to: address)
    }

    /// The history answers, behind everything that happened until now.
    package func ask(_ question: HistoryQuestion) {
        self.group.history.questions.append(question)
    }

    /// A stream begins.
    package func subscribed(_ address: StreamAddress) {
        self.group.effects[address].appendSubscribed(address)
    }

    /// Nothing is launched any more.
    package func draining() {
        for effects in self.group.effects.loops { effects.appendDraining() }
        self.group.effects.webhooks.appendDraining()
    }

    package func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress) {
        self.group.effects[stream].appendWake(wake, self.offset, to: stream)
    }

    package func warn(_ wake: WakeID, on stream: StreamAddress, deadline: Instant, timeLeft: Int64) {
        let wall = self.offset.wall(deadline)
        self.group.effects[stream].appendExpiring(wake, deadline: wall, timeLeft: timeLeft, on: stream)
    }

    package func expire(_ wake: WakeID, on stream: StreamAddress, reason: ExpirationReason) {
        self.group.effects[stream].appendExpired(wake, reason, on: stream)
    }

    package func conditionsChanged(_ token: DeviceToken, _ conditions: Conditions, on stream: StreamAddress) {
        self.group.effects[stream].append(conditions, of: token, to: stream)
    }

    package func released(_ wake: WakeID, on stream: StreamAddress) {
        self.group.effects[stream].appendReleased(wake, from: stream)
    }

    package func drained(_ stream: StreamAddress) {
        self.group.effects[stream].appendDrained(stream)
    }
}

/// Turns what a group had for one outlet into refusals: the group did not become durable.
///
/// Every request of the group has exactly one answer in it, so every request is refused once. Wakes, their ends and
/// changed conditions are dropped: as far as anybody will know, wakes were never launched, or are in flight still.
struct EffectRefusal {
    let refused = EffectBatch()
    /// How many accepted pushes are refused after all.
    private(set) var pushCount: Int64 = 0
    private let error: APIError

    init(_ error: APIError) {
        self.error = error
    }

    mutating func refuse(_ effects: EffectBatch) {
        effects.handOver { effect in
            switch effect {
            case .pushAnswer(let reply): self.refuse(reply)
            case .answer(let address, _), .subscribed(let address):
                self.refused.append(.refused(self.error), to: address)
            case .asked(let request): self.refused.append(.refused(self.error), to: request.reply)
            case .wake, .expiring, .expired, .released, .conditions, .drained: break
            case .draining: self.refused.appendDraining()
            }
        }
    }

    private mutating func refuse(_ reply: PushReply) {
        if reply.reason == nil { self.pushCount += 1 }
        self.refused.append(PushReply(reply.address, reply.apnsID, refused: .serviceUnavailable))
    }
}
