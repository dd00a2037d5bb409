import DeviceEngine

/// Where a group goes once nothing of it can be lost: its effects to the loops, the rest to the history.
package struct GroupOutlet: Sendable {
    /// By loop number.
    package let loops: [LoopMailbox]
    package let history: any HistoryOutlet

    package init(loops: [LoopMailbox], history: any HistoryOutlet) {
        self.loops = loops
        self.history = history
    }

    package func makeGroup() -> StepGroup { StepGroup(loopCount: self.loops.count) }

    /// Lets out everything of a group, which is empty afterwards.
    package func release(_ group: StepGroup) {
        for loop in self.loops.indices where !group.effects[loop].isEmpty {
            self.loops[loop].deliver(&group.effects[loop])
        }
        if !group.history.isEmpty { self.history.submit(&group.history) }
        group.records.removeAll()
        group.arrivals.removeAll(keepingCapacity: true)
        group.hasTopicList = false
    }
}
