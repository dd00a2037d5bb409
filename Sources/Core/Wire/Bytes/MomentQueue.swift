/// A priority queue of values by due time. Values with the same time leave the queue in the order of insertion.
///
/// All times of a queue are milliseconds on the same clock. The queue is a binary heap.
@usableFromInline
package struct MomentQueue<Value> {
    @usableFromInline
    package struct Entry {
        @usableFromInline
        package let moment: Int64
        @usableFromInline let number: UInt64
        @usableFromInline
        package let value: Value

        @inlinable
        init(moment: Int64, number: UInt64, value: Value) {
            self.moment = moment
            self.number = number
            self.value = value
        }

        @inlinable
        func isBefore(_ other: Entry) -> Bool { (self.moment, self.number) < (other.moment, other.number) }
    }

    @usableFromInline var entries: [Entry] = []
    @usableFromInline var insertedCount: UInt64 = 0

    @inlinable
    package init() {}

    /// The earliest entry; nil if the queue is empty.
    @inlinable
    package var first: Entry? { self.entries.first }

    @inlinable
    package var count: Int { self.entries.count }

    @inlinable
    package mutating func insert(_ value: Value, at moment: Int64) {
        self.insertedCount += 1
        self.entries.append(Entry(moment: moment, number: self.insertedCount, value: value))
        var place = self.entries.count - 1
        while place > 0, self.entries[place].isBefore(self.entries[(place - 1) / 2]) {
            self.entries.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    /// Removes and returns the earliest entry if its time is `now` or earlier.
    @inlinable
    package mutating func popDue(_ now: Int64) -> Entry? {
        guard let first = self.entries.first, first.moment <= now else { return nil }
        self.entries.swapAt(0, self.entries.count - 1)
        self.entries.removeLast()
        var place = 0
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < self.entries.count {
                if self.entries[child].isBefore(self.entries[least]) { least = child }
            }
            guard least != place else { return first }
            self.entries.swapAt(place, least)
            place = least
        }
    }

    /// Removes every entry for which `isObsolete` returns true.
    @inlinable
    package mutating func removeAll(where isObsolete: (Entry) -> Bool) {
        // A sorted array is a heap.
        self.entries = self.entries.filter { !isObsolete($0) }.sorted { $0.isBefore($1) }
    }
}

extension Array {
    /// Returns the number of elements at the beginning for which `isBefore` is true, by a binary search. It must be
    /// false for all later elements.
    @inlinable
    package func countAtStart(where isBefore: (Element) -> Bool) -> Int {
        var (low, high) = (0, self.count)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension MomentQueue.Entry: Sendable where Value: Sendable {}
extension MomentQueue: Sendable where Value: Sendable {}
