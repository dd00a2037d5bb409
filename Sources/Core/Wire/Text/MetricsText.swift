/// A metric as `GET /metrics` names it.
package struct Metric: Sendable {
    /// What a metric's values mean, as Prometheus knows it.
    package enum Kind: String, Sendable {
        /// Grows, and begins anew at most when the gateway starts.
        case counter
        /// Goes up and down.
        case gauge
        /// Counts of values below bounds, which rise and are cumulative, with the sum of all values.
        case histogram
    }

    package let name: String
    package let kind: Kind
    /// The labels that tell a metric's series apart; none when there is one series.
    package let labels: [String]
    /// One line that says what is counted or measured.
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
/// Label values are names of the program's own or topics, none of which has a character that the format escapes.
package struct MetricsText: ~Copyable {
    /// What has been written so far.
    package private(set) var buffer = ByteBuffer()

    package init() {}

    /// A metric with one series.
    package mutating func value(_ metric: Metric, _ value: Int64) {
        self.begin(metric)
        self.sample(metric.name, [], value)
    }

    /// A metric with one series, in its base unit.
    package mutating func fraction(_ metric: Metric, _ value: Double) {
        self.begin(metric)
        self.name(metric.name)
        self.end { $0.append(String(value)) }
    }

    /// A metric with one series for each value of its label.
    package mutating func values(_ metric: Metric, _ values: [(label: String, value: Int64)]) {
        self.begin(metric)
        for (label, value) in values { self.sample(metric.name, metric.labelled([label]), value) }
    }

    /// A metric with one series for each combination of its labels' values.
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
    /// The labels of one series, with its values of them in their order.
    package func labelled(_ values: [String]) -> [(String, String)] {
        precondition(values.count == self.labels.count, "\(self.name) has the labels \(self.labels), not \(values)")
        return Array(zip(self.labels, values))
    }
}
