/// Which device is due next: a binary heap in which every device stands at most once.
///
/// Devices are numbered from 0; of those due at the same moment the lowest number comes first.
struct DueHeap {
    private var heap: [Int] = []
    /// Each device's place in `heap`, or nil when it is not due.
    private var places: [Int?] = []
    private var moments: [Instant] = []

    /// The device that is due first, and when.
    var first: (device: Int, moment: Instant)? {
        self.heap.first.map { ($0, self.moments[$0]) }
    }

    /// Makes room for one more device, which is not due.
    mutating func addDevice() {
        self.places.append(nil)
        self.moments.append(.distantFuture)
    }

    /// Says when `device` is due; nil when it is not.
    mutating func schedule(_ device: Int, at moment: Instant?) {
        guard let moment else { return self.remove(device) }
        self.moments[device] = moment
        let place: Int
        if let known = self.places[device] {
            place = known
        } else {
            place = self.heap.count
            self.heap.append(device)
            self.places[device] = place
        }
        self.siftDown(self.siftUp(place))
    }

    private mutating func remove(_ device: Int) {
        guard let place = self.places[device] else { return }
        self.swap(place, self.heap.count - 1)
        self.heap.removeLast()
        self.places[device] = nil
        if place < self.heap.count { self.siftDown(self.siftUp(place)) }
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        let (left, right) = (self.heap[left], self.heap[right])
        return (self.moments[left], left) < (self.moments[right], right)
    }

    private mutating func swap(_ left: Int, _ right: Int) {
        self.heap.swapAt(left, right)
        self.places[self.heap[left]] = left
        self.places[self.heap[right]] = right
    }

    private mutating func siftUp(_ start: Int) -> Int {
        var place = start
        while place > 0, self.isBefore(place, (place - 1) / 2) {
            self.swap(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
        return place
    }

    private mutating func siftDown(_ start: Int) {
        var place = start
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < self.heap.count && self.isBefore(child, least) {
                least = child
            }
            guard least != place else { return }
            self.swap(place, least)
            place = least
        }
    }
}
