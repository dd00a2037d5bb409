import Platform
import Synchronization
import Wire

/// The store between the engine, which publishes samples and snapshots, and the loops, which send them to watching
/// operators.
///
/// The class is `@unchecked Sendable`: `monitor` guards every field that changes.
package final class LiveService: @unchecked Sendable {
    private let monitor = Monitor()
    private var history = SampleHistory()
    private var snapshot: LiveSnapshot?
    /// The last event made from a snapshot, and the snapshot's time.
    private var event: (at: Int64, bytes: [UInt8])?
    /// The address of the edge; nil while the edge is off or its address is not set yet.
    private var edge: String?
    /// The start of the gateway, in milliseconds of the monotonic clock.
    package let startedAt = SystemClock.monotonic
    /// The number of open live streams.
    package let readers: ReaderSlots

    /// - Parameter readersMax: the maximum number of open live streams.
    package init(readersMax: Int = GatewayLimits().liveStreamsMax) {
        self.readers = ReaderSlots(max: readersMax)
    }

    /// Sets the address of the edge, which is shown to operators; nil if the edge is off.
    package func attach(edge: String?) {
        self.monitor.withLock { self.edge = edge }
    }

    // MARK: The engine's side

    /// True if operators are watching. Only then are snapshots needed.
    package var isWatched: Bool { !self.readers.isEmpty }

    /// Stores the sample of a second, and the snapshot; nil if no operators are watching.
    func take(_ sample: LiveSample, _ snapshot: LiveSnapshot?) {
        self.monitor.withLock {
            self.history.append(sample)
            self.snapshot = snapshot
        }
    }

    // MARK: The loops' side

    /// Returns the current event and its time, in milliseconds since 1970; nil if the reader already has it or the
    /// snapshot is missing.
    ///
    /// - Parameters:
    ///   - last: the time of the reader's last event.
    ///   - facts: returns the figures of the process.
    package func event(after last: Int64, _ facts: () -> ProcessFacts) -> (at: Int64, bytes: [UInt8])? {
        let (snapshot, made, edge) = self.monitor.withLock { (self.snapshot, self.event, self.edge) }
        guard let snapshot, snapshot.at != last else { return nil }
        if let made, made.at == snapshot.at { return made }
        // The text is written outside the lock, so that the engine does not wait.
        let event = (at: snapshot.at, bytes: snapshot.event(facts(), edge: edge))
        self.monitor.withLock { self.event = event }
        return event
    }

    /// Returns the samples at an interval in seconds, as JSON; nil if the interval is not one of `SampleHistory.spans`.
    package func samples(seconds: Int) -> [UInt8]? {
        guard let series = self.monitor.withLock({ self.history[seconds: seconds] }) else { return nil }
        var writer = JSONWriter()
        series.write(to: &writer)
        return writer.buffer.view.array
    }
}

/// The number of open streams of one kind, at most `max`.
package final class ReaderSlots: Sendable {
    private let count = Atomic(0)
    private let max: Int

    init(max: Int) { self.max = max }

    var isEmpty: Bool { self.count.load(ordering: .relaxed) == 0 }

    /// Counts a new stream, unless the maximum is reached.
    ///
    /// - Returns: false if the maximum is reached.
    package func came() -> Bool {
        let count = self.count.add(1, ordering: .relaxed).newValue
        if count > self.max { self.went() }
        return count <= self.max
    }

    /// Counts a closed stream.
    package func went() { self.count.subtract(1, ordering: .relaxed) }
}
