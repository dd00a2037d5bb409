/// When the next of many things is due: one moment each, in milliseconds on any one clock.
package struct MomentHeap<Key: Hashable & Sendable>: Sendable {
    private struct Entry {
        let moment: Int64
        let key: Key
    }

    /// A binary heap, the earliest first; entries that no longer say what `moments` does are passed over.
    private var entries: [Entry] = []
    private var moments: [Key: Int64] = [:]

    package init() {}

    /// The earliest moment; nil when nothing is due ever.
    package var first: Int64? {
        mutating get {
            self.dropStale()
            return self.entries.first?.moment
        }
    }

    /// Changes the moment of a key; nil takes it out.
    package mutating func set(_ key: Key, to moment: Int64?) {
        guard self.moments[key] != moment else { return }
        self.moments[key] = moment
        guard let moment else { return }
        // Keys that are moved again and again leave entries behind.
        if self.entries.count > 2 * self.moments.count + 64 {
            self.compact()
        } else {
            self.push(Entry(moment: moment, key: key))
        }
    }

    /// Takes out a key that is due at `now`, the earliest first; nil when none is.
    package mutating func popDue(_ now: Int64) -> Key? {
        guard let first = self.first, first <= now else { return nil }
        let key = self.entries[0].key
        self.moments[key] = nil
        self.removeFirst()
        return key
    }

    private mutating func dropStale() {
        while let first = self.entries.first, self.moments[first.key] != first.moment { self.removeFirst() }
    }

    private mutating func compact() {
        // Sorted is a heap, too.
        self.entries = self.moments.map { Entry(moment: $0.value, key: $0.key) }.sorted { $0.moment < $1.moment }
    }

    private mutating func push(_ entry: Entry) {
        self.entries.append(entry)
        var index = self.entries.count - 1
        while index > 0, self.entries[index].moment < self.entries[(index - 1) / 2].moment {
            self.entries.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func removeFirst() {
        self.entries.swapAt(0, self.entries.count - 1)
        self.entries.removeLast()
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < self.entries.count {
                if self.entries[child].moment < self.entries[least].moment { least = child }
            }
            guard least != index else { return }
            self.entries.swapAt(index, least)
            index = least
        }
    }
}
