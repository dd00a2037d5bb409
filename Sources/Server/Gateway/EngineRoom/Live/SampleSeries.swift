package import Engine
import Policy
package import Wire

/// The counters and gauges at one time for charts, of all topics together.
package struct LiveSample {
    /// The names of `values`, in order.
    package static let fields: [String] =
        [
            "at", "accepted", "noWake", "rejected", "completed", "coalesced", "discarded", "launched", "pending",
            "inFlight", "connected", "slots", "busy",
        ] + WakeOutcome.allCases.map(\.rawValue) + Hold.ofPushes.map { "held.\($0.name)" }
        + ActivityCounters().chartedTasks.flatMap { group, counts in counts.map { "tasks.\(group).\($0.name)" } }

    /// A value for each of `fields`: the time in milliseconds since 1970, counters since the start of counting, and
    /// gauges.
    let values: [Int64]

    /// Creates the sample of one moment.
    ///
    /// - `at`: milliseconds since 1970.
    /// - `rejected`: the number of refused pushes, for any reason.
    package init(at: Int64, _ counters: ActivityCounters, rejected: Int64, _ workers: Dispatcher.WorkerCounts) {
        self.values =
            [
                at, counters.accepted, counters.noWake, rejected, counters.completed, counters.coalesced,
                counters.discarded.sum,
                counters.launched, counters.pending, counters.inFlight, Int64(workers.connected), Int64(workers.slots),
                Int64(workers.busy),
            ] + WakeOutcome.allCases.map { counters.results[$0] } + Hold.ofPushes.map { counters.held[$0] }
            + counters.chartedTasks.flatMap { $0.counts.map(\.count) }
    }
}

/// The latest samples at one distance, up to a maximum number.
package struct SampleSeries {
    /// The distance between two samples, in seconds.
    let seconds: Int
    /// The maximum number of samples kept.
    let countMax: Int
    /// The values of all samples in sequence. Once the maximum is reached, the oldest sample is at `first`.
    private var values: [Int64] = []
    private var first = 0

    init(seconds: Int, countMax: Int) {
        self.seconds = seconds
        self.countMax = countMax
    }

    var count: Int { self.values.count / LiveSample.fields.count }

    /// Appends the newest sample; replaces the oldest if there is no more room.
    mutating func append(_ sample: LiveSample) {
        let width = LiveSample.fields.count
        guard self.count == self.countMax else {
            self.values += sample.values
            return
        }
        self.values.replaceSubrange(self.first * width..<(self.first + 1) * width, with: sample.values)
        self.first = (self.first + 1) % self.countMax
    }

    /// Appends an object: the distance, the names of the values, and the samples, the oldest first.
    package func write(to writer: inout JSONWriter) {
        let width = LiveSample.fields.count
        writer.beginObject()
        writer.member("every", self.seconds)
        writer.array("fields", LiveSample.fields) { $0.string($1) }
        writer.array("samples", 0..<self.count) { writer, number in
            let start = (self.first + number) % self.countMax * width
            writer.beginArray()
            for value in self.values[start..<start + width] { writer.integer(value) }
            writer.endArray()
        }
        writer.endObject()
    }
}

/// The samples of the last five minutes, hour and day, at the resolution that charts need.
package struct SampleHistory {
    /// The distances between samples in seconds, and the number of samples: 400 KB in total.
    package static let spans: [(seconds: Int, countMax: Int)] = [(1, 300), (10, 360), (300, 288)]

    private var series = Self.spans.map { SampleSeries(seconds: $0.seconds, countMax: $0.countMax) }
    private var taken = 0

    /// Creates an empty history.
    package init() {}

    /// Appends the sample of the next second.
    package mutating func append(_ sample: LiveSample) {
        for index in self.series.indices where self.taken.isMultiple(of: self.series[index].seconds) {
            self.series[index].append(sample)
        }
        self.taken += 1
    }

    /// The series with this distance in seconds.
    package subscript(seconds seconds: Int) -> SampleSeries? {
        self.series.first { $0.seconds == seconds }
    }
}

extension ActivityCounters {
    /// The counters of background tasks for charts. The groups `waiting`, `inFlight` and `launched` have a count for
    /// each kind of task; the group `held` has a count for each hold.
    ///
    /// For the kind `urlSession`, `waiting` and `inFlight` count finished transfers, and `launched` counts wakes.
    var chartedTasks: [(group: String, counts: [(name: String, count: Int64)])] {
        var waiting = self.requests.waiting
        waiting[.urlSession] = self.sessions.waiting
        var inFlight = self.requests.inFlight
        inFlight[.urlSession] = self.sessions.inFlight
        func byKind(_ counts: PerCase<TaskKind>) -> [(name: String, count: Int64)] {
            TaskKind.allCases.map { ($0.rawValue, counts[$0]) }
        }
        return [
            ("waiting", byKind(waiting)), ("inFlight", byKind(inFlight)), ("launched", byKind(self.tasks.launched)),
            ("held", Hold.ofTasks.map { ("\($0.name)", self.requests.held[$0]) }),
        ]
    }
}
