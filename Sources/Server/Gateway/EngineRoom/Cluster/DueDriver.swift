import Policy
import Wire

/// When something of the store's devices is due: this gateway does it, unless another one is faster.
struct DueDriver {
    /// The most moments that are kept; the latest are left to the view of each second.
    private static let momentsMax = 4096

    /// Moments at which something is due.
    private var moments = MomentQueue<Void>()
    /// A transaction does what is due.
    var isOpen = false
    /// A second has passed, or there was more than a transaction takes: look, whatever is known.
    var isForced = true

    /// Nothing is known.
    init() {}

    /// The earliest moment that is known.
    var next: Instant? { self.moments.first.map { Instant(milliseconds: $0.moment) } }

    func isDue(at now: Instant) -> Bool {
        !self.isOpen && (self.isForced || self.next.map { $0 <= now } ?? false)
    }

    /// Something will be due.
    mutating func note(_ moment: Instant) {
        guard moment != self.next, self.moments.count < Self.momentsMax else { return }
        self.moments.insert((), at: moment.milliseconds)
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
        while self.moments.popDue(now.milliseconds) != nil {}
    }
}
