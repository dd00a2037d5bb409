package import Engine
import Platform
import Synchronization
package import Wire

/// The buffer between the engine and the loops, which publish events, and the followers, which take them.
///
/// Publishers never wait for a follower. A follower that is too slow misses events. Without followers, no events are
/// kept. The class is `@unchecked Sendable`: `monitor` guards every field that changes.
package final class EventService: @unchecked Sendable {
    /// The maximum number of entries taken in one call. The limit keeps the time short for which publishers wait for
    /// the lock.
    private static let takenMax = 256

    private enum Entry {
        case event(WatchedEvent)
        /// The number of events that were dropped before they were published.
        case missed(Int)
    }

    private let monitor = Monitor()
    /// The latest entries. Each has the index of its number modulo `heldMax`.
    private var entries: [Entry] = []
    /// The number of the next entry.
    private var end = 0
    /// The followers by number.
    private var followers: [Int: Follower] = [:]
    private var lastFollower = 0
    private let watching = Atomic(false)
    /// The number of open event streams.
    package let readers: ReaderSlots
    private let heldMax: Int

    private struct Follower {
        let signal: @Sendable () -> Void
        /// The number of the entry that this follower takes next.
        var next: Int
        /// True if the follower was signaled and has not taken all entries since then.
        var isSignaled = false
    }

    /// - Parameters:
    ///   - readersMax: the maximum number of open event streams.
    ///   - heldMax: the maximum number of entries kept for followers.
    package init(
        readersMax: Int = GatewayLimits().eventStreamsMax,
        heldMax: Int = GatewayLimits().eventsHeldMax
    ) {
        self.readers = ReaderSlots(max: readersMax)
        self.heldMax = max(1, heldMax)
    }

    // MARK: Publishing

    /// True if there are followers. Only then do events need to be published.
    package var isWatched: Bool { self.watching.load(ordering: .relaxed) }

    /// Publishes events and empties the list.
    package func take(_ events: inout WatchedEvents) {
        let signals = self.monitor.withLock {
            guard !self.followers.isEmpty else { return [@Sendable () -> Void]() }
            for event in events.events { self.append(.event(event)) }
            if events.missed > 0 { self.append(.missed(events.missed)) }
            let due = self.followers.filter { !$0.value.isSignaled }
            for number in due.keys { self.followers[number]?.isSignaled = true }
            return due.values.map(\.signal)
        }
        events.removeAll()
        for signal in signals { signal() }
    }

    /// Publishes one event.
    package func take(_ event: WatchedEvent) {
        var events = WatchedEvents()
        events.append(event)
        self.take(&events)
    }

    private func append(_ entry: Entry) {
        if self.entries.count < self.heldMax {
            self.entries.append(entry)
        } else {
            self.entries[self.end % self.heldMax] = entry
        }
        self.end += 1
    }

    // MARK: Following

    /// Adds a follower of all events from now on.
    ///
    /// - Parameter signal: called on a publisher's thread for the first entry after the follower has taken all entries.
    /// - Returns: the number of the follower, for `take` and `leave`.
    package func follow(signal: @escaping @Sendable () -> Void) -> Int {
        self.monitor.withLock {
            self.lastFollower += 1
            // The entries before this follower are not needed.
            if self.followers.isEmpty { (self.entries, self.end) = ([], 0) }
            self.followers[self.lastFollower] = Follower(signal: signal, next: self.end)
            self.watching.store(true, ordering: .relaxed)
            return self.lastFollower
        }
    }

    /// Removes a follower.
    package func leave(_ number: Int) {
        self.monitor.withLock {
            self.followers[number] = nil
            guard self.followers.isEmpty else { return }
            self.entries = []
            self.watching.store(false, ordering: .relaxed)
        }
    }

    /// Appends the next events of a follower to `events`.
    ///
    /// - Returns: the number of events that the follower missed, and true if it has now taken all entries. If it has,
    ///   `signal` is called for the next entry.
    package func take(_ number: Int, into events: inout [WatchedEvent]) -> (missed: Int, isAll: Bool) {
        self.monitor.withLock {
            guard var follower = self.followers[number] else { return (0, true) }
            defer { self.followers[number] = follower }
            var missed = 0
            let first = self.end - self.entries.count
            if follower.next < first {
                missed += first - follower.next
                follower.next = first
            }
            for _ in 0..<Self.takenMax where follower.next < self.end {
                let place = self.entries.count < self.heldMax ? follower.next - first : follower.next % self.heldMax
                switch self.entries[place] {
                case .event(let event): events.append(event)
                case .missed(let count): missed += count
                }
                follower.next += 1
            }
            let isAll = follower.next == self.end
            if isAll { follower.isSignaled = false }
            return (missed, isAll)
        }
    }
}

/// A filter for the events of a stream.
package struct EventFilter: Hashable, Sendable {
    /// The topic; nil for all topics.
    package var topic: String?
    /// The device token in lowercase hexadecimal digits; nil for all devices.
    package var device: String?
    /// The permitted words, one of which must be the event's kind, disposition, outcome or reason; empty for all
    /// events.
    package var outcomes: Set<String> = []

    package init() {}

    package func takes(_ event: LiveEvent) -> Bool {
        if let topic = self.topic, event.topic != topic { return false }
        if let device = self.device, event.device != device { return false }
        guard !self.outcomes.isEmpty else { return true }
        let words = [event.kind.rawValue, event.disposition, event.outcome, event.reason]
        return words.contains { $0.map { self.outcomes.contains($0) } ?? false }
    }
}
