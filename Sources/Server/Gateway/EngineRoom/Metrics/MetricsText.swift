import Engine
import Wire

/// Writes metrics in the text format of Prometheus, version 0.0.4.
///
/// Label values are names of the program's own or topics, none of which has a character that the format escapes.
struct MetricsText: ~Copyable {
    /// What has been written so far.
    private(set) var buffer = ByteBuffer()

    /// A metric with one series.
    mutating func value(_ metric: Metric, _ value: Int64) {
        self.begin(metric)
        self.sample(metric.name, [], value)
    }

    /// A metric with one series, in its base unit.
    mutating func fraction(_ metric: Metric, _ value: Double) {
        self.begin(metric)
        self.name(metric.name)
        self.end { $0.append(String(value)) }
    }

    /// A metric with one series for each value of its label.
    mutating func values(_ metric: Metric, _ values: [(label: String, value: Int64)]) {
        self.begin(metric)
        for (label, value) in values { self.sample(metric.name, metric.labelled([label]), value) }
    }

    /// A metric with one series for each combination of its labels' values.
    mutating func values(_ metric: Metric, byLabels values: [(labels: [String], value: Int64)]) {
        self.begin(metric)
        for (labels, value) in values { self.sample(metric.name, metric.labelled(labels), value) }
    }

    /// A histogram of one series.
    ///
    /// - Parameter unitsPerBase: how many of what was recorded make one of the metric's unit.
    mutating func histogram(_ metric: Metric, _ histogram: Histogram, unitsPerBase: Int64) {
        self.begin(metric)
        self.series(metric, nil, histogram, unitsPerBase)
    }

    /// A histogram with one series for each value of its label.
    mutating func histograms(_ metric: Metric, _ series: [(label: String, Histogram)], unitsPerBase: Int64) {
        self.begin(metric)
        for (label, histogram) in series { self.series(metric, label, histogram, unitsPerBase) }
    }

    private mutating func series(_ metric: Metric, _ label: String?, _ histogram: Histogram, _ unitsPerBase: Int64) {
        let own = metric.labelled(label.map { [$0] } ?? [])
        var count: Int64 = 0
        for (bucket, value) in histogram.counts.enumerated() {
            count += value
            let bound = bucket < histogram.bounds.count ? Self.number(histogram.bounds[bucket], unitsPerBase) : "+Inf"
            self.sample("\(metric.name)_bucket", own + [("le", bound)], count)
        }
        self.name("\(metric.name)_sum", own)
        self.end { $0.append(Self.number(histogram.sum, unitsPerBase)) }
        self.sample("\(metric.name)_count", own, count)
    }

    private mutating func begin(_ metric: Metric) {
        self.buffer.append("# HELP \(metric.name) \(metric.help)\n# TYPE \(metric.name) \(metric.kind.rawValue)\n")
    }

    private mutating func sample(_ name: String, _ labels: [(String, String)], _ value: Int64) {
        self.name(name, labels)
        self.end { $0.appendDecimal(value) }
    }

    private mutating func name(_ name: String, _ labels: [(String, String)] = []) {
        self.buffer.append(name)
        guard !labels.isEmpty else { return }
        self.buffer.append("{")
        for (number, (label, value)) in labels.enumerated() {
            if number > 0 { self.buffer.append(",") }
            self.buffer.append("\(label)=\"\(value)\"")
        }
        self.buffer.append("}")
    }

    private mutating func end(_ write: (inout ByteBuffer) -> Void) {
        self.buffer.append(" ")
        write(&self.buffer)
        self.buffer.append("\n")
    }

    private static func number(_ value: Int64, _ unitsPerBase: Int64) -> String {
        value % unitsPerBase == 0 ? String(value / unitsPerBase) : String(Double(value) / Double(unitsPerBase))
    }
}

extension Metric {
    /// The labels of one series, with its values of them in their order.
    fileprivate func labelled(_ values: [String]) -> [(String, String)] {
        precondition(values.count == self.labels.count, "\(self.name) has the labels \(self.labels), not \(values)")
        return Array(zip(self.labels, values))
    }
}
