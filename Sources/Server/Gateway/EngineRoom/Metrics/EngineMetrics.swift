import Engine
import Policy
import Wire

/// A metric of the gateway, and the source of its values.
struct GatewayMetric: Sendable {
    /// The values of a metric.
    enum Values {
        case one(Int64)
        case fraction(Double)
        /// A value for each value of the label.
        case each([(label: String, value: Int64)])
        /// A value for each combination of the labels' values.
        case combined([(labels: [String], value: Int64)])
        /// A series for each value of the label; nil for a metric without labels.
        case histograms([(label: String?, Histogram)], unitsPerBase: Int64)
        case durations([(label: String, DurationCounts)])
        /// The metric is left out.
        case absent
    }

    typealias Source = @Sendable (EngineMetrics) -> Values

    let metric: Metric
    let source: Source

    static func counter(_ name: String, by labels: [String] = [], _ help: String, _ source: @escaping Source) -> Self {
        Self(metric: Metric(name, .counter, by: labels, help), source: source)
    }

    static func gauge(_ name: String, by labels: [String] = [], _ help: String, _ source: @escaping Source) -> Self {
        Self(metric: Metric(name, .gauge, by: labels, help), source: source)
    }

    static func histogram(_ name: String, by labels: [String] = [], _ help: String, _ source: @escaping Source) -> Self
    {
        Self(metric: Metric(name, .histogram, by: labels, help), source: source)
    }
}

/// The state from which all metrics are written.
struct EngineMetrics {
    /// The label for all topics that the configuration does not name. It is not a valid topic name.
    private static let otherTopics = "(other)"

    /// A topic in the configuration, or all other topics together.
    struct Topic {
        let name: String
        let counters: ActivityCounters
        let workers: Int
        let durations: DurationCounts
    }

    let workspace: Workspace
    let room: RoomState
    let figures: GatewayFigures
    let totals: ActivityCounters
    let workers: Dispatcher.WorkerCounts
    /// The topics in the configuration by name, and then the others together.
    let topics: [Topic]
    /// The gateways on the store; nil for a gateway with its own store.
    let cluster: ClusterStatus?
    let commitTimes: CommitTimes

    init(_ scope: AuthorizedScope, _ figures: GatewayFigures) {
        self.workspace = scope.workspace
        self.room = scope.room
        self.figures = figures
        self.totals = scope.engine.totalsShown
        self.workers = scope.workspace.workerCounts(nil)
        self.topics = Self.topics(figures.topics, scope.workspace, self.totals, self.workers.connected)
        self.cluster = scope.workspace.remote.map { $0.status ?? ClusterStatus(nil, own: nil) }
        self.commitTimes = scope.room.commitTimes()
    }

    var engine: DeviceEngine { self.workspace.engine }

    /// All metrics as text. If the store has failed and its state cannot be read, leaves out the metrics of the state,
    /// because their values would be zero.
    var document: Outcome.Document {
        var text = MetricsText()
        let isReadable = self.workspace.failure?.durableError == nil
        for metric in (isReadable ? GatewayMetric.ofState : []) + GatewayMetric.ofRuntime {
            text.append(metric.metric, metric.source(self))
        }
        return Outcome.Document(kind: .metrics, bytes: text.buffer.view.array)
    }

    var devicesWithoutWorker: Int64 {
        (0..<UInt32(self.engine.topicCount)).reduce(into: 0) { sum, number in
            let topic = TopicIndex(rawValue: number)
            let count = self.workspace.readyCount(topic)
            if count > 0, self.workspace.workerCounts(topic).connected == 0 { sum += Int64(count) }
        }
    }

    func webhookCount(_ state: String) -> Int64 {
        Int64(self.room.webhooks.values.count { $0.state.name == state })
    }

    private static func topics(
        _ names: [String],
        _ workspace: Workspace,
        _ totals: ActivityCounters,
        _ workers: Int
    ) -> [Topic] {
        var (rest, restOfWorkers) = (totals, workers)
        var durations = workspace.dispatcher.pushDurations
        var topics: [Topic] = []
        for name in names.sorted() {
            let topic = name.withByteView { workspace.engine.findTopic($0) }
            let counters = topic.map { workspace.engine.countersShown($0) } ?? ActivityCounters()
            let connected = topic.map { workspace.workerCounts($0).connected } ?? 0
            let own = topic.flatMap { durations.removeValue(forKey: $0) } ?? DurationCounts()
            rest.accepted -= counters.accepted
            rest.launched -= counters.launched
            rest.pending -= counters.pending
            restOfWorkers -= connected
            topics.append(Topic(name: name, counters: counters, workers: connected, durations: own))
        }
        let others = durations.values.reduce(into: DurationCounts()) { $0 += $1 }
        return topics + [Topic(name: Self.otherTopics, counters: rest, workers: restOfWorkers, durations: others)]
    }
}

extension PerCase where Case: RawRepresentable, Case.RawValue == String {
    /// Returns the counts of these cases with their names.
    func named(_ cases: [Case]) -> [(label: String, value: Int64)] { cases.map { ($0.rawValue, self[$0]) } }
}

extension PerCase<Hold> {
    /// Returns the counts of these holds with their names.
    func named(_ holds: [Hold]) -> [(label: String, value: Int64)] { holds.map { ("\($0.name)", self[$0]) } }
}

// MARK: - Text

extension MetricsText {
    /// Writes a metric with its values.
    mutating func append(_ metric: Metric, _ values: GatewayMetric.Values) {
        switch values {
        case .one(let value): self.value(metric, value)
        case .fraction(let value): self.fraction(metric, value)
        case .each(let values): self.values(metric, values)
        case .combined(let values): self.values(metric, byLabels: values)
        case .histograms(let series, let unitsPerBase):
            self.begin(metric)
            for (label, histogram) in series {
                var count: Int64 = 0
                let buckets = histogram.counts.enumerated().map { bucket, value in
                    count += value
                    let bound = bucket < histogram.bounds.count ? histogram.bounds[bucket] : nil
                    return (bound.map { Self.number($0, unitsPerBase) } ?? "+Inf", count)
                }
                self.series(metric, label, buckets, sum: Self.number(histogram.sum, unitsPerBase))
            }
        case .durations(let series):
            self.begin(metric)
            for (label, counts) in series {
                // Powers of two from 16 ms to 17 minutes, which are also bounds of `DurationCounts`. Few wakes last
                // longer.
                let bounds = (4...20).map { Int64(1) << $0 }
                let buckets = bounds.map { (Self.number($0, 1000), counts.count(upTo: $0)) } + [("+Inf", counts.count)]
                self.series(metric, label, buckets, sum: Self.number(counts.sum, 1000))
            }
        case .absent: break
        }
    }

    /// Writes one series of a histogram.
    ///
    /// - `buckets`: the upper bounds in ascending order, each with the number of values up to it; the last is +Inf.
    private mutating func series(
        _ metric: Metric,
        _ label: String?,
        _ buckets: [(bound: String, count: Int64)],
        sum: String
    ) {
        let own = metric.labelled(label.map { [$0] } ?? [])
        for (bound, count) in buckets { self.sample("\(metric.name)_bucket", own + [("le", bound)], count) }
        self.name("\(metric.name)_sum", own)
        self.end { $0.append(sum) }
        self.sample("\(metric.name)_count", own, buckets.last?.count ?? 0)
    }

    private static func number(_ value: Int64, _ unitsPerBase: Int64) -> String {
        value % unitsPerBase == 0 ? String(value / unitsPerBase) : String(Double(value) / Double(unitsPerBase))
    }
}
