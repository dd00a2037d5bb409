import Bytes
import DeviceEngine
import Glibc
import History

/// How long a lot of events kept its writer, microseconds.
struct Pieces {
    /// Until it was written.
    var flush: Double
    /// The longest piece of the tidying after it.
    var tidying: Double

    /// Takes over what is longer in `other`.
    mutating func rise(to other: Pieces) {
        self.flush = max(self.flush, other.flush)
        self.tidying = max(self.tidying, other.tidying)
    }
}

/// Something that keeps events and answers the history's two questions.
protocol EventStore {
    var name: String { get }
    var path: String { get }

    /// Writes a lot, and tidies up until there is nothing more to do.
    func write(_ events: [HistoryEvent]) throws -> Pieces
    /// How many of the `count` newest events of a device there are; each is read.
    func recent(device: UInt64, count: Int) throws -> Int
    /// How many events a push has; each is read.
    func push(_ id: APNsID) throws -> Int
}

/// The history itself.
struct SortedRuns: EventStore {
    let name = "runs"
    let path: String
    private let history: HistoryFile

    init(path: String) {
        self.path = path
        self.history = HistoryFile(path: path, key: HashKey((1, 2))) { Measurement.write("\($0)\n", to: STDERR_FILENO) }
    }

    func write(_ events: [HistoryEvent]) -> Pieces {
        self.history.append(events)
        let start = Clock.microseconds(CLOCK_MONOTONIC)
        self.history.flush()
        var pieces = Pieces(flush: Clock.microseconds(CLOCK_MONOTONIC) - start, tidying: 0)
        var isDone = false
        while !isDone {
            let begin = Clock.microseconds(CLOCK_MONOTONIC)
            isDone = !self.history.tidy()
            pieces.tidying = max(pieces.tidying, Clock.microseconds(CLOCK_MONOTONIC) - begin)
        }
        return pieces
    }

    func recent(device: UInt64, count: Int) -> Int {
        self.history.recent(device: device, count: count).count
    }

    func push(_ id: APNsID) -> Int {
        self.history.push(id).count
    }
}

/// The system's clocks.
enum Clock {
    /// What a clock shows, microseconds.
    static func microseconds(_ clock: clockid_t) -> Double {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }
}
