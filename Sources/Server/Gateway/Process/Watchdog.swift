package import Platform

/// Says again and again that the gateway is alive, as long as every watched thread turns.
///
/// A thread that is stuck makes it fall silent, and the service manager then ends the process: a gateway that accepts
/// connections and answers nobody is worse than one that starts again. Waiting for the disk is no fault of a thread:
/// the thread that commits is not watched, since a new process would wait for the same disk.
package final class Watchdog: Sendable {
    /// A thread, and what has it make a turn.
    package struct Watched: Sendable {
        let pulse: Pulse
        let wake: @Sendable () -> Void

        package init(_ pulse: Pulse, wake: @escaping @Sendable () -> Void) {
            self.pulse = pulse
            self.wake = wake
        }
    }

    /// How many times it looks in the time within which the manager wants to hear of it.
    private static let looksPerInterval: UInt64 = 4
    /// How long it waits for the next look at most, in microseconds.
    private static let intervalMax: UInt64 = 3_600_000_000

    private let stopping = Latch()
    private let thread: NamedThread

    /// Begins to watch.
    ///
    /// - `microseconds`: how long the manager waits before it ends the process.
    /// - `tell`: called on a thread of its own when every thread has made a turn since it was last called.
    /// - Throws: `ThreadFailure` when the system has no room for its thread.
    package init(
        microseconds: UInt64,
        _ watched: [Watched],
        tell: @escaping @Sendable () -> Void
    ) throws(ThreadFailure) {
        let stopping = self.stopping
        let interval = Int64(min(max(1, microseconds / Self.looksPerInterval), Self.intervalMax)) * 1000
        self.thread = try NamedThread("watchdog") {
            repeat {
                if Self.look(at: watched) { tell() }
            } while !stopping.wait(untilNanoseconds: SystemClock.monotonicNanoseconds + interval)
        }
    }

    /// Ends it, and waits for that.
    package func stop() {
        self.stopping.open()
        self.thread.join()
    }

    /// Asks every thread anew, unless one has not made a turn since it was last asked.
    ///
    /// - Returns: whether all have.
    package static func look(at watched: [Watched]) -> Bool {
        guard watched.allSatisfy(\.pulse.isAnswered) else { return false }
        for thread in watched {
            thread.pulse.ask()
            thread.wake()
        }
        return true
    }
}
