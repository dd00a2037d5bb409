import Engine
import Wire

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
            for (label, histogram) in series { self.series(metric, label, histogram, unitsPerBase) }
        case .durations(let series): self.histograms(metric, series)
        case .absent: break
        }
    }

    /// Writes a histogram in seconds, with one series per value of its label, from durations in milliseconds.
    private mutating func histograms(_ metric: Metric, _ series: [(label: String, DurationCounts)]) {
        self.begin(metric)
        for (label, counts) in series {
            let own = metric.labelled([label])
            // Powers of two from 16 ms to 17 minutes, which are also bounds of `DurationCounts`. Few wakes last longer.
            for bound in (4...20).map({ Int64(1) << $0 }) {
                let text = Self.number(bound, 1000)
                self.sample("\(metric.name)_bucket", own + [("le", text)], counts.count(upTo: bound))
            }
            self.sample("\(metric.name)_bucket", own + [("le", "+Inf")], counts.count)
            self.name("\(metric.name)_sum", own)
            self.end { $0.append(Self.number(counts.sum, 1000)) }
            self.sample("\(metric.name)_count", own, counts.count)
        }
    }

    /// Writes one series of a histogram. `unitsPerBase` is the number of recorded units per unit of the metric.
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

    private static func number(_ value: Int64, _ unitsPerBase: Int64) -> String {
        value % unitsPerBase == 0 ? String(value / unitsPerBase) : String(Double(value) / Double(unitsPerBase))
    }
}
