/// A metric of `GET /metrics`.
package struct Metric: Sendable {
    /// The Prometheus type of a metric.
    package enum Kind: String, Sendable {
        /// The value only increases, from 0 at the start of the gateway.
        case counter
        /// The value increases and decreases.
        case gauge
        /// Cumulative counts of values by upper bound, in ascending order, and the sum of all values.
        case histogram
    }

    package let name: String
    package let kind: Kind
    /// The labels of the metric's series; empty if there is one series.
    package let labels: [String]
    /// The description, one line.
    package let help: String

    package init(_ name: String, _ kind: Kind, by labels: [String] = [], _ help: String) {
        self.name = name
        self.kind = kind
        self.labels = labels
        self.help = help
    }
}

/// Writes metrics in the text format of Prometheus, version 0.0.4.
///
/// The values of labels must not need escapes. They are topics or names from the program.
package struct MetricsText: ~Copyable {
    /// The text written so far.
    package private(set) var buffer = ByteBuffer()

    package init() {}

    /// Writes a metric with one series.
    package mutating func value(_ metric: Metric, _ value: Int64) {
        self.begin(metric)
        self.sample(metric.name, [], value)
    }

    /// Writes a metric with one series whose value may have a fraction.
    package mutating func fraction(_ metric: Metric, _ value: Double) {
        self.begin(metric)
        self.name(metric.name)
        self.end { $0.append(String(value)) }
    }

    /// Writes a metric with one series for each value of its label.
    package mutating func values(_ metric: Metric, _ values: [(label: String, value: Int64)]) {
        self.begin(metric)
        for (label, value) in values { self.sample(metric.name, metric.labelled([label]), value) }
    }

    /// Writes a metric with one series for each combination of its labels' values.
    package mutating func values(_ metric: Metric, byLabels values: [(labels: [String], value: Int64)]) {
        self.begin(metric)
        for (labels, value) in values { self.sample(metric.name, metric.labelled(labels), value) }
    }

    package mutating func begin(_ metric: Metric) {
        self.buffer.append("# HELP \(metric.name) \(metric.help)\n# TYPE \(metric.name) \(metric.kind.rawValue)\n")
    }

    package mutating func sample(_ name: String, _ labels: [(String, String)], _ value: Int64) {
        self.name(name, labels)
        self.end { $0.appendDecimal(value) }
    }

    package mutating func name(_ name: String, _ labels: [(String, String)] = []) {
        self.buffer.append(name)
        guard !labels.isEmpty else { return }
        self.buffer.append("{")
        for (number, (label, value)) in labels.enumerated() {
            if number > 0 { self.buffer.append(",") }
            self.buffer.append("\(label)=\"\(value)\"")
        }
        self.buffer.append("}")
    }

    package mutating func end(_ write: (inout ByteBuffer) -> Void) {
        self.buffer.append(" ")
        write(&self.buffer)
        self.buffer.append("\n")
    }
}

extension Metric {
    /// Returns the label names of one series paired with `values`, which must be in the order of `labels`.
    package func labelled(_ values: [String]) -> [(String, String)] {
        precondition(values.count == self.labels.count, "\(self.name) has the labels \(self.labels), not \(values)")
        return Array(zip(self.labels, values))
    }
}
