package import Engine
import Wire

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
