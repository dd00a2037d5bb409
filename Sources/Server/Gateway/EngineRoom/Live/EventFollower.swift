import Engine
package import Platform
package import Wire

/// A thread that reports events to a function in this process.
///
/// A slow function blocks no other thread. Events that exceed the rate limit, or for which the function is too slow,
/// are dropped, and their number is reported. The class is `@unchecked Sendable`: `monitor` guards the fields that
/// change.
package final class EventFollower: @unchecked Sendable {
    /// A function that receives a report. It returns false if the report must be repeated.
    package typealias Tell = @Sendable (LiveNews) -> Bool

    /// The maximum number of events reported per second. People cannot read more, and the reports would waste processor
    /// time.
    package static let newsPerSecondMax = 1000

    private let service: EventService
    private let tell: Tell
    private let monitor = Monitor()
    private var isSignaled = false
    private var isStopping = false
    private var thread: NamedThread?

    /// Creates a follower that reports all events from now on.
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

    /// Reports the remaining events, ends the thread, and waits for its end. If a report is not accepted, the events
    /// after it are dropped.
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
                    guard pace.mayReport(at: SystemClock.monotonic) else { continue }
                    guard self.reportMissed(&pace), self.say(.event(event)) else {
                        // The thread is ending, and the remaining events are dropped.
                        return self.service.leave(number)
                    }
                }
                events.removeAll(keepingCapacity: true)
            }
            if isEnding || pace.isOver(at: SystemClock.monotonic) {
                guard self.reportMissed(&pace) else { break }
            }
            if isEnding { break }
        }
        self.service.leave(number)
    }

    /// Waits for events, at most until a time of the monotonic clock; nil for no limit.
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

    /// Reports the number of dropped events, if there are any.
    ///
    /// - Returns: false if the thread is ending and the report was not accepted.
    private func reportMissed(_ pace: inout Pace) -> Bool {
        guard pace.missed > 0 else { return true }
        defer { pace.missed = 0 }
        return self.say(.missed(pace.missed))
    }

    /// Repeats a report until it is accepted. While the thread is ending, reports only once.
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

/// The number of reported events in the current second, and the number of dropped events that are not reported yet.
private struct Pace {
    private(set) var secondEnds: Int64 = .min
    private var sentCount = 0
    var missed = 0

    /// Counts an event at a time of the monotonic clock.
    ///
    /// - Returns: false if the event exceeds the limit and is dropped.
    mutating func mayReport(at now: Int64) -> Bool {
        if now >= self.secondEnds { (self.secondEnds, self.sentCount) = (now + 1000, 0) }
        self.sentCount += 1
        if self.sentCount > EventFollower.newsPerSecondMax { self.missed += 1 }
        return self.sentCount <= EventFollower.newsPerSecondMax
    }

    func isOver(at now: Int64) -> Bool { now >= self.secondEnds }
}
