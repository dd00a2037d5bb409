package import Engine
import Policy
package import Wire

/// What the counters and gauges of all topics were at one moment: what charts are made of.
package struct LiveSample {
    /// The names of `values`, in their order.
    package static let fields: [String] =
        [
            "at", "accepted", "noWake", "rejected", "completed", "coalesced", "discarded", "launched", "pending",
            "inFlight", "connected", "slots", "busy",
        ] + WakeOutcome.allCases.map(\.rawValue) + Hold.ofPushes.map { "held.\($0.name)" }
        + Books().chartedTasks.flatMap { group, counts in counts.map { "tasks.\(group).\($0.name)" } }

    /// The moment in milliseconds since 1970, then counters since the counting began, and gauges.
    let values: [Int64]

    /// What the figures are at a moment.
    ///
    /// - `at`: in milliseconds since 1970.
    /// - `rejected`: pushes refused, for whatever reason.
    package init(at: Int64, _ books: Books, rejected: Int64, _ workers: Dispatcher.WorkerCounts) {
        self.values =
            [
                at, books.accepted, books.noWake, rejected, books.completed, books.coalesced, books.discarded.sum,
                books.launched, books.pending, books.inFlight, Int64(workers.connected), Int64(workers.slots),
                Int64(workers.busy),
            ] + WakeOutcome.allCases.map { books.results[$0] } + Hold.ofPushes.map { books.held[$0] }
            + books.chartedTasks.flatMap { $0.counts.map(\.count) }
    }
}

/// The last samples at one distance from each other, as many as there may be.
package struct SampleSeries {
    /// How many seconds lie between two of them.
    let seconds: Int
    /// The most that are kept.
    let countMax: Int
    /// All values, sample by sample; the oldest is at `first` once there are as many as there may be.
    private var values: [Int64] = []
    private var first = 0

    init(seconds: Int, countMax: Int) {
        self.seconds = seconds
        self.countMax = countMax
    }

    var count: Int { self.values.count / LiveSample.fields.count }

    /// Adds the newest; the oldest makes room for it.
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
        writer.key("every")
        writer.integer(self.seconds)
        writer.key("fields")
        writer.beginArray()
        for field in LiveSample.fields { writer.string(field) }
        writer.endArray()
        writer.key("samples")
        writer.beginArray()
        for number in 0..<self.count {
            let start = (self.first + number) % self.countMax * width
            writer.beginArray()
            for value in self.values[start..<start + width] { writer.integer(value) }
            writer.endArray()
        }
        writer.endArray()
        writer.endObject()
    }
}

/// The samples of the last five minutes, hour and day, each as fine as a chart can show.
package struct SampleHistory {
    /// Seconds between samples, and how many of those: 400 KB in all.
    package static let spans: [(seconds: Int, countMax: Int)] = [(1, 300), (10, 360), (300, 288)]

    private var series = Self.spans.map { SampleSeries(seconds: $0.seconds, countMax: $0.countMax) }
    private var taken = 0

    /// No samples.
    package init() {}

    /// Takes the sample of one more second.
    package mutating func append(_ sample: LiveSample) {
        for index in self.series.indices where self.taken.isMultiple(of: self.series[index].seconds) {
            self.series[index].append(sample)
        }
        self.taken += 1
    }

    /// The series with so many seconds between two samples.
    package subscript(seconds seconds: Int) -> SampleSeries? {
        self.series.first { $0.seconds == seconds }
    }
}
