import Platform
import Synchronization
import Wire

/// Where the engine leaves what it has for those who watch, and where the loops take it from.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards every field that changes.
package final class LiveDesk: @unchecked Sendable {
    private let monitor = Monitor()
    private var history = SampleHistory()
    private var snapshot: LiveSnapshot?
    /// The event made of the latest snapshot.
    private var event: (at: Int64, bytes: [UInt8])?
    /// Where the edge accepts; nil while it is off, or as long as nobody has said so.
    private var edge: String?
    /// When it was set up, with the gateway, on the monotonic clock in milliseconds.
    package let startedAt = SystemClock.monotonic
    private let readers = Atomic(0)
    private let readersMax: Int

    /// - Parameter readersMax: the most streams that are open at once.
    package init(readersMax: Int = GatewayLimits().liveStreamsMax) {
        self.readersMax = readersMax
    }

    /// Takes where the edge accepts, for those who are told how to reach it; nil when it is off.
    package func attach(edge: String?) {
        self.monitor.withLock { self.edge = edge }
    }

    // MARK: The engine's side

    /// Whether anybody watches, so that a snapshot is worth its while.
    package var isWatched: Bool { self.readers.load(ordering: .relaxed) > 0 }

    /// Takes the sample of a second, and what there is besides when somebody watches.
    func take(_ sample: LiveSample, _ snapshot: LiveSnapshot?) {
        self.monitor.withLock {
            self.history.append(sample)
            self.snapshot = snapshot
        }
    }

    // MARK: The loops' side

    /// One more stream is open.
    ///
    /// - Returns: false when there are as many as there may be.
    package func readerCame() -> Bool {
        let count = self.readers.add(1, ordering: .relaxed).newValue
        if count > self.readersMax { self.readerWent() }
        return count <= self.readersMax
    }

    /// Somebody who watched has gone.
    package func readerWent() {
        self.readers.subtract(1, ordering: .relaxed)
    }

    /// The event for all who watch and its moment, in milliseconds since 1970, unless they have it.
    ///
    /// - Parameters:
    ///   - last: the moment of the event they had last.
    ///   - facts: how the process is.
    package func event(after last: Int64, _ facts: () -> ProcessFacts) -> (at: Int64, bytes: [UInt8])? {
        let (snapshot, made, edge) = self.monitor.withLock { (self.snapshot, self.event, self.edge) }
        guard let snapshot, snapshot.at != last else { return nil }
        if let made, made.at == snapshot.at { return made }
        // Outside the lock: the engine does not wait while text is made.
        let event = (at: snapshot.at, bytes: LiveReport(snapshot: snapshot, facts: facts(), edge: edge).event)
        self.monitor.withLock { self.event = event }
        return event
    }

    /// The samples that lie so many seconds apart, as JSON; nil when there are none of that distance.
    package func samples(seconds: Int) -> [UInt8]? {
        guard let series = self.monitor.withLock({ self.history[seconds: seconds] }) else { return nil }
        var writer = JSONWriter()
        series.write(to: &writer)
        return writer.buffer.view.array
    }
}
