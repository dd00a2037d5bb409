import Dispatch
import Engine
import Platform
import Synchronization
package import Wire

/// Reports events to a function in this process, on a serial queue.
///
/// A slow function blocks no other thread. Events that exceed the rate limit, or for which the function is too slow,
/// are dropped, and their number is reported. The class is `@unchecked Sendable`: only `queue` uses the fields that
/// change.
package final class EventFollower: @unchecked Sendable {
    /// A function that receives a report. It returns false if the report must be repeated.
    package typealias Tell = @Sendable (LiveNews) -> Bool

    /// The maximum number of events reported per second. People cannot read more, and the reports would waste processor
    /// time.
    package static let newsPerSecondMax = 1000

    private let service: EventService
    private let tell: Tell
    private let queue = DispatchQueue(label: "events")
    private let isStopping = Atomic(false)
    /// The number of the follower at the service; nil once it has left.
    private var number: Int?
    private var events: [WatchedEvent] = []
    /// The end of the current second, in milliseconds of the monotonic clock, and the number of events in it.
    private var secondEnds: Int64 = .min
    private var sentCount = 0
    /// The number of dropped events that are not reported yet.
    private var missed = 0
    /// True if a report of dropped events is due at the end of the current second.
    private var isReportDue = false

    /// Creates a follower that reports all events from now on.
    package init(_ service: EventService, _ tell: @escaping Tell) {
        self.service = service
        self.tell = tell
        self.queue.sync {
            self.number = service.follow { [weak self] in self?.queue.async { [weak self] in self?.report() } }
        }
    }

    /// Reports the remaining events, and waits for the end of the last report. If a report is not accepted, the events
    /// after it are dropped.
    package func stop() {
        self.isStopping.store(true, ordering: .relaxed)
        self.queue.sync {
            self.report()
            if self.number != nil { _ = self.reportMissed() }
            self.leave()
        }
    }

    private func leave() {
        if let number = self.number { self.service.leave(number) }
        self.number = nil
    }

    // MARK: On the queue

    private func report() {
        var isAll = false
        while !isAll, let number = self.number {
            let taken = self.service.take(number, into: &self.events)
            isAll = taken.isAll
            self.missed += taken.missed
            for watched in self.events {
                guard let event = LiveEvent(watched), self.mayReport() else { continue }
                guard self.reportMissed(), self.say(.event(event)) else {
                    // The gateway stops, and the remaining events are dropped.
                    return self.leave()
                }
            }
            self.events.removeAll(keepingCapacity: true)
        }
        guard self.missed > 0, !self.isReportDue else { return }
        self.isReportDue = true
        let milliseconds = max(0, self.secondEnds - SystemClock.monotonic)
        self.queue.asyncAfter(deadline: .now() + .milliseconds(Int(milliseconds))) { [weak self] in
            self?.isReportDue = false
            _ = self?.reportMissed()
        }
    }

    /// Counts an event.
    ///
    /// - Returns: false if the event exceeds the limit and is dropped.
    private func mayReport() -> Bool {
        let now = SystemClock.monotonic
        if now >= self.secondEnds { (self.secondEnds, self.sentCount) = (now + 1000, 0) }
        self.sentCount += 1
        if self.sentCount > Self.newsPerSecondMax { self.missed += 1 }
        return self.sentCount <= Self.newsPerSecondMax
    }

    /// Reports the number of dropped events, if there are any.
    ///
    /// - Returns: false if the gateway stops and the report was not accepted.
    private func reportMissed() -> Bool {
        guard self.missed > 0 else { return true }
        defer { self.missed = 0 }
        return self.say(.missed(self.missed))
    }

    /// Repeats a report until it is accepted. While the gateway stops, reports only once.
    ///
    /// - Returns: false if the gateway stops and the report was not accepted.
    private func say(_ news: LiveNews) -> Bool {
        while true {
            let isLastTry = self.isStopping.load(ordering: .relaxed)
            if self.tell(news) { return true }
            if isLastTry { return false }
        }
    }
}
