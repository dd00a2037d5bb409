import Wire

/// What fault rules have put off on one loop, the earliest first; of the same moment in the order in which it came.
package struct FaultAgenda<Item> {
    /// The most that is put off at a time; a push of the largest size each, it is 50 MB.
    package static var itemsMax: Int { 10_000 }

    private var queue = MomentQueue<Item>()

    package init() {}

    /// When the first is due; nil when there is none.
    package var nextDueAt: Int64? { self.queue.first?.moment }

    /// Puts an item off.
    ///
    /// - `dueAt`: any clock's milliseconds, the same for all.
    /// - Returns: false when there is no room.
    package mutating func add(_ item: Item, dueAt: Int64) -> Bool {
        guard self.queue.count < Self.itemsMax else { return false }
        self.queue.insert(item, at: dueAt)
        return true
    }

    /// Forgets every item that `isObsolete` says is.
    package mutating func remove(where isObsolete: (Item) -> Bool) {
        self.queue.removeAll { isObsolete($0.value) }
    }

    /// Takes the first, if it is due.
    package mutating func takeDue(now: Int64) -> Item? { self.queue.popDue(now)?.value }
}
