package import Engine
import Platform
import Synchronization

/// Where the engine and the loops leave what happened, and where those take it from who follow it.
///
/// Whoever leaves something waits for nobody: who follows too slowly misses what there is no room for. While nobody
/// follows, nothing is kept. It is `Sendable` without the compiler's proof: `monitor` guards every field that changes.
package final class EventDesk: @unchecked Sendable {
    /// The most events handed over at once, so that whoever leaves some hardly waits.
    private static let takenMax = 256

    private enum Entry {
        case event(WatchedEvent)
        /// So many had no room before they came here.
        case missed(Int)
    }

    private let monitor = Monitor()
    /// The latest entries, each at its number modulo `heldMax`.
    private var entries: [Entry] = []
    /// The number of the entry to come.
    private var end = 0
    /// Everybody who follows, by number.
    private var followers: [Int: Follower] = [:]
    private var lastFollower = 0
    private let watching = Atomic(false)
    private let readers = Atomic(0)
    private let readersMax: Int
    private let heldMax: Int

    private struct Follower {
        let ring: @Sendable () -> Void
        /// The number of the entry it takes next.
        var next: Int
        /// Whether a ring told of something that was not taken yet.
        var isRung = false
    }

    /// - Parameters:
    ///   - readersMax: the most streams that are open at once.
    ///   - heldMax: the most events that wait for those who follow.
    package init(
        readersMax: Int = GatewayLimits().eventStreamsMax,
        heldMax: Int = GatewayLimits().eventsHeldMax
    ) {
        self.readersMax = readersMax
        self.heldMax = max(1, heldMax)
    }

    // MARK: Leaving

    /// Whether anybody follows, so that an event is worth its while.
    package var isWatched: Bool { self.watching.load(ordering: .relaxed) }

    /// Takes events, which are empty afterwards.
    package func take(_ events: inout WatchedEvents) {
        let rings = self.monitor.withLock {
            guard !self.followers.isEmpty else { return [@Sendable () -> Void]() }
            for event in events.events { self.append(.event(event)) }
            if events.missed > 0 { self.append(.missed(events.missed)) }
            return self.ringsDue()
        }
        events.removeAll()
        for ring in rings { ring() }
    }

    /// Takes one event.
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

    private func ringsDue() -> [@Sendable () -> Void] {
        var rings: [@Sendable () -> Void] = []
        for (number, follower) in self.followers where !follower.isRung {
            self.followers[number]?.isRung = true
            rings.append(follower.ring)
        }
        return rings
    }

    // MARK: Following

    /// One more stream is open.
    ///
    /// - Returns: false when there are as many as there may be.
    package func readerCame() -> Bool {
        let count = self.readers.add(1, ordering: .relaxed).newValue
        if count > self.readersMax { self.readerWent() }
        return count <= self.readersMax
    }

    /// The reader of a stream has gone.
    package func readerWent() {
        self.readers.subtract(1, ordering: .relaxed)
    }

    /// Somebody follows what happens from now on.
    ///
    /// - Parameter ring: called, on whatever thread, when there is something again after everything was taken.
    /// - Returns: the number to take events by, and to leave by.
    package func follow(ring: @escaping @Sendable () -> Void) -> Int {
        self.monitor.withLock {
            self.lastFollower += 1
            // What was left before is not for it.
            if self.followers.isEmpty { (self.entries, self.end) = ([], 0) }
            self.followers[self.lastFollower] = Follower(ring: ring, next: self.end)
            self.watching.store(true, ordering: .relaxed)
            return self.lastFollower
        }
    }

    /// Somebody follows no more.
    package func leave(_ number: Int) {
        self.monitor.withLock {
            self.followers[number] = nil
            guard self.followers.isEmpty else { return }
            self.entries = []
            self.watching.store(false, ordering: .relaxed)
        }
    }

    /// Hands over what one who follows has not taken yet, or a part of it.
    ///
    /// - Returns: how many events were missed before those, and whether that was all for now: `ring` is called once
    ///   there is something again.
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
            if isAll { follower.isRung = false }
            return (missed, isAll)
        }
    }
}
