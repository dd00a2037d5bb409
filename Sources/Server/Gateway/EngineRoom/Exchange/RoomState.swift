import Engine
import Platform
import Policy
import Synchronization
import Wire

/// The sources of answers other than devices: counters, webhooks, and the shutdown flag.
package final class RoomState {
    let records: GatewayRecords
    let limits: LimitCounts
    let commitTimes: () -> CommitTimes
    /// The last reported state of each webhook, by topic.
    var webhooks: [String: WebhookStatus] = [:]
    package var isDraining = false
    /// The counters of the last day.
    var recent = RecentCounts()
    /// The tickets of unanswered replays.
    private var replays: [WeakReference<ReplayTicket>] = []

    package init(_ records: GatewayRecords, _ limits: LimitCounts, commitTimes: @escaping () -> CommitTimes) {
        self.records = records
        self.limits = limits
        self.commitTimes = commitTimes
    }

    /// Admits a replay. It counts as unanswered until it is answered or its ticket is released.
    ///
    /// - Throws: `APIError` if the maximum number of replays of this kind is unanswered.
    func admit(_ kind: ReplayTicket.Kind) throws(APIError) -> ReplayTicket {
        self.replays.removeAll { $0.object?.isAnswered.load(ordering: .relaxed) ?? true }
        guard self.replays.count(where: { $0.object?.kind == kind }) < kind.countMax else {
            let fault = "The gateway replays at most \(kind.countMax) \(kind.rawValue) at a time."
            throw APIError(429, "TooManyRequests", "\(fault) Send this again when one has been answered.")
        }
        let ticket = ReplayTicket(kind)
        self.replays.append(WeakReference(object: ticket))
        return ticket
    }
}

/// An unanswered replay. Replays share the history's thread with all other questions about the past.
final class ReplayTicket: Sendable {
    enum Kind: String, Sendable {
        case topics, devices

        /// The maximum number of unanswered replays.
        var countMax: Int {
            switch self {
            case .topics: 2
            case .devices: 4
            }
        }
    }

    let kind: Kind
    let isAnswered = Atomic(false)

    init(_ kind: Kind) {
        self.kind = kind
    }
}

private struct WeakReference<Object: AnyObject> {
    weak var object: Object?
}

/// A number of pushes that left their loop at the same time.
struct PushArrival: BitwiseCopyable {
    /// The time at which the pushes left their loop, in microseconds of the monotonic clock.
    let at: Int64
    let count: Int64
}

/// The durations of commits and of the pushes that waited for them, in microseconds, since the start of the process.
package struct CommitTimes: Sendable {
    private static let bounds: [Int64] = [
        250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
        5_000_000, 10_000_000,
    ]

    package init() {}

    /// The times from the departure of pushes from their loop until they were durable.
    private(set) var admitToDurable = Histogram(bounds: CommitTimes.bounds)
    private(set) var commits = Histogram(bounds: CommitTimes.bounds)
    /// The number of pushes per commit.
    private(set) var pushes = Histogram(
        bounds: [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384]
    )

    /// Records a durable commit.
    ///
    /// - Returns: the number of pushes in it.
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
