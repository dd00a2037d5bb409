/// Transfers by the moment at which they are looked at next: a binary heap, the earliest first.
///
/// An entry may be outdated; whoever takes one out looks at the transfer itself.
struct MomentQueue {
    struct Entry: Hashable {
        let moment: Int64
        let id: TransferID
    }

    private var entries: [Entry] = []

    var first: Int64? { self.entries.first?.moment }
    var count: Int { self.entries.count }

    mutating func reserve(_ count: Int) {
        self.entries.reserveCapacity(count)
    }

    mutating func insert(_ id: TransferID, at moment: Int64) {
        self.entries.append(Entry(moment: moment, id: id))
        var index = self.entries.count - 1
        while index > 0, self.entries[index].moment < self.entries[(index - 1) / 2].moment {
            self.entries.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    /// Takes out the earliest entry that is due; nil when none is.
    mutating func popDue(_ now: Int64) -> Entry? {
        guard let first = self.entries.first, first.moment <= now else { return nil }
        self.entries.swapAt(0, self.entries.count - 1)
        self.entries.removeLast()
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < self.entries.count {
                if self.entries[child].moment < self.entries[least].moment { least = child }
            }
            guard least != index else { return first }
            self.entries.swapAt(index, least)
            index = least
        }
    }

    /// Keeps the entries that are still true.
    mutating func compact(_ isTrue: (Entry) -> Bool) {
        // Sorted is a heap, too.
        self.entries = self.entries.filter(isTrue).sorted { $0.moment < $1.moment }
    }
}
