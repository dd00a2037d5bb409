import Policy

/// When something of the store's devices is due: this gateway does it, unless another one is faster.
struct DueDriver {
    /// The most moments that are kept; the latest are left to the view of each second.
    private static let momentsMax = 4096

    /// Moments at which something is due: a binary heap, the earliest first.
    private var moments: [Instant] = []
    /// A transaction does what is due.
    var isOpen = false
    /// A second has passed, or there was more than a transaction takes: look, whatever is known.
    var isForced = true

    /// Nothing is known.
    init() {}

    /// The earliest moment that is known.
    var next: Instant? { self.moments.first }

    func isDue(at now: Instant) -> Bool {
        !self.isOpen && (self.isForced || self.next.map { $0 <= now } ?? false)
    }

    /// Something will be due.
    mutating func note(_ moment: Instant) {
        guard moment != self.moments.first, self.moments.count < Self.momentsMax else { return }
        self.moments.append(moment)
        var place = self.moments.count - 1
        while place > 0, self.moments[place] < self.moments[(place - 1) / 2] {
            self.moments.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    /// A transaction begins that does what is due.
    mutating func begun() {
        self.isOpen = true
        self.isForced = false
    }

    /// A transaction has ended, and what was due by `now` is done, unless others do it.
    mutating func ended(at now: Instant?, hasMore: Bool) {
        self.isOpen = false
        if hasMore { self.isForced = true }
        guard let now else { return }
        while let first = self.moments.first, first <= now { self.dropFirst() }
    }

    private mutating func dropFirst() {
        let last = self.moments.removeLast()
        guard !self.moments.isEmpty else { return }
        self.moments[0] = last
        var place = 0
        while true {
            var child = place * 2 + 1
            guard child < self.moments.count else { return }
            if child + 1 < self.moments.count, self.moments[child + 1] < self.moments[child] { child += 1 }
            guard self.moments[child] < self.moments[place] else { return }
            self.moments.swapAt(place, child)
            place = child
        }
    }
}
