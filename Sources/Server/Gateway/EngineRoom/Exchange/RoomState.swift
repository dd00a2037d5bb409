package import Engine
import Platform
import Policy

/// The sources of answers besides devices: counters, webhooks, and whether the gateway is shutting down.
package final class RoomState {
    let records: GatewayRecords
    let limits: LimitCounts
    let commitTimes: () -> CommitTimes
    /// The last reported state of each webhook, by topic.
    var webhooks: [String: WebhookStatus] = [:]
    package var isDraining = false
    /// The replays of topics that are not answered yet.
    private var replays: [WeakReference<TopicReplay.Ticket>] = []

    init(_ records: GatewayRecords, _ limits: LimitCounts, commitTimes: @escaping () -> CommitTimes) {
        self.records = records
        self.limits = limits
        self.commitTimes = commitTimes
    }

    /// Admits the replay of a topic, which counts as unanswered as long as the ticket is kept.
    ///
    /// - Returns: nil when as many as may be are unanswered.
    func admitReplay() -> TopicReplay.Ticket? {
        self.replays.removeAll { $0.object == nil }
        guard self.replays.count < TopicReplay.countMax else { return nil }
        let ticket = TopicReplay.Ticket()
        self.replays.append(WeakReference(object: ticket))
        return ticket
    }
}

private struct WeakReference<Object: AnyObject> {
    weak var object: Object?
}

/// How often the bounds of the engine and of everything around it were met, and who is told of it.
package final class LimitCounts {
    /// What was met, less what the dispatcher that is in use counts itself.
    private var counts = PerCase<EngineLimit>()
    private let meter: LimitMeter
    private var watch: LimitWatch

    /// - `meter`: what other parts of the gateway have counted of their bounds.
    /// - `watch`: tells of bounds that were met.
    package init(_ meter: LimitMeter, _ watch: LimitWatch) {
        self.meter = meter
        self.watch = watch
    }

    package func met(_ limit: EngineLimit) { self.counts[limit] += 1 }

    /// A dispatcher is let go of: what it has counted stays.
    package func take(from dispatcher: Dispatcher) {
        self.counts[.wakeBytesPerStreamMax] += dispatcher.timesStreamWasFull
    }

    /// How often each bound was met.
    package func all(_ dispatcher: Dispatcher) -> [(name: String, count: Int64)] {
        var counts = self.counts
        counts[.wakeBytesPerStreamMax] += dispatcher.timesStreamWasFull
        return self.meter.times(counts)
    }

    /// The bounds that were met, and how often.
    package func met(_ dispatcher: Dispatcher) -> [(name: String, count: Int64)] {
        self.all(dispatcher).filter { $0.count > 0 }
    }

    /// Tells of bounds that were met, if it is time.
    func look(_ now: Instant, _ dispatcher: Dispatcher) {
        self.watch.look(now) { self.met(dispatcher) }
    }
}

/// Pushes that came to the engine together, and when.
struct PushArrival: BitwiseCopyable {
    /// When they left their loop, by the monotonic clock in microseconds.
    let at: Int64
    let count: Int64
}

/// How long commits took, and the pushes that waited for them, since the process began; times in microseconds.
package struct CommitTimes: Sendable {
    private static let bounds: [Int64] = [
        250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
        5_000_000, 10_000_000,
    ]

    package init() {}

    /// From a push's leaving its loop until it was durable.
    private(set) var admitToDurable = Histogram(bounds: CommitTimes.bounds)
    private(set) var commits = Histogram(bounds: CommitTimes.bounds)
    /// Pushes in one commit.
    private(set) var pushes = Histogram(
        bounds: [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384]
    )

    /// A commit was durable.
    ///
    /// - Returns: the pushes in it.
    @discardableResult
    mutating func committed(_ arrivals: [PushArrival], from start: Int64, to end: Int64) -> Int64 {
        self.commits.record(end - start)
        var count: Int64 = 0
        for arrival in arrivals {
            self.admitToDurable.record(end - arrival.at, times: arrival.count)
            count += arrival.count
        }
        self.pushes.record(count)
        return count
    }
}
