extension Array {
    /// The elements of which there is most, at most `countMax`, that with the most first: one pass, with a few steps of
    /// a heap for each.
    package consuming func most(_ countMax: Int, by amount: (Element) -> Int) -> [Element] {
        guard countMax > 0 else { return [] }
        // The least of those that are listed is first: the one to leave for a greater one.
        var heap: [(amount: Int, place: Int)] = []
        for place in self.indices {
            let amount = amount(self[place])
            if heap.count < countMax {
                heap.append((amount, place))
                var child = heap.count - 1
                while child > 0, heap[child].amount < heap[(child - 1) >> 1].amount {
                    heap.swapAt(child, (child - 1) >> 1)
                    child = (child - 1) >> 1
                }
            } else if amount > heap[0].amount {
                heap[0] = (amount, place)
                var parent = 0
                while true {
                    var least = parent
                    for child in parent * 2 + 1...parent * 2 + 2
                    where child < heap.count && heap[child].amount < heap[least].amount {
                        least = child
                    }
                    guard least != parent else { break }
                    heap.swapAt(parent, least)
                    parent = least
                }
            }
        }
        return heap.sorted { ($1.amount, $0.place) < ($0.amount, $1.place) }.map { self[$0.place] }
    }
}
