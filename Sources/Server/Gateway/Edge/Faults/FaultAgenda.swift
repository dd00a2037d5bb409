import Wire

/// The items that fault rules have delayed on one loop, in order of their due time, then of arrival.
package struct FaultAgenda<Item> {
    /// The maximum number of delayed items. With pushes of the largest size, they use 50 MB.
    package static var itemsMax: Int { 10_000 }

    private var queue = MomentQueue<Item>()

    package init() {}

    /// The due time of the first item; nil if there is none.
    package var nextDueAt: Int64? { self.queue.first?.moment }

    /// Delays an item.
    ///
    /// - `dueAt`: milliseconds on any clock, the same for all items.
    /// - Returns: false if the agenda is full.
    package mutating func add(_ item: Item, dueAt: Int64) -> Bool {
        guard self.queue.count < Self.itemsMax else { return false }
        self.queue.insert(item, at: dueAt)
        return true
    }

    /// Removes every item for which `isObsolete` returns true.
    package mutating func remove(where isObsolete: (Item) -> Bool) {
        self.queue.removeAll { isObsolete($0.value) }
    }

    /// Removes and returns the first item if it is due.
    package mutating func takeDue(now: Int64) -> Item? { self.queue.popDue(now)?.value }
}
