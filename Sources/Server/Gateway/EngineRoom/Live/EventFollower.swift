import Engine
package import Platform
package import Wire

/// Reports events to a function in this process, on a separate thread.
///
/// It blocks no other thread. Events beyond the rate limit, or that the receiver is too slow for, are counted and the
/// count is reported. The class is `@unchecked Sendable`: `monitor` guards the fields that change.
package final class EventFollower: @unchecked Sendable {
    /// A function that receives a report; returns false if the report could not be delivered and must be repeated.
    package typealias Tell = @Sendable (LiveNews) -> Bool

    /// The maximum number of reports per second. More could not be read, and would waste processor time.
    package static let newsPerSecondMax = 1000

    private let service: EventService
    private let tell: Tell
    private let monitor = Monitor()
    private var isSignaled = false
    private var isStopping = false
    private var thread: NamedThread?

    /// Creates a follower of events from now on.
    ///
    /// - Throws: `ThreadFailure` if the system cannot create its thread.
    package init(_ service: EventService, _ tell: @escaping Tell) throws(ThreadFailure) {
        self.service = service
        self.tell = tell
        let number = service.follow { [weak self] in self?.signal() }
        do throws(ThreadFailure) {
            self.thread = try NamedThread("events") { [self] in self.run(number) }
        } catch {
            service.leave(number)
            throw error
        }
    }

    /// Reports the remaining events if they are accepted, ends the thread, and waits for it.
    package func stop() {
        self.monitor.withLock {
            self.isStopping = true
            self.monitor.broadcast()
        }
        self.thread?.join()
    }

    private func signal() {
        self.monitor.withLock {
            self.isSignaled = true
            self.monitor.broadcast()
        }
    }

    private var isEnding: Bool { self.monitor.withLock { self.isStopping } }

    // MARK: The thread

    private func run(_ number: Int) {
        var pace = Pace()
        var events: [WatchedEvent] = []
        while true {
            let isEnding = self.wait(until: pace.missed > 0 ? pace.secondEnds : nil)
            var isAll = false
            while !isAll {
                let taken = self.service.take(number, into: &events)
                isAll = taken.isAll
                pace.missed += taken.missed
                for watched in events {
                    guard let event = LiveEvent(watched) else { continue }
                    guard pace.mayTell(at: SystemClock.monotonic) else { continue }
                    guard self.tellMissed(&pace), self.say(.event(event)) else {
                        // At the end, events that are not accepted are dropped.
                        return self.service.leave(number)
                    }
                }
                events.removeAll(keepingCapacity: true)
            }
            if isEnding || pace.isOver(at: SystemClock.monotonic) {
                guard self.tellMissed(&pace) else { break }
            }
            if isEnding { break }
        }
        self.service.leave(number)
    }

    /// Waits for events, or until this time.
    ///
    /// - Returns: true if the thread must end.
    private func wait(until moment: Int64?) -> Bool {
        self.monitor.withLock {
            while !self.isSignaled, !self.isStopping {
                if let moment {
                    guard self.monitor.wait(until: moment) else { break }
                } else {
                    self.monitor.wait()
                }
            }
            self.isSignaled = false
            return self.isStopping
        }
    }

    /// - Returns: false if the thread is ending and the report was not accepted.
    private func tellMissed(_ pace: inout Pace) -> Bool {
        guard pace.missed > 0 else { return true }
        defer { pace.missed = 0 }
        return self.say(.missed(pace.missed))
    }

    /// Repeats a report until it is accepted; at the end it is tried once.
    ///
    /// - Returns: false if the thread is ending and the report was not accepted.
    private func say(_ news: LiveNews) -> Bool {
        while true {
            let isLastTry = self.isEnding
            if self.tell(news) { return true }
            if isLastTry { return false }
        }
    }
}

/// The number of reports and of dropped events in the current second.
private struct Pace {
    private(set) var secondEnds: Int64 = .min
    private var sentCount = 0
    var missed = 0

    /// Counts a report at a time of the monotonic clock; returns false if it exceeds the limit.
    mutating func mayTell(at now: Int64) -> Bool {
        if now >= self.secondEnds { (self.secondEnds, self.sentCount) = (now + 1000, 0) }
        self.sentCount += 1
        if self.sentCount > EventFollower.newsPerSecondMax { self.missed += 1 }
        return self.sentCount <= EventFollower.newsPerSecondMax
    }

    func isOver(at now: Int64) -> Bool { now >= self.secondEnds }
}
