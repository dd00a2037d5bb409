import Foundation

/// What wakes the thread of a test: the store is done, or something was let out.
///
/// `@unchecked Sendable`: `condition` guards every field.
final class Bell: @unchecked Sendable {
    private let condition = NSCondition()
    private var isRung = false
    private var isDelivered = false
    private var droppedEventsCount = 0
    private var failureTexts: [String] = []

    /// The engine is to be stepped.
    func ring() { self.change { $0.isRung = true } }

    /// Something lies in the mailbox of the loop.
    func deliver() { self.change { $0.isDelivered = true } }

    /// The history dropped events.
    func drop(_ count: Int) { self.change { $0.droppedEventsCount += count } }

    /// The engine said that its store has failed.
    func fail(_ message: String) { self.change { $0.failureTexts.append(message) } }

    /// How many events the history dropped.
    var droppedEvents: Int { self.condition.withLock { self.droppedEventsCount } }

    /// What the engine said of its store, once for each time it said so.
    var failures: [String] { self.condition.withLock { self.failureTexts } }

    /// Waits until something happens.
    ///
    /// - Returns: whether the engine is to be stepped; nil when nothing happened until `limit`.
    func wait(until limit: Date) -> Bool? {
        self.condition.withLock {
            while !self.isRung, !self.isDelivered {
                guard self.condition.wait(until: limit) else { return nil }
            }
            defer { (self.isRung, self.isDelivered) = (false, false) }
            return self.isRung
        }
    }

    private func change(_ body: (Bell) -> Void) {
        self.condition.withLock {
            body(self)
            self.condition.broadcast()
        }
    }
}
