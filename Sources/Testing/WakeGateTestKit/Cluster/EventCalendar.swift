import Wire

/// What is to happen at moments of virtual time: the first first, and of one moment in the order in which it was
/// planned.
package struct EventCalendar {
    private var queue = MomentQueue<() -> Void>()

    package init() {}

    /// The moment of the first event; nil when nothing is planned.
    package var firstAt: Int64? { self.queue.first?.moment }

    package mutating func plan(at moment: Int64, _ event: @escaping () -> Void) {
        self.queue.insert(event, at: moment)
    }

    /// Takes the first event.
    package mutating func popFirst() -> (at: Int64, event: () -> Void)? {
        self.queue.popDue(.max).map { ($0.moment, $0.value) }
    }
}
