import DeviceEngine

/// Where a group goes once nothing of it can be lost: its effects to the loops and webhooks, the rest to the history.
package struct GroupOutlet: Sendable {
    package let mailboxes: PerOutlet<LoopMailbox>
    package let history: any HistoryOutlet

    package init(mailboxes: PerOutlet<LoopMailbox>, history: any HistoryOutlet) {
        self.mailboxes = mailboxes
        self.history = history
    }

    package func makeGroup() -> StepGroup { StepGroup(loopCount: self.mailboxes.loops.count) }

    /// Lets out everything of a group, which is empty afterwards.
    package func release(_ group: StepGroup) {
        for loop in self.mailboxes.loops.indices where !group.effects.loops[loop].isEmpty {
            self.mailboxes.loops[loop].deliver(&group.effects.loops[loop])
        }
        if !group.effects.webhooks.isEmpty { self.mailboxes.webhooks.deliver(&group.effects.webhooks) }
        if !group.history.isEmpty { self.history.submit(&group.history) }
        group.records.removeAll()
        group.arrivals.removeAll(keepingCapacity: true)
        group.hasTopicList = false
    }
}
