import Engine
package import Platform
package import Wire

/// Tells somebody in this process what happens, on a thread of its own.
///
/// Nobody waits for it: what comes faster than it may tell, or than it is taken, it counts, and tells how much that
/// was. It is `Sendable` without the compiler's proof: `monitor` guards what changes.
package final class EventFollower: @unchecked Sendable {
    /// Tells something; false when it could not be told for now, and is to be told again.
    package typealias Tell = @Sendable (LiveNews) -> Bool

    /// The most that is told in a second: nobody reads as much, and a processor has better things to do.
    package static let newsPerSecondMax = 1000

    private let desk: EventDesk
    private let tell: Tell
    private let monitor = Monitor()
    private var isRung = false
    private var isStopping = false
    private var thread: NamedThread?

    /// Follows what happens from now on.
    ///
    /// - Throws: `ThreadFailure` when the system has no room for its thread.
    package init(_ desk: EventDesk, _ tell: @escaping Tell) throws(ThreadFailure) {
        self.desk = desk
        self.tell = tell
        let number = desk.follow { [weak self] in self?.ring() }
        do throws(ThreadFailure) {
            self.thread = try NamedThread("events") { [self] in self.run(number) }
        } catch {
            desk.leave(number)
            throw error
        }
    }

    /// Ends the thread once it has told what there is, as far as that is taken, and waits for that.
    package func stop() {
        self.monitor.withLock {
            self.isStopping = true
            self.monitor.broadcast()
        }
        self.thread?.join()
    }

    private func ring() {
        self.monitor.withLock {
            self.isRung = true
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
                let taken = self.desk.take(number, into: &events)
                isAll = taken.isAll
                pace.missed += taken.missed
                for watched in events {
                    guard let event = LiveEvent(watched) else { continue }
                    guard pace.mayTell(at: SystemClock.monotonic) else { continue }
                    guard self.tellMissed(&pace), self.say(.event(event)) else {
                        // What nobody takes at the end is left.
                        return self.desk.leave(number)
                    }
                }
                events.removeAll(keepingCapacity: true)
            }
            if isEnding || pace.isOver(at: SystemClock.monotonic) {
                guard self.tellMissed(&pace) else { break }
            }
            if isEnding { break }
        }
        self.desk.leave(number)
    }

    /// Waits until there is something, or this moment has come.
    ///
    /// - Returns: whether the thread is to end.
    private func wait(until moment: Int64?) -> Bool {
        self.monitor.withLock {
            while !self.isRung, !self.isStopping {
                if let moment {
                    guard self.monitor.wait(until: moment) else { break }
                } else {
                    self.monitor.wait()
                }
            }
            self.isRung = false
            return self.isStopping
        }
    }

    /// - Returns: false when the end has come, and nobody takes anything.
    private func tellMissed(_ pace: inout Pace) -> Bool {
        guard pace.missed > 0 else { return true }
        defer { pace.missed = 0 }
        return self.say(.missed(pace.missed))
    }

    /// Tells something as soon as it is taken; at the end it is tried once.
    ///
    /// - Returns: false when the end has come, and it was not taken.
    private func say(_ news: LiveNews) -> Bool {
        while true {
            let isLastTry = self.isEnding
            if self.tell(news) { return true }
            if isLastTry { return false }
        }
    }
}

/// How much was told in this second, and what was not.
private struct Pace {
    private(set) var secondEnds: Int64 = .min
    private var told = 0
    var missed = 0

    /// Counts something that is to be told at a moment of the monotonic clock; false when it is one too many.
    mutating func mayTell(at now: Int64) -> Bool {
        if now >= self.secondEnds { (self.secondEnds, self.told) = (now + 1000, 0) }
        self.told += 1
        if self.told > EventFollower.newsPerSecondMax { self.missed += 1 }
        return self.told <= EventFollower.newsPerSecondMax
    }

    func isOver(at now: Int64) -> Bool { now >= self.secondEnds }
}
