import Synchronization

/// Shows a watchdog that a thread turns: one asks, and the thread answers in its next turn.
package final class Pulse: Sendable {
    private let asked = Atomic<UInt64>(0)
    private let answered = Atomic<UInt64>(0)

    package init() {}

    /// From the watchdog: asks anew. Whoever asks then has the thread make a turn.
    package func ask() {
        self.asked.add(1, ordering: .releasing)
    }

    /// From the watched thread, in each turn: a read and a write of memory.
    package func beat() {
        self.answered.store(self.asked.load(ordering: .acquiring), ordering: .releasing)
    }

    /// Whether there was a turn since it was last asked.
    package var isAnswered: Bool {
        self.answered.load(ordering: .acquiring) == self.asked.load(ordering: .relaxed)
    }
}
