import Engine
import Glibc
import Platform
import Storage
import Wire

/// How long a lot of events kept its writer, microseconds.
struct Pieces {
    /// Until it was written.
    var flush: Int64
    /// The longest piece of the tidying after it.
    var tidying: Int64

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
        self.history.append(events[...])
        let start = SystemClock.monotonicMicroseconds
        self.history.flush()
        var pieces = Pieces(flush: SystemClock.monotonicMicroseconds - start, tidying: 0)
        var isDone = false
        while !isDone {
            let begin = SystemClock.monotonicMicroseconds
            isDone = !self.history.tidy()
            pieces.tidying = max(pieces.tidying, SystemClock.monotonicMicroseconds - begin)
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
