/// What fault rules have put off on one loop, the earliest first; of the same moment in the order in which it came.
package struct FaultAgenda<Item> {
    /// The most that is put off at a time; a push of the largest size each, it is 50 MB.
    package static var itemsMax: Int { 10_000 }

    private struct Entry {
        let dueAt: Int64
        let number: UInt64
        let item: Item

        static func < (left: Entry, right: Entry) -> Bool {
            (left.dueAt, left.number) < (right.dueAt, right.number)
        }
    }

    /// A binary heap.
    private var entries: [Entry] = []
    private var lastNumber: UInt64 = 0

    package init() {}

    /// When the first is due; nil when there is none.
    package var nextDueAt: Int64? { self.entries.first?.dueAt }

    /// Puts an item off.
    ///
    /// - `dueAt`: any clock's milliseconds, the same for all.
    /// - Returns: false when there is no room.
    package mutating func add(_ item: Item, dueAt: Int64) -> Bool {
        guard self.entries.count < Self.itemsMax else { return false }
        self.lastNumber += 1
        self.entries.append(Entry(dueAt: dueAt, number: self.lastNumber, item: item))
        var child = self.entries.count - 1
        while child > 0, self.entries[child] < self.entries[(child - 1) / 2] {
            self.entries.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
        return true
    }

    /// Forgets every item that `isObsolete` says is.
    package mutating func remove(where isObsolete: (Item) -> Bool) {
        // In order they are a heap, too.
        self.entries = self.entries.filter { !isObsolete($0.item) }.sorted { $0 < $1 }
    }

    /// Takes the first, if it is due.
    package mutating func takeDue(now: Int64) -> Item? {
        guard let first = self.entries.first, first.dueAt <= now else { return nil }
        self.entries.swapAt(0, self.entries.count - 1)
        self.entries.removeLast()
        var parent = 0
        while parent * 2 + 1 < self.entries.count {
            var child = parent * 2 + 1
            if child + 1 < self.entries.count, self.entries[child + 1] < self.entries[child] { child += 1 }
            guard self.entries[child] < self.entries[parent] else { break }
            self.entries.swapAt(child, parent)
            parent = child
        }
        return first.item
    }
}
