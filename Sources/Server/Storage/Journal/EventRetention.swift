import Synchronization

/// What a store and the history know of each other: up to which record the history has made events durable, and how
/// much the store keeps until it has. Safe to use from several threads.
package final class EventRetention: Sendable {
    private let durable: Atomic<UInt64>
    private let held = Atomic(0)
    private let firstRow = Atomic<Int64>(0)
    private let givenUp = Atomic(0)

    /// - Parameter durableSequence: the record up to which the history is durable at the start; 0 for none.
    package init(durableSequence: UInt64 = 0) {
        self.durable = Atomic(durableSequence)
    }

    /// The events of all records up to this one are durable in the history: the store may let go of them.
    package var durableSequence: UInt64 { self.durable.load(ordering: .acquiring) }

    /// The history has made the events durable of all records up to `sequence`; less than before changes nothing.
    package func advance(to sequence: UInt64) {
        self.durable.max(sequence, ordering: .acquiringAndReleasing)
    }

    /// The bytes that the store keeps for the history.
    package var heldBytes: Int { self.held.load(ordering: .relaxed) }

    /// The first row that the store keeps for the history; 0 while that is not known.
    package var firstHeldRow: Int64 { self.firstRow.load(ordering: .relaxed) }

    /// The store keeps so many bytes for the history, from a row on.
    package func hold(bytes: Int, from row: Int64) {
        self.held.store(bytes, ordering: .relaxed)
        self.firstRow.store(row, ordering: .relaxed)
    }

    /// The store has let go of so many events that are not durable in the history, as it keeps no more.
    package func giveUp(events: Int) { self.givenUp.add(events, ordering: .relaxed) }

    /// How many events were given up since the last call.
    package func takeGivenUp() -> Int { self.givenUp.exchange(0, ordering: .relaxed) }
}
