/// What is to happen at moments of virtual time: the first first, and of one moment in the order in which it was
/// planned.
package struct EventCalendar {
    private struct Entry {
        let at: Int64
        let number: UInt64
        let event: () -> Void

        func isBefore(_ other: Entry) -> Bool { (self.at, self.number) < (other.at, other.number) }
    }

    /// A heap: no entry is before the one at half its place.
    private var entries: [Entry] = []
    private var planned: UInt64 = 0

    package init() {}

    /// The moment of the first event; nil when nothing is planned.
    package var firstAt: Int64? { self.entries.first?.at }

    package mutating func plan(at moment: Int64, _ event: @escaping () -> Void) {
        self.planned += 1
        self.entries.append(Entry(at: moment, number: self.planned, event: event))
        var place = self.entries.count - 1
        while place > 0, self.entries[place].isBefore(self.entries[(place - 1) / 2]) {
            self.entries.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    /// Takes the first event.
    package mutating func popFirst() -> (at: Int64, event: () -> Void)? {
        guard let first = self.entries.first else { return nil }
        let last = self.entries.removeLast()
        guard !self.entries.isEmpty else { return (first.at, first.event) }
        self.entries[0] = last
        var place = 0
        while true {
            var next = place
            for child in [2 * place + 1, 2 * place + 2] where child < self.entries.count {
                if self.entries[child].isBefore(self.entries[next]) { next = child }
            }
            guard next != place else { return (first.at, first.event) }
            self.entries.swapAt(place, next)
            place = next
        }
    }
}
